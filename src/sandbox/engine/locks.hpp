// Locks on tables, names and application resources, between sessions. Nothing waits here: a lock that is not free
// throws WouldBlock with its holder; the statement is undone and run again after the holder has let go.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

namespace rowferry::sandbox::engine {

// SQL Server's table lock modes (compatibility as in "Transaction locking and row versioning guide").
enum class LockMode : std::uint8_t {
  schema_stability,
  intent_shared,
  intent_exclusive,
  shared,
  update,
  bulk_update,
  exclusive,
  schema_modification
};

enum class LockSpan : std::uint8_t { statement, transaction, session };

bool compatible(LockMode a, LockMode b);

class Locks {
 public:
  // Throws WouldBlock{spid} when another session holds a mode that does not go with this one.
  void take(int spid, const std::string& resource, LockMode mode, LockSpan span);
  // The holder that stands in the way, 0 when free.
  int blocker(int spid, const std::string& resource, LockMode mode) const;
  bool holds(int spid, const std::string& resource, LockSpan span) const;
  LockMode mode_held(int spid, const std::string& resource) const;
  // One lock of that span less; false when there is none.
  bool release(int spid, const std::string& resource, LockSpan span);
  // True when something was let go.
  bool release_all(int spid, LockSpan span);

  struct Held {
    int spid = 0;
    LockMode mode = LockMode::shared;
    LockSpan span = LockSpan::transaction;
    int count = 1;
  };
  const std::map<std::string, std::vector<Held>>& all() const noexcept { return held_; }

 private:
  std::map<std::string, std::vector<Held>> held_;
};

}  // namespace rowferry::sandbox::engine
