#include "postgres/target.hpp"

namespace rowferry::postgres {

using async::Task;
using system::TargetRequest;

Task<Situation> read_situation(Session& session, const Place& place, const TargetRequest& request,
                               const std::vector<system::ColumnPlan>& columns) {
  Situation out;
  out.server_version = session.version();
  out.table = co_await read_table(session, place.schema, place.table);
  check_kind(out.table);
  out.rights = co_await read_rights(session, out.table);
  // Without the right to look the decision says so.
  if (out.table.exists && out.rights.select && !out.table.row_security) {
    out.empty = co_await read_is_empty(session, out.table);
  }
  const bool replaced =
      needs_rebuild(out.table, request, columns) || (request.load.exchange && !out.table.parent.empty());
  if (replaced) out.dependants = co_await read_dependants(session, out.table);
  if (!request.load.tablespace.empty()) {
    out.tablespace_usable = co_await tablespace_usable(session, request.load.tablespace, out.tablespace_why);
  }
  co_return out;
}

}  // namespace rowferry::postgres
