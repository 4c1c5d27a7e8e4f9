// Runs tasks on a bare queue, step by step, so that a test can prove "still pending" as well as "done".
#pragma once

#include <exception>
#include <optional>
#include <string>
#include <type_traits>

#include "async/scope.hpp"

namespace rowferry::test {

// One root task under a cancel source of its own.
template <class T>
class Run {
 public:
  Run(async::ReadyQueue& queue, async::Task<T> task) : queue_(queue), task_(std::move(task)) {
    task_.handle().promise().context = {&queue, &cancel_};
    queue.post(task_.handle());
  }
  // Resumes everything that is ready, until nothing is.
  bool done() {
    while (queue_.run_one()) {
    }
    return task_.handle().done();
  }
  void cancel() { cancel_.cancel(); }
  T result() { return task_.handle().promise().result(); }
  // The code of the Error that the task ended with; "pending", or "" when it ended well.
  std::string failure() {
    if (!done()) return "pending";
    try {
      result();
    } catch (const Error& error) {
      return error.code();
    }
    return "";
  }

 private:
  async::CancelSource cancel_;
  async::ReadyQueue& queue_;
  async::Task<T> task_;
};

}  // namespace rowferry::test
