// Record: what the state directory keeps of a transfer. Everything that a resume needs, and the status document as it
// was last written.
#pragma once

#include "base/json.hpp"
#include "transfer/progress.hpp"

namespace rowferry::transfer {

inline constexpr int record_schema_version = 1;

struct Record {
  int schema_version = record_schema_version;  // a newer one has only id, state, ended and status
  std::string id;
  State state = State::queued;
  std::string spec;  // as it was submitted
  std::string pipeline;
  WallClock::time_point created{};
  std::optional<WallClock::time_point> ended;
  int attempt = 0;
  std::optional<system::Consistency> consistency;
  std::string staging;
  bool slices_final = false;
  std::vector<SliceProgress> slices;  // index, predicate, spec, row_estimate, bounds, table
  std::string plan;                   // JSON, see kept_plan.hpp; empty in older records
  Json status;                        // the document
};

std::string record_text(const Progress& progress, std::string_view spec, std::string_view status_json);
std::string record_text(const Record& record);
// Error(internal, "record_damaged").
Record parse_record(std::string_view text);
// Error(unsupported, "record_newer"): a later version has written it, and may have meant more than this one knows.
void refuse_newer(const Record& record);

// What stands at the beginning of a record, so that a thousand of them are not parsed to show ten.
struct RecordHead {
  State state = State::queued;
  std::string pipeline;
  std::optional<WallClock::time_point> ended;
};
// Nullopt: only parse_record can tell.
std::optional<RecordHead> parse_head(std::string_view head, std::string_view tail);

// The state of a record whose process died, in the record and in its status document.
void mark_interrupted(Record& record);
// {"id", "state", "route", "created_at", "ended_at", "rows", "error": code | null}
void write_summary(JsonWriter& json, const Json& status);

}  // namespace rowferry::transfer
