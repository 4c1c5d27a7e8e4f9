// Spec: what the user asks for (contract.md "Transfer spec"). api/spec.schema.json is its one definition.
//
//   Spec spec = parse_spec(text);   // throws Error(input) with `field` as a path: "columns[1].on_loss"
//   fill_from_profile(spec);        // what was left out now has the profile's values
//   std::string json = to_json(spec);
//
// The optional members are those that a profile may fill; after fill_from_profile() they all have values, except where
// "not said" is a meaning of its own.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "system/common.hpp"

namespace rowferry::transfer {

// A table as it was written: exact parts, or a text that the system splits by its own quoting.
struct TableRef {
  std::string text;
  std::vector<std::string> parts;
  bool empty() const noexcept { return text.empty() && parts.empty(); }
};

struct SourceSpec {
  std::string connection;
  TableRef table;
  std::string query;
  std::string arrow;
  std::string where;
};

struct PartitionSpec {
  std::string by;  // list | range
  std::string column;
};

struct TargetSpec {
  std::string connection;
  TableRef table;
  std::string arrow;
  system::Mode mode = system::Mode::append;
  bool create = false;
  std::vector<std::string> key;
  std::string replace_dependants = "refuse";  // refuse | drop
  std::optional<PartitionSpec> partition;
  std::string backend = "native";
  std::string settings_json;  // empty: none
  std::vector<std::string> order_by;
  std::string partition_by;
  std::string compression = "none";
};

struct ColumnSpec {
  std::string source;
  std::string target;  // empty: the same name
  std::string type;
  std::optional<rows::OnLoss> on_loss;
  std::optional<std::string> replacement;
  bool keep_offset = false;
  bool scan_numeric = false;
  bool variant_base_type = false;
};

struct SlicesSpec {
  system::SliceBy by = system::SliceBy::automatic;
  std::string column;
  int count = 0;  // 0: not said
};

struct WorkersSpec {
  std::optional<int> export_;
  std::optional<int> load;
};

struct ReadSpec {
  std::optional<std::string> isolation;
  std::optional<bool> drain;
  std::optional<std::uint64_t> memory_budget;  // bytes
  bool read_only_intent = false;
  std::optional<int> lock_timeout_ms;
  std::optional<int> maxdop;
};

struct LoadSpec {
  std::optional<system::Commit> commit;
  std::optional<std::uint64_t> batch_rows;
  std::optional<std::string> table_lock;  // auto | true | false
  bool check_constraints = true;
  bool fire_triggers = false;
  bool keep_identity = true;
  bool keep_nulls = true;
  std::optional<bool> freeze;
  std::optional<bool> unlogged;
  std::string tablespace;
  std::optional<bool> exchange;
  bool analyze = false;
  int lock_timeout_ms = 5000;
};

struct Spec {
  SourceSpec source;
  TargetSpec target;
  std::vector<ColumnSpec> columns;  // empty: all
  SlicesSpec slices;
  WorkersSpec workers;
  ReadSpec read;
  LoadSpec load;
  std::optional<system::Verify> verify;
  std::string profile;

  // Paths of what the profile filled ("load.commit"): such a setting falls back with a notice where it cannot apply.
  std::vector<std::string> from_profile;
  std::size_t channel_bytes = 0;  // between one reader and one writer; by the profile, not part of the JSON

  bool filled_by_profile(std::string_view path) const;
};

// Throws Error(input): malformed_json, too_deep, missing_field, unknown_field (its hint names the nearest known one),
// bad_value, conflicting_fields.
Spec parse_spec(std::string_view text);
void fill_from_profile(Spec& spec);
// One line; what parse_spec() takes. Never holds a secret, as a spec has none.
std::string to_json(const Spec& spec);

// The field names that the parser knows at a place: "" (the top), "source", "target", "target.partition", "columns[]",
// "slices", "workers", "read", "load".
std::span<const std::string_view> known_fields(std::string_view place);
// The known name with the smallest edit distance.
std::string_view nearest_name(std::string_view name, std::span<const std::string_view> known);
std::string_view to_string(rows::OnLoss value) noexcept;

}  // namespace rowferry::transfer
