// Shared by the test files: a fresh server with database "db" for every test.
#pragma once

#include <criterion/criterion.h>

#include "fixture.hpp"

namespace rowferry::sandbox::engine::testing {

struct World {
  explicit World(bool discard = false) : server(options(discard)), a(server, "db"), b(server, "db") {}
  static Options options(bool discard);
  Server server;
  Client a, b;
};

// The clock of the server in tests: stands still until moved.
void move_clock(std::chrono::milliseconds by);

}  // namespace rowferry::sandbox::engine::testing

// Both texts in the message, whole.
#define ANSWERS(client, batch, wanted)                                                                             \
  do {                                                                                                             \
    const std::string answer_ = (client).run(batch);                                                               \
    cr_expect(answer_ == std::string_view(wanted), "%s\n  gave   <%s>\n  wanted <%s>", std::string(batch).c_str(), \
              answer_.c_str(), std::string(wanted).c_str());                                                       \
  } while (false)

// Of an answer (or any text) that is there already.
#define SAYS(expression, wanted)                                                                                     \
  do {                                                                                                               \
    const std::string answer_ = (expression);                                                                        \
    cr_expect(answer_ == std::string_view(wanted), "%s\n  gave   <%s>\n  wanted <%s>", #expression, answer_.c_str(), \
              std::string(wanted).c_str());                                                                          \
  } while (false)

#define ROWS(client, batch, wanted)                                                                                \
  do {                                                                                                             \
    const std::string answer_ = rows_of((client).run(batch));                                                      \
    cr_expect(answer_ == std::string_view(wanted), "%s\n  gave   <%s>\n  wanted <%s>", std::string(batch).c_str(), \
              answer_.c_str(), std::string(wanted).c_str());                                                       \
  } while (false)

// The answer contains this error.
#define FAILS(client, batch, number)                                                                                 \
  do {                                                                                                               \
    const std::string answer_ = (client).run(batch);                                                                 \
    cr_expect(answer_.find("error " #number ",") != std::string::npos, "%s\n  gave   <%s>\n  wanted error " #number, \
              std::string(batch).c_str(), answer_.c_str());                                                          \
  } while (false)
