// A Manager that does as it is told, linked instead of the real one: the surface is tested without databases.
#pragma once

#include <map>
#include <optional>
#include <vector>

#include "transfer/manager.hpp"

namespace rowferry::testing {

struct FakeManager {
  struct Transfer {
    transfer::State state = transfer::State::running;
    int version = 1;
  };
  std::map<std::string, Transfer> transfers;
  std::optional<Error> error;  // what the next call throws
  bool unexpected = false;     // the next call throws what is no Error
  bool shutting_down = false;
  std::optional<std::string> not_ready;
  std::vector<std::string> calls;  // "submit <spec> key=<key>", …
};

// One per process: Criterion runs each test in its own.
FakeManager& fake();

}  // namespace rowferry::testing
