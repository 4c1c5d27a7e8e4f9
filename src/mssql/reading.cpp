#include "mssql/reading.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.hpp"
#include "base/limits.hpp"
#include "mssql/select.hpp"

namespace rowferry::mssql {

using async::Task;

namespace {

Error source_changed(std::string what) {
  return Error(Category::conflict, "source_changed", std::move(what)).mark_transient();
}

// Expressions have a width of their own; columns come exactly as described.
bool is_plain(const OriginColumn& column, const system::ColumnPlan& plan) {
  return plan.part == system::ColumnPart::value && column.reads == Reads::itself && !plan.read_as_text &&
         column.facts.type.id != rows::TypeId::json;
}

// What was planned must still be what is there: a value longer than the plan knew would pass unchecked.
void check_unchanged(const OriginColumn& column, const system::ColumnPlan& plan) {
  if (!plan.source_nullable && column.facts.nullable) {
    throw source_changed(fmt::format("column {} may be NULL now", plan.source)).with_column(plan.source);
  }
  if (!is_plain(column, plan) || plan.read_type == column.facts.type) return;
  throw source_changed(fmt::format("column {} is now {}", plan.source, column.facts.native)).with_column(plan.source);
}

}  // namespace

std::size_t sessions_needed(const system::ReadRequest& request) {
  return static_cast<std::size_t>(std::max(request.workers, 1)) + 1;
}

void ReadingState::bind_columns() {
  auto fields = std::make_shared<rows::Schema>();
  expressions.clear();
  exact.clear();
  for (const system::ColumnPlan& plan : request.columns) {
    const OriginColumn& column = origin.column(plan.source);
    if (column.facts.native.empty() || !column.why_not.empty()) {
      throw source_changed(fmt::format("column {} cannot be read now", plan.source)).with_column(plan.source);
    }
    check_unchanged(column, plan);
    expressions.push_back(column_expression(column, plan));
    exact.push_back(is_plain(column, plan));
    fields->fields.push_back({plan.source, plan.read_type, plan.source_nullable});
  }
  key.clear();
  const IndexFacts* const primary = origin.table ? origin.table->primary_key() : nullptr;
  for (const std::string& name : primary == nullptr ? std::vector<std::string>() : primary->key_names) {
    const auto at = std::ranges::find_if(request.columns, [&](const system::ColumnPlan& plan) {
      return plan.source == name && plan.part == system::ColumnPart::value;
    });
    if (at != request.columns.end()) key.push_back(static_cast<std::size_t>(at - request.columns.begin()));
  }
  schema = std::move(fields);
}

std::string ReadingState::select(const std::string& predicate) const {
  std::string sql = "SELECT ";
  for (std::size_t i = 0; i < expressions.size(); ++i) sql += (i == 0 ? "" : ", ") + expressions[i];
  sql += origin.filtered(predicate);
  if (request.options.maxdop) sql += fmt::format(" OPTION (MAXDOP {})", *request.options.maxdop);
  return sql;
}

Task<Lease> ReadingState::open() const {
  SessionSettings settings = reading_settings(request.options, database);
  settings.isolation = isolation.sql();
  co_return co_await sessions->open(std::move(settings));
}

Task<void> ReadingState::start() {
  Lease lease;
  // Only what is read needs to be described; everything, where a plan without columns asks for all.
  system::SourceRequest what = request.what;
  what.columns.clear();
  for (const system::ColumnPlan& plan : request.columns) what.columns.push_back(plan.source);
  origin = co_await look_up_anywhere(*sessions, what, request.options, &lease);
  database = origin.server.database;
  isolation = choose_isolation(request.options.isolation, origin.reading, origin.server.database);
  notices = isolation.notices;
  bind_columns();
  co_await lease.execute(fmt::format("SET TRANSACTION ISOLATION LEVEL {}", isolation.sql()));
  if (known_values.empty()) {
    slices = co_await make_slices(lease, origin, request.slices);
  } else {
    slices.by = system::SliceBy::value;
    slices.reason = fmt::format("one slice for each value of {}", request.slices.column);
    slices.slices = std::move(known_values);
  }
  for (const system::Slice& slice : slices.slices) specs.insert(slice.spec);
  consistency = consistency_of(isolation, slices.slices.size());
  slices.consistency = consistency;
}

namespace {

class ReadingImpl final : public system::Reading {
 public:
  explicit ReadingImpl(std::shared_ptr<ReadingState> state) : state_(std::move(state)) {}

  system::Consistency consistency() const noexcept override { return state_->consistency; }
  const system::SlicePlan& slices() const noexcept override { return state_->slices; }
  const std::vector<system::Notice>& notices() const noexcept override { return state_->notices; }
  const std::vector<system::ColumnPlan>& columns() const noexcept override { return state_->request.columns; }
  // No snapshot is held between slices that could be lost.
  bool alive() const noexcept override { return !state_->ended; }

  Task<std::unique_ptr<system::Reader>> open_reader(int /*worker*/) override {
    try {
      co_return make_reader(state_, co_await state_->open());
    } catch (Error& error) {
      throw error.with_table(state_->text);
    }
  }

  // One slice that sees one moment: no other statement sees the same, but the server has counted its rows.
  Task<std::uint64_t> count_rows() override {
    if (state_->consistency == system::Consistency::one_snapshot) co_return state_->counted;
    const Lease lease = co_await state_->open();
    const tds::QueryResult found =
        co_await lease.query("SELECT COUNT_BIG(*) AS n" + state_->origin.filtered(), limits::mssql_slices_timeout);
    co_return static_cast<std::uint64_t>(found.scalar("n").integer());
  }

  Task<std::vector<system::Slice>> late_slices() override {
    std::vector<system::Slice> late;
    if (state_->slices.by != system::SliceBy::value) co_return late;
    const Lease lease = co_await state_->open();
    for (system::Slice& slice : co_await value_slices(lease, state_->origin, state_->request.slices.column)) {
      if (state_->specs.insert(slice.spec).second) late.push_back(std::move(slice));
    }
    if (!late.empty() && state_->consistency == system::Consistency::one_snapshot) {
      state_->consistency = system::Consistency::per_slice;
    }
    co_return late;
  }

  // Sessions belong to the readers; nothing else is held.
  Task<void> end() override {
    state_->ended = true;
    co_return;
  }

 private:
  std::shared_ptr<ReadingState> state_;
};

}  // namespace

std::unique_ptr<system::Reading> make_reading(std::shared_ptr<ReadingState> state) {
  return std::make_unique<ReadingImpl>(std::move(state));
}

}  // namespace rowferry::mssql
