// Case, accents and LIKE for the collations.
#include <algorithm>
#include <array>

#include "sandbox/engine/collation.hpp"
#include "sandbox/engine/sort.hpp"
#include "sandbox/engine/value.hpp"

namespace rowferry::sandbox::engine {

namespace {

constexpr std::uint32_t ignore_case = 1U << 20U;
constexpr std::uint32_t ignore_accent = 1U << 21U;
constexpr std::uint32_t any_binary = 3U << 24U;

bool odd_is_lower(char16_t c) {
  return (c >= 0x100 && c <= 0x137 && c != 0x130 && c != 0x131) || (c >= 0x14A && c <= 0x177) ||
         (c >= 0x460 && c <= 0x481) || (c >= 0x48A && c <= 0x4BF) || (c >= 0x4D0 && c <= 0x52F) ||
         (c >= 0x1E00 && c <= 0x1E95) || (c >= 0x1EA0 && c <= 0x1EFF) || (c >= 0x200 && c <= 0x21F) ||
         (c >= 0x3D8 && c <= 0x3EF);
}
bool even_is_lower(char16_t c) { return (c >= 0x139 && c <= 0x148) || (c >= 0x179 && c <= 0x17E); }

// The letter without its accent, for Latin-1 and Latin Extended-A.
constexpr std::u16string_view plain_latin1 =
    u"AAAAAA\u00C6CEEEEIIII\u00D0NOOOOO\u00D7OUUUUY\u00DE\u00DFaaaaaa\u00E6ceeeeiiii\u00F0nooooo\u00F7ouuuuy\u00FEy";
constexpr std::u16string_view plain_extended =
    u"AaAaAaCcCcCcCcDdDdEeEeEeEeEeGgGgGgGgHhHhIiIiIiIiIiIiJjKkkLlLlLlLlLlNnNnNnnNnOoOoOoOoRrRrRrSsSsSsSsTtTtTtUuUuUuUuU"
    u"u"
    u"UuWwYyYZzZzZzs";

char16_t without_accent(char16_t c) {
  if (c >= 0xC0 && c <= 0xFF) return plain_latin1[c - 0xC0U];
  if (c >= 0x100 && c < 0x100 + plain_extended.size()) return plain_extended[c - 0x100U];
  return c;
}

std::u16string_view without_blanks(std::u16string_view text) {
  while (!text.empty() && text.back() == u' ') text.remove_suffix(1);
  return text;
}

char16_t folded(char16_t c, std::uint32_t info) {
  if ((info & ignore_accent) != 0) c = without_accent(c);
  if ((info & ignore_case) != 0) c = upper(c);
  return c;
}

// Unicode's own letters have no simple order by number; upper case before accents gives dictionaries' order for Latin.
std::uint32_t weight(char16_t c, bool accents) {
  const char16_t base = upper(without_accent(c));
  return (static_cast<std::uint32_t>(base) << 16U) | (accents ? upper(c) : 0U);
}

std::strong_ordering compare_units(std::u16string_view a, std::u16string_view b, bool by_point) {
  const std::size_t n = std::min(a.size(), b.size());
  for (std::size_t i = 0; i < n; ++i) {
    if (a[i] == b[i]) continue;
    const bool sa = a[i] >= 0xD800 && a[i] < 0xE000, sb = b[i] >= 0xD800 && b[i] < 0xE000;
    if (by_point && sa != sb) return sa ? std::strong_ordering::greater : std::strong_ordering::less;
    return a[i] <=> b[i];
  }
  return a.size() <=> b.size();
}

}  // namespace

char16_t upper(char16_t c) {
  if (c < 0x80) return c >= u'a' && c <= u'z' ? static_cast<char16_t>(c - 32) : c;
  if (c >= 0xE0 && c <= 0xFE && c != 0xF7) return static_cast<char16_t>(c - 32);
  if (c == 0xFF) return 0x178;
  if (odd_is_lower(c)) return static_cast<char16_t>(c & ~1);
  if (even_is_lower(c)) return (c & 1) == 0 ? static_cast<char16_t>(c - 1) : c;
  if (c >= 0x3B1 && c <= 0x3CB && c != 0x3C2) return static_cast<char16_t>(c - 32);
  if (c == 0x3C2) return 0x3A3;
  if (c == 0x3AC) return 0x386;
  if (c >= 0x3AD && c <= 0x3AF) return static_cast<char16_t>(c - 37);
  if (c >= 0x430 && c <= 0x44F) return static_cast<char16_t>(c - 32);
  if (c >= 0x450 && c <= 0x45F) return static_cast<char16_t>(c - 80);
  return c;
}

char16_t lower(char16_t c) {
  if (c < 0x80) return c >= u'A' && c <= u'Z' ? static_cast<char16_t>(c + 32) : c;
  if (c >= 0xC0 && c <= 0xDE && c != 0xD7) return static_cast<char16_t>(c + 32);
  if (c == 0x178) return 0xFF;
  if (odd_is_lower(c)) return static_cast<char16_t>(c | 1);
  if (even_is_lower(c)) return (c & 1) != 0 ? static_cast<char16_t>(c + 1) : c;
  if (c >= 0x391 && c <= 0x3AB) return static_cast<char16_t>(c + 32);
  if (c == 0x386) return 0x3AC;
  if (c >= 0x388 && c <= 0x38A) return static_cast<char16_t>(c + 37);
  if (c >= 0x410 && c <= 0x42F) return static_cast<char16_t>(c + 32);
  if (c >= 0x400 && c <= 0x40F) return static_cast<char16_t>(c + 80);
  return c;
}

std::strong_ordering compare_text(std::u16string_view a, std::u16string_view b, const tds::Collation& collation) {
  a = without_blanks(a);
  b = without_blanks(b);
  if ((collation.info & any_binary) != 0) return compare_units(a, b, ((collation.info >> 25U) & 1U) != 0);
  const std::size_t n = std::min(a.size(), b.size());
  for (const bool accents : {false, true}) {
    if (accents && (collation.info & ignore_accent) != 0) break;
    for (std::size_t i = 0; i < n; ++i) {
      const auto wa = weight(a[i], accents), wb = weight(b[i], accents);
      if (wa != wb) return wa <=> wb;
    }
    if (a.size() != b.size()) return a.size() <=> b.size();
  }
  if ((collation.info & ignore_case) != 0) return std::strong_ordering::equal;
  for (std::size_t i = 0; i < n; ++i) {
    const char16_t ca = folded(a[i], collation.info), cb = folded(b[i], collation.info);
    if (ca == cb) continue;
    // lower case before upper case
    const bool la = lower(ca) == ca, lb = lower(cb) == cb;
    if (la != lb) return la ? std::strong_ordering::less : std::strong_ordering::greater;
    return ca <=> cb;
  }
  return std::strong_ordering::equal;
}

void append_text_sort_key(std::u16string_view text, const tds::Collation& collation, std::string& key) {
  text = without_blanks(text);
  const auto put16 = [&](std::uint32_t v) {
    key.push_back(static_cast<char>(v >> 8U));
    key.push_back(static_cast<char>(v));
  };
  const auto end = [&] { key.append(4, '\0'); };
  if ((collation.info & any_binary) != 0) {
    const bool by_point = ((collation.info >> 25U) & 1U) != 0;
    for (const char16_t c : text) {
      key.push_back('\1');
      // surrogates stand for what is above all other units
      if (by_point) key.push_back(c >= 0xD800 && c < 0xE000 ? '\2' : '\1');
      put16(c);
    }
    return end();
  }
  for (const char16_t c : text) {
    key.push_back('\1');
    put16(weight(c, false) >> 16U);
  }
  end();
  if ((collation.info & ignore_accent) == 0)
    for (const char16_t c : text) put16(weight(c, true) & 0xFFFFU);
  if ((collation.info & ignore_case) != 0) return;
  for (const char16_t c : text) {
    const char16_t plain = folded(c, collation.info);
    key.push_back(lower(plain) == plain ? '\1' : '\2');
    put16(plain);
  }
}

std::u16string comparison_key(std::u16string_view text, const tds::Collation& collation) {
  std::u16string key(without_blanks(text));
  if ((collation.info & any_binary) == 0)
    for (char16_t& c : key) c = folded(c, collation.info);
  return key;
}

namespace {

struct Like {
  std::uint32_t info;
  std::optional<char16_t> escape;

  bool same(char16_t a, char16_t b) const {
    if ((info & any_binary) != 0) return a == b;
    return folded(a, info) == folded(b, info);
  }

  // [a-f], [^abc]; `p` behind the opening bracket, moved behind the closing one.
  bool set(char16_t c, std::u16string_view pattern, std::size_t& p) const {
    bool negate = false;
    bool found = false;
    if (p < pattern.size() && pattern[p] == u'^') {
      negate = true;
      ++p;
    }
    const char16_t wanted = (info & any_binary) != 0 ? c : folded(c, info);
    while (p < pattern.size() && pattern[p] != u']') {
      const char16_t first = (info & any_binary) != 0 ? pattern[p] : folded(pattern[p], info);
      if (p + 2 < pattern.size() && pattern[p + 1] == u'-' && pattern[p + 2] != u']') {
        const char16_t last = (info & any_binary) != 0 ? pattern[p + 2] : folded(pattern[p + 2], info);
        found = found || (wanted >= first && wanted <= last);
        p += 3;
      } else {
        found = found || wanted == first;
        ++p;
      }
    }
    if (p < pattern.size()) ++p;
    return found != negate;
  }

  bool match(std::u16string_view text, std::u16string_view pattern) const {
    std::size_t p = 0;
    for (std::size_t t = 0;; ++t) {
      if (p == pattern.size()) return t == text.size();
      if (escape && pattern[p] == *escape && p + 1 < pattern.size()) {
        if (t == text.size() || !same(text[t], pattern[p + 1])) return false;
        p += 2;
        continue;
      }
      if (pattern[p] == u'%') {
        while (p < pattern.size() && pattern[p] == u'%') ++p;
        if (p == pattern.size()) return true;
        for (; t <= text.size(); ++t)
          if (match(text.substr(t), pattern.substr(p))) return true;
        return false;
      }
      if (t == text.size()) return false;
      if (pattern[p] == u'_') {
        ++p;
      } else if (pattern[p] == u'[') {
        ++p;
        if (!set(text[t], pattern, p)) return false;
      } else {
        if (!same(text[t], pattern[p])) return false;
        ++p;
      }
    }
  }
};

}  // namespace

bool text_matches_like(std::u16string_view text, std::u16string_view pattern, std::optional<char16_t> escape,
                       const tds::Collation& collation) {
  const Like like{collation.info, escape};
  if (like.match(text, pattern)) return true;
  // Trailing blanks of the text do not count, those of the pattern do.
  const std::u16string_view bare = without_blanks(text);
  return bare.size() != text.size() && like.match(bare, pattern);
}

std::string fold_name(std::string_view name) {
  bool ascii = true;
  std::string out(name);
  for (char& c : out) {
    if ((static_cast<unsigned char>(c) & 0x80U) != 0) ascii = false;
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c + 32);
  }
  if (ascii) return out;
  std::u16string wide = widen(name);
  for (char16_t& c : wide) c = lower(c);
  return narrow(wide);
}

bool same_name(std::string_view a, std::string_view b) { return fold_name(a) == fold_name(b); }

}  // namespace rowferry::sandbox::engine
