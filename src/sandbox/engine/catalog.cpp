#include "sandbox/engine/catalog.hpp"

#include <chrono>

namespace rowferry::sandbox::engine {

int TableDef::find(std::string_view name) const {
  const std::string folded = fold_name(name);
  for (std::size_t i = 0; i < columns.size(); ++i)
    if (fold_name(columns[i].name) == folded) return static_cast<int>(i);
  return -1;
}

const IndexDef* TableDef::primary_key() const {
  for (const IndexDef& index : indexes)
    if (index.primary) return &index;
  return nullptr;
}

const ColumnDef* TableDef::identity_column() const {
  for (const ColumnDef& column : columns)
    if (column.identity) return &column;
  return nullptr;
}

Layout TableDef::layout() const {
  Layout layout;
  for (const ColumnDef& column : columns)
    if (column.stored >= 0) layout.emplace_back(column.type);
  return layout;
}

void TableDef::place_columns() {
  int next = 0;
  for (ColumnDef& column : columns) column.stored = column.computed == nullptr ? next++ : -1;
}

Schema* Database::schema(std::string_view schema_name) {
  const auto found = schemas.find(fold_name(schema_name));
  return found == schemas.end() ? nullptr : &found->second;
}

const Schema* Database::schema_by_id(int schema_id) const {
  for (const auto& [folded, s] : schemas)
    if (s.id == schema_id) return &s;
  return nullptr;
}

ObjectPtr Database::find(int schema_id, std::string_view object_name) const {
  const auto found = objects.find({schema_id, fold_name(object_name)});
  return found == objects.end() ? nullptr : found->second;
}

ObjectPtr Database::by_id(int object_id) const {
  for (const auto& [key, object] : objects)
    if (object->id == object_id) return object;
  return nullptr;
}

int Database::new_object_id() {
  next_object_id += 16'000'057;
  if (next_object_id > 2'100'000'000 || next_object_id < 0) next_object_id -= 2'000'000'000;
  while (by_id(next_object_id) != nullptr || next_object_id <= 0) ++next_object_id;
  return next_object_id;
}

std::string ObjectName::text() const {
  std::string out;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    if (i != 0) out += '.';
    out += parts[i];
  }
  return out;
}

std::optional<ObjectName> parse_name(std::string_view text) {
  ObjectName name;
  std::size_t at = 0;
  const auto blanks = [&] {
    while (at < text.size() && text[at] == ' ') ++at;
  };
  for (;;) {
    std::string part;
    blanks();
    if (at < text.size() && (text[at] == '[' || text[at] == '"')) {
      const char close = text[at] == '[' ? ']' : '"';
      for (++at;; ++at) {
        if (at >= text.size()) return std::nullopt;
        if (text[at] == close) {
          if (at + 1 >= text.size() || text[at + 1] != close) break;
          ++at;
        }
        part += text[at];
      }
      ++at;
      if (part.empty()) return std::nullopt;
      blanks();
    } else {
      while (at < text.size() && text[at] != '.') part += text[at++];
      while (!part.empty() && part.back() == ' ') part.pop_back();
    }
    name.parts.push_back(std::move(part));
    if (at >= text.size()) break;
    if (text[at] != '.') return std::nullopt;
    ++at;
  }
  if (name.parts.size() > 4 || name.parts.back().empty()) return std::nullopt;
  return name;
}

std::string quote_name(std::string_view name) {
  std::string out = "[";
  for (const char c : name) {
    out += c;
    if (c == ']') out += ']';
  }
  return out + "]";
}

std::int64_t now_ticks() {
  const auto since = std::chrono::system_clock::now().time_since_epoch();
  constexpr std::int64_t unix_epoch = 719'162LL * ticks_per_day;
  return unix_epoch + std::chrono::duration_cast<std::chrono::nanoseconds>(since).count() / 100;
}

}  // namespace rowferry::sandbox::engine
