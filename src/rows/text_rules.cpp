#include "rows/text_rules.hpp"

#include <fmt/format.h>

namespace rowferry::rows {

namespace {

// Units of `to` that one unit of `from` can need at most.
std::size_t expansion(const Type& from, const Type& to) noexcept {
  if (from.length_unit == to.length_unit) return from.code_page == to.code_page ? 1 : 4;
  switch (to.length_unit) {
    case LengthUnit::code_points:
      return 1;
    case LengthUnit::utf16_units:
      // A byte of a code page is at most one unit, and so is a byte of UTF-8.
      return from.length_unit == LengthUnit::bytes ? 1 : 2;
    case LengthUnit::bytes:
      return 4;
  }
  return 4;
}

std::string_view unit_name(LengthUnit unit, std::size_t count) noexcept {
  switch (unit) {
    case LengthUnit::code_points:
      return count == 1 ? "character" : "characters";
    case LengthUnit::utf16_units:
      return count == 1 ? "UTF-16 unit" : "UTF-16 units";
    case LengthUnit::bytes:
      return count == 1 ? "byte" : "bytes";
  }
  return {};
}

}  // namespace

bool text_always_fits(const Type& from, const Type& to) noexcept {
  if (to.no_nul && !from.no_nul) return false;
  if (to.code_page != 0 && to.code_page != 65001 && from.code_page != to.code_page) return false;
  if (to.length == 0) return true;
  return from.length != 0 && from.length * expansion(from, to) <= to.length;
}

bool binary_always_fits(const Type& from, const Type& to) noexcept {
  if (to.length == 0) return true;
  if (from.length == 0 || from.length > to.length) return false;
  return !to.padded || (from.padded && from.length == to.length);
}

Type uuid_as_text() { return Type::text(36, LengthUnit::code_points); }

TextRules::TextRules(const Type& to) : to_(to) {
  if (to.code_page != 0 && to.code_page != 65001) page_ = &text::CodePage::get(to.code_page);
}

std::size_t TextRules::length(std::string_view utf8) const noexcept {
  switch (to_.length_unit) {
    case LengthUnit::code_points:
      return text::code_points(utf8);
    case LengthUnit::utf16_units:
      return text::utf16_units(utf8);
    case LengthUnit::bytes:
      return page_ == nullptr ? utf8.size() : page_->encoded_length(utf8);
  }
  return utf8.size();
}

bool TextRules::fits(std::string_view utf8) const noexcept {
  if (to_.no_nul && utf8.find('\0') != std::string_view::npos) return false;
  if (page_ != nullptr && page_->find_unencodable(utf8) != text::npos) return false;
  // No unit is smaller than a byte of UTF-8, so most values need no count.
  return to_.length == 0 || utf8.size() <= to_.length || length(utf8) <= to_.length;
}

std::string TextRules::length_reason(std::size_t length) const {
  std::string_view name = to_.padded ? "char" : "varchar";
  if (to_.length_unit == LengthUnit::utf16_units) name = to_.padded ? "nchar" : "nvarchar";
  return fmt::format("{} {} > {}({})", length, unit_name(to_.length_unit, length), name, to_.length);
}

std::string TextRules::unfit_reason(std::string_view utf8) const {
  for (std::size_t at = 0; restricts_characters() && at < utf8.size();) {
    const std::size_t begin = at;
    const char32_t c = text::next_code_point(utf8, at);
    if (!bad(c)) continue;
    if (c == 0) return fmt::format("U+0000 at byte {} cannot be stored", begin);
    return fmt::format("U+{:04X} at byte {} is not in code page {}", static_cast<std::uint32_t>(c), begin,
                       to_.code_page);
  }
  const std::size_t units = length(utf8);
  return to_.length == 0 || units <= to_.length ? std::string() : length_reason(units);
}

std::optional<std::string_view> TextRules::cut(std::string_view utf8) const noexcept {
  std::string_view kept = utf8;
  if (to_.length != 0) {
    switch (to_.length_unit) {
      case LengthUnit::code_points:
        kept = text::cut_code_points(utf8, to_.length);
        break;
      case LengthUnit::utf16_units:
        kept = text::cut_utf16_units(utf8, to_.length);
        break;
      case LengthUnit::bytes:
        kept = page_ == nullptr ? text::cut_bytes(utf8, to_.length) : page_->cut_encoded(utf8, to_.length);
        break;
    }
  }
  if (!fits(kept)) return std::nullopt;
  return kept;
}

bool TextRules::replace(std::string_view utf8, std::string_view replacement, std::string& out) const {
  out.clear();
  for (std::size_t at = 0; at < utf8.size();) {
    const std::size_t begin = at;
    const char32_t c = text::next_code_point(utf8, at);
    out += bad(c) ? replacement : utf8.substr(begin, at - begin);
  }
  return fits(out);
}

std::string_view TextRules::default_replacement() const noexcept {
  return page_ == nullptr || page_->encodable(0xFFFD) ? "\xEF\xBF\xBD" : "?";
}

}  // namespace rowferry::rows
