#include <fmt/format.h>

#include "sandbox/engine/errors.hpp"
#include "sandbox/engine/parser.hpp"

namespace rowferry::sandbox::engine {

void Parser::program(Program& into) {
  while (!at_end()) {
    if (accept_symbol(";")) continue;
    statement(into);
  }
}

// One statement, or what stands between BEGIN and END.
void Parser::block(Program& into) {
  while (accept_symbol(";")) {
  }
  if (at_end()) syntax_error();
  statement(into);
  while (accept_symbol(";")) {
  }
}

void Parser::if_statement(Program& into) {
  Statement test;
  test.line = here().line;
  expect("IF");
  test.what = JumpUnless{expression(), 0};
  const std::size_t at = into.statements.size();
  into.statements.push_back(std::move(test));
  block(into);
  if (accept("ELSE")) {
    const std::size_t skip = into.statements.size();
    into.statements.push_back({here().line, 0, 0, Jump{}});
    std::get<JumpUnless>(into.statements[at].what).to = into.statements.size();
    block(into);
    std::get<Jump>(into.statements[skip].what).to = into.statements.size();
  } else {
    std::get<JumpUnless>(into.statements[at].what).to = into.statements.size();
  }
}

void Parser::while_statement(Program& into) {
  const std::size_t top = into.statements.size();
  Statement test;
  test.line = here().line;
  expect("WHILE");
  test.what = JumpUnless{expression(), 0};
  into.statements.push_back(std::move(test));
  breaks_.emplace_back();
  continues_.push_back(top);
  block(into);
  into.statements.push_back({here().line, 0, 0, Jump{top}});
  std::get<JumpUnless>(into.statements[top].what).to = into.statements.size();
  for (const std::size_t at : breaks_.back()) std::get<Jump>(into.statements[at].what).to = into.statements.size();
  breaks_.pop_back();
  continues_.pop_back();
}

// BEGIN … END, BEGIN TRY … END TRY BEGIN CATCH … END CATCH
void Parser::begin_statement(Program& into) {
  expect("BEGIN");
  const bool tries = accept("TRY");
  const std::size_t at = into.statements.size();
  if (tries) into.statements.push_back({here().line, 0, 0, TryBegin{}});
  while (!is("END")) {
    if (at_end()) syntax_error();
    if (accept_symbol(";")) continue;
    statement(into);
  }
  expect("END");
  if (!tries) return;
  expect("TRY");
  while (accept_symbol(";")) {
  }
  const std::size_t end = into.statements.size();
  into.statements.push_back({here().line, 0, 0, TryEnd{}});
  expect("BEGIN");
  expect("CATCH");
  std::get<TryBegin>(into.statements[at].what).handler = into.statements.size();
  while (!is("END")) {
    if (at_end()) syntax_error();
    if (accept_symbol(";")) continue;
    statement(into);
  }
  expect("END");
  expect("CATCH");
  into.statements.push_back({here().line, 0, 0, CatchEnd{}});
  std::get<TryEnd>(into.statements[end].what).to = into.statements.size();
}

void Parser::statement(Program& into) {
  if (++depth_ > 200) raise_unsupported("statements nested this deeply");
  const Token first = here();
  if (is("IF")) {
    if_statement(into);
  } else if (is("WHILE")) {
    while_statement(into);
  } else if (is("BEGIN") && !is("TRAN", 1) && !is("TRANSACTION", 1) && !is("DISTRIBUTED", 1)) {
    begin_statement(into);
  } else if (is("BREAK") || is("CONTINUE")) {
    const bool breaks = word() == "BREAK";
    if (breaks_.empty())
      raise(135, 15, 1, "Cannot use a BREAK statement outside the scope of a WHILE statement.", Reach::batch);
    if (breaks) breaks_.back().push_back(into.statements.size());
    into.statements.push_back({first.line, 0, 0, Jump{breaks ? 0 : continues_.back()}});
  } else {
    Statement s;
    s.line = first.line;
    s.begin = first.begin;
    simple_statement(s);
    s.end = tokens_[at_ == 0 ? 0 : at_ - 1].end;
    into.statements.push_back(std::move(s));
  }
  accept_symbol(";");
  --depth_;
}

void Parser::small_statement(Statement& s) {
  if (accept("PRINT")) {
    put<Print>(s).value = expression();
  } else if (accept("RAISERROR")) {
    RaiseError& r = put<RaiseError>(s);
    expect_symbol("(");
    r.message = expression();
    expect_symbol(",");
    r.severity = expression();
    expect_symbol(",");
    r.state = expression();
    while (accept_symbol(",")) r.args.push_back(expression());
    expect_symbol(")");
    if (accept("WITH")) {
      do r.with_nowait = word() == "NOWAIT" || r.with_nowait;
      while (accept_symbol(","));
    }
  } else if (is("THROW")) {
    next();
    Throw& t = put<Throw>(s);
    if (here().kind == TokenKind::integer || here().kind == TokenKind::variable) {
      t.number = primary();
      expect_symbol(",");
      t.message = primary();
      expect_symbol(",");
      t.state = primary();
    }
  } else if (accept("WAITFOR")) {
    WaitFor& w = put<WaitFor>(s);
    w.until = is("TIME");
    if (!accept("DELAY")) expect("TIME");
    w.delay = primary();
  } else if (accept("RETURN")) {
    Return& r = put<Return>(s);
    const TokenKind k = here().kind;
    if (k == TokenKind::integer || k == TokenKind::variable || k == TokenKind::global || is_symbol("-") ||
        is_symbol("(") || (is_name() && is_symbol("(", 1)))
      r.value = expression();
  } else if (accept("DBCC")) {
    Dbcc& d = put<Dbcc>(s);
    d.command = word();
    if (accept_symbol("(")) {
      if (!is_symbol(")")) d.args = expression_list();
      expect_symbol(")");
    }
    if (accept("WITH")) {
      do d.words.push_back(word());
      while (accept_symbol(","));
    }
  }
}

void Parser::simple_statement(Statement& s) {
  std::vector<CommonTable> with;
  if (is("WITH") && is_name(1) && !is("SELECT")) {
    const std::size_t begin = at_;
    with = common_tables();
    if (is("SELECT")) {
      at_ = begin;
      with.clear();
      put<SelectStatement>(s).query = query();
      return;
    }
  }
  if (is("SELECT") || is_symbol("(")) {
    put<SelectStatement>(s).query = query();
  } else if (is("INSERT")) {
    if (is("BULK", 1)) {
      insert_bulk(s);
    } else {
      insert_statement(s, std::move(with));
    }
  } else if (is("UPDATE") && is("STATISTICS", 1)) {
    skip_statement();
    put<Ignored>(s);
  } else if (is("UPDATE")) {
    update_statement(s, std::move(with));
  } else if (is("DELETE")) {
    delete_statement(s, std::move(with));
  } else if (is("SET")) {
    set_statement(s);
  } else if (is("DECLARE")) {
    declare_statement(s);
  } else if (accept("USE")) {
    put<Use>(s).database = name();
  } else if (is("CREATE")) {
    create_statement(s);
  } else if (is("ALTER")) {
    alter_statement(s);
  } else if (is("DROP")) {
    drop_statement(s);
  } else if (accept("TRUNCATE")) {
    expect("TABLE");
    put<Truncate>(s).table = object_name();
    if (is("WITH") && is_symbol("(", 1)) raise_unsupported("TRUNCATE of partitions");
  } else if (is("BEGIN") || is("COMMIT") || is("ROLLBACK") || is("SAVE")) {
    transaction_statement(s);
  } else if (is("PRINT") || is("RAISERROR") || (is("THROW") && !is_symbol(".", 1)) || is("WAITFOR") || is("RETURN") ||
             is("DBCC")) {
    small_statement(s);
  } else if (is("EXEC") || is("EXECUTE")) {
    execute_statement(s);
  } else if (is("GRANT") || is("REVOKE") || is("DENY") || is("CHECKPOINT") || is("RECONFIGURE")) {
    next();
    skip_statement();
    put<Ignored>(s);
  } else if (accept("KILL")) {
    put<Kill>(s).session = expression();
    skip_statement();
  } else if (is("MERGE")) {
    raise_unsupported("MERGE");
  } else if (is_name()) {  // a procedure's name alone, as the first statement of a batch
    if (s.begin != tokens_.front().begin) syntax_error();
    put<Execute>(s) = execute_call();
  } else {
    syntax_error();
  }
}

// To the semicolon or the end: of statements that are answered without being understood.
void Parser::skip_statement() {
  int depth = 0;
  while (!at_end() && !(depth == 0 && is_symbol(";"))) {
    if (is_symbol("(")) ++depth;
    if (is_symbol(")") && --depth < 0) return;
    next();
  }
}

void Parser::set_statement(Statement& s) {
  expect("SET");
  if (here().kind == TokenKind::variable) {
    SetVariable& v = put<SetVariable>(s);
    v.name = next().text;
    if (here().kind == TokenKind::symbol && here().text.size() == 2 && here().text[1] == '=') {
      v.op = next().text[0];
    } else {
      expect_symbol("=");
    }
    v.value = expression();
    return;
  }
  SetOption& o = put<SetOption>(s);
  if (accept_all({"TRANSACTION", "ISOLATION", "LEVEL"})) {
    o.name = "TRANSACTION ISOLATION LEVEL";
    o.words.push_back(word());
    if (o.words[0] == "READ" || o.words[0] == "REPEATABLE") o.words[0] += " " + word();
    return;
  }
  if (accept("IDENTITY_INSERT")) {
    o.name = "IDENTITY_INSERT";
    o.table = object_name();
    o.words.push_back(word());
    return;
  }
  o.name = word();
  if (o.name == "STATISTICS") o.name += " " + word();
  std::vector<std::string> names{o.name};
  while (accept_symbol(",")) names.push_back(word());
  if (is("ON") || is("OFF")) {
    const std::string state = word();
    for (std::size_t i = 1; i < names.size(); ++i) o.words.push_back(names[i]);
    o.words.insert(o.words.begin(), state);
  } else if (here().kind == TokenKind::word || here().kind == TokenKind::quoted) {
    o.words.push_back(word());
  } else {
    o.value = expression();
  }
}

void Parser::declare_statement(Statement& s) {
  expect("DECLARE");
  Declare& d = put<Declare>(s);
  do {
    Declare::Item item;
    if (here().kind != TokenKind::variable) syntax_error();
    item.name = next().text;
    accept("AS");
    if (accept("TABLE")) {
      item.is_table = true;
      item.table = std::make_shared<CreateTable>();
      item.table->name.parts = {item.name};
      expect_symbol("(");
      table_elements(item.table->parts);
      expect_symbol(")");
    } else {
      if (is("CURSOR")) raise_unsupported("cursors");
      std::string user_type;
      data_type(item.type, user_type, false);
      if (accept_symbol("=")) item.value = expression();
    }
    d.items.push_back(std::move(item));
  } while (accept_symbol(","));
}

void Parser::insert_statement(Statement& s, std::vector<CommonTable> with) {
  expect("INSERT");
  Insert& i = put<Insert>(s);
  i.with = std::move(with);
  if (accept("TOP")) {
    expect_symbol("(");
    i.top = expression();
    expect_symbol(")");
  }
  accept("INTO");
  if (here().kind == TokenKind::variable) {
    i.table.parts = {next().text};
  } else {
    i.table = object_name();
  }
  i.hints = table_hints();
  if (is_symbol("(") && !is("SELECT", 1) && !is_symbol("(", 1)) {
    next();
    do {
      std::string column = name();
      while (accept_symbol(".")) column = name();
      i.columns.push_back(std::move(column));
    } while (accept_symbol(","));
    expect_symbol(")");
  }
  i.output = output_clause();
  if (accept("DEFAULT")) {
    expect("VALUES");
    i.default_values = true;
  } else if (accept("VALUES")) {
    do {
      expect_symbol("(");
      i.rows.push_back(expression_list());
      expect_symbol(")");
    } while (accept_symbol(","));
  } else if (is("EXEC") || is("EXECUTE")) {
    next();
    i.execute = std::make_shared<Execute>(execute_call());
  } else {
    if (!is("SELECT") && !is("WITH") && !is_symbol("(")) syntax_error();
    i.query = query();
  }
  query_hints();
}

void Parser::insert_bulk(Statement& s) {
  expect("INSERT");
  expect("BULK");
  InsertBulk& b = put<InsertBulk>(s);
  b.table = object_name();
  if (accept_symbol("(")) {
    b.has_columns = true;
    do {
      InsertBulk::Column c;
      c.name = name();
      c.rowversion = is("TIMESTAMP") || is("ROWVERSION");
      std::string user_type;
      data_type(c.type, user_type, false);
      if (accept("COLLATE")) c.collation = name();
      b.columns.push_back(std::move(c));
    } while (accept_symbol(","));
    expect_symbol(")");
  }
  if (!accept("WITH")) return;
  expect_symbol("(");
  do {
    const std::string option = word();
    if (option == "TABLOCK") b.tablock = true;
    if (option == "CHECK_CONSTRAINTS") b.check_constraints = true;
    if (option == "FIRE_TRIGGERS") b.fire_triggers = true;
    if (option == "KEEP_NULLS") b.keep_nulls = true;
    if (option == "ORDER") {
      b.order = key_columns();
    } else if (accept_symbol("=")) {
      next();
    }
  } while (accept_symbol(","));
  expect_symbol(")");
}

void Parser::update_statement(Statement& s, std::vector<CommonTable> with) {
  expect("UPDATE");
  Update& u = put<Update>(s);
  u.with = std::move(with);
  if (accept("TOP")) {
    expect_symbol("(");
    u.top = expression();
    expect_symbol(")");
  }
  if (here().kind == TokenKind::variable) {
    u.table.parts = {next().text};
  } else {
    u.table = object_name();
  }
  u.hints = table_hints();
  expect("SET");
  do {
    Assignment a;
    if (here().kind == TokenKind::variable) {
      a.variable = next().text;
      expect_symbol("=");
      if (is_name() && is_symbol("=", 1)) {
        a.column = name();
        next();
      }
    } else {
      a.column = name();
      while (accept_symbol(".")) a.column = name();
      if (here().kind == TokenKind::symbol && here().text.size() == 2 && here().text[1] == '=' &&
          std::string_view("+-*/%&|").find(here().text[0]) != std::string_view::npos) {
        a.op = next().text[0];
      } else {
        expect_symbol("=");
      }
    }
    a.value = expression();
    u.set.push_back(std::move(a));
  } while (accept_symbol(","));
  u.output = output_clause();
  if (accept("FROM")) u.from = table_source();
  if (accept("WHERE")) u.where = expression();
  query_hints();
}

void Parser::delete_statement(Statement& s, std::vector<CommonTable> with) {
  expect("DELETE");
  Delete& d = put<Delete>(s);
  d.with = std::move(with);
  if (accept("TOP")) {
    expect_symbol("(");
    d.top = expression();
    expect_symbol(")");
  }
  accept("FROM");
  if (here().kind == TokenKind::variable) {
    d.table.parts = {next().text};
  } else {
    d.table = object_name();
  }
  d.hints = table_hints();
  d.output = output_clause();
  if (accept("FROM")) d.from = table_source();
  if (accept("WHERE")) d.where = expression();
  query_hints();
}

void Parser::transaction_statement(Statement& s) {
  TransactionStatement& t = put<TransactionStatement>(s);
  const std::string verb = word();
  using Action = TransactionStatement::Action;
  t.action = verb == "BEGIN"    ? Action::begin
             : verb == "COMMIT" ? Action::commit
             : verb == "SAVE"   ? Action::save
                                : Action::rollback;
  accept("DISTRIBUTED");
  const bool tran = accept("TRAN") || accept("TRANSACTION");
  if (!tran) {
    if (t.action == Action::begin || t.action == Action::save) syntax_error();
    accept("WORK");
    return;
  }
  if (here().kind == TokenKind::variable) {
    t.name_variable = primary();
  } else if (is_name()) {
    t.name = name();
  }
  if (accept_all({"WITH", "MARK"})) {
    if (here().kind == TokenKind::string || here().kind == TokenKind::nstring) next();
  }
  if (is("WITH") && is_symbol("(", 1)) {  // DELAYED_DURABILITY
    next();
    skip_parentheses();
  }
}

void Parser::execute_statement(Statement& s) {
  next();
  put<Execute>(s) = execute_call();
}

Execute Parser::execute_call() {
  Execute e;
  if (accept_symbol("(")) {
    e.texts.push_back(expression());
    expect_symbol(")");
    if (accept("AT")) raise_unsupported("EXECUTE AT");
    return e;
  }
  if (here().kind == TokenKind::variable && is_symbol("=", 1)) {
    e.result = next().text;
    next();
  }
  if (here().kind == TokenKind::variable) {
    e.procedure_variable = next().text;
  } else {
    e.procedure = object_name();
  }
  const bool arguments =
      !at_end() && !is_symbol(";") && (here().kind != TokenKind::word || is("DEFAULT") || is("NULL") || is_name());
  if (!arguments) return e;
  do {
    ExecuteArgument a;
    if (here().kind == TokenKind::variable && is_symbol("=", 1)) {
      a.name = next().text;
      next();
    }
    if (accept("DEFAULT")) {
      a.use_default = true;
    } else if (here().kind == TokenKind::word && is_name() && !is_symbol("(", 1)) {  // a bare word is a string
      a.value = make(ExprKind::literal);
      a.value->literal = Value::of_text(next().text, nvarchar_type(128, options_.collation));
    } else {
      a.value = unary();
    }
    if (accept("OUTPUT") || accept("OUT")) a.output = true;
    e.args.push_back(std::move(a));
  } while (accept_symbol(","));
  if (accept("WITH")) {
    if (accept("RESULT")) raise_unsupported("WITH RESULT SETS");
    word();
  }
  return e;
}

}  // namespace rowferry::sandbox::engine
