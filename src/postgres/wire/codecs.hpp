// The decode functions of CopyDecoder, one per Form.
#pragma once

#include "postgres/wire/copy_decoder.hpp"

namespace rowferry::postgres::wire {

struct CopyDecoder::Codecs {
  // Sets the column's decode function and field widths from its plan.
  static void bind(Column& column);

 private:
  template <class Out, class Convert>
  static bool fixed(Column& column, const std::uint8_t* const* fields, std::size_t count, rows::ColumnBuffer& out,
                    std::size_t row, Convert convert);
  static bool boolean(Column& column, const std::uint8_t* const* fields, std::size_t count, rows::ColumnBuffer& out,
                      std::size_t row, std::uint64_t ordinal);
  template <class Out, class In>
  static bool integer(Column& column, const std::uint8_t* const* fields, std::size_t count, rows::ColumnBuffer& out,
                      std::size_t row, std::uint64_t ordinal);
  static bool date(Column& column, const std::uint8_t* const* fields, std::size_t count, rows::ColumnBuffer& out,
                   std::size_t row, std::uint64_t ordinal);
  static bool timestamp(Column& column, const std::uint8_t* const* fields, std::size_t count, rows::ColumnBuffer& out,
                        std::size_t row, std::uint64_t ordinal);
  static bool uuid(Column& column, const std::uint8_t* const* fields, std::size_t count, rows::ColumnBuffer& out,
                   std::size_t row, std::uint64_t ordinal);
  static bool numeric(Column& column, const std::uint8_t* const* fields, std::size_t count, rows::ColumnBuffer& out,
                      std::size_t row, std::uint64_t ordinal);
  static bool bytes(Column& column, const std::uint8_t* const* fields, std::size_t count, rows::ColumnBuffer& out,
                    std::size_t row, std::uint64_t ordinal);
  template <class Write>
  static bool variable(Column& column, const std::uint8_t* const* fields, std::size_t count, rows::ColumnBuffer& out,
                       std::size_t row, Write write);
  static bool jsonb(Column& column, const std::uint8_t* const* fields, std::size_t count, rows::ColumnBuffer& out,
                    std::size_t row, std::uint64_t ordinal);
  static bool bit_string(Column& column, const std::uint8_t* const* fields, std::size_t count, rows::ColumnBuffer& out,
                         std::size_t row, std::uint64_t ordinal);
  static bool char_byte(Column& column, const std::uint8_t* const* fields, std::size_t count, rows::ColumnBuffer& out,
                        std::size_t row, std::uint64_t ordinal);
};

}  // namespace rowferry::postgres::wire
