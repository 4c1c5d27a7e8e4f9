// Runs a request step by step: the frames' statements one after the other, errors, waits, rows.
#pragma once

#include "sandbox/engine/execute.hpp"

namespace rowferry::sandbox::engine {

Progress run_step(SessionState& session, ResultWriter& writer);
// Undoes the statement at hand and forgets the request.
void abandon_request(SessionState& session, ResultWriter& writer);

// Puts a called program on the stack; it runs from the next turn on.
struct CallFrame {
  Frame::Kind kind = Frame::Kind::procedure;
  std::string text;       // of the program
  std::string procedure;  // name in messages
  std::unordered_map<std::string, Variable> variables;
  std::vector<OutputBinding> outputs;
  std::string result_variable;
  bool sends_status = true;
};
void push_frame(const Context& context, CallFrame call);
void give_done(const Context& context, Done done);

}  // namespace rowferry::sandbox::engine
