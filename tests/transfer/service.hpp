// A manager on a loop, the fakes beneath it and a state directory of its own; runs one scenario to its end.
#pragma once

#include "base/json.hpp"
#include "tests/transfer/fakes.hpp"

namespace rowferry::test {

// A new empty directory, removed with everything in it.
class TempDir {
 public:
  TempDir();
  ~TempDir();
  TempDir(const TempDir&) = delete;
  TempDir& operator=(const TempDir&) = delete;
  const std::string& path() const noexcept { return path_; }

 private:
  std::string path_;
};

struct Service {
  net::Loop loop;
  TempDir dir;
  FakeConnections connections;
  transfer::Settings settings;
  std::unique_ptr<transfer::Manager> manager;

  Service();
  // Makes a manager, serves, runs the scenario, shuts down. May be called again: the next process, so to say.
  void run(Task<void> (*scenario)(Service*));
  // Submits and waits. The last transfer's id, outcome and artifact are kept below.
  Task<void> transfer(std::string spec);
  Task<void> finish();

  std::string id;
  transfer::Outcome outcome;
  Json artifact;
  std::string note;  // between scenario and test
};

extern const char* const plain_spec;
// plain_spec with more members: with(R"("verify": "content")").
std::string with(std::string_view members);

const Json& at(const Json& json, std::string_view path);  // "rows.read"; a null where a part is missing
std::string text_at(const Json& json, std::string_view path);
std::uint64_t number_at(const Json& json, std::string_view path);
std::string check_result(const Json& artifact, std::string_view name);  // or "absent"

}  // namespace rowferry::test
