// Functions and @@ values about the server, the session and its databases.
#include <fmt/format.h>

#include <array>

#include "sandbox/engine/collation.hpp"
#include "sandbox/engine/functions.hpp"

namespace rowferry::sandbox::engine {

namespace {

Type variant_type(const Context&, const Expr&) { return make_type(Kind::variant); }
Type smallint_result(const Context&, const Expr&) { return make_type(Kind::smallint); }

Value variant_of(const Value& v) { return convert(v, make_type(Kind::variant)); }
Value variant_text(const Context& context, std::string_view s) {
  return variant_of(Value::of_text(s, nvarchar_type(128, context.collation())));
}
Value null_variant() { return Value::of_null(make_type(Kind::variant)); }

std::string product_version() {
  return fmt::format("{}.{}.{}.0", Server::product_major, Server::product_minor, Server::product_build);
}

Value server_property(const Context& context, const Expr&, const Arguments& args) {
  if (args[0].null) return null_variant();
  const std::string name = fold_name(name_of(args[0]));
  const std::string& server = context.server.options.server_name;
  struct Text {
    std::string_view name;
    std::string value;
  };
  const std::array texts{Text{"productversion", product_version()},
                         Text{"productlevel", "RTM"},
                         Text{"edition", "Developer Edition (64-bit)"},
                         Text{"servername", server},
                         Text{"machinename", server},
                         Text{"computernamephysicalnetbios", server},
                         Text{"collation", context.server.options.collation},
                         Text{"productmajorversion", fmt::format("{}", Server::product_major)},
                         Text{"productminorversion", fmt::format("{}", Server::product_minor)},
                         Text{"productbuild", fmt::format("{}", Server::product_build)},
                         Text{"resourceversion", product_version()},
                         Text{"buildclrversion", "v4.0.30319"},
                         Text{"sqlcharsetname", "iso_1"},
                         Text{"sqlsortordername", "nocase_iso"}};
  for (const Text& t : texts)
    if (t.name == name) return variant_text(context, t.value);
  struct Number {
    std::string_view name;
    int value;
  };
  // Ours: whether rows of bulk loads are kept, so that a client knows that it cannot read them back.
  if (name == "rowferrydiscard") return variant_of(Value::of_int(context.server.options.discard ? 1 : 0));
  constexpr std::array numbers{Number{"engineedition", 3},
                               Number{"isclustered", 0},
                               Number{"ishadrenabled", 0},
                               Number{"issingleuser", 0},
                               Number{"isintegratedsecurityonly", 0},
                               Number{"isfulltextinstalled", 0},
                               Number{"islocaldb", 0},
                               Number{"isxtpsupported", 0},
                               Number{"ispolybaseinstalled", 0},
                               Number{"sqlcharset", 1},
                               Number{"sqlsortorder", 52},
                               Number{"lcid", 1033},
                               Number{"comparisonstyle", 196609},
                               Number{"collationid", 872468488},
                               Number{"isadvancedanalyticsinstalled", 0},
                               Number{"filestreameffectivelevel", 0},
                               Number{"processid", 1}};
  for (const Number& n : numbers)
    if (n.name == name) return variant_of(Value::of_int(n.value));
  return null_variant();
}

std::shared_ptr<Database> database_argument(const Context& context, const Arguments& args) {
  if (args.empty()) return context.session.database;
  if (args[0].null) return nullptr;
  if (is_string(args[0].type.kind)) return context.server.database(name_of(args[0]));
  for (const auto& [name, db] : context.server.databases)
    if (db->id == number_of(args[0])) return db;
  return nullptr;
}

Value db_name(const Context& context, const Expr&, const Arguments& args) {
  const auto db = database_argument(context, args);
  return db == nullptr ? null_name(context) : name_value(context, db->name);
}

Value db_id(const Context& context, const Expr&, const Arguments& args) {
  const auto db = database_argument(context, args);
  return db == nullptr ? Value::of_null(make_type(Kind::smallint)) : Value::of_int(db->id, Kind::smallint);
}

Value database_property(const Context& context, const Expr&, const Arguments& args) {
  const auto db = database_argument(context, {args[0]});
  if (db == nullptr || args[1].null) return null_variant();
  const std::string name = fold_name(name_of(args[1]));
  constexpr std::array<std::string_view, 4> models{"", "FULL", "BULK_LOGGED", "SIMPLE"};
  if (name == "collation") return variant_text(context, db->collation_name);
  if (name == "recovery") return variant_text(context, models.at(static_cast<std::size_t>(db->recovery_model)));
  if (name == "status") return variant_text(context, "ONLINE");
  if (name == "updateability") return variant_text(context, "READ_WRITE");
  if (name == "useraccess") return variant_text(context, "MULTI_USER");
  if (name == "sqlsortorder") return variant_of(Value::of_int(52));
  if (name == "version") return variant_of(Value::of_int(957));
  if (name == "edition" || name == "serviceobjective") return null_variant();
  if (name.starts_with("is")) return variant_of(Value::of_int(0));
  return null_variant();
}

Value login_name(const Context& context, const Expr&, const Arguments&) {
  return name_value(context, context.session.info.login);
}
Value user_name(const Context& context, const Expr&, const Arguments&) { return name_value(context, "dbo"); }
Value app_name(const Context& context, const Expr&, const Arguments&) {
  return name_value(context, context.session.info.application);
}
Value host_name(const Context& context, const Expr&, const Arguments&) {
  return name_value(context, context.session.info.host);
}
Value login_id(const Context&, const Expr&, const Arguments&) { return int_value(1); }

Value connection_property(const Context& context, const Expr&, const Arguments& args) {
  const std::string name = args[0].null ? std::string() : fold_name(name_of(args[0]));
  if (name == "net_transport") return variant_text(context, "TCP");
  if (name == "protocol_type") return variant_text(context, "TSQL");
  if (name == "auth_scheme") return variant_text(context, "SQL");
  if (name == "client_net_address" || name == "local_net_address")
    return variant_text(context, context.session.info.client_address);
  if (name == "local_tcp_port") return variant_of(Value::of_int(1433));
  return null_variant();
}

Value xact_state(const Context& context, const Expr&, const Arguments&) {
  const auto& t = context.session.transaction;
  if (t == nullptr || !t->user) return Value::of_int(0, Kind::smallint);
  return Value::of_int(t->doomed ? -1 : 1, Kind::smallint);
}

Type identity_type(const Context&, const Expr&) { return decimal_type(38, 0); }
Value identity_value(const std::optional<Int128>& v) {
  Value out = Value::of_null(decimal_type(38, 0));
  if (v) {
    out.null = false;
    out.number = *v;
  }
  return out;
}
Value scope_identity(const Context& context, const Expr&, const Arguments&) {
  return identity_value(context.session.scope_identity);
}

Value has_perms(const Context&, const Expr&, const Arguments&) { return int_value(1); }
Value is_member(const Context&, const Expr&, const Arguments&) { return int_value(1); }

const Message* caught(const Context& context) {
  for (auto at = context.session.frames.rbegin(); at != context.session.frames.rend(); ++at)
    if (!(*at)->caught.empty()) return &(*at)->caught.back();
  return nullptr;
}
Type error_text_type(const Context& context, const Expr&) { return nvarchar_type(4000, context.collation()); }
Value error_message(const Context& context, const Expr& call, const Arguments&) {
  const Message* m = caught(context);
  return m == nullptr ? Value::of_null(call.type) : Value::of_text(m->text, call.type);
}
Value error_number(const Context& context, const Expr&, const Arguments&) {
  const Message* m = caught(context);
  return m == nullptr ? null_int() : int_value(m->number);
}
Value error_severity(const Context& context, const Expr&, const Arguments&) {
  const Message* m = caught(context);
  return m == nullptr ? null_int() : int_value(m->severity);
}
Value error_state(const Context& context, const Expr&, const Arguments&) {
  const Message* m = caught(context);
  return m == nullptr ? null_int() : int_value(m->state);
}
Value error_line(const Context& context, const Expr&, const Arguments&) {
  const Message* m = caught(context);
  return m == nullptr ? null_int() : int_value(m->line);
}
Value error_procedure(const Context& context, const Expr&, const Arguments&) {
  const Message* m = caught(context);
  return m == nullptr || m->procedure.empty() ? null_name(context) : name_value(context, m->procedure);
}

Value row_count_big(const Context& context, const Expr&, const Arguments&) {
  return Value::of_int(context.session.row_count, Kind::bigint);
}

Value session_property(const Context& context, const Expr&, const Arguments& args) {
  const std::string name = args[0].null ? std::string() : upper_ascii(name_of(args[0]));
  const Settings& s = context.settings();
  const auto flag = [](bool on) { return variant_of(Value::of_int(on ? 1 : 0)); };
  if (name == "ANSI_NULLS") return flag(s.ansi_nulls);
  if (name == "ANSI_PADDING") return flag(s.ansi_padding);
  if (name == "ANSI_WARNINGS") return flag(s.ansi_warnings);
  if (name == "ARITHABORT") return flag(s.arithabort);
  if (name == "CONCAT_NULL_YIELDS_NULL") return flag(s.concat_null_yields_null);
  if (name == "NUMERIC_ROUNDABORT") return flag(s.numeric_roundabort);
  if (name == "QUOTED_IDENTIFIER") return flag(s.quoted_identifier);
  return null_variant();
}

constexpr std::array table{
    Function{"SERVERPROPERTY", 1, 1, variant_type, server_property},
    Function{"DB_NAME", 0, 1, name_result, db_name},
    Function{"DB_ID", 0, 1, smallint_result, db_id},
    Function{"ORIGINAL_DB_NAME", 0, 0, name_result, db_name},
    Function{"DATABASEPROPERTYEX", 2, 2, variant_type, database_property},
    Function{"SUSER_SNAME", 0, 1, name_result, login_name},
    Function{"SUSER_NAME", 0, 1, name_result, login_name},
    Function{"ORIGINAL_LOGIN", 0, 0, name_result, login_name},
    Function{"SYSTEM_USER", 0, 0, name_result, login_name},
    Function{"USER_NAME", 0, 1, name_result, user_name},
    Function{"USER", 0, 0, name_result, user_name},
    Function{"CURRENT_USER", 0, 0, name_result, user_name},
    Function{"SESSION_USER", 0, 0, name_result, user_name},
    Function{"USER_ID", 0, 1, int_result, login_id},
    Function{"SUSER_ID", 0, 1, int_result, login_id},
    Function{"APP_NAME", 0, 0, name_result, app_name},
    Function{"HOST_NAME", 0, 0, name_result, host_name},
    Function{"CONNECTIONPROPERTY", 1, 1, variant_type, connection_property},
    Function{"SESSIONPROPERTY", 1, 1, variant_type, session_property},
    Function{"XACT_STATE", 0, 0, smallint_result, xact_state},
    Function{"SCOPE_IDENTITY", 0, 0, identity_type, scope_identity},
    Function{"HAS_PERMS_BY_NAME", 3, 5, int_result, has_perms},
    Function{"HAS_DBACCESS", 1, 1, int_result, has_perms},
    Function{"IS_MEMBER", 1, 1, int_result, is_member},
    Function{"IS_ROLEMEMBER", 1, 2, int_result, is_member},
    Function{"IS_SRVROLEMEMBER", 1, 2, int_result, is_member},
    Function{"ERROR_MESSAGE", 0, 0, error_text_type, error_message},
    Function{"ERROR_NUMBER", 0, 0, int_result, error_number},
    Function{"ERROR_SEVERITY", 0, 0, int_result, error_severity},
    Function{"ERROR_STATE", 0, 0, int_result, error_state},
    Function{"ERROR_LINE", 0, 0, int_result, error_line},
    Function{"ERROR_PROCEDURE", 0, 0, name_result, error_procedure},
    Function{"ROWCOUNT_BIG", 0, 0, bigint_result, row_count_big},
};

int options_word(const Settings& s) {
  int word = 0;
  const auto bit = [&](int value, bool on) { word |= on ? value : 0; };
  bit(2, s.implicit_transactions);
  bit(4, s.cursor_close_on_commit);
  bit(8, s.ansi_warnings);
  bit(16, s.ansi_padding);
  bit(32, s.ansi_nulls);
  bit(64, s.arithabort);
  bit(256, s.quoted_identifier);
  bit(512, s.nocount);
  bit(1024, s.ansi_null_dflt_on);
  bit(4096, s.concat_null_yields_null);
  bit(8192, s.numeric_roundabort);
  bit(16384, s.xact_abort);
  return word;
}

}  // namespace

std::span<const Function> server_functions() { return table; }

std::optional<Value> global_value(const Context& context, const std::string& name) {
  const SessionState& s = context.session;
  const auto big = [](std::int64_t v) { return Value::of_int(v); };
  if (name == "@@VERSION") {
    const std::string text = fmt::format(
        "rowferry sandbox {} - this is not Microsoft SQL Server: a small in-memory server that speaks TDS, compatible "
        "with "
        "SQL Server 2022 ({}) where rowferry needs it",
        context.server.options.version, product_version());
    return Value::of_text(text, nvarchar_type(300, context.collation()));
  }
  if (name == "@@SPID") return Value::of_int(s.spid, Kind::smallint);
  if (name == "@@TRANCOUNT") return big(s.transaction != nullptr && s.transaction->user ? s.transaction->count : 0);
  if (name == "@@ROWCOUNT") return big(s.row_count);
  if (name == "@@ERROR") return big(s.last_error);
  if (name == "@@IDENTITY") return identity_value(s.last_identity);
  if (name == "@@SERVERNAME") return name_value(context, context.server.options.server_name);
  if (name == "@@SERVICENAME") return name_value(context, "MSSQLSERVER");
  if (name == "@@OPTIONS") return big(options_word(s.settings));
  if (name == "@@TEXTSIZE") return big(s.settings.textsize);
  if (name == "@@LANGUAGE") return name_value(context, s.settings.language);
  if (name == "@@LANGID") return Value::of_int(0, Kind::smallint);
  if (name == "@@MAX_PRECISION") return Value::of_int(38, Kind::tinyint);
  if (name == "@@LOCK_TIMEOUT") return big(s.settings.lock_timeout_ms);
  if (name == "@@DATEFIRST") return Value::of_int(s.settings.datefirst, Kind::tinyint);
  if (name == "@@NESTLEVEL") {
    std::int64_t level = 0;
    for (const auto& f : s.frames) level += f->kind == Frame::Kind::batch ? 0 : 1;
    return big(level);
  }
  if (name == "@@MICROSOFTVERSION")
    return big((static_cast<std::int64_t>(Server::product_major) << 24U) | Server::product_build);
  if (name == "@@DBTS") {
    std::string bytes(8, '\0');
    store_be(reinterpret_cast<std::uint8_t*>(bytes.data()), context.server.row_version);
    return Value::of_bytes(bytes, make_type(Kind::varbinary, 8));
  }
  if (name == "@@PROCID" || name == "@@FETCH_STATUS" || name == "@@CURSOR_ROWS" || name == "@@CONNECTIONS" ||
      name == "@@PACK_RECEIVED")
    return big(0);
  if (name == "@@MAX_CONNECTIONS") return big(32767);
  return std::nullopt;
}

}  // namespace rowferry::sandbox::engine
