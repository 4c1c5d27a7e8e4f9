// Common types, comparison and hash keys.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>

#include "sandbox/engine/collation.hpp"
#include "sandbox/engine/convert.hpp"

namespace rowferry::sandbox::engine {

Type as_decimal(const Type& t) {
  if (is_decimal(t.kind)) return t;
  switch (t.kind) {
    case Kind::bit:
      return decimal_type(1, 0);
    case Kind::tinyint:
      return decimal_type(3, 0);
    case Kind::smallint:
      return decimal_type(5, 0);
    case Kind::integer:
      return decimal_type(10, 0);
    case Kind::bigint:
      return decimal_type(19, 0);
    case Kind::smallmoney:
      return decimal_type(10, 4);
    case Kind::money:
      return decimal_type(19, 4);
    default:
      return decimal_type(38, 6);
  }
}

namespace {

std::int32_t longer(const Type& a, const Type& b) {
  if (a.length == max_length || b.length == max_length) return max_length;
  return std::max(a.length, b.length);
}

std::int32_t text_length(const Type& t) {
  if (t.kind == Kind::text || t.kind == Kind::ntext || t.kind == Kind::xml || t.kind == Kind::json) return max_length;
  return t.length;
}

}  // namespace

Type common_type(const Type& a, const Type& b) {
  const Type& high = a.kind >= b.kind ? a : b;
  const Type& low = a.kind >= b.kind ? b : a;
  Type out = high;
  if (is_decimal(high.kind) && is_number(low.kind)) {
    const Type x = as_decimal(a), y = as_decimal(b);
    const int scale = std::max(x.scale, y.scale);
    const int whole = std::max(x.precision - x.scale, y.precision - y.scale);
    const int precision = std::min(38, scale + whole);
    Type decimal = decimal_type(precision, std::min(scale, std::max(precision - whole, 0)));
    decimal.kind = high.kind;
    return decimal;
  }
  if (is_string(high.kind) && is_string(low.kind)) {
    if (high.kind == Kind::xml || high.kind == Kind::json) return high;
    Type x = a, y = b;
    x.length = text_length(a);
    y.length = text_length(b);
    out.length = longer(x, y);
    const bool unicode = is_unicode(high.kind);
    if (a.kind != b.kind || is_lob(high.kind)) out.kind = unicode ? Kind::nvarchar : Kind::varchar;
    if (unicode && out.length > 4000) out.length = max_length;
    if (out.collation == tds::Collation{}) out.collation = low.collation;
    return out;
  }
  if (is_binary(high.kind) && is_binary(low.kind)) {
    out.kind = Kind::varbinary;
    out.length = high.kind == Kind::image || low.kind == Kind::image ? max_length : std::max(8, longer(a, b));
    if (longer(a, b) == max_length) out.length = max_length;
    return out;
  }
  if (is_string(high.kind) && is_binary(low.kind)) {
    out.length =
        text_length(out) == max_length || low.length == max_length ? max_length : std::max(out.length, low.length);
    return out;
  }
  if ((high.kind == Kind::datetime2 || high.kind == Kind::datetimeoffset) && is_temporal(low.kind)) {
    const std::uint8_t other = low.kind == Kind::datetime                                  ? 3
                               : low.kind == Kind::date || low.kind == Kind::smalldatetime ? 0
                                                                                           : low.scale;
    out.scale = std::max(high.scale, other);
    if (low.kind == Kind::datetime) out.scale = 7;
  }
  if (high.kind == Kind::time && low.kind == Kind::time) out.scale = std::max(a.scale, b.scale);
  return out;
}

namespace {

std::strong_ordering compare_double(double a, double b) {
  return a < b ? std::strong_ordering::less : a > b ? std::strong_ordering::greater : std::strong_ordering::equal;
}

std::strong_ordering compare_bytes(std::string_view a, std::string_view b) {
  const auto padded = [](std::string_view s) {
    while (!s.empty() && s.back() == '\0') s.remove_suffix(1);
    return s;
  };
  const int c = padded(a).compare(padded(b));
  return c <=> 0;
}

// Bytes 10-15, 8-9, 6-7, 4-5, 0-3, each as stored.
constexpr std::array<std::size_t, 16> guid_order{10, 11, 12, 13, 14, 15, 8, 9, 6, 7, 4, 5, 0, 1, 2, 3};

std::strong_ordering compare_guids(std::string_view a, std::string_view b) {
  for (const std::size_t i : guid_order)
    if (a[i] != b[i]) return static_cast<std::uint8_t>(a[i]) <=> static_cast<std::uint8_t>(b[i]);
  return std::strong_ordering::equal;
}

}  // namespace

std::strong_ordering compare_same(const Value& a, const Value& b) {
  const Kind k = a.type.kind;
  if (is_string(k)) return compare_text(a.text, b.text, a.type.collation);
  if (is_exact(k)) return a.number <=> b.number;
  if (is_float(k)) return compare_double(a.real, b.real);
  if (k == Kind::guid) return compare_guids(a.bytes, b.bytes);
  if (is_temporal(k)) return a.days != b.days && k != Kind::time ? a.days <=> b.days : a.ticks <=> b.ticks;
  if (k == Kind::variant) return compare_values(variant_content(a.bytes), variant_content(b.bytes));
  return compare_bytes(a.bytes, b.bytes);
}

std::strong_ordering compare_values(const Value& a, const Value& b) {
  const bool same = a.type.kind == b.type.kind && a.type.scale == b.type.scale && !is_string(a.type.kind);
  if (same) return compare_same(a, b);
  if (is_string(a.type.kind) && is_string(b.type.kind)) {
    const Type common = common_type(a.type, b.type);
    return compare_text(a.text, b.text, common.collation);
  }
  if (is_exact(a.type.kind) && is_exact(b.type.kind)) {
    const auto scale = [](const Type& t) { return is_decimal(t.kind) ? t.scale : is_money(t.kind) ? 4 : 0; };
    const int s = std::max<int>(scale(a.type), scale(b.type));
    const auto x = rescale(a.number, scale(a.type), s), y = rescale(b.number, scale(b.type), s);
    if (x && y) return *x <=> *y;
    return compare_double(convert(a, make_type(Kind::float8)).real, convert(b, make_type(Kind::float8)).real);
  }
  Type common = common_type(a.type, b.type);
  if (is_decimal(common.kind)) {  // a text or float compared with a decimal keeps its own digits
    common.precision = 38;
  }
  return compare_same(convert(a, common), convert(b, common));
}

void append_key(const Value& v, std::string& key) {
  if (v.null) {
    key.push_back('\0');
    return;
  }
  key.push_back('\1');
  const auto put = [&](const void* from, std::size_t n) { key.append(static_cast<const char*>(from), n); };
  const Kind k = v.type.kind;
  if (is_string(k)) {
    const std::u16string folded = comparison_key(v.text, v.type.collation);
    const auto size = static_cast<std::uint32_t>(folded.size());
    put(&size, sizeof size);
    put(folded.data(), folded.size() * 2);
  } else if (is_exact(k)) {
    put(&v.number, sizeof v.number);
  } else if (is_float(k)) {
    const double real = v.real == 0 ? 0.0 : v.real;
    put(&real, sizeof real);
  } else if (is_temporal(k)) {
    const std::int32_t days = k == Kind::time ? 0 : v.days;
    put(&days, sizeof days);
    put(&v.ticks, sizeof v.ticks);
  } else {
    std::string_view bytes = v.bytes;
    if (k == Kind::binary || k == Kind::varbinary)
      while (!bytes.empty() && bytes.back() == '\0') bytes.remove_suffix(1);
    const auto size = static_cast<std::uint32_t>(bytes.size());
    put(&size, sizeof size);
    key.append(bytes);
  }
}

}  // namespace rowferry::sandbox::engine
