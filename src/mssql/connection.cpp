#include "mssql/connection.hpp"

#include <array>

#include "mssql/dialect.hpp"
#include "mssql/source.hpp"
#include "mssql/target.hpp"

namespace rowferry::mssql {

namespace {

class ConnectionImpl final : public system::Connection {
 public:
  ConnectionImpl(net::Loop& loop, Options options) : pool_(loop, std::move(options)) {}

  const std::string& name() const noexcept override { return pool_.options().name; }
  std::string_view system() const noexcept override { return "mssql"; }
  bool writable() const noexcept override { return pool_.options().writable; }

  bool honours(std::string_view field, std::string_view value) const override {
    // keep_nulls false would need the target's defaults in staging: not offered.
    static constexpr std::array<std::string_view, 10> honoured{
        "load.table_lock",     "load.check_constraints",   "load.fire_triggers",   "load.keep_identity",
        "load.analyze",        "read.read_only_intent",    "read.lock_timeout_ms", "read.maxdop",
        "columns.keep_offset", "columns.variant_base_type"};
    if (field == "read.isolation") {
      return value == "snapshot" || value == "read_committed" || value == "read_uncommitted" || value == "auto";
    }
    for (const std::string_view known : honoured) {
      if (field == known) return true;
    }
    return false;
  }

  system::TableName parse_table(std::string_view text) const override { return mssql::parse_table(text); }

  std::unique_ptr<system::Source> make_source() override { return std::make_unique<SourceImpl>(pool_); }
  std::unique_ptr<system::Target> make_target() override { return std::make_unique<TargetImpl>(pool_); }

 private:
  SessionPool pool_;
};

}  // namespace

std::unique_ptr<system::Connection> make_connection(net::Loop& loop, Options options) {
  return std::make_unique<ConnectionImpl>(loop, std::move(options));
}

}  // namespace rowferry::mssql
