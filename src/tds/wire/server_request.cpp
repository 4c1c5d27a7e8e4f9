#include "tds/wire/server_request.hpp"

#include <fmt/format.h>

#include "base/text.hpp"
#include "tds/wire/server_values.hpp"
#include "tds/wire/type_info.hpp"

namespace rowferry::tds::server {

namespace {

enum Header : std::uint16_t {
  header_query_notification = 1,
  header_transaction = 2,
  header_trace = 3,
};
constexpr std::size_t transaction_header_bytes = 12;
constexpr std::uint8_t rpc_batch_separator = 0xFF;
constexpr std::uint8_t rpc_batch_separator_7_1 = 0x80;
constexpr std::uint8_t rpc_no_execute = 0xFE;
constexpr std::uint16_t rpc_id_follows = 0xFFFF;
constexpr std::uint8_t parameter_by_reference = 0x01;
constexpr std::uint8_t parameter_default = 0x02;
constexpr std::size_t parameters_max = 2100;
constexpr std::uint8_t transaction_begin_next = 0x01;

RequestFault stream_fault() {
  return {4002, 1,
          "The incoming tabular data stream (TDS) protocol stream is incorrect. The stream ended unexpectedly."};
}
RequestFault header_fault(std::uint8_t state) {
  return {4009, state,
          "The incoming tabular data stream (TDS) protocol stream is incorrect. The TDS headers contained errors."};
}

RequestFault parameter_fault(const RpcCall& call, const RpcParameter& parameter, std::string_view why) {
  return {
      8009, 2,
      fmt::format("The incoming tabular data stream (TDS) remote procedure call (RPC) protocol stream is incorrect. "
                  "Parameter {} (\"{}\"): {}",
                  call.parameters.size() + 1, parameter.name, why)};
}

std::string_view explain(ValueFault fault) {
  switch (fault) {
    case ValueFault::length:
      return "Data type has an invalid data length or metadata length.";
    case ValueFault::odd_length:
      return "Unicode data is odd byte size. Should be even byte size.";
    case ValueFault::chunk_length:
    case ValueFault::short_chunks:
      return "Invalid length of a chunk of large data.";
    case ValueFault::text_pointer:
      return "Invalid text pointer.";
    default:
      return "The supplied value is not a valid instance of its data type. Check the source data for invalid values.";
  }
}

// The value's bytes, in the framing in which a ROW carries it.
RequestFault take_value(ByteReader& reader, const RpcCall& call, RpcParameter& parameter) {
  const ValueRule rule = make_value_rule(parameter.type);
  if (rule.check == nullptr) {
    return parameter_fault(call, parameter, "Data type is not supported by this server.");
  }
  ValueWalk walk;
  const std::uint8_t* const from = reader.position();
  const ValueEnd end = rule.check(rule, from, from + reader.left(), walk);
  if (end.fault == ValueFault::need_more) return stream_fault();
  if (end.fault != ValueFault::none) return parameter_fault(call, parameter, explain(end.fault));
  const ByteView bytes = reader.bytes(static_cast<std::size_t>(end.next - from));
  parameter.value.assign(bytes.begin(), bytes.end());
  return {};
}

RequestFault take_parameter(ByteReader& reader, const RpcCall& call, RpcParameter& parameter) {
  parameter.name = read_b_varchar(reader);
  const std::uint8_t status = reader.u8();
  if (reader.failed()) return stream_fault();
  parameter.output = (status & parameter_by_reference) != 0;
  parameter.default_value = (status & parameter_default) != 0;
  std::string why;
  switch (read_type_info(reader, parameter.type, MetaPlace::parameter, why)) {
    case Parsed::ok:
      return take_value(reader, call, parameter);
    case Parsed::need_more:
      return stream_fault();
    case Parsed::malformed:
      return parameter_fault(call, parameter, why);
  }
  return stream_fault();
}

bool separates(std::uint8_t byte) {
  return byte == rpc_batch_separator || byte == rpc_batch_separator_7_1 || byte == rpc_no_execute;
}

RequestFault take_call(ByteReader& reader, RpcCall& call) {
  const std::uint16_t units = reader.u16();
  if (units == rpc_id_follows) {
    call.id = reader.u16();
  } else {
    call.name = text::to_utf8(reader.bytes(std::size_t{2} * units));
  }
  call.options = reader.u16();
  if (reader.failed()) return stream_fault();
  while (reader.left() != 0 && !separates(*reader.position())) {
    if (call.parameters.size() == parameters_max) {
      return {8003, 1,
              "The incoming request has too many parameters. The server supports a maximum of 2100 parameters. "
              "Reduce the number of parameters and resend the request."};
    }
    RpcParameter parameter;
    if (RequestFault fault = take_parameter(reader, call, parameter)) return fault;
    call.parameters.push_back(std::move(parameter));
  }
  return {};
}

std::string take_name(ByteReader& reader) { return text::to_utf8(reader.bytes(reader.u8())); }

}  // namespace

RequestFault parse_all_headers(ByteView& body, AllHeaders& into) {
  if (body.size() < 4) return header_fault(1);
  const std::size_t total = load_le<std::uint32_t>(body.data());
  if (total < 4 || total > body.size()) return header_fault(2);
  ByteReader reader(body.subspan(4, total - 4));
  while (reader.left() != 0) {
    const std::size_t length = reader.u32();
    const std::uint16_t type = reader.u16();
    if (reader.failed() || length < 6 || length - 6 > reader.left()) return header_fault(3);
    const ByteView data = reader.bytes(length - 6);
    if (type == header_transaction) {
      if (data.size() != transaction_header_bytes || into.transaction_seen) {
        return {4011, 1,
                "The incoming tabular data stream (TDS) protocol stream is incorrect. The multiple active result sets "
                "(MARS) TDS header contained errors."};
      }
      into.transaction = load_le<std::uint64_t>(data.data());
      into.transaction_seen = true;
    } else if (type != header_query_notification && type != header_trace) {
      return header_fault(4);
    }
  }
  if (!into.transaction_seen) {
    return {4013, 1,
            "The incoming tabular data stream (TDS) protocol stream is incorrect. The multiple active result sets "
            "(MARS) TDS header was missing."};
  }
  body = body.subspan(total);
  return {};
}

RequestFault parse_batch(ByteView body, AllHeaders& headers, std::string& sql) {
  if (RequestFault fault = parse_all_headers(body, headers)) return fault;
  if (body.size() % 2 != 0) return stream_fault();
  sql = text::to_utf8(body);
  return {};
}

RequestFault parse_rpc(ByteView body, AllHeaders& headers, std::vector<RpcCall>& calls) {
  if (RequestFault fault = parse_all_headers(body, headers)) return fault;
  ByteReader reader(body);
  while (reader.left() != 0) {
    RpcCall call;
    if (RequestFault fault = take_call(reader, call)) return fault;
    calls.push_back(std::move(call));
    if (reader.left() != 0) reader.skip(1);  // the separator
  }
  if (calls.empty()) return stream_fault();
  return {};
}

RequestFault parse_transaction(ByteView body, AllHeaders& headers, TransactionRequest& request) {
  if (RequestFault fault = parse_all_headers(body, headers)) return fault;
  ByteReader reader(body);
  const std::uint16_t kind = reader.u16();
  request.kind = static_cast<TransactionKind>(kind);
  switch (request.kind) {
    case TransactionKind::begin:
      request.isolation = reader.u8();
      request.name = take_name(reader);
      break;
    case TransactionKind::commit:
    case TransactionKind::rollback:
      request.name = take_name(reader);
      request.begin_next = (reader.u8() & transaction_begin_next) != 0;
      if (request.begin_next) {
        request.next_isolation = reader.u8();
        request.next_name = take_name(reader);
      }
      break;
    case TransactionKind::save:
      request.name = take_name(reader);
      break;
    default:
      return {4016, 1, fmt::format("Transaction manager request {} is not supported by this server.", kind)};
  }
  if (reader.failed()) return stream_fault();
  return {};
}

}  // namespace rowferry::tds::server
