// PRELOGIN as the server sees it (MS-TDS 2.2.6.5, 2.2.6.4): the request's options, the reply, the encryption matrix.
//
// Tolerant where real clients differ: options in any order, unknown ones ignored, only VERSION is needed.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>

#include "base/bytes.hpp"

namespace rowferry::tds::server {

// Values of the ENCRYPTION option; 0x80 added = the client offers a certificate.
enum Encryption : std::uint8_t {
  encrypt_off = 0x00,  // available, used for the login only
  encrypt_on = 0x01,
  encrypt_not_supported = 0x02,
  encrypt_required = 0x03,
  encrypt_client_certificate = 0x80,
};

struct PreloginRequest {
  std::array<std::uint8_t, 6> version{};   // major, minor, build (BE), sub-build
  std::optional<std::uint8_t> encryption;  // absent: the client does not encrypt
  std::string instance;                    // without the closing NUL
  bool mars = false;
  bool fed_auth_asked = false;  // FEDAUTHREQUIRED was there
};

// nullopt: an option lies outside the body, no terminator, or VERSION is missing; the server closes then.
std::optional<PreloginRequest> parse_prelogin(ByteView body);

// What the server is set up for.
enum class TlsPolicy : std::uint8_t { none, login, full };
// What the connection then does.
enum class Protection : std::uint8_t { none, login_only, full };

struct EncryptionAnswer {
  std::uint8_t reply = encrypt_not_supported;
  Protection protection = Protection::none;
  bool close = false;  // after the reply
};
EncryptionAnswer answer_encryption(std::optional<std::uint8_t> client, TlsPolicy policy) noexcept;

struct PreloginReply {
  std::array<std::uint8_t, 6> version{};
  std::uint8_t encryption = encrypt_not_supported;
  bool instance_matches = true;
  bool fed_auth_asked = false;
};
// The body of the reply, which travels in a packet of type 0x04. MARS is always there (00) and THREADID empty: FreeTDS
// falls back to TDS 7.1 when MARS is missing.
void write_prelogin_reply(ByteBuffer& out, const PreloginReply& reply);

}  // namespace rowferry::tds::server
