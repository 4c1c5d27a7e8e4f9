#include "sandbox/engine/sysviews.hpp"

#include <algorithm>

namespace rowferry::sandbox::engine {

void ViewBuilder::row(std::initializer_list<Value> cells) {
  Row row;
  row.reserve(cells.size());
  std::size_t i = 0;
  for (const Value& v : cells) row.push_back(convert(v, table_.columns[i++].type));
  while (row.size() < table_.columns.size()) row.push_back(Value::of_null(table_.columns[row.size()].type));
  table_.rows.push_back(std::move(row));
  (void)context_;
}

Value T(std::int64_t ticks) {
  Value v = Value::of_null(make_type(Kind::datetime));
  v.null = false;
  v.days = static_cast<std::int32_t>(ticks / ticks_per_day);
  v.ticks = ticks_from_300ths(std::min<std::uint32_t>(ticks_to_300ths(ticks % ticks_per_day), 25'919'999));
  return v;
}

Value Number(Int128 n) {
  Value v = Value::of_null(bigint_type());
  v.null = false;
  v.number = n;
  if (n >= -2'147'483'648LL && n <= 2'147'483'647) v.type = int_type();
  return convert(v, make_type(Kind::variant));
}

std::vector<ObjectPtr> ViewSource::tables() const {
  std::vector<ObjectPtr> found;
  for (const ObjectPtr& o : objects)
    if (o->kind == ObjectKind::table) found.push_back(o);
  return found;
}

std::optional<VirtualTable> system_view(const Context& context, const ObjectName& name) {
  const std::string schema = fold_name(name.schema()), view = fold_name(name.object());
  std::vector<std::span<const SystemView>> tables;
  if (schema == "sys") tables = {object_views(), constraint_views(), server_views()};
  if (schema == "information_schema") tables = {information_views()};
  for (const auto& table : tables) {
    for (const SystemView& v : table) {
      if (v.name != view) continue;
      ViewSource source{
          context, name.database().empty() ? context.session.database : context.server.database(name.database()), {}};
      if (source.database == nullptr) raise_invalid_object(name.text());
      for (const auto& [key, object] : source.database->objects) source.objects.push_back(object);
      if (same_name(source.database->name, "tempdb"))
        for (const auto& [key, object] : context.session.temporary) source.objects.push_back(object);
      return v.build(source);
    }
  }
  return std::nullopt;
}

std::optional<VirtualTable> table_function(const Context& context, const ObjectName& name,
                                           const std::vector<Value>& args) {
  const std::string function = fold_name(name.object());
  const auto argument = [&](std::size_t i) {
    return i < args.size() && !args[i].null ? narrow(text_of(args[i])) : std::string();
  };
  if (function == "fn_helpcollations") {
    ViewBuilder b(context, "name name!, description nvarchar(1000)");
    for (const std::string& c : collation_names()) b.row({N(c), N(c)});
    return b.take();
  }
  if (function == "string_split") {
    ViewBuilder b(context, "value max");
    const std::u16string text = widen(argument(0)), mark = widen(argument(1));
    for (std::size_t at = 0; !args.empty() && !args[0].null;) {
      const std::size_t next = mark.empty() ? std::u16string::npos : text.find(mark, at);
      b.row({Value::of_text(text.substr(at, next == std::u16string::npos ? next : next - at),
                            nvarchar_type(max_length, context.collation()))});
      if (next == std::u16string::npos) break;
      at = next + mark.size();
    }
    return b.take();
  }
  if (function == "fn_my_permissions") {
    ViewBuilder b(context, "entity_name name!, subentity_name name!, permission_name nvarchar(60)!");
    for (const std::string_view p : {"SELECT", "INSERT", "UPDATE", "DELETE", "ALTER", "CONTROL", "CREATE TABLE",
                                     "ADMINISTER BULK OPERATIONS", "VIEW DATABASE STATE"})
      b.row({N(argument(0)), N(""), N(p)});
    return b.take();
  }
  return std::nullopt;
}

}  // namespace rowferry::sandbox::engine
