// Batches written down by hand.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "rows/batch.hpp"

namespace rowferry::test {

class BatchBuilder {
 public:
  explicit BatchBuilder(std::vector<rows::Type> types) {
    auto schema = std::make_shared<rows::Schema>();
    for (std::size_t i = 0; i < types.size(); ++i) schema->fields.push_back({"c" + std::to_string(i), types[i], true});
    batch_ = std::make_unique<rows::Batch>(schema);
  }
  BatchBuilder& null() {
    buffer().append_null(type().id, rows_);
    return next();
  }
  template <class T>
  BatchBuilder& value(T value) {
    buffer().append(rows_, value);
    return next();
  }
  BatchBuilder& boolean(bool value) {
    buffer().append_boolean(rows_, value);
    return next();
  }
  BatchBuilder& bytes(std::string_view value) {
    buffer().append_bytes(rows_, as_bytes(value));
    return next();
  }
  BatchBuilder& uuid(std::string_view printed) {
    buffer().values.append(printed);
    buffer().append_valid(rows_);
    return next();
  }
  std::unique_ptr<rows::Batch> build() {
    batch_->seal(rows_);
    return std::move(batch_);
  }

 private:
  rows::ColumnBuffer& buffer() { return batch_->buffer(column_); }
  const rows::Type& type() { return batch_->schema().fields[column_].type; }
  BatchBuilder& next() {
    if (++column_ == batch_->columns()) {
      column_ = 0;
      ++rows_;
    }
    return *this;
  }
  std::unique_ptr<rows::Batch> batch_;
  std::size_t column_ = 0;
  std::size_t rows_ = 0;
};

}  // namespace rowferry::test
