// The sink alone: one batch in memory, again and again, into a table of five fixed-width columns. Seconds as JSON.
//
//   BENCH_PASSWORD=… sink_alone batches|bytes HOST PORT DATABASE USER ROWS
//
// batches: encoded by the bulk loader as in a transfer. bytes: the same packets made beforehand, then sent as fast as
// they are taken. Login, DDL and the making of bytes are outside the measured time; the server's last answer is inside.
#include <fmt/format.h>

#include <chrono>
#include <cstdlib>

#include "net/stream.hpp"
#include "tds/session.hpp"
#include "tds/wire/logical_type.hpp"
#include "tds/wire/login7.hpp"
#include "tds/wire/packet.hpp"
#include "tds/wire/prelogin.hpp"

namespace {

using namespace rowferry;  // NOLINT(google-build-using-namespace): a program of its own

constexpr std::size_t batch_rows = 8192;
constexpr std::size_t packet_bytes = 32764;
constexpr std::string_view definition = "(id int null, b bigint null, f float null, t datetime2(6) null, k bit null)";

struct Options {
  std::string host;
  std::uint16_t port = 0;
  std::string database;
  std::string user;
  std::string password;
  std::uint64_t rows = 0;
};

tds::BulkColumn column(std::string name, tds::DataType id, std::uint32_t length, std::uint8_t scale = 0) {
  tds::ColumnMeta meta;
  meta.name = std::move(name);
  meta.flags = tds::flag_nullable | tds::flag_updatable_unknown;
  meta.type.id = id;
  meta.type.max_length = length;
  meta.type.scale = scale;
  const tds::BulkForm form = tds::bulk_form(meta);
  return {.meta = form.meta, .declared = form.declared, .collation = "", .type = tds::logical_type(meta)};
}

std::vector<tds::BulkColumn> columns() {
  return {column("id", tds::DataType::intn, 4), column("b", tds::DataType::intn, 8),
          column("f", tds::DataType::fltn, 8), column("t", tds::DataType::datetime2, 0, 6),
          column("k", tds::DataType::bitn, 1)};
}

rows::Batch make_batch() {
  auto schema = std::make_shared<rows::Schema>();
  for (const tds::BulkColumn& c : columns()) schema->fields.push_back({c.meta.name, c.type, true});
  rows::Batch batch(schema);
  for (std::size_t row = 0; row < batch_rows; ++row) {
    const auto n = static_cast<std::int64_t>(row);
    batch.buffer(0).append<std::int32_t>(row, static_cast<std::int32_t>(n));
    batch.buffer(1).append<std::int64_t>(row, n * 7);
    batch.buffer(2).append<double>(row, static_cast<double>(n) * 0.5);
    batch.buffer(3).append<std::int64_t>(row, (1'577'836'800 + n) * 1'000'000);
    batch.buffer(4).append_boolean(row, n % 2 == 0);
  }
  batch.seal(batch_rows);
  return batch;
}

async::Task<std::unique_ptr<tds::Session>> log_in(net::Loop* loop, const Options* o) {
  tds::LoginOptions login;
  login.host = o->host;
  login.port = o->port;
  login.database = o->database;
  login.user = o->user;
  login.password = [o] { return Secret(o->password); };
  login.encrypt = tds::Encrypt::off;
  co_return co_await tds::Session::connect(*loop, std::move(login));
}

async::Task<double> send_batches(net::Loop* loop, const Options* o) {
  const auto session = co_await log_in(loop, o);
  const rows::Batch batch = make_batch();
  const auto began = std::chrono::steady_clock::now();
  const auto load = co_await session->begin_bulk({"dbo", "sink_alone"}, columns(), {.table_lock = true});
  for (std::uint64_t sent = 0; sent < o->rows; sent += batch_rows) co_await load->write(batch);
  co_await load->finish();
  co_return std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
}

// One request and its whole answer, without the session's code.
async::Task<void> exchange(net::Stream* stream, tds::PacketType type, const ByteBuffer* body, std::size_t size) {
  tds::PacketWriter writer(size);
  writer.begin(type);
  writer.write(body->view());
  writer.finish();
  co_await stream->write_all(writer.ready());
  tds::PacketReader reader;
  std::vector<std::uint8_t> part(64 * 1024);
  while (!reader.message_ended()) {
    const std::size_t got = co_await stream->read_some(part);
    if (got == 0) throw Error(Category::connection, "connection_lost", "the server closed the connection");
    reader.feed(ByteView(part).first(got));
  }
}

ByteBuffer batch_request(std::string_view sql) {
  ByteBuffer body;
  for (const std::uint32_t word : {22U, 18U}) body.put_le(word);
  body.put_le<std::uint16_t>(2);
  body.put_le<std::uint64_t>(0);
  body.put_le<std::uint32_t>(1);
  for (const char c : sql) body.put_le<std::uint16_t>(static_cast<unsigned char>(c));
  return body;
}

// The packets of the whole load, in one block of memory.
ByteBuffer ready_made(std::uint64_t rows) {
  tds::BulkEncoder encoder(columns());
  const rows::Batch batch = make_batch();
  tds::PacketWriter writer(packet_bytes);
  ByteBuffer tokens;
  ByteBuffer all;
  writer.begin(tds::PacketType::bulk);
  encoder.columns(tokens);
  for (std::uint64_t made = 0; made < rows; made += batch_rows) {
    encoder.rows(batch, 0, batch_rows, tokens);
    writer.write(tokens.view());
    tokens.clear();
    all.append(writer.ready());
    writer.drop_ready();
  }
  tds::BulkEncoder::done(tokens);
  writer.write(tokens.view());
  writer.finish();
  all.append(writer.ready());
  return all;
}

async::Task<double> send_bytes(net::Loop* loop, const Options* o) {
  const ByteBuffer all = ready_made(o->rows);
  const auto stream = co_await net::TcpStream::connect(*loop, o->host, o->port, net::milliseconds{5000});
  ByteBuffer prelogin;
  tds::put_prelogin(prelogin, tds::PreloginEncryption::not_supported);
  co_await exchange(stream.get(), tds::PacketType::prelogin, &prelogin, 4096);
  ByteBuffer login;
  tds::put_login7(login, {.client_name = "bench",
                          .user = o->user,
                          .password = o->password,
                          .application_name = "sink_alone",
                          .server_name = o->host,
                          .database = o->database,
                          .packet_bytes = packet_bytes});
  co_await exchange(stream.get(), tds::PacketType::login7, &login, 4096);
  const ByteBuffer announce =
      batch_request(tds::insert_bulk_statement({"dbo", "sink_alone"}, columns(), {.table_lock = true}));
  const auto began = std::chrono::steady_clock::now();
  co_await exchange(stream.get(), tds::PacketType::sql_batch, &announce, packet_bytes);
  co_await stream->write_all(all.view());
  std::vector<std::uint8_t> part(4096);
  tds::PacketReader reader;
  while (!reader.message_ended()) {
    const std::size_t got = co_await stream->read_some(part);
    if (got == 0) throw Error(Category::connection, "connection_lost", "the server closed the connection");
    reader.feed(ByteView(part).first(got));
  }
  co_return std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
}

async::Task<double> measure(net::Loop* loop, const Options* o, bool bytes) {
  const auto session = co_await log_in(loop, o);
  co_await session->execute(
      fmt::format("drop table if exists dbo.sink_alone; create table dbo.sink_alone {}", definition));
  const double seconds = bytes ? co_await send_bytes(loop, o) : co_await send_batches(loop, o);
  const tds::QueryResult counted = co_await session->query("select count_big(*) as n from dbo.sink_alone");
  const auto expected = static_cast<std::int64_t>((o->rows + batch_rows - 1) / batch_rows * batch_rows);
  if (counted.scalar("n").integer() != expected) {
    throw Error(Category::internal, "bench",
                fmt::format("{} rows arrived, {} were sent", counted.scalar("n").integer(), expected));
  }
  co_await session->execute("drop table dbo.sink_alone");
  co_return seconds;
}

}  // namespace

int main(int argc, char** argv) {
  const char* password = std::getenv("BENCH_PASSWORD");  // NOLINT(concurrency-mt-unsafe): one thread
  const std::string mode = argc > 1 ? argv[1] : "";
  if (argc != 7 || password == nullptr || (mode != "batches" && mode != "bytes")) {
    fmt::print(stderr, "usage: BENCH_PASSWORD=... sink_alone batches|bytes HOST PORT DATABASE USER ROWS\n");
    return 2;
  }
  try {
    const Options options{.host = argv[2],
                          .port = static_cast<std::uint16_t>(std::stoul(argv[3])),
                          .database = argv[4],
                          .user = argv[5],
                          .password = password,
                          .rows = std::stoull(argv[6])};
    net::Loop loop;
    const double seconds = loop.run(measure(&loop, &options, mode == "bytes"));
    fmt::print("{{\"mode\": \"{}\", \"rows\": {}, \"seconds\": {:.6f}}}\n", mode, options.rows, seconds);
    return 0;
  } catch (const std::exception& error) {
    fmt::print(stderr, "sink_alone: {}\n", error.what());
    return 1;
  }
}
