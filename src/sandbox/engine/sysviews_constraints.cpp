// Constraints, and the parts of a database that the sandbox has none of.
#include <fmt/format.h>

#include <array>

#include "sandbox/engine/partitions.hpp"
#include "sandbox/engine/sysviews.hpp"

namespace rowferry::sandbox::engine {

namespace {

constexpr std::string_view object_part =
    "name name!, object_id int!, principal_id int, schema_id int!, parent_object_id int!, type char(2)!, type_desc "
    "nvarchar(60), create_date datetime!, modify_date datetime!, "
    "is_ms_shipped bit!, is_published bit!, is_schema_published bit!, ";

VirtualTable key_constraints(const ViewSource& s) {
  ViewBuilder b(s.context, std::string(object_part) + "unique_index_id int, is_system_named bit!, is_enforced bit");
  for (const ObjectPtr& o : s.tables())
    for (const IndexDef& i : o->def->indexes)
      if (i.object_id != 0)
        b.row({N(i.name), I(i.object_id), Null(), I(o->schema_id), I(o->id), N(i.primary ? "PK" : "UQ"),
               N(i.primary ? "PRIMARY_KEY_CONSTRAINT" : "UNIQUE_CONSTRAINT"), T(o->created), T(o->modified), B(false),
               B(false), B(false), I(i.index_id), B(i.system_named), B(true)});
  return b.take();
}

VirtualTable default_constraints(const ViewSource& s) {
  ViewBuilder b(s.context, std::string(object_part) + "parent_column_id int!, definition max, is_system_named bit!");
  for (const ObjectPtr& o : s.tables())
    for (const ColumnDef& c : o->def->columns)
      if (c.default_id != 0)
        b.row({N(c.default_name), I(c.default_id), Null(), I(o->schema_id), I(o->id), N("D "), N("DEFAULT_CONSTRAINT"),
               T(o->created), T(o->modified), B(false), B(false), B(false), I(c.id),
               Value::of_text(c.default_text, nvarchar_type(max_length, s.context.collation())),
               B(c.default_name.starts_with("DF__"))});
  return b.take();
}

VirtualTable check_constraints(const ViewSource& s) {
  ViewBuilder b(s.context, std::string(object_part) +
                               "is_disabled bit!, is_not_for_replication bit!, is_not_trusted bit!, parent_column_id "
                               "int!, definition max, uses_database_collation bit, is_system_named bit!");
  for (const ObjectPtr& o : s.tables())
    for (const CheckDef& c : o->def->checks)
      b.row({N(c.name), I(c.object_id), Null(), I(o->schema_id), I(o->id), N("C "), N("CHECK_CONSTRAINT"),
             T(o->created), T(o->modified), B(false), B(false), B(false), B(c.disabled), B(false), B(c.not_trusted),
             I(c.column < 0 ? 0 : o->def->columns[static_cast<std::size_t>(c.column)].id),
             Value::of_text(c.text, nvarchar_type(max_length, s.context.collation())), B(true),
             B(c.name.starts_with("CK__"))});
  return b.take();
}

VirtualTable foreign_keys(const ViewSource& s) {
  ViewBuilder b(
      s.context,
      std::string(object_part) +
          "referenced_object_id int, key_index_id int, is_disabled bit!, is_not_for_replication bit!, is_not_trusted "
          "bit!, delete_referential_action tinyint, delete_referential_action_desc nvarchar(60), "
          "update_referential_action tinyint, update_referential_action_desc nvarchar(60), is_system_named bit!");
  constexpr std::array<std::string_view, 4> actions{"NO_ACTION", "CASCADE", "SET_NULL", "SET_DEFAULT"};
  for (const ObjectPtr& o : s.tables())
    for (const ForeignKeyDef& f : o->def->foreign_keys)
      b.row({N(f.name),
             I(f.object_id),
             Null(),
             I(o->schema_id),
             I(o->id),
             N("F "),
             N("FOREIGN_KEY_CONSTRAINT"),
             T(o->created),
             T(o->modified),
             B(false),
             B(false),
             B(false),
             I(f.referenced_id),
             I(1),
             B(f.disabled),
             B(false),
             B(f.not_trusted),
             I(f.on_delete),
             N(actions.at(static_cast<std::size_t>(f.on_delete))),
             I(f.on_update),
             N(actions.at(static_cast<std::size_t>(f.on_update))),
             B(f.name.starts_with("FK__"))});
  return b.take();
}

VirtualTable foreign_key_columns(const ViewSource& s) {
  ViewBuilder b(s.context,
                "constraint_object_id int!, constraint_column_id int!, parent_object_id int!, parent_column_id int!, "
                "referenced_object_id int!, referenced_column_id int!");
  for (const ObjectPtr& o : s.tables())
    for (const ForeignKeyDef& f : o->def->foreign_keys) {
      const ObjectPtr parent = s.database->by_id(f.referenced_id);
      for (std::size_t i = 0; i < f.columns.size() && parent != nullptr; ++i)
        b.row({I(f.object_id), I(static_cast<std::int64_t>(i) + 1), I(o->id),
               I(o->def->columns[static_cast<std::size_t>(f.columns[i])].id), I(parent->id),
               I(parent->def->columns[static_cast<std::size_t>(f.referenced[i])].id)});
    }
  return b.take();
}

VirtualTable periods(const ViewSource& s) {
  ViewBuilder b(s.context,
                "name name, period_type tinyint!, period_type_desc nvarchar(60), object_id int!, start_column_id int!, "
                "end_column_id int!");
  for (const ObjectPtr& o : s.tables())
    if (o->def->period_start >= 0 && o->def->period_end >= 0)
      b.row({N("SYSTEM_TIME"), I(1), N("SYSTEM_TIME_PERIOD"), I(o->id),
             I(o->def->columns[static_cast<std::size_t>(o->def->period_start)].id),
             I(o->def->columns[static_cast<std::size_t>(o->def->period_end)].id)});
  return b.take();
}

// Views and procedures that name a table in their text.
VirtualTable dependencies(const ViewSource& s) {
  ViewBuilder b(s.context,
                "referencing_id int!, referencing_minor_id int!, referencing_class tinyint, referencing_class_desc "
                "nvarchar(60), is_schema_bound_reference bit!, referenced_class tinyint, "
                "referenced_class_desc nvarchar(60), referenced_server_name name, referenced_database_name name, "
                "referenced_schema_name name, referenced_entity_name name, referenced_id int, "
                "referenced_minor_id int!, is_caller_dependent bit!, is_ambiguous bit!");
  for (const ObjectPtr& o : s.objects) {
    if (o->text.empty()) continue;
    const std::string text = fold_name(o->text);
    const bool bound = text.find("schemabinding") != std::string::npos;
    for (const ObjectPtr& t : s.objects) {
      if (t == o || text.find(fold_name(t->name)) == std::string::npos || t->kind == ObjectKind::trigger) continue;
      const Schema* schema = s.schema_of(*t);
      b.row({I(o->id), I(0), I(1), N("OBJECT_OR_COLUMN"), B(bound), I(1), N("OBJECT_OR_COLUMN"), Null(), Null(),
             schema == nullptr ? Null() : N(schema->name), N(t->name), I(t->id), I(0), B(false), B(false)});
    }
  }
  return b.take();
}

// Views with the right columns and no rows: the sandbox has nothing of the kind.
template <const char* columns>
VirtualTable empty_view(const ViewSource& s) {
  return ViewBuilder(s.context, columns).take();
}
VirtualTable partition_schemes(const ViewSource& s) {
  ViewBuilder b(s.context,
                "name name!, data_space_id int!, type char(2)!, type_desc nvarchar(60), is_default bit, is_system bit, "
                "function_id int!");
  for (const auto& [key, scheme] : s.database->partition_schemes)
    b.row({N(scheme->name), I(scheme->data_space_id), N("PS"), N("PARTITION_SCHEME"), B(false), B(false),
           I(scheme->function->id)});
  return b.take();
}

VirtualTable partition_functions(const ViewSource& s) {
  ViewBuilder b(s.context,
                "name name!, function_id int!, type char(2)!, type_desc nvarchar(60), fanout int!, "
                "boundary_value_on_right bit!, is_system bit, create_date datetime!, modify_date datetime!");
  for (const auto& [key, f] : s.database->partition_functions)
    b.row({N(f->name), I(f->id), N("R "), N("RANGE"), I(static_cast<std::int64_t>(f->partitions())), B(f->right),
           B(false), T(f->created), T(f->created)});
  return b.take();
}

VirtualTable partition_range_values(const ViewSource& s) {
  ViewBuilder b(s.context, "function_id int!, boundary_id int!, parameter_id int!, value sql_variant");
  for (const auto& [key, f] : s.database->partition_functions)
    for (std::size_t i = 0; i < f->boundaries.size(); ++i)
      b.row({I(f->id), I(static_cast<std::int64_t>(i) + 1), I(1), f->boundaries[i]});
  return b.take();
}

VirtualTable partition_parameters(const ViewSource& s) {
  ViewBuilder b(s.context,
                "function_id int!, parameter_id int!, system_type_id tinyint!, max_length smallint!, precision "
                "tinyint!, scale tinyint!, collation_name name, user_type_id int!");
  for (const auto& [key, f] : s.database->partition_functions)
    b.row({I(f->id), I(1), I(system_type_id(f->type.kind)), I(catalogue_length(f->type)),
           I(catalogue_precision(f->type)), I(catalogue_scale(f->type)),
           N_or_null(is_string(f->type.kind) ? collation_name(f->type.collation) : std::string()),
           I(system_type_id(f->type.kind))});
  return b.take();
}

constexpr char c_policies[] =
    "name name!, object_id int!, principal_id int, schema_id int!, parent_object_id int!, type char(2)!, is_enabled "
    "bit!, is_not_for_replication bit!";
constexpr char c_predicates[] =
    "object_id int!, security_predicate_id int!, target_object_id int!, predicate_definition max, predicate_type int, "
    "operation int";
constexpr char c_permissions[] =
    "class tinyint!, class_desc nvarchar(60), major_id int!, minor_id int!, grantee_principal_id int!, "
    "grantor_principal_id int!, type char(4)!, permission_name nvarchar(128), state char(1)!, state_desc nvarchar(60)";
constexpr char c_properties[] =
    "class tinyint!, class_desc nvarchar(60), major_id int!, minor_id int!, name name!, value sql_variant";
constexpr char c_synonyms[] = "name name!, object_id int!, schema_id int!, base_object_name nvarchar(1035)";
constexpr char c_sequences[] =
    "name name!, object_id int!, schema_id int!, start_value sql_variant, increment sql_variant, current_value "
    "sql_variant";
constexpr char c_tracking[] =
    "object_id int!, is_track_columns_updated_on bit!, min_valid_version bigint, begin_version bigint";
constexpr char c_fulltext[] = "object_id int!, unique_index_id int!, fulltext_catalog_id int, is_enabled bit!";
constexpr char c_masked[] =
    "object_id int!, name name, column_id int!, is_masked bit!, masking_function nvarchar(4000)";
constexpr char c_publications[] = "object_id int!, pubid int!";

constexpr std::array table{SystemView{"key_constraints", key_constraints},
                           SystemView{"default_constraints", default_constraints},
                           SystemView{"check_constraints", check_constraints},
                           SystemView{"foreign_keys", foreign_keys},
                           SystemView{"foreign_key_columns", foreign_key_columns},
                           SystemView{"periods", periods},
                           SystemView{"sql_expression_dependencies", dependencies},
                           SystemView{"partition_schemes", partition_schemes},
                           SystemView{"partition_functions", partition_functions},
                           SystemView{"partition_range_values", partition_range_values},
                           SystemView{"partition_parameters", partition_parameters},
                           SystemView{"security_policies", empty_view<c_policies>},
                           SystemView{"security_predicates", empty_view<c_predicates>},
                           SystemView{"database_permissions", empty_view<c_permissions>},
                           SystemView{"extended_properties", empty_view<c_properties>},
                           SystemView{"synonyms", empty_view<c_synonyms>},
                           SystemView{"sequences", empty_view<c_sequences>},
                           SystemView{"change_tracking_tables", empty_view<c_tracking>},
                           SystemView{"fulltext_indexes", empty_view<c_fulltext>},
                           SystemView{"masked_columns", empty_view<c_masked>},
                           SystemView{"sysarticles", empty_view<c_publications>}};

}  // namespace

std::span<const SystemView> constraint_views() { return table; }

}  // namespace rowferry::sandbox::engine
