#include "base/id.hpp"

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

}  // namespace rowferry
