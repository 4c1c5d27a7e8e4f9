// Procedures that the server itself has, and how procedures are called.
#pragma once

#include "sandbox/engine/interpreter.hpp"

namespace rowferry::sandbox::engine {

struct CallArgument {
  std::string name;  // with @, or empty
  Value value;
  bool output = false;
  bool use_default = false;
  std::string variable;  // of the caller, for OUTPUT; empty in remote calls
  std::uint16_t ordinal = 0;
};

// A call of a built-in procedure: arguments by name or place.
struct BuiltinCall {
  const Context& context;
  std::vector<CallArgument>& args;
  Outcome outcome{std::nullopt, 0, true};

  CallArgument* find(std::string_view name, std::size_t place);
  std::optional<Value> value(std::string_view name, std::size_t place);  // nothing when absent, DEFAULT or NULL
  std::string text(std::string_view name, std::size_t place);            // empty when absent
};

struct Builtin {
  std::string_view name;
  std::int32_t (*run)(BuiltinCall& call) = nullptr;
};
const Builtin* find_builtin(std::string_view folded_name);

// One file each.
std::int32_t sp_rename(BuiltinCall& call);
std::int32_t sp_getapplock(BuiltinCall& call);
std::int32_t sp_releaseapplock(BuiltinCall& call);
std::int32_t sp_tablecollations(BuiltinCall& call);
std::int32_t sp_describe_first_result_set(BuiltinCall& call);
std::int32_t sp_columns(BuiltinCall& call);
std::int32_t sp_tables(BuiltinCall& call);
std::int32_t sp_pkeys(BuiltinCall& call);
std::int32_t sp_databases(BuiltinCall& call);

// Rows with column names and types written as "name type, name type".
std::vector<OutputColumn> columns_of(const Context& context, std::string_view spec);

}  // namespace rowferry::sandbox::engine
