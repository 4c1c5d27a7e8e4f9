// SELECT as a statement: metadata, rows, assignments to variables, INTO.
#include <fmt/format.h>

#include <algorithm>

#include "base/limits.hpp"
#include "sandbox/engine/collation.hpp"
#include "sandbox/engine/execute.hpp"
#include "sandbox/engine/select_plan.hpp"

namespace rowferry::sandbox::engine {

namespace {

constexpr std::uint16_t command_select = 0xC1;
constexpr std::int64_t whole_textsize = 2'147'483'647;

// What is sent for a column: UTF-8 text goes as nvarchar to a client that has not asked for UTF-8.
Type sent_type(const Context& context, const Type& type) {
  if (!is_code_page_string(type.kind) || !type.collation.utf8() || context.session.info.utf8) return type;
  if (type.kind == Kind::text || type.length == max_length || type.length > 4000)
    return nvarchar_type(max_length, type.collation);
  return nvarchar_type(type.length, type.collation);
}

// Rows that are there already.
class StoredRows : public RowSource {
 public:
  SortedRows rows;

  Pull fill(RowTokens& out, std::size_t rows_max, Turn&) override {
    while (at_ < rows.size()) {
      if (out.rows() >= rows_max || out.bytes.size() >= limits::sandbox_rows_bytes) return Pull::rows;
      out.bytes.push(RowTokens::token);
      out.bytes.append(rows.row(at_++));
      out.end_row();
    }
    return Pull::end;
  }

 private:
  std::size_t at_ = 0;
};

// SET TEXTSIZE cuts what is sent of (max) and text columns; a client that has not asked for all gets 4 KiB.
Value within_textsize(Value v, std::int64_t textsize) {
  const auto bytes = static_cast<std::size_t>(textsize);
  if (is_unicode(v.type.kind)) {
    v.text.resize(std::min(v.text.size(), bytes / 2));
  } else if (is_string(v.type.kind)) {
    const std::string cut = to_code_page(v.text, v.type.collation).substr(0, bytes);
    v.text = from_code_page(cut, v.type.collation);
  } else {
    v.bytes.resize(std::min(v.bytes.size(), bytes));
  }
  return v;
}

bool is_cut_by_textsize(const Type& t) {
  return t.length == max_length || t.kind == Kind::text || t.kind == Kind::ntext || t.kind == Kind::image;
}

// A compiled query must live as long as the stream over it.
class OwningStream : public RowSource {
 public:
  OwningStream(std::shared_ptr<CompiledQuery> query, std::unique_ptr<RowSource> inner)
      : query_(std::move(query)), inner_(std::move(inner)) {}
  ~OwningStream() override { inner_.reset(); }
  Pull fill(RowTokens& out, std::size_t rows_max, Turn& turn) override { return inner_->fill(out, rows_max, turn); }

 private:
  std::shared_ptr<CompiledQuery> query_;
  std::unique_ptr<RowSource> inner_;
};

struct Shape {
  Columns columns;
  std::vector<Type> types;
  std::vector<tds::TypeInfo> wire;
};

Shape shape_of(const Context& context, const std::vector<OutputColumn>& columns) {
  Shape shape;
  for (const OutputColumn& c : columns) {
    shape.columns.push_back(wire_column(context, c));
    shape.types.push_back(sent_type(context, c.type));
    shape.wire.push_back(shape.columns.back().type);
  }
  return shape;
}

void put_row(const Context& context, const Row& row, const Shape& shape, ByteBuffer& out) {
  for (std::size_t i = 0; i < row.size(); ++i) {
    const Value& v = row[i];
    const Type& type = shape.types[i];
    if (context.settings().textsize < whole_textsize && is_cut_by_textsize(type)) {
      encode_value(within_textsize(v.type == type ? v : convert(v, type), context.settings().textsize), shape.wire[i],
                   out);
    } else {
      encode_value(v.type == type ? v : convert(v, type), shape.wire[i], out);
    }
  }
}

// Rows that are all made, in portions, before the first is given. A wait for another session's lock begins it anew.
class GatheredRows : public RowSource {
 public:
  GatheredRows(const Context& context, std::shared_ptr<CompiledQuery> query, Shape shape)
      : context_(context),
        query_(std::move(query)),
        shape_(std::move(shape)),
        rows_max_(static_cast<std::size_t>(context.settings().rowcount)) {
    encode_ = [this](const Row& row, ByteBuffer& out) { put_row(context_, row, shape_, out); };
    take_ = [this](Row& row) {
      encoded_.clear();
      put_row(context_, row, shape_, encoded_);
      made_.rows.add({}, encoded_.view());
      return rows_max_ == 0 || made_.rows.size() < rows_max_;
    };
  }

  Pull fill(RowTokens& out, std::size_t rows_max, Turn& turn) override {
    if (!done_ && !gather(turn)) return Pull::not_yet;
    return made_.fill(out, rows_max, turn);
  }

 private:
  bool gather(Turn& turn) {
    try {
      if (query_ == nullptr) query_ = compile_query(context_, ast_, nullptr);
      if (!work_) {
        work_.emplace(query_->is_sortable() ? query_->work_sorted(context_, encode_, made_.rows, turn)
                                            : query_->work(context_, take_, turn));
      }
      done_ = work_->go(turn);
    } catch (const WouldBlock&) {
      work_.reset();
      ast_ = query_ == nullptr ? ast_ : query_->query;
      query_.reset();
      made_.rows = SortedRows();
      throw;
    }
    if (!done_) return false;
    work_.reset();
    return true;
  }

  const Context context_;
  std::shared_ptr<CompiledQuery> query_;
  QueryPtr ast_;
  Shape shape_;
  std::size_t rows_max_;
  std::function<void(const Row&, ByteBuffer&)> encode_;
  RowSink take_;
  ByteBuffer encoded_;
  StoredRows made_;
  std::optional<Portions> work_;
  bool done_ = false;
};

Outcome select_into(const Context& context, const ObjectName& name, CompiledQuery& query) {
  TableParts parts;
  check_columns_named(query.columns, name.object());
  for (const OutputColumn& c : query.columns) {
    ColumnSpec spec;
    spec.name = c.name;
    spec.type = c.type;
    if (is_string(c.type.kind)) spec.collation = collation_name(c.type.collation);
    spec.nullable = c.nullable;
    if (c.type.kind == Kind::rowversion) spec.type = make_type(Kind::binary, 8);
    if ((c.flags & tds::flag_identity) != 0 && is_integer(c.type.kind)) spec.identity = Identity{};
    parts.columns.push_back(std::move(spec));
  }
  const ObjectPtr table = create_table(context, name, parts);
  TableWriter writer(context, table,
                     {.verb = "SELECT INTO", .check_constraints = false, .identity_given = true, .bulk = true});
  std::vector<int> columns;
  for (std::size_t i = 0; i < query.columns.size(); ++i) columns.push_back(static_cast<int>(i));
  return {insert_from_query(context, table, columns, query, writer), 0xC2, false};
}

Outcome select_variables(const Context& context, const SelectStatement& s, CompiledQuery& query) {
  const Select& select = s.query->branches[0];
  std::uint64_t rows = 0;
  for (const SelectItem& item : select.items)
    if (item.assign.empty())
      raise(
          141, 15, 1,
          "A SELECT statement that assigns a value to a variable must not be combined with data-retrieval operations.",
          Reach::batch);
  query.run(context, [&](Row& row) {
    ++rows;
    for (std::size_t i = 0; i < row.size(); ++i) assign_variable(context, select.items[i].assign, row[i]);
    return true;
  });
  context.session.row_count = static_cast<std::int64_t>(rows);
  return {std::nullopt, command_select, false};
}

}  // namespace

tds::ColumnMeta wire_column(const Context& context, const OutputColumn& column) {
  tds::ColumnMeta meta;
  meta.name = column.name;
  meta.user_type = column.user_type;
  meta.flags = static_cast<std::uint16_t>(column.flags | (column.nullable ? tds::flag_nullable : 0));
  const Type type = sent_type(context, column.type);
  meta.type = sent_form(type, column.nullable);
  if (type.kind == Kind::text || type.kind == Kind::ntext || type.kind == Kind::image) meta.table = column.table;
  if (is_string(type.kind) && type.kind != Kind::xml && (type.collation.info >> 20U & 1U) == 0)
    meta.flags |= tds::flag_case_sensitive;
  return meta;
}

void assign_variable(const Context& context, const std::string& name, const Value& value) {
  auto& variables = context.frame().variables;
  const auto found = variables.find(fold_name(name));
  if (found == variables.end())
    raise(137, 15, 1, fmt::format("Must declare the scalar variable \"{}\".", name), Reach::batch);
  found->second.value = convert(value, found->second.type);
}

void send_rows(const Context& context, const std::vector<OutputColumn>& columns, const std::vector<Row>& rows,
               Outcome& outcome) {
  const Shape shape = shape_of(context, columns);
  context.writer.columns(shape.columns);
  outcome = {rows.size(), command_select, false};
  if (context.settings().fmtonly) {
    outcome.count = 0;
    return;
  }
  auto stored = std::make_unique<StoredRows>();
  ByteBuffer encoded;
  for (const Row& row : rows) {
    encoded.clear();
    put_row(context, row, shape, encoded);
    stored->rows.add({}, encoded.view());
  }
  context.session.rows = std::move(stored);
}

Outcome begin_select(const Context& context, SelectStatement& s) {
  const auto query = compile_query(context, s.query, nullptr);
  const Select& first = s.query->branches[0];
  const bool assigns =
      std::any_of(first.items.begin(), first.items.end(), [](const SelectItem& i) { return !i.assign.empty(); });
  if (assigns)
    return context.settings().fmtonly ? Outcome{std::nullopt, command_select, false}
                                      : select_variables(context, s, *query);
  if (!first.into.parts.empty())
    return context.settings().fmtonly ? Outcome{std::nullopt, 0xC2, false} : select_into(context, first.into, *query);
  const Shape shape = shape_of(context, query->columns);
  const bool fmtonly = context.settings().fmtonly;
  std::unique_ptr<RowSource> rows;
  if (!fmtonly) {
    bool cut = false;
    for (const Type& t : shape.types)
      cut = cut || (context.settings().textsize < whole_textsize && is_cut_by_textsize(t));
    if (auto stream = cut ? nullptr : query->stream(context, shape.types, shape.wire)) {
      rows = std::make_unique<OwningStream>(query, std::move(stream));
    } else {
      rows = std::make_unique<GatheredRows>(context, query, shape);
    }
  }
  context.writer.columns(shape.columns);
  if (!s.query->order.empty() && query->branches.size() == 1)
    context.writer.order(query->branches[0]->order_ordinals());
  context.session.rows = std::move(rows);
  return {fmtonly ? std::optional<std::uint64_t>(0) : std::nullopt, command_select, false};
}

}  // namespace rowferry::sandbox::engine
