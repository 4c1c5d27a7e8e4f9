// fit() and check_policy(): what loads into what (types.md), decided by logical types alone.
#include <fmt/format.h>

#include "rows/convert.hpp"
#include "rows/numbers.hpp"
#include "rows/temporal.hpp"
#include "rows/text_rules.hpp"

namespace rowferry::rows {

namespace {

using Kind = Fit::Kind;

Fit refused(const Type& from, const Type& to, std::string_view why = {}) {
  return {Kind::never, why.empty()
                           ? fmt::format("{} cannot be loaded into {}", to_string(from), to_string(to))
                           : fmt::format("{} cannot be loaded into {}: {}", to_string(from), to_string(to), why)};
}
Fit exact_if(bool always) { return {always ? Kind::exact : Kind::checked, {}}; }

// Whole numbers up to 2^digits are exact in a float.
int float_digits(TypeId id) noexcept { return id == TypeId::float32 ? 24 : 53; }

Fit fit_integer(const Type& from, const Type& to) {
  const IntegerRange range = integer_range(from.id);
  if (is_integer(to.id) || to.id == TypeId::boolean) return exact_if(integer_range(to.id).contains(range));
  if (to.id == TypeId::decimal) {
    const bool narrow = !decimal_range(to).contains(decimal_range(Type::decimal(to.precision, to.scale)));
    return exact_if(!narrow && decimal_whole_range(to).contains(range));
  }
  if (is_float(to.id)) {
    const Int128 limit = Int128{1} << float_digits(to.id);
    return exact_if(range.max <= limit && range.min >= -limit);
  }
  return refused(from, to);
}

Fit fit_float(const Type& from, const Type& to) {
  if (from.id == to.id) return {to.finite && !from.finite ? Kind::checked : Kind::same, {}};
  if (to.id == TypeId::float64) return exact_if(!to.finite || from.finite);
  if (to.id == TypeId::float32) {
    return {Kind::lossy, "float64 is rounded to float32 (24 significant bits)"};
  }
  if (is_integer(to.id)) return {Kind::checked, {}};
  if (to.id == TypeId::decimal) return refused(from, to, "binary fractions have no short exact decimal form");
  return refused(from, to);
}

Fit fit_decimal(const Type& from, const Type& to) {
  if (to.id == TypeId::decimal) {
    const bool covered = decimal_range(to).contains(decimal_range(from));
    if (from.scale == to.scale) return {covered ? Kind::same : Kind::checked, {}};
    const IntegerRange precision_only = decimal_range(Type::decimal(to.precision, to.scale));
    const bool digits_fit = to.precision - to.scale >= from.precision - from.scale;
    return exact_if(to.scale > from.scale && digits_fit && decimal_range(to).contains(precision_only));
  }
  if (is_integer(to.id)) {
    return exact_if(from.scale == 0 && integer_range(to.id).contains(decimal_whole_range(from)));
  }
  if (is_float(to.id)) return {Kind::lossy, "decimal fractions are rounded to the nearest binary float"};
  return refused(from, to);
}

Fit fit_date(const Type& from, const Type& to) {
  if (to.id == TypeId::date) return {covers(to, from) ? Kind::same : Kind::checked, {}};
  if (to.id == TypeId::timestamp && !to.zoned) return exact_if(date_fits_timestamp(from, to));
  if (to.id == TypeId::timestamp) return refused(from, to, "a date has no zone");
  return refused(from, to);
}

std::string rounding_text(const Type& to) {
  if (to.quantum == Quantum::tick_300) return "values are rounded to 1/300 s";
  if (to.quantum == Quantum::minute) return "values are rounded to the minute";
  if (to.digits == 0) return "fractions of a second are dropped";
  return fmt::format("digits beyond the {}{} fractional digit are dropped", static_cast<int>(to.digits),
                     to.digits == 1 ? "st" : (to.digits == 2 ? "nd" : (to.digits == 3 ? "rd" : "th")));
}

Fit fit_clock(const Type& from, const Type& to) {
  if (loses_digits(from, to)) return {Kind::lossy, rounding_text(to)};
  if (!covers(to, from)) return {Kind::checked, {}};
  return {from.unit == to.unit ? Kind::same : Kind::exact, {}};
}

Fit fit_timestamp(const Type& from, const Type& to) {
  if (to.id == TypeId::date) {
    return from.zoned ? refused(from, to, "the day depends on a zone") : Fit{Kind::checked, {}};
  }
  if (to.id != TypeId::timestamp) return refused(from, to);
  if (from.zoned && !to.zoned) return refused(from, to, "the zone would be lost");
  if (!from.zoned && to.zoned) return refused(from, to, "the values have no zone");
  return fit_clock(from, to);
}

Fit fit_text(const Type& from, const Type& to) {
  if (to.id == TypeId::text || (to.id == TypeId::json && from.id == TypeId::json)) {
    return {text_always_fits(from, to) ? Kind::same : Kind::checked, {}};
  }
  if (to.id == TypeId::json) return {Kind::checked, {}};  // text need not be JSON: the server looks
  return refused(from, to);
}

Fit fit_binary(const Type& from, const Type& to) {
  if (to.id != TypeId::binary) return refused(from, to);
  return {binary_always_fits(from, to) ? Kind::same : Kind::checked, {}};
}

Fit fit_uuid(const Type& from, const Type& to) {
  if (to.id == TypeId::uuid) return {Kind::same, {}};
  if (to.id == TypeId::text) return exact_if(text_always_fits(uuid_as_text(), to));
  return refused(from, to);
}

Fit fit_boolean(const Type& from, const Type& to) {
  if (to.id == TypeId::boolean) return {Kind::same, {}};
  return fit_integer(from, to);
}

// What can be lost between the pair, apart from NULLs: decides which policies make sense.
struct Losses {
  bool digits = false;      // fractional digits, seconds, a time of day: truncate
  bool length = false;      // too long: truncate
  bool range = false;       // out of range: replace by the nearest bound
  bool characters = false;  // characters: replace, strip
};

Losses possible_losses(const Type& from, const Type& to) {
  switch (to.id) {
    case TypeId::text:
    case TypeId::json:
      return {.length = true, .characters = true};
    case TypeId::binary:
      return {.length = true};
    case TypeId::decimal:
      return {.digits = from.id == TypeId::decimal, .range = true};
    case TypeId::boolean:
      return {.range = from.id != TypeId::boolean};
    case TypeId::date:
      return {.digits = from.id == TypeId::timestamp, .range = true};
    case TypeId::time:
    case TypeId::timestamp:
      return {.digits = from.id == to.id, .range = true};
    case TypeId::float32:
    case TypeId::float64:
      return {.digits = true, .range = true};
    case TypeId::uuid:
    case TypeId::null:
      return {};
    default:
      return {.digits = from.id == TypeId::decimal || is_float(from.id), .range = true};
  }
}

[[noreturn]] void impossible(std::string_view column, std::string_view policy, std::string_view why) {
  throw Error(Category::input, "policy_impossible",
              fmt::format("column {}: on_loss \"{}\" is not possible: {}", column, policy, why))
      .with_column(column)
      .with_field("columns.on_loss");
}

void check_replacement(const Type& to, const std::string& replacement, std::string_view column) {
  if (!is_variable(to.id) || to.id == TypeId::binary) {
    impossible(column, "replace", "a replacement is for text; other types take the nearest value of their range");
  }
  if (const std::string why = TextRules(to).unfit_reason(replacement); !why.empty()) {
    impossible(column, "replace", "the replacement itself does not fit: " + why);
  }
}

}  // namespace

Fit fit(const Type& from, const Type& to) {
  if (from.id == TypeId::null) return {to.id == TypeId::null ? Kind::same : Kind::exact, {}};
  switch (from.id) {
    case TypeId::boolean:
      return fit_boolean(from, to);
    case TypeId::float32:
    case TypeId::float64:
      return fit_float(from, to);
    case TypeId::decimal:
      return fit_decimal(from, to);
    case TypeId::date:
      return fit_date(from, to);
    case TypeId::time:
      return to.id == TypeId::time ? fit_clock(from, to) : refused(from, to);
    case TypeId::timestamp:
      return fit_timestamp(from, to);
    case TypeId::uuid:
      return fit_uuid(from, to);
    case TypeId::text:
    case TypeId::json:
      return fit_text(from, to);
    case TypeId::binary:
      return fit_binary(from, to);
    default:
      return from.id == to.id ? Fit{Kind::same, {}} : fit_integer(from, to);
  }
}

void check_policy(const Type& from, const Type& to, const LossPolicy& policy, std::string_view column) {
  const Losses losses = possible_losses(from, to);
  if (policy.replacement && policy.action != OnLoss::replace) {
    impossible(column, "replacement", "a replacement needs on_loss \"replace\"");
  }
  switch (policy.action) {
    case OnLoss::error:
    case OnLoss::null:
      return;
    case OnLoss::truncate:
      if (!losses.digits && !losses.length) impossible(column, "truncate", to_string(to) + " has nothing to cut");
      return;
    case OnLoss::replace:
      if (policy.replacement) check_replacement(to, *policy.replacement, column);
      if (!losses.characters && !losses.range) impossible(column, "replace", to_string(to) + " has no nearest value");
      return;
    case OnLoss::strip:
      if (!losses.characters) impossible(column, "strip", to_string(to) + " has no characters");
      return;
  }
}

}  // namespace rowferry::rows
