#include "sandbox/engine/errors.hpp"
#include "sandbox/engine/parser.hpp"

namespace rowferry::sandbox::engine {

QueryPtr Parser::query() {
  if (++depth_ > 200) raise_unsupported("queries nested this deeply");
  auto q = std::make_shared<Query>();
  q->line = here().line;
  if (is("WITH")) q->with = common_tables();
  query_term(*q);
  for (;;) {
    SetOperation operation{};
    if (accept("UNION")) {
      operation = accept("ALL") ? SetOperation::union_all : SetOperation::union_distinct;
    } else if (accept("EXCEPT")) {
      operation = SetOperation::except;
    } else if (accept("INTERSECT")) {
      operation = SetOperation::intersect;
    } else {
      break;
    }
    q->operations.push_back(operation);
    query_term(*q);
  }
  if (accept("ORDER")) {
    expect("BY");
    q->order = order_items();
    if (accept("OFFSET")) {
      q->offset = expression();
      if (!accept("ROWS")) expect("ROW");
      if (accept("FETCH")) {
        if (!accept("NEXT")) expect("FIRST");
        q->fetch = expression();
        if (!accept("ROWS")) expect("ROW");
        expect("ONLY");
      }
    }
  }
  if (is("FOR") && (is("BROWSE", 1) || is("XML", 1) || is("JSON", 1))) {
    if (!is("BROWSE", 1)) raise_unsupported("FOR XML and FOR JSON");
    next();
    next();
  }
  query_hints();
  --depth_;
  return q;
}

// A SELECT, or a parenthesised query that is taken in as one.
void Parser::query_term(Query& into) {
  if (is_symbol("(")) {
    next();
    QueryPtr inner = query();
    expect_symbol(")");
    if (inner->branches.size() == 1 && inner->order.empty() && inner->with.empty()) {
      into.branches.push_back(std::move(inner->branches[0]));
      return;
    }
    Select whole;
    SelectItem star;
    star.star = true;
    whole.items.push_back(star);
    whole.from = std::make_shared<TableRef>();
    whole.from->kind = TableKind::query;
    whole.from->query = inner;
    whole.from->alias = "q";
    into.branches.push_back(std::move(whole));
    return;
  }
  into.branches.push_back(select_core());
}

Select Parser::select_core() {
  expect("SELECT");
  Select s;
  for (;;) {
    if (accept("ALL")) continue;
    if (accept("DISTINCT")) {
      s.distinct = true;
      continue;
    }
    break;
  }
  if (accept("TOP")) {
    if (is_symbol("(")) {
      next();
      s.top = expression();
      expect_symbol(")");
    } else {
      s.top = primary();
    }
    s.top_percent = accept("PERCENT");
    if (is("WITH") && is("TIES", 1)) {
      next();
      next();
    }
  }
  do s.items.push_back(select_item());
  while (accept_symbol(","));
  if (accept("INTO")) s.into = object_name();
  if (accept("FROM")) s.from = table_source();
  if (accept("WHERE")) s.where = expression();
  if (accept("GROUP")) {
    expect("BY");
    s.group_by = expression_list();
  }
  if (accept("HAVING")) s.having = expression();
  return s;
}

SelectItem Parser::select_item() {
  SelectItem item;
  if (accept_symbol("*")) {
    item.star = true;
    return item;
  }
  if (here().kind == TokenKind::variable && is_symbol("=", 1)) {
    item.assign = next().text;
    next();
    item.expr = expression();
    return item;
  }
  // alias = expression
  if (is_name() && is_symbol("=", 1)) {
    item.alias = name();
    next();
    item.expr = expression();
    return item;
  }
  item.expr = expression();
  if (item.expr->kind == ExprKind::column && is_symbol(".") && is_symbol("*", 1)) {
    next();
    next();
    item.star = true;
    item.qualifier = item.expr->name;
    item.expr = nullptr;
    return item;
  }
  if (accept("AS")) {
    item.alias = here().kind == TokenKind::string || here().kind == TokenKind::nstring ? next().text : name();
  } else if (is_name()) {
    item.alias = name();
  } else if (here().kind == TokenKind::string || here().kind == TokenKind::nstring) {
    item.alias = next().text;
  }
  return item;
}

TableRefPtr Parser::table_source() {
  TableRefPtr left = table_primary();
  for (;;) {
    auto join = std::make_shared<TableRef>();
    join->kind = TableKind::join;
    join->line = here().line;
    bool on = true;
    if (accept_symbol(",")) {
      join->join = JoinKind::cross;
      on = false;
    } else if (accept("CROSS")) {
      join->join = accept("APPLY") ? JoinKind::cross_apply : JoinKind::cross;
      if (join->join == JoinKind::cross) expect("JOIN");
      on = false;
    } else if (is("OUTER") && is("APPLY", 1)) {
      next();
      next();
      join->join = JoinKind::outer_apply;
      on = false;
    } else if (is("JOIN") || is("INNER") || is("LEFT") || is("RIGHT") || is("FULL")) {
      if (accept("LEFT")) join->join = JoinKind::left;
      if (accept("RIGHT")) join->join = JoinKind::right;
      if (accept("FULL")) join->join = JoinKind::full;
      accept("INNER");
      accept("OUTER");
      if (!accept("LOOP") && !accept("HASH")) accept("MERGE");
      expect("JOIN");
    } else {
      return left;
    }
    join->left = left;
    join->right = table_primary();
    if (on) {
      // a JOIN b JOIN c ON … ON …: the inner join first
      if (!is("ON") && (is("JOIN") || is("INNER") || is("LEFT") || is("RIGHT") || is("FULL")))
        raise_unsupported("nested joins");
      expect("ON");
      join->on = expression();
    }
    left = join;
  }
}

TableRefPtr Parser::table_primary() {
  auto table = std::make_shared<TableRef>();
  table->line = here().line;
  if (is_symbol("(")) {
    next();
    if (is("SELECT") || is("WITH") || (is_symbol("(") && is("SELECT", 1))) {
      table->kind = TableKind::query;
      table->query = query();
    } else if (accept("VALUES")) {
      table->kind = TableKind::values;
      do {
        expect_symbol("(");
        table->rows.push_back(expression_list());
        expect_symbol(")");
      } while (accept_symbol(","));
    } else {
      TableRefPtr inner = table_source();
      expect_symbol(")");
      return inner;
    }
    expect_symbol(")");
    table_alias(*table);
    return table;
  }
  if (here().kind == TokenKind::variable) {
    table->name.parts = {next().text};
  } else {
    table->name = object_name();
  }
  if (is_symbol("(") && !(is("NOLOCK", 1) || is("INDEX", 1))) {
    table->kind = TableKind::function;
    next();
    if (!is_symbol(")")) table->args = expression_list();
    expect_symbol(")");
  }
  table_alias(*table);
  return table;
}

void Parser::table_alias(TableRef& table) {
  if (accept("TABLESAMPLE")) {  // a sample may be the whole
    accept("SYSTEM");
    skip_parentheses();
    if (accept("REPEATABLE")) skip_parentheses();
  }
  if (is("FOR") && is("SYSTEM_TIME", 1)) raise_unsupported("FOR SYSTEM_TIME");
  table.hints = table_hints();
  if (accept("AS")) {
    table.alias = name();
  } else if (is_name()) {
    table.alias = name();
  }
  if (is_symbol("(") && table.kind != TableKind::table) table.column_names = name_list();
  for (std::string& hint : table_hints()) table.hints.push_back(std::move(hint));
}

std::vector<std::string> Parser::table_hints() {
  std::vector<std::string> hints;
  const bool old_form = is_symbol("(") && is("NOLOCK", 1);
  if (!old_form && !(is("WITH") && is_symbol("(", 1))) return hints;
  accept("WITH");
  expect_symbol("(");
  while (!is_symbol(")")) {
    if (at_end()) syntax_error();
    if (is_symbol("(")) {
      skip_parentheses();
    } else if (here().kind == TokenKind::word) {
      hints.push_back(word());
    } else {
      next();
    }
  }
  next();
  return hints;
}

std::vector<OrderItem> Parser::order_items() {
  std::vector<OrderItem> items;
  do {
    OrderItem item;
    item.expr = expression();
    if (accept("DESC")) {
      item.descending = true;
    } else {
      accept("ASC");
    }
    items.push_back(std::move(item));
  } while (accept_symbol(","));
  return items;
}

std::vector<CommonTable> Parser::common_tables() {
  expect("WITH");
  std::vector<CommonTable> tables;
  do {
    CommonTable table;
    table.name = name();
    if (is_symbol("(")) table.columns = name_list();
    expect("AS");
    expect_symbol("(");
    table.query = query();
    expect_symbol(")");
    tables.push_back(std::move(table));
  } while (accept_symbol(","));
  return tables;
}

void Parser::query_hints() {
  if (!is("OPTION") || !is_symbol("(", 1)) return;
  next();
  skip_parentheses();
}

std::vector<SelectItem> Parser::output_clause() {
  std::vector<SelectItem> items;
  if (!accept("OUTPUT")) return items;
  do items.push_back(select_item());
  while (accept_symbol(","));
  if (is("INTO")) raise_unsupported("OUTPUT … INTO");
  return items;
}

std::vector<std::string> Parser::name_list() {
  std::vector<std::string> names;
  expect_symbol("(");
  do names.push_back(name());
  while (accept_symbol(","));
  expect_symbol(")");
  return names;
}

}  // namespace rowferry::sandbox::engine
