#include "base/id.hpp"

#include <fmt/format.h>
#include <sys/random.h>

#include <algorithm>
#include <cerrno>

#include "base/error.hpp"

namespace rowferry {

namespace {

constexpr std::string_view alphabet = "0123456789abcdefghijklmnopqrstuv";  // 5 bits each, in the order of ASCII
constexpr std::size_t time_chars = 9;                                      // 45 bits of milliseconds: until year 3084

std::uint64_t random_bits() {
  std::uint64_t bits = 0;
  while (getrandom(&bits, sizeof bits, 0) != static_cast<ssize_t>(sizeof bits)) {
    if (errno != EINTR) throw Error(Category::internal, "random", "the system gives no random bytes");
  }
  return bits;
}

void append(std::string& out, std::uint64_t value, std::size_t chars) {
  for (std::size_t i = chars; i-- > 0;) out += alphabet[(value >> (5 * i)) & 31U];
}

}  // namespace

std::string new_transfer_id(time::WallTime at) {
  const auto millis = std::chrono::floor<std::chrono::milliseconds>(at.time_since_epoch()).count();
  std::string id = "t";
  append(id, static_cast<std::uint64_t>(millis), time_chars);
  append(id, random_bits(), transfer_id_chars - 1 - time_chars);
  return id;
}

bool is_transfer_id(std::string_view text) noexcept {
  return text.size() == transfer_id_chars && text.front() == 't' &&
         std::all_of(text.begin(), text.end(), [](char c) { return alphabet.find(c) != std::string_view::npos; });
}

std::string fingerprint(std::string_view text) {
  constexpr auto prime = (static_cast<unsigned __int128>(1) << 88U) + 0x13B;
  auto hash = (static_cast<unsigned __int128>(0x6c62272e07bb0142ULL) << 64U) | 0x62b821756295c58dULL;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * prime;
  return fmt::format("{:016x}{:016x}", static_cast<std::uint64_t>(hash >> 64U), static_cast<std::uint64_t>(hash));
}

}  // namespace rowferry
