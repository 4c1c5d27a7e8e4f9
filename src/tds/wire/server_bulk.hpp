// The bulk load message as the server reads it (MS-TDS 2.2.6.1, 2.2.6.2): COLMETADATA, ROW tokens, an optional DONE.
//
// Lifecycle: one BulkScanner a message. scan_columns() until it has the columns; then bind() with what the statement
// allows, then scan_rows() again and again with the message's payload as it grows, each call giving the whole rows that
// it found. The scanner keeps its place within an unfinished row, so that no byte is walked twice; the caller keeps the
// payload from the start of that row.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/bytes.hpp"
#include "tds/wire/server_request.hpp"
#include "tds/wire/server_values.hpp"
#include "tds/wire/types.hpp"

namespace rowferry::tds::server {

// 128-bit sum modulo 2^128 of XXH3-128 over each row's wire bytes, PLP values in their canonical form (known total,
// one chunk). A check sum of what came over the wire; it compares only loads with the same declaration.
struct WireHash {
  std::uint64_t low = 0;
  std::uint64_t high = 0;
  void add(std::uint64_t other_low, std::uint64_t other_high) noexcept {
    low += other_low;
    high += other_high + (low < other_low ? 1 : 0);
  }
};

// What SQL Server checks of a stream's columns against the statement's: type and length, nullability (unless the flags
// say that it is not known), precision and scale. `declared` holds N-forms; a fixed form of the same type agrees.
RequestFault compare_bulk_columns(const std::vector<ColumnMeta>& declared, const std::vector<ColumnMeta>& stream);

enum class BulkScan : std::uint8_t {
  need_more,  // everything whole has been given; more bytes are needed
  ended,      // the DONE token, or the end of the message at a row's border: what follows is ignored
  fault,      // fault() says what; the statement has failed
};

class BulkScanner {
 public:
  // 0x81 and the columns; `columns()` has them after `ended`. `taken` = bytes of the payload that were read.
  BulkScan scan_columns(ByteView payload, bool message_ended, std::size_t& taken);
  const std::vector<ColumnMeta>& columns() const noexcept { return columns_; }

  // `refuses_null[i]`: a NULL in column i is reported by null_column(). `hash`: sum the rows' hashes.
  void bind(const std::vector<bool>& refuses_null, bool hash);

  // Fills `rows` with at most `rows_max` whole rows. The next call's payload must begin where `taken` ends.
  BulkScan scan_rows(ByteView payload, bool message_ended, std::size_t rows_max, std::size_t& taken);
  // Offsets into the payload given to scan_rows.
  std::span<const RowSpan> rows() const noexcept { return rows_; }
  WireHash take_hash() noexcept { return std::exchange(hash_, {}); }  // of the rows given since the last call

  const RequestFault& fault() const noexcept { return fault_; }
  // After a fault without a number: the column (from 0) whose NULL is refused. The caller knows the message for it.
  std::size_t null_column() const noexcept { return null_column_; }
  std::uint64_t rows_scanned() const noexcept { return scanned_; }

 private:
  struct Column {
    ValueRule rule;
    bool refuses_null = false;
  };

  BulkScan fail(RequestFault fault);
  BulkScan value_fault(ValueFault fault);
  BulkScan end_early(const std::uint8_t* row, const std::uint8_t* start, std::size_t& taken, bool message_ended);
  void hash_row(const std::uint8_t* from, const std::uint8_t* to);
  void canonical_row(const std::uint8_t* from, const std::uint8_t* to);

  std::vector<ColumnMeta> columns_;
  std::vector<Column> bound_;
  std::vector<RowSpan> rows_;
  WireHash hash_;
  bool hashing_ = false;
  bool row_plain_ = true;   // every PLP value of the row so far is canonical as it stands
  std::size_t column_ = 0;  // where the walk is within an unfinished row
  std::size_t offset_ = 0;  // and at which byte from the row's token; 0: at a row's border
  ValueWalk walk_;
  ByteBuffer scratch_;
  RequestFault fault_;
  std::size_t null_column_ = 0;
  std::uint64_t scanned_ = 0;
};

}  // namespace rowferry::tds::server
