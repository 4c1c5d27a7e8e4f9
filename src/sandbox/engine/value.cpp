#include "sandbox/engine/value.hpp"

#include <algorithm>
#include <bit>

#include "sandbox/engine/collation.hpp"

namespace rowferry::sandbox::engine {

using tds::DataType;

Value Value::of_null(const Type& type) {
  Value v;
  v.type = type;
  return v;
}

Value Value::of_int(std::int64_t number, Kind kind) {
  Value v;
  v.type = make_type(kind);
  v.null = false;
  v.number = number;
  return v;
}

Value Value::of_text(std::u16string text, const Type& type) {
  Value v;
  v.type = type;
  v.null = false;
  v.text = std::move(text);
  return v;
}

Value Value::of_text(std::string_view utf8, const Type& type) { return of_text(widen(utf8), type); }

Value Value::of_name(std::string_view utf8) { return of_text(widen(utf8), sysname_type(default_collation())); }

Value Value::of_bytes(std::string bytes, const Type& type) {
  Value v;
  v.type = type;
  v.null = false;
  v.bytes = std::move(bytes);
  return v;
}

std::int64_t ticks_from_300ths(std::uint32_t v) {
  return (static_cast<std::int64_t>(v) * 100'000 * 2 + 3) / 6;  // v * 100000 / 3, rounded
}

std::uint32_t ticks_to_300ths(std::int64_t ticks) {
  return static_cast<std::uint32_t>((ticks * 3 * 2 + 100'000) / 200'000);
}

namespace {

constexpr std::int64_t ticks_unit(int scale) {
  std::int64_t unit = 1;
  for (int i = scale; i < 7; ++i) unit *= 10;
  return unit;
}

void put_number(Int128 number, std::size_t size, ByteBuffer& out) { std::memcpy(out.extend(size), &number, size); }

void put_decimal(const Value& v, ByteBuffer& out) {
  const auto size = static_cast<std::size_t>(decimal_bytes(v.type.precision));
  out.push(v.number < 0 ? 0 : 1);
  const UInt128 magnitude = magnitude_of(v.number);
  std::memcpy(out.extend(size - 1), &magnitude, size - 1);
}

void put_money(const Value& v, std::size_t size, ByteBuffer& out) {
  const auto number = static_cast<std::int64_t>(v.number);
  if (size == 4) return out.put_le(static_cast<std::int32_t>(number));
  out.put_le(static_cast<std::int32_t>(number >> 32U));
  out.put_le(static_cast<std::uint32_t>(number));
}

void put_time(const Value& v, ByteBuffer& out) {
  const std::int64_t units = v.ticks / ticks_unit(v.type.scale);
  std::memcpy(out.extend(static_cast<std::size_t>(time_bytes(v.type.scale))), &units,
              static_cast<std::size_t>(time_bytes(v.type.scale)));
}

void put_date(std::int32_t days, ByteBuffer& out) { std::memcpy(out.extend(3), &days, 3); }

// The bare bytes of types whose size follows from the type.
void put_scalar(const Value& v, ByteBuffer& out) {
  switch (v.type.kind) {
    case Kind::bit:
    case Kind::tinyint:
      return put_number(v.number, 1, out);
    case Kind::smallint:
      return put_number(v.number, 2, out);
    case Kind::integer:
      return put_number(v.number, 4, out);
    case Kind::bigint:
      return put_number(v.number, 8, out);
    case Kind::smallmoney:
      return put_money(v, 4, out);
    case Kind::money:
      return put_money(v, 8, out);
    case Kind::decimal:
    case Kind::numeric:
      return put_decimal(v, out);
    case Kind::real:
      return out.put_le(static_cast<float>(v.real));
    case Kind::float8:
      return out.put_le(v.real);
    case Kind::guid:
      return out.append(v.bytes);
    case Kind::date:
      return put_date(v.days, out);
    case Kind::time:
      return put_time(v, out);
    case Kind::datetime2:
      put_time(v, out);
      return put_date(v.days, out);
    case Kind::datetimeoffset:
      put_time(v, out);
      put_date(v.days, out);
      return out.put_le(v.offset);
    case Kind::datetime:
      out.put_le(v.days - days_1900);
      return out.put_le(ticks_to_300ths(v.ticks));
    case Kind::smalldatetime:
      out.put_le(static_cast<std::uint16_t>(v.days - days_1900));
      return out.put_le(static_cast<std::uint16_t>(v.ticks / (60 * ticks_per_second)));
    default:
      return;
  }
}

std::string long_bytes(const Value& v) {
  if (v.type.kind == Kind::json) return narrow(v.text);
  if (is_unicode(v.type.kind)) {
    std::string out(v.text.size() * 2, '\0');
    std::memcpy(out.data(), v.text.data(), out.size());
    return out;
  }
  if (is_string(v.type.kind)) return to_code_page(v.text, v.type.collation);
  return v.bytes;
}

void put_null(Framing framing, ByteBuffer& out) {
  switch (framing) {
    case Framing::fixed:
    case Framing::length8:
    case Framing::text_pointer:
      return out.push(0);
    case Framing::length16:
      return out.put_le(std::uint16_t{0xFFFF});
    case Framing::length32:
      return out.put_le(std::uint32_t{0});
    case Framing::plp:
      return out.put_le(~std::uint64_t{0});
  }
}

}  // namespace

void put_plp(std::string_view bytes, ByteBuffer& out) {
  out.put_le(static_cast<std::uint64_t>(bytes.size()));
  if (!bytes.empty()) {
    out.put_le(static_cast<std::uint32_t>(bytes.size()));
    out.append(bytes);
  }
  out.put_le(std::uint32_t{0});
}

void encode_value(const Value& value, const tds::TypeInfo& info, ByteBuffer& out) {
  const Framing framing = framing_of(info);
  if (value.null) return put_null(framing, out);
  switch (framing) {
    case Framing::fixed:
      return put_scalar(value, out);
    case Framing::length8: {
      const std::size_t at = out.size();
      out.push(0);
      put_scalar(value, out);
      out.data()[at] = static_cast<std::uint8_t>(out.size() - at - 1);
      return;
    }
    case Framing::length16: {
      const std::string bytes = long_bytes(value);
      out.put_le(static_cast<std::uint16_t>(bytes.size()));
      return out.append(bytes);
    }
    case Framing::length32:
      out.put_le(static_cast<std::uint32_t>(value.bytes.size()));
      return out.append(value.bytes);
    case Framing::plp:
      return put_plp(long_bytes(value), out);
    case Framing::text_pointer: {
      const std::string bytes = long_bytes(value);
      out.push(16);
      out.fill(0, 24);
      out.put_le(static_cast<std::uint32_t>(bytes.size()));
      return out.append(bytes);
    }
  }
}

std::string value_bytes(const tds::TypeInfo& info, Framing framing, const std::uint8_t* at) {
  std::string out;
  const auto take = [&](const std::uint8_t* from, std::size_t n) {
    out.append(reinterpret_cast<const char*>(from), n);
  };
  switch (framing) {
    case Framing::fixed:
      take(at, fixed_size(info.id));
      break;
    case Framing::length8:
      take(at + 1, *at);
      break;
    case Framing::length16:
      take(at + 2, load_le<std::uint16_t>(at));
      break;
    case Framing::length32:
      take(at + 4, load_le<std::uint32_t>(at));
      break;
    case Framing::text_pointer: {
      const std::uint8_t* length = at + 1 + *at + 8;
      take(length + 4, load_le<std::uint32_t>(length));
      break;
    }
    case Framing::plp:
      for (const std::uint8_t* chunk = at + 8;;) {
        const auto size = load_le<std::uint32_t>(chunk);
        if (size == 0) break;
        take(chunk + 4, size);
        chunk += 4 + size;
      }
  }
  return out;
}

Int128 stored_integer(const std::uint8_t* at, std::size_t size) {
  switch (size) {
    case 1:
      return *at;  // bit and tinyint are unsigned
    case 2:
      return load_le<std::int16_t>(at);
    case 4:
      return load_le<std::int32_t>(at);
    default:
      return load_le<std::int64_t>(at);
  }
}

namespace {

std::int64_t unsigned_number(const std::uint8_t* at, std::size_t size) {
  std::int64_t number = 0;
  std::memcpy(&number, at, size);
  return number;
}

void get_decimal(Value& v, const std::uint8_t* at, std::size_t size) {
  UInt128 magnitude = 0;
  std::memcpy(&magnitude, at + 1, std::min<std::size_t>(size - 1, 16));
  v.number = *at == 0 ? -static_cast<Int128>(magnitude) : static_cast<Int128>(magnitude);
}

void get_scalar(Value& v, const std::uint8_t* at, std::size_t size) {
  switch (v.type.kind) {
    case Kind::bit:
    case Kind::tinyint:
    case Kind::smallint:
    case Kind::integer:
    case Kind::bigint:
      v.number = stored_integer(at, size);
      break;
    case Kind::smallmoney:
      v.number = load_le<std::int32_t>(at);
      break;
    case Kind::money:
      v.number = static_cast<std::int64_t>((static_cast<std::uint64_t>(load_le<std::uint32_t>(at)) << 32U) |
                                           load_le<std::uint32_t>(at + 4));
      break;
    case Kind::decimal:
    case Kind::numeric:
      get_decimal(v, at, size);
      break;
    case Kind::real:
      v.real = load_le<float>(at);
      break;
    case Kind::float8:
      v.real = load_le<double>(at);
      break;
    case Kind::date:
      v.days = static_cast<std::int32_t>(unsigned_number(at, 3));
      break;
    case Kind::time:
    case Kind::datetime2:
    case Kind::datetimeoffset: {
      const auto time = static_cast<std::size_t>(time_bytes(v.type.scale));
      v.ticks = unsigned_number(at, time) * ticks_unit(v.type.scale);
      if (v.type.kind != Kind::time) v.days = static_cast<std::int32_t>(unsigned_number(at + time, 3));
      if (v.type.kind == Kind::datetimeoffset) v.offset = load_le<std::int16_t>(at + time + 3);
      break;
    }
    case Kind::datetime:
      v.days = load_le<std::int32_t>(at) + days_1900;
      v.ticks = ticks_from_300ths(load_le<std::uint32_t>(at + 4));
      break;
    case Kind::smalldatetime:
      v.days = load_le<std::uint16_t>(at) + days_1900;
      v.ticks = load_le<std::uint16_t>(at + 2) * 60 * ticks_per_second;
      break;
    default:
      v.bytes.assign(reinterpret_cast<const char*>(at), size);
  }
}

std::u16string utf16_of(std::string_view bytes) {
  std::u16string text(bytes.size() / 2, u'\0');
  std::memcpy(text.data(), bytes.data(), text.size() * 2);
  return text;
}

}  // namespace

Value decode_value(const Type& type, const tds::TypeInfo& info, const std::uint8_t* at) {
  Value v = Value::of_null(type);
  const Framing framing = framing_of(info);
  if (value_is_null(framing, at)) return v;
  v.null = false;
  if (framing == Framing::fixed || framing == Framing::length8) {
    get_scalar(v, framing == Framing::fixed ? at : at + 1, framing == Framing::fixed ? fixed_size(info.id) : *at);
    return v;
  }
  std::string bytes = value_bytes(info, framing, at);
  if (type.kind == Kind::json) {
    v.text = widen(bytes);
  } else if (is_unicode(type.kind)) {
    v.text = utf16_of(bytes);
  } else if (is_string(type.kind)) {
    v.text = from_code_page(bytes, type.collation);
  } else {
    v.bytes = std::move(bytes);
  }
  return v;
}

Value variant_content(std::string_view inner) {
  const auto* at = reinterpret_cast<const std::uint8_t*>(inner.data());
  tds::TypeInfo info;
  info.id = static_cast<DataType>(at[0]);
  const std::size_t props = at[1];
  const std::uint8_t* data = at + 2 + props;
  const std::size_t size = inner.size() - 2 - props;
  if (props == 1) info.scale = at[2];
  if (info.id == DataType::decimaln || info.id == DataType::numericn) {
    info.precision = at[2];
    info.scale = at[3];
  } else if (props == 2) {
    info.max_length = load_le<std::uint16_t>(at + 2);
  } else if (props == 7) {
    info.collation = {load_le<std::uint32_t>(at + 2), at[6]};
    info.max_length = load_le<std::uint16_t>(at + 7);
  }
  const auto type = from_wire(info);
  if (!type) return Value::of_null(make_type(Kind::variant));
  Value v = Value::of_null(*type);
  v.null = false;
  if (is_unicode(type->kind)) {
    v.text = utf16_of({reinterpret_cast<const char*>(data), size});
  } else if (is_string(type->kind)) {
    v.text = from_code_page({reinterpret_cast<const char*>(data), size}, type->collation);
  } else {
    get_scalar(v, data, size);
  }
  return v;
}

std::string variant_inner(const Value& value) {
  const tds::TypeInfo info = sent_form(value.type, false);
  ByteBuffer out;
  out.push(static_cast<std::uint8_t>(info.id));
  switch (framing_of(info)) {
    case Framing::length16:
      out.push(is_string(value.type.kind) ? 7 : 2);
      if (is_string(value.type.kind)) {
        out.put_le(info.collation.info);
        out.push(info.collation.sort_id);
      }
      out.put_le(static_cast<std::uint16_t>(info.max_length));
      out.append(long_bytes(value));
      break;
    default:
      if (is_decimal(value.type.kind)) {
        out.push(2);
        out.push(value.type.precision);
        out.push(value.type.scale);
      } else if (value.type.kind == Kind::time || value.type.kind == Kind::datetime2 ||
                 value.type.kind == Kind::datetimeoffset) {
        out.push(1);
        out.push(value.type.scale);
      } else {
        out.push(0);
      }
      put_scalar(value, out);
  }
  return std::string(as_text(out.view()));
}

std::u16string widen(std::string_view in) {
  std::u16string out;
  out.reserve(in.size());
  for (std::size_t i = 0; i < in.size();) {
    const auto byte = [&](std::size_t k) { return static_cast<std::uint8_t>(in[i + k]); };
    const std::uint8_t lead = byte(0);
    const std::size_t length = lead < 0x80                   ? 1
                               : lead >= 0xF0 && lead < 0xF5 ? 4
                               : lead >= 0xE0 && lead < 0xF0 ? 3
                               : lead >= 0xC2 && lead < 0xE0 ? 2
                                                             : 0;
    bool good = length != 0 && i + length <= in.size();
    for (std::size_t k = 1; good && k < length; ++k) good = (byte(k) & 0xC0U) == 0x80;
    if (!good) {
      out.push_back(u'\uFFFD');
      ++i;
      continue;
    }
    char32_t c = length == 1 ? lead : lead & (0x7FU >> length);
    for (std::size_t k = 1; k < length; ++k) c = (c << 6U) | (byte(k) & 0x3FU);
    if (c >= 0x10000) {
      c -= 0x10000;
      out.push_back(static_cast<char16_t>(0xD800 + (c >> 10U)));
      out.push_back(static_cast<char16_t>(0xDC00 + (c & 0x3FFU)));
    } else {
      out.push_back(static_cast<char16_t>(c));
    }
    i += length;
  }
  return out;
}

std::string narrow(std::u16string_view in) {
  std::string out;
  out.reserve(in.size());
  for (std::size_t i = 0; i < in.size(); ++i) {
    char32_t c = in[i];
    if (c >= 0xD800 && c < 0xDC00 && i + 1 < in.size() && in[i + 1] >= 0xDC00 && in[i + 1] < 0xE000)
      c = 0x10000 + ((c - 0xD800) << 10U) + (in[++i] - 0xDC00U);
    const auto put = [&](char32_t b) { out.push_back(static_cast<char>(b)); };
    if (c < 0x80) {
      put(c);
    } else if (c < 0x800) {
      put(0xC0 | (c >> 6U));
      put(0x80 | (c & 0x3FU));
    } else if (c < 0x10000) {
      put(0xE0 | (c >> 12U));
      put(0x80 | ((c >> 6U) & 0x3FU));
      put(0x80 | (c & 0x3FU));
    } else {
      put(0xF0 | (c >> 18U));
      put(0x80 | ((c >> 12U) & 0x3FU));
      put(0x80 | ((c >> 6U) & 0x3FU));
      put(0x80 | (c & 0x3FU));
    }
  }
  return out;
}

}  // namespace rowferry::sandbox::engine
