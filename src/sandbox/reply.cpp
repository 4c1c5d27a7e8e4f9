#include "sandbox/reply.hpp"

#include "tds/wire/type_info.hpp"

namespace rowferry::sandbox {

namespace server = tds::server;

namespace {

server::DoneKind done_kind(engine::Done::Kind kind) {
  switch (kind) {
    case engine::Done::Kind::statement:
      return server::DoneKind::done;
    case engine::Done::Kind::in_procedure:
      return server::DoneKind::in_proc;
    case engine::Done::Kind::procedure:
      return server::DoneKind::proc;
  }
  return server::DoneKind::done;
}

}  // namespace

void Reply::begin() {
  packets_.begin(tds::PacketType::tabular);
  held_.reset();
  any_done_ = false;
}

void Reply::send_scratch() {
  packets_.write(scratch_.view());
  scratch_.clear();
}

void Reply::release_done() {
  if (!held_) return;
  held_->status |= server::done_more;
  server::write_done(scratch_, *held_);
  held_.reset();
  any_done_ = true;
}

void Reply::finish() {
  if (held_ || !any_done_) {
    server::write_done(scratch_, held_.value_or(server::Done{}));
    held_.reset();
  }
  send_scratch();
  packets_.finish();
}

void Reply::columns(const engine::Columns& columns) {
  release_done();
  tds::put_columns(scratch_, columns, tds::MetaPlace::result);
  send_scratch();
}

void Reply::order(const std::vector<std::uint16_t>& columns) {
  release_done();
  server::write_order(scratch_, columns);
  send_scratch();
}

void Reply::rows(const engine::RowTokens& rows) {
  if (held_) {
    release_done();
    send_scratch();
  }
  packets_.write(rows.bytes.view());
}

void Reply::done(const engine::Done& done) {
  release_done();
  send_scratch();
  server::Done token{.kind = done_kind(done.kind), .status = 0, .command = done.current_command, .rows = 0};
  if (done.error) token.status |= server::done_error;
  if (done.count) {
    token.status |= server::done_count;
    token.rows = *done.count;
  }
  held_ = token;
}

void Reply::message(const engine::Message& message) {
  release_done();
  const server::Message token{.number = message.number,
                              .state = static_cast<std::uint8_t>(message.state),
                              .severity = static_cast<std::uint8_t>(message.severity),
                              .text = message.text,
                              .server = server_,
                              .procedure = message.procedure,
                              .line = message.line};
  if (message.is_error()) {
    server::write_error(scratch_, token);
  } else {
    server::write_info(scratch_, token);
  }
  send_scratch();
}

void Reply::env_change(const engine::EnvChange& change) {
  release_done();
  using Kind = engine::EnvChange::Kind;
  switch (change.kind) {
    case Kind::database:
      server::write_env_database(scratch_, change.now, change.before);
      break;
    case Kind::language:
      server::write_env_language(scratch_, change.now, change.before);
      break;
    case Kind::begin:
      server::write_env_begin(scratch_, change.descriptor);
      break;
    case Kind::commit:
      server::write_env_commit(scratch_, change.descriptor);
      break;
    case Kind::rollback:
      server::write_env_rollback(scratch_, change.descriptor);
      break;
  }
  send_scratch();
}

void Reply::return_status(std::int32_t status) {
  release_done();
  server::write_return_status(scratch_, status);
  send_scratch();
}

void Reply::return_value(const engine::ReturnValue& value) {
  release_done();
  server::write_return_value_head(scratch_, value.ordinal, value.name, value.column.type);
  scratch_.append(value.value);
  send_scratch();
}

void Reply::refuse(std::int32_t number, std::uint8_t severity, std::uint8_t state, std::string_view text) {
  message(
      {.number = number, .state = state, .severity = severity, .text = std::string(text), .procedure = {}, .line = 1});
  done({.kind = engine::Done::Kind::statement, .error = true, .count = {}, .current_command = 0});
}

void Reply::attention() {
  release_done();
  held_ = server::Done{.kind = server::DoneKind::done, .status = server::done_attention, .command = 0, .rows = 0};
}

void Reply::next_call() {
  if (held_) held_->status |= server::done_rpc_in_batch;
}

void Reply::reset_acknowledged() {
  server::write_env_reset(scratch_);
  send_scratch();
}

}  // namespace rowferry::sandbox
