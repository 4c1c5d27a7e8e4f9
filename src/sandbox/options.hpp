// What a sandbox server is set up with.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/limits.hpp"
#include "sandbox/faults.hpp"

namespace rowferry::sandbox {

enum class Encrypt : std::uint8_t {
  off,    // no TLS at all
  login,  // the LOGIN7 packet only, unless the client asks for more
  on,     // everything; clients without TLS are refused
};

struct Options {
  std::string host = "127.0.0.1";
  std::uint16_t port = 0;  // 0: any free one
  bool discard = false;    // rows of bulk loads are validated, counted and hashed, not kept
  std::vector<std::string> databases;
  std::string user = "sa";
  std::optional<std::string> password;  // none: every user and password is let in
  Encrypt encrypt = Encrypt::off;
  std::string tls_cert;  // PEM files; empty: a self-signed certificate is made in memory
  std::string tls_key;
  std::size_t connections_max = limits::sandbox_connections_max;
  std::shared_ptr<FaultPlan> faults;  // none: a well-behaved server
};

// "off", "login", "on"; nullopt for anything else.
std::optional<Encrypt> parse_encrypt(std::string_view text) noexcept;

}  // namespace rowferry::sandbox
