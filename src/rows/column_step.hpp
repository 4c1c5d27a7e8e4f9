// One column's conversion, bound once: the private side of Converter.
//
// run() gets a whole column. Where every value fits it costs one tight loop, or (check only) leaves the source's column
// as it is; only a column with a loss is walked value by value, under the column's policy.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "rows/batch.hpp"
#include "rows/convert.hpp"
#include "rows/loss.hpp"

namespace rowferry::rows {

struct ColumnInput {
  const ColumnView& view;
  std::size_t rows;
  std::uint64_t first_row;
};

class ColumnStep {
 public:
  enum class Outcome : std::uint8_t {
    adopted,  // the source's column serves as it is; the buffer was not touched
    written,  // the result is in the buffer
  };

  explicit ColumnStep(ColumnLoss loss) : loss_(std::move(loss)) {}
  virtual ~ColumnStep() = default;
  virtual Outcome run(const ColumnInput& in, ColumnBuffer& to) = 0;
  std::uint64_t changed() const noexcept { return loss_.changed(); }

 protected:
  ColumnLoss loss_;
};

// Copies the NULLs of a column into a buffer that is about to be written whole.
inline void copy_validity(const ColumnInput& in, ColumnBuffer& to) {
  if (in.view.validity == nullptr) return;
  to.need_validity(in.rows);
  if (in.view.bit_offset % 8 == 0) {
    std::memcpy(to.validity.data(), in.view.validity + in.view.bit_offset / 8, (in.rows + 7) / 8);
    return;
  }
  for (std::size_t row = 0; row < in.rows; ++row) {
    if (!in.view.valid(row)) to.set_null(row);
  }
}

inline void make_null(const ColumnInput& in, ColumnBuffer& to, std::size_t row) {
  to.need_validity(in.rows);
  to.set_null(row);
}

// Steps of a fixed-width type into another, by an Op that is bound to the pair:
//   using In, Out;                       bool for boolean columns
//   static constexpr bool check_only;    Out is In, and a value that fits is not changed
//   unsigned convert(In, Out&) const;    bits of Fixed; must be defined for every bit pattern (NULL slots hold
//   anything) bool truncate(In, Out&) const;       false: this policy cannot mend the value bool bound(In, Out&) const;
//   std::string text(In) const, reason(In) const;
enum Fixed : unsigned { fixed_fits = 0, fixed_lost = 1, fixed_warned = 2 };

template <class T>
T fixed_value(const ColumnView& view, std::size_t row) noexcept {
  if constexpr (std::is_same_v<T, bool>) {
    return view.boolean(row);
  } else {
    return view.value<T>(row);
  }
}

template <class Op>
class FixedStep final : public ColumnStep {
 public:
  using In = typename Op::In;
  using Out = typename Op::Out;

  FixedStep(Op op, ColumnLoss loss) : ColumnStep(std::move(loss)), op_(std::move(op)) {}

  Outcome run(const ColumnInput& in, ColumnBuffer& to) override {
    if constexpr (Op::check_only) {
      if ((scan(in) & fixed_lost) == 0 || !any_lost(in)) return Outcome::adopted;
      copy_validity(in, to);
      std::memcpy(to.values.extend(in.rows * sizeof(Out)), in.view.values, in.rows * sizeof(Out));
      mend(in, to);
    } else {
      copy_validity(in, to);
      if (write(in, to) != fixed_fits) mend(in, to);
    }
    return Outcome::written;
  }

 private:
  unsigned scan(const ColumnInput& in) const {
    unsigned seen = 0;
    for (std::size_t row = 0; row < in.rows; ++row) {
      Out out{};
      seen |= op_.convert(fixed_value<In>(in.view, row), out);
    }
    return seen;
  }

  bool any_lost(const ColumnInput& in) const {
    for (std::size_t row = 0; row < in.rows; ++row) {
      Out out{};
      if (in.view.valid(row) && (op_.convert(fixed_value<In>(in.view, row), out) & fixed_lost) != 0) return true;
    }
    return false;
  }

  unsigned write(const ColumnInput& in, ColumnBuffer& to) const {
    unsigned seen = 0;
    if constexpr (std::is_same_v<Out, bool>) {
      to.values.fill(0, (in.rows + 7) / 8);
    } else {
      to.values.extend(in.rows * sizeof(Out));
    }
    std::uint8_t* const values = to.values.data();
    for (std::size_t row = 0; row < in.rows; ++row) {
      Out out{};
      seen |= op_.convert(fixed_value<In>(in.view, row), out);
      put(values, row, out);
    }
    return seen;
  }

  static void put(std::uint8_t* values, std::size_t row, Out out) noexcept {
    if constexpr (std::is_same_v<Out, bool>) {
      const auto bit = static_cast<std::uint8_t>(1U << (row % 8));
      values[row / 8] = static_cast<std::uint8_t>(out ? values[row / 8] | bit : values[row / 8] & ~bit);
    } else {
      store_le(values + row * sizeof(Out), out);
    }
  }

  void mend(const ColumnInput& in, ColumnBuffer& to) {
    for (std::size_t row = 0; row < in.rows; ++row) {
      if (!in.view.valid(row)) continue;
      const In value = fixed_value<In>(in.view, row);
      Out out{};
      const unsigned result = op_.convert(value, out);
      if ((result & fixed_lost) != 0) {
        mend_value(in, to, row, value);
      } else if ((result & fixed_warned) != 0) {
        loss_.changed_as_warned();
      }
    }
  }

  void mend_value(const ColumnInput& in, ColumnBuffer& to, std::size_t row, In value) {
    const std::uint64_t ordinal = in.first_row + row;
    Out out{};
    // The texts cost; only the policy `error` shows them.
    const bool shown = loss_.policy().action == OnLoss::error;
    switch (loss_.lost(ordinal, shown ? op_.text(value) : std::string(), shown ? op_.reason(value) : std::string())) {
      case OnLoss::null:
        make_null(in, to, row);
        break;
      case OnLoss::truncate:
        if (!op_.truncate(value, out)) loss_.refuse(ordinal, op_.text(value), op_.reason(value));
        break;
      case OnLoss::replace:
        if (!op_.bound(value, out)) loss_.refuse(ordinal, op_.text(value), op_.reason(value));
        break;
      case OnLoss::strip:
      case OnLoss::error:
        loss_.refuse(ordinal, op_.text(value), op_.reason(value));
    }
    put(to.values.data(), row, out);
  }

  Op op_;
};

template <class Op>
std::unique_ptr<ColumnStep> fixed_step(Op op, ColumnLoss loss) {
  return std::make_unique<FixedStep<Op>>(std::move(op), std::move(loss));
}

// The makers by kind of source type; null: the column passes as it is. fit() has not said never.
using StepPtr = std::unique_ptr<ColumnStep>;
StepPtr integer_step(const Type& from, const Type& to, ColumnLoss loss);  // and boolean
StepPtr float_step(const Type& from, const Type& to, ColumnLoss loss);
StepPtr decimal_step(const Type& from, const Type& to, ColumnLoss loss);
StepPtr temporal_step(const Type& from, const Type& to, ColumnLoss loss);
StepPtr text_step(const Type& from, const Type& to, ColumnLoss loss);  // text, json, binary, uuid as text
StepPtr null_step(const Type& to, ColumnLoss loss);

}  // namespace rowferry::rows
