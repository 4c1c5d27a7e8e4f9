// Conversions to text and to binary.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "sandbox/engine/collation.hpp"
#include "sandbox/engine/convert.hpp"
#include "sandbox/engine/temporal.hpp"

namespace rowferry::sandbox::engine {

Value to_text(const Value& v, const Type& to, Conversion how, int style);
Value to_binary(const Value& v, const Type& to, Conversion how, int style);

namespace {

constexpr std::string_view hex_digits = "0123456789ABCDEF";

int hex_value(char16_t c) {
  if (c >= u'0' && c <= u'9') return c - u'0';
  if (c >= u'a' && c <= u'f') return c - u'a' + 10;
  if (c >= u'A' && c <= u'F') return c - u'A' + 10;
  return -1;
}

std::u16string from_ascii(std::string_view text) { return {text.begin(), text.end()}; }

std::string with_thousands(std::string text) {
  const std::size_t point = text.find('.');
  const std::size_t first = text.front() == '-' ? 1 : 0;
  for (std::size_t at = point == std::string::npos ? text.size() : point; at > first + 3;) {
    at -= 3;
    text.insert(at, 1, ',');
  }
  return text;
}

std::string money_text(const Value& v, int style) {
  if (style == 2) return rowferry::decimal::to_text(v.number, 4);
  std::string text = rowferry::decimal::to_text(rescale(v.number, 4, 2).value_or(0), 2);
  return style == 1 ? with_thousands(text) : text;
}

}  // namespace

std::string guid_text(std::string_view b) {
  constexpr std::array<int, 16> order{3, 2, 1, 0, 5, 4, 7, 6, 8, 9, 10, 11, 12, 13, 14, 15};
  std::string out;
  for (std::size_t i = 0; i < 16; ++i) {
    if (i == 4 || i == 6 || i == 8 || i == 10) out.push_back('-');
    const auto byte = static_cast<std::uint8_t>(b[static_cast<std::size_t>(order.at(i))]);
    out.push_back(hex_digits[byte >> 4U]);
    out.push_back(hex_digits[byte & 15U]);
  }
  return out;
}

std::optional<std::string> guid_bytes(std::string_view text) {
  if (text.starts_with('{') && text.size() >= 38 && text[37] == '}') text = text.substr(1, 36);
  if (text.size() < 36) return std::nullopt;
  constexpr std::array<std::size_t, 16> order{3, 2, 1, 0, 5, 4, 7, 6, 8, 9, 10, 11, 12, 13, 14, 15};
  std::string out(16, '\0');
  std::size_t at = 0;
  for (std::size_t i = 0; i < 16; ++i) {
    if (i == 4 || i == 6 || i == 8 || i == 10) {
      if (text[at++] != '-') return std::nullopt;
    }
    const int high = hex_value(static_cast<unsigned char>(text[at])),
              low = hex_value(static_cast<unsigned char>(text[at + 1]));
    if (high < 0 || low < 0) return std::nullopt;
    out[order.at(i)] = static_cast<char>(high * 16 + low);
    at += 2;
  }
  return out;
}

std::string hex_text(std::string_view bytes) {
  std::string out;
  for (const char c : bytes) {
    out.push_back(hex_digits[static_cast<std::uint8_t>(c) >> 4U]);
    out.push_back(hex_digits[static_cast<std::uint8_t>(c) & 15U]);
  }
  return out;
}

std::string float_text(double value, bool single, int style) {
  const auto scientific = [&](int digits) {
    std::string text = fmt::format("{:.{}e}", value, digits);
    const std::size_t e = text.find('e');
    std::string exponent = text.substr(e + 2);
    while (exponent.size() < 3) exponent.insert(exponent.begin(), '0');
    return text.substr(0, e) + "e" + text[e + 1] + exponent;
  };
  if (style == 1) return scientific(7);
  if (style == 2) return scientific(15);
  if (style == 3) return single ? fmt::format("{}", static_cast<float>(value)) : fmt::format("{}", value);
  const double magnitude = std::fabs(value);
  if (magnitude != 0 && (magnitude >= 1e6 || magnitude < 1e-4)) {
    std::string text = fmt::format("{:.5e}", value);
    const std::size_t e = text.find('e');
    std::string mantissa = text.substr(0, e);
    while (mantissa.back() == '0') mantissa.pop_back();
    if (mantissa.back() == '.') mantissa.pop_back();
    std::string exponent = text.substr(e + 2);
    while (exponent.size() < 3) exponent.insert(exponent.begin(), '0');
    return mantissa + "e" + text[e + 1] + exponent;
  }
  return fmt::format("{:.6g}", value);
}

std::u16string text_of(const Value& v, int style) {
  const Kind k = v.type.kind;
  if (is_string(k)) return v.text;
  if (is_integer(k)) return from_ascii(rowferry::decimal::to_text(v.number));
  if (is_decimal(k)) return from_ascii(rowferry::decimal::to_text(v.number, v.type.scale));
  if (is_money(k)) return from_ascii(money_text(v, style));
  if (is_float(k)) return from_ascii(float_text(v.real, k == Kind::real, style));
  if (is_temporal(k)) return from_ascii(temporal_text(v, style));
  if (k == Kind::guid) return from_ascii(guid_text(v.bytes));
  if (k == Kind::variant) return text_of(variant_content(v.bytes), style);
  if (style == 1) return from_ascii("0x" + hex_text(v.bytes));
  return from_ascii(hex_text(v.bytes));
}

namespace {

// Bytes as characters: nvarchar takes them as UTF-16, varchar as the code page.
std::u16string binary_as_text(const Value& v, const Type& to, int style) {
  if (style == 1) return from_ascii("0x" + hex_text(v.bytes));
  if (style == 2) return from_ascii(hex_text(v.bytes));
  if (!is_unicode(to.kind)) return from_code_page(v.bytes, to.collation);
  std::string even = v.bytes;
  if (even.size() % 2 != 0) even.push_back('\0');
  std::u16string text(even.size() / 2, u'\0');
  std::copy(even.begin(), even.end(), reinterpret_cast<char*>(text.data()));
  return text;
}

bool only_blanks_from(std::u16string_view text, std::size_t at) {
  for (; at < text.size(); ++at)
    if (text[at] != u' ') return false;
  return true;
}

// Cuts and pads to the type's length.
void fit_text(Value& out, const Value& from, const Type& to, Conversion how) {
  if (to.length == max_length || to.kind == Kind::text || to.kind == Kind::ntext || to.kind == Kind::xml ||
      to.kind == Kind::json)
    return;
  const auto room = static_cast<std::size_t>(to.length);
  const bool unicode = is_unicode(to.kind);
  std::string bytes;
  if (!unicode) {
    bytes = to_code_page(out.text, to.collation);
    // what the code page lacks has become '?': keep what the column will hold
    if (bytes.size() <= room) out.text = from_code_page(bytes, to.collation);
  }
  const std::size_t size = unicode ? out.text.size() : bytes.size();
  if (size > room) {
    if (!is_string(from.type.kind) && !is_binary(from.type.kind)) {
      if (is_number(from.type.kind) && how == Conversion::cast && is_integer(from.type.kind) && room > 0) {
        out.text = u"*";
      } else {
        raise_overflow(is_integer(from.type.kind) ? "expression" : type_name(from.type.kind), type_name(to.kind));
      }
    } else if (how == Conversion::assign) {
      const std::u16string whole = out.text;
      std::size_t cut = unicode ? room : 0;
      if (!unicode) cut = from_code_page(bytes.substr(0, room), to.collation).size();
      if (!only_blanks_from(whole, cut)) throw Truncated{whole.substr(0, cut)};
      out.text.resize(cut);
    } else if (unicode) {
      out.text.resize(room);
    } else {
      out.text = from_code_page(bytes.substr(0, room), to.collation);
    }
    bytes.resize(std::min(bytes.size(), room));
  }
  const std::size_t now = unicode ? out.text.size() : bytes.size();
  if ((to.kind == Kind::character || to.kind == Kind::nchar) && now < room) out.text.append(room - now, u' ');
}

std::string number_bytes(const Value& v) {
  ByteBuffer buffer;
  encode_value(v, stored_form(v.type), buffer);
  std::string bytes(as_text(buffer.view()).substr(1));
  if (is_integer(v.type.kind) || v.type.kind == Kind::smallmoney) std::reverse(bytes.begin(), bytes.end());
  if (is_float(v.type.kind)) std::reverse(bytes.begin(), bytes.end());
  if (v.type.kind == Kind::money || v.type.kind == Kind::datetime || v.type.kind == Kind::smalldatetime) {
    // Two numbers, each with its high byte first.
    const auto half = bytes.begin() + static_cast<std::ptrdiff_t>(bytes.size() / 2);
    std::reverse(bytes.begin(), half);
    std::reverse(half, bytes.end());
  }
  if (is_decimal(v.type.kind))
    bytes.insert(0, {static_cast<char>(v.type.precision), static_cast<char>(v.type.scale), '\0'});
  return bytes;
}

std::string text_as_binary(const Value& v, int style) {
  if (style == 0) {
    if (!is_unicode(v.type.kind)) return to_code_page(v.text, v.type.collation);
    return {reinterpret_cast<const char*>(v.text.data()), v.text.size() * 2};
  }
  std::u16string_view text = v.text;
  const bool prefixed = text.size() >= 2 && text[0] == u'0' && (text[1] == u'x' || text[1] == u'X');
  if (style == 1 && prefixed) text.remove_prefix(2);
  std::string bytes;
  bool bad = text.size() % 2 != 0 || (style == 1 && !prefixed);
  for (std::size_t i = 0; !bad && i < text.size(); i += 2) {
    const int high = hex_value(text[i]), low = hex_value(text[i + 1]);
    bad = high < 0 || low < 0;
    bytes.push_back(static_cast<char>(high * 16 + low));
  }
  if (bad)
    raise(8114, 16, 5, fmt::format("Error converting data type {} to varbinary.", type_name(v.type.kind)),
          Reach::batch);
  return bytes;
}

}  // namespace

Value to_text(const Value& v, const Type& to, Conversion how, int style) {
  Value out = Value::of_null(to);
  out.null = false;
  if (v.type.kind == Kind::image || (is_binary(v.type.kind) && how == Conversion::assign && !is_string(to.kind)))
    raise(529, 16, 2,
          fmt::format("Explicit conversion from data type {} to {} is not allowed.", type_name(v.type.kind),
                      type_name(to.kind)),
          Reach::batch);
  out.text = is_binary(v.type.kind) && v.type.kind != Kind::udt ? binary_as_text(v, to, style) : text_of(v, style);
  fit_text(out, v, to, how);
  return out;
}

Value to_binary(const Value& v, const Type& to, Conversion how, int style) {
  Value out = Value::of_null(to);
  out.null = false;
  if (is_binary(v.type.kind) || v.type.kind == Kind::guid || v.type.kind == Kind::vector) {
    out.bytes = v.bytes;
  } else if (is_string(v.type.kind)) {
    if (how == Conversion::assign && v.type.kind != Kind::xml)
      raise(257, 16, 3,
            fmt::format("Implicit conversion from data type {} to {} is not allowed. Use the CONVERT function to "
                        "run this query.",
                        type_name(v.type.kind), type_name(to.kind)),
            Reach::batch);
    out.bytes = text_as_binary(v, style);
  } else {
    out.bytes = number_bytes(v);
  }
  if (to.kind != Kind::binary && to.kind != Kind::varbinary && to.kind != Kind::rowversion) return out;
  const std::size_t room = to.kind == Kind::rowversion ? 8 : static_cast<std::size_t>(to.length);
  if (to.length == max_length) return out;
  if (out.bytes.size() > room) {
    const bool number = is_number(v.type.kind);
    if (how == Conversion::assign) throw Truncated{from_ascii("0x" + hex_text(out.bytes.substr(0, room)))};
    out.bytes = number ? out.bytes.substr(out.bytes.size() - room) : out.bytes.substr(0, room);
  }
  if (to.kind != Kind::varbinary && out.bytes.size() < room) {
    if (is_number(v.type.kind)) {
      out.bytes.insert(0, room - out.bytes.size(), '\0');
    } else {
      out.bytes.resize(room, '\0');
    }
  }
  return out;
}

}  // namespace rowferry::sandbox::engine
