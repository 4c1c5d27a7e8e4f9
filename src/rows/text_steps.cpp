// Text, JSON and binary: checked where they lie, copied only when a value has to change.
#include <fmt/format.h>

#include <algorithm>

#include "rows/column_step.hpp"
#include "rows/format.hpp"
#include "rows/text_rules.hpp"

namespace rowferry::rows {

namespace {

// Of all rows, also of NULL ones.
std::size_t longest(const ColumnInput& in) noexcept {
  std::int32_t longest = 0;
  for (std::size_t row = 0; row < in.rows; ++row) {
    longest = std::max(longest, in.view.offsets[row + 1] - in.view.offsets[row]);
  }
  return static_cast<std::size_t>(longest);
}

ByteView all_bytes(const ColumnInput& in) noexcept {
  if (in.rows == 0) return {};
  const std::int32_t begin = in.view.offsets[0];
  return {in.view.values + begin, static_cast<std::size_t>(in.view.offsets[in.rows] - begin)};
}

bool has_nul(ByteView bytes) noexcept {
  return !bytes.empty() && std::memchr(bytes.data(), 0, bytes.size()) != nullptr;
}

bool all_ascii(ByteView bytes) noexcept {
  std::uint8_t seen = 0;
  for (const std::uint8_t byte : bytes) seen |= byte;
  return seen < 0x80;
}

class TextStep final : public ColumnStep {
 public:
  TextStep(const Type& to, ColumnLoss loss) : ColumnStep(std::move(loss)), rules_(to) {
    replacement_ = this->loss_.policy().replacement.value_or(std::string(rules_.default_replacement()));
    if (this->loss_.policy().action == OnLoss::strip) replacement_.clear();
  }

  Outcome run(const ColumnInput& in, ColumnBuffer& to) override {
    if (column_fits(in)) return Outcome::adopted;
    std::size_t row = 0;
    while (row < in.rows && (!in.view.valid(row) || rules_.fits(in.view.text(row)))) ++row;
    if (row == in.rows) return Outcome::adopted;
    rewrite(in, to);
    return Outcome::written;
  }

 private:
  // Whole-column tests that settle almost every batch: bytes bound every unit, ASCII is in every code page.
  bool column_fits(const ColumnInput& in) const noexcept {
    if (longest(in) > rules_.length_max()) return false;
    if (!rules_.restricts_characters()) return true;
    const ByteView bytes = all_bytes(in);
    return all_ascii(bytes) && !(rules_.no_nul() && has_nul(bytes));
  }

  void rewrite(const ColumnInput& in, ColumnBuffer& to) {
    copy_validity(in, to);
    for (std::size_t row = 0; row < in.rows; ++row) {
      if (in.view.valid(row)) {
        const std::string_view value = in.view.text(row);
        if (rules_.fits(value)) {
          to.values.append(value);
        } else {
          mend(in, to, row, value);
        }
      }
      to.end_value();
    }
  }

  void mend(const ColumnInput& in, ColumnBuffer& to, std::size_t row, std::string_view value) {
    const std::uint64_t ordinal = in.first_row + row;
    const bool shown = loss_.policy().action == OnLoss::error;
    switch (loss_.lost(ordinal, value, shown ? rules_.unfit_reason(value) : std::string())) {
      case OnLoss::null:
        make_null(in, to, row);
        return;
      case OnLoss::truncate: {
        const std::optional<std::string_view> kept = rules_.cut(value);
        if (!kept) loss_.refuse(ordinal, value, rules_.unfit_reason(value));
        to.values.append(*kept);
        return;
      }
      case OnLoss::replace:
      case OnLoss::strip:
        if (!rules_.replace(value, replacement_, mended_)) loss_.refuse(ordinal, value, rules_.unfit_reason(mended_));
        to.values.append(mended_);
        return;
      case OnLoss::error:
        return;
    }
  }

  TextRules rules_;
  std::string replacement_;
  std::string mended_;
};

class BinaryStep final : public ColumnStep {
 public:
  BinaryStep(const Type& to, ColumnLoss loss) : ColumnStep(std::move(loss)), length_(to.length), padded_(to.padded) {}

  Outcome run(const ColumnInput& in, ColumnBuffer& to) override {
    if (!padded_ && longest(in) <= length_) return Outcome::adopted;
    std::size_t row = 0;
    while (row < in.rows && (!in.view.valid(row) || fits(in.view.bytes(row)))) ++row;
    if (row == in.rows) return Outcome::adopted;
    copy_validity(in, to);
    for (row = 0; row < in.rows; ++row) {
      if (in.view.valid(row)) write(in, to, row, in.view.bytes(row));
      to.end_value();
    }
    return Outcome::written;
  }

 private:
  // A fixed-length column pads with zeros: a shorter value would come back as another one.
  bool fits(ByteView value) const noexcept { return padded_ ? value.size() == length_ : value.size() <= length_; }

  std::string reason(ByteView value) const {
    return fmt::format("{} {} {} {}({})", value.size(), value.size() == 1 ? "byte" : "bytes",
                       value.size() > length_ ? ">" : "<", padded_ ? "binary" : "varbinary", length_);
  }

  std::string shown(ByteView value) const {
    const std::int32_t offsets[] = {0, static_cast<std::int32_t>(value.size())};
    const ColumnView view{.values = value.data(), .offsets = offsets};
    return value_text(Type::binary(), view, 0);
  }

  void write(const ColumnInput& in, ColumnBuffer& to, std::size_t row, ByteView value) {
    if (fits(value)) {
      to.values.append(value);
      return;
    }
    const std::uint64_t ordinal = in.first_row + row;
    const bool error = loss_.policy().action == OnLoss::error;
    switch (loss_.lost(ordinal, error ? shown(value) : std::string(), error ? reason(value) : std::string())) {
      case OnLoss::null:
        make_null(in, to, row);
        return;
      case OnLoss::truncate:
        to.values.append(value.first(std::min<std::size_t>(value.size(), length_)));
        if (value.size() < length_) to.values.fill(0, length_ - value.size());
        return;
      default:
        loss_.refuse(ordinal, shown(value), reason(value));
    }
  }

  std::uint32_t length_;
  bool padded_;
};

class UuidToText final : public ColumnStep {
 public:
  UuidToText(const Type& to, ColumnLoss loss) : ColumnStep(std::move(loss)), rules_(to) {}

  Outcome run(const ColumnInput& in, ColumnBuffer& to) override {
    copy_validity(in, to);
    for (std::size_t row = 0; row < in.rows; ++row) {
      if (in.view.valid(row)) write(in, to, row);
      to.end_value();
    }
    return Outcome::written;
  }

 private:
  void write(const ColumnInput& in, ColumnBuffer& to, std::size_t row) {
    const std::string value = uuid_text(in.view.values + row * 16);
    if (rules_.fits(value)) {
      to.values.append(value);
      return;
    }
    const std::uint64_t ordinal = in.first_row + row;
    switch (loss_.lost(ordinal, value, rules_.unfit_reason(value))) {
      case OnLoss::null:
        make_null(in, to, row);
        return;
      case OnLoss::truncate:
        to.values.append(rules_.cut(value).value_or(std::string_view()));
        return;
      default:
        loss_.refuse(ordinal, value, rules_.unfit_reason(value));
    }
  }

  TextRules rules_;
};

class AllNull final : public ColumnStep {
 public:
  AllNull(const Type& to, ColumnLoss loss) : ColumnStep(std::move(loss)), id_(to.id) {}

  Outcome run(const ColumnInput& in, ColumnBuffer& to) override {
    to.validity.fill(0, in.rows / 8 + 1);
    if (is_variable(id_)) {
      to.offsets.fill(0, in.rows * sizeof(std::int32_t));
    } else {
      to.values.fill(0, id_ == TypeId::boolean ? in.rows / 8 + 1 : in.rows * fixed_width(id_));
    }
    return Outcome::written;
  }

 private:
  TypeId id_;
};

}  // namespace

StepPtr text_step(const Type& from, const Type& to, ColumnLoss loss) {
  if (from.id == TypeId::uuid) {
    return to.id == TypeId::uuid ? nullptr : StepPtr(std::make_unique<UuidToText>(to, std::move(loss)));
  }
  if (from.id == TypeId::binary) {
    return binary_always_fits(from, to) ? nullptr : StepPtr(std::make_unique<BinaryStep>(to, std::move(loss)));
  }
  return text_always_fits(from, to) ? nullptr : StepPtr(std::make_unique<TextStep>(to, std::move(loss)));
}

StepPtr null_step(const Type& to, ColumnLoss loss) {
  return to.id == TypeId::null ? nullptr : StepPtr(std::make_unique<AllNull>(to, std::move(loss)));
}

}  // namespace rowferry::rows
