// CopyDecoder: rows of COPY … TO STDOUT (FORMAT binary) become a Batch (PostgreSQL manual, COPY, "Binary Format").
//
// Sans-I/O. accept() takes one CopyData message (the server sends one row in each) and only notes where its fields
// lie, so the bytes must stay until decode() has moved the noted rows into a batch, column by column: one decode
// function is bound per column, and each runs over a whole block of rows.
// Malformed input is a return value with problem(); values that the batch cannot hold go through rows::ColumnLoss,
// which throws when the policy is `error`.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "rows/batch.hpp"
#include "rows/loss.hpp"

namespace rowferry::postgres::wire {

// The binary form of a field, by the type's send function.
enum class Form : std::uint8_t {
  boolean,     // 1 byte
  int16,       // int2send
  int32,       // int4send
  int64,       // int8send
  uint32,      // oidsend, xidsend; int64 in the batch
  float32,     // float4send
  float64,     // float8send
  numeric,     // numeric_send: base-10000 digits; decimal in the batch
  money,       // cash_send: int64 in the smallest unit; decimal in the batch
  date,        // int32 days since 2000-01-01
  time,        // int64 microseconds since midnight
  timestamp,   // int64 microseconds since 2000-01-01; with and without zone
  uuid,        // 16 bytes in printed order
  bytes,       // text of every kind, json, bytea: as it is
  jsonb,       // version byte 1, then text
  bit_string,  // int32 count of bits, then the bits from the top; text of 0 and 1 in the batch
  char_byte,   // "char": one byte; printed as the server's charout does it
};

struct CopyColumn {
  std::string name;
  Form form = Form::bytes;
  rows::Type type;  // of the batch's field
  rows::LossPolicy policy;
  // date and timestamp: true leaves an infinity as the extreme of its integer (the target can hold it). Otherwise an
  // infinity is a loss here under `error` and `null`; other policies leave it to the converter's range check.
  bool holds_infinity = false;
};

// What became of one field's bytes as a decimal.
enum class NumericFit : std::uint8_t { exact, inexact, too_large, plus_infinity, minus_infinity, nan, malformed };

// `out` is the unscaled value at `scale`: exact, or cut towards zero (inexact), or the nearest bound of the precision
// (too_large, infinities), or 0.
NumericFit read_numeric(ByteView field, int precision, int scale, rows::Int128& out) noexcept;
// As PostgreSQL prints it, cut near 80 characters; for messages.
std::string numeric_text(ByteView field);

class CopyDecoder {
 public:
  static constexpr std::size_t block_rows = 128;

  // Throws Error(input, "policy_impossible") when a decimal's replacement is not a number of its type.
  explicit CopyDecoder(std::vector<CopyColumn> columns);

  // A new COPY begins: its header comes first. Rows that wait are forgotten; row ordinals go on.
  void restart() noexcept;

  enum class Got : std::uint8_t { nothing, row, end, malformed };
  // With pending() == block_rows, decode() must come first.
  Got accept(ByteView message) noexcept;
  std::size_t pending() const noexcept { return pending_; }
  // True once the trailer was seen.
  bool ended() const noexcept { return ended_; }

  // Moves the pending rows behind the `rows` rows that `batch` holds already. False: malformed.
  bool decode(rows::Batch& batch, std::size_t rows);
  // Rows decoded since the decoder was made: the 0-based ordinal of the next one.
  std::uint64_t decoded() const noexcept { return decoded_; }

  // What was wrong, for people; says column and row where known.
  const std::string& problem() const noexcept { return problem_; }
  // Values changed by policy, per column.
  std::vector<std::uint64_t> changed() const;

 private:
  struct Column;
  struct Codecs;
  using Decode = bool (*)(Column& column, const std::uint8_t* const* fields, std::size_t count, rows::ColumnBuffer& out,
                          std::size_t row, std::uint64_t ordinal);
  struct Column {
    CopyColumn plan;
    rows::ColumnLoss loss;
    Decode decode = nullptr;
    std::int32_t width = 0;       // of the field on the wire; < 0: any, but at least `least`
    std::int32_t least = 0;       // shortest well-formed field
    std::size_t nulls = 0;        // in the pending block
    std::size_t value_bytes = 0;  // of the pending block's fields, for variable widths
    rows::Int128 replacement = 0;
    const char* problem = nullptr;
  };

  const std::uint8_t* header(const std::uint8_t* at, const std::uint8_t* end) noexcept;
  Got split(const std::uint8_t* at, const std::uint8_t* end) noexcept;
  bool split_fixed(const std::uint8_t* at) noexcept;
  Got malformed(std::string_view what, const Column* column = nullptr) noexcept;

  // Where every column has a fixed width, a row without NULL has one size and one right value for each length word.
  struct FixedField {
    std::uint32_t length_word;  // as it lies on the wire
    std::uint32_t stride;       // to the next length word
  };

  std::vector<Column> columns_;
  std::vector<FixedField> fixed_;            // empty where a column's width varies
  std::size_t fixed_bytes_ = 0;              // of the fields of such a row
  std::vector<const std::uint8_t*> fields_;  // column after column, block_rows each: the value behind its length word
  std::size_t pending_ = 0;
  std::uint64_t decoded_ = 0;
  bool header_seen_ = false;
  bool ended_ = false;
  std::string problem_;
};

}  // namespace rowferry::postgres::wire
