// The bulk load message: from the socket through the scanner to the engine, as fast as it comes.
#include "base/limits.hpp"
#include "sandbox/connection.hpp"

namespace rowferry::sandbox {

namespace server = tds::server;

namespace {

constexpr int severity_bulk = 16;
constexpr int severity_bulk_stream = 17;  // on the wire of a real server, for 4804 and 4815

engine::Message to_message(const server::RequestFault& fault) {
  const bool stream = fault.number == 4804 || fault.number == 4815;
  return {.number = fault.number,
          .state = fault.state,
          .severity = stream ? severity_bulk_stream : severity_bulk,
          .text = fault.text,
          .procedure = {},
          .line = 1};
}

// The message's end counts as the data's end only when the client did not take it back.
bool data_ended(const tds::PacketReader& reader) {
  return reader.message_ended() && !reader.ignored() && !reader.interrupted();
}

}  // namespace

async::Task<Connection::Flow> Connection::receive_bulk() {
  tds::PacketReader& reader = channel_.reader();
  engine::BulkTarget* const target = session_->bulk();
  bulk_bytes_ = reader.payload().size();
  if (FaultPlan* plan = shared_.options.faults.get()) {
    bulk_cut_ = plan->strike(FaultKind::cut_bulk);
    bulk_stall_ = plan->strike(FaultKind::stall_bulk);
    co_await pay_bulk_faults();
  }
  if (target != nullptr) {
    server::BulkScanner scanner;
    const bool bound = co_await bulk_columns(*target, scanner);
    if (bound) co_await bulk_rows(*target, scanner);
  }
  co_await drain_bulk();
  if (peer_ended_) co_return Flow::close;
  if (reader.failed()) {
    const Flow flow = co_await close_with_4014();
    co_return flow;
  }
  const bool interrupted = reader.interrupted();
  const bool ignored = reader.ignored();
  channel_.next_message();
  reply_.begin();
  if (interrupted) {
    session_->cancel(reply_);
    reply_.attention();
  } else if (target == nullptr) {
    reply_.refuse(4805, 17, 1, "Bulk load data came where no INSERT BULK statement had asked for it.");
  } else if (ignored) {
    session_->abort_bulk(reply_, std::nullopt);
  } else {
    session_->finish_bulk(reply_);
  }
  const Flow flow = co_await finish_reply();
  co_return flow;
}

void Connection::bulk_fault(engine::BulkTarget& target, const server::BulkScanner& scanner) {
  target.fail(scanner.fault() ? to_message(scanner.fault()) : target.null_error(scanner.null_column()));
}

// False: the statement has failed, or no more will come.
async::Task<bool> Connection::bulk_columns(engine::BulkTarget& target, server::BulkScanner& scanner) {
  tds::PacketReader& reader = channel_.reader();
  std::size_t taken = 0;
  while (true) {
    const server::BulkScan scan = scanner.scan_columns(reader.payload(), data_ended(reader), taken);
    if (scan == server::BulkScan::ended) break;
    if (scan == server::BulkScan::fault) {
      bulk_fault(target, scanner);
      co_return false;
    }
    const bool more = co_await more_bulk();
    if (!more) co_return false;
  }
  reader.consume(taken);
  if (const server::RequestFault fault = server::compare_bulk_columns(target.declared(), scanner.columns())) {
    target.fail(to_message(fault));
    co_return false;
  }
  if (target.bind(scanner.columns())) co_return false;
  std::vector<bool> refuses_null;
  for (std::size_t i = 0; i < scanner.columns().size(); ++i) refuses_null.push_back(target.refuses_null(i));
  scanner.bind(refuses_null, shared_.options.discard);
  co_return true;
}

async::Task<void> Connection::bulk_rows(engine::BulkTarget& target, server::BulkScanner& scanner) {
  tds::PacketReader& reader = channel_.reader();
  while (true) {
    const ByteView payload = reader.payload();
    std::size_t taken = 0;
    const server::BulkScan scan = scanner.scan_rows(payload, data_ended(reader), limits::sandbox_bulk_rows, taken);
    if (scan == server::BulkScan::fault) {
      bulk_fault(target, scanner);
      co_return;
    }
    const std::size_t rows = scanner.rows().size();
    if (rows != 0) co_await append_rows(target, scanner, payload);
    reader.consume(taken);
    if (target.error() || scan == server::BulkScan::ended) co_return;
    if (rows == limits::sandbox_bulk_rows) continue;
    const bool more = co_await more_bulk();
    if (more) continue;
    if (reader.payload().size() > limits::sandbox_row_bytes_max) {
      target.fail({.number = 4803,
                   .state = 1,
                   .severity = severity_bulk_stream,
                   .text = "A row of the bulk load is larger than this server takes."});
    }
    co_return;
  }
}

async::Task<void> Connection::append_rows(engine::BulkTarget& target, server::BulkScanner& scanner, ByteView payload) {
  const server::WireHash wire = scanner.take_hash();
  const engine::HashSum hash{.low = wire.low, .high = wire.high};
  engine::BulkRows rows{.bytes = payload.data(),
                        .rows = scanner.rows().data(),
                        .count = scanner.rows().size(),
                        .hash = shared_.options.discard ? &hash : nullptr};
  while (true) {
    wake_.reset();
    const engine::BulkProgress progress = target.append(rows);
    if (progress.status != engine::BulkProgress::Status::would_block) co_return;
    rows.rows += progress.taken;
    rows.count -= progress.taken;
    if (progress.taken != 0) rows.hash = nullptr;  // it was that of the whole block
    // Nothing is read meanwhile: an attention would stand behind rows that cannot be taken.
    if (progress.wait) {
      try {
        co_await net::with_deadline(shared_.loop, *progress.wait, "a lock", wait_wake());
      } catch (const Error& error) {
        if (error.category() != Category::timeout) throw;
      }
    } else {
      co_await wake_.wait();
    }
  }
}

// More of the message into the reader. False: it has ended, failed, or the client has gone.
async::Task<bool> Connection::more_bulk() {
  tds::PacketReader& reader = channel_.reader();
  if (reader.message_ended() || reader.failed() || reader.payload().size() > limits::sandbox_row_bytes_max) {
    co_return false;
  }
  const std::size_t before = reader.payload().size();
  const bool more = co_await channel_.read();
  if (!more) {
    peer_ended_ = true;
    co_return false;
  }
  bulk_bytes_ += reader.payload().size() - before;
  if (bulk_cut_ != nullptr || bulk_stall_ != nullptr) co_await pay_bulk_faults();
  co_await async::yield();
  co_return true;
}

// A statement that has failed still takes its message to the end, and forgets it.
async::Task<void> Connection::drain_bulk() {
  tds::PacketReader& reader = channel_.reader();
  bool more = true;
  while (more) {
    reader.consume(reader.payload().size());
    more = co_await more_bulk();
  }
}

async::Task<void> Connection::pay_bulk_faults() {
  if (bulk_cut_ != nullptr && bulk_bytes_ >= bulk_cut_->bytes) {
    channel_.close();
    throw Error(Category::connection, "cut", "cut within a bulk message by the fault plan");
  }
  if (bulk_stall_ != nullptr && bulk_bytes_ >= bulk_stall_->bytes) {
    const Fault* stall = std::exchange(bulk_stall_, nullptr);
    co_await net::sleep_for(shared_.loop, stall->wait);
  }
}

}  // namespace rowferry::sandbox
