// Databases, sessions, locks; and information_schema.
#include <fmt/format.h>

#include <array>

#include "sandbox/engine/sysviews.hpp"

namespace rowferry::sandbox::engine {

namespace {

VirtualTable databases(const ViewSource& s) {
  ViewBuilder b(s.context,
                "name name!, database_id int!, source_database_id int, owner_sid varbinary(85), create_date datetime!, "
                "compatibility_level tinyint!, collation_name name, user_access tinyint, "
                "user_access_desc nvarchar(60), is_read_only bit, is_auto_close_on bit!, is_auto_shrink_on bit, state "
                "tinyint, state_desc nvarchar(60), is_in_standby bit, "
                "is_cleanly_shutdown bit, is_supplemental_logging_enabled bit, snapshot_isolation_state tinyint, "
                "snapshot_isolation_state_desc nvarchar(60), "
                "is_read_committed_snapshot_on bit, recovery_model tinyint, recovery_model_desc nvarchar(60), "
                "page_verify_option tinyint, is_ansi_nulls_on bit, is_ansi_padding_on bit, "
                "is_ansi_warnings_on bit, is_arithabort_on bit, is_quoted_identifier_on bit, is_published bit!, "
                "is_subscribed bit!, is_merge_published bit!, is_distributor bit!, "
                "is_broker_enabled bit!, is_encrypted bit, is_query_store_on bit, is_cdc_enabled bit!, log_reuse_wait "
                "tinyint, log_reuse_wait_desc nvarchar(60), containment tinyint, "
                "is_memory_optimized_elevate_to_snapshot_on bit, is_accelerated_database_recovery_on bit");
  constexpr std::array<std::string_view, 4> models{"", "FULL", "BULK_LOGGED", "SIMPLE"};
  for (const auto& [key, db] : s.context.server.databases)
    b.row({N(db->name),
           I(db->id),
           Null(),
           Null(),
           T(db->created),
           I(160),
           N(db->collation_name),
           I(0),
           N("MULTI_USER"),
           B(false),
           B(false),
           B(false),
           I(0),
           N("ONLINE"),
           B(false),
           B(false),
           B(false),
           I(db->snapshot_isolation ? 1 : 0),
           N(db->snapshot_isolation ? "ON" : "OFF"),
           B(db->read_committed_snapshot),
           I(db->recovery_model),
           N(models.at(static_cast<std::size_t>(db->recovery_model))),
           I(2),
           B(false),
           B(false),
           B(false),
           B(false),
           B(false),
           B(false),
           B(false),
           B(false),
           B(false),
           B(false),
           B(false),
           B(false),
           B(false),
           I(0),
           N("NOTHING"),
           I(0),
           B(false),
           B(false)});
  return b.take();
}

VirtualTable connections(const ViewSource& s) {
  ViewBuilder b(s.context,
                "session_id int, most_recent_session_id int, connect_time datetime!, net_transport nvarchar(40)!, "
                "protocol_type nvarchar(40), protocol_version int, endpoint_id int, "
                "encrypt_option nvarchar(40)!, auth_scheme nvarchar(40)!, node_affinity smallint!, num_reads int, "
                "num_writes int, last_read datetime, last_write datetime, net_packet_size int, "
                "client_net_address varchar(48), client_tcp_port int, local_net_address varchar(48), local_tcp_port "
                "int, connection_id uniqueidentifier!");
  for (const auto& [spid, session] : s.context.server.sessions)
    b.row({I(spid),
           I(spid),
           T(session->login_time),
           N("TCP"),
           N("TSQL"),
           I(0x74000004),
           I(4),
           N(session->info.encrypted ? "TRUE" : "FALSE"),
           N("SQL"),
           I(0),
           I(0),
           I(0),
           T(session->last_request),
           T(session->last_request),
           I(session->info.packet_size),
           N(session->info.client_address),
           Null(),
           N(session->info.client_address),
           I(1433),
           Value::of_bytes(std::string(16, static_cast<char>(spid)), make_type(Kind::guid))});
  return b.take();
}

VirtualTable sessions(const ViewSource& s) {
  ViewBuilder b(
      s.context,
      "session_id smallint!, login_time datetime!, host_name nvarchar(128), program_name nvarchar(128), "
      "host_process_id int, client_version int, client_interface_name nvarchar(32), "
      "security_id varbinary(85), login_name nvarchar(128)!, status nvarchar(30)!, cpu_time int!, memory_usage int!, "
      "total_scheduled_time int!, total_elapsed_time int!, "
      "last_request_start_time datetime!, last_request_end_time datetime, reads bigint!, writes bigint!, logical_reads "
      "bigint!, is_user_process bit!, text_size int!, language "
      "nvarchar(128), date_format nvarchar(3), date_first smallint!, quoted_identifier bit!, arithabort bit!, "
      "ansi_null_dflt_on bit!, ansi_defaults bit!, ansi_warnings bit!, "
      "ansi_padding bit!, ansi_nulls bit!, concat_null_yields_null bit!, transaction_isolation_level smallint!, "
      "lock_timeout int!, deadlock_priority int!, row_count bigint!, "
      "prev_error int!, original_login_name nvarchar(128)!, database_id smallint!, open_transaction_count int!");
  for (const auto& [spid, x] : s.context.server.sessions) {
    const Settings& o = x->settings;
    b.row({I(spid),
           T(x->login_time),
           N(x->info.host),
           N(x->info.application),
           I(x->info.client_process),
           I(7),
           N(x->info.library),
           Null(),
           N(x->info.login),
           N(x->active ? (x->waiting ? "suspended" : "running") : "sleeping"),
           I(0),
           I(0),
           I(0),
           I(0),
           T(x->last_request),
           T(x->last_request),
           I(0),
           I(0),
           I(0),
           B(true),
           I(o.textsize),
           N(o.language),
           N(o.dateformat),
           I(o.datefirst),
           B(o.quoted_identifier),
           B(o.arithabort),
           B(o.ansi_null_dflt_on),
           B(false),
           B(o.ansi_warnings),
           B(o.ansi_padding),
           B(o.ansi_nulls),
           B(o.concat_null_yields_null),
           I(o.isolation),
           I(o.lock_timeout_ms),
           I(o.deadlock_priority),
           I(x->row_count),
           I(x->last_error),
           N(x->info.login),
           I(x->database->id),
           I(x->transaction != nullptr && x->transaction->user ? x->transaction->count : 0)});
  }
  return b.take();
}

VirtualTable requests(const ViewSource& s) {
  ViewBuilder b(s.context,
                "session_id smallint!, request_id int!, start_time datetime!, status nvarchar(30)!, command "
                "nvarchar(32)!, database_id smallint!, blocking_session_id smallint, wait_type "
                "nvarchar(60), wait_time int!, open_transaction_count int!, transaction_isolation_level smallint!, "
                "row_count bigint!, percent_complete real!");
  for (const auto& [spid, x] : s.context.server.sessions)
    if (x->active)
      b.row({I(spid), I(0), T(x->last_request), N(x->waiting ? "suspended" : "running"), N("SELECT"),
             I(x->database->id), I(x->waiting ? x->waiting_for : 0), x->waiting ? N("LCK_M_X") : Null(), I(0),
             I(x->transaction == nullptr ? 0 : x->transaction->count), I(x->settings.isolation), I(x->row_count),
             I(0)});
  return b.take();
}

VirtualTable locks(const ViewSource& s) {
  ViewBuilder b(s.context,
                "resource_type nvarchar(60)!, resource_subtype nvarchar(60)!, resource_database_id int!, "
                "resource_description nvarchar(256)!, resource_associated_entity_id bigint, "
                "resource_lock_partition int!, request_mode nvarchar(60)!, request_type nvarchar(60)!, request_status "
                "nvarchar(60)!, request_reference_count smallint!, request_session_id int!, "
                "request_owner_type nvarchar(60)!");
  constexpr std::array<std::string_view, 8> modes{"Sch-S", "IS", "IX", "S", "U", "BU", "X", "Sch-M"};
  for (const auto& [resource, held] : s.context.server.locks.all()) {
    const bool application = resource.starts_with("app:");
    const std::size_t colon = resource.find(':', 2);
    const std::string part = resource.substr(application ? resource.rfind(':') + 1 : colon + 1);
    const std::int64_t id = resource.starts_with("t:") ? std::strtoll(part.c_str(), nullptr, 10) : 0;
    for (const Locks::Held& h : held)
      b.row({N(application                  ? "APPLICATION"
               : resource.starts_with("t:") ? "OBJECT"
                                            : "METADATA"),
             N(""), I(s.database->id), N(application ? fmt::format("0:[{}]:(00000000)", part) : std::string()), I(id),
             I(0), N(modes.at(static_cast<std::size_t>(h.mode))), N("LOCK"), N("GRANT"), I(h.count), I(h.spid),
             N(h.span == LockSpan::session ? "SESSION" : "TRANSACTION")});
  }
  return b.take();
}

VirtualTable transactions(const ViewSource& s) {
  ViewBuilder b(
      s.context,
      "session_id int!, transaction_id bigint!, transaction_descriptor binary(8)!, enlist_count int!, "
      "is_user_transaction bit!, is_local bit!, is_enlisted bit!, is_bound bit!, open_transaction_count int!");
  for (const auto& [spid, x] : s.context.server.sessions) {
    if (x->transaction == nullptr || !x->transaction->user) continue;
    std::string bytes(8, '\0');
    store_le(reinterpret_cast<std::uint8_t*>(bytes.data()), descriptor_of(*x->transaction));
    b.row({I(spid), I(static_cast<std::int64_t>(x->transaction->id)),
           Value::of_bytes(bytes, make_type(Kind::binary, 8)), I(0), B(true), B(true), B(false), B(false),
           I(x->transaction->count)});
  }
  return b.take();
}

// What a discarding server has counted: its own view, SQL Server has none of this name.
VirtualTable content(const ViewSource& s) {
  ViewBuilder b(s.context,
                "schema_name name!, table_name name!, object_id int!, rows_kept bigint!, rows_discarded bigint!, "
                "content_hash char(32)!");
  const TransactionId me = transaction_id(s.context.session);
  for (const ObjectPtr& o : s.tables()) {
    const Schema* schema = s.schema_of(*o);
    const HashSum hash = o->data->hash(me);
    const auto discarded = static_cast<std::int64_t>(o->data->discarded(me));
    b.row({N(schema == nullptr ? "dbo" : schema->name), N(o->name), I(o->id),
           I(static_cast<std::int64_t>(o->data->count(me)) - discarded), I(discarded),
           N(fmt::format("{:016x}{:016x}", hash.high, hash.low))});
  }
  return b.take();
}

VirtualTable configurations(const ViewSource& s) {
  ViewBuilder b(s.context,
                "configuration_id int!, name nvarchar(35)!, value sql_variant, minimum sql_variant, maximum "
                "sql_variant, value_in_use sql_variant, description nvarchar(255)!, is_dynamic bit!, is_advanced bit!");
  const auto add = [&](int id, std::string_view name, int value) {
    b.row({I(id), N(name), Number(value), Number(0), Number(2'147'483'647), Number(value), N(name), B(true), B(false)});
  };
  add(544, "max server memory (MB)", 2'147'483'647);
  add(1539, "max degree of parallelism", 0);
  add(1526, "remote access", 1);
  add(517, "network packet size (B)", 32767);
  return b.take();
}

VirtualTable filegroups(const ViewSource& s) {
  ViewBuilder b(s.context,
                "name name!, data_space_id int!, type char(2)!, type_desc nvarchar(60), is_default bit, is_system bit, "
                "is_read_only bit");
  b.row({N("PRIMARY"), I(1), N("FG"), N("ROWS_FILEGROUP"), B(true), B(false), B(false)});
  return b.take();
}

VirtualTable principals(const ViewSource& s) {
  ViewBuilder b(s.context,
                "name name!, principal_id int!, type char(1)!, type_desc nvarchar(60), default_schema_name name, "
                "create_date datetime!, modify_date datetime!, is_fixed_role bit!");
  b.row({N("dbo"), I(1), N("S"), N("SQL_USER"), N("dbo"), T(s.database->created), T(s.database->created), B(false)});
  b.row({N("public"), I(0), N("R"), N("DATABASE_ROLE"), Null(), T(s.database->created), T(s.database->created),
         B(false)});
  return b.take();
}

VirtualTable languages(const ViewSource& s) {
  ViewBuilder b(s.context,
                "langid smallint!, dateformat nchar(3)!, datefirst tinyint!, name name!, alias name!, lcid int!");
  b.row({I(0), N("mdy"), I(7), N("us_english"), N("English"), I(1033)});
  return b.take();
}

constexpr std::array table{SystemView{"databases", databases},
                           SystemView{"dm_exec_connections", connections},
                           SystemView{"dm_exec_sessions", sessions},
                           SystemView{"dm_exec_requests", requests},
                           SystemView{"dm_tran_locks", locks},
                           SystemView{"dm_tran_session_transactions", transactions},
                           SystemView{"dm_rowferry_content", content},
                           SystemView{"configurations", configurations},
                           SystemView{"filegroups", filegroups},
                           SystemView{"data_spaces", filegroups},
                           SystemView{"database_principals", principals},
                           SystemView{"server_principals", principals},
                           SystemView{"syslanguages", languages}};

// --- information_schema

std::string schema_name_of(const ViewSource& s, const Object& o) {
  const Schema* schema = s.schema_of(o);
  return schema == nullptr ? "dbo" : schema->name;
}

VirtualTable info_tables(const ViewSource& s) {
  ViewBuilder b(s.context, "TABLE_CATALOG nvarchar(128), TABLE_SCHEMA name, TABLE_NAME name!, TABLE_TYPE varchar(10)");
  for (const ObjectPtr& o : s.objects)
    if (o->kind == ObjectKind::table || o->kind == ObjectKind::view)
      b.row({N(s.database->name), N(schema_name_of(s, *o)), N(o->name),
             N(o->kind == ObjectKind::table ? "BASE TABLE" : "VIEW")});
  return b.take();
}

VirtualTable info_columns(const ViewSource& s) {
  ViewBuilder b(s.context,
                "TABLE_CATALOG nvarchar(128), TABLE_SCHEMA nvarchar(128), TABLE_NAME name!, COLUMN_NAME name, "
                "ORDINAL_POSITION int, COLUMN_DEFAULT nvarchar(4000), IS_NULLABLE varchar(3), DATA_TYPE "
                "nvarchar(128), CHARACTER_MAXIMUM_LENGTH int, CHARACTER_OCTET_LENGTH int, NUMERIC_PRECISION tinyint, "
                "NUMERIC_PRECISION_RADIX smallint, NUMERIC_SCALE int, DATETIME_PRECISION "
                "smallint, CHARACTER_SET_CATALOG name, CHARACTER_SET_SCHEMA name, CHARACTER_SET_NAME name, "
                "COLLATION_CATALOG name, COLLATION_SCHEMA name, COLLATION_NAME name, DOMAIN_CATALOG "
                "name, DOMAIN_SCHEMA name, DOMAIN_NAME name");
  for (const ObjectPtr& o : s.tables()) {
    int ordinal = 0;
    for (const ColumnDef& c : o->def->columns) {
      const Type& t = c.type;
      const bool sized = is_string(t.kind) || is_binary(t.kind);
      const bool lob = is_lob(t.kind) || t.length == max_length || t.kind == Kind::json;
      const std::int64_t length = t.kind == Kind::text || t.kind == Kind::image ? 2'147'483'647
                                  : t.kind == Kind::ntext                       ? 1'073'741'823
                                  : lob                                         ? -1
                                                                                : t.length;
      const std::int64_t octets = !lob && is_unicode(t.kind) ? length * 2 : length;
      const bool number = is_number(t.kind) && t.kind != Kind::bit;
      const std::int64_t fraction = t.kind == Kind::datetime                                ? 3
                                    : t.kind == Kind::date || t.kind == Kind::smalldatetime ? 0
                                                                                            : t.scale;
      b.row({N(s.database->name),
             N(schema_name_of(s, *o)),
             N(o->name),
             N(c.name),
             I(++ordinal),
             N_or_null(c.default_text),
             N(c.nullable ? "YES" : "NO"),
             N(type_name(t.kind)),
             sized ? I(length) : Null(),
             sized ? I(octets) : Null(),
             number ? I(catalogue_precision(t)) : Null(),
             number ? I(is_float(t.kind) ? 2 : 10) : Null(),
             number && !is_float(t.kind) ? I(catalogue_scale(t)) : Null(),
             is_temporal(t.kind) ? I(fraction) : Null(),
             Null(),
             Null(),
             is_string(t.kind) ? N(is_unicode(t.kind) ? "UNICODE" : "iso_1") : Null(),
             Null(),
             Null(),
             N_or_null(c.collation),
             Null(),
             Null(),
             Null()});
    }
  }
  return b.take();
}

VirtualTable info_schemata(const ViewSource& s) {
  ViewBuilder b(s.context,
                "CATALOG_NAME name, SCHEMA_NAME name!, SCHEMA_OWNER name, DEFAULT_CHARACTER_SET_CATALOG varchar(6), "
                "DEFAULT_CHARACTER_SET_SCHEMA varchar(3), DEFAULT_CHARACTER_SET_NAME name");
  for (const auto& [key, schema] : s.database->schemas)
    b.row({N(s.database->name), N(schema.name), N("dbo"), Null(), Null(), N("iso_1")});
  return b.take();
}

VirtualTable info_constraints(const ViewSource& s) {
  ViewBuilder b(s.context,
                "CONSTRAINT_CATALOG nvarchar(128), CONSTRAINT_SCHEMA nvarchar(128), CONSTRAINT_NAME name!, "
                "TABLE_CATALOG nvarchar(128), TABLE_SCHEMA nvarchar(128), TABLE_NAME name, CONSTRAINT_TYPE "
                "varchar(11), IS_DEFERRABLE varchar(2)!, INITIALLY_DEFERRED varchar(2)!");
  for (const ObjectPtr& o : s.tables()) {
    const std::string schema = schema_name_of(s, *o);
    const auto add = [&](const std::string& name, std::string_view type) {
      b.row({N(s.database->name), N(schema), N(name), N(s.database->name), N(schema), N(o->name), N(type), N("NO"),
             N("NO")});
    };
    for (const IndexDef& i : o->def->indexes)
      if (i.object_id != 0) add(i.name, i.primary ? "PRIMARY KEY" : "UNIQUE");
    for (const CheckDef& c : o->def->checks) add(c.name, "CHECK");
    for (const ForeignKeyDef& f : o->def->foreign_keys) add(f.name, "FOREIGN KEY");
  }
  return b.take();
}

VirtualTable info_keys(const ViewSource& s) {
  ViewBuilder b(s.context,
                "CONSTRAINT_CATALOG nvarchar(128), CONSTRAINT_SCHEMA nvarchar(128), CONSTRAINT_NAME nvarchar(128)!, "
                "TABLE_CATALOG nvarchar(128), TABLE_SCHEMA nvarchar(128), TABLE_NAME name!, COLUMN_NAME nvarchar(128), "
                "ORDINAL_POSITION int!");
  for (const ObjectPtr& o : s.tables()) {
    const std::string schema = schema_name_of(s, *o);
    const auto add = [&](const std::string& name, int column, int ordinal) {
      b.row({N(s.database->name), N(schema), N(name), N(s.database->name), N(schema), N(o->name),
             N(o->def->columns[static_cast<std::size_t>(column)].name), I(ordinal)});
    };
    for (const IndexDef& i : o->def->indexes)
      for (std::size_t k = 0; i.object_id != 0 && k < i.keys.size(); ++k)
        add(i.name, i.keys[k].column, static_cast<int>(k) + 1);
    for (const ForeignKeyDef& f : o->def->foreign_keys)
      for (std::size_t k = 0; k < f.columns.size(); ++k) add(f.name, f.columns[k], static_cast<int>(k) + 1);
  }
  return b.take();
}

constexpr std::array information{
    SystemView{"tables", info_tables}, SystemView{"columns", info_columns}, SystemView{"schemata", info_schemata},
    SystemView{"table_constraints", info_constraints}, SystemView{"key_column_usage", info_keys}};

}  // namespace

std::span<const SystemView> server_views() { return table; }
std::span<const SystemView> information_views() { return information; }

}  // namespace rowferry::sandbox::engine
