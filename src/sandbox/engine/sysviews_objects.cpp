// sys.objects, sys.tables, sys.columns, sys.types, sys.indexes and their kin.
#include <fmt/format.h>

#include <array>

#include "sandbox/engine/partitions.hpp"
#include "sandbox/engine/sysviews.hpp"

namespace rowferry::sandbox::engine {

namespace {

std::string_view type_code(ObjectKind k) {
  switch (k) {
    case ObjectKind::table:
      return "U ";
    case ObjectKind::view:
      return "V ";
    case ObjectKind::procedure:
      return "P ";
    case ObjectKind::synonym:
      return "SN";
    case ObjectKind::trigger:
      return "TR";
    default:
      return "  ";
  }
}
std::string_view type_description(ObjectKind k) {
  switch (k) {
    case ObjectKind::table:
      return "USER_TABLE";
    case ObjectKind::view:
      return "VIEW";
    case ObjectKind::procedure:
      return "SQL_STORED_PROCEDURE";
    case ObjectKind::synonym:
      return "SYNONYM";
    default:
      return "SQL_TRIGGER";
  }
}

// Constraints are objects too.
struct PartObject {
  std::string name;
  int id;
  int parent;
  int schema;
  std::string_view type, description;
  std::int64_t created;
};
std::vector<PartObject> part_objects(const Object& o) {
  std::vector<PartObject> parts;
  if (o.def == nullptr) return parts;
  const auto add = [&](const std::string& name, int id, std::string_view type, std::string_view description) {
    if (id != 0) parts.push_back({name, id, o.id, o.schema_id, type, description, o.created});
  };
  for (const IndexDef& i : o.def->indexes)
    add(i.name, i.object_id, i.primary ? "PK" : "UQ", i.primary ? "PRIMARY_KEY_CONSTRAINT" : "UNIQUE_CONSTRAINT");
  for (const CheckDef& c : o.def->checks) add(c.name, c.object_id, "C ", "CHECK_CONSTRAINT");
  for (const ForeignKeyDef& f : o.def->foreign_keys) add(f.name, f.object_id, "F ", "FOREIGN_KEY_CONSTRAINT");
  for (const ColumnDef& c : o.def->columns) add(c.default_name, c.default_id, "D ", "DEFAULT_CONSTRAINT");
  return parts;
}

constexpr std::string_view object_columns =
    "name name!, object_id int!, principal_id int, schema_id int!, parent_object_id int!, type char(2)!, type_desc "
    "nvarchar(60), create_date datetime!, modify_date datetime!, "
    "is_ms_shipped bit!, is_published bit!, is_schema_published bit!";

VirtualTable objects(const ViewSource& s) {
  ViewBuilder b(s.context, object_columns);
  for (const ObjectPtr& o : s.objects) {
    b.row({N(o->name), I(o->id), Null(), I(o->schema_id), I(o->parent_id), N(type_code(o->kind)),
           N(type_description(o->kind)), T(o->created), T(o->modified), B(false), B(false), B(false)});
    for (const PartObject& p : part_objects(*o))
      b.row({N(p.name), I(p.id), Null(), I(p.schema), I(p.parent), N(p.type), N(p.description), T(p.created),
             T(p.created), B(false), B(false), B(false)});
  }
  return b.take();
}

VirtualTable tables(const ViewSource& s) {
  ViewBuilder b(s.context,
                "name name!, object_id int!, principal_id int, schema_id int!, parent_object_id int!, type char(2)!, "
                "type_desc nvarchar(60), create_date datetime!, modify_date "
                "datetime!, is_ms_shipped bit!, is_published bit!, is_schema_published bit!, lob_data_space_id int!, "
                "filestream_data_space_id int, max_column_id_used int!, "
                "lock_on_bulk_load bit!, uses_ansi_nulls bit, is_replicated bit, has_replication_filter bit, "
                "is_merge_published bit, is_sync_tran_subscribed bit, "
                "has_unchecked_assembly_data bit!, text_in_row_limit int, large_value_types_out_of_row bit, "
                "is_tracked_by_cdc bit, lock_escalation tinyint, lock_escalation_desc "
                "nvarchar(60), is_filetable bit, is_memory_optimized bit, durability tinyint, durability_desc "
                "nvarchar(60), temporal_type tinyint, temporal_type_desc nvarchar(60), "
                "history_table_id int, is_remote_data_archive_enabled bit, is_external bit!, history_retention_period "
                "int, history_retention_period_unit int, is_node bit, is_edge "
                "bit, ledger_type tinyint, ledger_type_desc nvarchar(60)");
  for (const ObjectPtr& o : s.tables())
    b.row({N(o->name),
           I(o->id),
           Null(),
           I(o->schema_id),
           I(0),
           N("U "),
           N("USER_TABLE"),
           T(o->created),
           T(o->modified),
           B(false),
           B(false),
           B(false),
           I(0),
           Null(),
           I(o->def->next_column_id - 1),
           B(false),
           B(true),
           B(false),
           B(false),
           B(false),
           B(false),
           B(false),
           I(0),
           B(false),
           B(false),
           I(0),
           N("TABLE"),
           B(false),
           B(false),
           I(0),
           N("SCHEMA_AND_DATA"),
           I(o->def->temporal),
           N(o->def->temporal == 2 ? "SYSTEM_VERSIONED_TEMPORAL_TABLE" : "NON_TEMPORAL_TABLE"),
           Null(),
           B(false),
           B(false),
           Null(),
           Null(),
           B(false),
           B(false),
           I(0),
           N("NON_LEDGER_TABLE")});
  return b.take();
}

VirtualTable views(const ViewSource& s) {
  ViewBuilder b(s.context,
                std::string(object_columns) +
                    ", is_replicated bit, has_replication_filter bit, has_opaque_metadata bit!, "
                    "has_unchecked_assembly_data bit!, with_check_option bit!, is_date_correlation_view bit!");
  for (const ObjectPtr& o : s.objects)
    if (o->kind == ObjectKind::view)
      b.row({N(o->name), I(o->id), Null(), I(o->schema_id), I(0), N("V "), N("VIEW"), T(o->created), T(o->modified),
             B(false), B(false), B(false), B(false), B(false), B(false), B(false), B(false), B(false)});
  return b.take();
}

VirtualTable synonyms(const ViewSource& s) {
  ViewBuilder b(s.context, std::string(object_columns) + ", base_object_name nvarchar(1035)");
  for (const ObjectPtr& o : s.objects) {
    if (o->kind != ObjectKind::synonym) continue;
    std::string base;
    for (const std::string& part : o->stands_for) base += (base.empty() ? "[" : ".[") + part + "]";
    b.row({N(o->name), I(o->id), Null(), I(o->schema_id), I(0), N("SN"), N("SYNONYM"), T(o->created), T(o->modified),
           B(false), B(false), B(false), N(base)});
  }
  return b.take();
}

VirtualTable procedures(const ViewSource& s) {
  ViewBuilder b(s.context, object_columns);
  for (const ObjectPtr& o : s.objects)
    if (o->kind == ObjectKind::procedure)
      b.row({N(o->name), I(o->id), Null(), I(o->schema_id), I(0), N("P "), N("SQL_STORED_PROCEDURE"), T(o->created),
             T(o->modified), B(false), B(false), B(false)});
  return b.take();
}

VirtualTable triggers(const ViewSource& s) {
  ViewBuilder b(s.context,
                "name name!, object_id int!, parent_class tinyint!, parent_class_desc nvarchar(60), parent_id int!, "
                "type char(2)!, type_desc nvarchar(60), create_date datetime!, "
                "modify_date datetime!, is_ms_shipped bit!, is_disabled bit!, is_not_for_replication bit!, "
                "is_instead_of_trigger bit!");
  for (const ObjectPtr& o : s.objects)
    if (o->kind == ObjectKind::trigger)
      b.row({N(o->name), I(o->id), I(1), N("OBJECT_OR_COLUMN"), I(o->parent_id), N("TR"), N("SQL_TRIGGER"),
             T(o->created), T(o->modified), B(false), B(o->disabled), B(false),
             B(upper_ascii(o->text).find("INSTEAD OF") != std::string::npos)});
  return b.take();
}

int user_type_id(const ColumnDef& c) {
  if (c.user_type == "sysname") return 256;
  if (c.user_type == "hierarchyid") return 128;
  if (c.user_type == "geometry") return 129;
  if (c.user_type == "geography") return 130;
  return system_type_id(c.type.kind);
}

VirtualTable columns(const ViewSource& s) {
  ViewBuilder b(s.context,
                "object_id int!, name name, column_id int!, system_type_id tinyint!, user_type_id int!, max_length "
                "smallint!, precision tinyint!, scale tinyint!, collation_name name, "
                "is_nullable bit, is_ansi_padded bit!, is_rowguidcol bit!, is_identity bit!, is_computed bit!, "
                "is_filestream bit!, is_replicated bit, is_non_sql_subscribed bit, "
                "is_merge_published bit, is_dts_replicated bit, is_xml_document bit!, xml_collection_id int!, "
                "default_object_id int!, rule_object_id int!, is_sparse bit, is_column_set "
                "bit, generated_always_type tinyint, generated_always_type_desc nvarchar(60), encryption_type int, "
                "encryption_type_desc nvarchar(64), encryption_algorithm_name name, "
                "column_encryption_key_id int, column_encryption_key_database_name name, is_hidden bit!, is_masked "
                "bit!, graph_type int, graph_type_desc nvarchar(60)");
  constexpr std::array<std::string_view, 3> always{"NOT_APPLICABLE", "AS_ROW_START", "AS_ROW_END"};
  const auto add = [&](int object, const ColumnDef& c) {
    b.row({I(object),
           N(c.name),
           I(c.id),
           I(c.user_type == "hierarchyid" || c.user_type == "geometry" || c.user_type == "geography"
                 ? 240
                 : system_type_id(c.type.kind)),
           I(user_type_id(c)),
           I(catalogue_length(c.type)),
           I(catalogue_precision(c.type)),
           I(catalogue_scale(c.type)),
           N_or_null(c.collation),
           B(c.nullable),
           B(is_string(c.type.kind) || is_binary(c.type.kind)),
           B(c.rowguidcol),
           B(c.identity.has_value()),
           B(c.computed != nullptr),
           B(false),
           B(false),
           B(false),
           B(false),
           B(false),
           B(false),
           I(0),
           I(c.default_id),
           I(0),
           B(c.sparse),
           B(false),
           I(c.generated_always),
           N(always.at(static_cast<std::size_t>(c.generated_always))),
           Null(),
           Null(),
           Null(),
           Null(),
           Null(),
           B(c.hidden),
           B(false),
           Null(),
           Null()});
  };
  for (const ObjectPtr& o : s.objects) {
    if (o->def != nullptr)
      for (const ColumnDef& c : o->def->columns) add(o->id, c);
    if (o->kind != ObjectKind::view) continue;
    const auto query = compile_query(
        s.context, parse_query(std::string_view(o->text).substr(o->body), parse_options(s.context)), nullptr);
    int id = 0;
    for (const OutputColumn& c : query->columns) {
      ColumnDef d;
      d.name = c.name;
      d.id = ++id;
      d.type = c.type;
      d.nullable = c.nullable;
      if (is_string(c.type.kind)) d.collation = collation_name(c.type.collation);
      add(o->id, d);
    }
  }
  return b.take();
}

VirtualTable computed_columns(const ViewSource& s) {
  ViewBuilder b(s.context,
                "object_id int!, name name, column_id int!, system_type_id tinyint!, user_type_id int!, max_length "
                "smallint!, precision tinyint!, scale tinyint!, collation_name name, is_nullable bit, is_computed "
                "bit!, definition max, uses_database_collation bit!, is_persisted bit!");
  for (const ObjectPtr& o : s.tables())
    for (const ColumnDef& c : o->def->columns)
      if (c.computed != nullptr)
        b.row({I(o->id), N(c.name), I(c.id), I(system_type_id(c.type.kind)), I(user_type_id(c)),
               I(catalogue_length(c.type)), I(catalogue_precision(c.type)), I(catalogue_scale(c.type)),
               N_or_null(c.collation), B(c.nullable), B(true), N(c.computed_text), B(true), B(c.persisted)});
  return b.take();
}

VirtualTable identity_columns(const ViewSource& s) {
  ViewBuilder b(s.context,
                "object_id int!, name name, column_id int!, system_type_id tinyint!, user_type_id int!, max_length "
                "smallint!, precision tinyint!, scale tinyint!, is_nullable bit, is_identity bit!, seed_value "
                "sql_variant, increment_value sql_variant, last_value sql_variant, is_not_for_replication bit");
  for (const ObjectPtr& o : s.tables())
    for (const ColumnDef& c : o->def->columns)
      if (c.identity)
        b.row({I(o->id), N(c.name), I(c.id), I(system_type_id(c.type.kind)), I(user_type_id(c)),
               I(catalogue_length(c.type)), I(catalogue_precision(c.type)), I(catalogue_scale(c.type)), B(false),
               B(true), Number(c.identity->seed), Number(c.identity->increment),
               o->identity->used ? Number(o->identity->last) : Null(), B(false)});
  return b.take();
}

VirtualTable types(const ViewSource& s) {
  ViewBuilder b(s.context,
                "name name!, system_type_id tinyint!, user_type_id int!, schema_id int!, principal_id int, max_length "
                "smallint!, precision tinyint!, scale tinyint!, collation_name name, "
                "is_nullable bit, is_user_defined bit!, is_assembly_type bit!, default_object_id int!, rule_object_id "
                "int!, is_table_type bit!");
  for (int k = 0; k <= static_cast<int>(Kind::variant); ++k) {
    const Kind kind = static_cast<Kind>(k);
    if (kind == Kind::udt || kind == Kind::vector || kind == Kind::json) continue;
    Type t = make_type(kind, is_binary(kind) || is_string(kind) ? 8000 : 0, 38, 38);
    if (kind == Kind::nchar || kind == Kind::nvarchar) t.length = 4000;
    if (kind == Kind::time || kind == Kind::datetime2 || kind == Kind::datetimeoffset) t.scale = 7;
    const bool text = is_string(kind) && kind != Kind::xml;
    b.row({N(type_name(kind)), I(system_type_id(kind)), I(system_type_id(kind)), I(4), Null(), I(catalogue_length(t)),
           I(catalogue_precision(t)), I(catalogue_scale(t)), text ? N(s.database->collation_name) : Null(),
           B(kind != Kind::rowversion), B(false), B(false), I(0), I(0), B(false)});
  }
  b.row({N("sysname"), I(231), I(256), I(4), Null(), I(256), I(0), I(0), N(s.database->collation_name), B(false),
         B(false), B(false), I(0), I(0), B(false)});
  constexpr std::array<std::pair<std::string_view, int>, 3> clr{
      {{"hierarchyid", 128}, {"geometry", 129}, {"geography", 130}}};
  for (const auto& [name, id] : clr)
    b.row({N(name), I(240), I(id), I(4), Null(), I(id == 128 ? 892 : -1), I(0), I(0), Null(), B(true), B(false),
           B(true), I(0), I(0), B(false)});
  return b.take();
}

VirtualTable schemas(const ViewSource& s) {
  ViewBuilder b(s.context, "name name!, schema_id int!, principal_id int");
  for (const auto& [key, schema] : s.database->schemas)
    b.row({N(schema.name), I(schema.id), I(schema.id == 4 ? 4 : schema.id == 3 ? 3 : 1)});
  return b.take();
}

int data_space(const Object& table) {
  return table.def->partition_scheme == nullptr ? 1 : table.def->partition_scheme->data_space_id;
}

VirtualTable indexes(const ViewSource& s) {
  ViewBuilder b(s.context,
                "object_id int!, name name, index_id int!, type tinyint!, type_desc nvarchar(60), is_unique bit, "
                "data_space_id int, ignore_dup_key bit, is_primary_key bit, "
                "is_unique_constraint bit, fill_factor tinyint!, is_padded bit, is_disabled bit, is_hypothetical bit, "
                "is_ignored_in_optimization bit, allow_row_locks bit, "
                "allow_page_locks bit, has_filter bit, filter_definition max, compression_delay int, "
                "suppress_dup_key_messages bit, auto_created bit, optimize_for_sequential_key bit");
  for (const ObjectPtr& o : s.tables()) {
    bool clustered = false;
    for (const IndexDef& i : o->def->indexes) clustered = clustered || i.clustered;
    if (!clustered)
      b.row({I(o->id), Null(),   I(0),   I(0),     N("HEAP"), B(false), I(data_space(*o)), B(false),
             B(false), B(false), I(0),   B(false), B(false),  B(false), B(false),          B(true),
             B(true),  B(false), Null(), Null(),   B(false),  B(false), B(false)});
    for (const IndexDef& i : o->def->indexes) {
      const int type = i.columnstore ? (i.clustered ? 5 : 6) : i.clustered ? 1 : 2;
      b.row({I(o->id),
             N(i.name),
             I(i.index_id),
             I(type),
             N(type == 5   ? "CLUSTERED COLUMNSTORE"
               : type == 6 ? "NONCLUSTERED COLUMNSTORE"
               : type == 1 ? "CLUSTERED"
                           : "NONCLUSTERED"),
             B(i.unique),
             I(i.clustered ? data_space(*o) : 1),
             B(i.ignore_dup_key),
             B(i.primary),
             B(i.unique_constraint),
             I(0),
             B(false),
             B(i.disabled),
             B(false),
             B(false),
             B(true),
             B(true),
             B(!i.filter.empty()),
             N_or_null(i.filter),
             Null(),
             B(false),
             B(false),
             B(false)});
    }
  }
  return b.take();
}

VirtualTable index_columns(const ViewSource& s) {
  ViewBuilder b(
      s.context,
      "object_id int!, index_id int!, index_column_id int!, column_id int!, key_ordinal tinyint!, partition_ordinal "
      "tinyint!, is_descending_key bit, is_included_column bit, column_store_order_ordinal tinyint");
  for (const ObjectPtr& o : s.tables()) {
    const auto column_id = [&](int column) { return I(o->def->columns[static_cast<std::size_t>(column)].id); };
    const int by = o->def->partition_column;
    bool clustered = false;
    for (const IndexDef& i : o->def->indexes) {
      clustered = clustered || i.clustered;
      int ordinal = 0;
      bool listed = false;
      for (const KeyColumn& k : i.keys) {
        ++ordinal;
        const bool partitions = i.clustered && k.column == by;
        listed = listed || partitions;
        b.row({I(o->id), I(i.index_id), I(ordinal), column_id(k.column), I(i.columnstore ? 0 : ordinal),
               I(partitions ? 1 : 0), B(k.descending), B(false), I(0)});
      }
      for (const int c : i.included) {
        ++ordinal;
        b.row({I(o->id), I(i.index_id), I(ordinal), column_id(c), I(0), I(0), B(false), B(true), I(0)});
      }
      if (i.clustered && by >= 0 && !listed)
        b.row({I(o->id), I(i.index_id), I(ordinal + 1), column_id(by), I(0), I(1), B(false), B(false), I(0)});
    }
    if (!clustered && by >= 0) b.row({I(o->id), I(0), I(1), column_id(by), I(0), I(1), B(false), B(false), I(0)});
  }
  return b.take();
}

// The partitions of the heap or clustered index, one for each other: number from 1, rows.
template <class F>
void each_partition(const ViewSource& s, F&& visit) {
  for (const ObjectPtr& o : s.tables()) {
    const auto rows = static_cast<std::int64_t>(o->data->count(transaction_id(s.context.session)));
    const auto of_table = [&](int index) {
      const std::vector<std::uint64_t> parts = partition_rows(s.context, *o);
      for (std::size_t p = 0; p < parts.size(); ++p)
        visit(*o, index, static_cast<int>(p) + 1, static_cast<std::int64_t>(parts[p]));
    };
    bool clustered = false;
    for (const IndexDef& i : o->def->indexes) clustered = clustered || i.clustered;
    if (!clustered) of_table(0);
    for (const IndexDef& i : o->def->indexes) {
      if (i.clustered) {
        of_table(i.index_id);
      } else {
        visit(*o, i.index_id, 1, rows);
      }
    }
  }
}

std::int64_t partition_id(const Object& o, int index, int number) {
  return (std::int64_t{72'057'594} << 32U) + (static_cast<std::int64_t>(o.id) * 256 + index) +
         (static_cast<std::int64_t>(number - 1) << 40U);
}

std::int64_t pages_of(const Object& o) {
  return static_cast<std::int64_t>(o.data->bytes_kept() / 8192 + (o.data->bytes_kept() != 0 ? 1 : 0));
}

// The table's pages, of which each partition has its share by rows.
std::int64_t pages_of(const Object& o, std::int64_t rows) {
  const auto all = static_cast<std::int64_t>(o.data->committed());
  if (o.def->partition_scheme == nullptr || all == 0) return pages_of(o);
  return pages_of(o) * rows / all;
}

VirtualTable partitions(const ViewSource& s) {
  ViewBuilder b(
      s.context,
      "partition_id bigint!, object_id int!, index_id int!, partition_number int!, hobt_id bigint!, rows bigint, "
      "filestream_filegroup_id smallint!, data_compression tinyint!, data_compression_desc nvarchar(60)");
  each_partition(s, [&](const Object& o, int index, int number, std::int64_t rows) {
    const std::int64_t id = partition_id(o, index, number);
    b.row({I(id), I(o.id), I(index), I(number), I(id), I(rows), I(0), I(0), N("NONE")});
  });
  return b.take();
}

VirtualTable partition_stats(const ViewSource& s) {
  ViewBuilder b(s.context,
                "partition_id bigint, object_id int!, index_id int!, partition_number int!, in_row_data_page_count "
                "bigint, in_row_used_page_count bigint, in_row_reserved_page_count "
                "bigint, lob_used_page_count bigint, lob_reserved_page_count bigint, row_overflow_used_page_count "
                "bigint, row_overflow_reserved_page_count bigint, used_page_count bigint, "
                "reserved_page_count bigint, row_count bigint");
  each_partition(s, [&](const Object& o, int index, int number, std::int64_t rows) {
    const std::int64_t pages = pages_of(o, rows);
    b.row({I(partition_id(o, index, number)), I(o.id), I(index), I(number), I(pages), I(pages), I(pages), I(0), I(0),
           I(0), I(0), I(pages), I(pages), I(rows)});
  });
  return b.take();
}

VirtualTable allocation_units(const ViewSource& s) {
  ViewBuilder b(s.context,
                "allocation_unit_id bigint!, type tinyint!, type_desc nvarchar(60), container_id bigint!, "
                "data_space_id int, total_pages bigint!, used_pages bigint!, data_pages bigint!");
  each_partition(s, [&](const Object& o, int index, int number, std::int64_t rows) {
    const std::int64_t pages = pages_of(o, rows);
    const std::int64_t id = partition_id(o, index, number);
    b.row({I(id), I(1), N("IN_ROW_DATA"), I(id), I(1), I(pages), I(pages), I(pages)});
  });
  return b.take();
}

VirtualTable modules(const ViewSource& s) {
  ViewBuilder b(s.context,
                "object_id int!, definition max, uses_ansi_nulls bit, uses_quoted_identifier bit, is_schema_bound bit, "
                "uses_database_collation bit, is_recompiled bit");
  for (const ObjectPtr& o : s.objects)
    if (!o->text.empty())
      b.row({I(o->id), Value::of_text(o->text, nvarchar_type(max_length, s.context.collation())), B(true), B(true),
             B(upper_ascii(o->text).find("SCHEMABINDING") != std::string::npos), B(false), B(false)});
  return b.take();
}

constexpr std::array table{SystemView{"objects", objects},
                           SystemView{"all_objects", objects},
                           SystemView{"tables", tables},
                           SystemView{"views", views},
                           SystemView{"all_views", views},
                           SystemView{"procedures", procedures},
                           SystemView{"synonyms", synonyms},
                           SystemView{"triggers", triggers},
                           SystemView{"columns", columns},
                           SystemView{"all_columns", columns},
                           SystemView{"computed_columns", computed_columns},
                           SystemView{"identity_columns", identity_columns},
                           SystemView{"types", types},
                           SystemView{"schemas", schemas},
                           SystemView{"indexes", indexes},
                           SystemView{"index_columns", index_columns},
                           SystemView{"partitions", partitions},
                           SystemView{"dm_db_partition_stats", partition_stats},
                           SystemView{"allocation_units", allocation_units},
                           SystemView{"sql_modules", modules},
                           SystemView{"all_sql_modules", modules}};

}  // namespace

std::span<const SystemView> object_views() { return table; }

}  // namespace rowferry::sandbox::engine
