// What a text or binary column takes: length in its unit, code page, U+0000. Bound once per column.
#pragma once

#include <optional>
#include <string>

#include "base/text.hpp"
#include "rows/batch.hpp"

namespace rowferry::rows {

// True when no value of `from` (text or json) can break a rule of `to`.
bool text_always_fits(const Type& from, const Type& to) noexcept;
bool binary_always_fits(const Type& from, const Type& to) noexcept;
// The type of a uuid in its printed form.
Type uuid_as_text();

class TextRules {
 public:
  explicit TextRules(const Type& to);

  bool fits(std::string_view utf8) const noexcept;
  // Empty when it fits. "8 UTF-16 units > nvarchar(4)", "U+2160 is not in code page 1252", …
  std::string unfit_reason(std::string_view utf8) const;
  // The longest prefix that fits; nullopt when a character is what does not fit.
  std::optional<std::string_view> cut(std::string_view utf8) const noexcept;
  // Every character that the column cannot hold becomes `replacement` (empty: is left out). False when the result is
  // still too long.
  bool replace(std::string_view utf8, std::string_view replacement, std::string& out) const;
  // U+FFFD, or "?" in a code page that lacks it.
  std::string_view default_replacement() const noexcept;

  std::size_t length_max() const noexcept { return to_.length == 0 ? text::npos : to_.length; }
  bool restricts_characters() const noexcept { return page_ != nullptr || to_.no_nul; }
  bool no_nul() const noexcept { return to_.no_nul; }

 private:
  std::size_t length(std::string_view utf8) const noexcept;
  bool bad(char32_t c) const noexcept { return (c == 0 && to_.no_nul) || (page_ != nullptr && !page_->encodable(c)); }
  std::string length_reason(std::size_t length) const;

  Type to_;
  const text::CodePage* page_ = nullptr;  // null: all of Unicode
};

}  // namespace rowferry::rows
