#include "bench.hpp"

#include <fmt/format.h>

namespace rowferry::test {

using async::Task;

namespace {

mssql::Options options_for(const sandbox::SandboxServer& server) {
  mssql::Options options;
  options.name = "dw";
  options.host = "127.0.0.1";
  options.port = server.port();
  options.database = "dw";
  options.user = "sa";
  options.password = [] { return Secret("secret"); };
  options.encrypt = tds::Encrypt::off;
  options.writable = true;
  return options;
}

std::string value_of(const tds::Value& value) {
  if (value.is_null()) return "NULL";
  if (const auto* integer = std::get_if<std::int64_t>(&value.value)) return fmt::format("{}", *integer);
  if (const auto* number = std::get_if<double>(&value.value)) return fmt::format("{}", *number);
  if (const auto* text = std::get_if<std::string>(&value.value)) return *text;
  return "bytes";
}

Task<void> converse(net::Loop* loop, sandbox::Options options, Scenario scenario, Notes* notes) {
  options.databases = {"dw"};
  options.password = "secret";
  if (!options.faults) options.faults = std::make_shared<sandbox::FaultPlan>();
  const std::shared_ptr<sandbox::FaultPlan> faults = options.faults;
  sandbox::SandboxServer server(*loop, std::move(options));
  Bench bench{*loop, server, faults, mssql::make_connection(*loop, options_for(server)), nullptr, {}};
  std::exception_ptr error;
  try {
    tds::LoginOptions login;
    login.host = "127.0.0.1";
    login.port = server.port();
    login.database = "dw";
    login.user = "sa";
    login.password = [] { return Secret("secret"); };
    login.encrypt = tds::Encrypt::off;
    bench.admin = co_await tds::Session::connect(*loop, std::move(login));
    co_await net::with_deadline(*loop, std::chrono::milliseconds(30'000), "the scenario", scenario(&bench));
  } catch (const Error& e) {
    bench.note(fmt::format("failed: {}: {}", e.code(), e.detail()));
  }
  bench.admin.reset();
  co_await server.stop();
  *notes = std::move(bench.notes);
}

system::SourceColumn source_column(const std::string& name, const std::string& as) {
  system::SourceColumn column;
  column.name = name;
  if (as == "note") {
    column.type = rows::Type::text(40);
  } else if (as == "amount") {
    column.type = rows::Type::decimal(10, 2);
  } else {
    column.type = rows::Type::of(rows::TypeId::int32);
    column.nullable = false;
    column.key_position = 1;
  }
  return column;
}

const std::vector<std::string> meanings{"id", "note", "amount"};

system::ColumnPlan column_plan(const Load& load, const Job& job, std::size_t i) {
  const system::SourceColumn from = source_column(job.columns[i], meanings[i]);
  const auto wanted = job.types.find(job.columns[i]);
  system::ColumnPlan plan;
  plan.source = plan.target = job.columns[i];
  plan.read_type = from.type;
  plan.source_nullable = from.nullable;
  for (const system::TargetColumn& column : load.described.columns) {
    if (column.name != plan.target) continue;
    plan.write_type = column.type;
    plan.target_native = column.native;
    plan.target_nullable = column.nullable;
    plan.identity = column.identity;
  }
  if (plan.target_native.empty() || wanted != job.types.end()) {
    const bool in_key = from.key_position > 0;
    const system::NaturalType natural =
        load.target->natural_type(from, wanted == job.types.end() ? "" : wanted->second, in_key);
    plan.write_type = natural.type;
    plan.target_native = natural.native;
    if (!load.described.exists) plan.target_nullable = from.nullable && !in_key;
  }
  return plan;
}

}  // namespace

Task<std::string> Bench::rows(std::string sql) {
  const tds::QueryResult result = co_await admin->query(std::move(sql));
  std::string out;
  if (result.sets.empty()) co_return "no result";
  for (const std::vector<tds::Value>& row : result.sets.front().rows) {
    if (!out.empty()) out += ' ';
    for (std::size_t i = 0; i < row.size(); ++i) out += (i == 0 ? "" : ",") + value_of(row[i]);
  }
  co_return out;
}

Task<void> Bench::run(std::string sql) { co_await admin->execute(std::move(sql)); }

Task<Load> planned(Bench* bench, Job job) {
  Load load;
  load.target = bench->connection->make_target();
  load.request.table = job.table;
  load.request.mode = job.mode;
  load.request.create = job.create;
  load.request.replace_dependants = job.replace_dependants;
  load.request.workers = job.workers;
  load.request.verify = job.verify;
  load.request.load = job.load;
  load.described = co_await load.target->describe(load.request);
  for (std::size_t i = 0; i < job.columns.size(); ++i) load.columns.push_back(column_plan(load, job, i));
  load.plan = co_await load.target->plan(load.request, load.columns, job.key);
  co_return load;
}

Task<void> begin(Load* load, Job job) {
  system::LoadRequest request;
  request.transfer_id = job.id;
  request.attempt = job.attempt;
  request.what = load->request;
  request.plan = load->plan;
  request.columns = load->columns;
  request.primary_key = job.key;
  load->loading = co_await load->target->begin(request);
}

rows::BatchPtr batch_of(const Load& load, const std::vector<Row>& rows) {
  rows::Schema read;
  rows::Schema write;
  for (const system::ColumnPlan& column : load.columns) {
    read.fields.push_back({column.target, column.read_type, column.source_nullable});
    write.fields.push_back({column.target, column.write_type, column.target_nullable});
  }
  const auto schema = std::make_shared<const rows::Schema>(read);
  auto batch = rows::BatchPtr(new rows::Batch(schema), rows::BatchReturn{});
  for (std::size_t row = 0; row < rows.size(); ++row) {
    batch->buffer(0).append<std::int32_t>(row, rows[row].id);
    if (load.columns.size() > 1) {
      if (rows[row].note) {
        batch->buffer(1).append_bytes(row, as_bytes(*rows[row].note));
      } else {
        batch->buffer(1).append_null(rows::TypeId::text, row);
      }
    }
    if (load.columns.size() < 3) continue;
    if (rows[row].amount) {
      batch->buffer(2).append<rows::Int128>(row, *rows[row].amount);
    } else {
      batch->buffer(2).append_null(rows::TypeId::decimal, row);
    }
  }
  batch->seal(rows.size());
  rows::Converter converter(schema, std::make_shared<const rows::Schema>(write),
                            std::vector<rows::LossPolicy>(read.size()));
  return converter.convert(std::move(batch));
}

Task<bool> load_slice(Load* load, system::Loader* loader, int index, std::vector<Row> rows,
                      system::SliceCommit* commit) {
  system::Slice slice;
  slice.index = index;
  const bool there = co_await loader->begin_slice(slice);
  if (there) co_return false;
  rows::ContentHash hash;
  if (!rows.empty()) {
    rows::BatchPtr batch = batch_of(*load, rows);
    rows::RowHasher(batch->schema(), {}).add(*batch, hash);
    co_await loader->write(std::move(batch));
  }
  *commit = co_await loader->commit_slice(rows.size(), hash);
  load->hash.add(hash);
  co_return true;
}

Task<std::string> transfer(Bench* bench, Job job) {
  Load load = co_await planned(bench, job);
  co_await begin(&load, job);
  std::exception_ptr error;
  std::string line{system::to_string(load.plan.finalizer)};
  std::unique_ptr<system::Loader> loader;
  try {
    loader = co_await load.loading->open_loader(0);
    for (std::size_t i = 0; i < job.slices.size(); ++i) {
      system::SliceCommit commit;
      co_await load_slice(&load, loader.get(), static_cast<int>(i), job.slices[i], &commit);
      if (commit.acknowledged != job.slices[i].size()) line += fmt::format(", acknowledged {}", commit.acknowledged);
    }
    if (load.plan.finalizer != system::Finalizer::direct) {
      co_await loader->close();
      const std::uint64_t staged = co_await load.loading->staged_rows();
      std::string why;
      const std::optional<rows::ContentHash> hash = co_await load.loading->staged_hash(why);
      line += fmt::format(", staged {}, hash {}", staged, !hash ? why : (*hash == load.hash ? "same" : "other"));
    }
    const system::FinalizeResult result = co_await load.loading->finalize({load.hash.rows, load.hash, {}});
    line += fmt::format(", rows {}", result.rows);
    if (result.target_total) line += fmt::format(", total {}", *result.target_total);
    co_await loader->close();
    for (const system::Notice& notice : co_await load.loading->after_steps()) line += ", " + notice.text;
  } catch (...) {
    error = std::current_exception();
  }
  if (loader) co_await loader->close();
  for (const system::Notice& notice : co_await load.loading->end(false)) line += ", " + notice.text;
  if (error) std::rethrow_exception(error);
  co_return line;
}

Notes on_sandbox(Scenario scenario, sandbox::Options options) {
  net::Loop loop;
  Notes notes;
  loop.run(converse(&loop, std::move(options), scenario, &notes));
  return notes;
}

std::string joined(const Notes& notes) {
  std::string out;
  for (const std::string& note : notes) out += "  " + note + "\n";
  return out;
}

}  // namespace rowferry::test
