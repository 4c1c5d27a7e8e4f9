// Connection: one client of the sandbox, from PRELOGIN to the end. One coroutine, one object.
//
// Lifecycle: run() is the connection's whole life; it ends when the client has gone, when the client broke the protocol
// (answered as SQL Server does, then closed), or when it is cancelled. The engine session dies with it: rolled back,
// locks freed. While a request is executed nothing is read but an attention, so that a client which sends more than the
// server can take is held back by its own socket.
#pragma once

#include <map>
#include <memory>
#include <string>

#include "async/scope.hpp"
#include "net/stream.hpp"
#include "sandbox/channel.hpp"
#include "sandbox/engine/engine.hpp"
#include "sandbox/options.hpp"
#include "sandbox/reply.hpp"
#include "tds/wire/server_bulk.hpp"
#include "tds/wire/server_login.hpp"
#include "tds/wire/server_prelogin.hpp"

namespace rowferry::sandbox {

class Connection;

// What all connections of a server share.
struct Shared {
  net::Loop& loop;
  const Options& options;
  engine::Server& engine;
  std::optional<net::TlsContext> tls;
  std::map<int, Connection*> by_spid;  // for the engine's wake-ups
};

class Connection {
 public:
  Connection(Shared& shared, std::unique_ptr<net::Stream> stream, std::string peer);
  ~Connection();
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  async::Task<void> run();
  // From the engine: a lock for which this session waits may be free.
  void wake() { wake_.set(); }
  // From the engine: KILL. Whatever this session does or waits for is left off, and the connection is closed.
  void kill() noexcept {
    if (killer_ != nullptr) killer_->cancel();
  }

 private:
  enum class Flow : std::uint8_t { go_on, close };

  // login.cpp
  async::Task<bool> log_in();
  async::Task<bool> negotiate(tds::server::Protection& protection);
  async::Task<void> answer_prelogin(const tds::server::PreloginRequest& request, std::uint8_t encryption);
  async::Task<bool> read_login(tds::server::Protection protection);
  bool admit(const tds::server::Login7& login);
  void refuse_login(std::int32_t number, std::uint8_t severity, std::string_view text, const std::string& user);
  void welcome(const tds::server::Login7& login);
  std::uint32_t choose_packet_size(std::uint32_t wish);

  // connection.cpp
  async::Task<void> serve();
  async::Task<void> serve_until_killed();
  async::Task<Flow> serve_message();
  async::Task<Flow> refuse_message(bool ignored);
  async::Task<Flow> close_with_4014();
  async::Task<Flow> run_batch();
  async::Task<Flow> run_calls();
  async::Task<Flow> run_transaction();
  async::Task<Flow> finish_reply();
  bool begin_answer(const tds::server::RequestFault& fault, const tds::server::AllHeaders& headers);
  async::Task<bool> before_statement(std::string_view statement);
  void after_statement(std::string_view statement);
  async::Task<bool> execute();
  void acknowledge_cancel();
  bool may_read_attention();
  void poll_input();
  async::Task<void> watch_input();
  async::Task<void> wait_wake();
  async::Task<void> wait_wake_for(std::optional<std::chrono::milliseconds> time, async::Scope* scope);
  async::Task<void> wait_input(std::optional<std::chrono::milliseconds> time);
  void session_broken_off();

  // bulk.cpp
  async::Task<Flow> receive_bulk();
  async::Task<bool> bulk_columns(engine::BulkTarget& target, tds::server::BulkScanner& scanner);
  async::Task<void> bulk_rows(engine::BulkTarget& target, tds::server::BulkScanner& scanner);
  async::Task<void> append_rows(engine::BulkTarget& target, tds::server::BulkScanner& scanner, ByteView payload);
  void bulk_fault(engine::BulkTarget& target, const tds::server::BulkScanner& scanner);
  async::Task<bool> more_bulk();
  async::Task<void> drain_bulk();
  async::Task<void> pay_bulk_faults();

  struct Request {
    std::uint8_t status = 0;  // of its first packet
    bool commits = false;
  };

  Shared& shared_;
  std::string peer_;
  PacketChannel channel_;
  Reply reply_;
  std::unique_ptr<engine::Session> session_;
  async::Event wake_;
  async::CancelSource* killer_ = nullptr;  // of serve(), while it runs
  bool peer_ended_ = false;
  bool fatal_ = false;  // a fault of severity 20 was sent: close behind it
  Request request_;
  std::uint64_t bulk_bytes_ = 0;  // payload of the running bulk message so far
  std::optional<std::uint32_t> packet_bytes_fault_;
  const Fault* bulk_cut_ = nullptr;
  const Fault* bulk_stall_ = nullptr;
};

// The engine's name of this server in messages, and what a client sees of the product.
inline constexpr const char* server_name = "ROWFERRY";

}  // namespace rowferry::sandbox
