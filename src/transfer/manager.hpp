// Manager: the door of src/transfer. Accepts specs, queues and runs transfers, keeps their records; the command line
// and the HTTP surface both stand on it.
//
//   Manager manager(loop, settings, connections);
//   scope.spawn(manager.serve());            // runs the transfers until shutdown() is done
//   co_await manager.start();                // opens the state directory, marks what a dead process has left
//   id = (co_await manager.submit({.spec = text})).id;  outcome = co_await manager.wait(id);
//   co_await manager.shutdown(grace);        // takes no more work, finishes or cancels
//
// Every call runs on the loop's thread. Documents are finished JSON text, as contract.md describes them ("HTTP",
// "Artifact"). Errors are rowferry::Error; the codes that a caller maps to a status:
//   input     malformed_json, unknown_field, bad_value, missing_field, …   `field` is a path ("columns[1].on_loss")
//   not_found connection_unknown (a spec's), transfer_unknown, pipeline_unknown
//   forbidden connection_not_writable
//   unsupported not_supported_yet
//   conflict  queue_full (429), transfer_active (resume), transfer_ended (cancel), no_artifact_yet, pipeline_running,
//             shutting_down (503), owned_elsewhere (another process holds the record)
//   input     idempotency_key_reused (422: same key, other body)
#pragma once

#include <chrono>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "async/task.hpp"
#include "base/limits.hpp"
#include "net/loop.hpp"
#include "system/system.hpp"
#include "transfer/progress.hpp"

namespace rowferry::transfer {

// The configured connections; owned by the application, outlives the manager.
class Connections {
 public:
  virtual ~Connections() = default;
  virtual system::Connection* find(std::string_view name) = 0;  // null: no such connection
  virtual std::vector<std::string> names() const = 0;
};

struct PipelineSettings {
  std::string path;  // of the spec file; read at every run
};

struct Settings {
  std::string state_dir;
  std::string version;    // of the engine, for artifacts
  int max_transfers = 4;  // running at once
  int queue_max = 100;    // waiting behind them; beyond: Error(conflict, "queue_full")
  std::chrono::seconds retain{std::chrono::hours{24 * 30}};  // terminal records older than this are removed
  bool resume_on_start = false;
  std::chrono::milliseconds retry_backoff_first = limits::retry_backoff_first;
  std::map<std::string, PipelineSettings> pipelines;
};

// One version of a document. `etag` (without quotes) changes when the text does.
struct Document {
  std::string json;
  std::string etag;
};

struct SubmitRequest {
  std::string spec;             // JSON text
  std::string idempotency_key;  // empty: none
  std::string pipeline;         // set by run_pipeline
};

struct Submitted {
  std::string id;
  bool repeated = false;  // the idempotency key named an earlier transfer
  Document status;
};

struct ListRequest {
  std::string after;  // id of the last one of the page before; empty: the newest
  int limit = 50;     // at most limits::list_page_max
  std::string state;  // only this state; empty: any
};

struct Outcome {
  State state = State::failed;
  std::optional<Problem> error;
};

enum class PlanFormat : std::uint8_t { json, text };

struct Orphan {  // a staging table that nobody will load again
  std::string id;
  int attempt = 0;
  std::string connection;
  std::string table;
  std::string staging;
  std::string state;  // found | dropped | busy | failed
  std::string detail;
};

class Manager {
 public:
  Manager(net::Loop& loop, Settings settings, Connections& connections);
  ~Manager();
  Manager(const Manager&) = delete;
  Manager& operator=(const Manager&) = delete;

  // Opens the state directory (made when missing), sets records that nobody owns and that are not terminal to
  // `interrupted`, removes what is past its retention. Before any other call.
  async::Task<void> start();
  // Runs queued transfers until shutdown() is done; ends at once when its context is cancelled (running transfers are
  // cancelled and awaited).
  async::Task<void> serve();
  // No more work; waits `grace` for the running transfers, then cancels and awaits them. Queued ones stay `queued` in
  // their records and are `interrupted` at the next start.
  async::Task<void> shutdown(std::chrono::milliseconds grace);
  bool shutting_down() const noexcept;
  // Why work would fail now: the state directory cannot be written. Looked at every few seconds at most.
  async::Task<std::optional<std::string>> not_ready();

  // Checks all that needs no server, throws as above; else the record is on disk when it returns.
  async::Task<Submitted> submit(SubmitRequest request);
  // What would be done; connects, writes nothing.
  async::Task<std::string> plan(std::string spec, PlanFormat format);

  // {"transfers": [summary, …], "next": "<id>" | null}, newest first.
  async::Task<std::string> list(ListRequest request);
  async::Task<Document> status(std::string id);
  // JSON; in every terminal state, before: Error(conflict, "no_artifact_yet").
  async::Task<Document> artifact(std::string id);
  // Where the artifact is kept, in the state directory.
  std::string artifact_file(const std::string& id) const;
  // Asks for it and returns at once; terminal: Error(conflict, "transfer_ended").
  async::Task<Document> cancel(std::string id);
  // From interrupted, failed, cancelled; a new attempt under the same id. Else Error(conflict, "transfer_active" or
  // "transfer_ended").
  async::Task<Document> resume(std::string id);
  // Until it is terminal, or left in the queue by a shutdown (state queued). A cancellation of the wait leaves the
  // transfer alone.
  async::Task<Outcome> wait(std::string id);

  // {"pipelines": [{"name", "spec", "last_run": {"id", "state", "ended_at", "rows", "seconds", "rate"} | null, "runs",
  // "median": {"seconds", "rate", "runs"} | null}]}
  async::Task<std::string> pipelines();
  async::Task<Submitted> run_pipeline(std::string name, std::string idempotency_key);

  // Staging tables of terminal transfers that ended at least `older_than` ago; `drop` removes them under the target's
  // lock.
  async::Task<std::vector<Orphan>> clean(std::chrono::seconds older_than, bool drop);

  // Null for an unknown one, and for one that ended before this process began. Valid until the next wait.
  const Progress* progress(const std::string& id) const;
  void observe(Observer* observer);  // null: nobody
  std::size_t running() const noexcept;
  std::size_t queued() const noexcept;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// api/spec.schema.json, as compiled in.
std::string_view spec_schema() noexcept;

}  // namespace rowferry::transfer
