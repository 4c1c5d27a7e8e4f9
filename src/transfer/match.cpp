#include "transfer/match.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "base/text.hpp"
#include "rows/convert.hpp"

namespace rowferry::transfer {

namespace {

using system::ColumnPart;
using system::ColumnPlan;
using system::Notice;
using system::SourceColumn;
using system::SourceTable;
using system::TargetColumn;
using system::TargetTable;

constexpr std::uint32_t offset_chars = 6;       // "+05:30"
constexpr std::uint32_t base_type_chars = 256;  // a sysname (128) with its length or precision

// What of the source is to travel, in order: the index of its column and what the spec says of it.
struct Wanted {
  std::size_t source = 0;
  const ColumnSpec* spec = nullptr;  // null: by default
  std::string field;                 // "columns[1]"
};

std::vector<Wanted> wanted_columns(const Spec& spec, const SourceTable& source) {
  std::vector<Wanted> wanted;
  if (spec.columns.empty()) {
    for (std::size_t i = 0; i < source.columns.size(); ++i) wanted.push_back({.source = i});
    return wanted;
  }
  for (std::size_t c = 0; c < spec.columns.size(); ++c) {
    const ColumnSpec& column = spec.columns[c];
    const auto at = std::ranges::find(source.columns, column.source, &SourceColumn::name);
    const std::string field = fmt::format("columns[{}]", c);
    if (at == source.columns.end()) {
      std::vector<std::string_view> names;
      for (const SourceColumn& s : source.columns) names.push_back(s.name);
      throw Error(Category::not_found, "column_missing", fmt::format("the source has no column \"{}\"", column.source))
          .with_field(field + ".source")
          .with_hint(names.empty() ? "" : fmt::format("the nearest is \"{}\"", nearest_name(column.source, names)));
    }
    wanted.push_back(
        {.source = static_cast<std::size_t>(at - source.columns.begin()), .spec = &column, .field = field});
  }
  return wanted;
}

std::string target_name(const Wanted& wanted, const SourceTable& source) {
  if (wanted.spec != nullptr && !wanted.spec->target.empty()) return wanted.spec->target;
  return source.columns[wanted.source].name;
}

class Matcher {
 public:
  Matcher(const Spec& spec, const SourceTable& source, const TargetTable& target, const system::Target& types)
      : spec_(spec), source_(source), target_(target), types_(types), wanted_(wanted_columns(spec, source)) {}

  Match match() {
    if (target_.exists) {
      pair_names();
    } else {
      for (std::size_t i = 0; i < wanted_.size(); ++i) pairs_.push_back(npos);
    }
    for (std::size_t i = 0; i < wanted_.size(); ++i) add_column(i);
    if (out_.columns.empty()) {
      throw Error(Category::input, "no_columns_match", "no column of the source has a counterpart in the target")
          .with_hint("name the pairs in `columns`");
    }
    check_repeated();
    carry_key();
    if (target_.exists) check_unfilled();
    return std::move(out_);
  }

 private:
  static constexpr std::size_t npos = static_cast<std::size_t>(-1);

  void pair_names() {
    std::vector<bool> taken(target_.columns.size());
    pairs_.assign(wanted_.size(), npos);
    for (std::size_t i = 0; i < wanted_.size(); ++i) {
      const std::string name = target_name(wanted_[i], source_);
      for (std::size_t t = 0; t < target_.columns.size(); ++t) {
        if (target_.columns[t].name != name) continue;
        if (taken[t]) repeated(name);
        pairs_[i] = t;
        taken[t] = true;
      }
    }
    pair_without_case(taken);
  }

  void pair_without_case(std::vector<bool>& taken) {
    const std::vector<bool> exact = taken;
    for (std::size_t i = 0; i < wanted_.size(); ++i) {
      if (pairs_[i] != npos) continue;
      const std::string name = target_name(wanted_[i], source_);
      std::size_t hits = 0;
      std::size_t hit = npos;
      for (std::size_t t = 0; t < target_.columns.size(); ++t) {
        if (exact[t] || !text::same_without_case(target_.columns[t].name, name)) continue;
        ++hits;
        hit = t;
      }
      std::size_t rivals = 0;
      for (std::size_t j = 0; j < wanted_.size(); ++j) {
        if (pairs_[j] == npos || !exact[pairs_[j]])
          rivals += text::same_without_case(target_name(wanted_[j], source_), name) ? 1 : 0;
      }
      if (hits != 1 || rivals != 1) continue;
      pairs_[i] = hit;
      taken[hit] = true;
    }
  }

  [[noreturn]] static void repeated(const std::string& name) {
    throw Error(Category::input, "column_repeated", fmt::format("two columns go into the target column \"{}\"", name))
        .with_field("columns")
        .with_column(name);
  }

  void check_repeated() const {
    std::set<std::string> seen;
    for (const ColumnPlan& column : out_.columns) {
      if (!seen.insert(column.target).second) repeated(column.target);
    }
  }

  void add_column(std::size_t i) {
    const Wanted& wanted = wanted_[i];
    const SourceColumn& from = source_.columns[wanted.source];
    const bool named = wanted.spec != nullptr;
    const TargetColumn* to = pairs_[i] == npos ? nullptr : &target_.columns[pairs_[i]];
    if (target_.exists && to == nullptr) {
      no_counterpart(wanted, from);
      return;
    }
    if (to != nullptr && !usable(*to, from, named, wanted.field)) return;
    ColumnPlan plan;
    plan.source = from.name;
    plan.target = to != nullptr ? to->name : target_name(wanted, source_);
    plan.source_native = from.native;
    plan.source_nullable = from.nullable;
    if (named) {
      plan.policy.action = wanted.spec->on_loss.value_or(rows::OnLoss::error);
      plan.policy.replacement = wanted.spec->replacement;
    }
    std::string wanted_type = named ? wanted.spec->type : "";
    SourceColumn typed = from;
    plan.read_type = from.type;
    if (wanted_type == "json" && from.can_read_as_json) {
      plan.read_as_json = true;
      plan.read_type = typed.type = rows::Type::of(rows::TypeId::json);
      typed.any_decimal = false;
      wanted_type.clear();
    }
    if (named && wanted.spec->scan_numeric && !from.any_decimal) {
      throw Error(Category::input, "bad_value", fmt::format("column \"{}\" is no numeric without precision", from.name))
          .with_field(wanted.field + ".scan_numeric");
    }
    if (to != nullptr) {
      into_existing(plan, typed, *to, wanted_type, wanted.field);
    } else {
      into_created(plan, typed, wanted_type, wanted.field, named && wanted.spec->scan_numeric);
    }
    finish(plan, from, wanted);
    const std::string target = plan.target;
    push(std::move(plan), wanted.source, std::move(wanted_type));
    if (!named) return;
    if (wanted.spec->keep_offset) add_part(wanted, ColumnPart::offset, target);
    if (wanted.spec->variant_base_type) add_part(wanted, ColumnPart::base_type, target);
  }

  void push(ColumnPlan plan, std::size_t source, std::string wanted_type) {
    out_.columns.push_back(std::move(plan));
    out_.source_index.push_back(source);
    out_.wanted_types.push_back(std::move(wanted_type));
  }

  // What a value alone does not say, as a text column of its own right after it.
  void add_part(const Wanted& wanted, ColumnPart part, const std::string& beside) {
    const SourceColumn& from = source_.columns[wanted.source];
    const bool is_offset = part == ColumnPart::offset;
    const std::string field = wanted.field + (is_offset ? ".keep_offset" : ".variant_base_type");
    if (is_offset ? !from.has_offset : !from.variant) {
      throw Error(Category::input, "bad_value",
                  fmt::format("column \"{}\" ({}) has no {}", from.name, from.native,
                              is_offset ? "offset" : "base type of its own"))
          .with_field(field);
    }
    const std::string name = beside + (is_offset ? "_offset" : "_type");
    SourceColumn typed;
    typed.name = from.name;
    typed.native = fmt::format("{} ({})", from.native, is_offset ? "offset" : "base type");
    typed.type = rows::Type::text(is_offset ? offset_chars : base_type_chars);
    typed.nullable = from.nullable;
    ColumnPlan plan;
    plan.source = from.name;
    plan.target = name;
    plan.source_native = typed.native;
    plan.source_nullable = typed.nullable;
    plan.part = part;
    plan.read_type = typed.type;
    if (target_.exists) {
      const TargetColumn* to = part_target(name, field);
      (void)usable(*to, typed, true, field);
      plan.target = to->name;
      into_existing(plan, typed, *to, "", field);
    } else {
      if (taken_by_other(name)) part_taken(name, field);
      into_created(plan, typed, "", field, false);
    }
    finish(plan, typed, {.source = wanted.source});
    push(std::move(plan), wanted.source, "");
  }

  [[noreturn]] static void part_taken(const std::string& name, const std::string& field) {
    throw Error(Category::input, "column_repeated",
                fmt::format("another column goes into the target column \"{}\" already", name))
        .with_field(field)
        .with_column(name);
  }

  // By exact name, else without case where that is unique, as for every column.
  const TargetColumn* part_target(const std::string& name, const std::string& field) const {
    auto hit = std::ranges::find(target_.columns, name, &TargetColumn::name);
    if (hit == target_.columns.end()) {
      const auto same = [&](const TargetColumn& to) { return text::same_without_case(to.name, name); };
      if (std::ranges::count_if(target_.columns, same) == 1) hit = std::ranges::find_if(target_.columns, same);
    }
    if (hit == target_.columns.end()) {
      throw Error(Category::not_found, "column_missing", fmt::format("the target has no column \"{}\"", name))
          .with_field(field)
          .with_column(name);
    }
    const auto at = static_cast<std::size_t>(hit - target_.columns.begin());
    if (std::ranges::find(pairs_, at) != pairs_.end()) part_taken(hit->name, field);
    return &*hit;
  }

  bool taken_by_other(const std::string& name) const {
    return std::ranges::any_of(wanted_, [&](const Wanted& w) { return target_name(w, source_) == name; });
  }

  void no_counterpart(const Wanted& wanted, const SourceColumn& from) {
    const std::string name = target_name(wanted, source_);
    if (wanted.spec != nullptr) {
      std::vector<std::string_view> names;
      for (const TargetColumn& t : target_.columns) names.push_back(t.name);
      throw Error(Category::not_found, "column_missing", fmt::format("the target has no column \"{}\"", name))
          .with_field(wanted.field + ".target")
          .with_hint(names.empty() ? "" : fmt::format("the nearest is \"{}\"", nearest_name(name, names)));
    }
    out_.unmatched_source.push_back(from.name);
    out_.notices.push_back(
        {"unmatched_source", fmt::format("the target has no column \"{}\": it is not carried", name), from.name});
  }

  // Computed, rowversion and period columns, and an identity that the server is to number, get no value from us.
  bool usable(const TargetColumn& to, const SourceColumn& from, bool named, const std::string& field) {
    if (!to.loadable) {
      if (!named && to.nullable) {
        out_.unmatched_source.push_back(from.name);
        out_.notices.push_back(
            {"unmatched_source", fmt::format("the target column cannot be loaded: {}", to.why_not), from.name});
        return false;
      }
      throw Error(Category::unsupported, "type_mismatch",
                  fmt::format("target column \"{}\" ({}) cannot be loaded: {}", to.name, to.native, to.why_not))
          .with_column(to.name);
    }
    if (!to.insertable) {
      if (named) {
        throw Error(Category::input, "column_not_writable",
                    fmt::format("target column \"{}\" takes no values: {}", to.name, to.why_not))
            .with_field(field)
            .with_column(to.name);
      }
      out_.notices.push_back({"not_insertable", fmt::format("left out: the target column is {}", to.why_not), to.name});
      return false;
    }
    if (to.identity && !spec_.load.keep_identity) {
      out_.notices.push_back({"identity_numbered", "left out: the server numbers the rows", to.name});
      return false;
    }
    return true;
  }

  void into_existing(ColumnPlan& plan, const SourceColumn& from, const TargetColumn& to, const std::string& wanted_type,
                     const std::string& field) {
    plan.write_type =
        to.any_decimal && from.type.id == rows::TypeId::decimal && !from.any_decimal ? from.type : to.type;
    plan.target_native = to.native;
    plan.target_nullable = to.nullable;
    plan.identity = to.identity;
    plan.compared = to.compared;
    if (!wanted_type.empty()) {
      const system::NaturalType natural = types_.natural_type(from, wanted_type, in_key(from, to.name));
      if (natural.type != plan.write_type && spec_.target.mode == system::Mode::replace) {
        // Rebuilt to the planned definition: the spec's type is part of it.
        plan.write_type = natural.type;
        plan.target_native = natural.native;
        plan.compared = natural.compared;
      } else if (natural.type != plan.write_type) {
        throw Error(Category::input, "type_conflicts_with_target",
                    fmt::format("the target column \"{}\" is {}, not {}", to.name, to.native, natural.native))
            .with_field(field + ".type")
            .with_column(to.name);
      }
    }
    choose_read_type(plan, from, false);
  }

  void into_created(ColumnPlan& plan, const SourceColumn& from, const std::string& wanted_type,
                    const std::string& field, bool scanned) {
    try {
      system::NaturalType natural = types_.natural_type(from, wanted_type, in_key(from, plan.target));
      plan.write_type = natural.type;
      plan.target_native = std::move(natural.native);
      plan.target_nullable = from.nullable && !in_key(from, plan.target);
      plan.compared = natural.compared;
      plan.identity = false;
      // What the target says of a decimal without bounds is settled by the scan.
      if (scanned) natural.notices.clear();
      for (Notice& notice : natural.notices) {
        if (notice.column.empty()) notice.column = from.name;
        out_.notices.push_back(std::move(notice));
      }
      choose_read_type(plan, from, natural.read_as_text);
    } catch (Error& error) {
      error.with_column(from.name);
      if (!wanted_type.empty()) error.with_field(field + ".type");
      throw;
    }
  }

  bool in_key(const SourceColumn& from, const std::string& target) const {
    if (!spec_.target.key.empty()) return std::ranges::find(spec_.target.key, target) != spec_.target.key.end();
    return from.key_position > 0;
  }

  // The source decodes into what the target holds where it can: a decimal without bounds into the target's decimal, and
  // whatever becomes text into the text that the source prints.
  static void choose_read_type(ColumnPlan& plan, const SourceColumn& from, bool as_text) {
    if (plan.read_as_json) return;
    const bool text_source = from.type.id == rows::TypeId::text || from.type.id == rows::TypeId::json;
    const bool text_target = plan.write_type.id == rows::TypeId::text || plan.write_type.id == rows::TypeId::json;
    if (from.any_decimal && plan.write_type.id == rows::TypeId::decimal) {
      plan.read_type = plan.write_type;
    } else if (from.can_read_as_bytes && plan.write_type.id == rows::TypeId::binary) {
      plan.read_type = rows::Type::binary();
    } else if ((as_text || text_target) && !text_source && from.can_read_as_text) {
      plan.read_as_text = true;
      plan.read_type = rows::Type::text(from.text_width.value_or(0));
    }
  }

  void finish(ColumnPlan& plan, const SourceColumn& from, const Wanted& wanted) {
    const rows::Fit fit = rows::fit(plan.read_type, plan.write_type);
    if (fit.kind == rows::Fit::Kind::never) {
      throw Error(Category::unsupported, "type_mismatch",
                  fmt::format("column \"{}\": {} cannot be loaded into {}: {}", plan.source, plan.source_native,
                              plan.target_native, fit.reason))
          .with_column(plan.source);
    }
    if (fit.kind == rows::Fit::Kind::lossy) out_.notices.push_back({"lossy", fit.reason, plan.source});
    const bool offset_kept = wanted.spec != nullptr && wanted.spec->keep_offset;
    if (from.has_offset && !offset_kept && plan.part == ColumnPart::value &&
        plan.read_type.id == rows::TypeId::timestamp && plan.read_type.zoned) {
      out_.notices.push_back({"offset_not_kept",
                              "the instant is kept, the offset is not; \"keep_offset\": true gives it a column",
                              plan.source});
    }
    if (from.rewritten && plan.write_type.id == rows::TypeId::json) plan.compared = false;
    if (plan.source_nullable && !plan.target_nullable) {
      out_.notices.push_back(
          {"null_possible", "the source column may hold NULL, the target column may not", plan.source});
    }
    if (wanted.spec == nullptr) return;
    const rows::LossPolicy& policy = plan.policy;
    if (policy.action == rows::OnLoss::null && !plan.target_nullable) {
      throw Error(Category::input, "policy_impossible",
                  fmt::format("on_loss null: the target column \"{}\" is NOT NULL", plan.target))
          .with_field(wanted.field + ".on_loss")
          .with_column(plan.source);
    }
    try {
      rows::check_policy(plan.read_type, plan.write_type, policy, plan.source);
    } catch (const Error& error) {
      // The path within the spec is known only here.
      throw Error(error.category(), error.code(), error.detail())
          .with_field(wanted.field + ".on_loss")
          .with_hint(error.hint())
          .with_column(plan.source);
    }
  }

  void carry_key() {
    if (source_.primary_key.empty()) return;
    for (const std::string& part : source_.primary_key) {
      if (std::ranges::find(out_.columns, part, &ColumnPlan::source) != out_.columns.end()) continue;
      if (!target_.exists) out_.not_carried.push_back(fmt::format("primary key (column \"{}\" is not carried)", part));
      return;
    }
    out_.primary_key = source_.primary_key;
  }

  void check_unfilled() {
    for (const TargetColumn& to : target_.columns) {
      if (std::ranges::find(out_.columns, to.name, &ColumnPlan::target) != out_.columns.end()) continue;
      if (!to.insertable || (to.identity && !spec_.load.keep_identity)) continue;
      if (!to.nullable && !to.has_default && !to.identity) {
        throw Error(Category::conflict, "target_column_unfilled",
                    fmt::format("the target column \"{}\" ({}) is NOT NULL, has no default, and no source column goes "
                                "into it",
                                to.name, to.native))
            .with_column(to.name)
            .with_hint("name a source column for it in `columns`");
      }
      out_.unmatched_target.push_back(to.name);
    }
  }

  const Spec& spec_;
  const SourceTable& source_;
  const TargetTable& target_;
  const system::Target& types_;
  std::vector<Wanted> wanted_;
  std::vector<std::size_t> pairs_;  // of each wanted column: the target column, or npos
  Match out_;
};

}  // namespace

Match match_columns(const Spec& spec, const SourceTable& source, const TargetTable& target,
                    const system::Target& types) {
  return Matcher(spec, source, target, types).match();
}

}  // namespace rowferry::transfer
