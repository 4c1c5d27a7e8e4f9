// Converter: a Batch of the source's logical types becomes a Batch of the target's, checked value by value.
//
// This is the one place where values change type: decoders produce the source's types, encoders take the target's
// exactly as they are. Bound once per column when the plan is made; a column that needs no change costs nothing, one
// that needs only a check is scanned and passed on without a copy.
#pragma once

#include <memory>
#include <vector>

#include "rows/batch.hpp"
#include "rows/loss.hpp"

namespace rowferry::rows {

// Can values of `from` be loaded into `to`, exactly or with a check per value? (types.md: the lists of what loads into
// what.)
struct Fit {
  enum class Kind : std::uint8_t {
    same,     // nothing to do
    exact,    // every value fits; representation changes
    checked,  // some values may not fit: the loss policy decides
    lossy,    // every value may lose something that the plan must warn of (digits beyond the scale, …)
    never,    // refused at plan time
  };
  Kind kind = Kind::never;
  std::string reason;  // for lossy (the warning) and never (the refusal)
};
Fit fit(const Type& from, const Type& to);

// Throws Error(input, "policy_impossible") when the policy makes no sense for the pair (strip on an integer, …).
void check_policy(const Type& from, const Type& to, const LossPolicy& policy, std::string_view column);

class Converter {
 public:
  // Same number of fields in the same order; names come from `to`. Throws Error(unsupported, "type_mismatch") where
  // fit() says never.
  Converter(SchemaPtr from, SchemaPtr to, std::vector<LossPolicy> policies);
  ~Converter();

  // Consumes the batch. The result has the target schema; NULL in a field that is not nullable throws Error(data,
  // "null_in_not_null").
  BatchPtr convert(BatchPtr batch);

  // Columns whose values (before conversion) name a row in the hint of an error.
  void name_rows_by(std::vector<std::size_t> key);

  const SchemaPtr& to() const noexcept;
  // Values changed so far, per column.
  std::vector<std::uint64_t> changed() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace rowferry::rows
