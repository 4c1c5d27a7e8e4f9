#include "tds/wire/bulk_column.hpp"

#include <fmt/format.h>

#include "base/error.hpp"
#include "tds/wire/bulk_fixed.hpp"
#include "tds/wire/collation.hpp"
#include "tds/wire/type_info.hpp"
#include "tds/wire/values.hpp"

namespace rowferry::tds {

namespace {

using rows::TypeId;

constexpr std::size_t text_pointer_bytes = 16;
constexpr std::size_t text_head_bytes = 1 + text_pointer_bytes + 8 + 4;  // length, pointer, timestamp, data length
constexpr std::size_t variant_text_bytes_max = 8000;
constexpr std::size_t value_bytes_max = 0xFFFF'FF00;                 // one chunk
constexpr std::size_t variant_head_bytes = 2 + collation_bytes + 2;  // base type, property bytes, collation, length

[[noreturn]] void mismatch(const BulkColumn& column) {
  throw Error(Category::internal, "bulk_type",
              fmt::format("a column of type {} cannot be loaded from {}", type_name(column.meta.type),
                          rows::to_string(column.type)))
      .with_column(column.meta.name);
}

void need(const BulkColumn& column, bool agreed) {
  if (!agreed) mismatch(column);
}

void bind_integer(BulkWriter& writer) {
  const TypeId id = writer.column.type.id;
  switch (writer.column.meta.type.max_length) {
    case 1:
      need(writer.column, id == TypeId::uint8);
      return bulk::bind<bulk::Plain<std::uint8_t>>(writer);
    case 2:
      need(writer.column, id == TypeId::int16);
      return bulk::bind<bulk::Plain<std::int16_t>>(writer);
    case 4:
      need(writer.column, id == TypeId::int32);
      return bulk::bind<bulk::Plain<std::int32_t>>(writer);
    default:
      need(writer.column, id == TypeId::int64);
      return bulk::bind<bulk::Plain<std::int64_t>>(writer);
  }
}

void bind_decimal(BulkWriter& writer) {
  const TypeInfo& type = writer.column.meta.type;
  const rows::Type& logical = writer.column.type;
  need(writer.column, logical.id == TypeId::decimal && logical.scale == type.scale &&
                          type.max_length == decimal_bytes(type.precision));
  writer.magnitude_max = decimal::pow10(type.precision) - 1;
  switch (type.max_length) {
    case 5:
      return bulk::bind<bulk::DecimalOf<5>>(writer);
    case 9:
      return bulk::bind<bulk::DecimalOf<9>>(writer);
    case 13:
      return bulk::bind<bulk::DecimalOf<13>>(writer);
    default:
      return bulk::bind<bulk::DecimalOf<17>>(writer);
  }
}

template <int scale>
void bind_scale(BulkWriter& writer) {
  switch (writer.column.meta.type.id) {
    case DataType::time:
      return bulk::bind<bulk::Time<scale>>(writer);
    case DataType::datetime2:
      return bulk::bind<bulk::Timestamp<scale, 0>>(writer);
    default:
      return bulk::bind<bulk::Timestamp<scale, 2>>(writer);
  }
}

void bind_temporal(BulkWriter& writer) {
  const TypeInfo& type = writer.column.meta.type;
  const rows::Type& logical = writer.column.type;
  need(writer.column, logical.id == (type.id == DataType::time ? TypeId::time : TypeId::timestamp));
  need(writer.column, logical.unit == (type.scale > 6 ? rows::TimeUnit::hundred_nano : rows::TimeUnit::micro));
  switch (type.scale) {
    case 0:
      return bind_scale<0>(writer);
    case 1:
      return bind_scale<1>(writer);
    case 2:
      return bind_scale<2>(writer);
    case 3:
      return bind_scale<3>(writer);
    case 4:
      return bind_scale<4>(writer);
    case 5:
      return bind_scale<5>(writer);
    case 6:
      return bind_scale<6>(writer);
    default:
      return bind_scale<7>(writer);
  }
}

void bind_datetime(BulkWriter& writer) {
  const rows::Type& logical = writer.column.type;
  need(writer.column, logical.id == TypeId::timestamp && logical.unit == rows::TimeUnit::micro);
  if (writer.column.meta.type.max_length == 4) return bulk::bind<bulk::SmallDateTime>(writer);
  bulk::bind<bulk::DateTime>(writer);
}

// Characters and bytes of any length: what is done to them, and what stands around them.
void bind_variable(BulkWriter& writer) {
  const TypeInfo& type = writer.column.meta.type;
  const TypeId id = writer.column.type.id;
  const bool text = id == TypeId::text || id == TypeId::json;
  writer.bytes_max = type.plp() ? SIZE_MAX : type.max_length;
  writer.framing = type.plp() ? BulkFraming::plp : BulkFraming::short_length;
  switch (type.id) {
    case DataType::nchar:
    case DataType::nvarchar:
    case DataType::ntext:
      need(writer.column, text);
      writer.transform = BulkTransform::utf16;
      writer.pad_unit = ' ';
      writer.pad_unit_bytes = 2;
      break;
    case DataType::sql_variant:
      need(writer.column, text);
      writer.transform = BulkTransform::utf16;
      writer.framing = BulkFraming::variant;
      writer.bytes_max = variant_text_bytes_max;
      break;
    case DataType::bigchar:
    case DataType::bigvarchar:
    case DataType::text: {
      need(writer.column, text);
      const std::uint16_t page = code_page_or_throw(type.collation);
      if (page != code_page_utf8) {
        writer.transform = BulkTransform::code_page;
        writer.page = &text::CodePage::get(page);
      }
      writer.pad_unit = ' ';
      break;
    }
    default:
      need(writer.column, id == TypeId::binary);
      break;
  }
  if (type.id == DataType::text || type.id == DataType::ntext || type.id == DataType::image) {
    writer.framing = BulkFraming::text_pointer;
  }
  if (type.id == DataType::bigchar || type.id == DataType::nchar || type.id == DataType::bigbinary) {
    writer.pad_to = type.max_length;
  }
}

std::uint8_t* put_text_pointer(std::uint8_t* to, const BulkWriter::Piece& piece) noexcept {
  *to++ = static_cast<std::uint8_t>(text_pointer_bytes);
  std::memset(to, 0xFF, text_pointer_bytes + 8);
  to += text_pointer_bytes + 8;
  store_le(to, static_cast<std::uint32_t>(piece.size));
  std::memcpy(to + 4, piece.bytes, piece.size);
  return to + 4 + piece.size;
}

std::uint8_t* put_variant(std::uint8_t* to, const BulkWriter::Piece& piece, const Collation& collation) noexcept {
  store_le(to, static_cast<std::uint32_t>(variant_head_bytes + piece.size));
  to[4] = static_cast<std::uint8_t>(DataType::nvarchar);
  to[5] = static_cast<std::uint8_t>(collation_bytes + 2);
  store_collation(to + 6, collation);
  store_le(to + 6 + collation_bytes, static_cast<std::uint16_t>(variant_text_bytes_max));
  to += 4 + variant_head_bytes;
  std::memcpy(to, piece.bytes, piece.size);
  return to + piece.size;
}

// SQL_Latin1_General_CP1_CI_AS: text within a variant must name a collation.
constexpr Collation variant_collation = {.info = 0x00D00409, .sort_id = 52};

std::uint8_t* put_null(std::uint8_t* to, BulkFraming framing) noexcept {
  switch (framing) {
    case BulkFraming::short_length:
      store_le(to, std::uint16_t{0xFFFF});
      return to + 2;
    case BulkFraming::plp:
      store_le(to, plp_null);
      return to + 8;
    case BulkFraming::text_pointer:
      *to = 0;
      return to + 1;
    case BulkFraming::variant:
      store_le(to, std::uint32_t{0});
      return to + 4;
  }
  return to;
}

std::size_t null_bytes(BulkFraming framing) noexcept {
  switch (framing) {
    case BulkFraming::short_length:
      return 2;
    case BulkFraming::plp:
      return 8;
    case BulkFraming::text_pointer:
      return 1;
    case BulkFraming::variant:
      return 4;
  }
  return 0;
}

}  // namespace

std::size_t BulkWriter::framed_bytes(const Piece& piece) const noexcept {
  if (piece.bytes == nullptr) return null_bytes(framing);
  const std::size_t size = piece.size < pad_to ? pad_to : piece.size;
  switch (framing) {
    case BulkFraming::short_length:
      return 2 + size;
    case BulkFraming::plp:
      return plp_bytes(size);
    case BulkFraming::text_pointer:
      return text_head_bytes + size;
    case BulkFraming::variant:
      return 4 + variant_head_bytes + size;
  }
  return 0;
}

std::size_t BulkWriter::prepare(const rows::ColumnView& view, std::size_t row, std::size_t n) {
  static constexpr std::uint8_t some = 0;  // a place to point at for values without bytes, or not yet in their place
  pieces.resize(n);
  scratch.clear();
  for (std::size_t i = 0; i < n; ++i) {
    if (!view.valid(row + i)) {
      pieces[i] = {nullptr, 0};
      continue;
    }
    const ByteView value = view.bytes(row + i);
    std::size_t size = value.size();
    if (transform == BulkTransform::utf16) {
      std::uint8_t* const to = scratch.extend(2 * value.size());
      size = text::write_utf16le(to, as_text(value));
      scratch.resize(static_cast<std::size_t>(to - scratch.data()) + size);
    } else if (transform == BulkTransform::code_page) {
      const std::size_t before = scratch.size();
      if (page->encode(scratch, as_text(value)) != text::npos) return i;
      size = scratch.size() - before;
    }
    if (size > bytes_max || size > value_bytes_max) return i;
    pieces[i] = {transform == BulkTransform::none && size != 0 ? value.data() : &some, size};
  }
  if (transform == BulkTransform::none) return n;
  // The scratch grows no more: now its places are known.
  const std::uint8_t* at = scratch.data();
  for (Piece& piece : pieces) {
    if (piece.size == 0) continue;
    piece.bytes = at;
    at += piece.size;
  }
  return n;
}

void BulkWriter::put_pieces(std::uint8_t** at) const noexcept {
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    const Piece& piece = pieces[i];
    std::uint8_t* to = at[i];
    if (piece.bytes == nullptr) {
      at[i] = put_null(to, framing);
      continue;
    }
    switch (framing) {
      case BulkFraming::short_length: {
        const std::size_t size = piece.size < pad_to ? pad_to : piece.size;
        store_le(to, static_cast<std::uint16_t>(size));
        to += 2;
        std::memcpy(to, piece.bytes, piece.size);
        for (std::size_t k = piece.size; k < size; k += pad_unit_bytes) std::memcpy(to + k, &pad_unit, pad_unit_bytes);
        at[i] = to + size;
        break;
      }
      case BulkFraming::plp:
        at[i] = store_plp(to, piece.bytes, piece.size);
        break;
      case BulkFraming::text_pointer:
        at[i] = put_text_pointer(to, piece);
        break;
      case BulkFraming::variant:
        at[i] = put_variant(to, piece, variant_collation);
        break;
    }
  }
}

BulkWriter bind_bulk_writer(BulkColumn column) {
  BulkWriter writer;
  writer.column = std::move(column);
  const TypeId id = writer.column.type.id;
  const bool four = writer.column.meta.type.max_length == 4;
  switch (writer.column.meta.type.id) {
    case DataType::intn:
      bind_integer(writer);
      break;
    case DataType::bitn:
      need(writer.column, id == TypeId::boolean);
      bulk::bind<bulk::Bit>(writer);
      break;
    case DataType::fltn:
      need(writer.column, id == (four ? TypeId::float32 : TypeId::float64));
      four ? bulk::bind<bulk::Real>(writer) : bulk::bind<bulk::Float>(writer);
      break;
    case DataType::moneyn:
      need(writer.column, id == TypeId::decimal && writer.column.type.scale == 4);
      four ? bulk::bind<bulk::SmallMoney>(writer) : bulk::bind<bulk::Money>(writer);
      break;
    case DataType::datetimn:
      bind_datetime(writer);
      break;
    case DataType::guid:
      need(writer.column, id == TypeId::uuid);
      bulk::bind<bulk::Guid>(writer);
      break;
    case DataType::date:
      need(writer.column, id == TypeId::date);
      bulk::bind<bulk::Date>(writer);
      break;
    case DataType::time:
    case DataType::datetime2:
    case DataType::datetimeoffset:
      bind_temporal(writer);
      break;
    case DataType::decimaln:
    case DataType::numericn:
      bind_decimal(writer);
      break;
    case DataType::bigchar:
    case DataType::bigvarchar:
    case DataType::nchar:
    case DataType::nvarchar:
    case DataType::bigbinary:
    case DataType::bigvarbinary:
    case DataType::text:
    case DataType::ntext:
    case DataType::image:
    case DataType::sql_variant:
      bind_variable(writer);
      break;
    default:  // forms that a bulk load does not know, or that bulk_form() never makes
      mismatch(writer.column);
  }
  return writer;
}

}  // namespace rowferry::tds
