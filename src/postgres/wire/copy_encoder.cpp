#include "postgres/wire/copy_encoder.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.hpp"
#include "base/limits.hpp"
#include "postgres/wire/put_column.hpp"
#include "rows/format.hpp"

namespace rowferry::postgres::wire {

namespace {

constexpr std::string_view signature("PGCOPY\n\377\r\n\0", 11);
constexpr std::size_t count_bytes = 2;
constexpr std::size_t length_bytes = 4;
constexpr std::size_t gathered_bytes = 16 * 1024;  // fields side by side: half of an L1 cache
constexpr std::size_t step = 16;                   // they are copied in steps of this size

bool all_valid(const rows::ColumnView& view, std::size_t row, std::size_t n) noexcept {
  if (view.validity == nullptr) return true;
  const std::size_t first = row + view.bit_offset;
  std::size_t i = first;
  const std::size_t end = first + n;
  while (i < end && (i % 8 != 0 || end - i < 8)) {
    if (((view.validity[i / 8] >> (i % 8)) & 1U) == 0) return false;
    ++i;
  }
  for (; end - i >= 8; i += 8) {
    if (view.validity[i / 8] != 0xFF) return false;
  }
  for (; i < end; ++i) {
    if (((view.validity[i / 8] >> (i % 8)) & 1U) == 0) return false;
  }
  return true;
}

}  // namespace

struct CopyEncoder::Impl {
  // A part of every row of a block: fields of fixed width side by side, ready made, or one column to be put.
  struct Part {
    const PutColumn* column = nullptr;  // null: gathered
    std::size_t at = 0;                 // of the gathered bytes; else the column's number
    std::size_t bytes = 0;              // gathered ones of a row
    rows::ColumnView view;
  };

  std::vector<PutColumn> columns;
  bool text = false;
  std::size_t block_rows = 0;
  std::vector<Part> parts;
  ByteBuffer gathered;

  void split(const rows::Batch& batch, std::size_t row, std::size_t n);
  void gather(const rows::Batch& batch, std::size_t row, std::size_t n, std::uint8_t* to);
  std::size_t most_bytes(std::size_t row, std::size_t n) const;
  void block(const rows::Batch& batch, std::size_t row, std::size_t n, ByteBuffer& to);
  void print_row(const rows::Batch& batch, std::size_t row, ByteBuffer& to) const;
  [[noreturn]] void refuse(const rows::Batch& batch, std::size_t column, std::size_t row) const;
  [[noreturn]] void refuse_one_of(const rows::Batch& batch, std::size_t column, std::size_t row, std::size_t n) const;
};

void CopyEncoder::Impl::refuse(const rows::Batch& batch, std::size_t column, std::size_t row) const {
  const CopyTarget& target = columns[column].target;
  throw Error(Category::data, "value_does_not_fit", "PostgreSQL's type of the column does not have this value")
      .with_column(target.name)
      .with_row(batch.first_row + row + 1)
      .with_value(rows::value_text(target.type, batch.column(column), row));
}

void CopyEncoder::Impl::refuse_one_of(const rows::Batch& batch, std::size_t column, std::size_t row,
                                      std::size_t n) const {
  const PutColumn& bound = columns[column];
  std::uint8_t sink[put_slack];
  for (std::size_t i = row; i < row + n; ++i) {
    if (bound.put(bound, batch.column(column), i, sink) == nullptr) refuse(batch, column, i);
  }
  throw Error(Category::internal, "copy_value", "a value was refused, and then not found")
      .with_column(bound.target.name);
}

// Which parts the rows of this block have: a column of fixed width is gathered where none of them is NULL.
void CopyEncoder::Impl::split(const rows::Batch& batch, std::size_t row, std::size_t n) {
  parts.clear();
  parts.push_back({.column = nullptr, .at = 0, .bytes = count_bytes, .view = {}});
  for (std::size_t c = 0; c < columns.size(); ++c) {
    const rows::ColumnView& view = batch.column(c);
    if (columns[c].width == 0 || !all_valid(view, row, n)) {
      parts.push_back({.column = &columns[c], .at = c, .bytes = 0, .view = view});
      continue;
    }
    if (parts.back().column != nullptr) parts.push_back({.column = nullptr, .at = 0, .bytes = 0, .view = {}});
    parts.back().bytes += length_bytes + columns[c].width;
  }
}

// Fills the gathered parts; where the row is one part only, `to` is the rows' own place.
void CopyEncoder::Impl::gather(const rows::Batch& batch, std::size_t row, std::size_t n, std::uint8_t* to) {
  std::size_t c = 0;
  for (Part& part : parts) {
    if (part.column != nullptr) {
      ++c;
      continue;
    }
    std::uint8_t* at = to;
    std::size_t left = part.bytes;
    if (&part == parts.data()) {
      for (std::size_t i = 0; i < n; ++i) store_be(at + i * part.bytes, static_cast<std::int16_t>(columns.size()));
      at += count_bytes;
      left -= count_bytes;
    }
    for (; left != 0; ++c) {
      const PutColumn& column = columns[c];
      if (!column.put_strided(batch.column(c), row, n, at, part.bytes)) refuse_one_of(batch, c, row, n);
      at += length_bytes + column.width;
      left -= length_bytes + column.width;
    }
    part.at = static_cast<std::size_t>(to - gathered.data());
    to += n * part.bytes;
  }
}

std::size_t CopyEncoder::Impl::most_bytes(std::size_t row, std::size_t n) const {
  std::size_t most = put_slack;
  for (const Part& part : parts) {
    most += part.column == nullptr ? n * part.bytes : part.column->most(part.view, row, n);
  }
  return most;
}

void CopyEncoder::Impl::block(const rows::Batch& batch, std::size_t row, std::size_t n, ByteBuffer& to) {
  split(batch, row, n);
  to.reserve(to.size() + most_bytes(row, n));
  std::uint8_t* at = to.data() + to.size();
  if (parts.size() == 1) {
    gather(batch, row, n, at);
    to.resize(to.size() + n * parts[0].bytes);
    return;
  }
  std::size_t bytes = put_slack;
  for (const Part& part : parts) bytes += n * part.bytes;
  gathered.resize(bytes);
  gather(batch, row, n, gathered.data());
  for (std::size_t i = 0; i < n; ++i) {
    for (const Part& part : parts) {
      if (part.column != nullptr) {
        at = part.column->put(*part.column, part.view, row + i, at);
        if (at == nullptr) refuse(batch, part.at, row + i);
        continue;
      }
      const std::uint8_t* const from = gathered.data() + part.at + i * part.bytes;
      for (std::size_t k = 0; k < part.bytes; k += step) std::memcpy(at + k, from + k, step);
      at += part.bytes;
    }
  }
  to.resize(static_cast<std::size_t>(at - to.data()));
}

void CopyEncoder::Impl::print_row(const rows::Batch& batch, std::size_t row, ByteBuffer& to) const {
  for (std::size_t c = 0; c < columns.size(); ++c) {
    if (c != 0) to.push('\t');
    if (!print_field(columns[c], batch.column(c), row, to)) refuse(batch, c, row);
  }
  to.push('\n');
}

CopyEncoder::CopyEncoder(std::vector<CopyTarget> columns) : impl_(std::make_unique<Impl>()) {
  std::size_t fixed = count_bytes;
  for (CopyTarget& target : columns) {
    const PutColumn& column = impl_->columns.emplace_back(bind_put(std::move(target)));
    impl_->text = impl_->text || column.target.form == PutForm::printed;
    fixed += length_bytes + column.width;
  }
  impl_->block_rows =
      std::clamp(gathered_bytes / fixed, limits::pg_copy_block_rows_min, limits::pg_copy_block_rows_max);
}

CopyEncoder::~CopyEncoder() = default;
CopyEncoder::CopyEncoder(CopyEncoder&&) noexcept = default;
CopyEncoder& CopyEncoder::operator=(CopyEncoder&&) noexcept = default;

std::string_view CopyEncoder::format() const noexcept { return impl_->text ? "text" : "binary"; }

void CopyEncoder::header(ByteBuffer& to) const {
  if (impl_->text) return;
  to.append(signature);
  to.fill(0, 8);  // no flags, no extension
}

void CopyEncoder::trailer(ByteBuffer& to) const {
  if (!impl_->text) to.put_be(std::int16_t{-1});
}

void CopyEncoder::rows(const rows::Batch& batch, std::size_t begin, std::size_t end, ByteBuffer& to) {
  if (batch.columns() != impl_->columns.size()) {
    throw Error(Category::internal, "copy_type", "a batch does not have the columns of its load");
  }
  const std::size_t before = to.size();
  try {
    if (impl_->text) {
      for (std::size_t row = begin; row < end; ++row) impl_->print_row(batch, row, to);
      return;
    }
    for (std::size_t row = begin; row < end; row += impl_->block_rows) {
      impl_->block(batch, row, std::min(impl_->block_rows, end - row), to);
    }
  } catch (...) {
    to.resize(before);
    throw;
  }
}

}  // namespace rowferry::postgres::wire
