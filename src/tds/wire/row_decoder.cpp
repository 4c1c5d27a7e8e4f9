#include "tds/wire/row_decoder.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.hpp"
#include "base/limits.hpp"
#include "base/text.hpp"
#include "rows/format.hpp"
#include "tds/wire/collation.hpp"
#include "tds/wire/column_decode.hpp"
#include "tds/wire/logical_type.hpp"

namespace rowferry::tds {

namespace {

constexpr std::size_t variant_bytes_max = 8100;            // 8016 and headroom; a longer one is a framing error
constexpr std::size_t long_value_bytes_max = 0x7FFF'FFFF;  // offsets of a Batch are int32
constexpr std::size_t slow_rows = 16;                      // decoded one by one after a row that was not for FastRows
constexpr std::size_t text_pointer_tail = 8 + sizeof(std::uint32_t);  // timestamp, length

rows::SchemaPtr schema_of(const std::vector<ColumnMeta>& columns) {
  auto schema = std::make_shared<rows::Schema>();
  for (const ColumnMeta& column : columns) {
    const bool nullable = (column.flags & (flag_nullable | flag_nullability_unknown)) != 0;
    schema->fields.push_back({column.name, logical_type(column), nullable});
  }
  return schema;
}

}  // namespace

Parsed skip_value(ByteReader& from, const TypeInfo& type) {
  const auto done = [&] { return from.failed() ? Parsed::need_more : Parsed::ok; };
  switch (framing(type)) {
    case Framing::none:
      return Parsed::ok;
    case Framing::fixed:
      from.skip(fixed_bytes(type.id));
      return done();
    case Framing::byte_length:
      from.skip(from.u8());
      return done();
    case Framing::short_length: {
      const std::uint16_t length = from.u16();
      if (length != 0xFFFF) from.skip(length);
      return done();
    }
    case Framing::long_length:
      from.skip(from.u32());
      return done();
    case Framing::text_pointer: {
      const std::uint8_t pointer = from.u8();
      if (pointer == 0) return done();
      from.skip(std::size_t{pointer} + 8);
      from.skip(from.u32());
      return done();
    }
    case Framing::plp:
      break;
  }
  PlpReader plp;
  ByteView piece;
  while (true) {
    switch (plp.next(from, piece)) {
      case PlpReader::Step::need_more:
        return Parsed::need_more;
      case PlpReader::Step::malformed:
        return Parsed::malformed;
      case PlpReader::Step::piece:
        break;
      case PlpReader::Step::end:
      case PlpReader::Step::null:
        return Parsed::ok;
    }
  }
}

struct RowDecoder::Column : DecodeColumn {
  const ColumnMeta* meta = nullptr;
  Framing framing = Framing::none;
  std::size_t fixed = 0;
  Decode decode = nullptr;
};

RowDecoder::RowDecoder(std::vector<ColumnMeta> columns, std::vector<rows::ColumnLoss*> losses, std::size_t batch_bytes)
    : metadata_(std::move(columns)),
      schema_(schema_of(metadata_)),
      columns_(metadata_.size()),
      pool_(rows::BatchPool::make(schema_)),
      batch_bytes_(batch_bytes),
      bitmap_((metadata_.size() + 7) / 8) {
  for (std::size_t i = 0; i < columns_.size(); ++i) {
    Column& column = columns_[i];
    column.meta = &metadata_[i];
    column.name = &metadata_[i].name;
    column.framing = tds::framing(metadata_[i].type);
    column.fixed = fixed_bytes(metadata_[i].type.id);
    column.loss = i < losses.size() ? losses[i] : nullptr;
    column.decode = bind_decode(metadata_[i].type, schema_->fields[i].type, column);
    fast_.add(metadata_[i].type, schema_->fields[i].type, column);
  }
}

RowDecoder::RowDecoder(std::vector<ColumnMeta> columns)
    : metadata_(std::move(columns)),
      columns_(metadata_.size()),
      batch_bytes_(SIZE_MAX),
      bitmap_((metadata_.size() + 7) / 8),
      skipping_(true) {
  for (std::size_t i = 0; i < columns_.size(); ++i) {
    columns_[i].meta = &metadata_[i];
    columns_[i].name = &metadata_[i].name;
    columns_[i].framing = tds::framing(metadata_[i].type);
    columns_[i].fixed = fixed_bytes(metadata_[i].type.id);
  }
}

RowDecoder::~RowDecoder() = default;

void RowDecoder::discard() noexcept {
  skipping_ = true;
  batch_.reset();
  batch_rows_ = 0;
}

bool RowDecoder::null_in_bitmap(std::size_t column) const noexcept {
  return ((bitmap_[column / 8] >> (column % 8)) & 1U) != 0;
}

RowProgress RowDecoder::rows(ByteView bytes) {
  const std::uint8_t* at = bytes.data();
  const std::uint8_t* const end = at + bytes.size();
  const auto progress = [&](RowProgress::Status status) {
    return RowProgress{status, static_cast<std::size_t>(at - bytes.data())};
  };
  while (at != end) {
    if (!in_row_) {
      if (*at != static_cast<std::uint8_t>(Token::row) && *at != static_cast<std::uint8_t>(Token::nbc_row)) break;
      if (batch_rows_ != 0 && batch_wire_bytes_ >= batch_bytes_) return progress(RowProgress::Status::paused);
    }
    const std::uint8_t* const began = at;
    if (!in_row_ && !skipping_ && fast_.usable() && slow_rows_ == 0) {
      fast_rows(at, end);
      if (at != began) continue;
      slow_rows_ = slow_rows;
    }
    const Step step = row(at, end);
    batch_wire_bytes_ += static_cast<std::size_t>(at - began);
    // A row that is cut says nothing of the next.
    slow_rows_ = step == Step::need_more || slow_rows_ == 0 ? 0 : slow_rows_ - 1;
    if (step == Step::malformed) return progress(RowProgress::Status::malformed);
    if (step == Step::need_more) return progress(RowProgress::Status::need_more);
  }
  return progress(RowProgress::Status::ok);
}

void RowDecoder::begin_batch() {
  batch_ = pool_->take();
  batch_rows_ = 0;
  batch_wire_bytes_ = 0;
  for (std::size_t i = 0; i < columns_.size(); ++i) {
    columns_[i].buffer = &batch_->buffer(i);
    columns_[i].rows_before = rows_taken_;
  }
  fast_.begin(*batch_);
}

// As many rows as are whole and plain, up to the batch's size.
void RowDecoder::fast_rows(const std::uint8_t*& at, const std::uint8_t* end) {
  if (!batch_) begin_batch();
  const std::uint8_t* const began = at;
  const std::size_t rows = fast_.rows(at, end, batch_rows_, batch_bytes_ - batch_wire_bytes_);
  batch_wire_bytes_ += static_cast<std::size_t>(at - began);
  batch_rows_ += rows;
  rows_seen_ += rows;
}

RowDecoder::Step RowDecoder::begin_row(const std::uint8_t*& at, const std::uint8_t* end) {
  with_bitmap_ = *at == static_cast<std::uint8_t>(Token::nbc_row);
  const std::size_t size = with_bitmap_ ? bitmap_.size() : 0;
  if (static_cast<std::size_t>(end - at) < 1 + size) return Step::need_more;
  std::copy_n(at + 1, size, bitmap_.begin());
  at += 1 + size;
  in_row_ = true;
  column_ = 0;
  if (!batch_ && !skipping_) begin_batch();
  return Step::ok;
}

RowDecoder::Step RowDecoder::row(const std::uint8_t*& at, const std::uint8_t* end) {
  if (!in_row_) {
    if (const Step step = begin_row(at, end); step != Step::ok) return step;
  }
  for (; column_ < columns_.size(); ++column_) {
    Column& column = columns_[column_];
    if (with_bitmap_ && null_in_bitmap(column_)) {
      store_null(column);
      continue;
    }
    if (const Step step = value(column, at, end); step != Step::ok) return step;
  }
  in_row_ = false;
  ++rows_seen_;
  if (!skipping_) ++batch_rows_;
  return Step::ok;
}

// Advances `at` only past a whole value (or, within a long one, past what was gathered of it).
RowDecoder::Step RowDecoder::value(Column& column, const std::uint8_t*& at, const std::uint8_t* end) {
  const auto left = static_cast<std::size_t>(end - at);
  std::size_t prefix = 0;
  std::size_t length = 0;
  switch (column.framing) {
    case Framing::fixed:
      length = column.fixed;
      break;
    case Framing::byte_length:
      if (left < 1) return Step::need_more;
      prefix = 1;
      length = at[0];
      if (length == 0) {
        at += 1;
        store_null(column);
        return Step::ok;
      }
      break;
    case Framing::short_length:
      if (left < 2) return Step::need_more;
      prefix = 2;
      length = load_le<std::uint16_t>(at);
      if (length == 0xFFFF) {
        at += 2;
        store_null(column);
        return Step::ok;
      }
      break;
    case Framing::long_length:
      if (left < 4) return Step::need_more;
      prefix = 4;
      length = load_le<std::uint32_t>(at);
      if (length > variant_bytes_max) return bad(column, "a sql_variant is too long");
      if (length == 0) {
        at += 4;
        store_null(column);
        return Step::ok;
      }
      break;
    case Framing::text_pointer:
      return gather_text(column, at, end);
    case Framing::plp:
      return gather_plp(column, at, end);
    case Framing::none:
      store_null(column);
      return Step::ok;
  }
  if (left < prefix + length) return Step::need_more;
  const Step step = store(column, {at + prefix, length});
  if (step == Step::ok) at += prefix + length;
  return step;
}

RowDecoder::Step RowDecoder::gather_plp(Column& column, const std::uint8_t*& at, const std::uint8_t* end) {
  const auto left = static_cast<std::size_t>(end - at);
  if (!in_long_value_ && left >= 16) {
    // The usual value: its size said, one chunk, all of it here.
    const auto total = load_le<std::uint64_t>(at);
    const auto chunk = load_le<std::uint32_t>(at + 8);
    if (total == chunk && chunk != 0 && left - 16 >= chunk && load_le<std::uint32_t>(at + 12 + chunk) == 0) {
      const Step step = store(column, {at + 12, chunk});
      if (step == Step::ok) at += 16 + std::size_t{chunk};
      return step;
    }
  }
  ByteReader from(ByteView(at, left));
  ByteView piece;
  while (true) {
    const PlpReader::Step step = plp_.next(from, piece);
    at = end - from.left();
    switch (step) {
      case PlpReader::Step::need_more:
        in_long_value_ = true;
        return Step::need_more;
      case PlpReader::Step::malformed:
        return bad(column, "the chunks of a long value do not add up to its size");
      case PlpReader::Step::piece:
        in_long_value_ = true;
        if (skipping_) break;
        if (long_value_.size() + piece.size() > long_value_bytes_max) return bad(column, "a value passes 2 GiB");
        long_value_.append(piece);
        break;
      case PlpReader::Step::null:
        store_null(column);
        return Step::ok;
      case PlpReader::Step::end:
        return gathered(column);
    }
  }
}

RowDecoder::Step RowDecoder::gather_text(Column& column, const std::uint8_t*& at, const std::uint8_t* end) {
  if (!in_long_value_) {
    if (at == end) return Step::need_more;
    const std::size_t head = 1 + std::size_t{at[0]} + text_pointer_tail;
    if (at[0] == 0) {
      at += 1;
      store_null(column);
      return Step::ok;
    }
    if (static_cast<std::size_t>(end - at) < head) return Step::need_more;
    text_left_ = load_le<std::uint32_t>(at + head - sizeof(std::uint32_t));
    if (text_left_ > long_value_bytes_max) return bad(column, "a value passes 2 GiB");
    at += head;
    in_long_value_ = true;
  }
  const auto n = std::min<std::size_t>(text_left_, static_cast<std::size_t>(end - at));
  if (!skipping_) long_value_.append(ByteView(at, n));
  at += n;
  text_left_ -= n;
  return text_left_ == 0 ? gathered(column) : Step::need_more;
}

RowDecoder::Step RowDecoder::gathered(Column& column) {
  in_long_value_ = false;
  const Step step = store(column, long_value_.view());
  if (long_value_.capacity() > 4 * limits::batch_bytes) {
    long_value_ = ByteBuffer();
  } else {
    long_value_.clear();
  }
  return step;
}

RowDecoder::Step RowDecoder::store(Column& column, ByteView bytes) {
  if (skipping_) return Step::ok;
  try {
    if (column.decode(column, batch_rows_, bytes)) return Step::ok;
  } catch (Error& error) {
    error.with_column(*column.name);
    error.with_row(rows_taken_ + batch_rows_ + 1);
    error.with_hint(key_of_row());
    error_ = std::current_exception();
    discard();
    return Step::ok;
  } catch (...) {
    error_ = std::current_exception();
    discard();
    return Step::ok;
  }
  return bad(column, "a value does not have the form of its type");
}

// "the row has id = 42": of the columns before the one at hand.
std::string RowDecoder::key_of_row() const {
  std::string text;
  for (const std::size_t i : key_) {
    if (i >= column_) continue;
    const rows::Field& field = schema_->fields[i];
    text += fmt::format("{}{} = {}", text.empty() ? "the row has " : ", ", field.name,
                        cut_for_message(rows::value_text(field.type, columns_[i].buffer->view(), batch_rows_),
                                        limits::error_value_chars));
  }
  return text;
}

void RowDecoder::store_null(Column& column) {
  if (!skipping_) column.buffer->append_null(column.id, batch_rows_);
}

RowDecoder::Step RowDecoder::bad(const Column& column, const char* what) {
  why_ = fmt::format("{} (column \"{}\", {})", what, *column.name, type_name(column.meta->type));
  return Step::malformed;
}

rows::BatchPtr RowDecoder::take() {
  if (!batch_ || batch_rows_ == 0) return nullptr;
  assert(!in_row_);
  batch_->seal(batch_rows_);
  batch_->first_row = rows_taken_;
  rows_taken_ += batch_rows_;
  batch_rows_ = 0;
  return std::move(batch_);
}

}  // namespace rowferry::tds
