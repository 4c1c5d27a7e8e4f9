// EXEC and remote procedure calls.
#include "sandbox/engine/procedures.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "sandbox/engine/collation.hpp"

namespace rowferry::sandbox::engine {

CallArgument* BuiltinCall::find(std::string_view name, std::size_t place) {
  for (CallArgument& a : args)
    if (same_name(a.name, name)) return &a;
  if (place < args.size() && args[place].name.empty()) return &args[place];
  return nullptr;
}

std::optional<Value> BuiltinCall::value(std::string_view name, std::size_t place) {
  const CallArgument* a = find(name, place);
  if (a == nullptr || a->use_default || a->value.null) return std::nullopt;
  return a->value;
}

std::string BuiltinCall::text(std::string_view name, std::size_t place) {
  const auto v = value(name, place);
  return v ? narrow(text_of(*v)) : std::string();
}

namespace {

std::int32_t nothing(BuiltinCall&) { return 0; }

std::int32_t sp_unprepare(BuiltinCall& call) {
  const auto handle = call.value("@handle", 0);
  if (handle) call.context.session.prepared.erase(static_cast<int>(convert(*handle, int_type()).number));
  return 0;
}

std::int32_t sp_prepare(BuiltinCall& call) {
  SessionState& s = call.context.session;
  const int handle = s.next_handle++;
  s.prepared[handle] = {call.text("@stmt", 2), call.text("@params", 1)};
  if (CallArgument* out = call.find("@handle", 0)) out->value = Value::of_int(handle);
  return 0;
}

constexpr std::array builtins{Builtin{"sp_rename", sp_rename},
                              Builtin{"sp_getapplock", sp_getapplock},
                              Builtin{"sp_releaseapplock", sp_releaseapplock},
                              Builtin{"sp_tablecollations_100", sp_tablecollations},
                              Builtin{"sp_tablecollations_90", sp_tablecollations},
                              Builtin{"sp_tablecollations", sp_tablecollations},
                              Builtin{"sp_describe_first_result_set", sp_describe_first_result_set},
                              Builtin{"sp_columns", sp_columns},
                              Builtin{"sp_columns_90", sp_columns},
                              Builtin{"sp_columns_100", sp_columns},
                              Builtin{"sp_tables", sp_tables},
                              Builtin{"sp_pkeys", sp_pkeys},
                              Builtin{"sp_databases", sp_databases},
                              Builtin{"sp_prepare", sp_prepare},
                              Builtin{"sp_unprepare", sp_unprepare},
                              Builtin{"sp_reset_connection", nothing},
                              Builtin{"sp_set_session_context", nothing},
                              Builtin{"sp_updatestats", nothing},
                              Builtin{"sp_tableoption", nothing},
                              Builtin{"sp_settriggerorder", nothing},
                              Builtin{"sp_bindsession", nothing}};

std::vector<OutputBinding> bindings_of(const std::vector<CallArgument>& args, const std::vector<std::string>& inner) {
  std::vector<OutputBinding> outputs;
  for (std::size_t i = 0; i < args.size(); ++i) {
    if (!args[i].output || inner[i].empty()) continue;
    outputs.push_back({inner[i], args[i].variable, args[i].ordinal, args[i].name.empty() ? inner[i] : args[i].name});
  }
  return outputs;
}

// Fills the declared parameters from the arguments behind `first`, by name or place.
void bind_parameters(const Context& context, CallFrame& frame, const std::vector<ParameterSpec>& declared,
                     std::vector<CallArgument>& args, std::size_t first, const std::string& procedure,
                     bool parameterized) {
  std::vector<std::string> inner(args.size());
  std::vector<bool> given(declared.size(), false);
  for (std::size_t i = first; i < args.size(); ++i) {
    std::size_t at = declared.size();
    if (args[i].name.empty()) {
      at = i - first;
      if (at >= declared.size())
        raise(8144, 16, 2, fmt::format("Procedure or function {} has too many arguments specified.", procedure));
    } else {
      for (std::size_t k = 0; k < declared.size(); ++k)
        if (same_name(declared[k].name, args[i].name)) at = k;
      if (at == declared.size())
        raise(8145, 16, 1, fmt::format("{} is not a parameter for procedure {}.", args[i].name, procedure));
    }
    inner[i] = fold_name(declared[at].name);
    if (args[i].use_default) continue;
    given[at] = true;
    Variable v;
    v.type = declared[at].type;
    v.value = convert(args[i].value, v.type);
    frame.variables[inner[i]] = std::move(v);
  }
  for (std::size_t k = 0; k < declared.size(); ++k) {
    if (given[k]) continue;
    Variable v;
    v.type = declared[k].type;
    if (declared[k].default_value == nullptr && !declared[k].output) {
      if (parameterized)
        raise(8178, 16, 1,
              fmt::format("The parameterized query '{}' expects the parameter '{}', which was not supplied.",
                          frame.text.substr(0, 128), declared[k].name));
      raise(201, 16, 4,
            fmt::format("Procedure or function '{}' expects parameter '{}', which was not supplied.", procedure,
                        declared[k].name));
    }
    v.value = declared[k].default_value == nullptr
                  ? Value::of_null(v.type)
                  : convert(constant_value(context, declared[k].default_value), v.type);
    frame.variables[fold_name(declared[k].name)] = std::move(v);
  }
  frame.outputs = bindings_of(args, inner);
}

struct Call {
  std::string procedure;
  ObjectName name;
  std::vector<CallArgument> args;
  std::string result_variable;
};

void run_text(const Context& context, Call& call, std::string text, const std::string& declarations, std::size_t first,
              int handle) {
  CallFrame frame;
  frame.text = std::move(text);
  frame.result_variable = call.result_variable;
  const auto declared =
      declarations.empty() ? std::vector<ParameterSpec>{} : parse_parameters(declarations, parse_options(context));
  if (declarations.empty()) call.args.resize(std::min(call.args.size(), first));
  bind_parameters(context, frame, declared, call.args, first, call.procedure, true);
  if (handle != 0 && !call.args.empty() && call.args[0].output) {
    Variable v;
    v.type = int_type();
    v.value = Value::of_int(handle);
    frame.variables["@ handle"] = v;
    frame.outputs.insert(frame.outputs.begin(),
                         {"@ handle", call.args[0].variable, call.args[0].ordinal, call.args[0].name});
  }
  push_frame(context, std::move(frame));
}

// sp_executesql, sp_prepexec, sp_execute: a text with parameters. False: another procedure.
bool call_text(const Context& context, Call& call) {
  const auto text_at = [&](std::size_t i) {
    return i < call.args.size() && !call.args[i].value.null ? narrow(text_of(call.args[i].value)) : std::string();
  };
  if (call.procedure == "sp_executesql") {
    if (call.args.empty())
      raise(201, 16, 4,
            "Procedure or function 'sp_executesql' expects parameter '@statement', which was not supplied.");
    run_text(context, call, text_at(0), text_at(1), 2, 0);
    return true;
  }
  SessionState& s = context.session;
  if (call.procedure == "sp_prepexec") {
    const int handle = s.next_handle++;
    s.prepared[handle] = {text_at(2), text_at(1)};
    run_text(context, call, text_at(2), text_at(1), 3, handle);
    return true;
  }
  if (call.procedure == "sp_execute") {
    const int handle = call.args.empty() || call.args[0].value.null
                           ? 0
                           : static_cast<int>(convert(call.args[0].value, int_type()).number);
    const auto found = s.prepared.find(handle);
    if (found == s.prepared.end())
      raise(8179, 16, 4, fmt::format("Could not find prepared statement with handle {}.", handle));
    run_text(context, call, found->second.text, found->second.parameters, 1, 0);
    return true;
  }
  return false;
}

void call_builtin(const Context& context, Call& call, const Builtin& builtin, Outcome& outcome) {
  BuiltinCall running{context, call.args};
  const std::int32_t status = builtin.run(running);
  outcome = running.outcome;
  CallFrame frame;
  frame.procedure = call.procedure;
  frame.result_variable = call.result_variable;
  std::vector<std::string> inner(call.args.size());
  for (std::size_t i = 0; i < call.args.size(); ++i) {
    if (!call.args[i].output) continue;
    inner[i] = call.args[i].name.empty() ? fmt::format("@{}", i + 1) : fold_name(call.args[i].name);
    Variable v;
    v.type = call.args[i].value.type;
    v.value = call.args[i].value;
    frame.variables[inner[i]] = std::move(v);
  }
  frame.outputs = bindings_of(call.args, inner);
  push_frame(context, std::move(frame));
  context.frame().status = status;
}

void call_user(const Context& context, Call& call) {
  const ObjectPtr object = find_object(context, call.name);
  if (object == nullptr || object->kind != ObjectKind::procedure)
    raise(2812, 16, 62, fmt::format("Could not find stored procedure '{}'.", call.name.text()));
  CallFrame frame;
  frame.text = object->text.substr(object->body);
  frame.procedure = object->name;
  frame.result_variable = call.result_variable;
  bind_parameters(context, frame, parse_procedure_header(object->text, parse_options(context)), call.args, 0,
                  object->name, false);
  push_frame(context, std::move(frame));
}

Outcome invoke(const Context& context, Call call) {
  Outcome outcome{std::nullopt, 0xE0, true};
  call.procedure = fold_name(call.name.object());
  if (call_text(context, call)) return outcome;
  const Builtin* builtin = find_builtin(call.procedure);
  if (builtin != nullptr) {
    call_builtin(context, call, *builtin, outcome);
    return outcome;
  }
  call_user(context, call);
  return outcome;
}

}  // namespace

const Builtin* find_builtin(std::string_view name) {
  const auto* found = std::find_if(builtins.begin(), builtins.end(), [&](const Builtin& b) { return b.name == name; });
  return found == builtins.end() ? nullptr : found;
}

Outcome execute_call(const Context& context, Execute& s) {
  if (!s.texts.empty()) {
    CallFrame frame;
    frame.kind = Frame::Kind::dynamic;
    const Value v = constant_value(context, s.texts[0]);
    frame.text = v.null ? std::string() : narrow(text_of(v));
    frame.sends_status = false;
    push_frame(context, std::move(frame));
    return {std::nullopt, 0xE0, true};
  }
  Call call;
  call.name = s.procedure;
  call.result_variable = s.result;
  if (!s.procedure_variable.empty()) {
    Expr e;
    e.kind = ExprKind::variable;
    e.name = {s.procedure_variable};
    const auto name = parse_name(narrow(text_of(constant_value(context, std::make_shared<Expr>(e)))));
    if (!name) raise(2812, 16, 62, "Could not find stored procedure ''.");
    call.name = *name;
  }
  for (const ExecuteArgument& a : s.args) {
    CallArgument argument;
    argument.name = a.name;
    argument.use_default = a.use_default;
    argument.output = a.output;
    if (!a.use_default) {
      argument.value = constant_value(context, a.value);
      if (a.output && a.value->kind == ExprKind::variable) argument.variable = a.value->name[0];
      if (a.output && argument.variable.empty())
        raise(179, 15, 1, "Cannot use the OUTPUT option when passing a constant to a stored procedure.", Reach::batch);
    }
    call.args.push_back(std::move(argument));
  }
  return invoke(context, std::move(call));
}

void start_procedure(Context& context, const std::string& procedure, std::vector<Parameter> parameters) {
  Call call;
  const auto name = parse_name(procedure);
  if (!name) raise(2812, 16, 62, fmt::format("Could not find stored procedure '{}'.", procedure));
  call.name = *name;
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    const Parameter& p = parameters[i];
    CallArgument argument;
    argument.name = p.name;
    argument.output = p.output;
    argument.use_default = p.use_default;
    argument.ordinal = static_cast<std::uint16_t>(i);
    const auto type = from_wire(p.type);
    if (!type)
      raise(8009, 16, 1,
            fmt::format("The incoming tabular data stream (TDS) remote procedure call (RPC) protocol stream is "
                        "incorrect. Parameter {} (\"{}\"): Data type 0x{:02X} is unknown.",
                        i + 1, p.name, static_cast<unsigned>(p.type.id)),
            Reach::batch);
    argument.value = p.value.empty() ? Value::of_null(*type) : decode_value(*type, p.type, p.value.data());
    call.args.push_back(std::move(argument));
  }
  const Outcome outcome = invoke(context, std::move(call));
  context.session.rows_done.current_command = outcome.command;
}

}  // namespace rowferry::sandbox::engine
