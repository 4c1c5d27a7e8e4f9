#include "postgres/decision.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.hpp"
#include "postgres/decision_checks.hpp"
#include "postgres/dialect.hpp"

namespace rowferry::postgres {

namespace {

using system::ColumnPlan;
using system::Commit;
using system::Finalizer;
using system::Mode;
using system::SliceBy;
using system::TargetRequest;

constexpr std::size_t key_columns_max = 32;  // INDEX_MAX_KEYS

std::string quoted_list(const std::vector<std::string>& names) {
  std::string out;
  for (const std::string& name : names) out += (out.empty() ? "" : ", ") + quote_name(name);
  return out;
}

const ColumnPlan* find_plan(const std::vector<ColumnPlan>& columns, std::string_view target) {
  const auto at = std::ranges::find(columns, target, &ColumnPlan::target);
  return at == columns.end() ? nullptr : &*at;
}

std::string column_definition(const ColumnFacts& column) {
  return column.native + (column.collation.empty() ? "" : " COLLATE " + column.collation) +
         (column.nullable ? "" : " NOT NULL");
}

class Decider {
 public:
  Decider(const Situation& situation, const TargetRequest& request, const std::vector<ColumnPlan>& columns,
          const std::vector<std::string>& source_key)
      : at_(situation), table_(situation.table), request_(request), columns_(columns), source_key_(source_key) {}

  Decision decide() {
    check_table(at_, request_);
    check_partition_wish(at_, request_, columns_);
    place_created();
    if (!table_.exists) {
      create();
    } else if (needs_rebuild(table_, request_, columns_)) {
      rebuild();
    } else if (request_.load.commit == Commit::slice) {
      per_slice();
    } else if (request_.load.exchange) {
      exchange();
    } else {
      load_existing();
    }
    check_names(out_, table_, columns_);
    note_freeze();
    note_unlogged();
    check_rights(at_, out_, request_);
    return std::move(out_);
  }

 private:
  // --- what holds for every way

  // Tablespace and persistence of whatever is made: staging, the table, partitions.
  void place_created() {
    out_.unlogged = request_.load.unlogged.value_or(false);
    if (request_.load.tablespace.empty()) return;
    if (!at_.tablespace_usable) {
      throw Error(Category::input, "tablespace_missing", at_.tablespace_why).with_field("load.tablespace");
    }
    out_.tablespace = request_.load.tablespace;
    note("tablespace",
         fmt::format("tables are made in the tablespace \"{}\": the server needs every tablespace to start, so that "
                     "losing it (a RAM disk, a local SSD) may damage the whole cluster and not these tables alone",
                     out_.tablespace));
  }

  // --- a missing table

  void create() {
    out_.creates = true;
    for (const ColumnPlan& column : columns_) {
      out_.staging.push_back({column.target, column.target_native + (column.target_nullable ? "" : " NOT NULL")});
    }
    const std::vector<std::string> key = created_key();
    if (!key.empty()) out_.key = key_definition(key);
    if (!request_.partition_by.empty()) {
      create_partitioned(key);
      return;
    }
    if (request_.load.commit == Commit::slice) throw needs_partition("the created table would not be partitioned");
    if (request_.load.exchange) throw exchange_needs_partitions();
    if (may_be_direct(request_.load.freeze.value_or(false))) {
      out_.finalizer = Finalizer::direct;
      out_.freeze = true;
      out_.reason = "the table does not exist and one load worker fills it: one transaction creates and loads it";
      out_.create_target.push_back(create_table(out_, table_.sql, out_.staging, {}));
      return;
    }
    out_.finalizer = Finalizer::rename;
    out_.reason = "the table does not exist: staging becomes it";
  }

  void create_partitioned(const std::vector<std::string>& key) {
    const ColumnPlan& column = *find_plan(columns_, request_.partition_column);
    if (column.write_type.id == rows::TypeId::json || column.target_native.starts_with("xml")) {
      throw Error(
          Category::input, "partition_column",
          fmt::format("{} has no order: a table cannot be partitioned by \"{}\"", column.target_native, column.target))
          .with_field("target.partition.column");
    }
    // A unique key of a partitioned table must contain the partition column.
    if (!key.empty() && std::ranges::find(key, request_.partition_column) == key.end()) {
      if (!request_.key.empty()) {
        throw Error(Category::input, "key_impossible",
                    fmt::format("the primary key of a partitioned table must contain its partition column \"{}\"",
                                request_.partition_column))
            .with_field("target.key");
      }
      note("key_left_out",
           fmt::format("the primary key ({}) is left out: that of a partitioned table must contain its partition "
                       "column \"{}\"",
                       fmt::join(key, ", "), request_.partition_column));
      out_.key.clear();
    }
    out_.create_target.push_back(create_parent());
    if (request_.load.commit == Commit::slice) {
      check_slices(request_.partition_by, request_.partition_column);
      commit_slices();
      return;
    }
    if (request_.load.exchange) throw exchange_needs_slices();
    out_.finalizer = Finalizer::insert_select;
    out_.reason = "the table is created with its partitions and filled from staging";
    out_.make_partitions = true;
    need_bounds();
  }

  // With the key, which then needs no statement of its own. Never UNLOGGED and in no tablespace itself: it has no rows,
  // and newer servers refuse it.
  std::string create_parent() {
    Decision plain;
    std::vector<std::string> constraints;
    if (!out_.key.empty()) {
      constraints.push_back(
          out_.key_name.empty() ? out_.key : fmt::format("CONSTRAINT {} {}", quote_name(out_.key_name), out_.key));
      out_.key.clear();
    }
    return fmt::format("{} PARTITION BY {} ({})", create_table(plain, table_.sql, out_.staging, constraints),
                       request_.partition_by == "list" ? "LIST" : "RANGE", quote_name(request_.partition_column));
  }

  std::vector<std::string> created_key() {
    std::vector<std::string> key = request_.key;
    if (key.empty()) {
      for (const std::string& part : source_key_) {
        const auto column = std::ranges::find(columns_, part, &ColumnPlan::source);
        if (column == columns_.end()) return {};
        key.push_back(column->target);
      }
    }
    if (key.size() > key_columns_max) {
      throw Error(Category::unsupported, "key_impossible",
                  fmt::format("a primary key has at most {} columns, not {}", key_columns_max, key.size()));
    }
    for (const std::string& part : key) check_key_column(part);
    return key;
  }

  void check_key_column(const std::string& part) {
    const ColumnPlan* const column = find_plan(columns_, part);
    if (column == nullptr) {
      throw Error(Category::input, "key_impossible", fmt::format("the key's column \"{}\" is not loaded", part))
          .with_field("target.key");
    }
    const std::string& native = column->target_native;
    if (native == "json" || native == "xml") {
      throw Error(Category::input, "key_impossible", fmt::format("the key's column \"{}\" cannot be {}", part, native))
          .with_column(part)
          .with_hint("give the column another `type`");
    }
    for (StagingColumn& staged : out_.staging) {
      if (staged.name == part && !staged.definition.ends_with(" NOT NULL")) staged.definition += " NOT NULL";
    }
  }

  static std::string key_definition(const std::vector<std::string>& key) {
    return fmt::format("PRIMARY KEY ({})", quoted_list(key));
  }

  // --- an existing table that stays as it is

  void stage_loaded_columns() {
    for (const ColumnPlan& plan : columns_) {
      const ColumnFacts* const column = table_.column(plan.target);
      if (column == nullptr) {
        throw Error(Category::conflict, "target_changed",
                    fmt::format("the target has no column \"{}\" any more", plan.target));
      }
      out_.staging.push_back({column->name, column_definition(*column)});
      if (column->identity != 0) out_.overriding = true;
    }
  }

  void load_existing() {
    stage_loaded_columns();
    if (!firing().empty() && !request_.load.fire_triggers) out_.silenced_triggers = firing();
    choose_finalizer();
    if (out_.finalizer == Finalizer::insert_select && table_.insert_rules) {
      throw Error(Category::unsupported, "insert_rules",
                  fmt::format("{} has rules that rewrite an INSERT: {}", table_.sql, fmt::join(table_.rules, ", ")))
          .with_hint("rules are not silenced: drop them, or use triggers");
    }
    if (request_.mode != Mode::append) choose_clearing();
    if (out_.finalizer == Finalizer::insert_select && !request_.partition_by.empty()) {
      out_.make_partitions = true;
      need_bounds();
    }
    note_triggers();
  }

  std::vector<TriggerFacts> firing() const {
    std::vector<TriggerFacts> out;
    std::ranges::copy_if(table_.triggers, std::back_inserter(out), &TriggerFacts::fires);
    return out;
  }

  bool may_be_direct(bool worth_it) const {
    if (at_.planned) return at_.planned == Finalizer::direct;
    return worth_it && request_.workers == 1 && request_.verify == system::Verify::count;
  }

  void choose_finalizer() {
    const bool appends = request_.mode == Mode::append;
    // COPY fires row triggers: an INSERT from staging can do without them for a moment, a whole load cannot.
    const bool quiet = out_.silenced_triggers.empty();
    const bool freezes = !appends && request_.load.freeze.value_or(false) && may_truncate() && !table_.partitioned();
    const bool fills = appends && at_.empty && quiet && !out_.unlogged;
    if (may_be_direct(fills || freezes)) {
      out_.finalizer = Finalizer::direct;
      out_.freeze = !appends;
      out_.reason = appends ? "one load worker appends to an empty table and counts are all that is verified: one "
                              "transaction loads it"
                            : "FREEZE is asked for and one load worker fills the table: one transaction truncates and "
                              "loads it";
      if (!appends) {
        note("locked_while_loaded", fmt::format("{} is locked against readers from TRUNCATE to the end of the load: "
                                                "without `freeze` it is for the last step only",
                                                table_.sql));
      }
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

  bool may_truncate() const { return at_.rights.truncate && table_.referenced_by.empty(); }

  void choose_clearing() {
    out_.clear = may_truncate() ? Decision::Clear::truncate : Decision::Clear::remove;
    if (out_.clear == Decision::Clear::truncate) return;
    const std::string why = table_.referenced_by.empty()
                                ? "the role has not the right TRUNCATE"
                                : fmt::format("foreign keys refer to it: {}", fmt::join(table_.referenced_by, ", "));
    note("delete_instead_of_truncate", "the old rows are deleted one by one: " + why);
  }

  void note_triggers() {
    for (const TriggerFacts& trigger : firing()) {
      if (request_.load.fire_triggers) note("triggers_fire", fmt::format("trigger {} fires", quote_name(trigger.name)));
    }
  }

  // A range partition can only be made for bounds that somebody gives: the slices.
  void need_bounds() const {
    const std::string& column = request_.partition_column;
    if (request_.partition_by != "range") return;
    const bool ranges = request_.slices_by == SliceBy::range || request_.slices_by == SliceBy::automatic;
    if (ranges && (request_.slice_column.empty() || request_.slice_column == column)) return;
    throw Error(Category::input, "partition_bounds_unknown",
                fmt::format("partitions by range have the bounds of the slices: slice by range of \"{}\"", column))
        .with_field("slices");
  }

  // --- commit: slice

  static Error needs_partition(std::string_view why) {
    return Error(Category::input, "commit_slice_needs_partition",
                 fmt::format("`commit: \"slice\"` renews one partition for each slice: {}", why))
        .with_field("load.commit")
        .with_hint("partition the target by list or range of the slice column, or leave `commit` at \"transfer\"");
  }

  void check_slices(const std::string& by, const std::string& column) const {
    if (request_.mode == Mode::append) {
      throw Error(Category::input, "commit_slice_replaces",
                  "`commit: \"slice\"` replaces the rows of each slice's partition: mode append would keep them")
          .with_field("load.commit")
          .with_hint("mode truncate replaces all rows");
    }
    const SliceBy wanted = by == "list" ? SliceBy::value : SliceBy::range;
    if (request_.slices_by != SliceBy::automatic && request_.slices_by != wanted) {
      throw needs_partition(fmt::format("a target partitioned by {} needs slices by {}, not by {}", by,
                                        to_string(wanted), to_string(request_.slices_by)));
    }
    if (!request_.slice_column.empty() && request_.slice_column != column) {
      throw needs_partition(fmt::format("{} is partitioned by \"{}\", the slices are cut by \"{}\"", table_.sql, column,
                                        request_.slice_column));
    }
    if (find_plan(columns_, column) == nullptr) {
      throw needs_partition(fmt::format("the partition column \"{}\" is not loaded", column));
    }
  }

  void check_partitioning() const {
    if (!table_.partitioned()) throw needs_partition(fmt::format("{} is not partitioned", table_.sql));
    if (table_.partition_by == "hash") {
      throw needs_partition(fmt::format("{} is partitioned by hash", table_.sql));
    }
    if (table_.partition_column.empty()) {
      throw needs_partition(
          fmt::format("{} is partitioned by {}: several columns or an expression", table_.sql, table_.partition_key));
    }
  }

  void per_slice() {
    check_partitioning();
    check_slices(table_.partition_by, table_.partition_column);
    if (!table_.referenced_by.empty()) {
      throw Error(Category::conflict, "dependants",
                  fmt::format("partitions of {} cannot be renewed one by one, foreign keys refer to it: {}", table_.sql,
                              fmt::join(table_.referenced_by, ", ")));
    }
    if (out_.unlogged && !table_.publications.empty()) {
      throw Error(Category::unsupported, "unlogged_published",
                  fmt::format("partitions of {} cannot be unlogged: it is in the publication {}", table_.sql,
                              fmt::join(table_.publications, ", ")))
          .with_field("load.unlogged");
    }
    stage_loaded_columns();
    commit_slices();
    for (const TriggerFacts& trigger : firing()) {
      if (!request_.load.fire_triggers) continue;
      note("triggers_fire", fmt::format("trigger {} fires for rows of existing partitions only: new ones take part "
                                        "once they are filled",
                                        quote_name(trigger.name)));
    }
  }

  void commit_slices() {
    out_.finalizer = Finalizer::per_slice;
    out_.freeze = request_.load.freeze.value_or(false);
    out_.exchange = request_.load.exchange;
    out_.quiet_partitions = !request_.load.fire_triggers;
    if (table_.exists && table_.owner != at_.rights.role) out_.owner = table_.owner;
    out_.reason = out_.exchange ? "each slice fills a table of its own, which then takes its partition's place"
                                : "each slice empties and fills its partition in one transaction";
    if (request_.source_filtered) {
      note("vanished_kept", "the source is filtered: partitions that no slice fills are left as they are");
    }
    if (!out_.exchange) {
      note("partition_locked",
           "a partition is locked against readers while its slice is loaded: `exchange` locks the "
           "table at the end of each slice for a moment instead");
    }
  }

  // --- exchange of one partition

  Error exchange_needs_partitions() const {
    return Error(Category::unsupported, "exchange_needs_partitions",
                 fmt::format("`exchange` replaces partitions, and {} has none and is none", table_.sql))
        .with_field("load.exchange");
  }
  Error exchange_needs_slices() const {
    return Error(Category::unsupported, "exchange_needs_slices",
                 fmt::format("`exchange` of the partitions of {} needs `commit: \"slice\"`", table_.sql))
        .with_field("load.exchange");
  }

  void exchange() {
    if (table_.partitioned()) throw exchange_needs_slices();
    if (table_.parent.empty()) throw exchange_needs_partitions();
    if (request_.mode == Mode::append) {
      throw Error(Category::input, "exchange_replaces", "`exchange` replaces all rows: mode append would keep them")
          .with_field("load.exchange");
    }
    if (!table_.referenced_by.empty()) {
      throw Error(Category::conflict, "dependants",
                  fmt::format("{} cannot be exchanged, foreign keys refer to it: {}", table_.sql,
                              fmt::join(table_.referenced_by, ", ")));
    }
    refuse_dependants("exchanged");
    out_.finalizer = Finalizer::exchange;
    out_.reason = "staging takes the partition's place: readers wait for a moment only";
    CloneParts parts = clone_parts(table_);
    out_.staging = std::move(parts.columns);
    out_.staging_checks = std::move(parts.checks);
    if (!table_.partition_check.empty()) {
      out_.staging_checks.push_back(fmt::format("CONSTRAINT rowferry_bound CHECK ({})", table_.partition_check));
    }
    if (table_.owner != at_.rights.role) out_.owner = table_.owner;
    out_.drops = dependant_drops();
    for (const std::string& grant : table_.grants) out_.after_swap.push_back(grant_statement(grant, table_.sql));
  }

  // --- a table that gets another definition

  void rebuild() {
    if (request_.load.commit == Commit::slice || request_.load.exchange) {
      throw Error(Category::unsupported, "rebuild_by_slices",
                  fmt::format("the planned definition of {} differs: it cannot be rebuilt slice by slice", table_.sql))
          .with_field("load.commit");
    }
    const bool repartitions = partitioned_otherwise(table_, request_);
    if ((table_.partitioned() && !repartitions) || !table_.parent.empty() || table_.typed) {
      throw Error(Category::unsupported, "rebuild_impossible",
                  fmt::format("the planned definition differs, and {} is {}: it is not rebuilt", table_.sql,
                              table_.partitioned()     ? "partitioned"
                              : !table_.parent.empty() ? "a partition of " + table_.parent
                                                       : "a table of a type"))
          .with_hint("give the columns the types that the table has, or drop the table and let it be created");
    }
    out_.rebuilds = true;
    out_.finalizer = Finalizer::rename;
    out_.reason = "the planned definition differs: the table is rebuilt and swapped in";
    refuse_dependants("replaced");
    for (const ColumnFacts& column : table_.columns) stage_rebuilt(column);
    list_dropped();
    out_.drops = dependant_drops();
    if (table_.owner != at_.rights.role) out_.owner = table_.owner;
    if (const IndexFacts* const key = table_.primary_key(); key != nullptr) {
      out_.key = key->constraint;
      out_.key_name = key->name;
    }
    if (repartitions) repartition();
  }

  // The new table takes no rows by a rename: it is made in the transaction that fills it from staging.
  void repartition() {
    const IndexFacts* const key = table_.primary_key();
    const std::string& column = request_.partition_column;
    if (table_.column(column) == nullptr) {
      throw Error(Category::input, "partition_column", fmt::format("{} has no column \"{}\"", table_.sql, column))
          .with_field("target.partition.column");
    }
    if (key != nullptr && std::ranges::find(key->columns, column) == key->columns.end()) {
      out_.key.clear();
      out_.dropped.push_back(
          fmt::format("key {} (it must contain the partition column \"{}\")", quote_name(key->name), column));
      if (!request_.replace_dependants) refuse_dropped();
    }
    out_.finalizer = Finalizer::insert_select;
    out_.reason = "the table is partitioned otherwise: it is made anew and filled from staging in one transaction";
    out_.make_partitions = true;
    need_bounds();
    for (const OwnedSequence& s : out_.sequences) {
      out_.create_target.push_back(fmt::format("ALTER SEQUENCE {} OWNED BY NONE", s.sequence));
    }
    for (const std::string& sql : out_.drops) out_.create_target.push_back(sql);
    out_.create_target.push_back("DROP TABLE " + table_.sql);
    out_.create_target.push_back(create_parent());
    if (!out_.owner.empty()) {
      out_.create_target.push_back(fmt::format("ALTER TABLE {} OWNER TO {}", table_.sql, out_.owner));
    }
    for (const OwnedSequence& s : out_.sequences) {
      out_.create_target.push_back(
          fmt::format("ALTER SEQUENCE {} OWNED BY {}.{}", s.sequence, table_.sql, quote_name(s.column)));
    }
  }

  void stage_rebuilt(const ColumnFacts& column) {
    if (!column.insertable()) {
      out_.dropped.push_back(fmt::format("column {} (generated)", quote_name(column.name)));
      return;
    }
    ColumnFacts like = column;
    const ColumnPlan* const plan = find_plan(columns_, column.name);
    const bool other_type = plan != nullptr && plan->target_native != column.native;
    if (other_type) {
      like.native = plan->target_native;
      const bool character =
          plan->write_type.id == rows::TypeId::text && like.native.find(" COLLATE ") == std::string::npos;
      if (!character) like.collation.clear();
    }
    StagingColumn staged{column.name, column_definition(like)};
    if (column.identity != 0) {
      keep_identity(column, like.native);
    } else if (!column.expression.empty() && other_type) {
      out_.dropped.push_back("default of " + quote_name(column.name));
    } else if (!column.expression.empty()) {
      staged.definition += " DEFAULT " + column.expression;
      if (!column.sequence.empty()) out_.sequences.push_back({column.sequence, column.name});
    }
    out_.staging.push_back(std::move(staged));
  }

  void keep_identity(const ColumnFacts& column, const std::string& native) {
    const bool whole = native == "smallint" || native == "integer" || native == "bigint";
    if (!whole) {
      out_.dropped.push_back("identity of " + quote_name(column.name));
      return;
    }
    out_.after_swap.push_back(fmt::format(
        "ALTER TABLE {} ALTER COLUMN {} ADD GENERATED {} AS IDENTITY (SEQUENCE NAME {} INCREMENT BY {})", table_.sql,
        quote_name(column.name), column.identity == 'a' ? "ALWAYS" : "BY DEFAULT", column.sequence, column.increment));
  }

  void list_dropped() {
    for (const IndexFacts& index : table_.indexes) {
      if (!index.primary) out_.dropped.push_back("index " + quote_name(index.name));
    }
    for (const ConstraintFacts& c : table_.constraints) {
      out_.dropped.push_back((c.type == 'f' ? "foreign key " : "check ") + quote_name(c.name));
    }
    for (const TriggerFacts& trigger : table_.triggers) out_.dropped.push_back("trigger " + quote_name(trigger.name));
    for (const std::string& rule : table_.rules) out_.dropped.push_back("rule " + quote_name(rule));
    for (const std::string& policy : table_.policies) out_.dropped.push_back("policy " + quote_name(policy));
    for (const std::string& grant : table_.grants) {
      out_.dropped.push_back(fmt::format("grant {}", grant_statement(grant, table_.sql)));
    }
    if (!out_.dropped.empty() && !request_.replace_dependants) refuse_dropped();
  }

  [[noreturn]] void refuse_dropped() const {
    throw Error(Category::conflict, "dependants",
                fmt::format("rebuilding {} would drop: {}", table_.sql, fmt::join(out_.dropped, "; ")))
        .with_hint("`\"replace_dependants\": \"drop\"` drops them; mode truncate keeps the table as it is");
  }

  std::vector<std::string> dependant_drops() const {
    std::vector<std::string> out;
    for (const Dependant& dependant : at_.dependants) {
      if (!dependant.drop.empty()) out.push_back(dependant.drop);
    }
    return out;
  }

  void refuse_dependants(std::string_view what) {
    std::vector<std::string> kept;
    for (const Dependant& dependant : at_.dependants) {
      if (!dependant.droppable || !request_.replace_dependants) {
        kept.push_back(dependant.text);
      } else {
        out_.dropped.push_back(dependant.text);
      }
    }
    if (kept.empty()) return;
    Error error(Category::conflict, "dependants",
                fmt::format("{} cannot be {}, this depends on it: {}", table_.sql, what, fmt::join(kept, "; ")));
    if (!request_.replace_dependants) {
      error.with_hint("`\"replace_dependants\": \"drop\"` drops what can be dropped; mode truncate keeps the table");
    }
    throw error;
  }

  // --- notices

  void note_freeze() {
    if (!request_.load.freeze.value_or(false) || out_.freeze) return;
    note("freeze_not_possible",
         "FREEZE is for a table that the same transaction has created or emptied: the load is a plain COPY");
  }

  void note_unlogged() {
    if (table_.exists && table_.persistence == 'u' && !out_.rebuilds) {
      note("unlogged", fmt::format("{} is UNLOGGED: a crash of the server empties it", table_.sql));
    }
    if (!out_.unlogged) return;
    if (out_.finalizer == Finalizer::insert_select && !out_.creates) {
      note("unlogged_staging", "staging is UNLOGGED, the table keeps its own persistence");
    } else if (out_.finalizer == Finalizer::per_slice || out_.make_partitions) {
      note("unlogged", "partitions that are filled are UNLOGGED: a crash of the server empties them");
    } else if (out_.finalizer != Finalizer::direct || out_.creates) {
      note("unlogged", fmt::format("{} is made UNLOGGED: a crash of the server empties it", table_.sql));
    }
  }

  void note(std::string code, std::string text) { out_.notices.push_back({std::move(code), std::move(text), ""}); }

  const Situation& at_;
  const TableFacts& table_;
  const TargetRequest& request_;
  const std::vector<ColumnPlan>& columns_;
  const std::vector<std::string>& source_key_;
  Decision out_;
};

}  // namespace

Decision decide(const Situation& situation, const TargetRequest& request, const std::vector<ColumnPlan>& columns,
                const std::vector<std::string>& source_key) {
  return Decider(situation, request, columns, source_key).decide();
}

}  // namespace rowferry::postgres
