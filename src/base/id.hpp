// Transfer ids: 20 characters [a-v0-9], first a "t". They sort by the time they were made (to the millisecond), and
// are safe in file names, URLs and SQL identifiers.
#pragma once

#include <string>
#include <string_view>

#include "base/time.hpp"

namespace rowferry {

inline constexpr std::size_t transfer_id_chars = 20;

std::string new_transfer_id(time::WallTime at = time::now());
// True for anything of that form; check it before an id from outside becomes part of a path or a name.
bool is_transfer_id(std::string_view text) noexcept;

// 128-bit FNV-1a as 32 hex digits: names and compares texts; not meant against an adversary.
std::string fingerprint(std::string_view text);

}  // namespace rowferry
