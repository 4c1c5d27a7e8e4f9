#include "tds/wire/prelogin.hpp"

namespace rowferry::tds {

namespace {

enum Option : std::uint8_t {
  option_version = 0x00,
  option_encryption = 0x01,
  option_instance = 0x02,
  option_thread = 0x03,
  option_mars = 0x04,
  option_fedauth = 0x06,
  option_end = 0xFF,
};
constexpr std::size_t option_bytes = 5;

}  // namespace

void put_prelogin(ByteBuffer& to, PreloginEncryption encryption) {
  struct Entry {
    Option option;
    std::uint16_t length;
  };
  constexpr Entry entries[] = {
      {option_version, 6}, {option_encryption, 1}, {option_instance, 1}, {option_thread, 4}, {option_mars, 1}};
  auto offset = static_cast<std::uint16_t>(std::size(entries) * option_bytes + 1);
  for (const Entry& entry : entries) {
    to.push(entry.option);
    to.put_be(offset);
    to.put_be(entry.length);
    offset = static_cast<std::uint16_t>(offset + entry.length);
  }
  to.push(option_end);
  to.fill(0, 6);  // version 0.0: ours says nothing to a server
  to.push(static_cast<std::uint8_t>(encryption));
  to.push(0);     // the default instance
  to.fill(0, 4);  // thread
  to.push(0);     // no MARS
}

std::optional<PreloginReply> parse_prelogin_reply(ByteView body, std::string& why) {
  PreloginReply reply;
  ByteReader options(body);
  bool first = true;
  while (true) {
    const std::uint8_t option = options.u8();
    if (!options.failed() && option == option_end) break;
    const auto offset = options.be<std::uint16_t>();
    const auto length = options.be<std::uint16_t>();
    if (options.failed() || std::size_t{offset} + length > body.size()) {
      why = "an option of the PRELOGIN reply points outside of it";
      return std::nullopt;
    }
    if (first && option != option_version) {
      why = "the PRELOGIN reply does not begin with its version";
      return std::nullopt;
    }
    first = false;
    const ByteView data = body.subspan(offset, length);
    if (option == option_version && length >= 4) {
      reply.major = data[0];
      reply.minor = data[1];
      reply.build = load_be<std::uint16_t>(data.data() + 2);
    } else if (option == option_encryption && length >= 1) {
      // 0x20 is reserved; 0x80 speaks of client certificates, which we never offer
      reply.encryption = static_cast<PreloginEncryption>(data[0] & 0x0FU);
    } else if (option == option_fedauth && length >= 1) {
      reply.fedauth_required = data[0] == 1;
    }
  }
  if (first) {
    why = "the PRELOGIN reply is empty";
    return std::nullopt;
  }
  return reply;
}

Encryption agree(PreloginEncryption asked, PreloginEncryption answered) noexcept {
  using P = PreloginEncryption;
  switch (asked) {
    case P::off:
      return answered == P::off                             ? Encryption::login
             : answered == P::on || answered == P::required ? Encryption::all
             : answered == P::not_supported                 ? Encryption::none
                                                            : Encryption::refused;
    case P::on:
    case P::required:  // anything less would be a downgrade that somebody in between could cause
      return answered == P::on || answered == P::required ? Encryption::all : Encryption::refused;
    case P::not_supported:
      return answered == P::not_supported ? Encryption::none : Encryption::refused;
  }
  return Encryption::refused;
}

}  // namespace rowferry::tds
