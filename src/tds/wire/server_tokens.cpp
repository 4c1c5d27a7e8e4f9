#include "tds/wire/server_tokens.hpp"

#include "base/text.hpp"
#include "tds/wire/server_text.hpp"
#include "tds/wire/type_info.hpp"

namespace rowferry::tds::server {

namespace {

enum Token : std::uint8_t {
  token_return_status = 0x79,
  token_order = 0xA9,
  token_error = 0xAA,
  token_info = 0xAB,
  token_return_value = 0xAC,
  token_env_change = 0xE3,
};

enum EnvType : std::uint8_t {
  env_database = 1,
  env_language = 2,
  env_packet_size = 4,
  env_collation = 7,
  env_begin = 8,
  env_commit = 9,
  env_rollback = 10,
  env_reset = 18,
  env_routing = 20,
};

constexpr std::uint8_t status_output_parameter = 1;
constexpr std::uint8_t severity_sent_as_zero = 10;
// The token's length is 16 bits: message, server and procedure must fit together.
constexpr std::size_t message_units_max = 16'000;

void write_message(ByteBuffer& out, std::uint8_t token, const Message& message) {
  const std::size_t start = begin_token(out, token);
  out.put_le(message.number);
  out.push(message.state);
  out.push(message.severity == severity_sent_as_zero ? std::uint8_t{0} : message.severity);
  put_text_u16(out, text::cut_utf16_units(message.text, message_units_max));
  put_text_u8(out, message.server);
  put_text_u8(out, message.procedure);
  out.put_le(message.line);
  end_token(out, start);
}

void write_env_text(ByteBuffer& out, EnvType type, std::string_view now, std::string_view before) {
  const std::size_t start = begin_token(out, token_env_change);
  out.push(type);
  put_text_u8(out, now);
  put_text_u8(out, before);
  end_token(out, start);
}

void put_descriptor(ByteBuffer& out, std::uint64_t descriptor) {
  out.push(sizeof descriptor);
  out.put_le(descriptor);
}

void write_env_ended(ByteBuffer& out, EnvType type, std::uint64_t descriptor) {
  const std::size_t start = begin_token(out, token_env_change);
  out.push(type);
  out.push(0);
  put_descriptor(out, descriptor);
  end_token(out, start);
}

}  // namespace

void write_done(ByteBuffer& out, const Done& done) {
  out.push(static_cast<std::uint8_t>(done.kind));
  out.put_le(done.status);
  out.put_le(done.command);
  out.put_le(done.rows);
}

void mark_done_more(ByteBuffer& out, std::size_t at) noexcept { out.data()[at + 1] |= done_more; }

void write_error(ByteBuffer& out, const Message& message) { write_message(out, token_error, message); }
void write_info(ByteBuffer& out, const Message& message) { write_message(out, token_info, message); }

void write_env_database(ByteBuffer& out, std::string_view now, std::string_view before) {
  write_env_text(out, env_database, now, before);
}
void write_env_language(ByteBuffer& out, std::string_view now, std::string_view before) {
  write_env_text(out, env_language, now, before);
}
void write_env_packet_size(ByteBuffer& out, std::uint32_t now, std::uint32_t before) {
  write_env_text(out, env_packet_size, std::to_string(now), std::to_string(before));
}

void write_env_collation(ByteBuffer& out, const Collation& now) {
  const std::size_t start = begin_token(out, token_env_change);
  out.push(env_collation);
  out.push(5);
  out.put_le(now.info);
  out.push(now.sort_id);
  out.push(0);
  end_token(out, start);
}

void write_env_begin(ByteBuffer& out, std::uint64_t descriptor) {
  const std::size_t start = begin_token(out, token_env_change);
  out.push(env_begin);
  put_descriptor(out, descriptor);
  out.push(0);
  end_token(out, start);
}
void write_env_commit(ByteBuffer& out, std::uint64_t descriptor) { write_env_ended(out, env_commit, descriptor); }
void write_env_rollback(ByteBuffer& out, std::uint64_t descriptor) { write_env_ended(out, env_rollback, descriptor); }

void write_env_reset(ByteBuffer& out) {
  const std::size_t start = begin_token(out, token_env_change);
  out.push(env_reset);
  out.push(0);
  out.push(0);
  end_token(out, start);
}

void write_env_routing(ByteBuffer& out, std::string_view host, std::uint16_t port) {
  const std::size_t start = begin_token(out, token_env_change);
  out.push(env_routing);
  const std::size_t value_length_at = out.size();
  out.put_le(std::uint16_t{0});
  out.push(0);  // protocol: TCP
  out.put_le(port);
  put_text_u16(out, host);
  store_le(out.data() + value_length_at, static_cast<std::uint16_t>(out.size() - value_length_at - 2));
  out.put_le(std::uint16_t{0});
  end_token(out, start);
}

void write_return_status(ByteBuffer& out, std::int32_t status) {
  out.push(token_return_status);
  out.put_le(status);
}

void write_order(ByteBuffer& out, std::span<const std::uint16_t> columns) {
  const std::size_t start = begin_token(out, token_order);
  for (const std::uint16_t column : columns) out.put_le(column);
  end_token(out, start);
}

void write_return_value_head(ByteBuffer& out, std::uint16_t ordinal, std::string_view name, const TypeInfo& type) {
  out.push(token_return_value);
  out.put_le(ordinal);
  put_text_u8(out, name);
  out.push(status_output_parameter);
  out.put_le(std::uint32_t{0});  // user type
  out.put_le(std::uint16_t{0});  // flags
  put_type_info(out, type, MetaPlace::parameter);
}

}  // namespace rowferry::tds::server
