// Functions about objects and columns.
#include <array>

#include "sandbox/engine/collation.hpp"
#include "sandbox/engine/functions.hpp"
#include "sandbox/engine/query.hpp"

namespace rowferry::sandbox::engine {

namespace {

std::shared_ptr<Database> database_by_id(const Context& context, const Arguments& args, std::size_t at) {
  if (args.size() <= at || args[at].null) return context.session.database;
  for (const auto& [name, db] : context.server.databases)
    if (db->id == number_of(args[at])) return db;
  return nullptr;
}

ObjectPtr by_id(const Context& context, std::int64_t id) {
  for (const auto& [name, object] : context.session.temporary)
    if (object->id == id) return object;
  if (ObjectPtr own = context.session.database->by_id(static_cast<int>(id))) return own;
  const auto tempdb = context.server.database("tempdb");
  return tempdb == nullptr ? nullptr : tempdb->by_id(static_cast<int>(id));
}

// The id of a constraint, or 0.
int constraint_id(const Database& db, std::string_view name, int schema_id) {
  for (const auto& [key, object] : db.objects) {
    if (object->def == nullptr || object->schema_id != schema_id) continue;
    for (const IndexDef& i : object->def->indexes)
      if (i.object_id != 0 && same_name(i.name, name)) return i.object_id;
    for (const CheckDef& c : object->def->checks)
      if (same_name(c.name, name)) return c.object_id;
    for (const ForeignKeyDef& f : object->def->foreign_keys)
      if (same_name(f.name, name)) return f.object_id;
    for (const ColumnDef& c : object->def->columns)
      if (c.default_id != 0 && same_name(c.default_name, name)) return c.default_id;
  }
  return 0;
}

bool kind_is(const Object& object, const std::string& wanted) {
  if (wanted.empty()) return true;
  const char* kind = object.kind == ObjectKind::table       ? "u"
                     : object.kind == ObjectKind::view      ? "v"
                     : object.kind == ObjectKind::procedure ? "p"
                     : object.kind == ObjectKind::synonym   ? "sn"
                                                            : "tr";
  return wanted == kind;
}

Value object_id(const Context& context, const Expr&, const Arguments& args) {
  if (args[0].null) return null_int();
  const auto name = parse_name(name_of(args[0]));
  std::string wanted = args.size() > 1 && !args[1].null ? fold_name(name_of(args[1])) : std::string();
  while (!wanted.empty() && wanted.back() == ' ') wanted.pop_back();
  if (!name) return null_int();
  const bool in_tempdb = same_name(name->database(), "tempdb") ||
                         (name->database().empty() && same_name(context.session.database->name, "tempdb"));
  if (name->temporary()) {
    const auto found = context.session.temporary.find(fold_name(name->object()));
    if (!in_tempdb || found == context.session.temporary.end() || !kind_is(*found->second, wanted)) return null_int();
    return int_value(found->second->id);
  }
  try {
    const Place place = place_of(context, *name, false);
    if (place.database == nullptr) return null_int();
    const ObjectPtr object = place.database->find(place.schema_id, name->object());
    if (object != nullptr && kind_is(*object, wanted)) {
      context.server.locks.take(context.session.spid, lock_resource(*object), LockMode::schema_stability,
                                LockSpan::statement);
      return int_value(object->id);
    }
    const bool of_table = wanted == "u" || wanted == "v" || wanted == "p" || wanted == "tr";
    const int constraint =
        object == nullptr && !of_table ? constraint_id(*place.database, name->object(), place.schema_id) : 0;
    return constraint == 0 ? null_int() : int_value(constraint);
  } catch (const SqlError&) {
    return null_int();
  }
}

Value object_name(const Context& context, const Expr&, const Arguments& args) {
  if (args[0].null) return null_name(context);
  const auto db = database_by_id(context, args, 1);
  const ObjectPtr object = db == nullptr     ? nullptr
                           : args.size() > 1 ? db->by_id(static_cast<int>(number_of(args[0])))
                                             : by_id(context, number_of(args[0]));
  return object == nullptr ? null_name(context) : name_value(context, object->name);
}

Value object_schema_name(const Context& context, const Expr&, const Arguments& args) {
  if (args[0].null) return null_name(context);
  const ObjectPtr object = by_id(context, number_of(args[0]));
  const auto db = object == nullptr ? nullptr : context.server.database(object->database);
  const Schema* schema = db == nullptr ? nullptr : db->schema_by_id(object->schema_id);
  return schema == nullptr ? null_name(context) : name_value(context, schema->name);
}

Value schema_name(const Context& context, const Expr&, const Arguments& args) {
  if (args.empty()) return name_value(context, "dbo");
  const Schema* s =
      args[0].null ? nullptr : context.session.database->schema_by_id(static_cast<int>(number_of(args[0])));
  return s == nullptr ? null_name(context) : name_value(context, s->name);
}

Value schema_id(const Context& context, const Expr&, const Arguments& args) {
  if (args.empty()) return int_value(1);
  const Schema* s = args[0].null ? nullptr : context.session.database->schema(name_of(args[0]));
  return s == nullptr ? null_int() : int_value(s->id);
}

Value type_name_of(const Context& context, const Expr&, const Arguments& args) {
  if (args[0].null) return null_name(context);
  if (number_of(args[0]) == 256) return name_value(context, "sysname");
  for (int k = 0; k <= static_cast<int>(Kind::variant); ++k)
    if (system_type_id(static_cast<Kind>(k)) == number_of(args[0]))
      return name_value(context, type_name(static_cast<Kind>(k)));
  return null_name(context);
}

Value type_id_of(const Context&, const Expr&, const Arguments& args) {
  if (args[0].null) return null_int();
  const auto name = parse_name(name_of(args[0]));
  if (!name) return null_int();
  if (same_name(name->object(), "sysname")) return int_value(256);
  const auto kind = kind_by_name(fold_name(name->object()));
  return kind ? int_value(system_type_id(*kind)) : null_int();
}

const ColumnDef* column_argument(const ObjectPtr& object, const Value& which) {
  if (object == nullptr || object->def == nullptr || which.null) return nullptr;
  if (is_string(which.type.kind)) {
    const int at = object->def->find(name_of(which));
    return at < 0 ? nullptr : &object->def->columns[static_cast<std::size_t>(at)];
  }
  for (const ColumnDef& c : object->def->columns)
    if (c.id == number_of(which)) return &c;
  return nullptr;
}

Value column_property(const Context& context, const Expr&, const Arguments& args) {
  if (args[0].null || args[2].null) return null_int();
  const ColumnDef* c = column_argument(by_id(context, number_of(args[0])), args[1]);
  if (c == nullptr) return null_int();
  const std::string name = fold_name(name_of(args[2]));
  if (name == "allowsnull") return int_value(c->nullable ? 1 : 0);
  if (name == "columnid") return int_value(c->id);
  if (name == "iscomputed") return int_value(c->computed != nullptr ? 1 : 0);
  if (name == "isidentity") return int_value(c->identity ? 1 : 0);
  if (name == "isrowguidcol") return int_value(c->rowguidcol ? 1 : 0);
  if (name == "ishidden") return int_value(c->hidden ? 1 : 0);
  if (name == "issparse") return int_value(c->sparse ? 1 : 0);
  if (name == "generatedalwaystype") return int_value(c->generated_always);
  if (name == "precision")
    return int_value(is_string(c->type.kind) || is_binary(c->type.kind) ? c->type.length
                                                                        : catalogue_precision(c->type));
  if (name == "scale") return int_value(catalogue_scale(c->type));
  if (name == "charmaxlen")
    return is_string(c->type.kind) || is_binary(c->type.kind) ? int_value(c->type.length) : null_int();
  if (name == "isdeterministic" || name == "isprecise" || name == "usesansitrim") return int_value(1);
  if (name.starts_with("is")) return int_value(0);
  return null_int();
}

Value object_property(const Context& context, const Expr& call, const Arguments& args) {
  if (args[0].null || args[1].null) return Value::of_null(call.type);
  const ObjectPtr object = by_id(context, number_of(args[0]));
  if (object == nullptr) return Value::of_null(call.type);
  const std::string name = fold_name(name_of(args[1]));
  const auto yes = [&](bool v) { return convert(int_value(v ? 1 : 0), call.type); };
  const TableDef* def = object->def.get();
  if (name == "istable" || name == "isusertable") return yes(object->kind == ObjectKind::table);
  if (name == "isview") return yes(object->kind == ObjectKind::view);
  if (name == "isprocedure") return yes(object->kind == ObjectKind::procedure);
  if (name == "istrigger") return yes(object->kind == ObjectKind::trigger);
  if (name == "ismsshipped") return yes(false);
  if (name == "schemaid") return convert(int_value(object->schema_id), call.type);
  if (name == "ownerid") return convert(int_value(1), call.type);
  if (def == nullptr) return Value::of_null(call.type);
  if (name == "tablehasidentity") return yes(def->identity_column() != nullptr);
  if (name == "tablehasprimarykey") return yes(def->primary_key() != nullptr);
  if (name == "tablehasforeignkey") return yes(!def->foreign_keys.empty());
  if (name == "tablehascheckcnst") return yes(!def->checks.empty());
  if (name == "tabletemporaltype") return convert(int_value(def->temporal), call.type);
  if (name == "cardinality")
    return convert(Value::of_int(static_cast<std::int64_t>(object->data->committed()), Kind::bigint), call.type);
  if (name == "tablehasclustindex" || name == "tablehasindex") {
    for (const IndexDef& i : def->indexes)
      if (name == "tablehasindex" || i.clustered) return yes(true);
    return yes(false);
  }
  return yes(false);
}

Value identity_of(const Context& context, const Arguments& args, Int128 (*pick)(const Object&)) {
  Value out = Value::of_null(decimal_type(38, 0));
  const auto name = args[0].null ? std::nullopt : parse_name(name_of(args[0]));
  if (!name) return out;
  ObjectPtr object;
  try {
    object = find_table(context, *name);
  } catch (const SqlError&) {
    return out;
  }
  if (object->def->identity_column() == nullptr) return out;
  out.null = false;
  out.number = pick(*object);
  return out;
}

Type wide_decimal(const Context&, const Expr&) { return decimal_type(38, 0); }
Value ident_current(const Context& context, const Expr&, const Arguments& args) {
  return identity_of(context, args, [](const Object& o) {
    return o.identity->used ? o.identity->last : o.def->identity_column()->identity->seed;
  });
}
Value ident_seed(const Context& context, const Expr&, const Arguments& args) {
  return identity_of(context, args, [](const Object& o) { return o.def->identity_column()->identity->seed; });
}
Value ident_incr(const Context& context, const Expr&, const Arguments& args) {
  return identity_of(context, args, [](const Object& o) { return o.def->identity_column()->identity->increment; });
}

Type variant_type(const Context&, const Expr&) { return make_type(Kind::variant); }
Value collation_property(const Context&, const Expr& call, const Arguments& args) {
  if (args[0].null || args[1].null) return Value::of_null(call.type);
  const auto c = collation_by_name(name_of(args[0]));
  if (!c) return Value::of_null(call.type);
  const std::string name = fold_name(name_of(args[1]));
  const auto number = [&](std::int64_t v) { return convert(Value::of_int(v), call.type); };
  if (name == "codepage") return number(code_page_of(*c));
  if (name == "lcid") return number(c->info & 0xFFFFFU);
  if (name == "version") return number(c->info >> 28U);
  if (name == "comparisonstyle") {
    const std::uint32_t f = c->info >> 20U;
    return number((f & 1U) | ((f & 2U) != 0 ? 2 : 0) | ((f & 4U) != 0 ? 131072 : 0) | ((f & 8U) != 0 ? 65536 : 0));
  }
  if (name == "name") return convert(Value::of_name(collation_name(*c)), call.type);
  return Value::of_null(call.type);
}

Value index_property(const Context& context, const Expr&, const Arguments& args) {
  if (args[0].null || args[1].null || args[2].null) return null_int();
  const ObjectPtr object = by_id(context, number_of(args[0]));
  if (object == nullptr || object->def == nullptr) return null_int();
  const std::string name = fold_name(name_of(args[2]));
  for (const IndexDef& i : object->def->indexes) {
    if (!same_name(i.name, name_of(args[1]))) continue;
    if (name == "indexid") return int_value(i.index_id);
    if (name == "isclustered") return int_value(i.clustered ? 1 : 0);
    if (name == "isunique") return int_value(i.unique ? 1 : 0);
    if (name == "isdisabled") return int_value(i.disabled ? 1 : 0);
    return int_value(0);
  }
  return null_int();
}

Type definition_type(const Context& context, const Expr&) { return nvarchar_type(max_length, context.collation()); }
Value object_definition(const Context& context, const Expr& call, const Arguments& args) {
  const ObjectPtr object = args[0].null ? nullptr : by_id(context, number_of(args[0]));
  if (object == nullptr || object->text.empty()) return Value::of_null(call.type);
  return Value::of_text(object->text, call.type);
}

Value col_name(const Context& context, const Expr&, const Arguments& args) {
  if (args[0].null) return null_name(context);
  const ColumnDef* c = column_argument(by_id(context, number_of(args[0])), args[1]);
  return c == nullptr ? null_name(context) : name_value(context, c->name);
}

Type smallint_result(const Context&, const Expr&) { return make_type(Kind::smallint); }
Value col_length(const Context& context, const Expr& call, const Arguments& args) {
  const auto name = args[0].null ? std::nullopt : parse_name(name_of(args[0]));
  if (!name) return Value::of_null(call.type);
  try {
    const ColumnDef* c = column_argument(find_table(context, *name), args[1]);
    return c == nullptr ? Value::of_null(call.type) : Value::of_int(catalogue_length(c->type), Kind::smallint);
  } catch (const SqlError&) {
    return Value::of_null(call.type);
  }
}

Value variant_property(const Context& context, const Expr& call, const Arguments& args) {
  if (args[0].null || args[1].null) return Value::of_null(call.type);
  const Type t = args[0].type.kind == Kind::variant ? variant_content(args[0].bytes).type : args[0].type;
  const std::string name = fold_name(name_of(args[1]));
  const auto number = [&](std::int64_t v) { return convert(Value::of_int(v), call.type); };
  if (name == "basetype") return convert(name_value(context, type_name(t.kind)), call.type);
  if (name == "precision") return number(catalogue_precision(t));
  if (name == "scale") return number(catalogue_scale(t));
  if (name == "maxlength") return number(catalogue_length(t));
  if (name == "collation")
    return is_string(t.kind) ? convert(name_value(context, collation_name(t.collation)), call.type)
                             : Value::of_null(call.type);
  return Value::of_null(call.type);
}

// Held application locks, as APPLOCK_MODE and APPLOCK_TEST show them.
Value applock_mode(const Context& context, const Expr& call, const Arguments& args) {
  const std::string resource =
      "app:" + context.session.database->name + ":" + (args[1].null ? std::string() : name_of(args[1]));
  const bool session = !args[2].null && fold_name(name_of(args[2])) == "session";
  const bool held =
      context.server.locks.holds(context.session.spid, resource, session ? LockSpan::session : LockSpan::transaction);
  const LockMode mode =
      held ? context.server.locks.mode_held(context.session.spid, resource) : LockMode::schema_stability;
  const char* text = !held                             ? "NoLock"
                     : mode == LockMode::exclusive     ? "Exclusive"
                     : mode == LockMode::update        ? "Update"
                     : mode == LockMode::shared        ? "Shared"
                     : mode == LockMode::intent_shared ? "IntentShared"
                                                       : "IntentExclusive";
  return Value::of_text(std::string_view(text), call.type);
}

constexpr std::array table{
    Function{"OBJECT_ID", 1, 2, int_result, object_id},
    Function{"OBJECT_NAME", 1, 2, name_result, object_name},
    Function{"OBJECT_SCHEMA_NAME", 1, 2, name_result, object_schema_name},
    Function{"OBJECT_DEFINITION", 1, 1, definition_type, object_definition},
    Function{"SCHEMA_NAME", 0, 1, name_result, schema_name},
    Function{"SCHEMA_ID", 0, 1, int_result, schema_id},
    Function{"TYPE_NAME", 1, 1, name_result, type_name_of},
    Function{"TYPE_ID", 1, 1, int_result, type_id_of},
    Function{"COLUMNPROPERTY", 3, 3, int_result, column_property},
    Function{"OBJECTPROPERTY", 2, 2, int_result, object_property},
    Function{"OBJECTPROPERTYEX", 2, 2, variant_type, object_property},
    Function{"INDEXPROPERTY", 3, 3, int_result, index_property},
    Function{"COL_NAME", 2, 2, name_result, col_name},
    Function{"COL_LENGTH", 2, 2, smallint_result, col_length},
    Function{"IDENT_CURRENT", 1, 1, wide_decimal, ident_current},
    Function{"IDENT_SEED", 1, 1, wide_decimal, ident_seed},
    Function{"IDENT_INCR", 1, 1, wide_decimal, ident_incr},
    Function{"COLLATIONPROPERTY", 2, 2, variant_type, collation_property},
    Function{"SQL_VARIANT_PROPERTY", 2, 2, variant_type, variant_property},
    Function{"APPLOCK_MODE", 3, 3, name_result, applock_mode},
};

}  // namespace

std::span<const Function> catalog_functions() { return table; }

}  // namespace rowferry::sandbox::engine
