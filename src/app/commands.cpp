#include "app/commands.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <system_error>

#include "app/display.hpp"
#include "app/output.hpp"
#include "app/service.hpp"
#include "base/file.hpp"
#include "base/limits.hpp"
#include "base/log.hpp"
#include "net/signal.hpp"

namespace rowferry::app {

namespace {

constexpr Category bad_input[] = {Category::input, Category::forbidden, Category::not_found, Category::unsupported,
                                  Category::conflict};

// A transfer that ended with one of these has stopped before anything was written.
bool is_bad_input(const transfer::Problem& problem) {
  return std::ranges::any_of(bad_input, [&](Category one) { return transfer::to_string(one) == problem.category; });
}

int exit_code(const Error& error) {
  if (std::ranges::find(bad_input, error.category()) != std::end(bad_input)) return exit_bad_input;
  switch (error.category()) {
    case Category::commit_unknown:
      return exit_commit_unknown;
    case Category::cancelled:
      return exit_cancelled;
    default:
      return exit_failed;
  }
}

// `untouched`: the transfer had not begun to read or to write when it ended, so whatever was wrong is to be mended
// outside: a wrong password, an unreachable host, a certificate that is not trusted.
int exit_code(const transfer::Outcome& outcome, bool untouched) {
  switch (outcome.state) {
    case transfer::State::succeeded:
      return exit_ok;
    case transfer::State::cancelled:
      return exit_cancelled;
    case transfer::State::failed:
      if (outcome.error && outcome.error->code == "commit_unknown") return exit_commit_unknown;
      if (!outcome.error || outcome.error->category == transfer::to_string(Category::internal)) return exit_failed;
      return untouched || is_bad_input(*outcome.error) ? exit_bad_input : exit_failed;
    default:
      return exit_stopped;
  }
}

// One line on standard error, and the code that goes with it.
int complain(const Error& error) {
  print_message("rowferry: {}\n", error.one_line());
  return exit_code(error);
}

template <class Command>
int guarded(Command command) {
  try {
    return command();
  } catch (const Error& error) {
    return complain(error);
  } catch (const std::exception& error) {
    print_message("rowferry: {}\n", error.what());
    return exit_failed;
  }
}

std::string read_spec(const std::string& name) {
  FileText spec = name == "-" ? read_whole_descriptor(STDIN_FILENO, limits::spec_bytes_max)
                              : read_whole_file(name, limits::spec_bytes_max, FileKind::any);
  if (!spec.problem.empty()) {
    throw Error(Category::input, "spec_missing", fmt::format("cannot read the spec {}: {}", name, spec.problem));
  }
  return std::move(spec.text);
}

// SIGINT cancels the transfer (again: gives up waiting); SIGTERM stops it so that it can be resumed.
async::Task<void> heed_signals(net::Signals* signals, transfer::Manager* manager, const std::string* id, bool* stopped,
                               std::chrono::milliseconds grace) {
  while (true) {
    const int number = co_await signals->next();
    if (number == SIGTERM) {
      *stopped = true;
      co_await manager->shutdown(grace);
      co_return;
    }
    if (!id->empty()) co_await manager->cancel(*id);
  }
}

// What is not in the last line of progress: the rows are moved, and this is how the target differs from the source.
void print_findings(const transfer::Progress& p) {
  for (const system::Notice& warning : p.warnings) {
    const std::string column = warning.column.empty() ? "" : fmt::format(" [column {}]", warning.column);
    print_message("rowferry: warning: {}: {}{}\n", warning.code, warning.text, column);
  }
  for (const transfer::ColumnReport& column : p.columns) {
    if (column.changed == 0) continue;
    print_message("rowferry: warning: values_changed: {} values of column {} were changed (on_loss {})\n",
                  grouped(column.changed), column.target, column.policy);
  }
  for (const transfer::Check& check : p.checks) {
    if (check.result != transfer::Check::Result::not_run) continue;
    print_message("rowferry: warning: check_not_run: {}: {}\n", check.name, check.reason);
  }
}

// Waits for the transfer and prints its artifact.
async::Task<int> follow(Service* service, std::string id) {
  const transfer::Outcome outcome = co_await service->manager().wait(id);
  if (transfer::is_terminal(outcome.state) && outcome.state != transfer::State::interrupted) {
    const std::string json = (co_await service->manager().artifact(id)).json;
    // The transfer has ended as it has, whoever reads of it: its exit code stays.
    if (!put(stdout, json + "\n")) {
      const int reason = errno;
      print_message("rowferry: the artifact cannot be written to standard output: {}; it is kept in {}\n",
                    std::generic_category().message(reason), service->manager().artifact_file(id));
    }
  }
  const transfer::Progress* progress = service->manager().progress(id);
  // A failure is one line; what else was seen is in the artifact.
  if (progress != nullptr && !outcome.error) print_findings(*progress);
  if (outcome.error) {
    const transfer::Problem& error = *outcome.error;
    print_message("rowferry: {}: {}\n", error.code, one_line_of(error.detail, error.context, error.hint));
  }
  const bool untouched =
      progress != nullptr && progress->staging.empty() && progress->rows.read == 0 && !progress->has_read;
  co_return exit_code(outcome, untouched);
}

struct Job {
  std::string spec;  // submit this
  std::string id;    // or resume this
};

async::Task<void> run_job(Service* service, const Job* job, std::string* id, int* code) {
  if (job->id.empty()) {
    *id = (co_await service->manager().submit({.spec = job->spec, .idempotency_key = "", .pipeline = ""})).id;
  } else {
    co_await service->manager().resume(job->id);
    *id = job->id;
  }
  *code = co_await follow(service, *id);
}

async::Task<int> run_one(net::Loop* loop, Service* service, const Job* job) {
  co_await service->manager().start();
  Display display(stderr, isatty(STDERR_FILENO) != 0);
  service->manager().observe(&display);
  net::Signals signals(*loop, {SIGINT, SIGTERM});
  std::string id;
  bool stopped = false;
  int code = exit_failed;
  const async::Context context = co_await async::current_context();
  async::Scope others(context);
  others.spawn(service->manager().serve());
  others.spawn(heed_signals(&signals, &service->manager(), &id, &stopped, service->config().server.shutdown_grace));
  std::exception_ptr error;
  try {
    co_await run_job(service, job, &id, &code);
  } catch (...) {
    error = std::current_exception();
  }
  try {
    co_await others.end();
  } catch (...) {
    if (!error) error = std::current_exception();
  }
  service->manager().observe(nullptr);
  if (error) std::rethrow_exception(error);
  if (stopped && code != exit_ok) {
    print_message("rowferry: stopped; go on with: rowferry resume {}\n", id);
    co_return exit_stopped;
  }
  co_return code;
}

async::Task<int> print_plan(Service* service, std::string spec, transfer::PlanFormat format) {
  write_result(co_await service->manager().plan(std::move(spec), format) + "\n");
  co_return exit_ok;
}

async::Task<int> clean_up(Service* service, std::chrono::seconds older_than, bool yes) {
  co_await service->manager().start();
  int code = exit_ok;
  const std::vector<transfer::Orphan> orphans = co_await service->manager().clean(older_than, yes);
  if (orphans.empty()) print_message("rowferry: no staging table is left over\n");
  if (!orphans.empty() && !yes) print_message("rowferry: nothing is dropped without --yes\n");
  for (const transfer::Orphan& orphan : orphans) {
    print_result("{}\t{}\t{}\t{}\t{}\n", orphan.state, orphan.connection, orphan.staging, orphan.id, orphan.detail);
    if (orphan.state == "failed") code = exit_failed;
  }
  co_return code;
}

}  // namespace

int transfer(const std::string& config, const std::string& spec) {
  return guarded([&] {
    net::Loop loop;
    Service service(loop, load_config(config));
    const Job job{.spec = read_spec(spec), .id = ""};
    return loop.run(run_one(&loop, &service, &job));
  });
}

int resume(const std::string& config, const std::string& id) {
  return guarded([&] {
    net::Loop loop;
    Service service(loop, load_config(config));
    const Job job{.spec = "", .id = id};
    return loop.run(run_one(&loop, &service, &job));
  });
}

int plan(const std::string& config, const std::string& spec, const std::string& format) {
  return guarded([&] {
    net::Loop loop;
    Service service(loop, load_config(config));
    const auto as = format == "text" ? transfer::PlanFormat::text : transfer::PlanFormat::json;
    try {
      return loop.run(print_plan(&service, read_spec(spec), as));
    } catch (const Error& error) {
      // Nothing was written: whatever is wrong is to be mended outside.
      const int code = complain(error);
      return code == exit_failed && error.category() != Category::internal ? static_cast<int>(exit_bad_input) : code;
    }
  });
}

int clean(const std::string& config, const std::string& older_than, bool yes) {
  return guarded([&] {
    net::Loop loop;
    Service service(loop, load_config(config));
    const auto age = std::chrono::duration_cast<std::chrono::seconds>(parse_duration(older_than, "--older-than"));
    return loop.run(clean_up(&service, age, yes));
  });
}

}  // namespace rowferry::app
