// CopyEncoder: a Batch becomes rows of COPY … FROM STDIN (PostgreSQL manual, COPY: "Binary Format" and "Text Format").
//
// Sans-I/O. Every column has one put function, bound once, that writes the type that the *target's* column has; the
// batch has exactly the type that takes() asks for (rows::Converter made it so). Where every column has a binary form
// the stream is binary; one column that only its type's input function can read makes all of it the text format.
//
// Columns of a fixed width without a NULL in a stretch of rows are gathered side by side, column after column; then the
// rows are written one by one, such stretches as a whole and the other columns value by value.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "rows/batch.hpp"

namespace rowferry::postgres::wire {

// What a column's receive function reads, and the logical type of the batch that it is written from.
enum class PutForm : std::uint8_t {
  boolean,    // boolean
  int16,      // int16
  int32,      // int32
  int64,      // int64
  uint32,     // oid, xid: uint32
  float32,    // float32
  float64,    // float64
  numeric,    // decimal: base-10000 digits, the display scale is the decimal's
  money,      // decimal at lc_monetary's scale: int64 in the smallest unit
  date,       // date; the ends of int32 are the infinities
  time,       // time in microseconds, 24:00:00 included
  timestamp,  // timestamp in microseconds, with and without zone; the ends of int64 are the infinities
  uuid,       // uuid
  bytes,  // text, json, binary as they are: text, varchar, char(n) (the server pads), name, citext, enums, json, bytea
  jsonb,  // text, json behind the version byte 1
  xml,    // text; an encoding that its declaration names is left out, since the bytes are UTF-8
  real_array,  // text: real[] from "[1,2.5]" or "{1,2.5}"
  printed,     // any type, as text for the input function: interval, inet, ranges, arrays, timetz, bit, …
};

struct CopyTarget {
  std::string name;
  PutForm form = PutForm::bytes;
  rows::Type type;  // of the batch's field
};

bool takes(PutForm form, const rows::Type& type) noexcept;

struct PutColumn;  // a bound column

class CopyEncoder {
 public:
  // Throws Error(internal, "copy_type") where takes() says no.
  explicit CopyEncoder(std::vector<CopyTarget> columns);
  ~CopyEncoder();
  CopyEncoder(CopyEncoder&&) noexcept;
  CopyEncoder& operator=(CopyEncoder&&) noexcept;

  // The option FORMAT: "binary" or "text".
  std::string_view format() const noexcept;
  // Before the first row and behind the last; the text format has neither.
  void header(ByteBuffer& to) const;
  void trailer(ByteBuffer& to) const;
  // Rows [begin, end) of the batch. Appends nothing when it throws: Error(data, "value_does_not_fit") with column, row
  // and value for one that PostgreSQL's type does not have (a date beyond 5874897, money beyond its 64 bits, …).
  void rows(const rows::Batch& batch, std::size_t begin, std::size_t end, ByteBuffer& to);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace rowferry::postgres::wire
