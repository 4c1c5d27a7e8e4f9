// One export worker: a session, one SELECT for each slice, decoded into batches.
#include <fmt/format.h>

#include <algorithm>

#include "base/error.hpp"
#include "mssql/errors.hpp"
#include "mssql/reading.hpp"
#include "mssql/sql_type.hpp"

namespace rowferry::mssql {

namespace {

using async::Task;
using rows::Type;
using rows::TypeId;

bool is_text(TypeId id) noexcept { return id == TypeId::text || id == TypeId::json; }

// The values of `decoded` lie in a batch as those of `planned` do.
bool same_layout(const Type& decoded, const Type& planned) {
  if (is_text(decoded.id)) return is_text(planned.id);
  if (decoded.id != planned.id) return false;
  switch (decoded.id) {
    case TypeId::decimal:
      return decoded.scale == planned.scale;
    case TypeId::time:
    case TypeId::timestamp:
      return decoded.unit == planned.unit && decoded.zoned == planned.zoned;
    default:
      return true;
  }
}

// Gives batches the plan's schema, after a look at what the server has described.
class Relay final : public system::BatchSink {
 public:
  Relay(const ReadingState& state, system::BatchSink& to) : state_(state), to_(to) {}

  Task<void> put(rows::BatchPtr batch) override {
    if (batch->schema_ptr() != checked_) {
      check(batch->schema());
      checked_ = batch->schema_ptr();
    }
    batch->retype(state_.schema);
    return to_.put(std::move(batch));
  }

 private:
  void check(const rows::Schema& decoded) const {
    const rows::Schema& planned = *state_.schema;
    bool same = decoded.size() == planned.size();
    for (std::size_t i = 0; same && i < planned.size(); ++i) {
      Type type = decoded.fields[i].type;
      type.finite = planned.fields[i].type.finite;  // a server's floats always are
      same = state_.exact[i] ? type == planned.fields[i].type : same_layout(type, planned.fields[i].type);
      if (same) continue;
      throw Error(Category::conflict, "source_changed",
                  fmt::format("column {} is now {}, and was {}", planned.fields[i].name, to_string(type),
                              to_string(planned.fields[i].type)))
          .with_column(planned.fields[i].name)
          .mark_transient();
    }
    if (!same) throw Error(Category::conflict, "source_changed", "the number of columns has changed").mark_transient();
  }

  const ReadingState& state_;
  system::BatchSink& to_;
  rows::SchemaPtr checked_;
};

class ReaderImpl final : public system::Reader {
 public:
  ReaderImpl(std::shared_ptr<ReadingState> state, Lease lease)
      : state_(std::move(state)), lease_(std::move(lease)), changed_(state_->request.columns.size()) {}

  Task<system::ReadResult> read(const system::Slice& slice, system::BatchSink& to) override;
  bool usable() const noexcept override { return lease_.usable(); }
  std::vector<std::uint64_t> changed() const override { return changed_; }
  Task<void> close() override {
    lease_.close();
    co_return;
  }

 private:
  Error in_context(const Error& error, const system::Slice& slice) const;

  std::shared_ptr<ReadingState> state_;
  Lease lease_;
  std::vector<std::uint64_t> changed_;
};

bool keeps_offset(const std::vector<system::ColumnPlan>& columns, std::size_t at) {
  return std::ranges::any_of(columns, [&](const system::ColumnPlan& plan) {
    return plan.part == system::ColumnPart::offset && plan.source == columns[at].source;
  });
}

Error ReaderImpl::in_context(const Error& error, const system::Slice& slice) const {
  Error known = error;
  if (fault_number(known) == error_lock_timeout) {
    known.with_hint("somebody else holds a lock on rows of the source; read.lock_timeout_ms says how long to wait");
  }
  known = explained(known);
  known.with_connection(state_->sessions->options().name).with_table(state_->text).with_slice(slice.predicate);
  return known;
}

Task<system::ReadResult> ReaderImpl::read(const system::Slice& slice, system::BatchSink& to) {
  std::vector<rows::ColumnLoss> losses;
  losses.reserve(state_->request.columns.size());
  tds::ReadOptions options;
  for (const system::ColumnPlan& plan : state_->request.columns) {
    losses.emplace_back(plan.source, plan.policy);
    options.losses.push_back(&losses.back());
  }
  options.key = state_->key;
  Relay relay(*state_, to);
  tds::ReadStats stats;
  try {
    stats = co_await lease_.session().read(state_->select(slice.spec), std::move(options), relay);
  } catch (const Error& error) {
    throw in_context(error, slice);
  }
  if (stats.told && *stats.told != stats.rows) {
    throw in_context(Error(Category::server, "rows_missing",
                           fmt::format("{} rows came, and the server counted {}", stats.rows, *stats.told)),
                     slice);
  }
  // Only now: a slice that fails is read again, and its losses would count twice.
  for (std::size_t i = 0; i < losses.size(); ++i) {
    // An offset that stands in a column of its own is not lost; a moment loses nothing else here.
    if (!keeps_offset(state_->request.columns, i)) changed_[i] += losses[i].changed();
  }
  state_->counted += stats.told.value_or(stats.rows);
  co_return system::ReadResult{.rows = stats.rows, .wire_bytes = stats.wire_bytes};
}

}  // namespace

std::unique_ptr<system::Reader> make_reader(std::shared_ptr<ReadingState> state, Lease lease) {
  return std::make_unique<ReaderImpl>(std::move(state), std::move(lease));
}

}  // namespace rowferry::mssql
