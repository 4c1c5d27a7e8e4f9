#include "tds/wire/server_prelogin.hpp"

#include <algorithm>
#include <span>
#include <vector>

namespace rowferry::tds::server {

namespace {

enum Option : std::uint8_t {
  option_version = 0x00,
  option_encryption = 0x01,
  option_instance = 0x02,
  option_thread = 0x03,
  option_mars = 0x04,
  option_fed_auth = 0x06,
  option_end = 0xFF,
};
constexpr std::size_t option_entry_bytes = 5;

void take_option(PreloginRequest& request, std::uint8_t id, ByteView data, bool& version_seen) {
  switch (id) {
    case option_version:
      if (data.size() >= request.version.size()) {
        std::copy_n(data.begin(), request.version.size(), request.version.begin());
        version_seen = true;
      }
      break;
    case option_encryption:
      if (!data.empty()) request.encryption = data[0];
      break;
    case option_instance: {
      std::string_view name = as_text(data);
      request.instance = name.substr(0, name.find('\0'));
      break;
    }
    case option_mars:
      request.mars = !data.empty() && data[0] == 1;
      break;
    case option_fed_auth:
      request.fed_auth_asked = true;
      break;
    default:
      break;
  }
}

}  // namespace

std::optional<PreloginRequest> parse_prelogin(ByteView body) {
  PreloginRequest request;
  bool version_seen = false;
  ByteReader reader(body);
  while (true) {
    const std::uint8_t id = reader.u8();
    if (reader.failed()) return std::nullopt;
    if (id == option_end) break;
    const std::size_t offset = reader.be<std::uint16_t>();
    const std::size_t length = reader.be<std::uint16_t>();
    if (reader.failed() || (length != 0 && offset + length > body.size())) return std::nullopt;
    take_option(request, id, length == 0 ? ByteView{} : body.subspan(offset, length), version_seen);
  }
  if (!version_seen) return std::nullopt;
  return request;
}

EncryptionAnswer answer_encryption(std::optional<std::uint8_t> client, TlsPolicy policy) noexcept {
  // 0x20 is reserved and ignored by SQL Server.
  const std::uint8_t wish = client.value_or(encrypt_not_supported) & 0x03U;
  const bool certificate = (client.value_or(0) & encrypt_client_certificate) != 0;
  if (certificate && wish == encrypt_not_supported) return {encrypt_required, Protection::none, true};
  if (policy == TlsPolicy::none) {
    const bool refuse = wish == encrypt_on || wish == encrypt_required || certificate;
    return {encrypt_not_supported, Protection::none, refuse};
  }
  const bool full = policy == TlsPolicy::full;
  switch (wish) {
    case encrypt_off:
      return full ? EncryptionAnswer{encrypt_required, Protection::full, false}
                  : EncryptionAnswer{encrypt_off, Protection::login_only, false};
    case encrypt_not_supported:
      return full ? EncryptionAnswer{encrypt_required, Protection::none, true}
                  : EncryptionAnswer{encrypt_not_supported, Protection::none, false};
    default:
      return {encrypt_on, Protection::full, false};
  }
}

void write_prelogin_reply(ByteBuffer& out, const PreloginReply& reply) {
  const std::array<std::uint8_t, 1> encryption{reply.encryption};
  const std::array<std::uint8_t, 1> instance{static_cast<std::uint8_t>(reply.instance_matches ? 0 : 1)};
  const std::array<std::uint8_t, 1> zero{0};
  struct Entry {
    std::uint8_t id;
    ByteView data;
  };
  std::vector<Entry> entries{{option_version, reply.version},
                             {option_encryption, encryption},
                             {option_instance, instance},
                             {option_thread, {}},
                             {option_mars, zero}};
  if (reply.fed_auth_asked) entries.push_back({option_fed_auth, zero});
  std::size_t offset = entries.size() * option_entry_bytes + 1;
  for (const Entry& entry : entries) {
    out.push(entry.id);
    out.put_be(static_cast<std::uint16_t>(offset));
    out.put_be(static_cast<std::uint16_t>(entry.data.size()));
    offset += entry.data.size();
  }
  out.push(option_end);
  for (const Entry& entry : entries) out.append(entry.data);
}

}  // namespace rowferry::tds::server
