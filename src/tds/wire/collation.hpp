// Collations (MS-TDS 2.2.5.1.2): the five bytes and the code page that they stand for.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/bytes.hpp"
#include "tds/wire/types.hpp"

namespace rowferry::tds {

inline constexpr std::size_t collation_bytes = 5;
inline constexpr std::uint16_t code_page_utf8 = 65001;
inline constexpr std::uint16_t code_page_unicode_only = 0;  // the locale has none: no char or varchar text exists in it

inline Collation load_collation(const std::uint8_t* from) noexcept {
  return {.info = load_le<std::uint32_t>(from), .sort_id = from[4]};
}
inline void store_collation(std::uint8_t* to, const Collation& collation) noexcept {
  store_le(to, collation.info);
  to[4] = collation.sort_id;
}

// The code page of char and varchar text, as Windows numbers it: by the UTF-8 bit, else by the SortId of an SQL_*
// collation, else by the locale. Nullopt: a SortId that is not known (it must never be taken for 1252 in silence).
std::optional<std::uint16_t> code_page(const Collation& collation) noexcept;
// As code_page(); throws Error(unsupported, "unknown_collation") naming SortId and locale.
std::uint16_t code_page_or_throw(const Collation& collation);
// "locale 0x0409, SortId 52": for messages.
std::string describe(const Collation& collation);

}  // namespace rowferry::tds
