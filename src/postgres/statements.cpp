// The statements that a decision becomes. Pure; tests/postgres runs them against a server too.
#include <fmt/format.h>

#include "postgres/decision.hpp"
#include "postgres/dialect.hpp"

namespace rowferry::postgres {

namespace {

using system::ColumnPlan;
using system::Finalizer;
using system::Mode;
using Kind = FinalizeStatement::Kind;

std::string column_list(const std::vector<ColumnPlan>& columns) {
  std::string out;
  for (const ColumnPlan& column : columns) out += (out.empty() ? "" : ", ") + quote_name(column.target);
  return out;
}

// A table that others inherit from has rows of its own, and only those are the target's.
std::string_view only(const TableFacts& table) { return table.exists && !table.children.empty() ? "ONLY " : ""; }

std::string staging_sql(const TableFacts& table, const std::string& staging) {
  return quote_table({{table.schema, staging}});
}

std::string key_name_of(const std::string& staging) { return staging + "_key"; }

class Finalizing {
 public:
  Finalizing(const Decision& decision, const TableFacts& table, const std::string& staging,
             const std::vector<ColumnPlan>& columns, const system::TargetRequest& request)
      : decision_(decision),
        table_(table),
        staging_(staging),
        columns_(columns),
        mode_(request.mode),
        fires_(request.load.fire_triggers),
        from_(staging.empty() ? std::string() : staging_sql(table, staging)) {}

  std::vector<FinalizeStatement> list() {
    switch (decision_.finalizer) {
      case Finalizer::rename:
        rename();
        break;
      case Finalizer::exchange:
        exchange();
        break;
      case Finalizer::direct:
        direct();
        break;
      case Finalizer::insert_select:
        insert_select();
        break;
      default:
        return {};
    }
    return std::move(out_);
  }

 private:
  void add(Kind kind, std::string sql) { out_.push_back({kind, std::move(sql)}); }
  void count() { add(Kind::count, fmt::format("SELECT count(*) AS rows_now FROM {}{}", only(table_), table_.sql)); }

  // Whatever takes long comes before the swap: nobody else sees staging.
  void rename() {
    const bool replaces = decision_.rebuilds;
    std::string swap;
    if (!decision_.key.empty()) {
      add(Kind::plain,
          fmt::format("ALTER TABLE {} ADD CONSTRAINT {} {}", from_, quote_name(key_name_of(staging_)), decision_.key));
    }
    if (replaces) {
      if (!decision_.owner.empty()) swap += fmt::format("ALTER TABLE {} OWNER TO {}; ", from_, decision_.owner);
      for (const OwnedSequence& s : decision_.sequences) {
        swap += fmt::format("ALTER SEQUENCE {} OWNED BY {}.{}; ", s.sequence, from_, quote_name(s.column));
      }
      for (const std::string& sql : decision_.drops) swap += sql + "; ";
      swap += fmt::format("DROP TABLE {}; ", table_.sql);
    }
    swap += fmt::format("ALTER TABLE {} RENAME TO {}", from_, quote_name(table_.name));
    if (!decision_.key.empty()) {
      const std::string final_name = decision_.key_name.empty() ? default_key_name() : decision_.key_name;
      swap += fmt::format("; ALTER TABLE {} RENAME CONSTRAINT {} TO {}", table_.sql, quote_name(key_name_of(staging_)),
                          quote_name(final_name));
    }
    for (const std::string& sql : decision_.after_swap) swap += "; " + sql;
    add(Kind::swap, std::move(swap));
    count();
  }

  // As the server would choose it: the table's name, cut so that the suffix fits.
  std::string default_key_name() const {
    constexpr std::string_view suffix = "_pkey";
    constexpr std::size_t bytes_max = 63;
    std::string name = table_.name;
    if (name.size() + suffix.size() > bytes_max) {
      std::size_t end = bytes_max - suffix.size();
      while (end > 0 && (static_cast<unsigned char>(name[end]) & 0xC0U) == 0x80U) --end;
      name.resize(end);
    }
    return name.append(suffix);
  }

  void exchange() {
    for (std::string& sql : clone_index_statements(table_, from_, staging_)) add(Kind::plain, std::move(sql));
    std::string swap;
    if (!decision_.owner.empty()) swap += fmt::format("ALTER TABLE {} OWNER TO {}; ", from_, decision_.owner);
    for (const std::string& sql : decision_.drops) swap += sql + "; ";
    swap += fmt::format("ALTER TABLE {} DETACH PARTITION {}; DROP TABLE {}; ", table_.parent, table_.sql, table_.sql);
    swap += fmt::format("ALTER TABLE {} RENAME TO {}; ", from_, quote_name(table_.name));
    swap += fmt::format("ALTER TABLE {} ATTACH PARTITION {} {}", table_.parent, table_.sql, table_.parent_bound);
    if (!table_.partition_check.empty()) {
      swap += fmt::format("; ALTER TABLE {} DROP CONSTRAINT rowferry_bound", table_.sql);
    }
    std::vector<std::string> names;
    for (const IndexFacts& index : table_.indexes) {
      if (index.valid) names.push_back(index.name);
    }
    for (const std::string& sql : rename_index_statements(table_, staging_, names)) swap += "; " + sql;
    for (const std::string& sql : decision_.after_swap) swap += "; " + sql;
    add(Kind::swap, std::move(swap));
    count();
  }

  void direct() {
    if (!decision_.key.empty()) add(Kind::plain, fmt::format("ALTER TABLE {} ADD {}", table_.sql, decision_.key));
    if (!decision_.creates) {
      for (const TriggerFacts& trigger : decision_.silenced_triggers) {
        add(Kind::plain, unsilence_statement(table_.sql, trigger));
      }
    }
    if (mode_ != Mode::append) count();
  }

  void insert_select() {
    if (decision_.rebuilds) {
      std::string swap;
      for (const std::string& sql : decision_.create_target) swap += (swap.empty() ? "" : "; ") + sql;
      add(Kind::swap, std::move(swap));
    } else {
      for (const std::string& sql : decision_.create_target) add(Kind::plain, sql);
    }
    for (const TriggerFacts& trigger : decision_.silenced_triggers) {
      add(Kind::plain, silence_statement(table_.sql, trigger));
    }
    if (decision_.clear == Decision::Clear::truncate) {
      add(Kind::plain, fmt::format("TRUNCATE {}{}", only(table_), table_.sql));
    }
    if (decision_.clear == Decision::Clear::remove) {
      add(Kind::plain, fmt::format("DELETE FROM {}{}", only(table_), table_.sql));
    }
    if (decision_.make_partitions) add(Kind::partitions, "");
    const std::string list = column_list(columns_);
    if (fires_) add(Kind::plain, std::string(own_search_path));
    add(Kind::insert, fmt::format("INSERT INTO {} ({}){} SELECT {} FROM {}", table_.sql, list,
                                  decision_.overriding ? " OVERRIDING SYSTEM VALUE" : "", list, from_));
    for (const TriggerFacts& trigger : decision_.silenced_triggers) {
      add(Kind::plain, unsilence_statement(table_.sql, trigger));
    }
    for (const std::string& sql : decision_.after_swap) add(Kind::plain, sql);
    if (mode_ != Mode::append || decision_.creates) count();
  }

  const Decision& decision_;
  const TableFacts& table_;
  const std::string& staging_;
  const std::vector<ColumnPlan>& columns_;
  Mode mode_;
  bool fires_;
  std::string from_;
  std::vector<FinalizeStatement> out_;
};

}  // namespace

std::string create_table(const Decision& decision, const std::string& table, const std::vector<StagingColumn>& columns,
                         const std::vector<std::string>& constraints) {
  std::string list;
  for (const StagingColumn& column : columns) {
    list += fmt::format("{}{} {}", list.empty() ? "" : ", ", quote_name(column.name), column.definition);
  }
  for (const std::string& constraint : constraints) list += (list.empty() ? "" : ", ") + constraint;
  return fmt::format("CREATE {}TABLE {} ({}){}", decision.unlogged ? "UNLOGGED " : "", table, list,
                     decision.tablespace.empty() ? "" : " TABLESPACE " + quote_name(decision.tablespace));
}

std::string create_staging(const Decision& decision, const std::string& schema, const std::string& staging) {
  return create_table(decision, quote_table({{schema, staging}}), decision.staging, decision.staging_checks);
}

std::string copy_statement(const std::string& table, const std::vector<ColumnPlan>& columns, std::string_view format,
                           bool freeze) {
  return fmt::format("COPY {} ({}) FROM STDIN (FORMAT {}{})", table, column_list(columns), format,
                     freeze ? ", FREEZE" : "");
}

std::vector<std::string> direct_statements(const Decision& decision, const TableFacts& table) {
  std::vector<std::string> out = decision.create_target;
  if (decision.creates) return out;
  for (const TriggerFacts& trigger : decision.silenced_triggers) out.push_back(silence_statement(table.sql, trigger));
  if (decision.clear == Decision::Clear::truncate) out.push_back(fmt::format("TRUNCATE {}{}", only(table), table.sql));
  if (decision.clear == Decision::Clear::remove) out.push_back(fmt::format("DELETE FROM {}{}", only(table), table.sql));
  return out;
}

std::vector<FinalizeStatement> finalize_statements(const Decision& decision, const TableFacts& table,
                                                   const std::string& staging, const std::vector<ColumnPlan>& columns,
                                                   const system::TargetRequest& request) {
  return Finalizing(decision, table, staging, columns, request).list();
}

std::vector<std::string> sequence_statements(const TableFacts& table, const std::vector<ColumnPlan>& columns) {
  std::vector<std::string> out;
  for (const ColumnPlan& plan : columns) {
    const ColumnFacts* const column = table.column(plan.target);
    if (column == nullptr || column->sequence.empty()) continue;
    const bool down = column->increment < 0;
    // The value that comes next is last_value itself as long as none was given out.
    out.push_back(fmt::format(
        "SELECT pg_catalog.setval({0}::pg_catalog.regclass, reached.value) FROM (SELECT {1}({2})::pg_catalog.int8 "
        "AS value FROM {3}) AS reached, {4} AS counter WHERE reached.value {5} counter.last_value OR (reached.value = "
        "counter.last_value AND NOT counter.is_called)",
        quote_text(column->sequence), down ? "pg_catalog.min" : "pg_catalog.max", quote_name(column->name), table.sql,
        column->sequence, down ? "<" : ">"));
  }
  return out;
}

CloneParts clone_parts(const TableFacts& table) {
  CloneParts out;
  for (const ColumnFacts& column : table.columns) {
    std::string definition = column.native;
    if (!column.collation.empty()) definition += " COLLATE " + column.collation;
    if (column.generated != 0) {
      definition += fmt::format(" GENERATED ALWAYS AS ({}) {}", column.expression,
                                column.generated == 's' ? "STORED" : "VIRTUAL");
    } else if (!column.expression.empty()) {
      definition += " DEFAULT " + column.expression;
    }
    if (!column.nullable) definition += " NOT NULL";
    out.columns.push_back({column.name, std::move(definition)});
  }
  for (const ConstraintFacts& c : table.constraints) {
    if (c.type == 'c') out.checks.push_back(fmt::format("CONSTRAINT {} {}", quote_name(c.name), c.definition));
  }
  return out;
}

std::vector<std::string> clone_index_statements(const TableFacts& table, const std::string& clone,
                                                const std::string& prefix) {
  std::vector<std::string> out;
  int number = 0;
  for (const IndexFacts& index : table.indexes) {
    if (!index.valid) continue;
    const std::string name = prefix.empty() ? "" : quote_name(fmt::format("{}_{}", prefix, ++number)) + " ";
    if (!index.constraint.empty()) {
      out.push_back(
          fmt::format("ALTER TABLE {} ADD {}{}{}", clone, name.empty() ? "" : "CONSTRAINT ", name, index.constraint));
    } else {
      out.push_back(
          fmt::format("CREATE {}INDEX {}ON {} {}", index.unique ? "UNIQUE " : "", name, clone, index.definition));
    }
  }
  for (const ConstraintFacts& c : table.constraints) {
    if (c.type != 'f') continue;
    out.push_back(fmt::format("ALTER TABLE {} ADD CONSTRAINT {} {}", clone, quote_name(c.name), c.definition));
  }
  return out;
}

std::vector<std::string> rename_index_statements(const TableFacts& table, const std::string& prefix,
                                                 const std::vector<std::string>& names) {
  std::vector<std::string> out;
  for (std::size_t i = 0; i < names.size(); ++i) {
    out.push_back(fmt::format("ALTER INDEX {} RENAME TO {}",
                              quote_table({{table.schema, fmt::format("{}_{}", prefix, i + 1)}}),
                              quote_name(names[i])));
  }
  return out;
}

std::string silence_statement(const std::string& table, const TriggerFacts& trigger) {
  return fmt::format("ALTER TABLE {} DISABLE TRIGGER {}", table, quote_name(trigger.name));
}

std::string unsilence_statement(const std::string& table, const TriggerFacts& trigger) {
  return fmt::format("ALTER TABLE {} ENABLE {}TRIGGER {}", table, trigger.enabled == 'A' ? "ALWAYS " : "",
                     quote_name(trigger.name));
}

std::string grant_statement(const std::string& grant, const std::string& table) {
  // "SELECT|reader|grantable", the role in SQL.
  const std::size_t first = grant.find('|');
  const std::size_t last = grant.rfind('|');
  return fmt::format("GRANT {} ON TABLE {} TO {}{}", grant.substr(0, first), table,
                     grant.substr(first + 1, last - first - 1),
                     grant.substr(last + 1) == "t" ? " WITH GRANT OPTION" : "");
}

}  // namespace rowferry::postgres
