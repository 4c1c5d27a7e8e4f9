// The tables of scalar functions, one file a family.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "sandbox/engine/eval.hpp"

namespace rowferry::sandbox::engine {

using Arguments = std::vector<Value>;

struct Function {
  std::string_view name;
  int least = 0, most = 0;
  // The result's type from the bound arguments.
  Type (*type)(const Context& context, const Expr& call) = nullptr;
  // nullptr: evaluated by the evaluator itself, argument by argument.
  Value (*call)(const Context& context, const Expr& call, const Arguments& args) = nullptr;
};

std::span<const Function> text_functions();
std::span<const Function> number_functions();
std::span<const Function> date_functions();
std::span<const Function> server_functions();   // SERVERPROPERTY, DB_NAME, …
std::span<const Function> catalog_functions();  // OBJECT_ID, COLUMNPROPERTY, …

// Result types that many share.
Type int_result(const Context& context, const Expr& call);
Type bigint_result(const Context& context, const Expr& call);
Type name_result(const Context& context, const Expr& call);
Type first_argument(const Context& context, const Expr& call);

// Arguments as plain things.
inline std::int64_t number_of(const Value& v) { return static_cast<std::int64_t>(convert(v, bigint_type()).number); }
inline std::string name_of(const Value& v) { return narrow(is_string(v.type.kind) ? v.text : text_of(v)); }
Value null_int();
Value int_value(std::int64_t v);
Value name_value(const Context& context, std::string_view v);
Value null_name(const Context& context);

}  // namespace rowferry::sandbox::engine
