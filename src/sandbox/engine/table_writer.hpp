// Writing rows: values to stored rows, with everything that a column or constraint demands.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "sandbox/engine/query.hpp"

namespace rowferry::sandbox::engine {

struct WriteOptions {
  std::string_view verb = "INSERT";
  bool check_constraints = true;  // CHECK and FOREIGN KEY
  bool identity_given = false;    // explicit identity values are taken
  bool bulk = false;              // rows into blocks of the transaction's own
};

class TableWriter {
 public:
  TableWriter(const Context& context, ObjectPtr table, WriteOptions options);

  // One value per column of the definition; nothing given = DEFAULT, IDENTITY, NULL. Throws SqlError, WouldBlock.
  // False: a duplicate that IGNORE_DUP_KEY drops.
  bool insert(std::vector<std::optional<Value>>& values);
  // The stored row for the same, checked but not inserted; valid until the next call.
  ByteView make_row(std::vector<std::optional<Value>>& values);
  // A row whose values are final (identity, defaults and rowversion done) but not checked.
  bool insert_values(std::vector<Value>& values);
  // A stored row as it is: only unique keys are looked at (the caller knows that nothing else is to be checked).
  bool insert_stored(ByteView row);
  void remove(RowId id);
  void check_unchanged(RowId id);
  // After rows were removed (DELETE, UPDATE): no foreign key may point at them. Cascades.
  void check_references();

  std::vector<Value> values_of(ByteView row);
  void check_row(std::vector<Value>& values);                  // CHECK and FOREIGN KEY
  bool needs_checks() const;                                   // CHECK, FOREIGN KEY
  Value column_value(std::size_t column, const Value& given);  // converted, or 2628, 515, …
  Value next_identity();
  void note_identity(Int128 value);
  Value next_row_version();
  Value default_of(std::size_t column);
  const Object& table() const noexcept { return *table_; }
  const TableDef& def() const noexcept { return *def_; }
  std::string full_name() const;   // db.schema.table
  std::string short_name() const;  // schema.table

 private:
  void check_foreign_key(const ForeignKeyDef& fk, const std::vector<Value>& values);
  bool check_keys(ByteView row);
  void encode_row(const std::vector<Value>& values);
  [[noreturn]] void raise_duplicate(std::size_t key, ByteView row);

  const Context& context_;
  ObjectPtr table_;
  TableDefPtr def_;
  std::shared_ptr<TableData> data_;
  WriteOptions options_;
  Layout layout_;
  std::vector<const IndexDef*> unique_;  // beside data_->keys()
  std::vector<std::size_t> stored_columns_;
  ByteBuffer buffer_;
  std::string key_;
  std::optional<Scope> scope_;
  std::vector<Value> row_values_;
  struct Removed {
    const ForeignKeyDef* fk;
    ObjectPtr child;
    std::unordered_set<std::string> keys;
  };
  std::vector<Removed> removed_;
  bool removed_known_ = false;
  std::vector<std::vector<Value>> removed_rows_;
};

// The unique indexes of a definition that are enforced, in the order of TableData::keys().
std::vector<const IndexDef*> enforced_keys(const TableDef& def);
// Fresh storage for a definition, its key indexes included.
std::shared_ptr<TableData> make_data(const TableDef& def);
std::string key_text(const std::vector<Value>& values);

}  // namespace rowferry::sandbox::engine
