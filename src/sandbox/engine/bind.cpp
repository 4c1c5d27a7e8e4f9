// Binding: names to columns and variables, operators to types.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "sandbox/engine/collation.hpp"
#include "sandbox/engine/eval.hpp"
#include "sandbox/engine/query.hpp"

namespace rowferry::sandbox::engine {

namespace {

bool null_literal(const Expr& e) { return e.kind == ExprKind::literal && e.literal.null; }

bool matches(const RangeVariable& v, const std::vector<std::string>& name) {
  if (name.size() < 2) return true;
  const std::string& qualifier = name[name.size() - 2];
  if (!same_name(v.alias, qualifier)) return false;
  if (name.size() < 3) return true;
  const std::string schema = v.name.schema().empty() ? "dbo" : v.name.schema();
  return name[name.size() - 3].empty() || same_name(schema, name[name.size() - 3]);
}

std::string joined(const std::vector<std::string>& parts) {
  ObjectName name{parts};
  return name.text();
}

}  // namespace

bool Evaluator::bind_in_scope(Expr& e, Scope& scope, int depth) {
  const std::string folded = fold_name(e.name.back());
  bool found = false;
  for (std::size_t s = 0; s < scope.variables.size(); ++s) {
    const RangeVariable& v = scope.variables[s];
    if (!matches(v, e.name)) continue;
    for (std::size_t c = 0; c < v.columns.size(); ++c) {
      if (fold_name(v.columns[c].name) != folded) continue;
      if (found) raise(209, 16, 1, fmt::format("Ambiguous column name '{}'.", e.name.back()), Reach::batch);
      found = true;
      e.depth = depth;
      e.source = static_cast<int>(s);
      e.column = static_cast<int>(c);
      e.type = v.columns[c].type;
      e.nullable = v.columns[c].nullable;
    }
  }
  return found;
}

void Evaluator::bind_column(Expr& e) {
  int depth = 0;
  bool qualifier_known = false;
  for (Scope* scope = scope_; scope != nullptr; scope = scope->outer, ++depth) {
    for (const RangeVariable& v : scope->variables) qualifier_known = qualifier_known || matches(v, e.name);
    if (!bind_in_scope(e, *scope, depth)) continue;
    Scope* crossed = scope_;
    for (int i = 0; i < depth; ++i, crossed = crossed->outer) crossed->correlated = true;
    return;
  }
  if (e.name.size() > 1 && !qualifier_known) raise_unbound(joined(e.name));
  raise_invalid_column(e.name.back());
}

void Evaluator::bind_all(const std::vector<ExprPtr>& list) {
  for (const ExprPtr& e : list) bind(e);
}

void Evaluator::bind_condition(const ExprPtr& e) {
  bind(e);
  if (!is_condition(*e))
    raise(4145, 15, 1, "An expression of non-boolean type specified in a context where a condition is expected.",
          Reach::batch);
}

namespace {

// NULL has the type of what it stands beside.
void adopt_null(Expr& a, Expr& b) {
  if (null_literal(a) && !null_literal(b)) a.type = b.type;
  if (null_literal(b) && !null_literal(a)) b.type = a.type;
}

void check_comparable(const Expr& a, const Expr& b) {
  for (const Expr* e : {&a, &b})
    if (is_lob(e->type.kind) && !null_literal(*e) && !(a.type.kind == Kind::xml && b.type.kind == Kind::xml))
      raise(402, 16, 1,
            fmt::format("The data types {} and {} are incompatible in the equal to operator.", type_name(a.type.kind),
                        type_name(b.type.kind)),
            Reach::batch);
  const auto clash = [&](Kind x, Kind y) {
    return (x == Kind::guid && (is_number(y) || is_temporal(y))) ||
           (is_temporal(x) && is_number(y) && x != Kind::datetime && x != Kind::smalldatetime);
  };
  if (clash(a.type.kind, b.type.kind) || clash(b.type.kind, a.type.kind))
    raise(206, 16, 2,
          fmt::format("Operand type clash: {} is incompatible with {}", type_name(a.type.kind), type_name(b.type.kind)),
          Reach::batch);
}

// A whole number written as such has the digits that it has.
Type exact_as_decimal(const Expr& e) {
  const Type& t = e.type;
  if (e.kind == ExprKind::literal && is_integer(t.kind) && !e.literal.null)
    return decimal_type(digits_of(magnitude_of(e.literal.number)), 0);
  return as_decimal(t);
}

// "Precision, scale, and length" of the T-SQL reference.
Type decimal_result(char op, const Expr& left, const Expr& right) {
  const Type a = exact_as_decimal(left), b = exact_as_decimal(right);
  int precision = 0, scale = 0;
  switch (op) {
    case '*':
      precision = a.precision + b.precision + 1;
      scale = a.scale + b.scale;
      break;
    case '/':
      scale = std::max(6, a.scale + b.precision + 1);
      precision = a.precision - a.scale + b.scale + scale;
      break;
    case '%':
      scale = std::max(a.scale, b.scale);
      precision = std::min(a.precision - a.scale, b.precision - b.scale) + scale;
      break;
    default:
      scale = std::max(a.scale, b.scale);
      precision = scale + std::max(a.precision - a.scale, b.precision - b.scale) + 1;
  }
  if (precision > 38) {
    const int whole = precision - scale;
    if (op == '*' || op == '/') {
      scale = whole < 32 ? std::min(scale, 38 - whole) : scale > 6 ? 6 : scale;
    } else {
      scale = std::max(0, std::min(scale, 38 - whole));
    }
    precision = 38;
  }
  return decimal_type(precision, scale);
}

}  // namespace

void Evaluator::bind_arithmetic(Expr& e) {
  Expr& a = *e.args[0];
  Expr& b = *e.args[1];
  adopt_null(a, b);
  e.nullable = a.nullable || b.nullable || e.op == '/' || e.op == '%';
  const Type x = a.type, y = b.type;
  if (e.op == '+' && is_string(x.kind) && is_string(y.kind)) {
    e.type = common_type(x, y);
    const bool unicode = is_unicode(e.type.kind);
    const bool fixed = x.kind == y.kind && (x.kind == Kind::character || x.kind == Kind::nchar);
    e.type.kind = unicode ? (fixed ? Kind::nchar : Kind::nvarchar) : (fixed ? Kind::character : Kind::varchar);
    const int limit = unicode ? 4000 : 8000;
    const bool max = x.length == max_length || y.length == max_length;
    e.type.length = max ? max_length : std::min(limit, x.length + y.length);
    return;
  }
  if (e.op == '+' && is_binary(x.kind) && is_binary(y.kind)) {
    e.type = common_type(x, y);
    if (e.type.length != max_length) e.type.length = std::min(8000, x.length + y.length);
    return;
  }
  if (is_temporal(x.kind) || is_temporal(y.kind)) {
    const Type& t = is_temporal(x.kind) ? x : y;
    const Type& other = is_temporal(x.kind) ? y : x;
    const bool old = t.kind == Kind::datetime || t.kind == Kind::smalldatetime;
    const bool fine =
        old && (e.op == '+' || e.op == '-') && (is_number(other.kind) || other.kind == t.kind || is_string(other.kind));
    if (!fine)
      raise(402, 16, 1,
            fmt::format("The data types {} and {} are incompatible in the {} operator.", type_name(x.kind),
                        type_name(y.kind),
                        e.op == '+'   ? "add"
                        : e.op == '-' ? "subtract"
                                      : std::string(1, e.op)),
            Reach::batch);
    e.type = make_type(Kind::datetime);
    return;
  }
  e.type = common_type(x, y);
  if (is_string(e.type.kind) || is_binary(e.type.kind) || e.type.kind == Kind::guid || is_lob(e.type.kind))
    raise(8117, 16, 1,
          fmt::format("Operand data type {} is invalid for {} operator.", type_name(e.type.kind),
                      e.op == '+'   ? "add"
                      : e.op == '-' ? "subtract"
                      : e.op == '*' ? "multiply"
                                    : "divide"),
          Reach::batch);
  if (is_decimal(e.type.kind)) {
    const bool mixed = !is_exact(x.kind) || !is_exact(y.kind);
    e.type = mixed ? decimal_type(38, 6) : decimal_result(e.op, a, b);
    e.type.kind = Kind::numeric;
  }
  if (e.type.kind == Kind::bit && e.op != '&' && e.op != '|' && e.op != '^') e.type.kind = Kind::integer;
}

void Evaluator::bind_case(Expr& e) {
  const std::size_t pairs = e.args.size() / 2;
  bool first = true;
  e.nullable = e.args.size() % 2 == 0;
  const auto branch = [&](const ExprPtr& value) {
    bind(value);
    e.nullable = e.nullable || value->nullable;
    if (null_literal(*value)) return;
    e.type = first ? value->type : common_type(e.type, value->type);
    first = false;
  };
  for (std::size_t i = 0; i < pairs; ++i) {
    bind_condition(e.args[2 * i]);
    branch(e.args[2 * i + 1]);
  }
  if (e.args.size() % 2 != 0) branch(e.args.back());
  if (first) e.type = int_type();
}

void Evaluator::bind_query(Expr& e) {
  e.compiled = compile_query(context_, e.query, scope_);
  if (e.kind != ExprKind::exists && e.compiled->columns.size() != 1)
    raise(116, 16, 1,
          "Only one expression can be specified in the select list when the subquery is not introduced with EXISTS.",
          Reach::batch);
  e.type = e.kind == ExprKind::subquery ? e.compiled->columns[0].type : bit_type();
  e.nullable = true;
  e.cache = e.compiled->correlated ? nullptr : std::make_shared<QueryCache>();
}

void Evaluator::bind_aggregate(const ExprPtr& e) {
  const bool window = e->kind == ExprKind::window;
  auto* list = scope_ == nullptr ? nullptr : window ? scope_->windows : scope_->aggregates;
  if (list == nullptr) {
    if (window)
      raise(4108, 15, 1, "Windowed functions can only appear in the SELECT or ORDER BY clauses.", Reach::batch);
    raise(147, 15, 1,
          "An aggregate may not appear in the WHERE clause unless it is in a subquery contained in a HAVING clause or "
          "a select "
          "list, and the column being aggregated is an outer reference.",
          Reach::batch);
  }
  auto* aggregates = std::exchange(scope_->aggregates, window ? scope_->aggregates : nullptr);
  const bool star = !e->args.empty() && e->args[0]->kind == ExprKind::star;
  if (!star) bind_all(e->args);
  bind_all(e->partition);
  for (const OrderItem& o : e->ordering) bind(o.expr);
  scope_->aggregates = aggregates;
  const std::string& f = e->name.back();
  const Type arg = star || e->args.empty() ? int_type() : e->args[0]->type;
  e->nullable = true;
  if (f == "COUNT" || f == "NTILE" || f == "CHECKSUM_AGG") {
    e->type = f == "NTILE" ? bigint_type() : int_type();
    e->nullable = f == "CHECKSUM_AGG";
  } else if (f == "COUNT_BIG" || f == "ROW_NUMBER" || f == "RANK" || f == "DENSE_RANK") {
    e->type = bigint_type();
    e->nullable = false;
  } else if (f == "SUM" || f == "AVG") {
    if (!is_number(arg.kind) || arg.kind == Kind::bit)
      raise(8117, 16, 1,
            fmt::format("Operand data type {} is invalid for {} operator.", type_name(arg.kind),
                        f == "SUM" ? "sum" : "avg"),
            Reach::batch);
    e->type = arg;
    if (is_integer(arg.kind) && arg.kind != Kind::bigint) e->type = int_type();
    if (arg.kind == Kind::real) e->type = make_type(Kind::float8);
    if (arg.kind == Kind::smallmoney) e->type = make_type(Kind::money);
    if (is_decimal(arg.kind))
      e->type = make_type(arg.kind, 0, 38, f == "SUM" ? arg.scale : std::max<std::uint8_t>(arg.scale, 6));
  } else if (f == "STRING_AGG") {
    e->type =
        is_unicode(arg.kind) ? nvarchar_type(4000, context_.collation()) : varchar_type(8000, context_.collation());
    if (arg.length == max_length) e->type.length = max_length;
  } else {
    if (is_lob(arg.kind) || arg.kind == Kind::bit)
      raise(8117, 16, 1,
            fmt::format("Operand data type {} is invalid for {} operator.", type_name(arg.kind),
                        f == "MIN" ? "min" : "max"),
            Reach::batch);
    e->type = arg;
  }
  e->slot = static_cast<int>(list->size());
  list->push_back(e);
}

void Evaluator::bind_variable(Expr& e) {
  const auto found = context_.frame().variables.find(fold_name(e.name[0]));
  if (found == context_.frame().variables.end())
    raise(137, 15, 2, fmt::format("Must declare the scalar variable \"{}\".", e.name[0]), Reach::batch);
  e.type = found->second.type;
  e.nullable = true;
}

void Evaluator::bind_global(Expr& e) {
  const auto value = global_value(context_, upper_ascii(e.name[0]));
  if (!value) raise(137, 15, 2, fmt::format("Must declare the scalar variable \"{}\".", e.name[0]), Reach::batch);
  e.type = value->type;
  e.nullable = false;
}

void Evaluator::bind_collate(Expr& e) {
  bind_all(e.args);
  const auto collation = collation_by_name(e.collation);
  const bool database_default =
      fold_name(e.collation) == "database_default" || fold_name(e.collation) == "catalog_default";
  if (!collation && !database_default)
    raise(448, 16, 1, fmt::format("Invalid collation '{}'.", e.collation), Reach::batch);
  e.type = e.args[0]->type;
  if (!is_string(e.type.kind))
    raise(447, 16, 0, fmt::format("Expression type {} is invalid for COLLATE clause.", type_name(e.type.kind)),
          Reach::batch);
  e.type.collation = collation ? *collation : context_.collation();
  e.nullable = e.args[0]->nullable;
}

void Evaluator::bind_cast(Expr& e) {
  bind_all(e.args);
  e.type = e.target;
  // From text to text the input's collation, and with it its code page, is kept.
  if (is_string(e.type.kind) && is_string(e.args[0]->type.kind) && e.args[0]->type.kind != Kind::xml) {
    e.type.collation = e.args[0]->type.collation;
  }
  e.nullable = e.tries || e.args[0]->nullable;
}

void Evaluator::bind(const ExprPtr& p) {
  Expr& e = *p;
  e.slot = -1;
  if (++depth_ > 1500)
    raise(8631, 17, 1,
          "Internal error: Server stack limit has been reached. Please look for potentially deep nesting in your "
          "query, and try to simplify it.",
          Reach::batch);
  switch (e.kind) {
    case ExprKind::literal:
      if (!e.literal.null) e.type = e.literal.type;
      if (e.literal.null) e.type = int_type();
      e.nullable = e.literal.null;
      break;
    case ExprKind::column:
      bind_column(e);
      break;
    case ExprKind::variable:
      bind_variable(e);
      break;
    case ExprKind::global:
      bind_global(e);
      break;
    case ExprKind::negate:
    case ExprKind::complement:
      bind_all(e.args);
      e.type = is_number(e.args[0]->type.kind) ? e.args[0]->type : int_type();
      if (e.type.kind == Kind::bit && e.kind == ExprKind::negate) e.type = int_type();
      if (e.type.kind == Kind::tinyint && e.kind == ExprKind::negate) e.type = make_type(Kind::smallint);
      e.nullable = e.args[0]->nullable;
      break;
    case ExprKind::arithmetic:
      bind_all(e.args);
      bind_arithmetic(e);
      break;
    case ExprKind::compare:
    case ExprKind::in_list:
    case ExprKind::between:
      bind_all(e.args);
      for (std::size_t i = 1; i < e.args.size(); ++i) {
        adopt_null(*e.args[0], *e.args[i]);
        check_comparable(*e.args[0], *e.args[i]);
      }
      e.type = bit_type();
      break;
    case ExprKind::logical_and:
    case ExprKind::logical_or:
    case ExprKind::logical_not:
      for (const ExprPtr& arg : e.args) bind_condition(arg);
      e.type = bit_type();
      break;
    case ExprKind::is_null:
    case ExprKind::like:
      bind_all(e.args);
      e.type = bit_type();
      break;
    case ExprKind::in_query:
    case ExprKind::quantified:
      bind_all(e.args);
      bind_query(e);
      break;
    case ExprKind::exists:
    case ExprKind::subquery:
      bind_query(e);
      break;
    case ExprKind::searched_case:
      bind_case(e);
      break;
    case ExprKind::cast:
      bind_cast(e);
      break;
    case ExprKind::function:
      bind_function(*this, e);
      break;
    case ExprKind::aggregate:
    case ExprKind::window:
      bind_aggregate(p);
      break;
    case ExprKind::collate:
      bind_collate(e);
      break;
    case ExprKind::star:
      raise_syntax("*", e.line);
    case ExprKind::default_value:
      raise_keyword_syntax("DEFAULT", e.line);
  }
  --depth_;
}

Value constant_value(const Context& context, const ExprPtr& e) {
  Scope scope;
  Evaluator evaluator(context, &scope);
  evaluator.bind(e);
  return evaluator.eval(e);
}

ParseOptions parse_options(const Context& context) {
  return {context.session.settings.quoted_identifier, context.collation()};
}

}  // namespace rowferry::sandbox::engine
