// The put functions of CopyEncoder, one per PutForm.
#pragma once

#include "postgres/wire/copy_encoder.hpp"

namespace rowferry::postgres::wire {

// A put function may write so many bytes behind the end that it returns: later fields overwrite them.
inline constexpr std::size_t put_slack = 64;

struct PutColumn {
  CopyTarget target;

  // Bytes of a value; 0: any number.
  std::size_t width = 0;
  // Length word and value (or NULL), returns the end; null pointer: a value that the form cannot say.
  std::uint8_t* (*put)(const PutColumn& self, const rows::ColumnView& view, std::size_t row,
                       std::uint8_t* to) = nullptr;
  // Of fixed widths: n rows without NULL, each `stride` bytes behind the last. False: one of them cannot be said.
  bool (*put_strided)(const rows::ColumnView& view, std::size_t row, std::size_t n, std::uint8_t* to,
                      std::size_t stride) = nullptr;
  // The most bytes that n rows take, length words and put_slack not counted.
  std::size_t (*most)(const rows::ColumnView& view, std::size_t row, std::size_t n) = nullptr;
};

// Throws Error(internal, "copy_type").
PutColumn bind_put(CopyTarget target);

// numeric's binary form, without its length word: writes at most 30 bytes and returns the end; up to put_slack behind
// it may be written too.
std::uint8_t* put_numeric(std::uint8_t* to, rows::Int128 value, int scale) noexcept;

// A field of the text format: the value as its type's input function reads it, escaped; \N for NULL. False: a value
// that PostgreSQL does not have.
bool print_field(const PutColumn& column, const rows::ColumnView& view, std::size_t row, ByteBuffer& to);

}  // namespace rowferry::postgres::wire
