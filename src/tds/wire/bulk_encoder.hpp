// Bulk load (MS-TDS 2.2.6.1): Batches become COLMETADATA, ROW tokens and the final DONE of a bulk message, and the
// INSERT BULK statement that announces them.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "rows/batch.hpp"
#include "tds/wire/types.hpp"

namespace rowferry::tds {

// One column of a load. `meta` as bulk_form() makes it: the server reads the bytes by it, and refuses the load when it
// disagrees with `declared` or with the target's nullability.
struct BulkColumn {
  ColumnMeta meta;
  std::string declared;   // type in the INSERT BULK statement; empty: type_name(meta.type)
  std::string collation;  // COLLATE name, unquoted; char and varchar bytes are read in its code page. Empty: none
  rows::Type type;        // of the Batch's column: exactly logical_type() of the target column
};

struct BulkOrder {
  std::string column;
  bool descending = false;
};

struct BulkOptions {
  bool table_lock = false;         // TABLOCK
  bool check_constraints = false;  // CHECK_CONSTRAINTS
  bool fire_triggers = false;      // FIRE_TRIGGERS
  bool keep_nulls = false;         // KEEP_NULLS
  std::optional<std::uint64_t> rows_per_batch;
  std::optional<std::uint64_t> kilobytes_per_batch;
  std::vector<BulkOrder> order;
};

// [name] with ] doubled. Throws Error(input, "bad_name") for an empty name.
std::string quote_name(std::string_view name);
// [a].[b].[c]
std::string quote_names(const std::vector<std::string>& parts);
// The whole statement. `table`: exact parts, outermost first.
std::string insert_bulk_statement(const std::vector<std::string>& table, const std::vector<BulkColumn>& columns,
                                  const BulkOptions& options);

// Encodes one bulk message's tokens. Batches have exactly the columns' types (rows::Converter made them so); what no
// bytes of the column's form can say is an error before any byte of its row is written:
// Error(data, "value_does_not_fit") with column and row for money outside its range,
// Error(internal, "bulk_value") for everything that the converter should have caught.
// Lifecycle: columns() once, rows() for each stretch of rows, done() at the end.
class BulkEncoder {
 public:
  // Throws Error(internal, "bulk_type") when a logical type and its column's form do not belong together.
  explicit BulkEncoder(std::vector<BulkColumn> columns);
  ~BulkEncoder();
  BulkEncoder(BulkEncoder&&) noexcept;
  BulkEncoder& operator=(BulkEncoder&&) noexcept;

  void columns(ByteBuffer& to) const;
  // Rows [begin, end) of the batch as ROW tokens. Appends nothing when it throws.
  void rows(const rows::Batch& batch, std::size_t begin, std::size_t end, ByteBuffer& to);
  static void done(ByteBuffer& to);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace rowferry::tds
