#include "common.hpp"

namespace rowferry::sandbox::engine::testing {

namespace {
std::chrono::steady_clock::time_point clock_time{std::chrono::hours(1)};
}

void move_clock(std::chrono::milliseconds by) { clock_time += by; }

Options World::options(bool discard) {
  Options o;
  o.databases = {"db"};
  o.discard = discard;
  o.now = [] { return clock_time; };
  return o;
}

}  // namespace rowferry::sandbox::engine::testing
