// Requests as the server reads them: ALL_HEADERS (MS-TDS 2.2.5.3), SQL batch (2.2.6.7), RPC (2.2.6.6), transaction
// manager (2.2.6.9). Whole messages in, without packet headers.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/bytes.hpp"
#include "tds/wire/types.hpp"

namespace rowferry::tds::server {

// What is wrong with a request: the error that SQL Server gives. number 0 = nothing is.
struct RequestFault {
  std::int32_t number = 0;
  std::uint8_t state = 1;
  std::string text;
  explicit operator bool() const noexcept { return number != 0; }
};

struct AllHeaders {
  std::uint64_t transaction = 0;  // 0 = autocommit
  bool transaction_seen = false;
};
// Takes the headers off the front of `body`.
RequestFault parse_all_headers(ByteView& body, AllHeaders& into);

// The statement text as UTF-8. Fault 4002 for an odd number of bytes.
RequestFault parse_batch(ByteView body, AllHeaders& headers, std::string& sql);

enum RpcId : std::uint16_t {
  rpc_by_name = 0,
  rpc_cursor = 1,
  rpc_cursor_open = 2,
  rpc_cursor_close = 9,
  rpc_execute_sql = 10,
  rpc_prepare = 11,
  rpc_execute = 12,
  rpc_prepare_execute = 13,
  rpc_prepare_execute_rpc = 14,
  rpc_unprepare = 15,
};

struct RpcParameter {
  std::string name;  // with @, or empty
  bool output = false;
  bool default_value = false;
  TypeInfo type;
  std::vector<std::uint8_t> value;  // in the framing of a ROW
};

struct RpcCall {
  std::uint16_t id = rpc_by_name;
  std::string name;  // by name only; may have three parts
  std::uint16_t options = 0;
  std::vector<RpcParameter> parameters;
};
// One message may hold several calls.
RequestFault parse_rpc(ByteView body, AllHeaders& headers, std::vector<RpcCall>& calls);

enum class TransactionKind : std::uint16_t { begin = 5, commit = 7, rollback = 8, save = 9 };

struct TransactionRequest {
  TransactionKind kind = TransactionKind::begin;
  std::uint8_t isolation = 0;  // begin: 0 keep, 1 RU, 2 RC, 3 RR, 4 serializable, 5 snapshot
  std::string name;
  // After commit and rollback: begin a new one at once.
  bool begin_next = false;
  std::uint8_t next_isolation = 0;
  std::string next_name;
};
RequestFault parse_transaction(ByteView body, AllHeaders& headers, TransactionRequest& request);

}  // namespace rowferry::tds::server
