// A client without a wire: runs batches and calls, and gives the whole answer as text, a line a token:
//   rows      1|abc|NULL
//   Done      (3 rows), (done), (failed)
//   messages  error 208, 16, 1: Invalid object name 't'.     info 5701: …
//   the rest  begin, commit, rollback, database x, status 0, @out=5, blocked by 52, waiting
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "sandbox/engine/engine.hpp"

namespace rowferry::sandbox::engine::testing {

class Recorder : public ResultWriter {
 public:
  void columns(const Columns& columns) override;
  void order(const std::vector<std::uint16_t>& columns) override;
  void rows(const RowTokens& rows) override;
  std::size_t rows_max() const override {
    return rows_until_full == 0 ? ~std::size_t{0} : rows_until_full - rows_given;
  }
  void row(ByteView values);
  void done(const Done& done) override;
  void message(const Message& message) override;
  void env_change(const EnvChange& change) override;
  void return_status(std::int32_t status) override;
  void return_value(const ReturnValue& value) override;
  bool full() const override { return rows_until_full != 0 && rows_given >= rows_until_full; }

  void line(std::string text);
  std::string text;
  Columns last_columns;
  std::vector<std::string> raw_rows;
  std::size_t rows_until_full = 0;  // 0: never
  std::size_t rows_given = 0;
  bool quiet_done = false;  // leaves out (done)
};

struct Client {
  explicit Client(Server& server, std::string database = {});
  std::unique_ptr<Session> session;
  Recorder recorder;  // of the request at hand

  // Runs to the end; stops at a wait, which is the last line then.
  std::string run(std::string_view batch);
  std::string call(std::string_view procedure, std::vector<Parameter> parameters);
  // Goes on after a wait.
  std::string resume();
  std::string bulk(std::string_view statement, const std::vector<std::string>& rows);
  BulkProgress append(const std::vector<std::string>& rows);
  std::string finish_bulk();
};

// The rows alone, joined by blanks between rows: "1|a 2|b".
std::string rows_of(std::string_view answer);

// Values in ROW framing.
std::string int_value(std::int32_t v);  // INTN
std::string null8();
std::string nvarchar_value(std::u16string_view v);
std::string nvarchar_null();
std::string decimal_value(std::int64_t unscaled, int precision);
Parameter text_parameter(std::string name, std::u16string_view v);
Parameter int_parameter(std::string name, std::int32_t v, bool output = false);

}  // namespace rowferry::sandbox::engine::testing
