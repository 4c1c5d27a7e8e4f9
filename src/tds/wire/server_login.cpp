#include "tds/wire/server_login.hpp"

#include <algorithm>

#include "base/text.hpp"
#include "tds/wire/server_text.hpp"

namespace rowferry::tds::server {

namespace {

constexpr std::size_t fixed_bytes = 94;
constexpr std::size_t fixed_bytes_7_1 = 86;  // without ChangePassword and the long SSPI length
constexpr std::uint8_t flag_extension = 0x10;
constexpr std::uint8_t flag_integrated = 0x80;

struct Field {
  std::size_t offset = 0;
  std::size_t count = 0;
};

class Parser {
 public:
  explicit Parser(ByteView body) : body_(body) {}

  bool failed() const noexcept { return failed_; }
  Field field(std::size_t at) const noexcept {
    return {load_le<std::uint16_t>(body_.data() + at), load_le<std::uint16_t>(body_.data() + at + 2)};
  }
  ByteView slice(Field field, std::size_t unit) noexcept {
    const std::size_t bytes = field.count * unit;
    if (bytes == 0) return {};
    if (field.offset > body_.size() || bytes > body_.size() - field.offset) {
      failed_ = true;
      return {};
    }
    return body_.subspan(field.offset, bytes);
  }
  std::string text(std::size_t at) { return text::to_utf8(slice(field(at), 2)); }

  std::string password(std::size_t at) {
    const ByteView hidden = slice(field(at), 2);
    std::vector<std::uint8_t> bytes(hidden.begin(), hidden.end());
    reveal_password(bytes.data(), bytes.size());
    return text::to_utf8(bytes);
  }

  std::vector<FeatureRequest> features(std::size_t at) {
    std::vector<FeatureRequest> all;
    const ByteView pointer = slice(field(at), 1);
    if (pointer.size() < 4) {
      failed_ = failed_ || !pointer.empty();
      return all;
    }
    const std::size_t offset = load_le<std::uint32_t>(pointer.data());
    if (offset >= body_.size()) {
      failed_ = true;
      return all;
    }
    ByteReader reader(body_.subspan(offset));
    while (true) {
      const std::uint8_t id = reader.u8();
      if (reader.failed() || id == feature_end) break;
      const ByteView data = reader.bytes(reader.u32());
      if (reader.failed()) break;
      all.push_back({id, {data.begin(), data.end()}});
    }
    failed_ = failed_ || reader.failed();
    return all;
  }

 private:
  ByteView body_;
  bool failed_ = false;
};

}  // namespace

bool Login7::asked_for(std::uint8_t feature) const noexcept {
  return std::any_of(features.begin(), features.end(), [&](const FeatureRequest& f) { return f.id == feature; });
}

void reveal_password(std::uint8_t* bytes, std::size_t count) noexcept {
  for (std::size_t i = 0; i < count; ++i) {
    const std::uint8_t b = bytes[i] ^ 0xA5U;
    bytes[i] = static_cast<std::uint8_t>((b << 4U) | (b >> 4U));
  }
}

std::optional<Login7> parse_login7(ByteView body) {
  if (body.size() < fixed_bytes_7_1) return std::nullopt;
  const std::size_t length = load_le<std::uint32_t>(body.data());
  if (length < fixed_bytes_7_1 || length > body.size()) return std::nullopt;
  body = body.first(length);
  Login7 login;
  login.tds_version = load_le<std::uint32_t>(body.data() + 4);
  login.packet_size = load_le<std::uint32_t>(body.data() + 8);
  login.option_flags_1 = body[24];
  login.option_flags_2 = body[25];
  login.type_flags = body[26];
  login.option_flags_3 = body[27];
  Parser parser(body);
  login.host = parser.text(36);
  login.user = parser.text(40);
  login.password = parser.password(44);
  login.application = parser.text(48);
  login.server = parser.text(52);
  if ((login.option_flags_3 & flag_extension) != 0) login.features = parser.features(56);
  login.library = parser.text(60);
  login.language = parser.text(64);
  login.database = parser.text(68);
  login.integrated = (login.option_flags_2 & flag_integrated) != 0 || parser.field(78).count != 0;
  login.change_password = length >= fixed_bytes && parser.field(86).count != 0;
  if (parser.failed()) return std::nullopt;
  return login;
}

void write_login_ack(ByteBuffer& out, const LoginAck& ack) {
  const std::size_t start = begin_token(out, 0xAD);
  out.push(1);  // interface: T-SQL
  out.put_be(ack.tds_version);
  put_text_u8(out, ack.program);
  out.push(ack.major);
  out.push(ack.minor);
  out.put_be(ack.build);
  end_token(out, start);
}

void write_feature_ext_ack(ByteBuffer& out, const std::vector<FeatureAck>& acks) {
  if (acks.empty()) return;
  out.push(0xAE);
  for (const FeatureAck& ack : acks) {
    out.push(ack.id);
    out.put_le(static_cast<std::uint32_t>(ack.data.size()));
    out.append(ByteView(ack.data));
  }
  out.push(feature_end);
}

}  // namespace rowferry::tds::server
