// Field and Schema: the columns of a Batch, in order.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "rows/type.hpp"

namespace rowferry::rows {

struct Field {
  std::string name;
  Type type;
  bool nullable = true;
  bool operator==(const Field&) const = default;
};

struct Schema {
  std::vector<Field> fields;
  std::size_t size() const noexcept { return fields.size(); }
  bool operator==(const Schema&) const = default;
};
using SchemaPtr = std::shared_ptr<const Schema>;

}  // namespace rowferry::rows
