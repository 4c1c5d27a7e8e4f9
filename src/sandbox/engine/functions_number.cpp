#define XXH_INLINE_ALL
#include <xxhash.h>

#include <array>
#include <cmath>
#include <cstring>
#include <random>

#include "sandbox/engine/functions.hpp"

namespace rowferry::sandbox::engine {

namespace {

Type signed_type(const Context&, const Expr& call) {
  const Type& t = call.args[0]->type;
  if (!is_number(t.kind)) return make_type(Kind::float8);
  return is_integer(t.kind) && t.kind < Kind::integer ? int_type() : t;
}
Type float_type(const Context&, const Expr&) { return make_type(Kind::float8); }
Type guid_type(const Context&, const Expr&) { return make_type(Kind::guid); }

double real_of(const Value& v) { return convert(v, make_type(Kind::float8)).real; }
Value real_value(double r) {
  Value v = Value::of_null(make_type(Kind::float8));
  v.null = false;
  v.real = r;
  return v;
}

Value abs_value(const Context&, const Expr& call, const Arguments& args) {
  Value v = convert(args[0], call.type);
  if (v.number < 0) v.number = -v.number;
  v.real = std::fabs(v.real);
  if (call.type.kind == Kind::integer && v.number > 2'147'483'647) raise_overflow("expression", "int");
  return v;
}

Value sign(const Context&, const Expr& call, const Arguments& args) {
  Value v = convert(args[0], call.type);
  if (v.null) return v;
  const int s = v.number < 0 || v.real < 0 ? -1 : v.number > 0 || v.real > 0 ? 1 : 0;
  return convert(Value::of_int(s), call.type);
}

enum class Rounding : std::uint8_t { down, up };

Type whole_type(const Context& context, const Expr& call) {
  const Type t = signed_type(context, call);
  return is_decimal(t.kind) ? make_type(t.kind, 0, t.precision, 0) : t;
}

template <Rounding way>
Value whole(const Context&, const Expr& call, const Arguments& args) {
  const Value& v = args[0];
  if (v.null) return Value::of_null(call.type);
  if (is_float(call.type.kind))
    return real_value(way == Rounding::down ? std::floor(real_of(v)) : std::ceil(real_of(v)));
  if (is_integer(v.type.kind)) return convert(v, call.type);
  const int scale = is_money(v.type.kind) ? 4 : v.type.scale;
  const auto unit = static_cast<Int128>(power_of_ten(scale));
  Int128 n = v.number / unit;
  if (way == Rounding::down && v.number % unit < 0) --n;
  if (way == Rounding::up && v.number % unit > 0) ++n;
  Value out = Value::of_null(call.type);
  out.null = false;
  out.number = is_money(call.type.kind) ? n * 10'000 : n;
  return out;
}

Value round_value(const Context&, const Expr& call, const Arguments& args) {
  Value v = convert(args[0], call.type);
  if (v.null || args[1].null) return Value::of_null(call.type);
  const auto digits = static_cast<int>(number_of(args[1]));
  const bool cut = args.size() > 2 && !args[2].null && number_of(args[2]) != 0;
  if (is_float(call.type.kind)) {
    const double unit = std::pow(10.0, digits);
    v.real = (cut ? std::trunc(v.real * unit) : std::round(v.real * unit)) / unit;
    return v;
  }
  const int scale = is_money(call.type.kind) ? 4 : is_decimal(call.type.kind) ? call.type.scale : 0;
  if (digits >= scale) return v;
  if (digits < -38) {
    v.number = 0;
    return v;
  }
  const auto rounded = rescale(v.number, scale, digits, cut);
  v.number = rescale(rounded.value_or(0), digits, scale).value_or(0);
  return v;
}

template <double (*f)(double)>
Value real_function(const Context&, const Expr& call, const Arguments& args) {
  if (args[0].null) return Value::of_null(call.type);
  const double r = f(real_of(args[0]));
  if (!std::isfinite(r)) raise(3623, 16, 1, "An invalid floating point operation occurred.");
  return real_value(r);
}

Value power(const Context&, const Expr& call, const Arguments& args) {
  if (args[0].null || args[1].null) return Value::of_null(call.type);
  return convert(real_value(std::pow(real_of(args[0]), real_of(args[1]))), call.type);
}

Value is_numeric(const Context&, const Expr&, const Arguments& args) {
  if (args[0].null) return int_value(0);
  if (is_number(args[0].type.kind)) return int_value(1);
  if (!is_string(args[0].type.kind) || args[0].text.empty()) return int_value(0);
  return int_value(try_convert(args[0], make_type(Kind::float8)) || try_convert(args[0], make_type(Kind::money)) ? 1
                                                                                                                 : 0);
}

Value checksum(const Context&, const Expr&, const Arguments& args) {
  std::string key;
  for (const Value& v : args) append_key(v, key);
  return int_value(static_cast<std::int32_t>(XXH3_64bits(key.data(), key.size())));
}

Value new_guid(const Context&, const Expr& call, const Arguments&) {
  static std::mt19937_64 generator{std::random_device{}()};
  std::string bytes(16, '\0');
  for (std::size_t i = 0; i < 16; i += 8) {
    const std::uint64_t word = generator();
    std::memcpy(bytes.data() + i, &word, 8);
  }
  bytes[7] = static_cast<char>((static_cast<unsigned char>(bytes[7]) & 0x0FU) | 0x40U);
  bytes[8] = static_cast<char>((static_cast<unsigned char>(bytes[8]) & 0x3FU) | 0x80U);
  return Value::of_bytes(std::move(bytes), call.type);
}

Value random(const Context&, const Expr&, const Arguments&) {
  static std::mt19937_64 generator{std::random_device{}()};
  return real_value(std::uniform_real_distribution<double>(0, 1)(generator));
}

constexpr std::array table{
    Function{"ABS", 1, 1, signed_type, abs_value},
    Function{"SIGN", 1, 1, signed_type, sign},
    Function{"FLOOR", 1, 1, whole_type, whole<Rounding::down>},
    Function{"CEILING", 1, 1, whole_type, whole<Rounding::up>},
    Function{"ROUND", 2, 3, signed_type, round_value},
    Function{"SQRT", 1, 1, float_type, real_function<std::sqrt>},
    Function{"EXP", 1, 1, float_type, real_function<std::exp>},
    Function{"LOG", 1, 1, float_type, real_function<std::log>},
    Function{"LOG10", 1, 1, float_type, real_function<std::log10>},
    Function{"POWER", 2, 2, signed_type, power},
    Function{"RAND", 0, 1, float_type, random},
    Function{"ISNUMERIC", 1, 1, int_result, is_numeric},
    Function{"CHECKSUM", 1, 254, int_result, checksum},
    Function{"BINARY_CHECKSUM", 1, 254, int_result, checksum},
    Function{"NEWID", 0, 0, guid_type, new_guid},
    Function{"NEWSEQUENTIALID", 0, 0, guid_type, new_guid},
};

}  // namespace

std::span<const Function> number_functions() { return table; }

}  // namespace rowferry::sandbox::engine
