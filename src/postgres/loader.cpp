#include <fmt/format.h>

#include "base/error.hpp"
#include "base/limits.hpp"
#include "postgres/loading.hpp"

namespace rowferry::postgres {

using async::Task;

namespace {

using Clock = std::chrono::steady_clock;

// Adds the time of its life to a clock.
class Waiting {
 public:
  explicit Waiting(double& seconds) : seconds_(seconds) {}
  ~Waiting() { seconds_ += std::chrono::duration<double>(Clock::now() - began_).count(); }
  Waiting(const Waiting&) = delete;
  Waiting& operator=(const Waiting&) = delete;

 private:
  double& seconds_;
  Clock::time_point began_ = Clock::now();
};

}  // namespace

LoaderImpl::LoaderImpl(LoadingImpl& loading, std::unique_ptr<Session> session)
    : loading_(loading), session_(std::move(session)) {
  if (loading.direct()) loading.direct_loader_ = this;
}

LoaderImpl::~LoaderImpl() { forget(); }

// The Loading may die before a loader that was closed.
void LoaderImpl::forget() noexcept {
  if (!std::exchange(known_, false)) return;
  if (loading_.direct_loader_ == this) loading_.direct_loader_ = nullptr;
}

// True: the key was there, and nothing is open.
Task<bool> LoaderImpl::begin_transaction(LedgerKey key) {
  std::exception_ptr error;
  bool there = false;
  try {
    co_await session_->query("BEGIN");
    there = co_await loading_.ledger_.claim(*session_, std::move(key), loading_.staging_);
  } catch (...) {
    error = std::current_exception();
  }
  if (error || there) co_await roll_back(*session_);
  if (error) std::rethrow_exception(error);
  co_return there;
}

Task<bool> LoaderImpl::begin_slice(const system::Slice& slice) {
  slice_ = slice;
  partition_.reset();
  acknowledged_ = wire_bytes_ = copied_rows_ = 0;
  if (loading_.direct()) co_return co_await begin_direct();
  const LedgerKey key = loading_.slice_key(slice);
  loading_.begun_steps_.insert(key.step);
  const bool there = co_await begin_transaction(key);
  if (there || !loading_.per_slice()) co_return there;
  std::exception_ptr error;
  try {
    co_await begin_partition();
  } catch (...) {
    error = std::current_exception();
  }
  if (error) {
    co_await roll_back(*session_);
    std::rethrow_exception(error);
  }
  co_return false;
}

Task<bool> LoaderImpl::begin_direct() {
  if (direct_done_ || direct_open_) co_return direct_done_;
  direct_done_ = co_await begin_transaction(loading_.finalize_key());
  if (direct_done_) co_return true;
  std::exception_ptr error;
  try {
    for (std::string& sql : direct_statements(loading_.decision_, loading_.situation_.table)) {
      co_await session_->query(std::move(sql));
    }
  } catch (...) {
    error = std::current_exception();
  }
  if (error) {
    co_await roll_back(*session_);
    std::rethrow_exception(error);
  }
  direct_open_ = true;
  co_return false;
}

// The partition of this slice, as the table is now: other slices make theirs meanwhile.
Task<void> LoaderImpl::begin_partition() {
  const TableFacts table = co_await read_table(*session_, loading_.place_.schema, loading_.place_.table);
  const std::vector<system::Slice> slices{slice_};
  const std::vector<SlicePartition> found =
      co_await find_partitions(*session_, table, loading_.decision_, loading_.request_.columns, slices);
  const std::string fresh =
      fmt::format("rowferry_{}_{}_{}", loading_.request_.transfer_id, loading_.request_.attempt, slice_.index);
  partition_ = slice_statements(loading_.decision_, table, found.at(0), fresh);
  if (partition_->creates) co_return;
  for (const std::string& sql : partition_->before) co_await session_->query(sql);
}

// The columns' forms, from the table that is loaded: it may have been made a moment ago.
Task<void> LoaderImpl::bind() {
  const bool staged = !loading_.direct() && !loading_.per_slice();
  TableFacts table =
      co_await read_table(*session_, loading_.place_.schema, staged ? loading_.staging_ : loading_.place_.table);
  const int money_scale = co_await read_money_scale(*session_);
  encoder_.emplace(copy_targets(table, loading_.request_.columns, money_scale));
}

Task<void> LoaderImpl::open_copy() {
  if (!encoder_) co_await bind();
  std::string table;
  if (loading_.per_slice()) {
    if (partition_->creates) {
      for (const std::string& sql : partition_->before) co_await session_->query(sql);
    }
    table = partition_->table;
  } else {
    table = loading_.direct() ? loading_.situation_.table.sql : loading_.staging_sql();
  }
  if (loading_.request_.what.load.fire_triggers) co_await session_->query(std::string(own_search_path));
  co_await session_->start_copy_in(
      copy_statement(table, loading_.request_.columns, encoder_->format(), loading_.decision_.freeze));
  copying_ = true;
  copied_rows_ = 0;
  out_.clear();
  encoder_->header(out_);
}

// Whole messages, or all there is.
Task<void> LoaderImpl::send(bool all) {
  std::size_t done = 0;
  while (out_.size() - done >= limits::pg_copy_message_bytes || (all && done != out_.size())) {
    const std::size_t size = std::min(out_.size() - done, limits::pg_copy_message_bytes);
    co_await session_->put_copy({out_.data() + done, size});
    done += size;
    wire_bytes_ += size + 5;  // the message's type and length
  }
  out_.consume(done);
}

Task<void> LoaderImpl::write(rows::BatchPtr batch) {
  if (!copying_) co_await open_copy();
  // About a message at a time, so that what is encoded leaves before more is.
  const std::size_t rows = batch->rows();
  const std::size_t step = std::max<std::size_t>(
      1, static_cast<std::size_t>(static_cast<double>(rows) * static_cast<double>(limits::pg_copy_message_bytes) /
                                  static_cast<double>(std::max<std::size_t>(batch->bytes(), 1))));
  for (std::size_t row = 0; row < rows; row += step) {
    encoder_->rows(*batch, row, std::min(row + step, rows), out_);
    co_await send(false);
  }
  copied_rows_ += rows;
}

Task<void> LoaderImpl::finish_copy() {
  if (!copying_) co_return;
  encoder_->trailer(out_);
  co_await send(true);
  copying_ = false;
  const Waiting waiting(waiting_seconds_);
  const std::uint64_t taken = co_await session_->end_copy_in();
  acknowledged_ += taken;
  if (taken != copied_rows_) {
    throw Error(Category::data, "rows_not_taken",
                fmt::format("of {} rows sent the server took {}", copied_rows_, taken))
        .with_hint("a trigger drops rows");
  }
}

Task<void> LoaderImpl::finish_partition() {
  const bool made = !partition_->creates || acknowledged_ != 0;
  if (!made) co_return;  // no row, no partition
  const Waiting waiting(waiting_seconds_);
  for (const std::string& sql : partition_->build) co_await session_->query(sql);
  if (!partition_->swap.empty()) co_await swap_patiently(*session_, partition_->swap, nullptr);
  for (const std::string& sql : partition_->after) co_await session_->query(sql);
}

Task<system::SliceCommit> LoaderImpl::commit_slice(std::uint64_t rows, const rows::ContentHash& hash) {
  co_await finish_copy();
  system::SliceCommit out;
  out.acknowledged = acknowledged_;
  out.wire_bytes = wire_bytes_;
  if (loading_.direct()) co_return out;
  if (partition_) {
    co_await finish_partition();
    if (!partition_->creates || acknowledged_ != 0) out.table = partition_->partition;
  }
  const LedgerKey key = loading_.slice_key(slice_);
  const Waiting waiting(waiting_seconds_);
  co_await loading_.ledger_.note(*session_, key, rows, hash.hex(), out.table);
  co_await commit_transaction(*session_, loading_.ledger_, key, out.already_there);
  co_return out;
}

Task<void> LoaderImpl::abort_slice() {
  copying_ = false;
  direct_open_ = false;
  out_.clear();
  // What earlier slices had put into the one transaction of `direct` is gone with it; and its encoder was bound to a
  // table that may be gone too.
  if (loading_.direct()) encoder_.reset();
  co_await roll_back(*session_);
  if (loading_.direct()) session_->close();
}

system::LoaderClocks LoaderImpl::clocks() const noexcept {
  return {.waiting_seconds = waiting_seconds_ + session_->copy_wait_seconds()};
}

Task<void> LoaderImpl::close() {
  if (session_->open()) co_await abort_slice();
  session_->close();
  forget();
}

}  // namespace rowferry::postgres
