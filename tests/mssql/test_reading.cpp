// Readings in good and bad weather: consistency, losses, late values, a server that dies.
#include <fmt/format.h>

#include "reads.hpp"

using namespace rowferry;
using namespace rowferry::test;
using async::Task;
using sandbox::Fault;
using sandbox::FaultKind;
using system::SliceBy;

namespace {

Task<void> three_rows(Bench* bench) {
  co_await bench->run("CREATE TABLE dbo.t (id int NOT NULL PRIMARY KEY, store int NULL, note nvarchar(20) NULL)");
  co_await bench->run("INSERT INTO dbo.t VALUES (1, 10, N'a'), (2, 20, N'b'), (3, NULL, NULL)");
}

// What the engine would see of a reading: consistency, slices, notices.
Task<void> note_reading(Bench* bench, ReadJob job) {
  const std::unique_ptr<system::Source> source = bench->connection->make_source();
  const system::ReadRequest request = co_await read_request(source.get(), job);
  const system::SlicePlan plan = co_await source->plan_slices(request);
  const std::unique_ptr<system::Reading> reading = co_await source->begin(request);
  bench->note(fmt::format("{}: planned {}, had {}", job.options.isolation, to_string(plan.consistency),
                          to_string(reading->consistency())));
  for (const system::Notice& notice : reading->notices()) bench->note(notice.code);
  co_await reading->end();
}

Task<void> isolation(Bench* bench) {
  co_await three_rows(bench);
  ReadJob job;
  job.slices.by = SliceBy::none;
  for (const char* wanted : {"read_committed", "auto"}) {
    job.options.isolation = wanted;
    co_await note_reading(bench, job);
  }
  job.options.isolation = "read_uncommitted";
  co_await note_reading(bench, job);
}

Task<void> snapshot_refused(Bench* bench) {
  co_await three_rows(bench);
  ReadJob job;
  job.options.isolation = "snapshot";
  co_await note_reading(bench, job);
}

Task<void> filtered(Bench* bench) {
  co_await three_rows(bench);
  ReadJob job;
  job.where = "id > 1 -- not the first";
  job.slices = {.by = SliceBy::value, .column = "store", .count = 0};
  job.options.maxdop = 1;
  co_await read_all(bench, job);
}

Task<void> late_values(Bench* bench) {
  co_await three_rows(bench);
  const std::unique_ptr<system::Source> source = bench->connection->make_source();
  ReadJob job;
  job.slices = {.by = SliceBy::value, .column = "store", .count = 0};
  const system::ReadRequest request = co_await read_request(source.get(), job);
  const system::SlicePlan plan = co_await source->plan_slices(request);
  // Found by the plan and taken again: what comes meanwhile is late.
  co_await bench->run("INSERT INTO dbo.t VALUES (4, 30, N'x')");
  const std::unique_ptr<system::Reading> reading = co_await source->begin(request);
  bench->note(fmt::format("{} slices", reading->slices().slices.size()));
  const std::unique_ptr<system::Reader> reader = co_await reading->open_reader(0);
  for (const system::Slice& slice : co_await reading->late_slices()) {
    Rows rows;
    co_await reader->read(slice, rows);
    bench->note(slice.predicate + ": " + lines(rows.rows, " "));
  }
  bench->note(fmt::format("then {}", (co_await reading->late_slices()).size()));
  co_await reader->close();
  co_await reading->end();
}

std::string where_it_was(const Error& error) {
  const ErrorContext& at = error.context();
  return fmt::format("{} {} [connection {}, table {}, slice {}, column {}, row {}] {}", error.code(), error.detail(),
                     at.connection, at.table, at.slice, at.column, at.row.value_or(0), error.hint());
}

// Reads the first slice; the error with its context, or the rows.
Task<void> read_first(Bench* bench, system::Reading* reading, system::Reader* reader) {
  Rows rows;
  std::string failed;
  try {
    co_await reader->read(reading->slices().slices.at(0), rows);
  } catch (const Error& error) {
    failed = where_it_was(error);
  }
  bench->note(failed.empty() ? lines(rows.rows, " ") : failed);
}

Task<void> with_policy(Bench* bench, rows::LossPolicy policy) {
  const std::unique_ptr<system::Source> source = bench->connection->make_source();
  system::ReadRequest request = co_await read_request(source.get(), {});
  request.columns.back().policy = std::move(policy);
  const std::unique_ptr<system::Reading> reading = co_await source->begin(request);
  const std::unique_ptr<system::Reader> reader = co_await reading->open_reader(0);
  co_await read_first(bench, reading.get(), reader.get());
  bench->note(fmt::format("changed {}, usable {}", reader->changed().back(), reader->usable()));
  co_await reader->close();
  co_await reading->end();
}

// O-12
Task<void> losses(Bench* bench) {
  co_await three_rows(bench);
  co_await bench->run("UPDATE dbo.t SET note = N'x' + NCHAR(0xD800) + N'y' WHERE id = 2");
  co_await with_policy(bench, {});
  co_await with_policy(bench, {.action = rows::OnLoss::replace, .replacement = "?"});
  co_await with_policy(bench, {.action = rows::OnLoss::strip, .replacement = {}});
  co_await with_policy(bench, {.action = rows::OnLoss::null, .replacement = {}});
}

Task<void> dying_server(Bench* bench) {
  co_await bench->run("CREATE TABLE dbo.t (id int NOT NULL PRIMARY KEY, note varchar(200))");
  co_await bench->run("INSERT INTO dbo.t VALUES (0, REPLICATE('x', 200))");
  for (int n = 1; n < 4096; n *= 2) {
    co_await bench->run(fmt::format("INSERT INTO dbo.t SELECT id + {}, note FROM dbo.t", n));
  }
  const std::unique_ptr<system::Source> source = bench->connection->make_source();
  const system::ReadRequest request = co_await read_request(source.get(), {});
  const std::unique_ptr<system::Reading> reading = co_await source->begin(request);
  std::unique_ptr<system::Reader> reader = co_await reading->open_reader(0);
  Fault fault;
  fault.kind = FaultKind::cut_reply;
  fault.match = "SELECT [id], [note]";
  fault.bytes = 400'000;
  bench->faults->add(fault);
  Rows rows;
  std::string failed;
  try {
    co_await reader->read(reading->slices().slices.at(0), rows);
  } catch (const Error& error) {
    failed = fmt::format("{}{}", where_it_was(error), error.transient() ? " (may be tried again)" : "");
  }
  bench->note(failed);
  bench->note(fmt::format("usable {}, alive {}, some rows {}", reader->usable(), reading->alive(),
                          !rows.rows.empty() && rows.rows.size() < 4096));
  // A new session reads the slice again.
  co_await reader->close();
  reader = co_await reading->open_reader(0);
  Rows again;
  const system::ReadResult result = co_await reader->read(reading->slices().slices.at(0), again);
  bench->note(fmt::format("again {} rows in {} batches", result.rows, again.batches > 1 ? "several" : "one"));
  co_await reader->close();
  co_await reading->end();
}

Task<void> an_error_of_the_server(Bench* bench) {
  co_await three_rows(bench);
  const std::unique_ptr<system::Source> source = bench->connection->make_source();
  const system::ReadRequest request = co_await read_request(source.get(), {});
  const std::unique_ptr<system::Reading> reading = co_await source->begin(request);
  const std::unique_ptr<system::Reader> reader = co_await reading->open_reader(0);
  Fault fault;
  fault.kind = FaultKind::error;
  fault.match = "SELECT [id]";
  fault.number = 1222;
  fault.text = "Lock request time out period exceeded.";
  bench->faults->add(fault);
  co_await read_first(bench, reading.get(), reader.get());
  // The same session goes on.
  co_await read_first(bench, reading.get(), reader.get());
  co_await reader->close();
  co_await reading->end();
}

Task<void> changed_table(Bench* bench) {
  co_await three_rows(bench);
  const std::unique_ptr<system::Source> source = bench->connection->make_source();
  const system::ReadRequest request = co_await read_request(source.get(), {});
  const std::unique_ptr<system::Reading> reading = co_await source->begin(request);
  const std::unique_ptr<system::Reader> reader = co_await reading->open_reader(0);
  co_await bench->run("ALTER TABLE dbo.t ALTER COLUMN note nvarchar(30) NULL");
  co_await read_first(bench, reading.get(), reader.get());
  co_await reader->close();
  co_await reading->end();
  const std::unique_ptr<system::Reading> second = co_await source->begin(request);
}

Task<void> sessions_left(Bench* bench) {
  co_await three_rows(bench);
  ReadJob job;
  job.workers = 3;
  co_await read_all(bench, job);
  bench->note("sessions: " + co_await bench->rows("SELECT COUNT(*) FROM sys.dm_exec_sessions WHERE program_name = "
                                                  "'rowferry' AND session_id <> @@SPID"));
}

// A slice that is abandoned while its sink makes it wait.
class Stuck final : public system::BatchSink {
 public:
  explicit Stuck(net::Loop& loop) : loop_(loop) {}
  Task<void> put(rows::BatchPtr /*batch*/) override { co_await net::sleep_for(loop_, std::chrono::seconds(60)); }

 private:
  net::Loop& loop_;
};

Task<void> read_into(system::Reader* reader, const system::Slice* slice, system::BatchSink* sink) {
  co_await reader->read(*slice, *sink);
}

Task<void> cancelled(Bench* bench) {
  co_await three_rows(bench);
  const std::unique_ptr<system::Source> source = bench->connection->make_source();
  const system::ReadRequest request = co_await read_request(source.get(), {});
  const std::unique_ptr<system::Reading> reading = co_await source->begin(request);
  const std::unique_ptr<system::Reader> reader = co_await reading->open_reader(0);
  const system::Slice slice = reading->slices().slices.at(0);
  Stuck stuck(bench->loop);
  std::string code;
  try {
    co_await net::with_deadline(bench->loop, std::chrono::milliseconds(100), "the test",
                                read_into(reader.get(), &slice, &stuck));
  } catch (const Error& error) {
    code = error.code();
  }
  bench->note(code);
  co_await read_first(bench, reading.get(), reader.get());
  co_await reader->close();
  co_await reading->end();
}

Task<void> parts(Bench* bench) {
  co_await bench->run("CREATE TABLE dbo.t (id int NOT NULL PRIMARY KEY, o datetimeoffset(3), v sql_variant)");
  co_await bench->run(
      "INSERT INTO dbo.t VALUES (1, '2024-01-01 12:00:00 +05:30', CAST(11.77 AS decimal(10,4))), (2, '2024-01-01 "
      "12:00:00 -08:00', CAST(N'x' AS nvarchar(20))), (3, NULL, NULL), (4, '2024-01-01', CAST('10:11' AS time(3)))");
  const std::unique_ptr<system::Source> source = bench->connection->make_source();
  system::ReadRequest request = co_await read_request(source.get(), {});
  system::ColumnPlan offset = request.columns[1];
  offset.part = system::ColumnPart::offset;
  offset.read_type = rows::Type::text(6);
  system::ColumnPlan base = request.columns[2];
  base.part = system::ColumnPart::base_type;
  base.read_type = rows::Type::text();
  request.columns.push_back(offset);
  request.columns.push_back(base);
  const std::unique_ptr<system::Reading> reading = co_await source->begin(request);
  const std::unique_ptr<system::Reader> reader = co_await reading->open_reader(0);
  co_await read_first(bench, reading.get(), reader.get());
  co_await reader->close();
  co_await reading->end();
}

Task<void> as_text(Bench* bench) {
  co_await bench->run(
      "CREATE TABLE dbo.t (id int, b bit, d decimal(10,4), m money, f float, dt datetime, d2 datetime2(7), o "
      "datetimeoffset(2), t time(1), x varbinary(4), s smalldatetime, day date)");
  co_await bench->run(
      "INSERT INTO dbo.t VALUES (-1, 1, 11.77, -922337203685477.5808, 0.1, '2025-05-16 16:33:33.123', '2024-02-29 "
      "12:34:56.1234567', '2024-02-29 12:34:56 +02:00', '23:59:59.9', 0x0AFF, '2024-02-29 12:34', '0001-01-01')");
  const std::unique_ptr<system::Source> source = bench->connection->make_source();
  system::ReadRequest request = co_await read_request(source.get(), {});
  for (system::ColumnPlan& plan : request.columns) {
    plan.read_as_text = true;
    plan.read_type = rows::Type::text();
  }
  const std::unique_ptr<system::Reading> reading = co_await source->begin(request);
  const std::unique_ptr<system::Reader> reader = co_await reading->open_reader(0);
  co_await read_first(bench, reading.get(), reader.get());
  co_await reader->close();
  co_await reading->end();
}

Task<void> note_plan(Bench* bench, system::SliceRequest slices) {
  const std::unique_ptr<system::Source> source = bench->connection->make_source();
  ReadJob job;
  job.slices = slices;
  const system::ReadRequest request = co_await read_request(source.get(), job);
  const system::SlicePlan plan = co_await source->plan_slices(request);
  bench->note(fmt::format("{} x {}: {}", to_string(plan.by), plan.slices.size(), plan.reason));
  for (const system::Slice& slice : plan.slices) bench->note("  " + slice.predicate);
}

Task<void> automatic(Bench* bench) {
  co_await bench->run("CREATE TABLE dbo.t (id int NOT NULL CONSTRAINT pk PRIMARY KEY, note varchar(10))");
  co_await bench->run("INSERT INTO dbo.t VALUES (0, 'x')");
  co_await note_plan(bench, {.at_least = 4});
  for (int n = 1; n < 131072; n *= 2) {
    co_await bench->run(fmt::format("INSERT INTO dbo.t SELECT id + {}, note FROM dbo.t", n));
  }
  co_await note_plan(bench, {.at_least = 4});
  co_await bench->run("ALTER TABLE dbo.t DROP CONSTRAINT pk");
  co_await note_plan(bench, {.at_least = 4});
}

Task<void> no_order(Bench* bench) {
  co_await bench->run("CREATE TABLE dbo.t (id int, x xml, n nvarchar(max))");
  for (const char* column : {"x", "n", "nothing"}) {
    std::string failed;
    try {
      co_await note_plan(bench, {.by = SliceBy::range, .column = column, .count = 2});
    } catch (const Error& error) {
      failed = fmt::format("{}: {}", error.code(), error.detail());
    }
    bench->note(failed);
  }
  std::string failed;
  try {
    co_await note_plan(bench, {.by = SliceBy::range});
  } catch (const Error& error) {
    failed = error.code() + ": " + error.detail();
  }
  bench->note(failed);
}

Task<void> given(Bench* bench) {
  co_await three_rows(bench);
  ReadJob job;
  system::SliceBounds low{
      .kind = system::SliceBounds::Kind::range, .column = "store", .value = {}, .low = {}, .high = "15"};
  system::SliceBounds high = low;
  high.low = "15";
  high.high = {};
  job.slices = {.by = SliceBy::range, .column = "store", .count = 0, .at_least = 1, .bounds = {low, high}};
  co_await read_all(bench, job);
}

}  // namespace

Test(mssql_reading, isolation_and_consistency) {
  EXPECT_NOTES(isolation, "read_committed: planned none, had none", "auto: planned none, had none", "dirty_read",
               "read_uncommitted: planned none, had none", "dirty_read");
}
Test(mssql_reading, snapshot_refused_by_the_database) {
  EXPECT_NOTES(snapshot_refused,
               "failed: snapshot_not_allowed: the database [dw] does not allow SNAPSHOT isolation: "
               "sys.databases.snapshot_isolation_state is not ON");
}
Test(mssql_reading, a_condition_goes_with_every_slice) {
  EXPECT_NOTES(filtered, "store is NULL: 3,NULL,NULL", "store = 20: 2,20,b");
}
Test(mssql_reading, late_values_are_found) { EXPECT_NOTES(late_values, "3 slices", "store = 30: 4,30,x", "then 0"); }
Test(mssql_reading, text_that_is_none_goes_by_the_policy) {
  EXPECT_NOTES(losses,
               "value_does_not_fit row 3, column note: x�y does not fit: an unpaired surrogate at UTF-16 unit 1 "
               "[connection dw, table dbo.t, slice all rows, column note, row 3] the row has id = 2",
               "changed 0, usable true", "1,10,a 3,NULL,NULL 2,20,x?y", "changed 1, usable true",
               "1,10,a 3,NULL,NULL 2,20,xy", "changed 1, usable true", "1,10,a 3,NULL,NULL 2,20,NULL",
               "changed 1, usable true");
}
Test(mssql_reading, a_server_that_dies_mid_row) {
  EXPECT_NOTES(dying_server,
               "connection_lost the server closed the connection [connection dw, table dbo.t, slice all rows, column , "
               "row 0]  (may be tried again)",
               "usable false, alive true, some rows true", "again 4096 rows in several batches");
}
Test(mssql_reading, an_error_of_the_server_names_the_slice) {
  EXPECT_NOTES(an_error_of_the_server,
               "lock_timeout SQL Server error 1222: Lock request time out period exceeded. [connection dw, table "
               "dbo.t, slice all rows, column , row 0] somebody else holds a lock on rows of the source; "
               "read.lock_timeout_ms says how long to wait",
               "1,10,a 2,20,b 3,NULL,NULL");
}
Test(mssql_reading, a_table_that_changes_meanwhile) {
  EXPECT_NOTES(changed_table,
               "source_changed column note is now text(30 UTF-16 units), and was text(20 UTF-16 units) [connection dw, "
               "table dbo.t, slice all rows, column note, row 0] ",
               "failed: source_changed: column note is now nvarchar(30)");
}
Test(mssql_reading, leaves_no_session_behind) {
  EXPECT_NOTES(sessions_left, "all rows: 1,10,a 2,20,b 3,NULL,NULL", "sessions: 0");
}
Test(mssql_reading, a_cancelled_read_leaves_the_session_usable) {
  EXPECT_NOTES(cancelled, "timeout", "1,10,a 2,20,b 3,NULL,NULL");
}
Test(mssql_reading, offsets_and_base_types_beside_the_values) {
  EXPECT_NOTES(
      parts,
      "1,2024-01-01 06:30:00+00:00,11.7700,+05:30,decimal(10,4) 2,2024-01-01 20:00:00+00:00,x,-08:00,nvarchar(20) "
      "3,NULL,NULL,NULL,NULL 4,2024-01-01 00:00:00+00:00,10:11:00.000,+00:00,time(3)");
}
Test(mssql_reading, everything_can_be_read_as_text) {
  EXPECT_NOTES(as_text,
               "-1,1,11.7700,-922337203685477.5808,0.1,2025-05-16 16:33:33.123,2024-02-29 12:34:56.1234567,2024-02-29 "
               "12:34:56.00 +02:00,23:59:59.9,0x0AFF,2024-02-29 12:34:00.000,0001-01-01");
}
Test(mssql_slices, are_chosen_from_the_catalogue) {
  EXPECT_NOTES(automatic, "none x 1: about 1 rows: one slice is enough", "  all rows",
               "range x 4: about 131072 rows: ranges of id, which leads the clustered index pk", "  id < 32768",
               "  32768 <= id < 65536", "  65536 <= id < 98304", "  98304 <= id",
               "none x 1: a heap: every key range would scan all of it", "  all rows");
}
Test(mssql_slices, a_column_without_an_order) {
  EXPECT_NOTES(
      no_order, "slices_impossible: column \"x\" cannot cut slices: xml has no order that the server compares by",
      "slices_impossible: column \"n\" cannot cut slices: nvarchar(max) has no order that the server compares by",
      "column_missing: the source has no column \"nothing\"",
      "slices_impossible: slices need a column: the source has no clustered index or primary key to take one from");
}
Test(mssql_slices, at_given_bounds) {
  EXPECT_NOTES(given, "store < 15: 1,10,a", "15 <= store: 2,20,b", "store is NULL: 3,NULL,NULL");
}
