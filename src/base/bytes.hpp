// Bytes: unaligned loads and stores, a growable buffer that does not initialise, a bounded reader.
#pragma once

#include <bit>
#include <cassert>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <new>
#include <span>
#include <string_view>
#include <type_traits>
#include <utility>

namespace rowferry {

using ByteView = std::span<const std::uint8_t>;

static_assert(std::endian::native == std::endian::little, "rowferry is built for little-endian machines");

template <class T>
T load_le(const std::uint8_t* from) noexcept {
  static_assert(std::is_trivially_copyable_v<T>);
  T value;
  std::memcpy(&value, from, sizeof value);
  return value;
}

inline std::uint16_t byte_swap(std::uint16_t v) noexcept { return __builtin_bswap16(v); }
inline std::uint32_t byte_swap(std::uint32_t v) noexcept { return __builtin_bswap32(v); }
inline std::uint64_t byte_swap(std::uint64_t v) noexcept { return __builtin_bswap64(v); }

template <class T>
T load_be(const std::uint8_t* from) noexcept {
  using U = std::conditional_t<sizeof(T) == 8, std::uint64_t,
                               std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint16_t>>;
  static_assert(sizeof(T) == sizeof(U));
  return std::bit_cast<T>(byte_swap(load_le<U>(from)));
}

template <class T>
void store_le(std::uint8_t* to, T value) noexcept {
  static_assert(std::is_trivially_copyable_v<T>);
  std::memcpy(to, &value, sizeof value);
}

template <class T>
void store_be(std::uint8_t* to, T value) noexcept {
  using U = std::conditional_t<sizeof(T) == 8, std::uint64_t,
                               std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint16_t>>;
  static_assert(sizeof(T) == sizeof(U));
  store_le(to, byte_swap(std::bit_cast<U>(value)));
}

inline ByteView as_bytes(std::string_view text) noexcept {
  return {reinterpret_cast<const std::uint8_t*>(text.data()), text.size()};
}
inline std::string_view as_text(ByteView bytes) noexcept {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// A contiguous, growable, move-only block. extend() hands out uninitialised room.
class ByteBuffer {
 public:
  ByteBuffer() = default;
  explicit ByteBuffer(std::size_t capacity) { reserve(capacity); }
  ByteBuffer(ByteBuffer&& other) noexcept
      : data_(std::exchange(other.data_, nullptr)),
        size_(std::exchange(other.size_, 0)),
        capacity_(std::exchange(other.capacity_, 0)) {}
  ByteBuffer& operator=(ByteBuffer&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(size_, other.size_);
    std::swap(capacity_, other.capacity_);
    return *this;
  }
  ByteBuffer(const ByteBuffer&) = delete;
  ByteBuffer& operator=(const ByteBuffer&) = delete;
  ~ByteBuffer() { std::free(data_); }  // NOLINT(cppcoreguidelines-no-malloc): realloc is the point

  std::uint8_t* data() noexcept { return data_; }
  const std::uint8_t* data() const noexcept { return data_; }
  std::size_t size() const noexcept { return size_; }
  std::size_t capacity() const noexcept { return capacity_; }
  bool empty() const noexcept { return size_ == 0; }
  ByteView view() const noexcept { return {data_, size_}; }

  void clear() noexcept { size_ = 0; }
  void reserve(std::size_t wanted) {
    if (wanted > capacity_) grow(wanted);
  }
  // Sets the size; new bytes are uninitialised.
  void resize(std::size_t size) {
    reserve(size);
    size_ = size;
  }
  // Adds n uninitialised bytes and returns where they start; valid until the next growth.
  std::uint8_t* extend(std::size_t n) {
    if (size_ + n > capacity_) grow(size_ + n);
    std::uint8_t* at = data_ + size_;
    size_ += n;
    return at;
  }
  void append(ByteView bytes) {
    if (!bytes.empty()) std::memcpy(extend(bytes.size()), bytes.data(), bytes.size());
  }
  void append(std::string_view text) { append(as_bytes(text)); }
  void push(std::uint8_t byte) { *extend(1) = byte; }
  void fill(std::uint8_t byte, std::size_t n) {
    if (n != 0) std::memset(extend(n), byte, n);
  }
  template <class T>
  void put_le(T value) {
    store_le(extend(sizeof(T)), value);
  }
  template <class T>
  void put_be(T value) {
    store_be(extend(sizeof(T)), value);
  }
  // Drops the first n bytes, moving the rest to the front.
  void consume(std::size_t n) noexcept {
    assert(n <= size_);
    size_ -= n;
    if (n != 0 && size_ != 0) std::memmove(data_, data_ + n, size_);
  }

 private:
  void grow(std::size_t wanted) {
    std::size_t capacity = capacity_ < 64 ? 64 : capacity_;
    while (capacity < wanted) capacity += capacity / 2 + 64;
    void* bigger = std::realloc(data_, capacity);  // NOLINT(cppcoreguidelines-no-malloc): as above
    if (bigger == nullptr) throw std::bad_alloc();
    data_ = static_cast<std::uint8_t*>(bigger);
    capacity_ = capacity;
  }

  std::uint8_t* data_ = nullptr;
  std::size_t size_ = 0;
  std::size_t capacity_ = 0;
};

// Reads from a bounded view. A read past the end sets failed() and gives zeros; check once at the end.
class ByteReader {
 public:
  explicit ByteReader(ByteView bytes) noexcept : at_(bytes.data()), end_(bytes.data() + bytes.size()) {}

  bool failed() const noexcept { return failed_; }
  std::size_t left() const noexcept { return static_cast<std::size_t>(end_ - at_); }
  const std::uint8_t* position() const noexcept { return at_; }

  template <class T>
  T le() noexcept {
    const std::uint8_t* from = take(sizeof(T));
    return from == nullptr ? T{} : load_le<T>(from);
  }
  template <class T>
  T be() noexcept {
    const std::uint8_t* from = take(sizeof(T));
    return from == nullptr ? T{} : load_be<T>(from);
  }
  std::uint8_t u8() noexcept { return le<std::uint8_t>(); }
  std::uint16_t u16() noexcept { return le<std::uint16_t>(); }
  std::uint32_t u32() noexcept { return le<std::uint32_t>(); }
  std::uint64_t u64() noexcept { return le<std::uint64_t>(); }
  ByteView bytes(std::size_t n) noexcept {
    const std::uint8_t* from = take(n);
    return from == nullptr ? ByteView{} : ByteView{from, n};
  }
  bool skip(std::size_t n) noexcept { return take(n) != nullptr || n == 0; }

 private:
  const std::uint8_t* take(std::size_t n) noexcept {
    if (failed_ || n > left()) {
      failed_ = true;
      return nullptr;
    }
    const std::uint8_t* from = at_;
    at_ += n;
    return from;
  }

  const std::uint8_t* at_;
  const std::uint8_t* end_;
  bool failed_ = false;
};

}  // namespace rowferry
