#include "rows/hash.hpp"

#include <fmt/format.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "base/error.hpp"

namespace rowferry::rows {

namespace {

constexpr std::size_t null_bytes = 3;    // ordinal, flag
constexpr std::size_t header_bytes = 7;  // ordinal, flag, length

std::uint32_t canonical_width(const Type& type) noexcept {
  switch (type.id) {
    case TypeId::null:
    case TypeId::text:
    case TypeId::json:
    case TypeId::binary:
      return 0;
    case TypeId::float32:
      return 4;
    case TypeId::decimal:
    case TypeId::uuid:
      return 16;
    default:
      return 8;
  }
}

// Length of a variable value without what the server's padding adds.
std::uint32_t value_length(const Type& type, ByteView value) noexcept {
  std::size_t length = value.size();
  if (type.padded && type.id != TypeId::binary) {
    while (length != 0 && value[length - 1] == ' ') --length;
  }
  return static_cast<std::uint32_t>(length);
}

// Writes the header, moves the cursor behind the value and returns where the value goes.
std::uint8_t* put_header(std::uint8_t* scratch, std::uint32_t& cursor, std::uint16_t ordinal,
                         std::uint32_t length) noexcept {
  std::uint8_t* const at = scratch + cursor;
  store_le<std::uint32_t>(at, ordinal);  // the flag 0 is its third byte; the fourth is overwritten by the length
  store_le<std::uint32_t>(at + null_bytes, length);
  cursor += static_cast<std::uint32_t>(header_bytes) + length;
  return at + header_bytes;
}
void put_null(std::uint8_t* scratch, std::uint32_t& cursor, std::uint16_t ordinal) noexcept {
  store_le<std::uint16_t>(scratch + cursor, ordinal);
  scratch[cursor + 2] = 1;
  cursor += static_cast<std::uint32_t>(null_bytes);
}

struct Gather {
  const ColumnView& view;
  std::size_t first;
  std::size_t rows;
  std::uint16_t ordinal;
  std::uint8_t* scratch;
  std::uint32_t* ends;
};

// `canonical` gives a value of fixed size; one tight loop per type.
template <class F>
void gather_fixed(const Gather& g, F canonical) {
  using Value = decltype(canonical(std::size_t{}));
  if (g.view.validity == nullptr) {
    for (std::size_t i = 0; i < g.rows; ++i) {
      store_le<Value>(put_header(g.scratch, g.ends[i], g.ordinal, sizeof(Value)), canonical(g.first + i));
    }
    return;
  }
  for (std::size_t i = 0; i < g.rows; ++i) {
    if (g.view.valid(g.first + i)) {
      store_le<Value>(put_header(g.scratch, g.ends[i], g.ordinal, sizeof(Value)), canonical(g.first + i));
    } else {
      put_null(g.scratch, g.ends[i], g.ordinal);
    }
  }
}

template <class T>
void gather_integer(const Gather& g) {
  gather_fixed(g, [&](std::size_t row) { return static_cast<std::int64_t>(g.view.template value<T>(row)); });
}

void gather_variable(const Gather& g, const Type& type) {
  for (std::size_t i = 0; i < g.rows; ++i) {
    if (!g.view.valid(g.first + i)) {
      put_null(g.scratch, g.ends[i], g.ordinal);
      continue;
    }
    const ByteView value = g.view.bytes(g.first + i);
    const std::uint32_t length = value_length(type, value);
    std::uint8_t* const at = put_header(g.scratch, g.ends[i], g.ordinal, length);
    if (length != 0) std::memcpy(at, value.data(), length);
  }
}

void gather(const Gather& g, const Type& type) {
  switch (type.id) {
    case TypeId::null:
      for (std::size_t i = 0; i < g.rows; ++i) put_null(g.scratch, g.ends[i], g.ordinal);
      return;
    case TypeId::boolean:
      return gather_fixed(g, [&](std::size_t row) { return static_cast<std::int64_t>(g.view.boolean(row)); });
    case TypeId::int8:
      return gather_integer<std::int8_t>(g);
    case TypeId::int16:
      return gather_integer<std::int16_t>(g);
    case TypeId::int32:
    case TypeId::date:
      return gather_integer<std::int32_t>(g);
    case TypeId::uint8:
      return gather_integer<std::uint8_t>(g);
    case TypeId::uint16:
      return gather_integer<std::uint16_t>(g);
    case TypeId::uint32:
      return gather_integer<std::uint32_t>(g);
    case TypeId::int64:
    case TypeId::uint64:
    case TypeId::float64:
      return gather_integer<std::int64_t>(g);
    case TypeId::float32:
      return gather_fixed(g, [&](std::size_t row) { return g.view.value<std::uint32_t>(row); });
    case TypeId::decimal:
    case TypeId::uuid:
      return gather_fixed(g, [&](std::size_t row) { return g.view.value<Int128>(row); });
    case TypeId::time:
    case TypeId::timestamp: {
      // Unsigned: PostgreSQL's infinities wrap, on both sides alike.
      const std::uint64_t factor = type.unit == TimeUnit::micro ? 10 : 1;
      return gather_fixed(g, [&](std::size_t row) { return g.view.value<std::uint64_t>(row) * factor; });
    }
    case TypeId::text:
    case TypeId::json:
    case TypeId::binary:
      return gather_variable(g, type);
  }
}

}  // namespace

void ContentHash::add(const ContentHash& other) noexcept {
  low += other.low;
  high += other.high + (low < other.low ? 1 : 0);
  rows += other.rows;
}

std::string ContentHash::hex() const { return fmt::format("{:016x}{:016x}", high, low); }

RowHasher::RowHasher(const Schema& schema, std::vector<bool> compared) {
  for (std::size_t i = 0; i < schema.size(); ++i) {
    if (!compared.empty() && !compared[i]) continue;
    const Type& type = schema.fields[i].type;
    columns_.push_back({type, static_cast<std::uint16_t>(i), canonical_width(type)});
  }
}

// Fills begins_ and ends_ with where each row starts in the scratch; returns the bytes needed.
std::size_t RowHasher::measure(const Batch& batch, std::size_t first, std::size_t rows) {
  std::size_t constant = 0;
  std::uint32_t extra[block_rows] = {};
  for (const Column& column : columns_) {
    const ColumnView& view = batch.column(column.ordinal);
    if (column.type.id == TypeId::null) {
      constant += null_bytes;
      continue;
    }
    constant += header_bytes + column.width;
    for (std::size_t i = 0; column.width == 0 && i < rows; ++i) {
      if (view.valid(first + i)) extra[i] += value_length(column.type, view.bytes(first + i));
    }
  }
  std::size_t at = 0;
  for (std::size_t i = 0; i < rows; ++i) {
    begins_[i] = ends_[i] = static_cast<std::uint32_t>(at);
    at += constant + extra[i];
  }
  // Row starts are 32-bit: a block of a batch (2 GiB a column at most, see ColumnBuffer) that passes that has no use.
  if (at > std::numeric_limits<std::uint32_t>::max()) {
    throw Error(Category::data, "batch_too_large", "the rows of one block pass 4 GiB");
  }
  return at;
}

void RowHasher::add_block(const Batch& batch, std::size_t first, std::size_t rows, ContentHash& into) {
  scratch_.resize(measure(batch, first, rows) + sizeof(std::uint32_t));
  for (const Column& column : columns_) {
    gather({batch.column(column.ordinal), first, rows, column.ordinal, scratch_.data(), ends_}, column.type);
  }
  for (std::size_t i = 0; i < rows; ++i) {
    const XXH128_hash_t hash = XXH3_128bits(scratch_.data() + begins_[i], ends_[i] - begins_[i]);
    into.add({hash.low64, hash.high64, 1});
  }
}

void RowHasher::add(const Batch& batch, ContentHash& into) {
  for (std::size_t first = 0; first < batch.rows(); first += block_rows) {
    add_block(batch, first, std::min(block_rows, batch.rows() - first), into);
  }
}

}  // namespace rowferry::rows
