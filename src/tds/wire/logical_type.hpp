// What a SQL Server column is in a Batch (docs/types.md), and how such a column is described in a bulk load.
#pragma once

#include "rows/type.hpp"
#include "tds/wire/types.hpp"

namespace rowferry::tds {

// The logical type that holds every value of the column, with its limits (length, digits, range, code page): what the
// row decoder produces and what the bulk encoder takes. rowversion is binary(8); sql_variant, xml and vector are text;
// a UDT is binary; char and varchar of a UTF-8 collation count bytes.
// Throws Error(unsupported, "type_unsupported" / "unknown_collation") with the column's name.
rows::Type logical_type(const ColumnMeta& column);

// The column as a bulk load describes it (MS-TDS 2.2.6.1), from the server's own metadata of the same column in a
// result: the N-form of fixed types, flags kept (nullability must be the target's own), xml and json as nvarchar(max),
// a UDT as varbinary(max). `declared` is its type in the INSERT BULK statement.
struct BulkForm {
  ColumnMeta meta;
  std::string declared;  // "decimal(10,2)", "xml"
};
BulkForm bulk_form(const ColumnMeta& of_result);

}  // namespace rowferry::tds
