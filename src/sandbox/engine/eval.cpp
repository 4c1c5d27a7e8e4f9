#include "sandbox/engine/eval.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "sandbox/engine/collation.hpp"
#include "sandbox/engine/query.hpp"

namespace rowferry::sandbox::engine {

bool is_condition(const Expr& e) {
  switch (e.kind) {
    case ExprKind::compare:
    case ExprKind::logical_and:
    case ExprKind::logical_or:
    case ExprKind::logical_not:
    case ExprKind::is_null:
    case ExprKind::like:
    case ExprKind::in_list:
    case ExprKind::in_query:
    case ExprKind::between:
    case ExprKind::exists:
    case ExprKind::quantified:
      return true;
    default:
      return false;
  }
}

bool same_expression(const Expr& a, const Expr& b) {
  if (a.kind != b.kind || a.op != b.op || a.args.size() != b.args.size() || a.query != b.query) return false;
  if (a.kind == ExprKind::column) return a.depth == b.depth && a.source == b.source && a.column == b.column;
  if (a.kind == ExprKind::literal) {
    if (a.literal.null || b.literal.null) return a.literal.null == b.literal.null;
    return a.literal.type == b.literal.type && compare_same(a.literal, b.literal) == 0;
  }
  if (a.name != b.name || !(a.target == b.target)) return false;
  for (std::size_t i = 0; i < a.args.size(); ++i)
    if (!same_expression(*a.args[i], *b.args[i])) return false;
  return true;
}

void walk(const ExprPtr& e, const std::function<bool(const ExprPtr&)>& visit) {
  if (e == nullptr || !visit(e)) return;
  for (const ExprPtr& arg : e->args) walk(arg, visit);
  for (const ExprPtr& p : e->partition) walk(p, visit);
  for (const OrderItem& o : e->ordering) walk(o.expr, visit);
}

Truth compare_truth(char op, const Value& a, const Value& b) {
  if (a.null || b.null) return Truth::unknown;
  const auto order = compare_values(a, b);
  bool yes = false;
  switch (op) {
    case '=':
      yes = order == 0;
      break;
    case 'N':
      yes = order != 0;
      break;
    case '<':
      yes = order < 0;
      break;
    case '>':
      yes = order > 0;
      break;
    case 'L':
      yes = order <= 0;
      break;
    default:
      yes = order >= 0;
  }
  return yes ? Truth::yes : Truth::no;
}

namespace {

Truth negate_if(bool negated, Truth t) {
  if (!negated || t == Truth::unknown) return t;
  return t == Truth::yes ? Truth::no : Truth::yes;
}

std::optional<Truth> whole_number_op(char op, Int128 a, Int128 b, Int128& out) {
  switch (op) {
    case '+':
      out = a + b;
      break;
    case '-':
      out = a - b;
      break;
    case '*':
      out = a * b;
      break;
    case '&':
      out = a & b;
      break;
    case '|':
      out = a | b;
      break;
    case '^':
      out = a ^ b;
      break;
    default:
      if (b == 0) return std::nullopt;
      out = op == '/' ? a / b : a % b;
  }
  return Truth::yes;
}

Int128 exact_number(const Value& v, int scale) {
  return rescale(v.number, is_decimal(v.type.kind) ? v.type.scale : is_money(v.type.kind) ? 4 : 0, scale).value_or(0);
}

[[noreturn]] void divide_by_zero() { raise(8134, 16, 1, "Divide by zero error encountered."); }

Value decimal_operation(char op, const Value& a, const Value& b, const Type& type) {
  Value out = Value::of_null(type);
  out.null = false;
  std::optional<Int128> result;
  const int sa = a.type.scale, sb = b.type.scale;
  if ((op == '/' || op == '%') && b.number == 0) divide_by_zero();
  switch (op) {
    case '*':
      result = multiply(a.number, b.number, sa + sb, type.scale);
      break;
    case '/':
      result = divide(a.number, sa, b.number, sb, type.scale);
      break;
    default: {
      const int s = std::max(sa, sb);
      Int128 n = 0;
      whole_number_op(op, exact_number(a, s), exact_number(b, s), n);
      result = rescale(n, s, type.scale);
    }
  }
  if (!result || magnitude_of(*result) >= power_of_ten(type.precision)) raise_overflow("expression", "numeric");
  out.number = *result;
  return out;
}

Value temporal_operation(char op, const Value& a, const Value& b, const Type& type) {
  const Value x = convert(a, type), y = convert(b, type);
  const std::int64_t days_y = y.days - days_1900;
  std::int64_t days = op == '+' ? x.days + days_y : x.days - days_y;
  std::int64_t ticks = op == '+' ? x.ticks + y.ticks : x.ticks - y.ticks;
  if (ticks < 0) {
    ticks += ticks_per_day;
    --days;
  } else if (ticks >= ticks_per_day) {
    ticks -= ticks_per_day;
    ++days;
  }
  if (days < days_1753 || days > days_max)
    raise(517, 16, 1, "Adding a value to a 'datetime' column caused an overflow.");
  Value out = x;
  out.days = static_cast<std::int32_t>(days);
  out.ticks = ticks;
  return out;
}

}  // namespace

Value arithmetic_value(char op, const Value& a, const Value& b, const Type& type) {
  if (a.null || b.null) return Value::of_null(type);
  if (is_string(type.kind)) {
    Value out = convert(a, type);
    out.text = (is_string(a.type.kind) ? a.text : text_of(a)) + (is_string(b.type.kind) ? b.text : text_of(b));
    return out;
  }
  if (is_binary(type.kind)) return Value::of_bytes(a.bytes + b.bytes, type);
  if (is_temporal(type.kind)) return temporal_operation(op, a, b, type);
  if (is_decimal(type.kind)) {
    const auto wide = [](const Value& v) {
      if (is_decimal(v.type.kind)) return v;
      if (is_money(v.type.kind)) return convert(v, decimal_type(19, 4));
      if (is_integer(v.type.kind)) return convert(v, decimal_type(19, 0));
      return convert(v, decimal_type(38, 6));
    };
    return decimal_operation(op, wide(a), wide(b), type);
  }
  const Value x = convert(a, type), y = convert(b, type);
  Value out = Value::of_null(type);
  out.null = false;
  if (is_float(type.kind)) {
    if ((op == '/' || op == '%') && y.real == 0) divide_by_zero();
    out.real = op == '+'   ? x.real + y.real
               : op == '-' ? x.real - y.real
               : op == '*' ? x.real * y.real
               : op == '/' ? x.real / y.real
                           : std::fmod(x.real, y.real);
    if (!std::isfinite(out.real)) raise_overflow("expression", type_name(type.kind));
    return out;
  }
  if (is_money(type.kind)) {
    Int128 n = 0;
    if ((op == '/' || op == '%') && y.number == 0) divide_by_zero();
    if (op == '*') {
      n = multiply(x.number, y.number, 8, 4).value_or(0);
    } else if (op == '/') {
      n = divide(x.number, 4, y.number, 4, 4).value_or(0);
    } else {
      whole_number_op(op, x.number, y.number, n);
    }
    if (n > std::numeric_limits<std::int64_t>::max() || n < std::numeric_limits<std::int64_t>::min())
      raise_overflow("expression", type_name(type.kind));
    out.number = n;
    return out;
  }
  if (!whole_number_op(op, x.number, y.number, out.number)) divide_by_zero();
  if (type.kind == Kind::bit) {
    out.number = out.number != 0 ? 1 : 0;
    return out;
  }
  Value wide = Value::of_int(0, Kind::bigint);
  wide.number = out.number;
  if (out.number > std::numeric_limits<std::int64_t>::max() || out.number < std::numeric_limits<std::int64_t>::min())
    raise_overflow("expression", type_name(type.kind));
  return convert(wide, type);
}

Value Evaluator::arithmetic(const Expr& e, const Value& a, const Value& b) {
  return arithmetic_value(e.op, a, b, e.type);
}

Value Evaluator::column(const Expr& e) {
  Scope* scope = scope_;
  for (int i = 0; i < e.depth; ++i) scope = scope->outer;
  const RangeVariable& v = scope->variables[static_cast<std::size_t>(e.source)];
  const RangeColumn& c = v.columns[static_cast<std::size_t>(e.column)];
  if (v.null_row) return Value::of_null(c.type);
  if (v.values != nullptr) return (*v.values)[static_cast<std::size_t>(e.column)];
  if (c.stored >= 0) return column_value(v.data->layout(), v.row, static_cast<std::size_t>(c.stored));
  // computed: over the same row
  Scope own;
  own.variables.push_back(v);
  Evaluator inner(context_, &own);
  inner.bind(c.definition->computed);
  return convert(inner.eval(c.definition->computed), c.type);
}

Value Evaluator::run_case(const Expr& e) {
  const std::size_t pairs = e.args.size() / 2;
  for (std::size_t i = 0; i < pairs; ++i)
    if (test(e.args[2 * i]) == Truth::yes) return convert(eval(e.args[2 * i + 1]), e.type);
  if (e.args.size() % 2 != 0) return convert(eval(e.args.back()), e.type);
  return Value::of_null(e.type);
}

Value Evaluator::eval(const ExprPtr& e) {
  if (e->slot >= 0 && scope_ != nullptr && scope_->slots != nullptr)
    return (*scope_->slots)[static_cast<std::size_t>(e->slot)];
  return scalar(e);
}

Value Evaluator::scalar(const ExprPtr& e) {
  switch (e->kind) {
    case ExprKind::literal:
      return e->literal.null ? Value::of_null(e->type) : e->literal;
    case ExprKind::column:
      return column(*e);
    case ExprKind::variable:
      return context_.frame().variables.at(fold_name(e->name[0])).value;
    case ExprKind::global:
      return *global_value(context_, upper_ascii(e->name[0]));
    case ExprKind::negate: {
      Value v = convert(eval(e->args[0]), e->type);
      v.number = -v.number;
      v.real = -v.real;
      return v;
    }
    case ExprKind::complement: {
      Value v = convert(eval(e->args[0]), e->type);
      v.number = e->type.kind == Kind::bit ? 1 - v.number : e->type.kind == Kind::tinyint ? 255 - v.number : ~v.number;
      return v;
    }
    case ExprKind::arithmetic:
      return arithmetic(*e, eval(e->args[0]), eval(e->args[1]));
    case ExprKind::searched_case:
      return run_case(*e);
    case ExprKind::cast: {
      const Value v = eval(e->args[0]);
      int style = 0;
      if (e->args.size() > 1) {
        const Value s = convert(eval(e->args[1]), int_type());
        if (s.null) return Value::of_null(e->type);
        style = static_cast<int>(s.number);
      }
      if (e->tries) return try_convert(v, e->type, style).value_or(Value::of_null(e->type));
      return convert(v, e->type, Conversion::cast, style);
    }
    case ExprKind::function:
      return call_function(*this, *e);
    case ExprKind::collate: {
      Value v = eval(e->args[0]);
      v.type = e->type;
      return v;
    }
    case ExprKind::subquery:
      return scalar_query(*e);
    default:
      break;
  }
  if (is_condition(*e)) {
    const Truth t = test(e);
    return t == Truth::unknown ? Value::of_null(bit_type()) : Value::of_bit(t == Truth::yes);
  }
  raise_syntax("DEFAULT", e->line);
}

Truth Evaluator::test(const ExprPtr& e) {
  switch (e->kind) {
    case ExprKind::logical_and:
    case ExprKind::logical_or: {
      const Truth decided = e->kind == ExprKind::logical_and ? Truth::no : Truth::yes;
      bool unknown = false;
      for (const ExprPtr& arg : e->args) {
        const Truth t = test(arg);
        if (t == decided) return t;
        unknown = unknown || t == Truth::unknown;
      }
      return unknown ? Truth::unknown : decided == Truth::no ? Truth::yes : Truth::no;
    }
    case ExprKind::logical_not:
      return negate_if(true, test(e->args[0]));
    case ExprKind::compare:
      return compare_truth(e->op, eval(e->args[0]), eval(e->args[1]));
    case ExprKind::is_null:
      return eval(e->args[0]).null != e->negated ? Truth::yes : Truth::no;
    case ExprKind::like:
      return like(*e);
    case ExprKind::in_list:
      return in_list(*e);
    case ExprKind::between: {
      const Value v = eval(e->args[0]);
      const Truth low = compare_truth('G', v, eval(e->args[1]));
      const Truth high = compare_truth('L', v, eval(e->args[2]));
      Truth both = low == Truth::no || high == Truth::no ? Truth::no : low == Truth::unknown ? low : high;
      return negate_if(e->negated, both);
    }
    case ExprKind::exists: {
      if (e->cache != nullptr && e->cache->filled) return e->cache->exists ? Truth::yes : Truth::no;
      bool any = false;
      e->compiled->run(context_, [&](Row&) {
        any = true;
        return false;
      });
      if (e->cache != nullptr) {
        e->cache->filled = true;
        e->cache->exists = any;
      }
      return any ? Truth::yes : Truth::no;
    }
    case ExprKind::in_query:
      return in_query(*e);
    case ExprKind::quantified:
      return quantified(*e);
    default: {
      const Value v = eval(e);
      return v.null ? Truth::unknown : v.number != 0 ? Truth::yes : Truth::no;
    }
  }
}

Truth Evaluator::like(const Expr& e) {
  const Value text = eval(e.args[0]), pattern = eval(e.args[1]);
  if (text.null || pattern.null) return Truth::unknown;
  std::optional<char16_t> escape;
  if (e.args.size() > 2) {
    const Value c = eval(e.args[2]);
    if (!c.null && !c.text.empty()) escape = c.text[0];
  }
  const auto as_text = [](const Value& v) { return is_string(v.type.kind) ? v.text : text_of(v); };
  const tds::Collation& collation = is_string(text.type.kind) && !(text.type.collation == tds::Collation{})
                                        ? text.type.collation
                                        : context_.collation();
  return negate_if(e.negated,
                   text_matches_like(as_text(text), as_text(pattern), escape, collation) ? Truth::yes : Truth::no);
}

Truth Evaluator::in_list(const Expr& e) {
  const Value v = eval(e.args[0]);
  Truth found = Truth::no;
  for (std::size_t i = 1; i < e.args.size() && found != Truth::yes; ++i) {
    const Truth t = compare_truth('=', v, eval(e.args[i]));
    if (t != Truth::no) found = t;
  }
  return negate_if(e.negated, found);
}

Truth Evaluator::in_query(const Expr& e) {
  const Value v = eval(e.args[0]);
  if (e.cache == nullptr) {  // correlated
    Truth found = Truth::no;
    e.compiled->run(context_, [&](Row& row) {
      const Truth t = compare_truth('=', v, row[0]);
      if (t != Truth::no) found = t;
      return found != Truth::yes;
    });
    return negate_if(e.negated, found);
  }
  QueryCache& cache = *e.cache;
  if (!cache.filled) {
    cache.key_type = common_type(e.args[0]->type, e.compiled->columns[0].type);
    e.compiled->run(context_, [&](Row& row) {
      if (row[0].null) {
        cache.has_null = true;
      } else {
        std::string key;
        append_key(convert(row[0], cache.key_type), key);
        cache.keys.insert(std::move(key));
      }
      return true;
    });
    cache.filled = true;
  }
  if (cache.keys.empty() && !cache.has_null) return negate_if(e.negated, Truth::no);
  if (v.null) return Truth::unknown;
  std::string key;
  append_key(convert(v, cache.key_type), key);
  if (cache.keys.contains(key)) return negate_if(e.negated, Truth::yes);
  return cache.has_null ? Truth::unknown : negate_if(e.negated, Truth::no);
}

Truth Evaluator::quantified(const Expr& e) {
  const Value v = eval(e.args[0]);
  const bool all = e.distinct;
  Truth result = all ? Truth::yes : Truth::no;
  e.compiled->run(context_, [&](Row& row) {
    const Truth t = compare_truth(e.op, v, row[0]);
    if (t == Truth::unknown) {
      result = t;
    } else if ((t == Truth::yes) != all) {
      result = t;
      return false;
    }
    return true;
  });
  return result;
}

Value Evaluator::scalar_query(const Expr& e) {
  if (e.cache != nullptr && e.cache->filled) return e.cache->scalar;
  Value out = Value::of_null(e.type);
  int rows = 0;
  e.compiled->run(context_, [&](Row& row) {
    if (++rows > 1)
      raise(512, 16, 1,
            "Subquery returned more than 1 value. This is not permitted when the subquery follows =, !=, <, <= , >, >= "
            "or "
            "when the subquery is used as an expression.");
    out = row[0];
    return true;
  });
  if (e.cache != nullptr) {
    e.cache->filled = true;
    e.cache->scalar = out;
  }
  return out;
}

}  // namespace rowferry::sandbox::engine
