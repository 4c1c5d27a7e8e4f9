#include "sandbox/engine/functions.hpp"

#include <fmt/format.h>

#include <array>

#include "sandbox/engine/collation.hpp"
#include "sandbox/engine/partitions.hpp"

namespace rowferry::sandbox::engine {

namespace {

const Function* find_function(std::string_view name) {
  for (const auto& table :
       {text_functions(), number_functions(), date_functions(), server_functions(), catalog_functions()})
    for (const Function& f : table)
      if (f.name == name) return &f;
  return nullptr;
}

constexpr std::array lazy{"COALESCE", "IIF", "NULLIF", "ISNULL", "CHOOSE"};
bool is_lazy(std::string_view name) {
  for (const char* l : lazy)
    if (name == l) return true;
  return false;
}

constexpr std::array date_part_first{"DATEADD", "DATEDIFF", "DATEDIFF_BIG", "DATEPART", "DATENAME", "DATETRUNC"};
bool takes_date_part(std::string_view name) {
  for (const char* l : date_part_first)
    if (name == l) return true;
  return false;
}

bool is_null_literal(const Expr& e) { return e.kind == ExprKind::literal && e.literal.null; }

void bind_lazy(Expr& e) {
  const std::string& name = e.name[0];
  const std::size_t first = name == "IIF" || name == "CHOOSE" ? 1 : 0;
  const std::size_t least = name == "IIF" ? 3 : 2;
  if (e.args.size() < least || ((name == "ISNULL" || name == "NULLIF") && e.args.size() != 2))
    raise(174, 15, 1, fmt::format("The {} function requires {} argument(s).", fold_name(name), least), Reach::batch);
  bool typed = false;
  bool all_nullable = true;
  for (std::size_t i = first; i < e.args.size(); ++i) {
    all_nullable = all_nullable && e.args[i]->nullable;
    if (is_null_literal(*e.args[i])) continue;
    const bool own = name == "NULLIF" || name == "ISNULL";
    e.type = !typed ? e.args[i]->type : own ? e.type : common_type(e.type, e.args[i]->type);
    typed = true;
  }
  if (!typed) e.type = int_type();
  e.nullable = name == "IIF" || name == "NULLIF" || name == "CHOOSE" || all_nullable;
}

Value call_lazy(Evaluator& evaluator, const Expr& e) {
  const std::string& name = e.name[0];
  if (name == "IIF") return convert(evaluator.eval(e.args[evaluator.test(e.args[0]) == Truth::yes ? 1 : 2]), e.type);
  if (name == "CHOOSE") {
    const Value which = evaluator.eval(e.args[0]);
    const std::int64_t i = which.null ? 0 : number_of(which);
    if (i < 1 || i >= static_cast<std::int64_t>(e.args.size())) return Value::of_null(e.type);
    return convert(evaluator.eval(e.args[static_cast<std::size_t>(i)]), e.type);
  }
  if (name == "NULLIF") {
    const Value a = evaluator.eval(e.args[0]);
    if (compare_truth('=', a, evaluator.eval(e.args[1])) == Truth::yes) return Value::of_null(e.type);
    return convert(a, e.type);
  }
  for (const ExprPtr& arg : e.args) {
    const Value v = evaluator.eval(arg);
    if (!v.null) return convert(v, e.type);
  }
  return Value::of_null(e.type);
}

// [database.]$PARTITION.function(value)
bool is_partition_call(const Expr& e) {
  return e.name.size() > 1 && fold_name(e.name[e.name.size() - 2]) == "$partition";
}

}  // namespace

void bind_function(Evaluator& evaluator, Expr& e) {
  const std::string shown = fold_name(e.name.back());
  if (is_partition_call(e)) {
    if (e.args.size() != 1) raise(174, 15, 1, "The $PARTITION function requires 1 argument(s).", Reach::batch);
    evaluator.bind(e.args[0]);
    partition_function(evaluator.context(), e.name);
    e.type = int_type();
    e.nullable = true;
    return;
  }
  if (e.name.size() > 1) {
    const bool system = fold_name(e.name[e.name.size() - 2]) == "sys";
    if (!system) {
      ObjectName whole{e.name};
      raise(4121, 16, 1,
            fmt::format("Cannot find either column \"{}\" or the user-defined function or aggregate \"{}\", or the "
                        "name is ambiguous.",
                        e.name[0], fold_name(whole.text())),
            Reach::batch);
    }
    e.name = {e.name.back()};
  }
  const std::size_t skip = takes_date_part(e.name[0]) && !e.args.empty() ? 1 : 0;
  for (std::size_t i = skip; i < e.args.size(); ++i) {
    if (e.name[0] == "IIF" && i == 0) {
      evaluator.bind_condition(e.args[i]);
    } else {
      evaluator.bind(e.args[i]);
    }
  }
  if (is_lazy(e.name[0])) return bind_lazy(e);
  const Function* f = find_function(e.name[0]);
  if (f == nullptr)
    raise(195, 15, 10, fmt::format("'{}' is not a recognized built-in function name.", shown), Reach::batch);
  const int count = static_cast<int>(e.args.size());
  if (count < f->least || count > f->most)
    raise(174, 15, 1,
          f->least == f->most ? fmt::format("The {} function requires {} argument(s).", shown, f->least)
                              : fmt::format("The {} function requires {} to {} arguments.", shown, f->least, f->most),
          Reach::batch);
  e.type = f->type(evaluator.context(), e);
  e.nullable = true;
}

Value call_function(Evaluator& evaluator, const Expr& e) {
  if (is_lazy(e.name[0])) return call_lazy(evaluator, e);
  if (is_partition_call(e)) {
    const auto function = partition_function(evaluator.context(), e.name);
    return Value::of_int(function->number_of(convert(evaluator.eval(e.args[0]), function->type)));
  }
  const Function* f = find_function(e.name[0]);
  Arguments args;
  const std::size_t skip = takes_date_part(e.name[0]) ? 1 : 0;
  for (std::size_t i = skip; i < e.args.size(); ++i) args.push_back(evaluator.eval(e.args[i]));
  return f->call(evaluator.context(), e, args);
}

Type int_result(const Context&, const Expr&) { return int_type(); }
Type bigint_result(const Context&, const Expr&) { return bigint_type(); }
Type name_result(const Context& context, const Expr&) { return sysname_type(context.collation()); }
Type first_argument(const Context&, const Expr& call) { return call.args[0]->type; }

Value null_int() { return Value::of_null(int_type()); }
Value int_value(std::int64_t v) { return Value::of_int(v); }
Value name_value(const Context& context, std::string_view v) {
  return Value::of_text(v, sysname_type(context.collation()));
}
Value null_name(const Context& context) { return Value::of_null(sysname_type(context.collation())); }

}  // namespace rowferry::sandbox::engine
