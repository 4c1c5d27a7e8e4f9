// LOGIN7 (MS-TDS 2.2.6.4), the client's side, with SQL Server authentication.
#pragma once

#include <string_view>

#include "base/bytes.hpp"

namespace rowferry::tds {

inline constexpr std::uint32_t tds_7_4 = 0x74000004;

struct Login7 {
  std::string_view client_name;
  std::string_view user;
  std::string_view password;
  std::string_view application_name;
  std::string_view server_name;
  std::string_view library_name = "rowferry";
  std::string_view database;
  std::uint32_t packet_bytes = 4096;
  std::uint32_t client_version = 0;
  std::uint32_t process_id = 0;
  bool read_only_intent = false;
  bool utf8 = true;  // asks for the UTF8_SUPPORT feature
};

enum Feature : std::uint8_t { feature_utf8_support = 0x0A };

// Appends the message. The body holds the password in a reversible form: wipe the buffer after sending.
// Throws Error(input, "login_too_long") naming the field that has more than 128 characters (UTF-16 units).
void put_login7(ByteBuffer& to, const Login7& login);

}  // namespace rowferry::tds
