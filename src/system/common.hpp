// Names and settings that sources and targets share. Values mirror the transfer spec (api/spec.schema.json).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "rows/hash.hpp"
#include "rows/loss.hpp"
#include "rows/schema.hpp"

namespace rowferry::system {

// Exact parts, outermost first ({"public", "orders"}), as the catalogue has them. Quoting is the dialect's business.
struct TableName {
  std::vector<std::string> parts;
  bool empty() const noexcept { return parts.empty(); }
  bool operator==(const TableName&) const = default;
  std::string text() const;  // parts joined by dots, for messages
};

// Something the user should know, in plan and artifact. `code` is stable snake case.
struct Notice {
  std::string code;
  std::string text;
  std::string column;  // where it concerns one
  bool operator==(const Notice&) const = default;
};

struct Server {
  std::string product;  // "PostgreSQL", "Microsoft SQL Server", "rowferry sandbox"
  std::string version;
};

enum class Consistency : std::uint8_t { one_snapshot, per_slice, none };
enum class SliceBy : std::uint8_t { automatic, ctid, range, value, hash, partition, none };
enum class Mode : std::uint8_t { append, truncate, replace, fail_if_exists, merge };
enum class Finalizer : std::uint8_t { switch_partition, rename, insert_select, direct, exchange, per_slice };
enum class Commit : std::uint8_t { transfer, slice };
enum class Verify : std::uint8_t { count, source_count, content };

std::string_view to_string(Consistency value) noexcept;
std::string_view to_string(SliceBy value) noexcept;  // "auto", "ctid", …
std::string_view to_string(Mode value) noexcept;
std::string_view to_string(Finalizer value) noexcept;  // "switch", "rename", …
std::string_view to_string(Commit value) noexcept;
std::string_view to_string(Verify value) noexcept;

// What of a source's value a column carries: the value, or what the value alone does not say (a datetimeoffset's offset
// as "+05:30", a sql_variant's base type as "decimal(10,4)"). The parts are text.
enum class ColumnPart : std::uint8_t { value, offset, base_type };
std::string_view to_string(ColumnPart value) noexcept;

// How one column travels: the plan's decision for it, read by both sides.
struct ColumnPlan {
  std::string source;     // name in the source
  std::string target;     // name in the target
  rows::Type read_type;   // what the source's decoder produces
  rows::Type write_type;  // what the target's encoder takes: exactly the target column's logical type
  bool source_nullable = true;
  bool target_nullable = true;
  std::string source_native;  // "numeric(18,2)"
  std::string target_native;  // "decimal(18,2)", as in DDL
  bool read_as_text = false;  // the source casts it to text, as it prints it
  bool read_as_json = false;  // the source gives JSON (to_json)
  ColumnPart part = ColumnPart::value;
  bool identity = false;  // of the target
  bool compared = true;   // false: the target's server rewrites values (content hash leaves it out)
  rows::LossPolicy policy;
};

}  // namespace rowferry::system
