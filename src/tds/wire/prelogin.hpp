// PRELOGIN (MS-TDS 2.2.6.5), the client's side: what we ask, what the server answers, what follows for encryption.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/bytes.hpp"

namespace rowferry::tds {

enum class PreloginEncryption : std::uint8_t { off = 0x00, on = 0x01, not_supported = 0x02, required = 0x03 };

// Appends the body: VERSION, ENCRYPTION, INSTOPT, THREADID, MARS (off).
void put_prelogin(ByteBuffer& to, PreloginEncryption encryption);

struct PreloginReply {
  std::uint8_t major = 0;
  std::uint8_t minor = 0;
  std::uint16_t build = 0;
  std::optional<PreloginEncryption> encryption;
  bool fedauth_required = false;
};
// Options in any order after VERSION, unknown ones skipped. Nullopt: `why` says what is wrong.
std::optional<PreloginReply> parse_prelogin_reply(ByteView body, std::string& why);

// What is encrypted, agreed from what was asked and answered (MS-TDS 2.2.6.5, table of ENCRYPT values).
enum class Encryption : std::uint8_t {
  none,
  login,  // the first packet of LOGIN7
  all,
  refused,  // the two sides cannot agree: the client must close
};
Encryption agree(PreloginEncryption asked, PreloginEncryption answered) noexcept;

}  // namespace rowferry::tds
