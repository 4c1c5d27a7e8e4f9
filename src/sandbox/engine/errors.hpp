// What a statement throws: a server's error with its number, and how far it reaches.
#pragma once

#include <string>
#include <string_view>

#include "sandbox/engine/engine.hpp"

namespace rowferry::sandbox::engine {

enum class Reach : std::uint8_t {
  statement,    // the statement is undone, the batch goes on (unless XACT_ABORT)
  batch,        // the batch ends; an open transaction stays (unless XACT_ABORT)
  transaction,  // the batch ends and the transaction is rolled back (deadlock victim)
};

struct SqlError {
  Message message;
  Reach reach = Reach::statement;
};

// The statement must wait for another session: it is undone and run again later.
struct WouldBlock {
  int blocker = 0;
};

[[noreturn]] void raise(int number, int severity, int state, std::string text, Reach reach = Reach::statement);
// The common ones, worded as in sys.messages.
[[noreturn]] void raise_syntax(std::string_view near, int line);                 // 102
[[noreturn]] void raise_keyword_syntax(std::string_view near, int line);         // 156
[[noreturn]] void raise_invalid_object(std::string_view name);                   // 208
[[noreturn]] void raise_invalid_column(std::string_view name);                   // 207
[[noreturn]] void raise_unbound(std::string_view name);                          // 4104
[[noreturn]] void raise_overflow(std::string_view what, std::string_view type);  // 8115
[[noreturn]] void raise_unsupported(std::string_view what);                      // 40000: of the sandbox itself

}  // namespace rowferry::sandbox::engine
