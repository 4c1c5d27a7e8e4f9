#include "fixture.hpp"

#include <fmt/format.h>

#include "sandbox/engine/convert.hpp"

namespace rowferry::sandbox::engine::testing {

namespace {

std::string cell(const tds::TypeInfo& info, const std::uint8_t* at) {
  const auto type = from_wire(info);
  if (!type) return "?";
  const Value v = decode_value(*type, info, at);
  if (v.null) return "NULL";
  if (v.type.kind == Kind::binary || v.type.kind == Kind::varbinary || v.type.kind == Kind::image)
    return "0x" + hex_text(v.bytes);
  return narrow(text_of(v, v.type.kind == Kind::datetime || v.type.kind == Kind::smalldatetime ? 121
                           : is_money(v.type.kind)                                             ? 2
                           : is_float(v.type.kind)                                             ? 3
                                                                                               : 0));
}

}  // namespace

void Recorder::line(std::string s) { text += std::move(s) + "\n"; }
void Recorder::columns(const Columns& columns) { last_columns = columns; }
void Recorder::order(const std::vector<std::uint16_t>&) {}

void Recorder::rows(const RowTokens& rows) {
  std::size_t begin = 0;
  for (const std::uint32_t end : rows.ends) {
    row(rows.bytes.view().subspan(begin + 1, end - begin - 1));
    begin = end;
  }
}

void Recorder::row(ByteView values) {
  ++rows_given;
  raw_rows.emplace_back(as_text(values));
  std::string out;
  const std::uint8_t* at = values.data();
  for (std::size_t i = 0; i < last_columns.size(); ++i) {
    if (i != 0) out += '|';
    out += cell(last_columns[i].type, at);
    at += value_size(last_columns[i].type, framing_of(last_columns[i].type), at);
  }
  if (at != values.data() + values.size()) out += " <bytes left over>";
  line(out);
}

void Recorder::done(const Done& done) {
  if (done.error) return line("(failed)");
  if (done.count) return line(fmt::format("({} rows)", *done.count));
  if (!quiet_done) line("(done)");
}

void Recorder::message(const Message& m) {
  if (m.is_error()) return line(fmt::format("error {}, {}, {}: {}", m.number, m.severity, m.state, m.text));
  line(fmt::format("info {}: {}", m.number, m.text));
}

void Recorder::env_change(const EnvChange& change) {
  switch (change.kind) {
    case EnvChange::Kind::begin:
      return line("begin");
    case EnvChange::Kind::commit:
      return line("commit");
    case EnvChange::Kind::rollback:
      return line("rollback");
    case EnvChange::Kind::database:
      return line("database " + change.now);
    case EnvChange::Kind::language:
      return line("language " + change.now);
  }
}

void Recorder::return_status(std::int32_t status) { line(fmt::format("status {}", status)); }
void Recorder::return_value(const ReturnValue& value) {
  line(fmt::format("{}={}", value.name, cell(value.column.type, value.value.data())));
}

Client::Client(Server& server, std::string database) {
  SessionInfo info;
  info.login = "sa";
  info.database = std::move(database);
  info.utf8 = true;
  session = server.open_session(std::move(info));
  recorder.quiet_done = true;
}

std::string Client::resume() {
  for (;;) {
    const Progress progress = session->step(recorder);
    if (progress.step == Step::finished) break;
    if (progress.step == Step::full) {
      recorder.rows_given = 0;
      continue;
    }
    recorder.line(progress.step == Step::would_block ? fmt::format("blocked by {}", progress.blocker)
                                                     : std::string("waiting"));
    break;
  }
  return std::exchange(recorder.text, {});
}

std::string Client::run(std::string_view batch) {
  session->start_batch(std::string(batch));
  return resume();
}

std::string Client::call(std::string_view procedure, std::vector<Parameter> parameters) {
  session->start_call(std::string(procedure), std::move(parameters));
  return resume();
}

BulkProgress Client::append(const std::vector<std::string>& rows) {
  std::string bytes;
  std::vector<RowSpan> spans;
  for (const std::string& row : rows) {
    bytes += '\xD1';
    const auto begin = static_cast<std::uint32_t>(bytes.size());
    bytes += row;
    spans.push_back({begin, static_cast<std::uint32_t>(bytes.size())});
  }
  return session->bulk()->append({as_bytes(bytes).data(), spans.data(), spans.size(), nullptr});
}

std::string Client::finish_bulk() {
  session->finish_bulk(recorder);
  return std::exchange(recorder.text, {});
}

std::string Client::bulk(std::string_view statement, const std::vector<std::string>& rows) {
  std::string answer = run(statement);
  if (session->bulk() == nullptr) return answer;
  session->bulk()->bind(session->bulk()->declared());
  append(rows);
  return answer + finish_bulk();
}

std::string rows_of(std::string_view answer) {
  std::string out;
  while (!answer.empty()) {
    const std::size_t end = answer.find('\n');
    const std::string_view one = answer.substr(0, end);
    answer.remove_prefix(end == std::string_view::npos ? answer.size() : end + 1);
    if (one.starts_with("(")) continue;
    if (!out.empty()) out += ' ';
    out += one;
  }
  return out;
}

std::string int_value(std::int32_t v) {
  std::string out(5, '\4');
  store_le(reinterpret_cast<std::uint8_t*>(out.data() + 1), v);
  return out;
}
std::string null8() { return std::string(1, '\0'); }

std::string nvarchar_value(std::u16string_view v) {
  std::string out(2 + v.size() * 2, '\0');
  store_le(reinterpret_cast<std::uint8_t*>(out.data()), static_cast<std::uint16_t>(v.size() * 2));
  std::memcpy(out.data() + 2, v.data(), v.size() * 2);
  return out;
}
std::string nvarchar_null() { return "\xFF\xFF"; }

std::string decimal_value(std::int64_t unscaled, int precision) {
  Value v = Value::of_null(decimal_type(precision, 0));
  v.null = false;
  v.number = unscaled;
  ByteBuffer out;
  encode_value(v, stored_form(v.type), out);
  return std::string(as_text(out.view()));
}

Parameter text_parameter(std::string name, std::u16string_view v) {
  Parameter p;
  p.name = std::move(name);
  p.type = stored_form(nvarchar_type(4000, {}));
  const std::string bytes = nvarchar_value(v);
  p.value.assign(bytes.begin(), bytes.end());
  return p;
}

Parameter int_parameter(std::string name, std::int32_t v, bool output) {
  Parameter p;
  p.name = std::move(name);
  p.output = output;
  p.type = stored_form(int_type());
  const std::string bytes = int_value(v);
  p.value.assign(bytes.begin(), bytes.end());
  return p;
}

}  // namespace rowferry::sandbox::engine::testing
