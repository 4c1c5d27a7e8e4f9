// The parser of the transfer spec. What is allowed where is api/spec.schema.json; a test compares the two.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <utility>

#include "base/json.hpp"
#include "base/limits.hpp"
#include "transfer/spec.hpp"

namespace rowferry::transfer {

namespace {

using Names = std::span<const std::string_view>;

constexpr std::array<std::string_view, 9> top_fields{"source", "target", "columns", "slices", "workers",
                                                     "read",   "load",   "verify",  "profile"};
constexpr std::array<std::string_view, 5> source_fields{"connection", "table", "query", "arrow", "where"};
constexpr std::array<std::string_view, 13> target_fields{
    "connection", "table",   "arrow",    "mode",     "create",       "key",        "replace_dependants",
    "partition",  "backend", "settings", "order_by", "partition_by", "compression"};
constexpr std::array<std::string_view, 2> partition_fields{"by", "column"};
constexpr std::array<std::string_view, 8> column_fields{
    "source", "target", "type", "on_loss", "replacement", "keep_offset", "scan_numeric", "variant_base_type"};
constexpr std::array<std::string_view, 3> slices_fields{"by", "column", "count"};
constexpr std::array<std::string_view, 2> workers_fields{"export", "load"};
constexpr std::array<std::string_view, 6> read_fields{"isolation",        "drain",           "memory_budget",
                                                      "read_only_intent", "lock_timeout_ms", "maxdop"};
constexpr std::array<std::string_view, 13> load_fields{
    "commit", "batch_rows", "table_lock", "check_constraints", "fire_triggers", "keep_identity",  "keep_nulls",
    "freeze", "unlogged",   "tablespace", "exchange",          "analyze",       "lock_timeout_ms"};

constexpr std::array<std::string_view, 5> mode_names{"append", "truncate", "replace", "fail_if_exists", "merge"};
constexpr std::array<std::string_view, 7> by_names{"auto", "ctid", "range", "value", "hash", "partition", "none"};
constexpr std::array<std::string_view, 5> loss_names{"error", "null", "truncate", "replace", "strip"};
constexpr std::array<std::string_view, 3> verify_names{"count", "source_count", "content"};
constexpr std::array<std::string_view, 2> commit_names{"transfer", "slice"};
constexpr std::array<std::string_view, 4> isolation_names{"auto", "snapshot", "read_committed", "read_uncommitted"};
constexpr std::array<std::string_view, 4> profile_names{"high_throughput_safe", "gentle_source", "disposable_copy",
                                                        "low_memory"};
constexpr std::array<std::string_view, 2> dependants_names{"refuse", "drop"};
constexpr std::array<std::string_view, 2> backend_names{"native", "freetds"};
constexpr std::array<std::string_view, 3> compression_names{"none", "lz4", "zstd"};
constexpr std::array<std::string_view, 2> partition_names{"list", "range"};

std::string join(std::string_view path, std::string_view name) {
  return path.empty() ? std::string(name) : fmt::format("{}.{}", path, name);
}

[[noreturn]] void bad_value(std::string path, std::string detail) {
  throw Error(Category::input, "bad_value", std::move(detail)).with_field(std::move(path));
}

std::string quoted_list(Names names) {
  std::string out;
  for (const std::string_view name : names) {
    if (!out.empty()) out += ", ";
    out += name;
  }
  return out;
}

// One object of the spec: refuses what it does not know, gives typed members.
class Reader {
 public:
  Reader(const Json& json, std::string path, Names known) : path_(std::move(path)) {
    object_ = json.object();
    if (object_ == nullptr) {
      bad_value(path_, fmt::format("{} must be an object, not {}", path_.empty() ? "the spec" : path_,
                                   Json::name(json.kind())));
    }
    for (const auto& [name, value] : *object_) {
      if (std::ranges::find(known, name) != known.end()) continue;
      throw Error(Category::input, "unknown_field", fmt::format("unknown field \"{}\"", cut(name)))
          .with_field(join(path_, cut(name)))
          .with_hint(fmt::format("the nearest known one is \"{}\"", nearest_name(name, known)));
    }
  }

  const std::string& path() const noexcept { return path_; }
  std::string at(std::string_view name) const { return join(path_, name); }
  bool has(std::string_view name) const { return find(name) != nullptr; }
  const Json* find(std::string_view name) const {
    const auto hit = std::ranges::find(*object_, name, &Json::Member::first);
    return hit == object_->end() ? nullptr : &hit->second;
  }
  const Json& need(std::string_view name) const {
    if (const Json* found = find(name)) return *found;
    throw Error(Category::input, "missing_field", fmt::format("{} is missing", at(name))).with_field(at(name));
  }

  // A text of at least one character, unless `may_be_empty`.
  void text(std::string_view name, std::string& to, bool may_be_empty = false) const {
    if (const Json* json = find(name)) to = text_of(*json, at(name), may_be_empty);
  }
  static std::string text_of(const Json& json, const std::string& path, bool may_be_empty = false) {
    const std::string* value = json.string();
    if (value == nullptr) bad_value(path, fmt::format("{} must be text, not {}", path, Json::name(json.kind())));
    if (value->empty() && !may_be_empty) bad_value(path, fmt::format("{} must not be empty", path));
    if (value->find('\0') != std::string::npos) bad_value(path, fmt::format("{} must not hold U+0000", path));
    return *value;
  }
  void flag(std::string_view name, bool& to) const {
    std::optional<bool> value;
    flag(name, value);
    if (value) to = *value;
  }
  void flag(std::string_view name, std::optional<bool>& to) const {
    const Json* json = find(name);
    if (json == nullptr) return;
    const bool* value = json->boolean();
    if (value == nullptr) {
      bad_value(at(name), fmt::format("{} must be true or false, not {}", at(name), Json::name(json->kind())));
    }
    to = *value;
  }
  std::optional<std::int64_t> integer(std::string_view name, std::int64_t low, std::int64_t high) const {
    const Json* json = find(name);
    if (json == nullptr) return std::nullopt;
    const std::optional<std::int64_t> value = json->int64();
    if (!value || *value < low || *value > high) {
      bad_value(at(name), fmt::format("{} must be an integer from {} to {}", at(name), low, high));
    }
    return value;
  }
  // The index of a text within the allowed ones; nothing when the field is absent.
  std::optional<std::size_t> choice(std::string_view name, Names allowed) const {
    const Json* json = find(name);
    if (json == nullptr) return std::nullopt;
    const std::string value = text_of(*json, at(name));
    const auto hit = std::ranges::find(allowed, value);
    if (hit == allowed.end()) {
      throw Error(Category::input, "bad_value",
                  fmt::format("{} is \"{}\"; it must be one of {}", at(name), cut(value), quoted_list(allowed)))
          .with_field(at(name))
          .with_hint(fmt::format("the nearest is \"{}\"", nearest_name(value, allowed)));
    }
    return static_cast<std::size_t>(hit - allowed.begin());
  }
  void choice(std::string_view name, Names allowed, std::string& to) const {
    if (const auto i = choice(name, allowed)) to = allowed[*i];
  }
  void texts(std::string_view name, std::vector<std::string>& to) const {
    const Json* json = find(name);
    if (json == nullptr) return;
    const Json::Array* items = json->array();
    if (items == nullptr || items->empty()) bad_value(at(name), fmt::format("{} must be a list of names", at(name)));
    for (std::size_t i = 0; i < items->size(); ++i) {
      to.push_back(text_of((*items)[i], fmt::format("{}[{}]", at(name), i)));
    }
  }

  static std::string cut(std::string_view text) { return cut_for_message(text, limits::error_value_chars); }

 private:
  std::string path_;
  const Json::Object* object_ = nullptr;
};

TableRef table_of(const Reader& from, std::string_view name) {
  const Json* json = from.find(name);
  TableRef table;
  if (json == nullptr) return table;
  if (json->array() == nullptr) {
    if (json->string() == nullptr) {
      bad_value(from.at(name), fmt::format("{} must be text or a list of name parts", from.at(name)));
    }
    from.text(name, table.text);
    return table;
  }
  from.texts(name, table.parts);
  if (table.parts.size() > 4) bad_value(from.at(name), fmt::format("{} has more than four parts", from.at(name)));
  return table;
}

// Exactly one of the named fields.
void one_of(const Reader& from, Names names) {
  std::vector<std::string_view> there;
  for (const std::string_view name : names) {
    if (from.has(name)) there.push_back(name);
  }
  if (there.size() == 1) return;
  if (there.empty()) {
    throw Error(Category::input, "missing_field", fmt::format("{} needs one of {}", from.path(), quoted_list(names)))
        .with_field(from.at(names.front()));
  }
  throw Error(Category::input, "conflicting_fields",
              fmt::format("{} has {}; only one is allowed", from.path(), quoted_list(there)))
      .with_field(from.at(there[1]));
}

void parse_source(const Json& json, SourceSpec& source) {
  const Reader from(json, "source", source_fields);
  from.need("connection");
  from.text("connection", source.connection);
  one_of(from, std::array<std::string_view, 3>{"table", "query", "arrow"});
  source.table = table_of(from, "table");
  from.text("query", source.query);
  from.text("arrow", source.arrow);
  from.text("where", source.where);
}

void parse_target(const Json& json, TargetSpec& target) {
  const Reader from(json, "target", target_fields);
  from.need("connection");
  from.text("connection", target.connection);
  one_of(from, std::array<std::string_view, 2>{"table", "arrow"});
  target.table = table_of(from, "table");
  from.text("arrow", target.arrow);
  from.need("mode");
  target.mode = static_cast<system::Mode>(*from.choice("mode", mode_names));
  from.flag("create", target.create);
  from.texts("key", target.key);
  for (std::size_t i = 1; i < target.key.size(); ++i) {
    if (std::ranges::find(target.key.begin(), target.key.begin() + static_cast<std::ptrdiff_t>(i), target.key[i]) !=
        target.key.begin() + static_cast<std::ptrdiff_t>(i)) {
      bad_value(fmt::format("target.key[{}]", i), fmt::format("\"{}\" is named twice", target.key[i]));
    }
  }
  from.choice("replace_dependants", dependants_names, target.replace_dependants);
  if (const Json* partition = from.find("partition")) {
    const Reader part(*partition, "target.partition", partition_fields);
    part.need("by");
    part.need("column");
    target.partition.emplace();
    part.choice("by", partition_names, target.partition->by);
    part.text("column", target.partition->column);
  }
  from.choice("backend", backend_names, target.backend);
  if (const Json* settings = from.find("settings")) {
    if (settings->object() == nullptr) bad_value("target.settings", "target.settings must be an object");
    target.settings_json = settings->text();
  }
  from.texts("order_by", target.order_by);
  from.text("partition_by", target.partition_by);
  from.choice("compression", compression_names, target.compression);
}

ColumnSpec parse_column(const Json& json, const std::string& path) {
  ColumnSpec column;
  if (json.string() != nullptr) {
    column.source = Reader::text_of(json, path);
    return column;
  }
  if (json.object() == nullptr) bad_value(path, fmt::format("{} must be a name or an object", path));
  const Reader from(json, path, column_fields);
  from.need("source");
  from.text("source", column.source);
  from.text("target", column.target);
  from.text("type", column.type);
  if (const auto loss = from.choice("on_loss", loss_names)) column.on_loss = static_cast<rows::OnLoss>(*loss);
  if (from.has("replacement")) from.text("replacement", column.replacement.emplace(), true);
  from.flag("keep_offset", column.keep_offset);
  from.flag("scan_numeric", column.scan_numeric);
  from.flag("variant_base_type", column.variant_base_type);
  return column;
}

void parse_columns(const Json& json, std::vector<ColumnSpec>& columns) {
  const Json::Array* items = json.array();
  if (items == nullptr || items->empty()) bad_value("columns", "columns must be a list of at least one column");
  for (std::size_t i = 0; i < items->size(); ++i) {
    columns.push_back(parse_column((*items)[i], fmt::format("columns[{}]", i)));
  }
}

void parse_slices(const Json& json, SlicesSpec& slices) {
  const Reader from(json, "slices", slices_fields);
  if (const auto by = from.choice("by", by_names)) slices.by = static_cast<system::SliceBy>(*by);
  from.text("column", slices.column);
  slices.count = static_cast<int>(from.integer("count", 1, limits::slices_max).value_or(0));
}

void parse_workers(const Json& json, WorkersSpec& workers) {
  const Reader from(json, "workers", workers_fields);
  workers.export_ = from.integer("export", 1, limits::workers_max);
  workers.load = from.integer("load", 1, limits::workers_max);
}

std::uint64_t bytes_of(const Json& json, const std::string& path) {
  constexpr std::uint64_t least = 1024 * 1024;
  if (const auto number = json.uint64(); number && *number >= least) return *number;
  if (const std::string* text = json.string()) {
    std::uint64_t number = 0;
    const auto [end, code] = std::from_chars(text->data(), text->data() + text->size(), number);
    std::string_view unit(end, static_cast<std::size_t>(text->data() + text->size() - end));
    if (unit.starts_with(' ')) unit.remove_prefix(1);
    const unsigned shift = unit == "KiB" ? 10 : unit == "MiB" ? 20 : unit == "GiB" ? 30 : 0;
    if (code == std::errc() && shift != 0 && number <= (1ULL << 20U) && (number << shift) >= least) {
      return number << shift;
    }
  }
  bad_value(path, fmt::format("{} must be at least 1 MiB: a number of bytes, or text such as \"512 MiB\"", path));
}

void parse_read(const Json& json, ReadSpec& read) {
  const Reader from(json, "read", read_fields);
  if (const auto i = from.choice("isolation", isolation_names)) read.isolation = isolation_names[*i];
  from.flag("drain", read.drain);
  if (const Json* budget = from.find("memory_budget")) read.memory_budget = bytes_of(*budget, "read.memory_budget");
  from.flag("read_only_intent", read.read_only_intent);
  read.lock_timeout_ms = from.integer("lock_timeout_ms", 0, 86'400'000);
  read.maxdop = from.integer("maxdop", 0, 32'767);
}

void parse_load(const Json& json, LoadSpec& load) {
  const Reader from(json, "load", load_fields);
  if (const auto i = from.choice("commit", commit_names)) load.commit = static_cast<system::Commit>(*i);
  load.batch_rows = from.integer("batch_rows", 1, 100'000'000);
  if (const Json* lock = from.find("table_lock")) {
    const bool is_auto = lock->string() != nullptr && *lock->string() == "auto";
    if (!is_auto && lock->boolean() == nullptr) {
      bad_value("load.table_lock", "load.table_lock must be \"auto\", true or false");
    }
    load.table_lock = is_auto ? "auto" : *lock->boolean() ? "true" : "false";
  }
  from.flag("check_constraints", load.check_constraints);
  from.flag("fire_triggers", load.fire_triggers);
  from.flag("keep_identity", load.keep_identity);
  from.flag("keep_nulls", load.keep_nulls);
  from.flag("freeze", load.freeze);
  from.flag("unlogged", load.unlogged);
  from.text("tablespace", load.tablespace);
  from.flag("exchange", load.exchange);
  from.flag("analyze", load.analyze);
  load.lock_timeout_ms =
      static_cast<int>(from.integer("lock_timeout_ms", 0, 86'400'000).value_or(load.lock_timeout_ms));
}

}  // namespace

Spec parse_spec(std::string_view text) {
  const Json json = Json::parse(text, {.bytes = limits::spec_bytes_max, .depth = limits::spec_depth_max});
  const Reader from(json, "", top_fields);
  Spec spec;
  parse_source(from.need("source"), spec.source);
  parse_target(from.need("target"), spec.target);
  if (const Json* columns = from.find("columns")) parse_columns(*columns, spec.columns);
  if (const Json* slices = from.find("slices")) parse_slices(*slices, spec.slices);
  if (const Json* workers = from.find("workers")) parse_workers(*workers, spec.workers);
  if (const Json* read = from.find("read")) parse_read(*read, spec.read);
  if (const Json* load = from.find("load")) parse_load(*load, spec.load);
  if (const auto verify = from.choice("verify", verify_names)) spec.verify = static_cast<system::Verify>(*verify);
  from.choice("profile", profile_names, spec.profile);
  return spec;
}

std::span<const std::string_view> known_fields(std::string_view place) {
  if (place.empty()) return top_fields;
  if (place == "source") return source_fields;
  if (place == "target") return target_fields;
  if (place == "target.partition") return partition_fields;
  if (place == "columns[]") return column_fields;
  if (place == "slices") return slices_fields;
  if (place == "workers") return workers_fields;
  if (place == "read") return read_fields;
  if (place == "load") return load_fields;
  return {};
}

std::string_view nearest_name(std::string_view name, std::span<const std::string_view> known) {
  // A name of any length comes from outside: what lies beyond the longest sensible one does not change the order.
  name = name.substr(0, 128);
  std::string_view best;
  std::size_t best_distance = static_cast<std::size_t>(-1);
  for (const std::string_view candidate : known) {
    std::vector<std::size_t> row(name.size() + 1);
    for (std::size_t i = 0; i <= name.size(); ++i) row[i] = i;
    for (std::size_t c = 1; c <= candidate.size(); ++c) {
      std::size_t diagonal = std::exchange(row[0], c);
      for (std::size_t i = 1; i <= name.size(); ++i) {
        const std::size_t change = diagonal + (name[i - 1] == candidate[c - 1] ? 0 : 1);
        diagonal = std::exchange(row[i], std::min({row[i] + 1, row[i - 1] + 1, change}));
      }
    }
    if (row[name.size()] >= best_distance) continue;
    best_distance = row[name.size()];
    best = candidate;
  }
  return best;
}

std::string_view to_string(rows::OnLoss value) noexcept { return loss_names[static_cast<std::size_t>(value)]; }

}  // namespace rowferry::transfer
