#include "tds/wire/bulk_encoder.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.hpp"
#include "base/limits.hpp"
#include "tds/wire/bulk_column.hpp"
#include "tds/wire/tokens.hpp"
#include "tds/wire/type_info.hpp"

namespace rowferry::tds {

struct BulkEncoder::Impl {
  std::vector<BulkWriter> writers;
  std::size_t stride = 1;  // bytes of a row when every column is fixed and not NULL
  bool all_fixed = true;
  std::vector<std::size_t> sizes;
  std::vector<std::uint8_t*> at;

  void block(const rows::Batch& batch, std::size_t row, std::size_t n, ByteBuffer& to);
  void strided(const rows::Batch& batch, std::size_t row, std::size_t n, ByteBuffer& to);
  void indexed(const rows::Batch& batch, std::size_t row, std::size_t n, ByteBuffer& to);
  [[noreturn]] void refuse_fixed(const rows::Batch& batch, std::size_t column, std::size_t row, std::size_t n) const;
  [[noreturn]] void refuse(const rows::Batch& batch, std::size_t column, std::size_t row) const;
};

void BulkEncoder::Impl::refuse(const rows::Batch& batch, std::size_t column, std::size_t row) const {
  const BulkWriter& writer = writers[column];
  const std::string type = type_name(writer.column.meta.type);
  const DataType id = writer.column.meta.type.id;
  // money's range and a variant's length are no property of a logical type: these two are the user's data
  const bool data = id == DataType::moneyn || id == DataType::sql_variant;
  throw Error(data ? Category::data : Category::internal, data ? "value_does_not_fit" : "bulk_value",
              fmt::format("a value cannot be written as {}", type))
      .with_column(writer.column.meta.name)
      .with_row(batch.first_row + row + 1);
}

void BulkEncoder::Impl::refuse_fixed(const rows::Batch& batch, std::size_t column, std::size_t row,
                                     std::size_t n) const {
  const rows::ColumnView view = batch.column(column);
  std::uint8_t sink[32];
  for (std::size_t i = row; i < row + n; ++i) {
    if (view.valid(i) && !writers[column].put(writers[column], view, i, sink)) refuse(batch, column, i);
  }
  refuse(batch, column, row);
}

// Rows of one size: every column goes into its place at once.
void BulkEncoder::Impl::strided(const rows::Batch& batch, std::size_t row, std::size_t n, ByteBuffer& to) {
  std::uint8_t* const base = to.extend(n * stride);
  for (std::size_t i = 0; i < n; ++i) base[i * stride] = static_cast<std::uint8_t>(Token::row);
  std::size_t offset = 1;
  for (std::size_t c = 0; c < writers.size(); ++c) {
    const BulkWriter& writer = writers[c];
    if (!writer.put_strided(writer, batch.column(c), row, n, base + offset, stride)) refuse_fixed(batch, c, row, n);
    offset += 1 + writer.width;
  }
}

// Rows of any size: first the size of each, then column after column, each row remembering where it stands.
void BulkEncoder::Impl::indexed(const rows::Batch& batch, std::size_t row, std::size_t n, ByteBuffer& to) {
  std::size_t common = 1;
  sizes.assign(n, 0);
  for (std::size_t c = 0; c < writers.size(); ++c) {
    BulkWriter& writer = writers[c];
    const rows::ColumnView view = batch.column(c);
    if (!writer.fixed()) {
      const std::size_t good = writer.prepare(view, row, n);
      if (good != n) refuse(batch, c, row + good);
      for (std::size_t i = 0; i < n; ++i) sizes[i] += writer.framed_bytes(writer.pieces[i]);
    } else if (view.validity == nullptr) {
      common += 1 + writer.width;
    } else {
      common += 1;
      for (std::size_t i = 0; i < n; ++i) sizes[i] += view.valid(row + i) ? writer.width : 0;
    }
  }
  std::size_t total = n * common;
  for (std::size_t i = 0; i < n; ++i) total += sizes[i];
  std::uint8_t* place = to.extend(total);
  at.resize(n);
  for (std::size_t i = 0; i < n; ++i) {
    *place = static_cast<std::uint8_t>(Token::row);
    at[i] = place + 1;
    place += common + sizes[i];
  }
  for (std::size_t c = 0; c < writers.size(); ++c) {
    BulkWriter& writer = writers[c];
    if (!writer.fixed()) {
      writer.put_pieces(at.data());
      // The converted text of one huge value does not stay beside its tokens.
      if (writer.scratch.capacity() > 4 * limits::tds_bulk_flush_bytes) writer.scratch = ByteBuffer();
    } else if (!writer.put_indexed(writer, batch.column(c), row, n, at.data())) {
      refuse_fixed(batch, c, row, n);
    }
  }
}

void BulkEncoder::Impl::block(const rows::Batch& batch, std::size_t row, std::size_t n, ByteBuffer& to) {
  bool plain = all_fixed;
  for (std::size_t c = 0; plain && c < writers.size(); ++c) plain = batch.column(c).validity == nullptr;
  if (plain) {
    strided(batch, row, n, to);
  } else {
    indexed(batch, row, n, to);
  }
}

BulkEncoder::BulkEncoder(std::vector<BulkColumn> columns) : impl_(std::make_unique<Impl>()) {
  for (BulkColumn& column : columns) {
    BulkWriter& writer = impl_->writers.emplace_back(bind_bulk_writer(std::move(column)));
    impl_->all_fixed = impl_->all_fixed && writer.fixed();
    impl_->stride += 1 + writer.width;
  }
}

BulkEncoder::~BulkEncoder() = default;
BulkEncoder::BulkEncoder(BulkEncoder&&) noexcept = default;
BulkEncoder& BulkEncoder::operator=(BulkEncoder&&) noexcept = default;

void BulkEncoder::columns(ByteBuffer& to) const {
  std::vector<ColumnMeta> metadata;
  for (const BulkWriter& writer : impl_->writers) metadata.push_back(writer.column.meta);
  put_columns(to, metadata, MetaPlace::bulk);
}

void BulkEncoder::rows(const rows::Batch& batch, std::size_t begin, std::size_t end, ByteBuffer& to) {
  if (batch.columns() != impl_->writers.size()) {
    throw Error(Category::internal, "bulk_type", "a batch does not have the columns of its load");
  }
  const std::size_t before = to.size();
  try {
    for (std::size_t row = begin; row < end; row += limits::tds_bulk_block_rows) {
      impl_->block(batch, row, std::min(limits::tds_bulk_block_rows, end - row), to);
    }
  } catch (...) {
    to.resize(before);
    throw;
  }
}

void BulkEncoder::done(ByteBuffer& to) {
  to.push(static_cast<std::uint8_t>(Token::done));
  to.fill(0, 12);
}

}  // namespace rowferry::tds
