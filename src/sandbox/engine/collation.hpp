// Collations: names and their five bytes (MS-TDS 2.2.5.1.2), code pages, and comparison.
#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tds/wire/types.hpp"

namespace rowferry::sandbox::engine {

// SQL_Latin1_General_CP1_CI_AS: of names, messages and expressions without a column.
const tds::Collation& default_collation();

// Case-insensitive; nothing for a name that is no collation.
std::optional<tds::Collation> collation_by_name(std::string_view name);
// A name with these bytes; empty when there is none.
std::string collation_name(const tds::Collation& collation);
// All names that are worth listing (fn_helpcollations).
std::vector<std::string> collation_names();

// 0: Unicode only, no varchar possible.
std::uint16_t code_page_of(const tds::Collation& collation);

// What is not in the code page becomes '?', as a server's conversion does.
std::string to_code_page(std::u16string_view text, const tds::Collation& collation);
std::u16string from_code_page(std::string_view bytes, const tds::Collation& collation);

// Trailing blanks do not count. Binary collations compare code units or points, others without case and accents as the
// name says.
std::strong_ordering compare_text(std::u16string_view a, std::u16string_view b, const tds::Collation& collation);
// Equal for equal texts.
std::u16string comparison_key(std::u16string_view text, const tds::Collation& collation);
bool text_matches_like(std::u16string_view text, std::u16string_view pattern, std::optional<char16_t> escape,
                       const tds::Collation& collation);

char16_t upper(char16_t c);
char16_t lower(char16_t c);

// Object and column names: without case (ASCII, Latin, Greek, Cyrillic), in UTF-8.
std::string fold_name(std::string_view name);
bool same_name(std::string_view a, std::string_view b);

}  // namespace rowferry::sandbox::engine
