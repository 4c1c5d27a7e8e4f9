// ROW and NBCROW tokens (MS-TDS 2.2.7.19, 2.2.7.14) decoded straight into the columns of a Batch.
#pragma once

#include <exception>
#include <memory>
#include <vector>

#include "rows/batch.hpp"
#include "rows/loss.hpp"
#include "tds/wire/fast_rows.hpp"
#include "tds/wire/tokens.hpp"
#include "tds/wire/type_info.hpp"
#include "tds/wire/values.hpp"

namespace rowferry::tds {

// Skips one framed value that lies whole in `from`.
Parsed skip_value(ByteReader& from, const TypeInfo& type);

// Bound once to the columns of a result. Resumable at every byte: a row may be cut anywhere. Long values (PLP, text)
// are gathered as they come; what a sender says of their size beforehand is not trusted with memory.
//
// A value that cannot be held (text with an unpaired surrogate, a byte outside the code page, binary XML) goes by the
// column's ColumnLoss; where that throws, or there is none, error() holds the first such error, and the rest of the
// result is skipped, so that the reply can be read to its end. Bytes that are no value at all are malformed.
class RowDecoder {
 public:
  // `losses` may be shorter than the columns and hold null; not owned. Throws what logical_type() throws.
  RowDecoder(std::vector<ColumnMeta> columns, std::vector<rows::ColumnLoss*> losses, std::size_t batch_bytes);
  // Reads past every row, whatever its types: for results that nobody wants.
  explicit RowDecoder(std::vector<ColumnMeta> columns);
  ~RowDecoder();
  RowDecoder(const RowDecoder&) = delete;
  RowDecoder& operator=(const RowDecoder&) = delete;

  const rows::SchemaPtr& schema() const noexcept { return schema_; }  // null when it only reads past
  const std::vector<ColumnMeta>& metadata() const noexcept { return metadata_; }

  // Columns whose values name a row in an error, where they stand before the column that has it.
  void name_rows_by(std::vector<std::size_t> key) { key_ = std::move(key); }
  // As TokenSink::on_rows. `paused` when the batch has reached batch_bytes: take() it.
  RowProgress rows(ByteView bytes);
  // The rows decoded since the last take(), sealed; null when there are none.
  rows::BatchPtr take();
  // From here on rows are read past.
  void discard() noexcept;

  std::exception_ptr error() const noexcept { return error_; }
  const std::string& why() const noexcept { return why_; }  // after malformed
  std::uint64_t rows_seen() const noexcept { return rows_seen_; }

  struct Column;

 private:
  enum class Step : std::uint8_t { ok, need_more, malformed };
  Step row(const std::uint8_t*& at, const std::uint8_t* end);
  void begin_batch();
  void fast_rows(const std::uint8_t*& at, const std::uint8_t* end);
  Step begin_row(const std::uint8_t*& at, const std::uint8_t* end);
  Step value(Column& column, const std::uint8_t*& at, const std::uint8_t* end);
  Step gather_plp(Column& column, const std::uint8_t*& at, const std::uint8_t* end);
  Step gather_text(Column& column, const std::uint8_t*& at, const std::uint8_t* end);
  Step store(Column& column, ByteView bytes);
  void store_null(Column& column);
  Step gathered(Column& column);
  Step bad(const Column& column, const char* what);
  bool null_in_bitmap(std::size_t column) const noexcept;
  std::string key_of_row() const;

  std::vector<ColumnMeta> metadata_;
  rows::SchemaPtr schema_;
  std::vector<Column> columns_;
  std::shared_ptr<rows::BatchPool> pool_;
  rows::BatchPtr batch_;
  std::size_t batch_bytes_;
  std::vector<std::size_t> key_;
  FastRows fast_;
  std::size_t slow_rows_ = 0;  // to come before the fast way is tried again: it was of no use

  // Where decoding stands.
  bool in_row_ = false;
  bool with_bitmap_ = false;
  std::size_t column_ = 0;
  std::vector<std::uint8_t> bitmap_;
  bool in_long_value_ = false;
  PlpReader plp_;
  std::uint64_t text_left_ = 0;
  ByteBuffer long_value_;

  bool skipping_ = false;
  std::size_t batch_rows_ = 0;
  std::size_t batch_wire_bytes_ = 0;
  std::uint64_t rows_seen_ = 0;
  std::uint64_t rows_taken_ = 0;
  std::exception_ptr error_;
  std::string why_;
};

}  // namespace rowferry::tds
