#include "transfer/progress.hpp"

#include <algorithm>

namespace rowferry::transfer {

namespace {

constexpr std::array<std::string_view, 9> state_names{"queued",    "planning", "running",   "verifying",  "finalizing",
                                                      "succeeded", "failed",   "cancelled", "interrupted"};
constexpr std::array<std::string_view, 12> category_names{"input",       "forbidden",      "not_found",  "conflict",
                                                          "unsupported", "data",           "connection", "timeout",
                                                          "server",      "commit_unknown", "cancelled",  "internal"};

}  // namespace

std::string_view to_string(State value) noexcept { return state_names[static_cast<std::size_t>(value)]; }

std::optional<State> state_from(std::string_view name) noexcept {
  const auto hit = std::ranges::find(state_names, name);
  if (hit == state_names.end()) return std::nullopt;
  return static_cast<State>(hit - state_names.begin());
}

std::string_view to_string(Phase value) noexcept {
  static constexpr std::array<std::string_view, phase_count> names{"plan", "source_export", "target_load", "verify",
                                                                   "target_finalize"};
  return names[static_cast<std::size_t>(value)];
}

std::string_view to_string(SliceProgress::State value) noexcept {
  static constexpr std::array<std::string_view, 6> names{"pending", "reading",       "loading",
                                                         "done",    "waiting_retry", "kept"};
  return names[static_cast<std::size_t>(value)];
}

std::string_view to_string(Check::Result value) noexcept {
  static constexpr std::array<std::string_view, 4> names{"passed", "failed", "not_run", "not_applicable"};
  return names[static_cast<std::size_t>(value)];
}

std::string_view to_string(Category value) noexcept { return category_names[static_cast<std::size_t>(value)]; }

Problem problem_of(const std::exception_ptr& error) {
  Problem problem;
  try {
    std::rethrow_exception(error);
  } catch (const Error& e) {
    problem.category = to_string(e.category());
    problem.code = e.code();
    problem.detail = e.detail();
    problem.field = e.field();
    problem.hint = e.hint();
    problem.context = e.context();
    problem.fault = e.fault();
  } catch (const std::exception& e) {
    problem.category = to_string(Category::internal);
    problem.code = "internal";
    problem.detail = e.what();
  }
  return problem;
}

}  // namespace rowferry::transfer
