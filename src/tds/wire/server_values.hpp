// Bounding and checking of values that a client sends, by TYPE_INFO, without decoding them: where a value ends in the
// framing of a ROW or an RPC parameter (MS-TDS 2.2.5.4, 2.2.5.5), and whether a server would take it.
//
// A ValueRule is made once per column; its check is a plain function bound to the type, so that the loop over rows has
// no switch. A PLP value is resumable: ValueWalk keeps the place between two calls, so that a long value that arrives
// in many packets is walked once.
#pragma once

#include <cstdint>

#include "base/bytes.hpp"
#include "tds/wire/types.hpp"

namespace rowferry::tds::server {

enum class ValueFault : std::uint8_t {
  none,
  need_more,     // the bytes end within the value
  length,        // 4815: longer than declared, or a length that the type cannot have
  odd_length,    // 4895: UTF-16 with an odd number of bytes
  chunk_length,  // 4897: a chunk goes beyond the total
  short_chunks,  // 4804: the chunks end before the total
  text_pointer,  // 4813: text pointer or its length
  invalid,       // 7339: out of the type's range, not a number
};

struct ValueRule;

// Where a walk over the bytes of one value stands. Reset for each value; only PLP values use it.
struct ValueWalk {
  std::uint64_t total = 0;  // announced, or plp_unknown
  std::uint64_t seen = 0;
  bool open = false;       // the total was read
  bool one_chunk = false;  // so far a known total and exactly one chunk holding all of it
  bool plain = false;      // the finished value was NULL, empty, or one chunk behind its total: canonical as it is
};

struct ValueEnd {
  const std::uint8_t* next = nullptr;  // behind the value; with need_more: where to go on
  ValueFault fault = ValueFault::none;
  bool null = false;
};

using ValueCheck = ValueEnd (*)(const ValueRule& rule, const std::uint8_t* at, const std::uint8_t* end,
                                ValueWalk& walk);

struct ValueRule {
  ValueCheck check = nullptr;  // nullptr: no such type may be sent
  DataType id = DataType::null;
  std::uint32_t max_length = 0;
  std::uint8_t precision = 0;
  std::uint8_t scale = 0;
  bool plp = false;
};

ValueRule make_value_rule(const TypeInfo& type);

inline constexpr std::uint64_t plp_null = 0xFFFFFFFFFFFFFFFFULL;
inline constexpr std::uint64_t plp_unknown = 0xFFFFFFFFFFFFFFFEULL;

}  // namespace rowferry::tds::server
