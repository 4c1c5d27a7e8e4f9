#include "mssql/target.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.hpp"
#include "base/id.hpp"
#include "mssql/dialect.hpp"
#include "mssql/errors.hpp"
#include "mssql/origin.hpp"

namespace rowferry::mssql {

using async::Task;
using system::TargetRequest;

namespace {

std::string why_not_loadable(const ColumnFacts& column) {
  if (column.encrypted) return "it is encrypted by the client (Always Encrypted)";
  switch (column.meta.type.id) {
    case tds::DataType::sql_variant:
    case tds::DataType::udt:
    case tds::DataType::vector:
    case tds::DataType::tvp:
      return fmt::format("{} cannot be loaded in bulk", column.native);
    default:
      return {};
  }
}

// The plan knows code pages by the collation's name: the server has the last word.
Task<void> check_collations(const Lease* lease, const std::vector<system::ColumnPlan>* columns) {
  for (const system::ColumnPlan& column : *columns) {
    if (column.target_native.find(" COLLATE ") == std::string::npos) continue;
    const SqlType type = parse_type(column.target_native);
    const std::optional<std::uint16_t> page = co_await read_code_page(*lease, type.collation);
    if (!page) {
      throw Error(Category::input, "unknown_collation", fmt::format("the server has no collation {}", type.collation))
          .with_column(column.target)
          .with_field("columns.type");
    }
    if (type.name.starts_with('n') || *page == code_page_of(type.collation)) continue;
    throw Error(Category::unsupported, "unknown_collation",
                fmt::format("the collation {} has code page {}, which was not expected", type.collation, *page))
        .with_column(column.target);
  }
}

std::string folded(std::string name) {
  for (char& c : name) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return name;
}

}  // namespace

void check_place(const Place& place) {
  const auto refuse = [&](std::string_view why) {
    throw Error(Category::input, "bad_name",
                fmt::format("{} cannot be a target: {}", quoted(place.schema, place.table), why))
        .with_field("target.table");
  };
  const std::string schema = folded(place.schema);
  const std::string table = folded(place.table);
  if (table.starts_with('#')) refuse("a temporary table belongs to one session and ends with it");
  if (schema == "sys" || schema == "information_schema") refuse("the schema is the server's own");
  if (table == folded(std::string(ledger_table))) refuse("it is the ledger of the transfers");
  constexpr std::string_view of_staging = "rowferry_";
  if (table.starts_with(of_staging) && is_transfer_id(table.substr(of_staging.size(), transfer_id_chars))) {
    refuse("it is named like a staging table");
  }
}

system::TargetColumn target_column(const ColumnFacts& column) {
  system::TargetColumn out;
  out.name = column.name;
  out.native = column.native;
  out.nullable = column.nullable;
  out.identity = column.identity;
  out.insertable = column.insertable();
  out.why_not = column.why_not_insertable();
  out.has_default = column.has_default;
  out.compared = column.meta.type.id != tds::DataType::xml && column.meta.type.id != tds::DataType::json;
  if (const std::string why = why_not_loadable(column); !why.empty()) {
    out.loadable = false;
    out.why_not = why;
    return out;
  }
  try {
    out.type = logical_type(column.meta);
  } catch (const Error& error) {
    out.loadable = false;
    out.why_not = error.detail();
  }
  return out;
}

Task<Lease> TargetImpl::open(const TargetRequest* request) {
  co_return co_await pool_.open(
      {.database = database_of(request->table), .lock_timeout_ms = request->load.lock_timeout_ms});
}

Task<Place> TargetImpl::place_of(const Lease* lease, const TargetRequest* request) {
  const std::vector<std::string>& parts = request->table.parts;
  if (parts.empty() || parts.size() > 3) {
    throw Error(Category::input, "bad_name", "a table is named by one to three parts: database, schema, table")
        .with_field("target.table");
  }
  server_ = co_await read_server(*lease);
  Place place;
  place.database = database_of(request->table);
  place.table = parts.back();
  if (parts.size() > 1) place.schema = parts[parts.size() - 2];
  if (place.schema.empty()) place.schema = server_.default_schema;
  place.ledger_schema = pool_.options().ledger_schema.empty() ? place.schema : pool_.options().ledger_schema;
  check_place(place);
  co_return place;
}

Task<system::TargetTable> TargetImpl::describe(const TargetRequest& request) {
  const Lease lease = co_await open(&request);
  const Place place = co_await place_of(&lease, &request);
  const TableFacts table = co_await read_table(lease, place.schema, place.table);
  check_kind(table);
  system::TargetTable out;
  out.server = server_.server();
  out.exists = table.exists;
  for (const ColumnFacts& column : table.columns) out.columns.push_back(target_column(column));
  if (const IndexFacts* const key = table.primary_key(); key != nullptr) out.primary_key = key->key_names;
  co_return out;
}

system::NaturalType TargetImpl::natural_type(const system::SourceColumn& column, std::string_view wanted_type,
                                             bool in_key) const {
  return mssql::natural_type(column, wanted_type, in_key, server_.code_page);
}

std::vector<std::string> plan_statements(const Decision& decision, const TableFacts& table, const Ledger& ledger,
                                         const std::vector<system::ColumnPlan>& columns, const TargetRequest& request) {
  std::vector<std::string> out;
  const std::string staging = "rowferry_<id>_<attempt>";
  std::vector<std::string> names;
  for (const system::ColumnPlan& column : columns) names.push_back(column.target);
  const bool direct = decision.finalizer == system::Finalizer::direct;
  if (!direct) out.push_back(create_staging(decision, table.schema, staging));
  out.push_back(fmt::format("INSERT BULK {} ({}) WITH ({}KEEP_NULLS)",
                            direct ? table.quoted_name() : quoted(table.schema, staging), quoted_list(names),
                            decision.table_lock_bulk ? "TABLOCK, " : ""));
  out.emplace_back("BEGIN TRANSACTION");
  out.push_back(ledger.claim_statement({"<id>", attempt_of_target, std::string(step_finalize)}, direct ? "" : staging));
  if (!direct) {
    for (FinalizeStatement& statement : finalize_statements(decision, table, staging, columns, request.mode)) {
      out.push_back(std::move(statement.sql));
    }
  }
  out.emplace_back("COMMIT TRANSACTION");
  return out;
}

Task<system::TargetPlan> TargetImpl::plan(const TargetRequest& request, const std::vector<system::ColumnPlan>& columns,
                                          const std::vector<std::string>& source_key) {
  pool_.check_room(sessions_needed(request));
  const Lease lease = co_await open(&request);
  const Place place = co_await place_of(&lease, &request);
  Situation situation;
  situation.server = server_;
  situation.table = co_await read_table(lease, place.schema, place.table);
  situation.rights = co_await read_rights(lease, situation.table);
  if (situation.table.exists && situation.table.kind == "U") {
    situation.empty = co_await read_is_empty(lease, situation.table);
  }
  if (needs_rebuild(situation.table, request, columns)) {
    situation.dependants = co_await read_dependants(lease, situation.table);
  }
  if (!situation.table.exists) co_await check_collations(&lease, &columns);
  Decision decision = decide(situation, request, columns, source_key);
  planned_definition_ = situation.table.definition();
  const Ledger ledger(pool_, place.database, place.ledger_schema);
  system::TargetPlan out;
  out.finalizer = decision.finalizer;
  out.finalizer_reason = decision.reason;
  out.creates = decision.creates;
  out.statements = plan_statements(decision, situation.table, ledger, columns, request);
  out.notices = std::move(decision.notices);
  out.dropped = std::move(decision.dropped);
  for (const ColumnFacts& column : situation.table.columns) {
    const bool loaded = std::ranges::find(columns, column.name, &system::ColumnPlan::target) != columns.end();
    if (!loaded && column.insertable()) out.unmatched_target.push_back(column.name);
  }
  co_return out;
}

Task<system::Remains> TargetImpl::remains(const TargetRequest& request, const std::string& transfer_id) {
  Place place;
  {
    const Lease asking = co_await open(&request);
    place = co_await place_of(&asking, &request);
  }
  const Ledger ledger(pool_, place.database, place.ledger_schema);
  const Ledger::Outcome finalize = co_await ledger.decide({transfer_id, attempt_of_target, std::string(step_finalize)});
  const bool finalized = system::settle_finalize(finalize);
  const Lease lease = co_await open(&request);  // now: the ledger has used a session of its own
  std::vector<system::LedgerEntry> entries = co_await ledger.entries(lease, transfer_id);
  std::vector<std::string> there;
  for (const system::LedgerEntry& entry : entries) {
    if (entry.step != step_staging) continue;
    const bool exists = co_await object_exists(lease, place.schema, entry.staging);
    if (exists) there.push_back(entry.staging);
  }
  co_return system::remains_of(std::move(entries), finalized, there, false);
}

Task<std::unique_ptr<system::Loading>> TargetImpl::begin(const system::LoadRequest& request) {
  Place place;
  {
    const Lease lease = co_await open(&request.what);
    place = co_await place_of(&lease, &request.what);
  }
  co_return co_await LoadingImpl::begin(&pool_, request, std::move(place), planned_definition_);
}

}  // namespace rowferry::mssql
