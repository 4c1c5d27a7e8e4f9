// Our client against our server, over streams in memory: what one writes the other must read.
#include <criterion/criterion.h>

#include <fstream>

#include "async/scope.hpp"
#include "base/decimal.hpp"
#include "base/error.hpp"
#include "rows/hash.hpp"
#include "sandbox/server.hpp"
#include "tds/session.hpp"
#include "tds/wire/logical_type.hpp"
#include "tests/net/memory_stream.hpp"
#include "tests/tds/batch_builder.hpp"

using namespace rowferry;
using rowferry::test::BatchBuilder;
using rowferry::testing::MemoryStream;

namespace {

using Story = async::Task<void> (*)(tds::Session* session);

async::Task<void> client(net::Loop* loop, std::unique_ptr<net::Stream> stream, tds::LoginOptions options, Story story) {
  const auto session = co_await tds::Session::login(*loop, std::move(stream), std::move(options));
  co_await story(session.get());
}

async::Task<void> play(net::Loop* loop, sandbox::Options server_options, tds::LoginOptions options, Story story) {
  sandbox::SandboxServer server(*loop, std::move(server_options));
  auto ours = std::make_unique<MemoryStream>();
  auto theirs = std::make_unique<MemoryStream>();
  MemoryStream::join(*ours, *theirs);
  // The server's end dies with its connection: ours must not write to it afterwards, so the client ends first.
  std::exception_ptr failure;
  {
    const async::Context here = co_await async::current_context();
    async::Scope scope(here);
    scope.spawn(server.serve(std::move(theirs), "memory"));
    scope.spawn(client(loop, std::move(ours), std::move(options), story));
    try {
      co_await scope.join();
    } catch (...) {
      failure = std::current_exception();
    }
  }
  co_await server.stop();
  if (failure) std::rethrow_exception(failure);
}

// Empty when the story went well.
std::string run(tds::Encrypt encrypt, Story story) {
  net::Loop loop;
  sandbox::Options server;
  server.encrypt = encrypt == tds::Encrypt::on      ? sandbox::Encrypt::on
                   : encrypt == tds::Encrypt::login ? sandbox::Encrypt::login
                                                    : sandbox::Encrypt::off;
  tds::LoginOptions options;
  options.host = "localhost";
  options.user = "sa";
  options.password = [] { return Secret("x"); };
  options.encrypt = encrypt;
  options.trust_server_certificate = true;
  try {
    loop.run(play(&loop, std::move(server), std::move(options), story));
  } catch (const std::exception& error) {
    return describe(std::current_exception());
  }
  return "";
}

// Gathers what a read gives.
class Rows final : public system::BatchSink {
 public:
  std::vector<rows::BatchPtr> batches;
  async::Task<void> put(rows::BatchPtr batch) override {
    batches.push_back(std::move(batch));
    co_return;
  }
};

void need(bool good, const char* what) {
  if (!good) throw Error(Category::internal, "test", what);
}

// The columns of a table as a bulk load takes them, from the server's own description.
async::Task<std::vector<tds::BulkColumn>> columns_of(tds::Session* session, std::string table) {
  const tds::QueryResult described = co_await session->query("SELECT TOP 0 * FROM " + table);
  std::vector<tds::BulkColumn> columns;
  for (const tds::ColumnMeta& meta : described.sets.at(0).columns) {
    const tds::BulkForm form = tds::bulk_form(meta);
    columns.push_back({.meta = form.meta, .declared = form.declared, .collation = "", .type = tds::logical_type(meta)});
  }
  co_return columns;
}

void fill(BatchBuilder& builder, const rows::Type& type, int row) {
  using rows::TypeId;
  if (row % 5 == 4) {
    builder.null();
    return;
  }
  switch (type.id) {
    case TypeId::boolean:
      builder.boolean(row % 2 == 0);
      return;
    case TypeId::uint8:
      builder.value(static_cast<std::uint8_t>(200 + row % 50));
      return;
    case TypeId::int16:
      builder.value(static_cast<std::int16_t>(-row));
      return;
    case TypeId::int32:
      builder.value(std::int32_t{row * 1000});
      return;
    case TypeId::int64:
      builder.value(std::int64_t{row} << 33);
      return;
    case TypeId::float32:
      builder.value(static_cast<float>(row) / 3);
      return;
    case TypeId::float64:
      builder.value(static_cast<double>(row) / 7);
      return;
    case TypeId::decimal:
      builder.value(Int128{row} * 12345 - 500);
      return;
    case TypeId::date:
      builder.value(std::int32_t{row * 37});
      return;
    case TypeId::time:
      builder.value(std::int64_t{row} * 1'000'000);
      return;
    case TypeId::timestamp:
      builder.value(std::int64_t{row} * 60'000'000);
      return;
    case TypeId::uuid:
      builder.uuid("0123456789abcde" + std::string(1, static_cast<char>('a' + row % 26)));
      return;
    case TypeId::binary:
      builder.bytes(type.padded ? std::string(type.length, static_cast<char>(row)) : std::string(row % 20, '\xEE'));
      return;
    default:
      builder.bytes(row % 3 == 0 ? "" : row % 3 == 1 ? "plain" : type.code_page == 0 ? "é😀日" : "é");
  }
}

constexpr int rows_to_load = 1000;

// Loads rows of every type, commits, reads them back, and compares the content hashes.
async::Task<void> every_type(tds::Session* session) {
  co_await session->execute(
      "CREATE TABLE dbo.everything (a tinyint NULL, b smallint NULL, c int NULL, d bigint NULL, e bit NULL, f real "
      "NULL, g "
      "float(53) NULL, h decimal(9,2) NULL, i decimal(19,4) NULL, j decimal(28,10) NULL, k decimal(38,10) NULL, l date "
      "NULL, "
      "m time(0) NULL, n time(6) NULL, o datetime2(0) NULL, p datetime2(3) NULL, q datetime2(6) NULL, r "
      "datetimeoffset(6) "
      "NULL, s uniqueidentifier NULL, t nvarchar(40) NULL, u nvarchar(max) NULL, v varbinary(40) NULL, w "
      "varbinary(max) NULL, "
      "x varchar(40) NULL, y varchar(max) NULL, z money NULL)");
  std::vector<tds::BulkColumn> columns = co_await columns_of(session, "dbo.everything");
  std::vector<rows::Type> types;
  for (const auto& column : columns) types.push_back(column.type);
  BatchBuilder builder(types);
  for (int row = 0; row < rows_to_load; ++row) {
    for (const rows::Type& type : types) fill(builder, type, row);
  }
  const auto batch = builder.build();
  co_await session->execute("BEGIN TRANSACTION");
  need(session->in_transaction(), "BEGIN TRANSACTION is noticed");
  const auto load =
      co_await session->begin_bulk({"dbo", "everything"}, columns, {.table_lock = true, .keep_nulls = true});
  co_await load->write(*batch);
  const std::uint64_t acknowledged = co_await load->finish();
  need(acknowledged == rows_to_load, "all rows are acknowledged");
  co_await session->execute("COMMIT");
  need(!session->in_transaction(), "COMMIT is noticed");

  const tds::QueryResult count = co_await session->query("SELECT COUNT_BIG(*) AS n FROM dbo.everything");
  need(count.scalar("n").integer() == rows_to_load, "all rows are counted");
  Rows back;
  const tds::ReadStats stats = co_await session->read("SELECT * FROM dbo.everything", {}, back);
  need(stats.rows == rows_to_load, "all rows are read back");
  rows::RowHasher hasher(batch->schema(), std::vector<bool>(types.size(), true));
  rows::ContentHash sent;
  hasher.add(*batch, sent);
  rows::ContentHash got;
  for (const auto& part : back.batches) hasher.add(*part, got);
  need(sent == got, "the content hashes agree");
}

async::Task<void> a_refused_load(tds::Session* session) {
  co_await session->execute("CREATE TABLE dbo.keyed (n int NOT NULL PRIMARY KEY)");
  const std::vector<tds::BulkColumn> columns = co_await columns_of(session, "dbo.keyed");
  BatchBuilder builder({columns[0].type});
  builder.value(std::int32_t{1}).value(std::int32_t{1});
  const auto batch = builder.build();
  const auto load = co_await session->begin_bulk({"dbo", "keyed"}, columns, {});
  co_await load->write(*batch);
  std::string number;
  try {
    (void)co_await load->finish();
  } catch (const Error& error) {
    number = error.fault() ? error.fault()->number : error.code();
  }
  need(number == "2627", "the duplicate key is told");
  const tds::QueryResult count = co_await session->query("SELECT COUNT(*) AS n FROM dbo.keyed");
  need(count.scalar("n").integer() == 0, "nothing of the load stays");
}

async::Task<void> an_aborted_load(tds::Session* session) {
  co_await session->execute("CREATE TABLE dbo.t (n int NULL)");
  const std::vector<tds::BulkColumn> columns = co_await columns_of(session, "dbo.t");
  BatchBuilder builder({columns[0].type});
  for (int row = 0; row < 100'000; ++row) builder.value(std::int32_t{row});
  const auto batch = builder.build();
  for (const bool with_rows : {false, true}) {
    const auto load = co_await session->begin_bulk({"dbo", "t"}, columns, {});
    if (with_rows) co_await load->write(*batch);
    co_await load->abort();
    need(session->usable(), "the session goes on");
    const tds::QueryResult count = co_await session->query("SELECT COUNT(*) AS n FROM dbo.t");
    need(count.scalar("n").integer() == 0, "nothing of the load stays");
  }
}

async::Task<void> a_cancelled_statement(tds::Session* session) {
  std::string code;
  try {
    (void)co_await session->query("WAITFOR DELAY '00:00:20'", std::chrono::milliseconds(50));
  } catch (const Error& error) {
    code = error.code();
  }
  need(code == "timeout", "the deadline is told");
  need(session->usable(), "the attention was answered");
  const tds::QueryResult one = co_await session->query("SELECT COUNT(*) AS n FROM sys.tables");
  need(one.sets.size() == 1, "the next reply is the next request's");
}

void plays(tds::Encrypt encrypt, Story story) {
  const std::string trouble = run(encrypt, story);
  cr_assert_eq(trouble, "", "%s", trouble.c_str());
}

}  // namespace

Test(sandbox, every_type_loads_and_reads_back_the_same) { plays(tds::Encrypt::off, every_type); }
Test(sandbox, every_type_with_tls) { plays(tds::Encrypt::on, every_type); }
Test(sandbox, every_type_with_an_encrypted_login) { plays(tds::Encrypt::login, every_type); }
Test(sandbox, a_refused_load_leaves_nothing) { plays(tds::Encrypt::off, a_refused_load); }
Test(sandbox, an_aborted_load_leaves_nothing) { plays(tds::Encrypt::off, an_aborted_load); }
Test(sandbox, a_cancelled_statement_is_stopped) { plays(tds::Encrypt::off, a_cancelled_statement); }
