#include "ferry.hpp"

#include <algorithm>

#include "postgres/dialect.hpp"

namespace rowferry::postgres::test {

async::Task<void> LoaderSink::put(rows::BatchPtr batch) {
  rows::BatchPtr converted = converter_.convert(std::move(batch));
  hasher_.add(*converted, hash);
  rows += converted->rows();
  co_await loader_.write(std::move(converted));
}

system::Slice slice_of(int index) {
  system::Slice slice;
  slice.index = index;
  return slice;
}

system::Slice slice_of_value(int index, const std::string& column, const std::string& value) {
  system::Slice slice = slice_of(index);
  slice.bounds.emplace();
  slice.bounds->column = column;
  slice.bounds->value = value;
  return slice;
}

Ferry::Ferry(Live& the_live, std::string source_table, std::string target_table, std::string transfer_id)
    : live(the_live), target(live.connection->make_target()), source_table_(std::move(source_table)) {
  request.table = live.table(target_table);
  request.load.lock_timeout_ms = 1000;
  to_load.transfer_id = std::move(transfer_id);
}

Ferry::~Ferry() {
  if (loading) live.run(loading->end(false));
}

void Ferry::make_columns() {
  system::SourceRequest what;
  what.table = live.table(source_table_);
  const system::SourceTable from = live.describe(what);
  const system::TargetTable to = live.run(target->describe(request));
  to_load.columns.clear();
  to_load.primary_key = from.primary_key;
  for (const system::SourceColumn& column : from.columns) {
    system::ColumnPlan plan;
    plan.source = plan.target = column.name;
    plan.source_native = column.native;
    plan.source_nullable = column.nullable;
    plan.read_type = column.type;
    plan.read_as_text = column.text_only;
    if (to.exists) {
      const auto found = std::ranges::find(to.columns, column.name, &system::TargetColumn::name);
      if (found == to.columns.end() || !found->insertable) continue;
      plan.write_type = found->any_decimal && column.type.id == rows::TypeId::decimal ? column.type : found->type;
      plan.target_native = found->native;
      plan.target_nullable = found->nullable;
      plan.compared = found->compared;
      plan.identity = found->identity;
    } else {
      const system::NaturalType natural = target->natural_type(column, "", false);
      plan.write_type = natural.type;
      plan.target_native = natural.native;
      plan.compared = natural.compared;
    }
    to_load.columns.push_back(std::move(plan));
  }
}

const system::TargetPlan& Ferry::plan() {
  make_columns();
  to_load.plan = live.run(target->plan(request, to_load.columns, to_load.primary_key));
  return to_load.plan;
}

void Ferry::begin(int attempt) {
  if (to_load.columns.empty()) plan();
  to_load.what = request;
  to_load.attempt = attempt;
  loading = live.run(target->begin(to_load));
}

rows::ContentHash Ferry::write(system::Loader& loader, const std::string& where) {
  system::ReadRequest read;
  read.what.table = live.table(source_table_);
  read.what.where = where;
  read.columns = to_load.columns;
  rows::Schema from;
  rows::Schema to;
  std::vector<bool> compared;
  for (const system::ColumnPlan& plan : to_load.columns) {
    from.fields.push_back({plan.source, plan.read_type, true});
    to.fields.push_back({plan.target, plan.write_type, true});
    compared.push_back(plan.compared);
  }
  rows::Converter converter(std::make_shared<const rows::Schema>(std::move(from)),
                            std::make_shared<const rows::Schema>(to), std::vector<rows::LossPolicy>(to.size()));
  rows::RowHasher hasher(to, std::move(compared));
  LoaderSink sink(loader, converter, hasher);
  const auto reading = live.begin(read);
  const auto reader = live.run(reading->open_reader(0));
  std::exception_ptr error;
  try {
    for (const system::Slice& slice : reading->slices().slices) live.run(reader->read(slice, sink));
  } catch (...) {
    error = std::current_exception();
  }
  live.run(reader->close());
  live.run(reading->end());
  if (error) std::rethrow_exception(error);
  sink.hash.rows = sink.rows;
  return sink.hash;
}

system::SliceCommit Ferry::load(system::Loader& loader, const system::Slice& slice, const std::string& where) {
  system::SliceCommit commit;
  commit.already_there = live.run(loader.begin_slice(slice));
  slices.push_back(slice);
  if (commit.already_there) return commit;
  const rows::ContentHash hash = write(loader, where);
  commit = live.run(loader.commit_slice(hash.rows, hash));
  loaded.add(hash);
  return commit;
}

system::FinalizeResult Ferry::finalize() {
  return live.run(loading->finalize({.rows = loaded.rows, .hash = loaded, .slices = slices}));
}

void Ferry::load_all() {
  const auto loader = live.run(loading->open_loader(0));
  load(*loader, slice_of(0));
  live.run(loader->close());
}

system::FinalizeResult Ferry::whole() {
  begin();
  const auto loader = live.run(loading->open_loader(0));
  load(*loader, slice_of(0));
  const bool direct = to_load.plan.finalizer == system::Finalizer::direct;
  if (!direct) live.run(loader->close());
  const system::FinalizeResult result = finalize();
  if (direct) live.run(loader->close());
  live.run(loading->after_steps());
  return result;
}

void Ferry::end(bool keep_staging) {
  live.run(loading->end(keep_staging));
  loading.reset();
}

}  // namespace rowferry::postgres::test
