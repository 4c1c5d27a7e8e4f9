// Secret: a password or token that cannot be printed by accident and wipes its memory.
//
// It has no stream or format operator, no comparison that leaks time, and no conversion: reveal() is the one door, and
// easy to search for.
#pragma once

#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

namespace rowferry {

class Secret {
 public:
  Secret() = default;
  // Copies the text to memory of its own and wipes the string that it came in.
  explicit Secret(std::string text) : size_(text.size()), data_(std::make_unique<char[]>(text.size())) {
    std::memcpy(data_.get(), text.data(), size_);
    explicit_bzero(text.data(), text.size());
  }
  Secret(const Secret&) = delete;
  Secret& operator=(const Secret&) = delete;
  Secret(Secret&& other) noexcept : size_(std::exchange(other.size_, 0)), data_(std::move(other.data_)) {}
  Secret& operator=(Secret&& other) noexcept {
    std::swap(size_, other.size_);
    std::swap(data_, other.data_);
    return *this;
  }
  ~Secret() {
    if (data_) explicit_bzero(data_.get(), size_);
  }

  bool empty() const noexcept { return size_ == 0; }
  // Valid while the Secret lives. Do not log, do not put into an error.
  std::string_view reveal() const noexcept { return {data_.get(), size_}; }

  // The time depends on the lengths only.
  bool equals(std::string_view other) const noexcept {
    unsigned difference = size_ == other.size() ? 0 : 1;
    for (std::size_t i = 0; i < other.size(); ++i) {
      const char mine = size_ == 0 ? '\0' : data_[i % size_];
      difference |= static_cast<unsigned char>(mine ^ other[i]);
    }
    return difference == 0;
  }

 private:
  std::size_t size_ = 0;
  std::unique_ptr<char[]> data_;
};

// Reads the secret anew; called at each connect, so that a rotated password needs no restart.
using SecretReader = std::function<Secret()>;

}  // namespace rowferry
