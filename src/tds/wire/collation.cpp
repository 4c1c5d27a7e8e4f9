#include "tds/wire/collation.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/error.hpp"

namespace rowferry::tds {

namespace {

struct SortIds {
  std::uint8_t first;
  std::uint8_t last;
  std::uint16_t code_page;
};

// SQL Server's documented sort orders of SQL_* collations (syscharsets), sorted by `first`.
constexpr std::array sort_ids = {
    SortIds{30, 35, 437},    SortIds{40, 45, 850},    SortIds{49, 49, 850},    SortIds{50, 54, 1252},
    SortIds{55, 61, 850},    SortIds{71, 75, 1252},   SortIds{80, 98, 1250},   SortIds{104, 108, 1251},
    SortIds{112, 114, 1253}, SortIds{120, 122, 1253}, SortIds{124, 124, 1253}, SortIds{128, 130, 1254},
    SortIds{136, 138, 1255}, SortIds{144, 146, 1256}, SortIds{152, 160, 1257}, SortIds{183, 186, 1252},
    SortIds{192, 193, 932},  SortIds{194, 195, 949},  SortIds{196, 197, 950},  SortIds{198, 199, 936},
    SortIds{200, 200, 932},  SortIds{201, 201, 949},  SortIds{202, 202, 950},  SortIds{203, 203, 936},
    SortIds{204, 206, 874},  SortIds{210, 217, 1252},
};

struct Locale {
  std::uint16_t lcid;
  std::uint16_t code_page;
};

// Windows locales whose ANSI code page is not 1252, sorted by LCID (MS-LCID and the national language tables).
constexpr std::array locales = {
    Locale{0x0401, 1256}, Locale{0x0402, 1251}, Locale{0x0404, 950},  Locale{0x0405, 1250}, Locale{0x0408, 1253},
    Locale{0x040D, 1255}, Locale{0x040E, 1250}, Locale{0x0411, 932},  Locale{0x0412, 949},  Locale{0x0415, 1250},
    Locale{0x0418, 1250}, Locale{0x0419, 1251}, Locale{0x041A, 1250}, Locale{0x041B, 1250}, Locale{0x041C, 1250},
    Locale{0x041E, 874},  Locale{0x041F, 1254}, Locale{0x0420, 1256}, Locale{0x0422, 1251}, Locale{0x0423, 1251},
    Locale{0x0424, 1250}, Locale{0x0425, 1257}, Locale{0x0426, 1257}, Locale{0x0427, 1257}, Locale{0x0428, 1251},
    Locale{0x0429, 1256}, Locale{0x042A, 1258}, Locale{0x042C, 1254}, Locale{0x042F, 1251}, Locale{0x0439, 0},
    Locale{0x043A, 0},    Locale{0x043F, 1251}, Locale{0x0440, 1251}, Locale{0x0442, 1250}, Locale{0x0443, 1254},
    Locale{0x0444, 1251}, Locale{0x0445, 0},    Locale{0x0446, 0},    Locale{0x0447, 0},    Locale{0x0448, 0},
    Locale{0x0449, 0},    Locale{0x044A, 0},    Locale{0x044B, 0},    Locale{0x044C, 0},    Locale{0x044D, 0},
    Locale{0x044E, 0},    Locale{0x044F, 0},    Locale{0x0450, 1251}, Locale{0x0451, 0},    Locale{0x0453, 0},
    Locale{0x0454, 0},    Locale{0x0457, 0},    Locale{0x045A, 0},    Locale{0x045B, 0},    Locale{0x0461, 0},
    Locale{0x0463, 0},    Locale{0x0465, 0},    Locale{0x046D, 1251}, Locale{0x0480, 1256}, Locale{0x0481, 0},
    Locale{0x0485, 1251}, Locale{0x048C, 1256}, Locale{0x0801, 1256}, Locale{0x0804, 936},  Locale{0x081A, 1250},
    Locale{0x0827, 1257}, Locale{0x082C, 1251}, Locale{0x0843, 1251}, Locale{0x0845, 0},    Locale{0x0850, 1251},
    Locale{0x0C01, 1256}, Locale{0x0C04, 950},  Locale{0x0C1A, 1251}, Locale{0x1001, 1256}, Locale{0x1004, 936},
    Locale{0x101A, 1250}, Locale{0x1401, 1256}, Locale{0x1404, 950},  Locale{0x141A, 1250}, Locale{0x1801, 1256},
    Locale{0x181A, 1250}, Locale{0x1C01, 1256}, Locale{0x1C1A, 1251}, Locale{0x2001, 1256}, Locale{0x201A, 1251},
    Locale{0x2401, 1256}, Locale{0x2801, 1256}, Locale{0x2C01, 1256}, Locale{0x3001, 1256}, Locale{0x3401, 1256},
    Locale{0x3801, 1256}, Locale{0x3C01, 1256}, Locale{0x4001, 1256},
};

std::uint16_t locale_of(const Collation& collation) noexcept { return static_cast<std::uint16_t>(collation.info); }

}  // namespace

std::optional<std::uint16_t> code_page(const Collation& collation) noexcept {
  if (collation.utf8()) return code_page_utf8;
  if (collation.sort_id != 0) {
    for (const SortIds& range : sort_ids) {
      if (collation.sort_id >= range.first && collation.sort_id <= range.last) return range.code_page;
    }
    return std::nullopt;
  }
  const std::uint16_t lcid = locale_of(collation);
  const auto* const at = std::lower_bound(locales.begin(), locales.end(), lcid,
                                          [](const Locale& l, std::uint16_t wanted) { return l.lcid < wanted; });
  return at != locales.end() && at->lcid == lcid ? at->code_page : 1252;
}

std::uint16_t code_page_or_throw(const Collation& collation) {
  if (const auto found = code_page(collation)) return *found;
  throw Error(Category::unsupported, "unknown_collation",
              fmt::format("the code page of a collation is not known ({})", describe(collation)));
}

std::string describe(const Collation& collation) {
  return fmt::format("locale 0x{:04X}, SortId {}", locale_of(collation), collation.sort_id);
}

}  // namespace rowferry::tds
