#include "tds/wire/login7.hpp"

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/text.hpp"

namespace rowferry::tds {

namespace {

constexpr std::size_t fixed_bytes_74 = 94;  // data begins here, even when there is none
constexpr std::size_t units_max = 128;
constexpr std::size_t login_bytes_max = 16 * 1024;

// OptionFlags1: USE_DB and database must succeed, language change notified; byte order, charset, floats are x86's.
constexpr std::uint8_t flags1_use_db = 0x20;
constexpr std::uint8_t flags1_database_fatal = 0x40;
constexpr std::uint8_t flags1_set_language = 0x80;
// OptionFlags2: initial language must succeed; ODBC: ANSI defaults on, TEXTSIZE without limit.
constexpr std::uint8_t flags2_language_fatal = 0x01;
constexpr std::uint8_t flags2_odbc = 0x02;
constexpr std::uint8_t type_read_only_intent = 0x20;
constexpr std::uint8_t flags3_extension = 0x10;

class Writer {
 public:
  explicit Writer(ByteBuffer& to) : to_(to), begin_(to.size()) { to.fill(0, fixed_bytes_74); }

  std::uint8_t* at(std::size_t offset) { return to_.data() + begin_ + offset; }
  std::size_t size() const { return to_.size() - begin_; }

  // Where the field's text stands and how long it is.
  void text(std::size_t field, std::string_view utf8, const char* name) {
    const std::size_t offset = size();
    text::append_utf16le(to_, utf8);
    const std::size_t units = (size() - offset) / 2;
    if (units > units_max) {
      throw Error(Category::input, "login_too_long",
                  fmt::format("{} has {} characters; a login takes {}", name, units, units_max));
    }
    place(field, offset, units);
  }
  void place(std::size_t field, std::size_t offset, std::size_t count) {
    store_le(at(field), static_cast<std::uint16_t>(offset));
    store_le(at(field + 2), static_cast<std::uint16_t>(count));
  }

 private:
  ByteBuffer& to_;
  std::size_t begin_;
};

// Swaps the halves of each byte and flips 0xA5: hides nothing from anybody who looks.
void obfuscate(std::uint8_t* at, const std::uint8_t* end) {
  for (; at != end; ++at) *at = static_cast<std::uint8_t>(((*at << 4U) | (*at >> 4U)) ^ 0xA5U);
}

void put_features(ByteBuffer& to, const Login7& login) {
  if (login.utf8) {
    to.push(feature_utf8_support);
    to.put_le<std::uint32_t>(1);
    to.push(1);
  }
  to.push(0xFF);
}

void put_fixed(Writer& writer, const Login7& login) {
  store_le(writer.at(4), tds_7_4);
  store_le(writer.at(8), login.packet_bytes);
  store_le(writer.at(12), login.client_version);
  store_le(writer.at(16), login.process_id);
  *writer.at(24) = flags1_use_db | flags1_database_fatal | flags1_set_language;
  *writer.at(25) = flags2_language_fatal | flags2_odbc;
  *writer.at(26) = login.read_only_intent ? type_read_only_intent : 0;
  *writer.at(27) = flags3_extension;
}

}  // namespace

void put_login7(ByteBuffer& to, const Login7& login) {
  to.reserve(to.size() + login_bytes_max);  // a growing buffer would leave copies of the password behind
  Writer writer(to);
  put_fixed(writer, login);
  writer.text(36, login.client_name, "the client's name");
  writer.text(40, login.user, "the user");
  const std::size_t password_at = writer.size();
  writer.text(44, login.password, "the password");
  obfuscate(writer.at(password_at), writer.at(writer.size()));
  writer.text(48, login.application_name, "application_name");
  writer.text(52, login.server_name, "the server's name");
  // The extension field points at four bytes that hold the offset of the feature list.
  const std::size_t extension_at = writer.size();
  writer.place(56, extension_at, sizeof(std::uint32_t));
  to.fill(0, sizeof(std::uint32_t));
  writer.text(60, login.library_name, "the library's name");
  writer.text(64, "", "language");
  writer.text(68, login.database, "the database");
  // SSPI, attached file, new password: none, but their offsets must point into the message
  for (const std::size_t field : {std::size_t{78}, std::size_t{82}, std::size_t{86}})
    writer.place(field, writer.size(), 0);
  store_le(writer.at(extension_at), static_cast<std::uint32_t>(writer.size()));
  put_features(to, login);
  store_le(writer.at(0), static_cast<std::uint32_t>(writer.size()));
}

}  // namespace rowferry::tds
