// Secret: a password or token. Kept only as long as it is used, wiped afterwards, never printed, never in an Error.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <utility>

namespace rowferry {

class Secret {
 public:
  Secret() = default;
  explicit Secret(std::string value) : value_(std::move(value)) {}
  Secret(Secret&& other) noexcept : value_(std::move(other.value_)) { wipe(other.value_); }
  Secret& operator=(Secret&& other) noexcept {
    if (this != &other) {
      wipe(value_);
      value_ = std::move(other.value_);
      wipe(other.value_);
    }
    return *this;
  }
  Secret(const Secret&) = delete;
  Secret& operator=(const Secret&) = delete;
  ~Secret() { wipe(value_); }

  // The one way to the text: the name is meant to be found by a search.
  std::string_view reveal() const noexcept { return value_; }
  bool empty() const noexcept { return value_.empty(); }

 private:
  static void wipe(std::string& text) noexcept {
    volatile char* at = text.data();
    for (std::size_t i = 0; i < text.size(); ++i) at[i] = 0;
    text.clear();
  }
  std::string value_;
};

// Reads the secret anew; called at each connect, so that a rotated password needs no restart.
using SecretReader = std::function<Secret()>;

}  // namespace rowferry
