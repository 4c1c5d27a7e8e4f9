// What one slice of `commit: slice` does to its partition. Pure.
#include <fmt/format.h>

#include <algorithm>

#include "base/id.hpp"
#include "postgres/dialect.hpp"
#include "postgres/partitions.hpp"

namespace rowferry::postgres {

namespace {

constexpr std::size_t name_bytes_max = 63;
constexpr std::string_view bound_constraint = "rowferry_bound";

}  // namespace

std::string cut_name(const std::string& name, std::string_view hashed, bool needs_hash) {
  if (!needs_hash && name.size() <= name_bytes_max) return name;
  const std::string suffix = "_" + fingerprint(hashed).substr(0, 8);
  std::size_t end = std::min(name.size(), name_bytes_max - suffix.size());
  while (end > 0 && end < name.size() && (static_cast<unsigned char>(name[end]) & 0xC0U) == 0x80U) --end;
  return name.substr(0, end) + suffix;
}

namespace {

std::string named_check(const std::string& condition) {
  return fmt::format("CONSTRAINT {} CHECK ({})", bound_constraint, condition);
}

std::string drop_check(const std::string& table) {
  return fmt::format("; ALTER TABLE {} DROP CONSTRAINT {}", table, bound_constraint);
}

SliceStatements renew(const Decision& decision, const PartitionFacts& part) {
  SliceStatements out;
  out.table = out.partition = part.sql;
  for (const TriggerFacts& trigger : part.triggers) {
    if (!decision.quiet_partitions || !trigger.fires()) continue;
    out.before.push_back(silence_statement(part.sql, trigger));
    out.after.push_back(unsilence_statement(part.sql, trigger));
  }
  out.before.push_back("TRUNCATE " + part.sql);
  // Both are cheap for an empty table.
  if (decision.unlogged && part.persistence == 'p')
    out.before.push_back(fmt::format("ALTER TABLE {} SET UNLOGGED", part.sql));
  if (!decision.tablespace.empty() && part.tablespace != decision.tablespace) {
    out.before.push_back(fmt::format("ALTER TABLE {} SET TABLESPACE {}", part.sql, quote_name(decision.tablespace)));
  }
  return out;
}

SliceStatements make(const Decision& decision, const TableFacts& table, const SlicePartition& place) {
  SliceStatements out;
  out.creates = true;
  out.table = out.partition = quote_table({{place.schema, place.name}});
  CloneParts parts = clone_parts(table);
  if (!place.check.empty()) parts.checks.push_back(named_check(place.check));
  out.before.push_back(create_table(decision, out.table, parts.columns, parts.checks));
  out.build = clone_index_statements(table, out.table, "");
  if (!decision.owner.empty()) out.swap = fmt::format("ALTER TABLE {} OWNER TO {}; ", out.table, decision.owner);
  out.swap += fmt::format("ALTER TABLE {} ATTACH PARTITION {} {}", table.sql, out.table, place.bound);
  if (!place.check.empty()) out.swap += drop_check(out.table);
  return out;
}

SliceStatements replace(const Decision& decision, const TableFacts& table, const SlicePartition& place,
                        const std::string& fresh) {
  const PartitionFacts& part = *place.existing;
  SliceStatements out;
  out.table = quote_table({{part.schema, fresh}});
  out.partition = part.sql;
  CloneParts parts = clone_parts(table);
  if (!place.check.empty()) parts.checks.push_back(named_check(place.check));
  out.before.push_back(create_table(decision, out.table, parts.columns, parts.checks));
  out.build = clone_index_statements(table, out.table, fresh);
  // The owner stays: a table of another's must not become the role's.
  out.swap = fmt::format("ALTER TABLE {} OWNER TO {}; ALTER TABLE {} DETACH PARTITION {}; DROP TABLE {}; ", out.table,
                         part.owner, table.sql, part.sql, part.sql);
  out.swap += fmt::format("ALTER TABLE {} RENAME TO {}; ALTER TABLE {} ATTACH PARTITION {} {}", out.table,
                          quote_name(part.name), table.sql, part.sql, part.bound.text);
  if (!place.check.empty()) out.swap += drop_check(part.sql);
  std::vector<std::string> names;
  for (const IndexFacts& index : table.indexes) {
    if (!index.valid) continue;
    const std::string name =
        index.primary ? part.name + "_pkey" : fmt::format("{}_{}_idx", part.name, names.size() + 1);
    names.push_back(cut_name(name, name, false));
  }
  TableFacts beside;
  beside.schema = part.schema;
  for (const std::string& sql : rename_index_statements(beside, fresh, names)) out.swap += "; " + sql;
  for (const std::string& grant : part.grants) out.swap += "; " + grant_statement(grant, part.sql);
  return out;
}

}  // namespace

SliceStatements slice_statements(const Decision& decision, const TableFacts& table, const SlicePartition& partition,
                                 const std::string& fresh) {
  if (!partition.existing) return make(decision, table, partition);
  if (decision.exchange) return replace(decision, table, partition, fresh);
  return renew(decision, *partition.existing);
}

}  // namespace rowferry::postgres
