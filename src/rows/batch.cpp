#include "rows/batch.hpp"

#include <limits>

#include "base/error.hpp"
#include "base/limits.hpp"

namespace rowferry::rows {

void ColumnBuffer::reset(TypeId id) {
  validity.clear();
  values.clear();
  offsets.clear();
  if (is_variable(id)) offsets.put_le<std::int32_t>(0);
}

void ColumnBuffer::need_validity(std::size_t rows) {
  if (!validity.empty()) return;
  validity.fill(0xFF, rows / 8 + 1);
}

void ColumnBuffer::set_valid(std::size_t row) {
  if (row / 8 >= validity.size()) validity.fill(0xFF, row / 8 + 1 - validity.size());
  validity.data()[row / 8] |= static_cast<std::uint8_t>(1U << (row % 8));
}

void ColumnBuffer::append_null(TypeId id, std::size_t row) {
  need_validity(row);
  set_valid(row);
  set_null(row);
  if (is_variable(id)) {
    offsets.put_le<std::int32_t>(static_cast<std::int32_t>(values.size()));
  } else if (id == TypeId::boolean) {
    if (row / 8 >= values.size()) values.push(0);
  } else {
    values.fill(0, fixed_width(id));
  }
}

void ColumnBuffer::append_boolean(std::size_t row, bool value) {
  if (row / 8 >= values.size()) values.push(0);
  if (value) values.data()[row / 8] |= static_cast<std::uint8_t>(1U << (row % 8));
  append_valid(row);
}

void ColumnBuffer::end_value() {
  if (values.size() > static_cast<std::size_t>(std::numeric_limits<std::int32_t>::max())) {
    throw Error(Category::data, "batch_too_large", "the values of one batch pass 2 GiB");
  }
  offsets.put_le<std::int32_t>(static_cast<std::int32_t>(values.size()));
}

ColumnView ColumnBuffer::view() const noexcept {
  return {.validity = validity.empty() ? nullptr : validity.data(),
          .values = values.data(),
          .offsets = offsets.empty() ? nullptr : reinterpret_cast<const std::int32_t*>(offsets.data()),
          .bit_offset = 0};
}

Batch::Batch(SchemaPtr schema)
    : schema_(std::move(schema)), buffers_(schema_->size()), views_(schema_->size()), adopted_(schema_->size()) {
  reset();
}

void Batch::reset() {
  rows_ = 0;
  bytes_ = 0;
  first_row = 0;
  keep_alive_.clear();
  for (std::size_t i = 0; i < buffers_.size(); ++i) {
    buffers_[i].reset(schema_->fields[i].type.id);
    adopted_[i] = false;
  }
}

std::size_t Batch::buffered_bytes() const noexcept {
  std::size_t sum = 0;
  for (const ColumnBuffer& buffer : buffers_) sum += buffer.bytes();
  return sum;
}

void Batch::seal(std::size_t rows) {
  rows_ = rows;
  for (std::size_t i = 0; i < buffers_.size(); ++i) {
    if (adopted_[i]) continue;
    views_[i] = buffers_[i].view();
    bytes_ += buffers_[i].bytes();
  }
}

void Batch::adopt(std::size_t i, const ColumnView& view, std::size_t bytes, std::shared_ptr<const void> keep_alive) {
  views_[i] = view;
  adopted_[i] = true;
  bytes_ += bytes;
  if (keep_alive) keep_alive_.push_back(std::move(keep_alive));
}

void BatchReturn::operator()(Batch* batch) const noexcept {
  if (const auto home = pool.lock()) {
    // A batch that one huge value has blown up is not kept: the pool's memory stays near its batch size.
    if (home->free_.size() < limits::batch_pool_max && batch->bytes() <= 4 * limits::batch_bytes) {
      // A converter may have retyped it; what it kept alive (another pool's batch) goes home now.
      batch->retype(home->schema_);
      batch->reset();
      home->free_.push_back(batch);
      return;
    }
  }
  delete batch;
}

BatchPool::~BatchPool() {
  for (Batch* batch : free_) delete batch;
}

BatchPtr BatchPool::take() {
  if (free_.empty()) return {new Batch(schema_), BatchReturn{weak_from_this()}};
  Batch* batch = free_.back();
  free_.pop_back();
  return {batch, BatchReturn{weak_from_this()}};
}

}  // namespace rowferry::rows
