// numeric's binary form (numeric_send): int16 digit count, int16 weight of the first base-10000 digit, uint16 sign,
// uint16 display scale, then the digits.
#pragma once

#include "postgres/wire/copy_decoder.hpp"

namespace rowferry::postgres::wire {

// Parses the policy's replacement once; throws Error(input, "policy_impossible") when it is no number of the type.
void bind_numeric(const CopyColumn& column, rows::Int128& replacement);

// Applies the column's policy to a value that is not exact. True: `value` holds what to store; false: NULL.
bool mend_numeric(rows::ColumnLoss& loss, NumericFit fit, ByteView field, std::uint64_t row, rows::Int128 replacement,
                  rows::Int128& value);

}  // namespace rowferry::postgres::wire
