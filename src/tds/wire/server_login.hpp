// LOGIN7 as the server reads it (MS-TDS 2.2.6.4) with its feature extension, and the tokens of the answer that only a
// login has: LOGINACK (2.2.7.14) and FEATUREEXTACK (2.2.7.11).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/bytes.hpp"

namespace rowferry::tds::server {

enum Feature : std::uint8_t {
  feature_session_recovery = 0x01,
  feature_fed_auth = 0x02,
  feature_column_encryption = 0x04,
  feature_utf8 = 0x0A,
  feature_json = 0x0D,
  feature_end = 0xFF,
};

struct FeatureRequest {
  std::uint8_t id = 0;
  std::vector<std::uint8_t> data;
};

inline constexpr std::uint32_t tds_version_7_1 = 0x71000001;
inline constexpr std::uint32_t tds_version_7_2 = 0x72090002;
inline constexpr std::uint32_t tds_version_7_4 = 0x74000004;
inline constexpr std::uint32_t tds_version_8_0 = 0x08000000;

struct Login7 {
  std::uint32_t tds_version = 0;
  std::uint32_t packet_size = 0;  // the client's wish; 0 = the server's default
  std::uint8_t option_flags_1 = 0;
  std::uint8_t option_flags_2 = 0;
  std::uint8_t type_flags = 0;
  std::uint8_t option_flags_3 = 0;
  std::string host, user, password, application, server, library, language, database;
  bool integrated = false;  // an SSPI blob instead of a password
  bool change_password = false;
  std::vector<FeatureRequest> features;

  bool notify_database() const noexcept { return (option_flags_1 & 0x20U) != 0; }
  bool database_fatal() const noexcept { return (option_flags_1 & 0x40U) != 0; }
  bool odbc() const noexcept { return (option_flags_2 & 0x02U) != 0; }
  bool read_only_intent() const noexcept { return (type_flags & 0x20U) != 0; }
  bool asked_for(std::uint8_t feature) const noexcept;
};

// nullopt: a length or offset that does not fit the message, or text that is not whole UTF-16 units.
std::optional<Login7> parse_login7(ByteView body);

// Password bytes as they travel (each byte nibble-swapped, then XOR 0xA5) back to UTF-16LE.
void reveal_password(std::uint8_t* bytes, std::size_t count) noexcept;

struct LoginAck {
  std::uint32_t tds_version = tds_version_7_4;
  std::string program = "Microsoft SQL Server";  // clients check the name
  std::uint8_t major = 16, minor = 0;
  std::uint16_t build = 0;
};
void write_login_ack(ByteBuffer& out, const LoginAck& ack);

struct FeatureAck {
  std::uint8_t id = 0;
  std::vector<std::uint8_t> data;
};
// Nothing is written for an empty list.
void write_feature_ext_ack(ByteBuffer& out, const std::vector<FeatureAck>& acks);

}  // namespace rowferry::tds::server
