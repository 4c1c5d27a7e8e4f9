// Documents: the JSON pieces that plan, status document, artifact and record share.
#pragma once

#include "base/json.hpp"
#include "transfer/progress.hpp"

namespace rowferry::transfer {

struct Plan;
struct Spec;

void write_notices(JsonWriter& json, std::string_view name, const std::vector<system::Notice>& notices);
void write_texts(JsonWriter& json, std::string_view name, const std::vector<std::string>& texts);
void write_server(JsonWriter& json, std::string_view name, const std::optional<system::Server>& server);
void write_problem(JsonWriter& json, std::string_view name, const std::optional<Problem>& problem);
double rounded(double seconds);  // to the microsecond

// The contract's documents.
std::string status_json(const Progress& progress, std::string_view spec_json);
std::string artifact_json(const Progress& progress, std::string_view spec_json, std::string_view engine_version);

// Which phase held the transfer up, and the knob that would move it.
struct Bottleneck {
  std::string phase;  // "postgres_to_mssql.target_load"; empty: nothing has run
  std::string advice;
};
Bottleneck find_bottleneck(const Progress& progress);

// Seconds until all slices are loaded, by the rate so far; nothing while it cannot be told.
std::optional<double> eta_seconds(const Progress& progress);

}  // namespace rowferry::transfer
