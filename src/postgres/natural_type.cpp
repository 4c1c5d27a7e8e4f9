#include "postgres/natural_type.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <vector>

#include "base/error.hpp"
#include "base/limits.hpp"
#include "postgres/dialect.hpp"
#include "postgres/load_type.hpp"

namespace rowferry::postgres {

namespace {

using rows::Quantum;
using rows::Type;
using rows::TypeId;

constexpr int header = 4;             // VARHDRSZ, part of length modifiers
constexpr int length_max = 10485760;  // of char and varchar
constexpr int bits_max = 83886080;
constexpr int numeric_precision_max = 1000;
constexpr int fraction_max = 6;

enum class Arguments : std::uint8_t { none, length, bits, precision, fraction, float_bits };

struct Known {
  std::string_view name;  // as written, lower case, single blanks
  std::string_view ddl;   // the first words of the DDL
  Oid oid;
  Arguments arguments = Arguments::none;
};

constexpr std::array<Known, 55> known_types{{
    {"boolean", "boolean", 16},
    {"bool", "boolean", 16},
    {"smallint", "smallint", 21},
    {"int2", "smallint", 21},
    {"integer", "integer", 23},
    {"int", "integer", 23},
    {"int4", "integer", 23},
    {"bigint", "bigint", 20},
    {"int8", "bigint", 20},
    {"real", "real", 700},
    {"float4", "real", 700},
    {"double precision", "double precision", 701},
    {"float8", "double precision", 701},
    {"float", "double precision", 701, Arguments::float_bits},
    {"numeric", "numeric", 1700, Arguments::precision},
    {"decimal", "numeric", 1700, Arguments::precision},
    {"dec", "numeric", 1700, Arguments::precision},
    {"date", "date", 1082},
    {"time", "time", 1083, Arguments::fraction},
    {"time without time zone", "time", 1083, Arguments::fraction},
    {"timestamp", "timestamp", 1114, Arguments::fraction},
    {"timestamp without time zone", "timestamp", 1114, Arguments::fraction},
    {"timestamptz", "timestamptz", 1184, Arguments::fraction},
    {"timestamp with time zone", "timestamptz", 1184, Arguments::fraction},
    {"uuid", "uuid", 2950},
    {"bytea", "bytea", 17},
    {"text", "text", 25},
    {"varchar", "varchar", 1043, Arguments::length},
    {"character varying", "varchar", 1043, Arguments::length},
    {"char varying", "varchar", 1043, Arguments::length},
    {"nchar varying", "varchar", 1043, Arguments::length},
    {"national character varying", "varchar", 1043, Arguments::length},
    {"char", "char", 1042, Arguments::length},
    {"character", "char", 1042, Arguments::length},
    {"bpchar", "bpchar", 1042, Arguments::length},
    {"nchar", "char", 1042, Arguments::length},
    {"national character", "char", 1042, Arguments::length},
    {"name", "name", 19},
    {"json", "json", 114},
    {"jsonb", "jsonb", 3802},
    {"xml", "xml", 142},
    {"bit", "bit", 1560, Arguments::bits},
    {"bit varying", "varbit", 1562, Arguments::bits},
    {"varbit", "varbit", 1562, Arguments::bits},
    {"oid", "oid", 26},
    {"xid", "xid", 28},
    {"money", "money", 790},
    {"interval", "interval", 1186},
    {"timetz", "timetz", 1266, Arguments::fraction},
    {"time with time zone", "timetz", 1266, Arguments::fraction},
    {"inet", "inet", 869},
    {"cidr", "cidr", 650},
    {"macaddr", "macaddr", 829},
    {"macaddr8", "macaddr8", 774},
    {"real[]", "real[]", 1021},
}};

bool character(Oid oid) noexcept { return oid == 25 || oid == 1042 || oid == 1043; }

class TypeParser {
 public:
  explicit TypeParser(std::string_view text) : text_(text) {}

  NamedType parse() {
    std::string name = words();
    std::vector<int> arguments = parenthesised();
    // timestamp(3) with time zone: the arguments stand in the middle.
    if (const std::string more = words(); !more.empty()) name += " " + more;
    skip_blanks();
    if (at_ < text_.size() && text_[at_] == '[') {
      constexpr std::string_view brackets = "[]";
      if (name == "float4") name = "real";
      if (name != "real" || !arguments.empty() || text_.substr(at_, brackets.size()) != brackets) no_array();
      name += brackets;
      at_ += brackets.size();
    }
    const auto* const known = std::ranges::find(known_types, name, &Known::name);
    if (known == known_types.end()) {
      fail(name.empty() ? "a type's name is expected" : fmt::format("\"{}\" is no type that can be loaded", name));
    }
    NamedType out;
    out.facts.oid = known->oid;
    out.facts.name = known->ddl;
    out.facts.schema = "pg_catalog";
    out.facts.array = out.facts.name.ends_with(']');
    out.ddl = known->ddl;
    apply(out, *known, arguments);
    read_collation(out);
    return out;
  }

 private:
  void apply(NamedType& out, const Known& known, const std::vector<int>& arguments) {
    const std::size_t most = known.arguments == Arguments::none ? 0 : (known.arguments == Arguments::precision ? 2 : 1);
    if (arguments.size() > most) fail(most == 0 ? "this type takes no arguments" : "too many arguments");
    switch (known.arguments) {
      case Arguments::none:
        return;
      case Arguments::length:
        // char alone is char(1); varchar and bpchar alone have no limit.
        if (!arguments.empty()) {
          out.facts.typmod = within(arguments[0], 1, length_max) + header;
        } else if (known.ddl == "char") {
          out.facts.typmod = 1 + header;
        }
        break;
      case Arguments::bits:
        if (!arguments.empty()) out.facts.typmod = within(arguments[0], 1, bits_max);
        if (arguments.empty() && known.ddl == "bit") out.facts.typmod = 1;
        break;
      case Arguments::precision:
        read_precision(out, arguments);
        return;
      case Arguments::fraction:
        out.facts.typmod = arguments.empty() ? -1 : within(arguments[0], 0, fraction_max);
        break;
      case Arguments::float_bits:
        if (!arguments.empty() && within(arguments[0], 1, 53) <= 24) {
          out.facts.oid = 700;
          out.facts.name = out.ddl = "real";
        }
        return;
    }
    if (!arguments.empty()) out.ddl += fmt::format("({})", arguments[0]);
  }

  void read_precision(NamedType& out, const std::vector<int>& arguments) {
    if (arguments.empty()) return;
    const int precision = within(arguments[0], 1, numeric_precision_max);
    const int scale = arguments.size() < 2 ? 0 : within(arguments[1], 0, precision);
    out.facts.typmod = ((precision << 16) | scale) + header;
    out.ddl += fmt::format("({},{})", precision, scale);
  }

  void read_collation(NamedType& out) {
    skip_blanks();
    if (at_ == text_.size()) return;
    constexpr std::string_view keyword = "collate";
    const std::string word = lower(text_.substr(at_, keyword.size()));
    if (word != keyword) fail("the type should end here");
    if (!character(out.facts.oid)) fail("COLLATE is for character types");
    at_ += keyword.size();
    skip_blanks();
    std::string_view rest = text_.substr(at_);
    while (!rest.empty() && std::isspace(static_cast<unsigned char>(rest.back())) != 0) rest.remove_suffix(1);
    std::string sql;
    while (!rest.empty()) {
      std::string part;
      if (rest.front() == '"') {
        const std::size_t end = rest.find('"', 1);
        if (end == std::string_view::npos) fail("a quote that is not closed");
        part = rest.substr(1, end - 1);
        rest.remove_prefix(end + 1);
      } else {
        const std::size_t end = std::min(rest.find('.'), rest.size());
        part = rest.substr(0, end);
        rest.remove_prefix(end);
      }
      if (part.empty()) fail("a collation's name is expected");
      sql += (sql.empty() ? "" : ".") + quote_name(part);
      if (rest.empty()) break;
      if (rest.front() != '.') fail("a collation's name should end here");
      rest.remove_prefix(1);
      if (rest.empty()) fail("a collation's name is expected");
    }
    if (sql.empty()) fail("a collation's name is expected");
    // The session's search path is empty: a bare name is one of the server's own.
    out.ddl += " COLLATE " + (sql.find("\".\"") == std::string::npos ? "pg_catalog." + sql : sql);
  }

  static std::string lower(std::string_view text) {
    std::string out(text);
    for (char& c : out) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    return out;
  }

  // Words up to a parenthesis, the end, or COLLATE; lower case.
  std::string words() {
    std::string out;
    for (;;) {
      skip_blanks();
      std::size_t end = at_;
      while (end < text_.size() && (std::isalnum(static_cast<unsigned char>(text_[end])) != 0 || text_[end] == '_'))
        ++end;
      const std::string word = lower(text_.substr(at_, end - at_));
      if (word.empty() || word == "collate") return out;
      at_ = end;
      out += (out.empty() ? "" : " ") + word;
    }
  }

  std::vector<int> parenthesised() {
    std::vector<int> arguments;
    skip_blanks();
    if (at_ == text_.size() || text_[at_] != '(') return arguments;
    ++at_;
    for (;;) {
      skip_blanks();
      int value = 0;
      const auto [end, error] = std::from_chars(text_.data() + at_, text_.data() + text_.size(), value);
      if (error != std::errc()) fail("a number is expected");
      at_ = static_cast<std::size_t>(end - text_.data());
      arguments.push_back(value);
      skip_blanks();
      if (at_ == text_.size()) fail("the parenthesis is not closed");
      const char c = text_[at_++];
      if (c == ')') return arguments;
      if (c != ',') fail("a comma or a parenthesis is expected");
    }
  }

  int within(int value, int min, int max) {
    if (value < min || value > max) fail(fmt::format("{} is not from {} to {}", value, min, max));
    return value;
  }

  void skip_blanks() {
    while (at_ < text_.size() && std::isspace(static_cast<unsigned char>(text_[at_])) != 0) ++at_;
  }

  [[noreturn]] void fail(std::string_view why) const {
    throw Error(Category::input, "bad_type",
                fmt::format("\"{}\": {}", cut_for_message(text_, limits::error_value_chars), why));
  }
  [[noreturn]] void no_array() const {
    throw Error(Category::unsupported, "unloadable_type",
                fmt::format("\"{}\": of arrays only real[] can be created", text_))
        .with_hint("text holds the array as the source prints it");
  }

  std::string_view text_;
  std::size_t at_ = 0;
};

std::string natural_text(const system::SourceColumn& column) {
  const Type& type = column.type;
  if (column.native == "xml") return "xml";
  if (type.id == TypeId::json) return column.rewritten && column.native == "jsonb" ? "jsonb" : "json";
  if (column.native == "json") return "json";
  if (column.native.starts_with("vector")) return "real[]";
  // A length in bytes or UTF-16 units is at least that in characters.
  if (type.length == 0 || type.length > length_max) return "text";
  return fmt::format("{}({})", type.padded ? "char" : "varchar", type.length);
}

std::string natural_clock(const Type& type) {
  int digits = std::min<int>(type.digits, fraction_max);
  if (type.quantum == Quantum::tick_300) digits = 3;
  if (type.quantum == Quantum::minute) digits = 0;
  if (type.id == TypeId::time) return fmt::format("time({})", digits);
  return fmt::format("{}({})", type.zoned ? "timestamptz" : "timestamp", digits);
}

std::string natural(const system::SourceColumn& column) {
  const Type& type = column.type;
  switch (type.id) {
    case TypeId::null:
      return "text";
    case TypeId::boolean:
      return "boolean";
    case TypeId::int8:
    case TypeId::uint8:
    case TypeId::int16:
      return "smallint";
    case TypeId::uint16:
    case TypeId::int32:
      return "integer";
    case TypeId::uint32:
    case TypeId::int64:
      return "bigint";
    case TypeId::uint64:
      return "numeric(20,0)";
    case TypeId::float32:
      return "real";
    case TypeId::float64:
      return "double precision";
    case TypeId::decimal:
      return fmt::format("numeric({},{})", type.precision, type.scale);
    case TypeId::date:
      return "date";
    case TypeId::time:
    case TypeId::timestamp:
      return natural_clock(type);
    case TypeId::uuid:
      return "uuid";
    case TypeId::text:
    case TypeId::json:
      return natural_text(column);
    case TypeId::binary:
      return "bytea";
  }
  throw Error(Category::internal, "unknown_type", "a logical type without a PostgreSQL type");
}

}  // namespace

NamedType parse_type(std::string_view text) { return TypeParser(text).parse(); }

system::NaturalType natural_type(const system::SourceColumn& column, std::string_view wanted_type, int money_scale) {
  const NamedType named = parse_type(wanted_type.empty() ? natural(column) : std::string(wanted_type));
  const LoadType load = load_type(named.facts, money_scale);
  if (!load.why_not.empty()) {
    throw Error(Category::unsupported, "unloadable_type", fmt::format("{}: {}", named.ddl, load.why_not));
  }
  system::NaturalType out;
  out.native = named.ddl;
  out.type = load.type;
  if (load.any_decimal && column.type.id == TypeId::decimal && !column.any_decimal) {
    out.type = Type::decimal(column.type.precision, column.type.scale);
  }
  out.compared = load.compared;
  const bool from_text = column.type.id == TypeId::text || column.type.id == TypeId::json;
  out.read_as_text = !from_text && (out.type.id == TypeId::text || out.type.id == TypeId::json);
  if (column.any_decimal && wanted_type.empty()) {
    out.notices.push_back({"numeric_without_precision",
                           fmt::format("{} becomes {}: a value with more digits on either side of the point is a loss; "
                                       "\"scan_numeric\": true finds the scale that is used, \"type\" names one",
                                       column.native, out.native),
                           column.name});
  }
  return out;
}

}  // namespace rowferry::postgres
