// INSERT BULK: the statement's declared columns, and the rows that follow in a message of their own.
#pragma once

#include "sandbox/engine/table_writer.hpp"

namespace rowferry::sandbox::engine {

// Swallows everything: bulk rows come outside of a request.
class NullWriter : public ResultWriter {
 public:
  void columns(const Columns&) override {}
  void order(const std::vector<std::uint16_t>&) override {}
  void rows(const RowTokens&) override {}
  void done(const Done&) override {}
  void message(const Message&) override {}
  void env_change(const EnvChange&) override {}
  void return_status(std::int32_t) override {}
  void return_value(const ReturnValue&) override {}
  bool full() const override { return false; }
};

struct BulkLoad : public BulkTarget {
  BulkLoad(SessionState& session, ObjectPtr table, const InsertBulk& statement);

  const Columns& declared() const override { return declared_; }
  std::optional<Message> bind(const Columns& stream) override;
  bool refuses_null(std::size_t column) const override;
  Message null_error(std::size_t column) const override;
  BulkProgress append(const BulkRows& rows) override;
  void fail(const Message& error) override;
  const std::optional<Message>& error() const override { return error_; }
  std::uint64_t rows() const override { return rows_; }

  void finish(ResultWriter& writer);
  void abort(ResultWriter& writer, const std::optional<Message>& error);
  void undo();

 private:
  // How a row of the stream becomes a stored row.
  enum class Mode : std::uint8_t {
    direct,   // as it is
    reshape,  // the same types in another framing, or values to pad
    convert,  // value by value
  };
  struct Column {
    int target = -1;  // index into the definition
    Type declared;
    tds::TypeInfo stream;
    Framing framing = Framing::fixed;
  };

  void choose_mode();
  bool same_shape(const Column& c, bool& exact) const;
  ByteView reshaped(const std::uint8_t* row);
  ByteView converted(const std::uint8_t* row);
  void append_discarded(const BulkRows& rows, std::size_t& taken);
  void append_direct(const BulkRows& rows);
  void append_checked(const BulkRows& rows, std::size_t& taken);
  void check_order(ByteView stored);
  void note_identity(ByteView stored);
  void remember(const SqlError& error);

  SessionState& session_;
  NullWriter null_;
  Context context_;
  ObjectPtr table_;
  TableDefPtr def_;
  TableWriter writer_;
  InsertBulk statement_;
  Columns declared_;
  std::vector<Column> columns_;
  Mode mode_ = Mode::convert;
  bool bound_ = false;
  std::optional<Message> error_;
  std::uint64_t rows_ = 0;
  std::size_t undo_place_ = 0;
  ByteBuffer buffer_;
  std::vector<TableData::Piece> pieces_;
  std::vector<int> order_;  // stored columns of a matching clustered key
  std::vector<bool> order_descending_;
  std::vector<Value> last_key_;
  int identity_stored_ = -1;
  bool waiting_ = false;
  std::optional<std::chrono::steady_clock::time_point> wait_until_;
};

}  // namespace rowferry::sandbox::engine
