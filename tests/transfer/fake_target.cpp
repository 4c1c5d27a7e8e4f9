#include <criterion/criterion.h>
#include <fmt/format.h>

#include <algorithm>

#include "tests/transfer/fakes.hpp"

namespace rowferry::test {

namespace {

using system::LedgerEntry;

std::string staging_name_of(const std::string& id, int attempt) { return fmt::format("rowferry_{}_{}", id, attempt); }

class FakeLoading final : public system::Loading {
 public:
  FakeLoading(TargetServer& server, system::LoadRequest request) : server_(server), request_(std::move(request)) {
    const int attempt = request_.resume_staging ? request_.staging_attempt : request_.attempt;
    name_ = staging_name_of(request_.transfer_id, attempt);
    server_.locked = true;
    server_.begun_slices = request_.slices;
    if (!request_.only_after_steps) server_.stagings[name_];
  }
  const std::string& staging_name() const noexcept override { return name_; }
  Task<std::unique_ptr<system::Loader>> open_loader(int worker) override;
  Task<std::uint64_t> staged_rows() override {
    co_await server_.gate.pass("staged_rows");
    co_return held().rows + static_cast<std::uint64_t>(server_.staged_delta);
  }
  Task<std::optional<rows::ContentHash>> staged_hash(std::string&) override {
    rows::ContentHash hash = held().hash;
    if (server_.wrong_content) ++hash.low;
    co_return hash;
  }
  Task<system::FinalizeResult> finalize(system::FinalizeRequest request) override;
  Task<std::vector<system::Notice>> after_steps() override {
    co_await server_.gate.pass("after_steps");
    if (server_.after_steps_faults > 0) {
      --server_.after_steps_faults;
      throw Error(Category::connection, "reset", "the connection was reset");
    }
    ++server_.after_steps_done;
    server_.stagings.erase(name_);
    co_return std::vector<system::Notice>();
  }
  Task<std::vector<system::Notice>> end(bool keep_staging) override {
    if (!keep_staging) server_.stagings.erase(name_);
    server_.locked = false;
    co_return std::vector<system::Notice>();
  }

  void empty_vanished(const std::vector<system::Slice>& slices);
  bool commits_slices() const { return request_.what.load.commit == system::Commit::slice; }
  std::map<std::string, LedgerEntry>& ledger() {
    return commits_slices() ? server_.committed[request_.transfer_id] : staging().slices;
  }
  Staged& staging() { return server_.stagings[name_]; }
  // What the staging, or the partitions of this transfer's slices, hold.
  Staged held() {
    if (!commits_slices()) return staging();
    Staged all;
    for (const auto& [step, entry] : ledger()) {
      const Staged& partition = server_.partitions[entry.staging];
      all.rows += partition.rows;
      all.hash.add(partition.hash);
    }
    return all;
  }

 private:
  TargetServer& server_;
  system::LoadRequest request_;
  std::string name_;
};

class FakeLoader final : public system::Loader {
 public:
  FakeLoader(TargetServer& server, FakeLoading& loading, int worker, rows::SchemaPtr schema)
      : server_(server), loading_(loading), worker_(worker), hasher_(*schema, {}) {
    ++server_.loaders_open;
  }
  ~FakeLoader() override {
    if (open_) --server_.loaders_open;
  }
  Task<bool> begin_slice(const system::Slice& slice) override {
    co_await server_.gate.pass("begin_slice");
    cr_assert_not(in_slice_, "a loader is bound to one slice");
    step_ = system::slice_step(slice, loading_.commits_slices() ? system::Commit::slice : system::Commit::transfer);
    partition_ = loading_.commits_slices() && slice.bounds ? partition_of(slice) : "";
    rows_ = 0;
    hash_ = {};
    server_.slice_log.push_back(fmt::format("worker {} {}", worker_, step_));
    if (loading_.ledger().contains(step_)) co_return true;
    in_slice_ = true;
    co_return false;
  }
  Task<void> write(rows::BatchPtr batch) override {
    co_await server_.gate.pass("write");
    if (server_.slow_write_ms > 0) {
      co_await net::sleep_for(*server_.loop, std::chrono::milliseconds(server_.slow_write_ms));
      waited_ += server_.slow_write_ms / 1000.0;
    }
    SourceScript& source = *server_.source;
    source.most_unwritten = std::max(source.most_unwritten, source.bytes_given - server_.bytes_taken);
    server_.bytes_taken += batch->bytes();
    rows_ += batch->rows();
    hasher_.add(*batch, hash_);
  }
  Task<system::SliceCommit> commit_slice(std::uint64_t rows, const rows::ContentHash& hash) override;
  Task<void> abort_slice() override {
    ++server_.aborted;
    in_slice_ = false;
    co_return;
  }
  bool usable() const noexcept override { return usable_; }
  system::LoaderClocks clocks() const noexcept override { return {waited_}; }
  Task<void> close() override {
    if (open_) --server_.loaders_open;
    open_ = false;
    co_return;
  }

 private:
  TargetServer& server_;
  FakeLoading& loading_;
  int worker_;
  rows::RowHasher hasher_;
  std::string step_;
  std::string partition_;
  std::uint64_t rows_ = 0;
  rows::ContentHash hash_;
  double waited_ = 0;
  bool in_slice_ = false;
  bool usable_ = true;
  bool open_ = true;
};

Task<system::SliceCommit> FakeLoader::commit_slice(std::uint64_t rows, const rows::ContentHash& hash) {
  co_await server_.gate.pass("commit_slice");
  if (server_.commit_faults > 0) {
    --server_.commit_faults;
    usable_ = false;
    throw Error(Category::server, "deadlock", "chosen as the deadlock victim").mark_transient();
  }
  loading_.ledger()[step_] = {1, step_, partition_.empty() ? loading_.staging_name() : partition_, rows, hash.hex()};
  if (!partition_.empty()) {
    server_.partitions[partition_] = {{}, rows_, hash_};
  } else if (loading_.commits_slices()) {
    server_.rows += rows_;
  } else {
    loading_.staging().rows += rows_;
    loading_.staging().hash.add(hash_);
  }
  in_slice_ = false;
  if (server_.commits_lost > 0) {
    --server_.commits_lost;
    usable_ = false;
    throw Error(Category::connection, "reset", "the connection was reset");
  }
  co_return system::SliceCommit{.acknowledged = rows_, .wire_bytes = rows_ * 10, .table = partition_};
}

Task<std::unique_ptr<system::Loader>> FakeLoading::open_loader(int worker) {
  auto schema = std::make_shared<rows::Schema>();
  for (const system::ColumnPlan& column : request_.columns) {
    schema->fields.push_back({column.target, column.write_type, column.target_nullable});
  }
  co_return std::make_unique<FakeLoader>(server_, *this, worker, std::move(schema));
}

Task<system::FinalizeResult> FakeLoading::finalize(system::FinalizeRequest request) {
  const std::uint64_t rows = request.rows;
  const rows::ContentHash& hash = request.hash;
  co_await server_.gate.pass("finalize");
  if (server_.finalize_faults > 0) {
    --server_.finalize_faults;
    throw Error(server_.finalize_category, "finalize_broke", "the finalize broke");
  }
  const LedgerEntry entry{0, "finalize", name_, rows, hash.hex()};
  const bool arrives = !server_.finalize_unknown || server_.finalize_arrives;
  if (arrives) {
    server_.finalized[request_.transfer_id] = entry;
    if (!commits_slices()) server_.rows += rows;
    if (commits_slices() && !request_.what.source_filtered) empty_vanished(request.slices);
  }
  if (server_.finalize_unknown) throw Error(Category::commit_unknown, "commit_unknown", "COMMIT's outcome is unknown");
  // COMMIT has been sent: its answer is awaited whatever is cancelled.
  co_await async::shield(server_.gate.pass("finalize_committed"));
  co_return system::FinalizeResult{.rows = rows + static_cast<std::uint64_t>(server_.finalize_delta),
                                   .target_total = std::nullopt};
}

void FakeLoading::empty_vanished(const std::vector<system::Slice>& slices) {
  std::set<std::string> filled;
  for (const system::Slice& slice : slices) filled.insert(partition_of(slice));
  for (auto& [name, partition] : server_.partitions) {
    if (!filled.contains(name)) partition = {};
  }
}

class FakeTarget final : public system::Target {
 public:
  explicit FakeTarget(TargetServer& server) : server_(server) {}
  Task<system::TargetTable> describe(const system::TargetRequest&) override {
    co_await server_.gate.pass("describe_target");
    system::TargetTable table;
    table.server = {"Fake target", "2.0"};
    table.exists = server_.exists;
    if (server_.exists) {
      table.columns = server_.columns;
      table.partition_by = server_.partition_by;
      table.partition_column = server_.partition_column;
      table.partition_bounds = server_.partition_bounds;
    }
    co_return table;
  }
  system::NaturalType natural_type(const system::SourceColumn& column, std::string_view wanted, bool) const override {
    if (wanted == "nvarchar(5)") {
      return {"nvarchar(5)", rows::Type::text(5, rows::LengthUnit::utf16_units), false, {}, true};
    }
    if (!wanted.empty()) throw Error(Category::input, "bad_type", fmt::format("no type is named {}", wanted));
    if (column.any_decimal) {
      return {"decimal(38,18)", rows::Type::decimal(38, 18), false, {{"lossy", "decimal(38,18) is a guess", ""}}, true};
    }
    return {"natural " + column.native, column.type, false, {}, true};
  }
  Task<system::TargetPlan> plan(const system::TargetRequest& request, const std::vector<system::ColumnPlan>&,
                                const std::vector<std::string>&) override {
    server_.asked = request;
    const bool by_slice = request.load.commit == system::Commit::slice;
    if (by_slice && server_.refuses_slice_commit) {
      throw Error(Category::unsupported, "commit_slice", "slices cannot be committed one by one here");
    }
    system::TargetPlan plan;
    plan.finalizer = by_slice ? system::Finalizer::per_slice : server_.finalizer;
    plan.finalizer_reason = "scripted";
    plan.creates = !server_.exists;
    co_return plan;
  }
  Task<system::Remains> remains(const system::TargetRequest& request, const std::string& id) override {
    system::Remains remains;
    if (const auto done = server_.finalized.find(id); done != server_.finalized.end()) {
      remains.finalized = true;
      remains.finalize = done->second;
    }
    for (int attempt = 1; attempt < 20; ++attempt) {
      const auto staging = server_.stagings.find(staging_name_of(id, attempt));
      if (staging == server_.stagings.end()) continue;
      remains.staging_attempt = remains.latest_attempt = attempt;
      remains.slices.clear();
      for (const auto& [step, entry] : staging->second.slices) remains.slices.push_back(entry);
    }
    if (request.load.commit == system::Commit::slice) {
      for (const auto& [step, entry] : server_.committed[id]) remains.slices.push_back(entry);
    }
    co_return remains;
  }
  Task<std::unique_ptr<system::Loading>> begin(const system::LoadRequest& request) override {
    co_await server_.gate.pass("begin_target");
    if (server_.busy || server_.locked) {
      throw Error(Category::conflict, "target_busy", "another transfer loads into this table");
    }
    ++server_.begun;
    co_return std::make_unique<FakeLoading>(server_, request);
  }

 private:
  TargetServer& server_;
};

}  // namespace

std::string partition_of(const system::Slice& slice) {
  if (!slice.bounds) return "none";
  const system::SliceBounds& bounds = *slice.bounds;
  if (bounds.kind != system::SliceBounds::Kind::range) return fmt::format("orders_{}", bounds.value);
  return fmt::format("orders_{}_{}", bounds.low.value_or("low"), bounds.high.value_or("high"));
}

bool FakeConnection::honours(std::string_view field, std::string_view value) const {
  if (source_ != nullptr && field == "read.isolation") return value == source_->honoured_isolation;
  if (source_ != nullptr && field.starts_with("columns.")) return source_->honours_parts;
  return target_ != nullptr && target_->honoured.contains(std::string(field));
}

system::TableName FakeConnection::parse_table(std::string_view text) const {
  if (text.find('"') != std::string_view::npos) throw Error(Category::input, "bad_name", "a quote at 1");
  system::TableName name;
  std::size_t from = 0;
  for (std::size_t dot = text.find('.'); dot != std::string_view::npos; dot = text.find('.', from)) {
    name.parts.emplace_back(text.substr(from, dot - from));
    from = dot + 1;
  }
  name.parts.emplace_back(text.substr(from));
  return name;
}

std::unique_ptr<system::Target> FakeConnection::make_target() {
  if (target_ == nullptr) throw Error(Category::unsupported, "not_a_target", "no target");
  return std::make_unique<FakeTarget>(*target_);
}

system::SourceColumn source_column(std::string name, rows::Type type, std::string native, bool nullable) {
  system::SourceColumn column;
  column.name = std::move(name);
  column.type = type;
  column.native = std::move(native);
  column.nullable = nullable;
  return column;
}

system::TargetColumn target_column(std::string name, rows::Type type, std::string native, bool nullable) {
  system::TargetColumn column;
  column.name = std::move(name);
  column.type = type;
  column.native = std::move(native);
  column.nullable = nullable;
  return column;
}

std::vector<system::SourceColumn> default_source_columns() {
  system::SourceColumn id = source_column("id", rows::Type::of(rows::TypeId::int64), "bigint", false);
  id.key_position = 1;
  return {id, source_column("note", rows::Type::text(), "text")};
}

std::vector<system::TargetColumn> default_target_columns() {
  return {target_column("id", rows::Type::of(rows::TypeId::int64), "bigint", false),
          target_column("note", rows::Type::text(40, rows::LengthUnit::utf16_units), "nvarchar(40)")};
}

FakeConnections::FakeConnections() {
  source.columns = default_source_columns();
  target.columns = default_target_columns();
  target.source = &source;
  connections_.push_back(std::make_unique<FakeConnection>("shop", "fakepg", false, &source, nullptr));
  connections_.push_back(std::make_unique<FakeConnection>("warehouse", "fakems", true, nullptr, &target));
  connections_.push_back(std::make_unique<FakeConnection>("archive", "fakems", false, nullptr, &target));
}

system::Connection* FakeConnections::find(std::string_view name) {
  const auto hit = std::ranges::find(connections_, name, [](const auto& c) -> const std::string& { return c->name(); });
  return hit == connections_.end() ? nullptr : hit->get();
}

std::vector<std::string> FakeConnections::names() const {
  std::vector<std::string> names;
  for (const auto& connection : connections_) names.push_back(connection->name());
  return names;
}

}  // namespace rowferry::test
