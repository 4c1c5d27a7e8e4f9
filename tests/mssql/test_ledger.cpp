// What a load survives: lost COMMITs, a second transfer, a resume, changes behind its back.
#include <fmt/format.h>

#include "bench.hpp"

using namespace rowferry;
using namespace rowferry::test;
using async::Task;
using system::Mode;

namespace {

constexpr const char* table_sql =
    "CREATE TABLE dbo.orders (id int NOT NULL, note nvarchar(80) NULL, amount decimal(10,2) NULL)";
const std::vector<Row> first_rows{{1, "one", 100}, {2, {}, 250}};
const std::vector<Row> second_rows{{3, "three", {}}};

Job job() {
  Job j;
  j.slices = {first_rows, second_rows};
  return j;
}

Task<std::string> error_code(Task<void> task) {
  try {
    co_await std::move(task);
  } catch (const Error& error) {
    co_return error.code() + (error.transient() ? " (transient)" : "");
  }
  co_return "no error";
}

Task<void> load_one(Load* load, system::Loader* loader, int index, std::vector<Row> rows) {
  system::SliceCommit commit;
  co_await load_slice(load, loader, index, std::move(rows), &commit);
}

void cut(Bench* bench, sandbox::FaultKind kind, std::uint64_t nth) {
  sandbox::Fault fault;
  fault.kind = kind;
  fault.nth = nth;
  bench->faults->add(fault);
}

Task<void> lost_before(Bench* bench) {
  co_await bench->run(table_sql);
  Load load = co_await planned(bench, job());
  co_await begin(&load, job());
  cut(bench, sandbox::FaultKind::cut_before_commit, 1);
  auto loader = co_await load.loading->open_loader(0);
  bench->note(co_await error_code(load_one(&load, loader.get(), 0, first_rows)));
  bench->note(loader->usable() ? "usable" : "not usable");
  co_await loader->abort_slice();
  co_await loader->close();
  loader = co_await load.loading->open_loader(0);
  bench->note(co_await error_code(load_one(&load, loader.get(), 0, first_rows)));
  co_await loader->close();
  bench->note(fmt::format("staged {}", co_await load.loading->staged_rows()));
  co_await load.loading->end(false);
}

Task<void> lost_after(Bench* bench) {
  co_await bench->run(table_sql);
  Load load = co_await planned(bench, job());
  co_await begin(&load, job());
  cut(bench, sandbox::FaultKind::cut_after_commit, 1);
  auto loader = co_await load.loading->open_loader(0);
  system::SliceCommit commit;
  bench->note(co_await load_slice(&load, loader.get(), 0, first_rows, &commit) ? "loaded" : "was there");
  bench->note(commit.already_there ? "found in the ledger" : "answered");
  co_await loader->close();
  loader = co_await load.loading->open_loader(0);
  bench->note(co_await load_slice(&load, loader.get(), 0, first_rows, &commit) ? "loaded" : "was there");
  bench->note(co_await load_slice(&load, loader.get(), 1, second_rows, &commit) ? "loaded" : "was there");
  co_await loader->close();
  bench->note(fmt::format("staged {}", co_await load.loading->staged_rows()));
  cut(bench, sandbox::FaultKind::cut_after_commit, 1);
  const system::FinalizeResult result = co_await load.loading->finalize({3, load.hash, {}});
  bench->note(fmt::format("rows {}", result.rows));
  co_await load.loading->after_steps();
  co_await load.loading->end(false);
  bench->note(co_await bench->rows("SELECT COUNT(*) FROM dbo.orders"));
}

Task<void> finalize_lost_before(Bench* bench) {
  co_await bench->run(table_sql);
  Load load = co_await planned(bench, job());
  co_await begin(&load, job());
  auto loader = co_await load.loading->open_loader(0);
  co_await load_one(&load, loader.get(), 0, first_rows);
  co_await loader->close();
  cut(bench, sandbox::FaultKind::cut_before_commit, 1);
  const system::FinalizeResult result = co_await load.loading->finalize({2, load.hash, {}});
  bench->note(fmt::format("rows {}, {}", result.rows, result.notices.empty() ? "" : result.notices[0].code));
  co_await load.loading->after_steps();
  co_await load.loading->end(false);
  bench->note(co_await bench->rows("SELECT COUNT(*) FROM dbo.orders"));
}

Task<void> busy(Bench* bench) {
  co_await bench->run(table_sql);
  Load first = co_await planned(bench, job());
  co_await begin(&first, job());
  Job other = job();
  other.id = "t2";
  Load second = co_await planned(bench, other);
  bench->note(co_await error_code(begin(&second, other)));
  co_await first.loading->end(false);
  bench->note(co_await error_code(begin(&second, other)));
  co_await second.loading->end(false);
}

Task<void> changed(Bench* bench) {
  co_await bench->run(table_sql);
  Load load = co_await planned(bench, job());
  co_await begin(&load, job());
  co_await bench->run("ALTER TABLE dbo.orders ADD more int NULL");
  bench->note(co_await error_code([](Load* l) -> Task<void> { co_await l->loading->finalize({}); }(&load)));
  co_await load.loading->end(false);
  load = co_await planned(bench, job());
  co_await bench->run("ALTER TABLE dbo.orders ADD again int NULL");
  bench->note(co_await error_code(begin(&load, job())));
}

Task<void> resume(Bench* bench) {
  co_await bench->run(table_sql);
  {
    Load load = co_await planned(bench, job());
    co_await begin(&load, job());
    auto loader = co_await load.loading->open_loader(0);
    co_await load_one(&load, loader.get(), 0, first_rows);
    co_await load_one(&load, loader.get(), 1, second_rows);
    co_await loader->close();
    co_await load.loading->end(true);
  }
  Load load = co_await planned(bench, job());
  system::Remains remains = co_await load.target->remains(load.request, "t1");
  bench->note(fmt::format("finalized {}, staging {}, slices {}, latest {}", remains.finalized, remains.staging_attempt,
                          remains.slices.size(), remains.latest_attempt));
  rows::ContentHash hash;
  hash.rows = 3;
  system::LoadRequest request;
  request.transfer_id = "t1";
  request.attempt = 2;
  request.what = load.request;
  request.plan = load.plan;
  request.columns = load.columns;
  request.resume_staging = true;
  request.staging_attempt = remains.staging_attempt;
  load.loading = co_await load.target->begin(request);
  bench->note(fmt::format("{} with {}", load.loading->staging_name(), co_await load.loading->staged_rows()));
  bench->note(fmt::format("rows {}", (co_await load.loading->finalize({3, hash, {}})).rows));
  co_await load.loading->end(true);
  remains = co_await load.target->remains(load.request, "t1");
  bench->note(fmt::format("finalized {} with {}", remains.finalized, remains.finalize.row_count));
  request.only_after_steps = true;
  load.loading = co_await load.target->begin(request);
  co_await load.loading->after_steps();
  co_await load.loading->end(false);
  remains = co_await load.target->remains(load.request, "t1");
  bench->note(fmt::format("staging {}", remains.staging_attempt));
  bench->note(co_await bench->rows("SELECT COUNT(*) FROM dbo.orders"));
}

Task<void> finalized_twice(Bench* bench) {
  co_await bench->run(table_sql);
  bench->note(co_await transfer(bench, job()));
  // A second attempt that does not know of the first one's success.
  Load load = co_await planned(bench, job());
  Job again = job();
  again.attempt = 2;
  co_await begin(&load, again);
  const system::FinalizeResult result = co_await load.loading->finalize({3, load.hash, {}});
  bench->note(fmt::format("already {}, rows {}", result.already_done, result.rows));
  co_await load.loading->end(false);
  bench->note(co_await bench->rows("SELECT COUNT(*) FROM dbo.orders"));
}

Task<void> given_up(Bench* bench) {
  co_await bench->run(table_sql);
  Load load = co_await planned(bench, job());
  co_await begin(&load, job());
  auto loader = co_await load.loading->open_loader(0);
  system::Slice slice;
  co_await loader->begin_slice(slice);
  co_await loader->write(batch_of(load, first_rows));
  co_await loader->abort_slice();
  bench->note(loader->usable() ? "usable" : "not usable");
  co_await load_one(&load, loader.get(), 0, second_rows);
  co_await loader->close();
  bench->note(fmt::format("staged {}", co_await load.loading->staged_rows()));
  co_await load.loading->end(false);
  bench->note("left: " + co_await bench->rows("SELECT name FROM sys.tables WHERE name LIKE 'rowferry[_]t%'"));
  bench->note("ledger: " + co_await bench->rows("SELECT step FROM dbo.rowferry_ledger"));
  co_await bench->run("DROP TABLE dbo.orders");
}

Task<void> two_at_once(Bench* bench) {
  co_await bench->run(table_sql);
  Load load = co_await planned(bench, job());
  co_await begin(&load, job());
  auto a = co_await load.loading->open_loader(0);
  auto b = co_await load.loading->open_loader(1);
  std::vector<Task<void>> both;
  both.push_back(load_one(&load, a.get(), 0, first_rows));
  both.push_back(load_one(&load, b.get(), 1, second_rows));
  bench->note(co_await error_code(async::when_all(std::move(both))));
  co_await a->close();
  co_await b->close();
  bench->note(fmt::format("staged {}", co_await load.loading->staged_rows()));
  co_await load.loading->end(false);
}

Task<void> wrong_password(Bench* bench) {
  mssql::Options options;
  options.name = "dw";
  options.host = "127.0.0.1";
  options.port = bench->server.port();
  options.user = "sa";
  options.password = [] { return Secret("wrong-one"); };
  options.encrypt = tds::Encrypt::off;
  bench->connection = mssql::make_connection(bench->loop, std::move(options));
  std::string line;
  try {
    co_await planned(bench, job());
  } catch (const Error& error) {
    line = error.code() + (error.one_line().find("wrong-one") == std::string::npos ? "" : " and the password is shown");
    if (error.context().connection != "dw") line += " without the connection";
  }
  bench->note(line);
}

}  // namespace

Test(ledger, a_commit_that_did_not_arrive_is_done_again) {
  EXPECT_NOTES(lost_before, "commit_failed (transient)", "not usable", "no error", "staged 2");
}
Test(ledger, a_commit_that_arrived_is_not_done_twice) {
  EXPECT_NOTES(lost_after, "loaded", "found in the ledger", "was there", "loaded", "staged 3", "rows 3", "3");
}
Test(ledger, a_finalize_whose_commit_was_lost_is_tried_again) {
  EXPECT_NOTES(finalize_lost_before, "rows 2, finalize_retried", "2");
}
Test(ledger, a_second_transfer_into_the_same_table_is_refused) { EXPECT_NOTES(busy, "target_busy", "no error"); }
Test(ledger, a_table_that_was_changed_meanwhile_is_not_touched) {
  EXPECT_NOTES(changed, "target_changed", "target_changed");
}
Test(ledger, a_resume_goes_on_where_staging_is_complete) {
  EXPECT_NOTES(resume, "finalized false, staging 1, slices 2, latest 1", "rowferry_t1_1 with 3", "rows 3",
               "finalized true with 3", "staging 0", "3");
}
Test(ledger, a_finalize_that_is_committed_is_not_repeated) {
  EXPECT_NOTES(finalized_twice, "insert_select, staged 3, hash same, rows 3", "already true, rows 3", "3");
}
// O-38
Test(ledger, a_load_that_is_given_up_leaves_nothing_behind) {
  EXPECT_NOTES(given_up, "usable", "staged 1", "left: ", "ledger: ");
}
Test(ledger, load_workers_fill_staging_side_by_side) { EXPECT_NOTES(two_at_once, "no error", "staged 3"); }
Test(ledger, a_wrong_password_is_not_shown) { EXPECT_NOTES(wrong_password, "login_failed"); }
