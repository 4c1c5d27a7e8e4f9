#include <algorithm>
#include <array>
#include <cmath>

#include "sandbox/engine/collation.hpp"
#include "sandbox/engine/functions.hpp"

namespace rowferry::sandbox::engine {

namespace {

// The argument as a string type: itself, or what a number or date becomes.
Type as_text_type(const Context& context, const Expr& call) {
  Type t = call.args[0]->type;
  if (t.kind == Kind::text) return varchar_type(max_length, t.collation);
  if (t.kind == Kind::ntext || t.kind == Kind::xml) return nvarchar_type(max_length, context.collation());
  if (is_string(t.kind)) {
    if (t.kind == Kind::character) t.kind = Kind::varchar;
    if (t.kind == Kind::nchar) t.kind = Kind::nvarchar;
    return t;
  }
  return varchar_type(8000, context.collation());
}

Type text_or_binary(const Context& context, const Expr& call) {
  const Type& t = call.args[0]->type;
  if (!is_binary(t.kind)) return as_text_type(context, call);
  return make_type(Kind::varbinary, t.kind == Kind::image ? max_length : t.length);
}

Type widest_text(const Context& context, const Expr& call) {
  Type t = as_text_type(context, call);
  if (t.length != max_length) t.length = is_unicode(t.kind) ? 4000 : 8000;
  return t;
}

Type concatenation(const Context& context, const Expr& call) {
  bool unicode = false, max = false;
  int length = 0;
  for (const ExprPtr& a : call.args) {
    unicode = unicode || is_unicode(a->type.kind);
    max = max || a->type.length == max_length || is_lob(a->type.kind);
    length += is_string(a->type.kind) ? a->type.length : 40;
  }
  const int limit = unicode ? 4000 : 8000;
  return unicode ? nvarchar_type(max ? max_length : std::min(length, limit), context.collation())
                 : varchar_type(max ? max_length : std::min(std::max(length, 1), limit), context.collation());
}

std::u16string text(const Value& v) { return is_string(v.type.kind) ? v.text : text_of(v); }

bool any_null(const Arguments& args) {
  return std::any_of(args.begin(), args.end(), [](const Value& v) { return v.null; });
}

Value text_result(const Expr& call, std::u16string s) { return Value::of_text(std::move(s), call.type); }

Value len(const Context&, const Expr& call, const Arguments& args) {
  if (args[0].null) return Value::of_null(call.type);
  std::u16string s = is_binary(args[0].type.kind) ? std::u16string(args[0].bytes.size(), u'x') : text(args[0]);
  while (!s.empty() && s.back() == u' ') s.pop_back();
  return Value::of_int(static_cast<std::int64_t>(s.size()), call.type.kind);
}

Type length_type(const Context&, const Expr& call) {
  return make_type(call.args[0]->type.length == max_length ? Kind::bigint : Kind::integer);
}

Value data_length(const Context&, const Expr& call, const Arguments& args) {
  if (args[0].null) return Value::of_null(call.type);
  const tds::TypeInfo info = stored_form(args[0].type);
  if (args[0].type.kind == Kind::variant) {
    const std::string& inner = args[0].bytes;
    return Value::of_int(static_cast<std::int64_t>(inner.size()) - 2 - static_cast<std::uint8_t>(inner[1]),
                         call.type.kind);
  }
  ByteBuffer out;
  encode_value(args[0], info, out);
  return Value::of_int(static_cast<std::int64_t>(value_bytes(info, framing_of(info), out.data()).size()),
                       call.type.kind);
}

Value substring(const Context&, const Expr& call, const Arguments& args) {
  if (any_null(args)) return Value::of_null(call.type);
  std::int64_t start = std::max<std::int64_t>(number_of(args[1]), -(std::int64_t{1} << 40U));
  const std::int64_t length = number_of(args[2]);
  if (length < 0) raise(537, 16, 3, "Invalid length parameter passed to the LEFT or SUBSTRING function.");
  const bool binary = is_binary(call.type.kind);
  const std::u16string s = binary ? std::u16string() : text(args[0]);
  const auto size = static_cast<std::int64_t>(binary ? args[0].bytes.size() : s.size());
  const std::int64_t end =
      start > size ? start : std::min(size + 1, start + std::min(length, size + 2 - std::min<std::int64_t>(start, 0)));
  start = std::max<std::int64_t>(start, 1);
  const std::int64_t n = std::max<std::int64_t>(0, end - start);
  if (start > size) return binary ? Value::of_bytes({}, call.type) : text_result(call, {});
  const auto from = static_cast<std::size_t>(start - 1), count = static_cast<std::size_t>(n);
  return binary ? Value::of_bytes(args[0].bytes.substr(from, count), call.type)
                : text_result(call, s.substr(from, count));
}

Value left(const Context&, const Expr& call, const Arguments& args) {
  if (any_null(args)) return Value::of_null(call.type);
  const std::int64_t n = number_of(args[1]);
  if (n < 0) raise(537, 16, 2, "Invalid length parameter passed to the LEFT or SUBSTRING function.");
  return text_result(call, text(args[0]).substr(0, static_cast<std::size_t>(n)));
}

Value right(const Context&, const Expr& call, const Arguments& args) {
  if (any_null(args)) return Value::of_null(call.type);
  const std::int64_t n = number_of(args[1]);
  if (n < 0) raise(536, 16, 2, "Invalid length parameter passed to the RIGHT function.");
  const std::u16string s = text(args[0]);
  const auto keep = std::min(s.size(), static_cast<std::size_t>(n));
  return text_result(call, s.substr(s.size() - keep));
}

template <char16_t (*map)(char16_t)>
Value mapped(const Context&, const Expr& call, const Arguments& args) {
  if (args[0].null) return Value::of_null(call.type);
  std::u16string s = text(args[0]);
  for (char16_t& c : s) c = map(c);
  return text_result(call, std::move(s));
}

Value ltrim(const Context&, const Expr& call, const Arguments& args) {
  if (args[0].null) return Value::of_null(call.type);
  const std::u16string s = text(args[0]);
  return text_result(call, s.substr(std::min(s.size(), s.find_first_not_of(u' '))));
}

Value rtrim(const Context&, const Expr& call, const Arguments& args) {
  if (args[0].null) return Value::of_null(call.type);
  std::u16string s = text(args[0]);
  while (!s.empty() && s.back() == u' ') s.pop_back();
  return text_result(call, std::move(s));
}

Value trim(const Context& context, const Expr& call, const Arguments& args) {
  return ltrim(context, call, {rtrim(context, call, args)});
}

std::size_t find_text(const std::u16string& haystack, const std::u16string& needle, std::size_t from,
                      const tds::Collation& c) {
  if (needle.empty() || needle.size() > haystack.size()) return std::u16string::npos;
  for (std::size_t i = from; i + needle.size() <= haystack.size(); ++i) {
    const std::u16string_view part = std::u16string_view(haystack).substr(i, needle.size());
    if (part == needle || comparison_key(std::u16string(part) + u'|', c) == comparison_key(needle + u'|', c)) return i;
  }
  return std::u16string::npos;
}

Value replace(const Context& context, const Expr& call, const Arguments& args) {
  if (any_null(args)) return Value::of_null(call.type);
  const std::u16string s = text(args[0]), from = text(args[1]), to = text(args[2]);
  const tds::Collation c = is_string(args[0].type.kind) ? args[0].type.collation : context.collation();
  std::u16string out;
  for (std::size_t at = 0;;) {
    const std::size_t hit = find_text(s, from, at, c);
    if (hit == std::u16string::npos) return text_result(call, out + s.substr(at));
    out += s.substr(at, hit - at) + to;
    at = hit + from.size();
  }
}

Value char_index(const Context& context, const Expr&, const Arguments& args) {
  if (any_null(args)) return null_int();
  const std::u16string needle = text(args[0]), s = text(args[1]);
  const std::int64_t start = args.size() > 2 ? std::max<std::int64_t>(1, number_of(args[2])) : 1;
  const tds::Collation c = is_string(args[1].type.kind) ? args[1].type.collation : context.collation();
  const std::size_t hit = find_text(s, needle, static_cast<std::size_t>(start - 1), c);
  return int_value(hit == std::u16string::npos ? 0 : static_cast<std::int64_t>(hit) + 1);
}

Value pat_index(const Context& context, const Expr&, const Arguments& args) {
  if (any_null(args)) return null_int();
  std::u16string pattern = text(args[0]);
  const std::u16string s = text(args[1]);
  const bool open = !pattern.empty() && pattern.front() == u'%';
  if (open) pattern.erase(0, 1);
  for (std::size_t i = 0; i <= s.size(); ++i) {
    if (text_matches_like(s.substr(i), pattern, std::nullopt, context.collation()))
      return int_value(static_cast<std::int64_t>(i) + 1);
    if (!open) break;
  }
  return int_value(0);
}

Value replicate(const Context&, const Expr& call, const Arguments& args) {
  if (any_null(args)) return Value::of_null(call.type);
  const std::int64_t n = number_of(args[1]);
  if (n < 0) return Value::of_null(call.type);
  const std::u16string s = text(args[0]);
  const std::size_t limit =
      call.type.length == max_length ? 256U * 1024 * 1024 : static_cast<std::size_t>(call.type.length);
  std::u16string out;
  for (std::int64_t i = 0; i < n && out.size() < limit && !s.empty(); ++i) out += s;
  out.resize(std::min(out.size(), limit));
  return text_result(call, std::move(out));
}

Value reverse(const Context&, const Expr& call, const Arguments& args) {
  if (args[0].null) return Value::of_null(call.type);
  std::u16string s = text(args[0]);
  std::reverse(s.begin(), s.end());
  return text_result(call, std::move(s));
}

Value stuff(const Context&, const Expr& call, const Arguments& args) {
  if (args[0].null || args[1].null || args[2].null) return Value::of_null(call.type);
  std::u16string s = text(args[0]);
  const std::int64_t start = number_of(args[1]), length = number_of(args[2]);
  if (start < 1 || start > static_cast<std::int64_t>(s.size()) || length < 0) return Value::of_null(call.type);
  s.replace(static_cast<std::size_t>(start - 1), static_cast<std::size_t>(length),
            args[3].null ? std::u16string() : text(args[3]));
  return text_result(call, std::move(s));
}

Value concat(const Context&, const Expr& call, const Arguments& args) {
  std::u16string out;
  for (const Value& v : args)
    if (!v.null) out += text(v);
  return text_result(call, std::move(out));
}

Value concat_ws(const Context&, const Expr& call, const Arguments& args) {
  std::u16string out;
  bool first = true;
  for (std::size_t i = 1; i < args.size(); ++i) {
    if (args[i].null) continue;
    if (!first && !args[0].null) out += text(args[0]);
    out += text(args[i]);
    first = false;
  }
  return text_result(call, std::move(out));
}

Type space_type(const Context& context, const Expr&) { return varchar_type(8000, context.collation()); }
Value space(const Context&, const Expr& call, const Arguments& args) {
  if (args[0].null || number_of(args[0]) < 0) return Value::of_null(call.type);
  return text_result(call,
                     std::u16string(static_cast<std::size_t>(std::min<std::int64_t>(8000, number_of(args[0]))), u' '));
}

Type one_nchar(const Context& context, const Expr&) { return nvarchar_type(2, context.collation()); }
Value nchar_of(const Context&, const Expr& call, const Arguments& args) {
  if (args[0].null) return Value::of_null(call.type);
  const std::int64_t c = number_of(args[0]);
  if (c < 0 || c > 0xFFFF) return Value::of_null(call.type);
  return text_result(call, std::u16string(1, static_cast<char16_t>(c)));
}

Type one_char(const Context& context, const Expr&) { return varchar_type(1, context.collation()); }
Value char_of(const Context& context, const Expr& call, const Arguments& args) {
  if (args[0].null) return Value::of_null(call.type);
  const std::int64_t c = number_of(args[0]);
  if (c < 0 || c > 255) return Value::of_null(call.type);
  const char byte = static_cast<char>(c);
  return text_result(call, from_code_page({&byte, 1}, context.collation()));
}

Value unicode_of(const Context&, const Expr&, const Arguments& args) {
  if (args[0].null || text(args[0]).empty()) return null_int();
  return int_value(text(args[0])[0]);
}

Value ascii_of(const Context& context, const Expr&, const Arguments& args) {
  if (args[0].null || text(args[0]).empty()) return null_int();
  return int_value(static_cast<std::uint8_t>(to_code_page(text(args[0]).substr(0, 1), context.collation())[0]));
}

Type quoted_type(const Context& context, const Expr&) { return nvarchar_type(258, context.collation()); }
Value quote(const Context&, const Expr& call, const Arguments& args) {
  if (args[0].null) return Value::of_null(call.type);
  const std::u16string s = text(args[0]);
  const char16_t mark = args.size() > 1 && !args[1].null && !text(args[1]).empty() ? text(args[1])[0] : u'[';
  if (s.size() > 128) return Value::of_null(call.type);
  char16_t open = mark, close = mark;
  constexpr std::array<std::pair<char16_t, char16_t>, 4> pairs{
      {{u'[', u']'}, {u'(', u')'}, {u'<', u'>'}, {u'{', u'}'}}};
  for (const auto& [o, c] : pairs) {
    if (mark == o || mark == c) {
      open = o;
      close = c;
    }
  }
  std::u16string out(1, open);
  for (const char16_t c : s) {
    out += c;
    if (c == close) out += c;
  }
  return text_result(call, out + close);
}

Type str_type(const Context& context, const Expr&) { return varchar_type(8000, context.collation()); }
Value str(const Context&, const Expr& call, const Arguments& args) {
  if (args[0].null) return Value::of_null(call.type);
  const double real = convert(args[0], make_type(Kind::float8)).real;
  const auto width = static_cast<std::size_t>(args.size() > 1 ? number_of(args[1]) : 10);
  const int digits = static_cast<int>(args.size() > 2 ? number_of(args[2]) : 0);
  const Value rounded = convert(
      [&] {
        Value f = Value::of_null(make_type(Kind::float8));
        f.null = false;
        f.real = real;
        return f;
      }(),
      decimal_type(38, std::min(digits, 16)));
  std::u16string s = text_of(rounded);
  if (s.size() > width) s.assign(width, u'*');
  return text_result(call, std::u16string(width - s.size(), u' ') + s);
}

Type parse_type(const Context& context, const Expr&) { return sysname_type(context.collation()); }
Value parse_name_part(const Context& context, const Expr&, const Arguments& args) {
  if (any_null(args)) return null_name(context);
  const auto name = parse_name(name_of(args[0]));
  const std::int64_t part = number_of(args[1]);
  if (!name || part < 1 || part > static_cast<std::int64_t>(name->parts.size())) return null_name(context);
  const std::string& p = name->parts[name->parts.size() - static_cast<std::size_t>(part)];
  return p.empty() ? null_name(context) : name_value(context, p);
}

constexpr std::array table{
    Function{"LEN", 1, 1, length_type, len},
    Function{"DATALENGTH", 1, 1, length_type, data_length},
    Function{"SUBSTRING", 3, 3, text_or_binary, substring},
    Function{"LEFT", 2, 2, as_text_type, left},
    Function{"RIGHT", 2, 2, as_text_type, right},
    Function{"UPPER", 1, 1, as_text_type, mapped<upper>},
    Function{"LOWER", 1, 1, as_text_type, mapped<lower>},
    Function{"UCASE", 1, 1, as_text_type, mapped<upper>},
    Function{"LCASE", 1, 1, as_text_type, mapped<lower>},
    Function{"LTRIM", 1, 1, as_text_type, ltrim},
    Function{"RTRIM", 1, 1, as_text_type, rtrim},
    Function{"TRIM", 1, 1, as_text_type, trim},
    Function{"REPLACE", 3, 3, widest_text, replace},
    Function{"CHARINDEX", 2, 3, int_result, char_index},
    Function{"PATINDEX", 2, 2, int_result, pat_index},
    Function{"REPLICATE", 2, 2, widest_text, replicate},
    Function{"REVERSE", 1, 1, as_text_type, reverse},
    Function{"STUFF", 4, 4, widest_text, stuff},
    Function{"CONCAT", 2, 254, concatenation, concat},
    Function{"CONCAT_WS", 3, 254, concatenation, concat_ws},
    Function{"SPACE", 1, 1, space_type, space},
    Function{"NCHAR", 1, 1, one_nchar, nchar_of},
    Function{"CHAR", 1, 1, one_char, char_of},
    Function{"UNICODE", 1, 1, int_result, unicode_of},
    Function{"ASCII", 1, 1, int_result, ascii_of},
    Function{"QUOTENAME", 1, 2, quoted_type, quote},
    Function{"STR", 1, 3, str_type, str},
    Function{"PARSENAME", 2, 2, parse_type, parse_name_part},
};

}  // namespace

std::span<const Function> text_functions() { return table; }

}  // namespace rowferry::sandbox::engine
