#include <fmt/format.h>

#include <algorithm>

#include "tests/transfer/fakes.hpp"

namespace rowferry::test {

namespace {

using rows::BatchPtr;

system::Slice slice_of(int number, const SourceScript& script) {
  system::Slice slice;
  slice.index = number;
  slice.predicate = fmt::format("part = {}", number);
  slice.spec = std::to_string(number);
  slice.row_estimate = static_cast<std::uint64_t>(script.batches_per_slice * script.rows_per_batch);
  if (script.asked.by == system::SliceBy::value) {
    slice.bounds = {system::SliceBounds::Kind::value, script.asked.column, std::to_string(number), {}, {}};
  } else if (const auto n = static_cast<std::size_t>(number); n < script.asked.bounds.size()) {
    slice.bounds = script.asked.bounds[n];
  }
  return slice;
}

system::SlicePlan plan_of(SourceScript& script, const system::SliceRequest& asked) {
  script.asked = asked;
  if (!asked.bounds.empty()) script.slices = static_cast<int>(asked.bounds.size());
  system::SlicePlan plan;
  plan.by = asked.by == system::SliceBy::automatic ? system::SliceBy::range : asked.by;
  plan.consistency = script.consistency;
  plan.reason = "scripted";
  for (int i = 0; i < script.slices; ++i) plan.slices.push_back(slice_of(i, script));
  return plan;
}

class FakeReader final : public system::Reader {
 public:
  FakeReader(SourceScript& script, bool& alive, rows::SchemaPtr schema)
      : script_(script), alive_(alive), pool_(rows::BatchPool::make(std::move(schema))) {
    ++script_.readers_open;
    ++script_.readers_made;
  }
  ~FakeReader() override {
    if (open_) --script_.readers_open;
  }
  Task<system::ReadResult> read(const system::Slice& slice, system::BatchSink& to) override {
    const int number = std::stoi(slice.spec);
    script_.read_log.push_back(number);
    system::ReadResult result;
    for (int b = 0; b < script_.batches_per_slice; ++b) {
      co_await script_.gate.pass("read");
      for (int i = 0; i < 8; ++i) co_await async::yield();  // the load side keeps up
      if (b == script_.batches_per_slice / 2 && script_.read_faults[number] > 0) fail(number);
      BatchPtr next = batch(number, b);
      result.rows += next->rows();
      result.wire_bytes += next->bytes();
      co_await to.put(std::move(next));
    }
    result.rows += script_.wrong_row_count;
    co_return result;
  }
  bool usable() const noexcept override { return usable_; }
  std::vector<std::uint64_t> changed() const override { return {}; }
  Task<void> close() override {
    if (open_) --script_.readers_open;
    open_ = false;
    co_return;
  }

 private:
  void fail(int number) {
    --script_.read_faults[number];
    if (script_.snapshots_to_lose > 0) {
      --script_.snapshots_to_lose;
      alive_ = false;
    }
    usable_ = false;
    throw Error(script_.fault_is_transient ? Category::connection : Category::server, "read_broke", "the read broke");
  }
  BatchPtr batch(int number, int b);

  SourceScript& script_;
  bool& alive_;
  std::shared_ptr<rows::BatchPool> pool_;
  bool usable_ = true;
  bool open_ = true;
};

BatchPtr FakeReader::batch(int number, int b) {
  BatchPtr batch = pool_->take();
  const rows::Schema& schema = batch->schema();
  for (int row = 0; row < script_.rows_per_batch; ++row) {
    const auto position = static_cast<std::size_t>(row);
    const std::int64_t id = (static_cast<std::int64_t>(number) * 1000 + b) * 1000 + row;
    for (std::size_t c = 0; c < schema.size(); ++c) {
      if (schema.fields[c].type == rows::Type::text(6)) {
        batch->buffer(c).append_bytes(position, as_bytes(std::string_view("+05:30")));
        continue;
      }
      if (schema.fields[c].type.id == rows::TypeId::int64) {
        batch->buffer(c).append<std::int64_t>(position, id);
        continue;
      }
      const bool bad = script_.text_is_bad && number == 2 && b == 0 && row == 7;
      batch->buffer(c).append_bytes(position, as_bytes(bad ? std::string(500, 'x') : fmt::format("n{}", id)));
    }
  }
  batch->seal(static_cast<std::size_t>(script_.rows_per_batch));
  batch->first_row = static_cast<std::uint64_t>(b * script_.rows_per_batch);
  script_.bytes_given += batch->bytes();
  return batch;
}

class FakeReading final : public system::Reading {
 public:
  FakeReading(SourceScript& script, const system::ReadRequest& request)
      : script_(script), columns_(request.columns), plan_(plan_of(script, request.slices)) {
    ++script_.begun;
  }
  system::Consistency consistency() const noexcept override { return script_.consistency; }
  const system::SlicePlan& slices() const noexcept override { return plan_; }
  const std::vector<system::Notice>& notices() const noexcept override { return notices_; }
  const std::vector<system::ColumnPlan>& columns() const noexcept override { return columns_; }
  Task<std::unique_ptr<system::Reader>> open_reader(int) override {
    co_await script_.gate.pass("open_reader");
    if (!alive_) throw Error(Category::connection, "snapshot_gone", "the snapshot's session has died");
    auto schema = std::make_shared<rows::Schema>();
    for (const system::ColumnPlan& column : columns_) {
      schema->fields.push_back({column.source, column.read_type, column.source_nullable});
    }
    co_return std::make_unique<FakeReader>(script_, alive_, std::move(schema));
  }
  Task<std::uint64_t> count_rows() override {
    co_await script_.gate.pass("count_rows");
    co_return script_.rows() + static_cast<std::uint64_t>(script_.count_delta);
  }
  Task<std::vector<system::Slice>> late_slices() override {
    std::vector<system::Slice> late;
    if (late_round_ < script_.late.size()) {
      const int first = 100 * static_cast<int>(late_round_ + 1);
      for (int i = 0; i < script_.late[late_round_]; ++i) late.push_back(slice_of(first + i, script_));
      ++late_round_;
    }
    co_return late;
  }
  bool alive() const noexcept override { return alive_; }
  Task<void> end() override {
    ++script_.ended;
    co_return;
  }

 private:
  SourceScript& script_;
  std::vector<system::ColumnPlan> columns_;
  std::vector<system::Notice> notices_;
  system::SlicePlan plan_;
  std::size_t late_round_ = 0;
  bool alive_ = true;
};

class FakeSource final : public system::Source {
 public:
  explicit FakeSource(SourceScript& script) : script_(script) {}
  Task<system::SourceTable> describe(const system::SourceRequest& request) override {
    co_await script_.gate.pass("describe_source");
    if (script_.gone) throw Error(Category::not_found, "table_missing", "the source table does not exist");
    system::SourceTable table;
    table.server = {"Fake source", "1.0"};
    for (const system::SourceColumn& column : script_.columns) {
      const auto& asked = request.columns;
      if (asked.empty() || std::ranges::find(asked, column.name) != asked.end()) table.columns.push_back(column);
    }
    table.primary_key = script_.primary_key;
    table.row_estimate = script_.rows();
    table.byte_estimate = script_.byte_estimate;
    table.not_carried = {"index note_idx"};
    co_return table;
  }
  Task<system::SlicePlan> plan_slices(const system::ReadRequest& request) override {
    co_return plan_of(script_, request.slices);
  }
  Task<std::unique_ptr<system::Reading>> begin(const system::ReadRequest& request) override {
    co_await script_.gate.pass("begin_source");
    if (script_.begins_away > 0) {
      --script_.begins_away;
      throw Error(Category::connection, "connect_failed", "connection refused").mark_transient();
    }
    co_return std::make_unique<FakeReading>(script_, request);
  }

 private:
  SourceScript& script_;
};

}  // namespace

Task<void> Gate::pass(std::string point) {
  reached_.insert(point);
  arrived_.set();
  while (closed_.contains(point)) {
    opened_.reset();
    co_await opened_.wait();
  }
}

Task<void> Gate::reached(std::string point) {
  while (!reached_.contains(point)) {
    arrived_.reset();
    co_await arrived_.wait();
  }
}

std::unique_ptr<system::Source> FakeConnection::make_source() {
  if (source_ == nullptr) throw Error(Category::unsupported, "not_a_source", "no source");
  return std::make_unique<FakeSource>(*source_);
}

}  // namespace rowferry::test
