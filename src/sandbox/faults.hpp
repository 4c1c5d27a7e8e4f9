// Faults that the sandbox commits on request, so that a client's tests meet what networks and servers do.
//
// A FaultPlan is a list of faults, shared by all connections of a server: each fault strikes at the n-th moment of its
// kind (n counted over the whole server), for `times` moments. The points of call are the connection's; a fault that
// nobody asked for costs one look at an empty list.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace rowferry::sandbox {

enum class FaultKind : std::uint8_t {
  cut_bulk,           // close the connection when `bytes` bytes of a bulk message have come
  cut_before_commit,  // close instead of executing COMMIT
  cut_after_commit,   // execute COMMIT, then close without an answer
  cut_reply,          // close when `bytes` bytes of the answer to a statement that contains `match` were sent
  stall_bulk,         // stop reading for `wait` when `bytes` bytes of a bulk message have come
  delay,              // wait before a statement that contains `match` is executed
  error,              // answer a statement that contains `match` with this ERROR instead of executing it
  login_error,        // refuse a login with this ERROR
  packet_size,        // announce at most `bytes` as packet size
  feature_ack,        // acknowledge feature `feature`, asked for or not
  encryption_reply,   // answer PRELOGIN with this ENCRYPTION byte and go on without TLS
};

struct Fault {
  FaultKind kind = FaultKind::error;
  std::uint64_t nth = 1;    // the first moment it strikes at, from 1
  std::uint64_t times = 1;  // how many moments it strikes; 0 = all from then on
  std::string match;        // part of the statement's text, without regard to case; empty = every statement
  std::uint64_t bytes = 0;
  std::chrono::milliseconds wait{0};
  std::int32_t number = 50000;
  std::uint8_t severity = 16;  // 20 and above: the connection is closed after it
  std::uint8_t state = 1;
  std::string text = "Injected by the sandbox's fault plan.";
  std::uint8_t feature = 0;
  std::uint8_t reply = 0;

  std::uint64_t seen = 0;  // moments so far
};

class FaultPlan {
 public:
  FaultPlan() = default;
  explicit FaultPlan(std::vector<Fault> faults) : faults_(std::move(faults)) {}
  // {"faults": [{"kind": "cut_bulk", "bytes": 1000, "nth": 2}, …]}: the members above by name, `wait` as wait_ms.
  // Error(input, "faults_invalid") with what is wrong.
  static FaultPlan from_json(std::string_view json);

  void add(Fault fault) { faults_.push_back(std::move(fault)); }
  bool empty() const noexcept { return faults_.empty(); }

  // A moment of this kind has come; the fault that strikes at it, or null. The pointer lives as long as the plan.
  const Fault* strike(FaultKind kind, std::string_view statement = {});
  // The settings that hold for a connection from its start (packet size, feature, encryption); they are moments too.
  std::uint64_t struck() const noexcept { return struck_; }

 private:
  std::vector<Fault> faults_;
  std::uint64_t struck_ = 0;
};

// True when the text holds COMMIT as a word of its own.
bool is_commit(std::string_view statement) noexcept;

}  // namespace rowferry::sandbox
