#include "mssql/sql_type.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>

#include "base/error.hpp"
#include "base/limits.hpp"
#include "tds/wire/logical_type.hpp"

namespace rowferry::mssql {

namespace {

using rows::Type;
using rows::TypeId;

enum class Arguments : std::uint8_t { none, length, precision, scale, float_bits };

struct Known {
  std::string_view name;    // as written, lower case, single blanks
  std::string_view system;  // the system's name
  tds::DataType id;
  Arguments arguments = Arguments::none;
  std::uint32_t bytes = 0;       // of fixed types, for TypeInfo and the row's size
  std::uint32_t length_max = 0;  // with Arguments::length, without (max)
  bool max_allowed = false;
};

constexpr std::array<Known, 40> known_types{{
    {"bit", "bit", tds::DataType::bitn, Arguments::none, 1},
    {"tinyint", "tinyint", tds::DataType::intn, Arguments::none, 1},
    {"smallint", "smallint", tds::DataType::intn, Arguments::none, 2},
    {"int", "int", tds::DataType::intn, Arguments::none, 4},
    {"integer", "int", tds::DataType::intn, Arguments::none, 4},
    {"bigint", "bigint", tds::DataType::intn, Arguments::none, 8},
    {"real", "real", tds::DataType::fltn, Arguments::none, 4},
    {"float", "float", tds::DataType::fltn, Arguments::float_bits, 8},
    {"double precision", "float", tds::DataType::fltn, Arguments::none, 8},
    {"decimal", "decimal", tds::DataType::decimaln, Arguments::precision},
    {"dec", "decimal", tds::DataType::decimaln, Arguments::precision},
    {"numeric", "numeric", tds::DataType::numericn, Arguments::precision},
    {"money", "money", tds::DataType::moneyn, Arguments::none, 8},
    {"smallmoney", "smallmoney", tds::DataType::moneyn, Arguments::none, 4},
    {"date", "date", tds::DataType::date, Arguments::none, 3},
    {"time", "time", tds::DataType::time, Arguments::scale, 5},
    {"datetime", "datetime", tds::DataType::datetimn, Arguments::none, 8},
    {"smalldatetime", "smalldatetime", tds::DataType::datetimn, Arguments::none, 4},
    {"datetime2", "datetime2", tds::DataType::datetime2, Arguments::scale, 8},
    {"datetimeoffset", "datetimeoffset", tds::DataType::datetimeoffset, Arguments::scale, 10},
    {"uniqueidentifier", "uniqueidentifier", tds::DataType::guid, Arguments::none, 16},
    {"char", "char", tds::DataType::bigchar, Arguments::length, 0, 8000, false},
    {"character", "char", tds::DataType::bigchar, Arguments::length, 0, 8000, false},
    {"varchar", "varchar", tds::DataType::bigvarchar, Arguments::length, 0, 8000, true},
    {"char varying", "varchar", tds::DataType::bigvarchar, Arguments::length, 0, 8000, true},
    {"character varying", "varchar", tds::DataType::bigvarchar, Arguments::length, 0, 8000, true},
    {"nchar", "nchar", tds::DataType::nchar, Arguments::length, 0, 4000, false},
    {"national char", "nchar", tds::DataType::nchar, Arguments::length, 0, 4000, false},
    {"national character", "nchar", tds::DataType::nchar, Arguments::length, 0, 4000, false},
    {"nvarchar", "nvarchar", tds::DataType::nvarchar, Arguments::length, 0, 4000, true},
    {"national char varying", "nvarchar", tds::DataType::nvarchar, Arguments::length, 0, 4000, true},
    {"national character varying", "nvarchar", tds::DataType::nvarchar, Arguments::length, 0, 4000, true},
    {"binary", "binary", tds::DataType::bigbinary, Arguments::length, 0, 8000, false},
    {"varbinary", "varbinary", tds::DataType::bigvarbinary, Arguments::length, 0, 8000, true},
    {"binary varying", "varbinary", tds::DataType::bigvarbinary, Arguments::length, 0, 8000, true},
    {"text", "text", tds::DataType::text},
    {"ntext", "ntext", tds::DataType::ntext},
    {"image", "image", tds::DataType::image},
    {"xml", "xml", tds::DataType::xml},
    {"json", "json", tds::DataType::json},
}};

const Known* find_known(std::string_view name) noexcept {
  const auto* const at = std::ranges::find(known_types, name, &Known::name);
  return at == known_types.end() ? nullptr : at;
}

bool has_collation(const SqlType& type) noexcept { return type.name.ends_with("char") || type.name.ends_with("text"); }
bool wide(std::string_view name) noexcept { return name.starts_with('n') && name != "numeric"; }

// Splits a type into its words, numbers and "max".
class TypeParser {
 public:
  explicit TypeParser(std::string_view text) : text_(text) {}

  SqlType parse() {
    std::string name = words();
    const Known* const known = find_known(name);
    if (known == nullptr) {
      if (name == "sysname") return finish({.name = "nvarchar", .length = 128});
      fail(name.empty() ? "a type's name is expected" : fmt::format("\"{}\" is no type that can be loaded", name));
    }
    SqlType type{.name = std::string(known->system)};
    const std::vector<std::string> arguments = parenthesised();
    switch (known->arguments) {
      case Arguments::none:
        if (!arguments.empty()) fail("this type takes no arguments");
        break;
      case Arguments::length:
        read_length(type, *known, arguments);
        break;
      case Arguments::precision:
        read_precision(type, arguments);
        break;
      case Arguments::scale:
        type.scale = arguments.empty() ? 7 : number(only(arguments), 0, 7);
        break;
      case Arguments::float_bits:
        if (!arguments.empty() && number(only(arguments), 1, 53) <= 24) type.name = "real";
        break;
    }
    return finish(std::move(type));
  }

 private:
  SqlType finish(SqlType type) {
    const std::string word = words();
    if (word == "collate") {
      if (!has_collation(type)) fail("COLLATE is for character types");
      skip_blanks();
      const std::size_t begin = at_;
      while (at_ < text_.size() && (std::isalnum(static_cast<unsigned char>(text_[at_])) != 0 || text_[at_] == '_'))
        ++at_;
      type.collation = text_.substr(begin, at_ - begin);
      if (type.collation.empty()) fail("a collation's name is expected");
    } else if (!word.empty()) {
      fail(fmt::format("\"{}\" is not expected here", word));
    }
    skip_blanks();
    if (at_ != text_.size()) fail("the type should end here");
    return type;
  }

  void read_length(SqlType& type, const Known& known, const std::vector<std::string>& arguments) {
    if (arguments.empty()) {
      type.length = 1;
    } else if (only(arguments) == "max") {
      if (!known.max_allowed) fail("this type cannot be (max)");
      type.length = length_unlimited;
    } else {
      type.length = static_cast<std::uint32_t>(number(only(arguments), 1, static_cast<int>(known.length_max)));
    }
  }

  void read_precision(SqlType& type, const std::vector<std::string>& arguments) {
    if (arguments.size() > 2) fail("a precision and a scale are all it takes");
    type.precision = arguments.empty() ? 18 : number(arguments[0], 1, 38);
    type.scale = arguments.size() < 2 ? 0 : number(arguments[1], 0, type.precision);
  }

  // Words up to a parenthesis, the end, or COLLATE; lower case.
  std::string words() {
    std::string out;
    for (;;) {
      skip_blanks();
      std::string word;
      std::size_t at = at_;
      while (at < text_.size() && (std::isalnum(static_cast<unsigned char>(text_[at])) != 0 || text_[at] == '_')) {
        word += static_cast<char>(std::tolower(static_cast<unsigned char>(text_[at++])));
      }
      if (word.empty() || (word == "collate" && !out.empty())) return out;
      at_ = at;
      if (word == "collate") return word;
      out += (out.empty() ? "" : " ") + word;
    }
  }

  std::vector<std::string> parenthesised() {
    std::vector<std::string> arguments;
    skip_blanks();
    if (at_ == text_.size() || text_[at_] != '(') return arguments;
    ++at_;
    for (;;) {
      arguments.push_back(words());
      skip_blanks();
      if (at_ == text_.size()) fail("the parenthesis is not closed");
      const char c = text_[at_++];
      if (c == ')') return arguments;
      if (c != ',') fail("a comma or a parenthesis is expected");
    }
  }

  const std::string& only(const std::vector<std::string>& arguments) {
    if (arguments.size() != 1) fail("one argument is expected");
    return arguments.front();
  }

  int number(const std::string& digits, int min, int max) {
    int value = 0;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
    if (error != std::errc() || end != digits.data() + digits.size() || value < min || value > max) {
      fail(fmt::format("\"{}\" is not a number from {} to {}", digits, min, max));
    }
    return value;
  }

  void skip_blanks() {
    while (at_ < text_.size() && std::isspace(static_cast<unsigned char>(text_[at_])) != 0) ++at_;
  }

  [[noreturn]] void fail(std::string_view why) const {
    throw Error(Category::input, "bad_type",
                fmt::format("\"{}\": {}", cut_for_message(text_, limits::error_value_chars), why));
  }

  std::string_view text_;
  std::size_t at_ = 0;
};

rows::Type with_finite(Type type) {
  if (type.id == TypeId::float32 || type.id == TypeId::float64) type.finite = true;
  return type;
}

struct Locale {
  std::string_view prefix;
  std::uint16_t code_page;
};
// Windows collations by the language that their names begin with; all others are 1252.
constexpr std::array<Locale, 57> locales{{
    {"Albanian", 1250},
    {"Arabic", 1256},
    {"Assamese", 0},
    {"Azeri_Cyrillic", 1251},
    {"Azeri_Latin", 1254},
    {"Bashkir", 1251},
    {"Bengali", 0},
    {"Bosnian_Cyrillic", 1251},
    {"Bosnian_Latin", 1250},
    {"Chinese_Hong_Kong", 950},
    {"Chinese_PRC", 936},
    {"Chinese_Simplified", 936},
    {"Chinese_Taiwan", 950},
    {"Chinese_Traditional", 950},
    {"Croatian", 1250},
    {"Cyrillic", 1251},
    {"Czech", 1250},
    {"Dari", 1256},
    {"Divehi", 0},
    {"Estonian", 1257},
    {"Georgian", 1252},
    {"Greek", 1253},
    {"Hebrew", 1255},
    {"Hungarian", 1250},
    {"Indic", 0},
    {"Japanese", 932},
    {"Kazakh", 1251},
    {"Khmer", 0},
    {"Korean", 949},
    {"Lao", 0},
    {"Latvian", 1257},
    {"Lithuanian", 1257},
    {"Macedonian", 1251},
    {"Maltese", 0},
    {"Maori", 0},
    {"Nepali", 0},
    {"Pashto", 0},
    {"Persian", 1256},
    {"Polish", 1250},
    {"Romanian", 1250},
    {"Serbian_Cyrillic", 1251},
    {"Serbian_Latin", 1250},
    {"Slovak", 1250},
    {"Slovenian", 1250},
    {"Syriac", 0},
    {"Tatar", 1251},
    {"Thai", 874},
    {"Tibetan", 0},
    {"Turkish", 1254},
    {"Turkmen", 1250},
    {"Uighur", 1256},
    {"Ukrainian", 1251},
    {"Urdu", 1256},
    {"Uzbek_Latin", 1254},
    {"Vietnamese", 1258},
    {"Yakut", 1251},
    {"Tamazight", 1252},
}};

// SQL_Latin1_General_CP1251_CI_AS names its page; CP1 is 1252.
std::uint16_t page_of_sql_collation(std::string_view name) {
  const std::size_t at = name.find("_CP");
  if (at == std::string_view::npos) return 1252;
  unsigned page = 0;
  std::from_chars(name.data() + at + 3, name.data() + name.size(), page);
  return page <= 1 ? 1252 : static_cast<std::uint16_t>(page);
}

}  // namespace

SqlType parse_type(std::string_view text) { return TypeParser(text).parse(); }

std::string type_text(const SqlType& type) {
  const Known* const known = find_known(type.name);
  if (type.length == length_unlimited) return type.name + "(max)";
  if (type.length != 0) return fmt::format("{}({})", type.name, type.length);
  if (type.precision != 0) return fmt::format("{}({},{})", type.name, type.precision, type.scale);
  if (known != nullptr && known->arguments == Arguments::scale) return fmt::format("{}({})", type.name, type.scale);
  if (type.name == "float") return "float(53)";
  return type.name;
}

std::string type_ddl(const SqlType& type) {
  return type.collation.empty() ? type_text(type) : fmt::format("{} COLLATE {}", type_text(type), type.collation);
}

rows::Type logical_type(const SqlType& type, std::uint16_t default_code_page) {
  const Known* const known = find_known(type.name);
  if (known == nullptr) throw Error(Category::internal, "unknown_type", "no such type: " + type.name);
  tds::ColumnMeta meta;
  meta.type.id = known->id;
  meta.type.max_length = known->bytes;
  if (type.length == length_unlimited) {
    meta.type.max_length = tds::max_length_plp;
  } else if (type.length != 0) {
    meta.type.max_length = type.length * (wide(type.name) ? 2 : 1);
  }
  meta.type.precision = static_cast<std::uint8_t>(type.precision);
  meta.type.scale = static_cast<std::uint8_t>(type.scale);
  meta.type.collation = {.info = 0x00D00409, .sort_id = 52};  // any that is known: the page is set below
  Type logical = with_finite(tds::logical_type(meta));
  if (has_collation(type) && !wide(type.name)) {
    const std::uint16_t page = type.collation.empty() ? default_code_page : code_page_of(type.collation);
    if (page == 0) {
      throw Error(Category::unsupported, "unknown_collation",
                  fmt::format("the collation {} is for Unicode columns only: {} cannot be",
                              type.collation.empty() ? "of the database" : type.collation, type_text(type)));
    }
    logical.code_page = page == 65001 ? 0 : page;
  }
  return logical;
}

rows::Type logical_type(const tds::ColumnMeta& column) { return with_finite(tds::logical_type(column)); }

std::size_t fixed_row_bytes(const SqlType& type) {
  const Known* const known = find_known(type.name);
  if (type.precision != 0)
    return type.precision <= 9 ? 5 : (type.precision <= 19 ? 9 : (type.precision <= 28 ? 13 : 17));
  if (type.name == "char" || type.name == "binary") return type.length;
  if (type.name == "nchar") return type.length * std::size_t{2};
  return known == nullptr ? 0 : known->bytes;
}

std::uint16_t code_page_of(std::string_view collation) {
  if (collation.find("_UTF8") != std::string_view::npos) return 65001;
  if (collation.starts_with("SQL_")) return page_of_sql_collation(collation);
  const auto* const at =
      std::ranges::find_if(locales, [&](const Locale& l) { return collation.starts_with(l.prefix); });
  return at == locales.end() ? 1252 : at->code_page;
}

}  // namespace rowferry::mssql
