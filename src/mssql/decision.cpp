#include "mssql/decision.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.hpp"
#include "base/text.hpp"
#include "mssql/dialect.hpp"

namespace rowferry::mssql {

namespace {

using system::ColumnPlan;
using system::Finalizer;
using system::Mode;
using system::TargetRequest;

constexpr std::size_t columns_max = 1024;    // of a table
constexpr std::size_t row_bytes_max = 8060;  // of a row's fixed part
constexpr std::size_t key_columns_max = 32;  // 16 before SQL Server 2016

class Decider {
 public:
  Decider(const Situation& situation, const TargetRequest& request, const std::vector<ColumnPlan>& columns,
          const std::vector<std::string>& source_key)
      : at_(situation), table_(situation.table), request_(request), columns_(columns), source_key_(source_key) {}

  Decision decide() {
    check_table();
    if (!table_.exists) {
      create();
    } else if (needs_rebuild(table_, request_, columns_)) {
      rebuild();
    } else {
      load_existing();
    }
    check_sizes();
    check_rights();
    return std::move(out_);
  }

 private:
  void check_table() const {
    const std::string name = table_.quoted_name();
    if (!table_.exists) {
      if (!request_.create) {
        throw Error(Category::not_found, "table_missing", fmt::format("the target table {} does not exist", name))
            .with_hint("`\"create\": true` in the target creates it");
      }
      return;
    }
    if (request_.mode == Mode::fail_if_exists && !request_.own_table) {
      throw Error(Category::conflict, "target_exists", fmt::format("the target table {} exists", name));
    }
    check_kind(table_);
  }

  // A table cannot have two columns whose names the database's collation holds equal.
  void check_names() const {
    const std::string& collation = at_.server.collation;
    const bool by_case = collation.find("_CS") != std::string::npos || collation.find("_BIN") != std::string::npos;
    for (std::size_t i = 0; i < columns_.size() && !by_case; ++i) {
      for (std::size_t j = 0; j < i; ++j) {
        const std::string& one = columns_[j].target;
        const std::string& other = columns_[i].target;
        if (!text::same_without_case(one, other)) continue;
        throw Error(Category::input, "column_repeated",
                    fmt::format("the columns \"{}\" and \"{}\" have one name to the database {}, whose collation {} "
                                "does not tell case apart",
                                one, other, quoted(at_.server.database), collation))
            .with_field("columns")
            .with_column(other)
            .with_hint("give one of them another `target`, or leave it out");
      }
    }
  }

  void create() {
    out_.creates = true;
    check_names();
    out_.finalizer = Finalizer::rename;
    out_.reason = "the table does not exist: staging becomes it";
    for (const ColumnPlan& column : columns_) {
      out_.staging.push_back({column.target, column.target_native + (column.target_nullable ? " NULL" : " NOT NULL")});
    }
    add_key(created_key(), "");
  }

  std::vector<std::string> created_key() const {
    if (!request_.key.empty()) return request_.key;
    std::vector<std::string> key;
    for (const std::string& part : source_key_) {
      const auto column = std::ranges::find(columns_, part, &ColumnPlan::source);
      if (column == columns_.end()) return {};
      key.push_back(column->target);
    }
    return key;
  }

  void add_key(const std::vector<std::string>& key, std::string_view constraint) {
    if (key.empty()) return;
    if (key.size() > key_columns_max) {
      throw Error(Category::unsupported, "key_impossible",
                  fmt::format("a primary key has at most {} columns, not {}", key_columns_max, key.size()));
    }
    for (const std::string& part : key) {
      const auto column = std::ranges::find(columns_, part, &ColumnPlan::target);
      if (column == columns_.end()) {
        throw Error(Category::input, "key_impossible", fmt::format("the key's column \"{}\" is not loaded", part))
            .with_field("target.key");
      }
      const std::string& native = column->target_native;
      if (native.find("(max)") != std::string::npos || native == "xml" || native == "json" || native == "text" ||
          native == "ntext" || native == "image") {
        throw Error(Category::input, "key_impossible",
                    fmt::format("the key's column \"{}\" cannot be {}", part, native))
            .with_column(part)
            .with_hint("give the column a `type` with a length");
      }
      for (StagingColumn& staged : out_.staging) {
        if (staged.name != part || !staged.definition.ends_with(" NULL") || staged.definition.ends_with("NOT NULL"))
          continue;
        staged.definition.replace(staged.definition.size() - 5, 5, " NOT NULL");
      }
    }
    out_.after_swap.push_back(fmt::format("ALTER TABLE {} ADD {}PRIMARY KEY CLUSTERED ({})", table_.quoted_name(),
                                          constraint.empty() ? "" : fmt::format("CONSTRAINT {} ", quoted(constraint)),
                                          quoted_list(key)));
  }

  // Column definitions of an existing table; the staging of a rebuild has all of them, another the loaded ones.
  std::string definition_of(const ColumnFacts& column, const std::string& native) const {
    std::string out = native;
    if (!column.collation.empty() && native.find(" COLLATE ") == std::string::npos)
      out += " COLLATE " + column.collation;
    return out + (column.nullable ? " NULL" : " NOT NULL");
  }

  void stage_loaded_columns() {
    for (const ColumnPlan& plan : columns_) {
      const ColumnFacts* const column = table_.column(plan.target);
      if (column == nullptr) {
        throw Error(Category::conflict, "target_changed",
                    fmt::format("the target has no column \"{}\" any more", plan.target));
      }
      out_.staging.push_back({column->name, definition_of(*column, column->native)});
    }
  }

  void load_existing() {
    stage_loaded_columns();
    const ColumnFacts* const identity = table_.identity_column();
    out_.identity_insert = identity != nullptr && std::ranges::any_of(columns_, [&](const ColumnPlan& column) {
                             return column.target == identity->name;
                           });
    choose_finalizer();
    if (request_.mode != Mode::append && out_.finalizer == Finalizer::insert_select) choose_clearing();
    choose_locks();
    silence_triggers();
    note_constraints();
  }

  void choose_finalizer() {
    const bool appends = request_.mode == Mode::append;
    const bool may_be_direct =
        appends && at_.empty && request_.workers == 1 && request_.verify == system::Verify::count;
    if (at_.planned ? at_.planned == Finalizer::direct : may_be_direct) {
      out_.finalizer = Finalizer::direct;
      out_.reason =
          "one load worker appends to an empty table and counts are all that is verified: one transaction loads it";
      return;
    }
    out_.finalizer = Finalizer::insert_select;
    if (!appends) {
      out_.reason = "the table stays as it is and its rows are replaced at once";
    } else if (!at_.empty) {
      out_.reason = "the table has rows: staging is added to them at once";
    } else {
      out_.reason = request_.workers == 1 ? "the rows are verified in staging first"
                                          : "several load workers fill staging in parallel";
    }
  }

  void choose_clearing() {
    std::string why;
    if (!table_.referenced_by.empty()) why = "foreign keys of other tables refer to it";
    if (table_.temporal) why = "it is a temporal table";
    if (table_.replicated) why = "it is replicated";
    if (at_.rights.alter == false) why = "the login may not alter it";
    out_.clear = why.empty() ? Decision::Clear::truncate : Decision::Clear::remove;
    if (!why.empty()) note("delete_instead_of_truncate", "the old rows are deleted one by one: " + why);
  }

  void choose_locks() {
    const std::string& wish = request_.load.table_lock;
    const bool direct = out_.finalizer == Finalizer::direct;
    // Staging is a heap of ours: a bulk update lock lets all load workers in. A live table is not to be locked for
    // everybody else unless its rows are replaced anyway.
    const bool lone_heap = table_.heap() && !table_.has_indexes();
    out_.table_lock_bulk = wish == "auto" ? !direct || lone_heap : wish == "true";
    out_.table_lock_insert =
        wish == "auto" ? (at_.empty || request_.mode != Mode::append) && !table_.columnstore() : wish == "true";
  }

  void silence_triggers() {
    for (const TriggerFacts& trigger : table_.triggers) {
      if (trigger.disabled) continue;
      if (request_.load.fire_triggers) {
        note("triggers_fire", fmt::format("trigger {} fires", quoted(trigger.name)));
      } else if (out_.finalizer != Finalizer::direct) {
        out_.silenced_triggers.push_back(trigger.name);
      }
    }
  }

  void note_constraints() {
    const bool any = !table_.checks.empty() || !table_.foreign_keys.empty();
    if (any && !request_.load.check_constraints) {
      if (out_.finalizer == Finalizer::direct) {
        note("constraints_untrusted", "foreign keys and checks are not checked and become untrusted");
      } else {
        note("constraints_checked", "the finalizer checks foreign keys and checks all the same");
      }
    }
    for (const std::vector<ConstraintFacts>* const list : {&table_.checks, &table_.foreign_keys}) {
      for (const ConstraintFacts& c : *list) {
        if (c.untrusted) note("constraint_untrusted", fmt::format("constraint {} is not trusted", quoted(c.name)));
      }
    }
    for (const IndexFacts& index : table_.indexes) {
      if (index.ignores_duplicates) {
        note("ignore_dup_key",
             fmt::format("index {} drops rows with duplicate keys (IGNORE_DUP_KEY): the transfer fails "
                         "when it does",
                         quoted(index.name)));
      }
    }
  }

  void rebuild() {
    out_.rebuilds = true;
    out_.finalizer = Finalizer::rename;
    out_.reason = "the planned definition differs: the table is rebuilt and swapped in";
    refuse_dependants();
    for (const ColumnFacts& column : table_.columns) stage_rebuilt(column);
    list_dropped();
    for (const Dependant& dependant : at_.dependants) {
      if (!dependant.drop.empty()) out_.before_swap.push_back(dependant.drop);
    }
    out_.before_swap.push_back("DROP TABLE " + table_.quoted_name());
    if (const IndexFacts* const key = table_.primary_key(); key != nullptr) {
      out_.after_swap.push_back(fmt::format("ALTER TABLE {} ADD CONSTRAINT {} PRIMARY KEY {} ({})",
                                            table_.quoted_name(), quoted(key->name),
                                            key->id == 1 ? "CLUSTERED" : "NONCLUSTERED", fmt::join(key->key, ", ")));
    }
  }

  void stage_rebuilt(const ColumnFacts& column) {
    if (!column.insertable()) {
      out_.dropped.push_back(fmt::format("column {} ({})", quoted(column.name), column.why_not_insertable()));
      return;
    }
    const auto plan = std::ranges::find(columns_, column.name, &ColumnPlan::target);
    std::string native = column.native;
    bool own_type = false;
    if (plan != columns_.end() && plan->target_native != column.native) {
      native = plan->target_native;
      own_type = true;
    }
    ColumnFacts like = column;
    const bool character = native.find("char") != std::string::npos || native.find("text") != std::string::npos;
    if (own_type && !character) like.collation.clear();
    if (column.identity) native += fmt::format(" IDENTITY({},{})", table_.identity_seed, table_.identity_increment);
    out_.staging.push_back({column.name, definition_of(like, native)});
  }

  void list_dropped() {
    for (const IndexFacts& index : table_.indexes) {
      if (index.id != 0 && !index.primary) out_.dropped.push_back("index " + quoted(index.name));
    }
    for (const std::string& name : table_.defaults) out_.dropped.push_back("default " + quoted(name));
    for (const ConstraintFacts& c : table_.checks) out_.dropped.push_back("check " + quoted(c.name));
    for (const ConstraintFacts& c : table_.foreign_keys) out_.dropped.push_back("foreign key " + quoted(c.name));
    if (out_.dropped.empty() || request_.replace_dependants) return;
    throw Error(Category::conflict, "dependants",
                fmt::format("rebuilding {} would drop: {}", table_.quoted_name(), fmt::join(out_.dropped, "; ")))
        .with_hint("`\"replace_dependants\": \"drop\"` drops them; mode truncate keeps the table as it is");
  }

  void refuse_dependants() const {
    std::vector<std::string> kept;
    for (const Dependant& dependant : at_.dependants) {
      if (!dependant.droppable || !request_.replace_dependants) kept.push_back(dependant.text);
    }
    if (kept.empty()) return;
    Error error(
        Category::conflict, "dependants",
        fmt::format("{} cannot be replaced, this depends on it: {}", table_.quoted_name(), fmt::join(kept, "; ")));
    if (!request_.replace_dependants) {
      error.with_hint("`\"replace_dependants\": \"drop\"` drops what can be dropped; mode truncate keeps the table");
    }
    throw error;
  }

  void check_sizes() const {
    if (out_.staging.size() > columns_max) {
      throw Error(Category::unsupported, "too_many_columns",
                  fmt::format("a table has at most {} columns, not {}", columns_max, out_.staging.size()));
    }
    if (!out_.creates) return;
    std::size_t bytes = 0;
    for (const ColumnPlan& column : columns_) bytes += fixed_row_bytes(parse_type(column.target_native));
    if (bytes > row_bytes_max) {
      throw Error(Category::unsupported, "row_too_large",
                  fmt::format("the fixed-width columns take {} bytes, a row has at most {}", bytes, row_bytes_max))
          .with_hint("give wide char columns the type nvarchar(max)");
    }
  }

  void check_rights() const {
    const std::string table = table_.quoted_name();
    const bool staged = out_.finalizer != Finalizer::direct;
    if (staged) need(at_.rights.create_table, "CREATE TABLE in the database " + quoted(at_.server.database));
    if (staged) need(at_.rights.alter_schema, "ALTER on the schema " + quoted(table_.schema));
    if (!table_.exists) return;
    need(at_.rights.insert, "INSERT on " + table);
    need(at_.rights.select, "SELECT on " + table);
    const bool alters = out_.identity_insert || !out_.silenced_triggers.empty() || out_.rebuilds;
    if (alters) need(at_.rights.alter, "ALTER on " + table);
    if (out_.clear == Decision::Clear::remove) need(at_.rights.remove, "DELETE on " + table);
  }

  void need(const std::optional<bool>& right, const std::string& what) const {
    if (right.value_or(true)) return;
    throw Error(Category::forbidden, "right_missing",
                fmt::format("the login {} has not the right {}", at_.server.login, what))
        .with_hint("grant it to the login");
  }

  void note(std::string code, std::string text) { out_.notices.push_back({std::move(code), std::move(text), ""}); }

  const Situation& at_;
  const TableFacts& table_;
  const TargetRequest& request_;
  const std::vector<ColumnPlan>& columns_;
  const std::vector<std::string>& source_key_;
  Decision out_;
};

std::vector<std::string> target_names(const std::vector<ColumnPlan>& columns) {
  std::vector<std::string> names;
  for (const ColumnPlan& column : columns) names.push_back(column.target);
  return names;
}

}  // namespace

void check_kind(const TableFacts& table) {
  if (!table.exists) return;
  const std::string name = table.quoted_name();
  if (table.kind != "U") {
    throw Error(Category::unsupported, "not_a_table",
                fmt::format("{} is no table but {}", name,
                            table.kind == "V" ? "a view" : (table.kind == "SN" ? "a synonym" : "another object")));
  }
  if (table.memory_optimized) {
    throw Error(Category::unsupported, "table_kind", name + " is a memory-optimized table: they cannot be loaded yet");
  }
  if (table.external) throw Error(Category::unsupported, "table_kind", name + " is an external table");
  if (table.history) {
    throw Error(Category::unsupported, "table_kind", name + " is the history of a temporal table: it takes no rows");
  }
}

bool needs_rebuild(const TableFacts& table, const TargetRequest& request, const std::vector<ColumnPlan>& columns) {
  if (!table.exists || request.mode != Mode::replace) return false;
  return std::ranges::any_of(columns, [&](const ColumnPlan& plan) {
    const ColumnFacts* const column = table.column(plan.target);
    return column != nullptr && column->native != plan.target_native;
  });
}

Decision decide(const Situation& situation, const TargetRequest& request, const std::vector<ColumnPlan>& columns,
                const std::vector<std::string>& source_key) {
  return Decider(situation, request, columns, source_key).decide();
}

std::string create_staging(const Decision& decision, const std::string& schema, const std::string& staging) {
  std::string list;
  for (const StagingColumn& column : decision.staging) {
    list += fmt::format("{}{} {}", list.empty() ? "" : ", ", quoted(column.name), column.definition);
  }
  return fmt::format("CREATE TABLE {} ({})", quoted(schema, staging), list);
}

std::vector<FinalizeStatement> finalize_statements(const Decision& decision, const TableFacts& table,
                                                   const std::string& staging, const std::vector<ColumnPlan>& columns,
                                                   Mode mode) {
  using Kind = FinalizeStatement::Kind;
  std::vector<FinalizeStatement> out;
  const auto plain = [&](std::string sql) { out.push_back({Kind::plain, std::move(sql)}); };
  const std::string target = table.quoted_name();
  const std::string from = quoted(table.schema, staging);
  if (decision.finalizer == Finalizer::rename) {
    for (const std::string& sql : decision.before_swap) plain(sql);
    plain(fmt::format("EXEC sp_rename {}, {}, N'OBJECT'", literal(from), literal(table.name)));
    for (const std::string& sql : decision.after_swap) plain(sql);
    out.push_back({Kind::count, fmt::format("SELECT COUNT_BIG(*) AS rows_now FROM {}", target)});
    return out;
  }
  if (decision.clear == Decision::Clear::truncate) plain("TRUNCATE TABLE " + target);
  if (decision.clear == Decision::Clear::remove) plain("DELETE FROM " + target);
  for (const std::string& trigger : decision.silenced_triggers) {
    plain(fmt::format("DISABLE TRIGGER {} ON {}", quoted(table.schema, trigger), target));
  }
  if (decision.identity_insert) plain(fmt::format("SET IDENTITY_INSERT {} ON", target));
  const std::string list = quoted_list(target_names(columns));
  out.push_back({Kind::insert, fmt::format("INSERT INTO {}{} ({}) SELECT {} FROM {}", target,
                                           decision.table_lock_insert ? " WITH (TABLOCK)" : "", list, list, from)});
  if (decision.identity_insert) plain(fmt::format("SET IDENTITY_INSERT {} OFF", target));
  for (const std::string& trigger : decision.silenced_triggers) {
    plain(fmt::format("ENABLE TRIGGER {} ON {}", quoted(table.schema, trigger), target));
  }
  if (mode != Mode::append) {
    out.push_back({Kind::count, fmt::format("SELECT COUNT_BIG(*) AS rows_now FROM {}", target)});
  }
  return out;
}

}  // namespace rowferry::mssql
