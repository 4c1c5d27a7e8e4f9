#include "sandbox/engine/collation.hpp"

#include <algorithm>
#include <array>

#include "base/text.hpp"
#include "sandbox/engine/value.hpp"

namespace rowferry::sandbox::engine {

namespace {

constexpr std::uint32_t ignore_case = 1U << 20U;
constexpr std::uint32_t ignore_accent = 1U << 21U;
constexpr std::uint32_t ignore_width = 1U << 22U;
constexpr std::uint32_t ignore_kana = 1U << 23U;
constexpr std::uint32_t binary_order = 1U << 24U;
constexpr std::uint32_t binary2_order = 1U << 25U;
constexpr std::uint32_t utf8_text = 1U << 26U;

struct Family {
  std::string_view name;
  std::uint32_t lcid;
  int version = 0;  // the only one, where the family has no unversioned form; else 0
};

constexpr std::array families{
    Family{"Latin1_General", 0x0409},
    Family{"Albanian", 0x041C},
    Family{"Arabic", 0x0401},
    Family{"Chinese_PRC", 0x0804},
    Family{"Chinese_PRC_Stroke", 0x20804},
    Family{"Chinese_Taiwan_Bopomofo", 0x30404},
    Family{"Chinese_Taiwan_Stroke", 0x0404},
    Family{"Chinese_Hong_Kong_Stroke", 0x0C04, 1},
    Family{"Croatian", 0x041A},
    Family{"Cyrillic_General", 0x0419},
    Family{"Czech", 0x0405},
    Family{"Danish_Norwegian", 0x0406},
    Family{"Danish_Greenlandic", 0x0406, 2},
    Family{"Estonian", 0x0425},
    Family{"Finnish_Swedish", 0x040B},
    Family{"French", 0x040C},
    Family{"Georgian_Modern_Sort", 0x10437},
    Family{"German_PhoneBook", 0x10407},
    Family{"Greek", 0x0408},
    Family{"Hebrew", 0x040D},
    Family{"Hungarian", 0x040E},
    Family{"Hungarian_Technical", 0x1040E},
    Family{"Icelandic", 0x040F},
    Family{"Indic_General", 0x0439, 1},
    Family{"Japanese", 0x0411},
    Family{"Japanese_Unicode", 0x10411},
    Family{"Japanese_XJIS", 0x0411, 2},
    Family{"Japanese_Bushu_Kakusu", 0x40411, 2},
    Family{"Kazakh", 0x043F, 1},
    Family{"Korean", 0x0412, 1},
    Family{"Korean_Wansung", 0x0412},
    Family{"Latvian", 0x0426},
    Family{"Lithuanian", 0x0427},
    Family{"Macedonian_FYROM", 0x042F},
    Family{"Modern_Spanish", 0x0C0A},
    Family{"Norwegian", 0x0414, 2},
    Family{"Polish", 0x0415},
    Family{"Romanian", 0x0418},
    Family{"Serbian_Cyrillic", 0x0C1A, 2},
    Family{"Serbian_Latin", 0x081A, 2},
    Family{"Slovak", 0x041B},
    Family{"Slovenian", 0x0424},
    Family{"Thai", 0x041E},
    Family{"Traditional_Spanish", 0x040A},
    Family{"Turkish", 0x041F},
    Family{"Ukrainian", 0x0422},
    Family{"Urdu", 0x0420, 2},
    Family{"Vietnamese", 0x042A},
    Family{"Welsh", 0x0452, 2},
    Family{"Tatar", 0x0444, 1},
    Family{"Bosnian_Cyrillic", 0x201A, 2},
    Family{"Bosnian_Latin", 0x141A, 2},
};

struct SqlCollation {
  std::string_view name;
  std::uint8_t sort_id;
  std::uint32_t lcid = 0x0409;
};

constexpr std::array sql_collations{
    SqlCollation{"SQL_Latin1_General_CP1_CI_AS", 52},
    SqlCollation{"SQL_Latin1_General_CP1_CS_AS", 51},
    SqlCollation{"SQL_Latin1_General_Pref_CP1_CI_AS", 53},
    SqlCollation{"SQL_Latin1_General_CP1_CI_AI", 54},
    SqlCollation{"SQL_Latin1_General_CP437_BIN", 30},
    SqlCollation{"SQL_Latin1_General_CP437_CS_AS", 31},
    SqlCollation{"SQL_Latin1_General_CP437_CI_AS", 32},
    SqlCollation{"SQL_Latin1_General_Pref_CP437_CI_AS", 33},
    SqlCollation{"SQL_Latin1_General_CP437_CI_AI", 34},
    SqlCollation{"SQL_Latin1_General_CP850_BIN", 40},
    SqlCollation{"SQL_Latin1_General_CP850_CS_AS", 41},
    SqlCollation{"SQL_Latin1_General_CP850_CI_AS", 42},
    SqlCollation{"SQL_Latin1_General_Pref_CP850_CI_AS", 43},
    SqlCollation{"SQL_Latin1_General_CP850_CI_AI", 44},
    SqlCollation{"SQL_1xCompat_CP850_CI_AS", 49},
    SqlCollation{"SQL_Latin1_General_CP1250_CS_AS", 81},
    SqlCollation{"SQL_Latin1_General_CP1250_CI_AS", 82},
    SqlCollation{"SQL_Czech_CP1250_CS_AS", 83, 0x0405},
    SqlCollation{"SQL_Czech_CP1250_CI_AS", 84, 0x0405},
    SqlCollation{"SQL_Hungarian_CP1250_CS_AS", 85, 0x040E},
    SqlCollation{"SQL_Hungarian_CP1250_CI_AS", 86, 0x040E},
    SqlCollation{"SQL_Polish_CP1250_CS_AS", 87, 0x0415},
    SqlCollation{"SQL_Polish_CP1250_CI_AS", 88, 0x0415},
    SqlCollation{"SQL_Romanian_CP1250_CS_AS", 89, 0x0418},
    SqlCollation{"SQL_Romanian_CP1250_CI_AS", 90, 0x0418},
    SqlCollation{"SQL_Croatian_CP1250_CS_AS", 91, 0x041A},
    SqlCollation{"SQL_Croatian_CP1250_CI_AS", 92, 0x041A},
    SqlCollation{"SQL_Slovak_CP1250_CS_AS", 93, 0x041B},
    SqlCollation{"SQL_Slovak_CP1250_CI_AS", 94, 0x041B},
    SqlCollation{"SQL_Slovenian_CP1250_CS_AS", 95, 0x0424},
    SqlCollation{"SQL_Slovenian_CP1250_CI_AS", 96, 0x0424},
    SqlCollation{"SQL_Latin1_General_CP1251_CS_AS", 105},
    SqlCollation{"SQL_Latin1_General_CP1251_CI_AS", 106},
    SqlCollation{"SQL_Ukrainian_CP1251_CS_AS", 107, 0x0422},
    SqlCollation{"SQL_Ukrainian_CP1251_CI_AS", 108, 0x0422},
    SqlCollation{"SQL_Latin1_General_CP1253_CS_AS", 113},
    SqlCollation{"SQL_Latin1_General_CP1253_CI_AS", 114},
    SqlCollation{"SQL_Latin1_General_CP1253_CI_AI", 124},
    SqlCollation{"SQL_Latin1_General_CP1254_CS_AS", 129, 0x041F},
    SqlCollation{"SQL_Latin1_General_CP1254_CI_AS", 130, 0x041F},
    SqlCollation{"SQL_Latin1_General_CP1255_CS_AS", 137},
    SqlCollation{"SQL_Latin1_General_CP1255_CI_AS", 138},
    SqlCollation{"SQL_Latin1_General_CP1256_CS_AS", 145},
    SqlCollation{"SQL_Latin1_General_CP1256_CI_AS", 146},
    SqlCollation{"SQL_Latin1_General_CP1257_CS_AS", 153},
    SqlCollation{"SQL_Latin1_General_CP1257_CI_AS", 154},
};

bool equal_ascii(std::string_view a, std::string_view b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](char x, char y) {
    const auto low = [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; };
    return low(x) == low(y);
  });
}

// Takes "_PART" off the front of `rest`.
bool take(std::string_view& rest, std::string_view part) {
  if (rest.size() < part.size() || !equal_ascii(rest.substr(0, part.size()), part)) return false;
  if (rest.size() > part.size() && rest[part.size()] != '_') return false;
  rest.remove_prefix(part.size());
  return true;
}

// The flags of a Windows collation's suffix, as "_100_CI_AS_KS_SC_UTF8".
std::optional<std::uint32_t> flags_of(std::string_view rest, int default_version) {
  auto version = static_cast<std::uint32_t>(default_version);
  constexpr std::array<std::pair<std::string_view, std::uint32_t>, 3> versions{{{"_90", 1}, {"_100", 2}, {"_140", 3}}};
  for (const auto& [text, number] : versions)
    if (take(rest, text)) version = number;
  std::uint32_t flags = version << 28U;
  if (take(rest, "_BIN2")) {
    flags |= binary2_order;
  } else if (take(rest, "_BIN")) {
    flags |= binary_order;
  } else {
    flags |= ignore_width | ignore_kana;
    if (take(rest, "_CI")) {
      flags |= ignore_case;
    } else if (!take(rest, "_CS")) {
      return std::nullopt;
    }
    if (take(rest, "_AI")) {
      flags |= ignore_accent;
    } else if (!take(rest, "_AS")) {
      return std::nullopt;
    }
    if (take(rest, "_KS")) flags &= ~ignore_kana;
    if (take(rest, "_WS")) flags &= ~ignore_width;
    take(rest, "_VSS");
    if (take(rest, "_SC") && version == 0) return std::nullopt;
  }
  if (take(rest, "_UTF8")) flags |= utf8_text;
  if (!rest.empty()) return std::nullopt;
  return flags;
}

std::uint32_t sql_flags(std::string_view name) {
  if (name.ends_with("_BIN")) return binary_order;
  std::uint32_t flags = ignore_width | ignore_kana;
  if (name.find("_CI_") != std::string_view::npos) flags |= ignore_case;
  if (name.ends_with("_AI")) flags |= ignore_accent;
  return flags;
}

tds::Collation of_sql(const SqlCollation& c) { return {c.lcid | sql_flags(c.name), c.sort_id}; }

std::string suffix_text(std::uint32_t info, int family_version) {
  std::string out;
  constexpr std::array<std::string_view, 4> versions{"", "_90", "_100", "_140"};
  const std::uint32_t version = info >> 28U;
  if (version < versions.size()) out += versions[version];
  (void)family_version;
  if ((info & binary2_order) != 0) {
    out += "_BIN2";
  } else if ((info & binary_order) != 0) {
    out += "_BIN";
  } else {
    out += (info & ignore_case) != 0 ? "_CI" : "_CS";
    out += (info & ignore_accent) != 0 ? "_AI" : "_AS";
    if ((info & ignore_kana) == 0) out += "_KS";
    if ((info & ignore_width) == 0) out += "_WS";
    if ((info & utf8_text) != 0) out += "_SC";
  }
  if ((info & utf8_text) != 0) out += "_UTF8";
  return out;
}

}  // namespace

const tds::Collation& default_collation() {
  static const tds::Collation collation = of_sql(sql_collations[0]);
  return collation;
}

std::optional<tds::Collation> collation_by_name(std::string_view name) {
  for (const SqlCollation& c : sql_collations)
    if (equal_ascii(c.name, name)) return of_sql(c);
  for (const Family& f : families) {
    std::string_view rest = name;
    if (!take(rest, f.name)) continue;
    if (const auto flags = flags_of(rest, f.version)) return tds::Collation{f.lcid | *flags, 0};
  }
  return std::nullopt;
}

std::string collation_name(const tds::Collation& collation) {
  if (collation.sort_id != 0) {
    for (const SqlCollation& c : sql_collations)
      if (c.sort_id == collation.sort_id) return std::string(c.name);
    return {};
  }
  for (const Family& f : families)
    if (f.lcid == (collation.info & 0xFFFFFU) && static_cast<std::uint32_t>(f.version) <= collation.info >> 28U)
      return std::string(f.name) + suffix_text(collation.info, f.version);
  return {};
}

std::vector<std::string> collation_names() {
  std::vector<std::string> names;
  for (const SqlCollation& c : sql_collations) names.emplace_back(c.name);
  for (const Family& f : families)
    for (const std::string_view suffix : {"_BIN", "_BIN2", "_CI_AI", "_CI_AS", "_CS_AI", "_CS_AS"}) {
      if (f.version == 0) names.push_back(std::string(f.name) + std::string(suffix));
      names.push_back(std::string(f.name) + (f.version == 1 ? "_90" : "_100") + std::string(suffix));
    }
  return names;
}

namespace {

std::uint16_t page_of_sort_id(std::uint8_t id) {
  struct Range {
    int first, last;
    std::uint16_t page;
  };
  constexpr std::array ranges{
      Range{30, 35, 437},    Range{40, 45, 850},    Range{49, 49, 850},    Range{50, 54, 1252},
      Range{55, 61, 850},    Range{71, 75, 1252},   Range{80, 98, 1250},   Range{104, 108, 1251},
      Range{112, 114, 1253}, Range{120, 124, 1253}, Range{128, 130, 1254}, Range{136, 138, 1255},
      Range{144, 146, 1256}, Range{152, 160, 1257}, Range{183, 186, 1252}, Range{192, 193, 932},
      Range{194, 195, 949},  Range{196, 197, 950},  Range{198, 199, 936},  Range{200, 200, 932},
      Range{201, 201, 949},  Range{202, 202, 950},  Range{203, 203, 936},  Range{204, 206, 874},
      Range{210, 217, 1252}};
  for (const Range& r : ranges)
    if (id >= r.first && id <= r.last) return r.page;
  return 1252;
}

std::uint16_t page_of_lcid(std::uint32_t lcid) {
  switch (lcid) {
    case 0x041E:
      return 874;
    case 0x0411:
      return 932;
    case 0x0804:
    case 0x1004:
      return 936;
    case 0x0412:
      return 949;
    case 0x0404:
    case 0x0C04:
    case 0x1404:
      return 950;
    case 0x0405:
    case 0x040E:
    case 0x0415:
    case 0x0418:
    case 0x041A:
    case 0x041B:
    case 0x041C:
    case 0x0424:
    case 0x0442:
    case 0x081A:
    case 0x101A:
    case 0x141A:
    case 0x181A:
      return 1250;
    case 0x0402:
    case 0x0419:
    case 0x0422:
    case 0x0423:
    case 0x0428:
    case 0x042F:
    case 0x043F:
    case 0x0440:
    case 0x0444:
    case 0x0450:
    case 0x046D:
    case 0x0485:
    case 0x082C:
    case 0x0843:
    case 0x0850:
    case 0x0C1A:
    case 0x1C1A:
    case 0x201A:
      return 1251;
    case 0x0408:
      return 1253;
    case 0x040D:
      return 1255;
    case 0x042A:
      return 1258;
    case 0x041F:
    case 0x042C:
    case 0x0443:
      return 1254;
    case 0x0401:
    case 0x0420:
    case 0x0429:
    case 0x0480:
    case 0x048C:
      return 1256;
    case 0x0425:
    case 0x0426:
    case 0x0427:
    case 0x0827:
      return 1257;
    case 0x0439:
    case 0x043A:
    case 0x0451:
    case 0x0453:
    case 0x0454:
    case 0x0457:
    case 0x045A:
    case 0x045B:
    case 0x0461:
    case 0x0463:
    case 0x0465:
    case 0x0481:
    case 0x0845:
      return 0;
    default:
      return lcid >= 0x0445 && lcid <= 0x044F ? 0 : 1252;
  }
}

}  // namespace

std::uint16_t code_page_of(const tds::Collation& collation) {
  if (collation.utf8()) return 65001;
  if (collation.sort_id != 0) return page_of_sort_id(collation.sort_id);
  return page_of_lcid(collation.info & 0xFFFFU);
}

std::string to_code_page(std::u16string_view text, const tds::Collation& collation) {
  const std::uint16_t number = code_page_of(collation);
  const text::CodePage& page = text::CodePage::get(number == 0 ? 1252 : number);
  const std::string utf8 = narrow(text);
  ByteBuffer out;
  if (page.encode(out, utf8) == text::npos) return std::string(as_text(out.view()));
  for (std::size_t at = 0; at < utf8.size();) {
    const std::size_t begin = at;
    const char32_t c = text::next_code_point(utf8, at);
    if (!page.encodable(c) || page.encode(out, std::string_view(utf8).substr(begin, at - begin)) != text::npos)
      out.push('?');
  }
  return std::string(as_text(out.view()));
}

std::u16string from_code_page(std::string_view bytes, const tds::Collation& collation) {
  const std::uint16_t number = code_page_of(collation);
  ByteBuffer utf8;
  text::CodePage::get(number == 0 ? 1252 : number).decode_lenient(utf8, as_bytes(bytes));
  return widen(as_text(utf8.view()));
}

}  // namespace rowferry::sandbox::engine
