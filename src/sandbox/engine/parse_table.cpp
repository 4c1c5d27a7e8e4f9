// CREATE, ALTER and DROP.
#include <fmt/format.h>

#include "sandbox/engine/errors.hpp"
#include "sandbox/engine/parser.hpp"

namespace rowferry::sandbox::engine {

// An expression together with its text, as the catalogue shows it.
ExprPtr Parser::captured(std::string& text, bool parenthesised_only) {
  const std::size_t begin = here().begin;
  ExprPtr e = parenthesised_only ? parenthesised() : additive();
  text = source_text(begin, tokens_[at_ - 1].end);
  const bool wrapped = text.size() > 2 && text.front() == '(' && text.back() == ')';
  if (!wrapped) text = "(" + text + ")";
  if (e->kind == ExprKind::literal && !wrapped && is_number(e->literal.type.kind)) text = "(" + text + ")";
  return e;
}

std::vector<std::pair<std::string, bool>> Parser::key_columns() {
  std::vector<std::pair<std::string, bool>> columns;
  expect_symbol("(");
  do {
    std::string column = name();
    const bool descending = accept("DESC");
    if (!descending) accept("ASC");
    columns.emplace_back(std::move(column), descending);
  } while (accept_symbol(","));
  expect_symbol(")");
  return columns;
}

void Parser::index_options(KeySpec& key) {
  if (accept("WITH")) {
    if (accept_symbol("(")) {
      do {
        const std::string option = word();
        if (accept_symbol("=")) {
          const bool on = is("ON");
          next();
          if (option == "IGNORE_DUP_KEY") key.ignore_dup_key = on;
        }
        if (is_symbol("(")) skip_parentheses();
        if (accept("MINUTES")) continue;
      } while (accept_symbol(","));
      expect_symbol(")");
    } else {
      const std::string option = word();
      if (accept_symbol("=")) next();
      if (option == "IGNORE_DUP_KEY") key.ignore_dup_key = true;
    }
  }
  if (accept("ON")) on_place(key.scheme, key.scheme_column);
}

// A filegroup, of which there is one only, or a partition scheme and its column.
void Parser::on_place(std::string& scheme, std::string& column) {
  std::string place = name();
  if (!accept_symbol("(")) return;
  scheme = std::move(place);
  column = name();
  expect_symbol(")");
}

void Parser::key_tail(KeySpec& key) {
  if (accept("CLUSTERED")) key.clustered = true;
  if (accept("NONCLUSTERED")) key.clustered = false;
  if (accept("HASH")) key.clustered = false;
}

ForeignKeySpec Parser::references(std::string constraint_name) {
  ForeignKeySpec fk;
  fk.name = std::move(constraint_name);
  expect("REFERENCES");
  fk.table = object_name();
  if (is_symbol("(")) fk.referenced = name_list();
  while (is("ON") && (is("DELETE", 1) || is("UPDATE", 1))) {
    next();
    int& action = is("DELETE") ? fk.on_delete : fk.on_update;
    next();
    if (accept("CASCADE")) {
      action = 1;
    } else if (accept("SET")) {
      action = accept("NULL") ? 2 : 3;
      if (action == 3) expect("DEFAULT");
    } else {
      expect("NO");
      expect("ACTION");
    }
  }
  if (accept("NOT")) {
    expect("FOR");
    expect("REPLICATION");
  }
  return fk;
}

bool Parser::column_option(ColumnSpec& column, TableParts& parts, std::string& constraint) {
  if (accept("CONSTRAINT")) {
    constraint = name();
    return true;
  }
  if (accept("NOT")) {
    if (accept("FOR")) {
      expect("REPLICATION");
      return true;
    }
    expect("NULL");
    column.nullable = false;
  } else if (accept("NULL")) {
    column.nullable = true;
  } else if (accept("COLLATE")) {
    column.collation = name();
  } else if (accept("IDENTITY")) {
    column.identity = Identity{};
    if (accept_symbol("(")) {
      column.identity->seed = integer_literal();
      expect_symbol(",");
      column.identity->increment = integer_literal();
      expect_symbol(")");
    }
  } else if (accept("DEFAULT")) {
    column.default_name = std::exchange(constraint, {});
    column.default_value = captured(column.default_text, false);
    if (accept("WITH")) expect("VALUES");
  } else if (is("PRIMARY") || is("UNIQUE")) {
    KeySpec key;
    key.name = std::exchange(constraint, {});
    key.primary = accept("PRIMARY");
    if (key.primary) {
      expect("KEY");
    } else {
      expect("UNIQUE");
    }
    key_tail(key);
    key.columns = is_symbol("(") ? key_columns() : std::vector<std::pair<std::string, bool>>{{column.name, false}};
    index_options(key);
    parts.keys.push_back(std::move(key));
  } else if (accept("CHECK")) {
    if (accept("NOT")) {
      expect("FOR");
      expect("REPLICATION");
    }
    CheckSpec check;
    check.name = std::exchange(constraint, {});
    check.column = column.name;
    check.condition = captured(check.text, true);
    parts.checks.push_back(std::move(check));
  } else if (is("FOREIGN") || is("REFERENCES")) {
    if (accept("FOREIGN")) expect("KEY");
    ForeignKeySpec fk = references(std::exchange(constraint, {}));
    fk.columns = {column.name};
    parts.foreign_keys.push_back(std::move(fk));
  } else if (accept("ROWGUIDCOL")) {
    column.rowguidcol = true;
  } else if (accept("SPARSE")) {
    column.sparse = true;
  } else if (accept("PERSISTED")) {
    column.persisted = true;
  } else if (accept("HIDDEN")) {
    column.hidden = true;
  } else if (accept_all({"GENERATED", "ALWAYS", "AS", "ROW"})) {
    column.generated_always = is("START") ? 1 : 2;
    next();
    column.nullable = false;
  } else if (is("INDEX") && is_name(1)) {
    next();
    KeySpec key;
    key.name = name();
    key.constraint = false;
    key.unique = accept("UNIQUE");
    key_tail(key);
    key.columns = {{column.name, false}};
    index_options(key);
    parts.keys.push_back(std::move(key));
  } else {
    return false;
  }
  return true;
}

ColumnSpec Parser::column_spec(TableParts& parts) {
  ColumnSpec column;
  column.name = name();
  std::string constraint;
  if (accept("AS")) {
    const std::size_t begin = here().begin;
    column.computed = expression();
    column.computed_text = source_text(begin, tokens_[at_ - 1].end);
    if (column.computed_text.front() != '(') column.computed_text = "(" + column.computed_text + ")";
  } else if (is_symbol(",") || is_symbol(")")) {
    if (fold_name(column.name) != "timestamp") syntax_error();  // a column named by its type
    column.type = make_type(Kind::rowversion, 8);
    column.rowversion = true;
  } else {
    const std::size_t begin = here().begin;
    data_type(column.type, column.user_type, false);
    column.type_text = source_text(begin, tokens_[at_ - 1].end);
  }
  while (column_option(column, parts, constraint)) {
  }
  return column;
}

void Parser::table_constraint(TableParts& parts, std::string constraint_name) {
  if (is("PRIMARY") || is("UNIQUE")) {
    KeySpec key;
    key.name = std::move(constraint_name);
    key.primary = accept("PRIMARY");
    if (key.primary) {
      expect("KEY");
    } else {
      expect("UNIQUE");
    }
    key_tail(key);
    key.columns = key_columns();
    index_options(key);
    parts.keys.push_back(std::move(key));
  } else if (accept("CHECK")) {
    if (accept("NOT")) {
      expect("FOR");
      expect("REPLICATION");
    }
    CheckSpec check;
    check.name = std::move(constraint_name);
    check.condition = captured(check.text, true);
    parts.checks.push_back(std::move(check));
  } else if (accept("FOREIGN")) {
    expect("KEY");
    const auto columns = name_list();
    ForeignKeySpec fk = references(std::move(constraint_name));
    fk.columns = columns;
    parts.foreign_keys.push_back(std::move(fk));
  } else if (accept("DEFAULT")) {
    DefaultSpec d;
    d.name = std::move(constraint_name);
    d.value = captured(d.text, false);
    expect("FOR");
    d.column = name();
    if (accept("WITH")) expect("VALUES");
    parts.defaults.push_back(std::move(d));
  } else {
    syntax_error();
  }
}

void Parser::table_element(TableParts& parts) {
  if (accept("CONSTRAINT")) {
    std::string constraint = name();
    return table_constraint(parts, std::move(constraint));
  }
  if (is("PRIMARY") || is("UNIQUE") || is("CHECK") || is("FOREIGN") || is("DEFAULT"))
    return table_constraint(parts, {});
  if (accept_all({"PERIOD", "FOR", "SYSTEM_TIME"})) {
    expect_symbol("(");
    parts.period_start = name();
    expect_symbol(",");
    parts.period_end = name();
    expect_symbol(")");
    return;
  }
  if (is("INDEX") && is_name(1)) {
    next();
    KeySpec key;
    key.name = name();
    key.constraint = false;
    key.unique = accept("UNIQUE");
    key_tail(key);
    if (accept("COLUMNSTORE")) key.columnstore = true;
    if (is_symbol("(")) key.columns = key_columns();
    index_options(key);
    parts.keys.push_back(std::move(key));
    return;
  }
  parts.columns.push_back(column_spec(parts));
}

void Parser::table_elements(TableParts& parts) {
  do {
    if (is_symbol(")")) break;  // a comma too many
    table_element(parts);
  } while (accept_symbol(","));
}

void Parser::create_statement(Statement& s) {
  const std::size_t begin = here().begin;
  expect("CREATE");
  const bool or_alter = accept_all({"OR", "ALTER"});
  if (accept("TABLE")) {
    CreateTable& t = put<CreateTable>(s);
    t.name = object_name();
    expect_symbol("(");
    table_elements(t.parts);
    expect_symbol(")");
    if (accept("ON")) on_place(t.parts.scheme, t.parts.scheme_column);
    if (accept("TEXTIMAGE_ON")) name();
    if (is("WITH") && is_symbol("(", 1)) {
      t.parts.temporal = source_text(here().begin, text_.size()).find("SYSTEM_VERSIONING") != std::string::npos;
      next();
      skip_parentheses();
    }
    return;
  }
  if (accept("DATABASE") || is("SCHEMA")) {
    CreateNamed& c = put<CreateNamed>(s);
    c.database = !accept("SCHEMA");
    if (!c.database && accept("AUTHORIZATION")) {
      c.name = name();
      return;
    }
    c.name = name();
    if (accept("AUTHORIZATION")) name();
    if (accept("COLLATE")) c.collation = name();
    if (c.database && (is("ON") || is("WITH") || is("LOG"))) skip_statement();
    if (accept("COLLATE")) c.collation = name();
    return;
  }
  if (accept("VIEW")) return create_text(s, ObjectKind::view, begin, false, or_alter);
  if (accept("PROCEDURE") || accept("PROC")) return create_text(s, ObjectKind::procedure, begin, false, or_alter);
  if (accept("TRIGGER")) return create_text(s, ObjectKind::trigger, begin, false, or_alter);
  if (accept("SYNONYM")) {
    CreateText& c = put<CreateText>(s);
    c.kind = ObjectKind::synonym;
    c.name = object_name();
    expect("FOR");
    c.parent = object_name();
    return;
  }
  if (accept("STATISTICS") || accept("USER") || accept("LOGIN") || accept("ROLE")) {
    skip_statement();
    put<Ignored>(s);
    return;
  }
  const bool unique = accept("UNIQUE");
  if (is("INDEX") || is("CLUSTERED") || is("NONCLUSTERED") || is("COLUMNSTORE")) return create_index(s, unique);
  if (accept("PARTITION")) return create_partition(s);
  if (is("FUNCTION") || is("TYPE") || is("SEQUENCE")) raise_unsupported("CREATE " + upper_ascii(here().text));
  syntax_error();
}

void Parser::create_partition(Statement& s) {
  CreatePartition& c = put<CreatePartition>(s);
  c.scheme = accept("SCHEME");
  if (!c.scheme) expect("FUNCTION");
  c.name = name();
  if (c.scheme) {
    expect("AS");
    expect("PARTITION");
    c.function = name();
    c.all = accept("ALL");
    expect("TO");
    expect_symbol("(");
    do {
      name();
      ++c.filegroups;
    } while (accept_symbol(","));
    expect_symbol(")");
    return;
  }
  std::string user_type;
  expect_symbol("(");
  data_type(c.type, user_type, false);
  expect_symbol(")");
  expect("AS");
  expect("RANGE");
  c.right = accept("RIGHT");
  if (!c.right) accept("LEFT");
  expect("FOR");
  expect("VALUES");
  expect_symbol("(");
  if (!is_symbol(")")) c.boundaries = expression_list();
  expect_symbol(")");
}

void Parser::create_index(Statement& s, bool unique) {
  CreateIndex& c = put<CreateIndex>(s);
  c.key.constraint = false;
  c.key.unique = unique;
  c.key.clustered = false;
  key_tail(c.key);
  c.key.columnstore = accept("COLUMNSTORE");
  expect("INDEX");
  c.key.name = name();
  expect("ON");
  c.table = object_name();
  if (is_symbol("(")) c.key.columns = key_columns();
  if (accept("INCLUDE")) c.key.included = name_list();
  if (accept("WHERE")) {
    const std::size_t begin = here().begin;
    expression();
    c.key.filter = "(" + source_text(begin, tokens_[at_ - 1].end) + ")";
  }
  const std::size_t begin = here().begin;
  index_options(c.key);
  c.drop_existing = upper_ascii(source_text(begin, tokens_[at_ - 1].end > begin ? tokens_[at_ - 1].end : begin))
                        .find("DROP_EXISTING") != std::string::npos;
}

// Views, procedures and triggers take the rest of the batch.
void Parser::create_text(Statement& s, ObjectKind kind, std::size_t begin, bool alter, bool or_alter) {
  CreateText& c = put<CreateText>(s);
  c.kind = kind;
  c.name = object_name();
  c.alter = alter;
  c.or_alter = or_alter;
  if (kind == ObjectKind::trigger) {
    expect("ON");
    c.parent = object_name();
    while (!at_end() && !is("AS")) next();
  } else if (kind == ObjectKind::view) {
    while (!at_end() && !is("AS")) next();
  } else {
    if (accept_symbol(";")) next();
    parameters(true);
    while (!at_end() && !is("AS")) next();
  }
  expect("AS");
  c.text = source_text(begin, text_.size());
  c.body = here().begin - begin;
  while (!at_end()) next();
}

void Parser::drop_statement(Statement& s) {
  expect("DROP");
  Drop& d = put<Drop>(s);
  d.kind = word();
  if (d.kind == "PROC") d.kind = "PROCEDURE";
  if (d.kind == "STATISTICS" || d.kind == "USER" || d.kind == "LOGIN" || d.kind == "ROLE") {
    skip_statement();
    put<Ignored>(s);
    return;
  }
  if (d.kind == "PARTITION") d.kind += " " + word();
  d.if_exists = accept_all({"IF", "EXISTS"});
  do {
    d.names.push_back(object_name());
    if (d.kind == "INDEX" && accept("ON")) {
      d.on.push_back(object_name());
      if (is("WITH") && is_symbol("(", 1)) {
        next();
        skip_parentheses();
      }
    }
  } while (accept_symbol(","));
}

void Parser::alter_statement(Statement& s) {
  const std::size_t begin = here().begin;
  expect("ALTER");
  if (accept("TABLE")) return alter_table(s);
  if (accept("VIEW")) return create_text(s, ObjectKind::view, begin, true, false);
  if (accept("PROCEDURE") || accept("PROC")) return create_text(s, ObjectKind::procedure, begin, true, false);
  if (accept("TRIGGER")) return create_text(s, ObjectKind::trigger, begin, true, false);
  if (accept("INDEX")) {
    AlterIndex& a = put<AlterIndex>(s);
    if (!accept("ALL")) a.index = name();
    expect("ON");
    a.table = object_name();
    a.action = word();
    if (a.action == "SET" || is("WITH")) skip_statement();
    if (accept("PARTITION")) skip_statement();
    return;
  }
  if (accept("DATABASE")) {
    AlterDatabase& a = put<AlterDatabase>(s);
    if (!accept("CURRENT")) a.database = name();
    if (accept("SET")) {
      a.option = word();
      if (accept_symbol("=")) a.word = word();
      if (is("ON") || is("OFF")) {
        a.on = word() == "ON";
      } else if (here().kind == TokenKind::word && !is("WITH")) {
        a.word = word();
      }
    } else if (accept("COLLATE")) {
      a.option = "COLLATE";
      a.word = name();
    }
    skip_statement();
    return;
  }
  if (is("USER") || is("LOGIN") || is("ROLE") || is("AUTHORIZATION") || is("SERVER")) {
    skip_statement();
    put<Ignored>(s);
    return;
  }
  raise_unsupported("ALTER " + upper_ascii(here().text));
}

void Parser::alter_table(Statement& s) {
  AlterTable& a = put<AlterTable>(s);
  using Action = AlterTable::Action;
  a.table = object_name();
  if (is("WITH") && (is("CHECK", 1) || is("NOCHECK", 1))) {
    next();
    a.with_nocheck = word() == "NOCHECK";
  }
  if (accept("ADD")) {
    table_elements(a.parts);
  } else if (accept("DROP")) {
    a.action = Action::drop;
    bool column = false;
    do {
      if (accept("COLUMN")) column = true;
      if (accept("CONSTRAINT")) column = false;
      if (accept_all({"IF", "EXISTS"})) a.if_exists = true;
      a.drops.emplace_back(column, name());
      if (is("WITH") && is_symbol("(", 1)) {
        next();
        skip_parentheses();
      }
    } while (accept_symbol(","));
  } else if (accept("ALTER")) {
    expect("COLUMN");
    a.action = Action::alter_column;
    a.parts.columns.push_back(column_spec(a.parts));
  } else if (accept("SWITCH")) {
    a.action = Action::switch_to;
    if (accept("PARTITION")) expression();
    expect("TO");
    a.other = object_name();
    if (accept("PARTITION")) expression();
    if (is("WITH") && is_symbol("(", 1)) {
      next();
      skip_parentheses();
    }
  } else if (is("CHECK") || is("NOCHECK")) {
    a.action = word() == "CHECK" ? Action::check_constraint : Action::nocheck_constraint;
    expect("CONSTRAINT");
    if (!accept("ALL")) {
      do a.names.push_back(name());
      while (accept_symbol(","));
    }
  } else if (is("ENABLE") || is("DISABLE")) {
    a.enable = word() == "ENABLE";
    a.action = Action::triggers;
    expect("TRIGGER");
    if (!accept("ALL")) {
      do a.names.push_back(name());
      while (accept_symbol(","));
    }
  } else if (accept("REBUILD") || accept("SET")) {
    a.action = Action::ignored;
    skip_statement();
  } else {
    syntax_error();
  }
}

}  // namespace rowferry::sandbox::engine
