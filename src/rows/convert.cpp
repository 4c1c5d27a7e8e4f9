#include "rows/convert.hpp"

#include <fmt/format.h>

#include <stdexcept>

#include "base/limits.hpp"
#include "rows/column_step.hpp"
#include "rows/format.hpp"
#include "rows/numbers.hpp"

namespace rowferry::rows {

namespace {

StepPtr make_step(const Field& from, const Field& to, const LossPolicy& policy) {
  if (const Fit how = fit(from.type, to.type); how.kind == Fit::Kind::never) {
    throw Error(Category::unsupported, "type_mismatch", fmt::format("column {}: {}", to.name, how.reason))
        .with_column(to.name);
  }
  check_policy(from.type, to.type, policy, to.name);
  ColumnLoss loss(to.name, policy);
  switch (from.type.id) {
    case TypeId::null:
      return null_step(to.type, std::move(loss));
    case TypeId::float32:
    case TypeId::float64:
      return float_step(from.type, to.type, std::move(loss));
    case TypeId::decimal:
      return decimal_step(from.type, to.type, std::move(loss));
    case TypeId::date:
    case TypeId::time:
    case TypeId::timestamp:
      return temporal_step(from.type, to.type, std::move(loss));
    case TypeId::uuid:
    case TypeId::text:
    case TypeId::json:
    case TypeId::binary:
      return text_step(from.type, to.type, std::move(loss));
    default:
      return integer_step(from.type, to.type, std::move(loss));
  }
}

void check_nullability(const Field& to, const StepPtr& step, const LossPolicy& policy) {
  if (to.nullable || policy.action != OnLoss::null || !step) return;
  throw Error(Category::input, "policy_impossible",
              fmt::format("column {}: on_loss \"null\" is not possible: the column is not nullable", to.name))
      .with_column(to.name)
      .with_field("columns.on_loss");
}

// First NULL of a column, or `rows`.
std::size_t first_null(const ColumnView& view, std::size_t rows) noexcept {
  if (view.validity == nullptr) return rows;
  std::size_t row = 0;
  if (view.bit_offset % 8 == 0) {
    const std::uint8_t* const bits = view.validity + view.bit_offset / 8;
    while (row + 8 <= rows && bits[row / 8] == 0xFF) row += 8;
  }
  while (row < rows && view.valid(row)) ++row;
  return row;
}

std::size_t column_bytes(const Field& field, const ColumnView& view, std::size_t rows) noexcept {
  const std::size_t validity = view.validity == nullptr ? 0 : rows / 8 + 1;
  if (is_variable(field.type.id)) {
    return validity + (rows + 1) * sizeof(std::int32_t) +
           static_cast<std::size_t>(view.offsets == nullptr ? 0 : view.offsets[rows] - view.offsets[0]);
  }
  return validity + (field.type.id == TypeId::boolean ? rows / 8 + 1 : rows * fixed_width(field.type.id));
}

}  // namespace

struct Converter::Impl {
  SchemaPtr from;
  SchemaPtr to;
  std::vector<StepPtr> steps;  // null: passes as it is
  std::vector<bool> adopted;
  std::shared_ptr<BatchPool> pool;
  std::vector<std::size_t> key;

  // "the row has id = 42".
  std::string key_of(const Batch& batch, std::uint64_t ordinal) const {
    std::string text;
    const auto row = static_cast<std::size_t>(ordinal - 1 - batch.first_row);
    if (row >= batch.rows()) return text;
    for (const std::size_t i : key) {
      const Field& field = batch.schema().fields[i];
      text += fmt::format("{}{} = {}", text.empty() ? "the row has " : ", ", field.name,
                          cut_for_message(value_text(field.type, batch.column(i), row), limits::error_value_chars));
    }
    return text;
  }

  void check_nulls(const Batch& batch) const {
    for (std::size_t i = 0; i < to->size(); ++i) {
      if (to->fields[i].nullable) continue;
      const std::size_t row = first_null(batch.column(i), batch.rows());
      if (row == batch.rows()) continue;
      const std::uint64_t ordinal = batch.first_row + row + 1;
      throw Error(Category::data, "null_in_not_null",
                  fmt::format("row {}, column {}: NULL, and the column does not take it", ordinal, to->fields[i].name))
          .with_column(to->fields[i].name)
          .with_row(ordinal)
          .with_hint(key_of(batch, ordinal));
    }
  }

  // True when the column was written into `out`.
  bool run_step(std::size_t i, const Batch& batch, Batch& out) {
    const ColumnInput in{batch.column(i), batch.rows(), batch.first_row};
    try {
      return steps[i]->run(in, out.buffer(i)) != ColumnStep::Outcome::adopted;
    } catch (Error& error) {
      if (error.context().row && error.hint().empty()) error.with_hint(key_of(batch, *error.context().row));
      throw;
    }
  }

  // True when a column was written into `out`.
  bool run_steps(const Batch& batch, Batch& out) {
    bool any_written = false;
    for (std::size_t i = 0; i < steps.size(); ++i) {
      adopted[i] = true;
      if (!steps[i] || batch.rows() == 0) continue;
      adopted[i] = !run_step(i, batch, out);
      any_written |= !adopted[i];
    }
    return any_written;
  }
};

Converter::Converter(SchemaPtr from, SchemaPtr to, std::vector<LossPolicy> policies) : impl_(std::make_unique<Impl>()) {
  if (from->size() != to->size() || policies.size() != to->size()) {
    throw std::logic_error("Converter: schemas and policies differ in number");
  }
  for (std::size_t i = 0; i < to->size(); ++i) {
    impl_->steps.push_back(make_step(from->fields[i], to->fields[i], policies[i]));
    check_nullability(to->fields[i], impl_->steps.back(), policies[i]);
  }
  impl_->adopted.resize(to->size());
  impl_->pool = BatchPool::make(to);
  impl_->from = std::move(from);
  impl_->to = std::move(to);
}

Converter::~Converter() = default;

BatchPtr Converter::convert(BatchPtr batch) {
  Impl& impl = *impl_;
  BatchPtr out = impl.pool->take();
  // A batch of no rows has no values, but its layout must be the target's.
  if (!impl.run_steps(*batch, *out) && batch->rows() != 0) {
    impl.check_nulls(*batch);
    batch->retype(impl.to);
    return batch;
  }
  out->first_row = batch->first_row;
  const std::size_t rows = batch->rows();
  if (rows != 0) {
    const std::shared_ptr<const Batch> source(std::move(batch));
    std::shared_ptr<const void> keep_alive = source;
    for (std::size_t i = 0; i < impl.steps.size(); ++i) {
      if (!impl.adopted[i]) continue;
      const ColumnView& view = source->column(i);
      out->adopt(i, view, column_bytes(impl.to->fields[i], view, rows), std::exchange(keep_alive, nullptr));
    }
  }
  out->seal(rows);
  impl.check_nulls(*out);
  return out;
}

void Converter::name_rows_by(std::vector<std::size_t> key) { impl_->key = std::move(key); }

const SchemaPtr& Converter::to() const noexcept { return impl_->to; }

std::vector<std::uint64_t> Converter::changed() const {
  std::vector<std::uint64_t> all;
  for (const StepPtr& step : impl_->steps) all.push_back(step ? step->changed() : 0);
  return all;
}

}  // namespace rowferry::rows
