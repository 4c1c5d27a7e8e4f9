// What a column of a target table takes (types.md, second table): the logical type that the converter must give, and
// how the COPY writes it.
#pragma once

#include <string>

#include "postgres/types.hpp"
#include "postgres/wire/copy_encoder.hpp"

namespace rowferry::postgres {

struct LoadType {
  rows::Type type;
  wire::PutForm form = wire::PutForm::printed;
  bool any_decimal = false;  // numeric without precision: any decimal(p,s) the plan chooses is taken
  bool compared = true;      // false: the server prints the value in its own way
  std::string why_not;       // not empty: values cannot be loaded into it
};

// Every type can be loaded from text, through its input function, if not in binary; then the whole COPY is in the text
// format. Only what would change values in silence is refused (numeric with a negative scale).
LoadType load_type(const TypeFacts& facts, int money_scale);

}  // namespace rowferry::postgres
