// The tokens of a server's reply (MS-TDS 2.2.7), written into a buffer without packet headers.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "base/bytes.hpp"
#include "tds/wire/types.hpp"

namespace rowferry::tds::server {

enum class DoneKind : std::uint8_t { done = 0xFD, proc = 0xFE, in_proc = 0xFF };

enum DoneStatus : std::uint16_t {
  done_final = 0x0000,
  done_more = 0x0001,
  done_error = 0x0002,
  done_count = 0x0010,
  done_attention = 0x0020,
  done_rpc_in_batch = 0x0080,
};

// CurCmd, informational only.
enum Command : std::uint16_t {
  command_none = 0x00,
  command_select = 0xC1,
  command_select_into = 0xC2,
  command_insert = 0xC3,
  command_delete = 0xC4,
  command_update = 0xC5,
  command_create_table = 0xC6,
  command_drop_table = 0xC7,
  command_set = 0xB9,
  command_exec = 0xE0,
  command_bulk = 0xF0,
  command_bulk_declared = 0xFD,  // what a real server answers to INSERT BULK
};

struct Done {
  DoneKind kind = DoneKind::done;
  std::uint16_t status = done_final;
  std::uint16_t command = command_none;
  std::uint64_t rows = 0;
};
inline constexpr std::size_t done_bytes = 13;
void write_done(ByteBuffer& out, const Done& done);
// Sets DONE_MORE in the DONE token that starts at `at`: whether more follows is often known only later.
void mark_done_more(ByteBuffer& out, std::size_t at) noexcept;

// ERROR (0xAA) and INFO (0xAB). Severity 10 travels as class 0.
struct Message {
  std::int32_t number = 0;
  std::uint8_t state = 1;
  std::uint8_t severity = 16;
  std::string text;
  std::string server;
  std::string procedure;
  std::int32_t line = 1;
};
void write_error(ByteBuffer& out, const Message& message);
void write_info(ByteBuffer& out, const Message& message);

void write_env_database(ByteBuffer& out, std::string_view now, std::string_view before);
void write_env_language(ByteBuffer& out, std::string_view now, std::string_view before);
void write_env_packet_size(ByteBuffer& out, std::uint32_t now, std::uint32_t before);
void write_env_collation(ByteBuffer& out, const Collation& now);
void write_env_begin(ByteBuffer& out, std::uint64_t descriptor);
void write_env_commit(ByteBuffer& out, std::uint64_t descriptor);
void write_env_rollback(ByteBuffer& out, std::uint64_t descriptor);
void write_env_reset(ByteBuffer& out);
void write_env_routing(ByteBuffer& out, std::string_view host, std::uint16_t port);

void write_return_status(ByteBuffer& out, std::int32_t status);
void write_order(ByteBuffer& out, std::span<const std::uint16_t> columns);  // ordinals, 1-based

// RETURNVALUE up to and including TYPE_INFO; the value follows in the framing of a ROW.
void write_return_value_head(ByteBuffer& out, std::uint16_t ordinal, std::string_view name, const TypeInfo& type);

}  // namespace rowferry::tds::server
