#include "postgres/wire/copy_decoder.hpp"

#include <algorithm>
#include <array>
#include <cstring>

#include "postgres/wire/codecs.hpp"

namespace rowferry::postgres::wire {

namespace {

constexpr std::array<std::uint8_t, 11> signature{'P', 'G', 'C', 'O', 'P', 'Y', '\n', 0xFF, '\r', '\n', 0};
constexpr std::uint32_t critical_flags = 0xFFFF0000U;  // bit 16: rows have OIDs (before PostgreSQL 12)

}  // namespace

CopyDecoder::CopyDecoder(std::vector<CopyColumn> columns)
    : fields_(std::max<std::size_t>(columns.size(), 1) * block_rows) {
  columns_.reserve(columns.size());
  for (CopyColumn& plan : columns) {
    rows::ColumnLoss loss(plan.name, plan.policy);
    columns_.push_back(Column{.plan = std::move(plan), .loss = std::move(loss)});
    Codecs::bind(columns_.back());
  }
  for (const Column& column : columns_) {
    if (column.width < 0) {
      fixed_.clear();
      return;
    }
    const auto width = static_cast<std::uint32_t>(column.width);
    fixed_.push_back({.length_word = byte_swap(width), .stride = width + 4});
    fixed_bytes_ += width + 4;
  }
}

void CopyDecoder::restart() noexcept {
  pending_ = 0;
  for (Column& column : columns_) column.nulls = column.value_bytes = 0;
  header_seen_ = ended_ = false;
}

CopyDecoder::Got CopyDecoder::malformed(std::string_view what, const Column* column) noexcept {
  problem_ = "row " + std::to_string(decoded_ + pending_ + 1);
  if (column != nullptr) problem_ += ", column \"" + column->plan.name + "\"";
  problem_ += ": ";
  problem_ += what;
  return Got::malformed;
}

const std::uint8_t* CopyDecoder::header(const std::uint8_t* at, const std::uint8_t* end) noexcept {
  constexpr std::size_t fixed = signature.size() + 8;
  if (static_cast<std::size_t>(end - at) < fixed || std::memcmp(at, signature.data(), signature.size()) != 0) {
    malformed("the stream does not begin with the signature of binary COPY");
    return nullptr;
  }
  const auto flags = load_be<std::uint32_t>(at + signature.size());
  const auto extension = load_be<std::uint32_t>(at + signature.size() + 4);
  at += fixed;
  if ((flags & critical_flags) != 0) {
    malformed("the header has critical flags that are not known");
    return nullptr;
  }
  if (static_cast<std::size_t>(end - at) < extension) {
    malformed("the header's extension is cut off");
    return nullptr;
  }
  header_seen_ = true;
  return at + extension;
}

CopyDecoder::Got CopyDecoder::accept(ByteView message) noexcept {
  const std::uint8_t* at = message.data();
  const std::uint8_t* end = at + message.size();
  if (!header_seen_) {
    at = header(at, end);
    if (at == nullptr) return Got::malformed;
    if (at == end) return Got::nothing;
  }
  if (ended_) return malformed("bytes behind the end of the data");
  if (end - at < 2) return malformed("a row without its field count");
  const auto count = load_be<std::int16_t>(at);
  if (count == -1) {
    if (end - at != 2) return malformed("bytes behind the end of the data");
    ended_ = true;
    return Got::end;
  }
  if (static_cast<std::size_t>(count) != columns_.size()) return malformed("the field count is not the column count");
  at += 2;
  if (!fixed_.empty() && static_cast<std::size_t>(end - at) == fixed_bytes_ && split_fixed(at)) return Got::row;
  return split(at, end);
}

bool CopyDecoder::split_fixed(const std::uint8_t* at) noexcept {
  assert(pending_ < block_rows);
  const std::uint8_t** field = fields_.data() + pending_;
  std::uint32_t wrong = 0;
  for (const FixedField& fixed : fixed_) {
    wrong |= load_le<std::uint32_t>(at) ^ fixed.length_word;
    *field = at + 4;
    field += block_rows;
    at += fixed.stride;
  }
  if (wrong != 0) return false;
  ++pending_;
  return true;
}

CopyDecoder::Got CopyDecoder::split(const std::uint8_t* at, const std::uint8_t* end) noexcept {
  assert(pending_ < block_rows);
  const std::uint8_t** field = fields_.data() + pending_;
  for (Column& column : columns_) {
    if (end - at < 4) return malformed("the row ends within a field's length", &column);
    const auto length = load_be<std::int32_t>(at);
    at += 4;
    *field = at;
    field += block_rows;
    if (length != column.width) {
      if (length == -1) {
        ++column.nulls;
        continue;
      }
      if (column.width >= 0 || length < column.least) return malformed("the field's length is not its type's", &column);
    }
    if (end - at < length) return malformed("the field is longer than its row", &column);
    column.value_bytes += static_cast<std::size_t>(length);
    at += length;
  }
  if (at != end) return malformed("bytes behind the last field");
  ++pending_;
  return Got::row;
}

bool CopyDecoder::decode(rows::Batch& batch, std::size_t rows) {
  if (pending_ == 0) return true;
  const std::uint8_t* const* fields = fields_.data();
  bool good = true;
  for (std::size_t i = 0; i < columns_.size(); ++i, fields += block_rows) {
    Column& column = columns_[i];
    if (good && !column.decode(column, fields, pending_, batch.buffer(i), rows, decoded_)) {
      problem_ = "rows " + std::to_string(decoded_ + 1) + " to " + std::to_string(decoded_ + pending_) + ", column \"" +
                 column.plan.name + "\": " + column.problem;
      good = false;
    }
    column.nulls = column.value_bytes = 0;
  }
  decoded_ += pending_;
  pending_ = 0;
  return good;
}

std::vector<std::uint64_t> CopyDecoder::changed() const {
  std::vector<std::uint64_t> counts;
  counts.reserve(columns_.size());
  for (const Column& column : columns_) counts.push_back(column.loss.changed());
  return counts;
}

}  // namespace rowferry::postgres::wire
