// Whatever a client sends, the server's side of the wire refuses or reads it without touching foreign memory, and a
// bulk message gives the same rows however it is cut. The first byte says what the rest is.
#include <cstdlib>
#include <string>
#include <vector>

#include "tds/wire/packet.hpp"
#include "tds/wire/server_bulk.hpp"
#include "tds/wire/server_login.hpp"
#include "tds/wire/server_prelogin.hpp"
#include "tds/wire/server_request.hpp"

namespace {

using namespace rowferry;
using namespace rowferry::tds;
using namespace rowferry::tds::server;

struct Loaded {
  int error = 0;
  std::uint64_t rows = 0;
  WireHash hash;
};

// `piece` bytes at a time, as packets bring them.
Loaded load(ByteView message, std::size_t piece) {
  Loaded loaded;
  BulkScanner scanner;
  ByteBuffer kept;
  std::size_t fed = 0;
  bool bound = false;
  constexpr std::size_t rows_max = 5;
  while (true) {
    const bool ended = fed == message.size();
    std::size_t taken = 0;
    const BulkScan scan = bound ? scanner.scan_rows(kept.view(), ended, rows_max, taken)
                                : scanner.scan_columns(kept.view(), ended, taken);
    if (scan == BulkScan::fault) {
      loaded.error = scanner.fault() ? scanner.fault().number : -1;
      return loaded;
    }
    const std::size_t rows = bound ? scanner.rows().size() : 0;
    const WireHash hash = scanner.take_hash();
    loaded.hash.add(hash.low, hash.high);
    kept.consume(taken);
    if (!bound && scan == BulkScan::ended) {
      std::vector<bool> refuses_null(scanner.columns().size(), false);
      refuses_null.back() = scanner.columns().size() % 3 == 0;
      scanner.bind(refuses_null, true);
      bound = true;
    } else if (scan == BulkScan::ended) {
      loaded.rows = scanner.rows_scanned();
      return loaded;
    } else if (rows != rows_max) {
      if (ended) std::abort();  // more is asked for where no more can come
      const std::size_t n = std::min(piece, message.size() - fed);
      kept.append(message.subspan(fed, n));
      fed += n;
    }
  }
}

void bulk(ByteView input) {
  if (input.empty()) return;
  const std::size_t piece = 1 + input[0];
  const Loaded whole = load(input.subspan(1), SIZE_MAX);
  const Loaded cut = load(input.subspan(1), piece);
  if (whole.error != cut.error || whole.rows != cut.rows) std::abort();
  if (whole.error != 0) return;
  if (whole.hash.low != cut.hash.low || whole.hash.high != cut.hash.high) std::abort();
}

void packets(ByteView input) {
  PacketReader reader;
  reader.set_exact(512);
  while (!input.empty() && !reader.failed()) {
    input = input.subspan(reader.feed(input));
    if (reader.message_ended()) reader.next_message();
  }
}

void request(ByteView input, unsigned kind) {
  AllHeaders headers;
  std::string sql;
  std::vector<RpcCall> calls;
  TransactionRequest transaction;
  if (kind == 0) parse_batch(input, headers, sql);
  if (kind == 1) parse_rpc(input, headers, calls);
  if (kind == 2) parse_transaction(input, headers, transaction);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const ByteView input{data + 1, size - 1};
  switch (data[0] % 7) {
    case 0:
      bulk(input);
      break;
    case 1:
      parse_prelogin(input);
      break;
    case 2:
      parse_login7(input);
      break;
    case 3:
      packets(input);
      break;
    default:
      request(input, data[0] % 7U - 4U);
  }
  return 0;
}
