// Values that become text here: sql_variant (MS-TDS 2.2.5.5.4) and vector (2.2.5.5.7).
#pragma once

#include "base/bytes.hpp"

namespace rowferry::tds {

enum class ToText : std::uint8_t {
  ok,
  malformed,
  bad_text,  // inner text that is no text of its encoding; U+FFFD stands in its place
};

// `inner`: what stands behind the four length bytes, not NULL. Appends UTF-8, without loss and without a style of the
// session: ISO dates with all digits of the scale, an offset at local time, binary as \x and hex digits, lower-case
// uuid, floats in the shortest form that reads back the same.
ToText variant_to_text(ByteView inner, ByteBuffer& out);

// [1,-2.5]: the shortest form of each element. float32 and float16 elements.
ToText vector_to_text(ByteView payload, ByteBuffer& out);

}  // namespace rowferry::tds
