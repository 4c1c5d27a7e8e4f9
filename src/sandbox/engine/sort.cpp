#include "sandbox/engine/sort.hpp"

#include <algorithm>
#include <array>
#include <bit>

#include "sandbox/engine/convert.hpp"

namespace rowferry::sandbox::engine {

namespace {

template <class T>
void put_be(T value, std::string& key) {
  for (int shift = static_cast<int>(sizeof(T)) * 8 - 8; shift >= 0; shift -= 8)
    key.push_back(static_cast<char>(value >> static_cast<unsigned>(shift)));
}

void put_real(double real, std::string& key) {
  auto bits = std::bit_cast<std::uint64_t>(real == 0 ? 0.0 : real);
  constexpr std::uint64_t sign = std::uint64_t{1} << 63U;
  bits = (bits & sign) != 0 ? ~bits : bits | sign;
  put_be(bits, key);
}

// Zeros are escaped, so that a shorter value comes before a longer one and the next key begins cleanly.
void put_bytes(std::string_view bytes, std::string& key) {
  while (!bytes.empty() && bytes.back() == '\0') bytes.remove_suffix(1);
  for (const char c : bytes) {
    key.push_back(c);
    if (c == '\0') key.push_back('\xFF');
  }
  key.append(2, '\0');
}

void put_value(const Value& v, std::string& key) {
  const Kind k = v.type.kind;
  if (is_string(k)) {
    append_text_sort_key(v.text, v.type.collation, key);
  } else if (is_exact(k)) {
    const auto biased = static_cast<UInt128>(v.number) + (UInt128(1) << 127U);
    put_be(static_cast<std::uint64_t>(biased >> 64U), key);
    put_be(static_cast<std::uint64_t>(biased), key);
  } else if (is_float(k)) {
    put_real(v.real, key);
  } else if (is_temporal(k)) {
    if (k != Kind::time) put_be(static_cast<std::uint32_t>(v.days) + 0x80000000U, key);
    put_be(static_cast<std::uint64_t>(v.ticks), key);
  } else if (k == Kind::guid) {
    constexpr std::array<std::size_t, 16> order{10, 11, 12, 13, 14, 15, 8, 9, 6, 7, 4, 5, 0, 1, 2, 3};
    for (const std::size_t i : order) key.push_back(v.bytes[i]);
  } else if (k == Kind::variant) {
    const Value inside = variant_content(v.bytes);
    key.push_back(static_cast<char>(is_number(inside.type.kind)     ? 2
                                    : is_temporal(inside.type.kind) ? 3
                                    : is_string(inside.type.kind)   ? 1
                                                                    : 0));
    put_value(is_exact(inside.type.kind) ? convert(inside, make_type(Kind::float8)) : inside, key);
  } else {
    put_bytes(v.bytes, key);
  }
}

}  // namespace

void append_sort_key(const Value& value, bool descending, std::string& key) {
  const std::size_t begin = key.size();
  key.push_back(value.null ? '\0' : '\1');
  if (!value.null) put_value(value, key);
  if (!descending) return;
  for (std::size_t i = begin; i < key.size(); ++i) key[i] = static_cast<char>(~static_cast<unsigned char>(key[i]));
}

ByteView SortedRows::part(const ByteBuffer& bytes, const std::vector<std::size_t>& ends, std::uint32_t i) const {
  const std::size_t begin = i == 0 ? 0 : ends[i - 1];
  return {bytes.data() + begin, ends[i] - begin};
}

bool SortedRows::before(std::uint32_t a, std::uint32_t b) const {
  const int c = as_text(part(keys_, key_ends_, a)).compare(as_text(part(keys_, key_ends_, b)));
  return c != 0 ? c < 0 : a < b;
}

void SortedRows::add(std::string_view key, ByteView row) {
  keys_.append(key);
  key_ends_.push_back(keys_.size());
  rows_.append(row);
  row_ends_.push_back(rows_.size());
  places_.push_back(static_cast<std::uint32_t>(row_ends_.size() - 1));
  if (keep_ && places_.size() >= 2 * *keep_ + 1024) prune();
}

// Keeps the first `keep_` rows only, in the order in which they came.
void SortedRows::prune() {
  const auto middle = places_.begin() + static_cast<std::ptrdiff_t>(*keep_);
  std::nth_element(places_.begin(), middle, places_.end(),
                   [this](std::uint32_t a, std::uint32_t b) { return before(a, b); });
  places_.erase(middle, places_.end());
  std::sort(places_.begin(), places_.end());
  SortedRows kept;
  kept.keep(keep_);
  for (const std::uint32_t i : places_) {
    kept.keys_.append(part(keys_, key_ends_, i));
    kept.key_ends_.push_back(kept.keys_.size());
    kept.rows_.append(part(rows_, row_ends_, i));
    kept.row_ends_.push_back(kept.rows_.size());
    kept.places_.push_back(static_cast<std::uint32_t>(kept.places_.size()));
  }
  *this = std::move(kept);
}

async::Task<void> SortedRows::sort(Turn& turn) {
  co_await sort_places(places_, [this](std::uint32_t a, std::uint32_t b) { return before(a, b); }, turn);
  if (keep_ && places_.size() > *keep_) places_.resize(*keep_);
}

ByteView SortedRows::row(std::size_t i) const { return part(rows_, row_ends_, places_[i]); }

}  // namespace rowferry::sandbox::engine
