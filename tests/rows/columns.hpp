// Columns of one type as tests write them: a vector of optional values in, a vector of optional texts out.
#pragma once

#include <criterion/criterion.h>

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "rows/convert.hpp"
#include "rows/format.hpp"

namespace rowferry::rows::test {

template <class T>
using Values = std::vector<std::optional<T>>;
using Texts = Values<std::string>;

inline SchemaPtr schema_of(const Type& type, bool nullable = true, std::string name = "c") {
  return std::make_shared<const Schema>(Schema{{Field{std::move(name), type, nullable}}});
}

template <class T>
void fill(ColumnBuffer& buffer, TypeId id, const Values<T>& values) {
  for (std::size_t row = 0; row < values.size(); ++row) {
    if (!values[row]) {
      buffer.append_null(id, row);
    } else if constexpr (std::is_same_v<T, std::string>) {
      buffer.append_bytes(row, as_bytes(*values[row]));
    } else if constexpr (std::is_same_v<T, bool>) {
      buffer.append_boolean(row, *values[row]);
    } else {
      buffer.append<T>(row, *values[row]);
    }
  }
}

template <class T>
BatchPtr batch_of(const SchemaPtr& schema, const Values<T>& values) {
  BatchPtr batch = BatchPool::make(schema)->take();
  fill(batch->buffer(0), schema->fields[0].type.id, values);
  batch->seal(values.size());
  return batch;
}

inline Texts texts_of(const Batch& batch, std::size_t column = 0) {
  Texts out;
  const Field& field = batch.schema().fields[column];
  for (std::size_t row = 0; row < batch.rows(); ++row) {
    const ColumnView& view = batch.column(column);
    out.push_back(view.valid(row) ? std::optional(value_text(field.type, view, row)) : std::nullopt);
  }
  return out;
}

inline std::string joined(const Texts& texts) {
  std::string out;
  for (std::size_t i = 0; i < texts.size(); ++i) out += (i == 0 ? "" : "|") + texts[i].value_or("NULL");
  return out;
}

struct Converted {
  std::string texts;  // joined by |
  std::uint64_t changed = 0;
};

template <class T>
Converted convert(const Type& from, const Type& to, const Values<T>& values, LossPolicy policy = {}) {
  const SchemaPtr source = schema_of(from);
  Converter converter(source, schema_of(to), {std::move(policy)});
  const BatchPtr out = converter.convert(batch_of(source, values));
  return {joined(texts_of(*out)), converter.changed()[0]};
}

// The error that a call throws; none: the test fails.
inline Error error_of(const std::function<void()>& call) {
  try {
    call();
  } catch (const Error& error) {
    return error;
  }
  cr_assert_fail("an error was expected");
  return {Category::internal, "none", "no error"};
}

template <class T>
Error conversion_error(const Type& from, const Type& to, const Values<T>& values, LossPolicy policy = {}) {
  return error_of([&] { convert<T>(from, to, values, policy); });
}

inline LossPolicy policy(OnLoss action, std::optional<std::string> replacement = {}) {
  return {action, std::move(replacement)};
}

// For messages of assertions.
#define EXPECT_TEXTS(result, expected)                                                                      \
  do {                                                                                                      \
    const std::string got_ = (result).texts;                                                                \
    cr_expect(got_ == (expected), "got      %s\nexpected %s", got_.c_str(), std::string(expected).c_str()); \
  } while (false)

}  // namespace rowferry::rows::test
