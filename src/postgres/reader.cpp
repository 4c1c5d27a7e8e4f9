// One export worker: COPY … TO STDOUT piece by piece, decoded into batches.
#include <fmt/format.h>

#include <array>

#include "base/limits.hpp"
#include "postgres/reading.hpp"
#include "postgres/slices.hpp"

namespace rowferry::postgres {

namespace {

using Clock = std::chrono::steady_clock;
using wire::CopyDecoder;

// Rows as libpq gave them, held until the decoder has moved them into a batch.
class HeldRows {
 public:
  HeldRows() = default;
  HeldRows(const HeldRows&) = delete;
  HeldRows& operator=(const HeldRows&) = delete;
  ~HeldRows() { clear(); }
  void hold(char* row, int size) {
    rows_[count_++] = row;
    bytes_ += static_cast<std::size_t>(size);
  }
  void clear() noexcept {
    for (std::size_t i = 0; i < count_; ++i) PQfreemem(rows_[i]);
    count_ = bytes_ = 0;
  }
  bool full() const noexcept { return count_ == rows_.size() || bytes_ >= limits::pg_block_bytes; }

 private:
  std::array<char*, CopyDecoder::block_rows> rows_{};
  std::size_t count_ = 0;
  std::size_t bytes_ = 0;
};

class PostgresReader final : public system::Reader {
 public:
  PostgresReader(std::shared_ptr<ReadingState> state, std::unique_ptr<Session> session)
      : state_(std::move(state)),
        session_(std::move(session)),
        pool_(rows::BatchPool::make(state_->schema)),
        changed_(state_->bound.size()) {}

  async::Task<system::ReadResult> read(const system::Slice& slice, system::BatchSink& to) override;
  bool usable() const noexcept override { return session_->open(); }
  std::vector<std::uint64_t> changed() const override { return changed_; }
  async::Task<void> close() override;

 private:
  // What one read() holds between its COPYs.
  struct Run {
    explicit Run(const ReadingState& state);
    CopyDecoder decoder;
    HeldRows held;
    rows::BatchPtr batch;
    std::size_t batch_rows = 0;
    system::ReadResult result;
  };

  async::Task<void> read_pieces(const system::Slice* slice, Run* run, system::BatchSink* to);
  async::Task<void> read_piece(const Piece* piece, Run* run, system::BatchSink* to);
  async::Task<void> copy_rows(Run* run, system::BatchSink* to);
  bool take_row(Run& run, char* data, int size);
  void decode(Run& run);
  async::Task<void> pass_on(Run* run, system::BatchSink* to);
  async::Task<void> recover();
  async::Task<void> undo();

  std::shared_ptr<ReadingState> state_;
  std::unique_ptr<Session> session_;
  std::shared_ptr<rows::BatchPool> pool_;
  std::vector<std::uint64_t> changed_;
};

std::vector<wire::CopyColumn> copy_columns(const ReadingState& state) {
  std::vector<wire::CopyColumn> columns;
  columns.reserve(state.bound.size());
  for (const BoundColumn& column : state.bound) columns.push_back(column.copy);
  return columns;
}

PostgresReader::Run::Run(const ReadingState& state) : decoder(copy_columns(state)) {}

Error malformed(const std::string& problem) {
  return Error(Category::server, "malformed_copy", "the server's binary COPY cannot be read: " + problem);
}

async::Task<system::ReadResult> PostgresReader::read(const system::Slice& slice, system::BatchSink& to) {
  std::exception_ptr error;
  try {
    Run run(*state_);
    co_await read_pieces(&slice, &run, &to);
    // Only now: a slice that fails is read again, and its losses would count twice.
    const std::vector<std::uint64_t> counts = run.decoder.changed();
    for (std::size_t i = 0; i < counts.size(); ++i) changed_[i] += counts[i];
    co_return run.result;
  } catch (Error& e) {
    error = std::make_exception_ptr(e.with_table(state_->text).with_connection(session_->name()));
  } catch (...) {
    error = std::current_exception();
  }
  co_await async::shield(recover());
  std::rethrow_exception(error);
}

async::Task<void> PostgresReader::read_pieces(const system::Slice* slice, Run* run, system::BatchSink* to) {
  // After an error the snapshot is kept by going back to here.
  co_await session_->query("SAVEPOINT rowferry");
  bool by_parent = false;
  for (const Piece& piece : unpack(slice->spec)) {
    by_parent = by_parent || (state_->origin.relation && piece.from == state_->origin.from);
    co_await read_piece(&piece, run, to);
  }
  if (by_parent) co_await state_->check_partitions(session_.get());
  if (run->batch_rows != 0) co_await pass_on(run, to);
  run->result.rows = run->decoder.decoded();
  co_await session_->query("RELEASE SAVEPOINT rowferry");
}

async::Task<void> PostgresReader::read_piece(const Piece* piece, Run* run, system::BatchSink* to) {
  run->decoder.restart();
  const std::uint64_t before = run->decoder.decoded();
  co_await session_->start_copy_out("COPY (" + state_->select(piece->from, piece->predicate) +
                                    ") TO STDOUT (FORMAT binary)");
  co_await copy_rows(run, to);
  const std::uint64_t told = co_await session_->finish_copy();
  if (!run->decoder.ended()) throw malformed("it ended without its trailer");
  if (run->decoder.decoded() - before != told) {
    throw malformed(fmt::format("{} rows came, and the server counted {}", run->decoder.decoded() - before, told));
  }
}

// Reads as long as the server has rows at hand, a millisecond at a stretch; the socket is not read while `to` waits.
async::Task<void> PostgresReader::copy_rows(Run* run, system::BatchSink* to) {
  auto stretch = Clock::now();
  for (;;) {
    char* data = nullptr;
    int size = 0;
    const Session::Row got = session_->copy_row(data, size);
    if (got == Session::Row::end) break;
    if (got == Session::Row::none_yet) {
      co_await session_->more_input();
      stretch = Clock::now();
      continue;
    }
    if (!take_row(*run, data, size)) continue;
    if (run->batch && run->batch->buffered_bytes() >= limits::batch_bytes) {
      co_await pass_on(run, to);
      co_await state_->keep_alive();
    }
    if (Clock::now() - stretch >= limits::pg_decode_slice) {
      co_await async::yield();
      stretch = Clock::now();
    }
  }
  decode(*run);
}

// True: a block was decoded.
bool PostgresReader::take_row(Run& run, char* data, int size) {
  run.held.hold(data, size);
  run.result.wire_bytes += static_cast<std::uint64_t>(size) + 5;  // the message's type and length
  const auto got = run.decoder.accept({reinterpret_cast<const std::uint8_t*>(data), static_cast<std::size_t>(size)});
  if (got == CopyDecoder::Got::malformed) throw malformed(run.decoder.problem());
  if (!run.held.full()) return false;
  decode(run);
  return true;
}

void PostgresReader::decode(Run& run) {
  const std::size_t rows = run.decoder.pending();
  if (rows != 0) {
    if (!run.batch) {
      run.batch = pool_->take();
      run.batch->first_row = run.decoder.decoded();
    }
    if (!run.decoder.decode(*run.batch, run.batch_rows)) throw malformed(run.decoder.problem());
    run.batch_rows += rows;
  }
  run.held.clear();
}

async::Task<void> PostgresReader::pass_on(Run* run, system::BatchSink* to) {
  run->batch->seal(std::exchange(run->batch_rows, 0));
  co_await to->put(std::move(run->batch));
}

async::Task<void> PostgresReader::undo() {
  co_await session_->stop();
  if (session_->open() && session_->in_transaction()) {
    co_await session_->query("ROLLBACK TO SAVEPOINT rowferry; RELEASE SAVEPOINT rowferry");
  }
}

async::Task<void> PostgresReader::recover() {
  if (!session_->open()) co_return;
  try {
    co_await net::with_deadline(session_->loop(), limits::pg_cancel_wait * 2, "going back to the snapshot", undo());
  } catch (const std::exception&) {
    session_->close();
  }
}

async::Task<void> PostgresReader::close() {
  co_await async::shield(session_->stop());
  session_->close();
}

}  // namespace

std::unique_ptr<system::Reader> make_reader(std::shared_ptr<ReadingState> state, std::unique_ptr<Session> session) {
  return std::make_unique<PostgresReader>(std::move(state), std::move(session));
}

}  // namespace rowferry::postgres
