#include <limits>

#include "sandbox/engine/select_plan.hpp"

namespace rowferry::sandbox::engine {

void Accumulator::add(Evaluator& evaluator) {
  const Expr& e = *call_;
  if (e.args.empty() || e.args[0]->kind == ExprKind::star) {
    ++count_;
    return;
  }
  const Value v = evaluator.eval(e.args[0]);
  if (v.null) return;
  if (e.distinct) {
    std::string key;
    append_key(v, key);
    if (!seen_.insert(std::move(key)).second) return;
  }
  ++count_;
  const std::string& f = e.name.back();
  if (f == "SUM" || f == "AVG") {
    if (is_float(v.type.kind)) {
      real_sum_ += v.real;
    } else {
      sum_ += v.number;
    }
  } else if (f == "MIN" || f == "MAX") {
    if (!any_ || (f == "MIN" ? compare_same(v, best_) < 0 : compare_same(v, best_) > 0)) best_ = v;
  } else if (f == "STRING_AGG") {
    if (any_) joined_ += text_of(evaluator.eval(e.args[1]));
    joined_ += text_of(v);
  } else if (f == "CHECKSUM_AGG") {
    sum_ ^= v.number;
  }
  any_ = true;
}

Value Accumulator::result(const Context&) const {
  const Expr& e = *call_;
  const std::string& f = e.name.back();
  Value out = Value::of_null(e.type);
  if (f == "COUNT" || f == "COUNT_BIG") {
    if (f == "COUNT" && count_ > std::numeric_limits<std::int32_t>::max()) raise_overflow("expression", "int");
    return Value::of_int(count_, e.type.kind);
  }
  if (!any_) return out;
  out.null = false;
  if (f == "MIN" || f == "MAX") return convert(best_, e.type);
  if (f == "STRING_AGG") return Value::of_text(joined_, e.type);
  if (f == "CHECKSUM_AGG") {
    out.number = sum_;
    return out;
  }
  if (is_float(e.type.kind)) {
    out.real = f == "SUM" ? real_sum_ : real_sum_ / static_cast<double>(count_);
    return out;
  }
  const Type& arg = e.args[0]->type;
  const int scale = is_decimal(arg.kind) ? arg.scale : is_money(arg.kind) ? 4 : 0;
  if (f == "SUM") {
    out.number = sum_;
  } else if (is_decimal(e.type.kind)) {
    out.number = divide(sum_, scale, count_, 0, e.type.scale).value_or(0);
  } else {
    out.number = sum_ / count_;
  }
  if (is_decimal(e.type.kind)) {
    if (magnitude_of(out.number) >= power_of_ten(38)) raise_overflow("expression", "numeric");
    return out;
  }
  if (is_money(e.type.kind)) {
    if (out.number > std::numeric_limits<std::int64_t>::max() || out.number < std::numeric_limits<std::int64_t>::min())
      raise_overflow("expression", "money");
    return out;
  }
  Value wide = Value::of_int(0, Kind::bigint);
  wide.number = out.number;
  if (out.number > std::numeric_limits<std::int64_t>::max() || out.number < std::numeric_limits<std::int64_t>::min())
    raise_overflow("expression", type_name(e.type.kind));
  return convert(wide, e.type);
}

}  // namespace rowferry::sandbox::engine
