#include <algorithm>

#include "sandbox/engine/state.hpp"

namespace rowferry::sandbox::engine {

Transaction& transaction_of(SessionState& session) {
  if (session.transaction == nullptr) {
    session.transaction = std::make_unique<Transaction>();
    session.transaction->id = ++session.server->last_transaction;
    session.transaction->began = now_ticks();
    session.server->owners[session.transaction->id] = session.spid;
    session.statement_undo = 0;
  }
  return *session.transaction;
}

TransactionId transaction_id(const SessionState& session) {
  return session.transaction == nullptr ? 0 : session.transaction->id;
}

std::uint64_t descriptor_of(const Transaction& transaction) { return 0x0000'0039'0000'0000ULL + transaction.id; }

void log_undo(SessionState& session, Undo undo) {
  Transaction& t = transaction_of(session);
  auto& log = t.undo;
  const auto touch = [&](const std::shared_ptr<TableData>& data) {
    if (std::find(t.touched.rbegin(), t.touched.rend(), data) == t.touched.rend()) t.touched.push_back(data);
  };
  if (const auto* rows = std::get_if<UndoRows>(&undo)) touch(rows->data);
  if (const auto* discard = std::get_if<UndoDiscard>(&undo)) touch(discard->data);
  // Rows appended one after the other are one entry.
  if (const auto* added = std::get_if<UndoRows>(&undo);
      added != nullptr && !added->deleted && !log.empty() && log.size() > session.statement_undo) {
    if (auto* last = std::get_if<UndoRows>(&log.back());
        last != nullptr && !last->deleted && last->data == added->data && last->first.block == added->first.block &&
        last->first.row + last->count == added->first.row) {
      last->count += added->count;
      return;
    }
  }
  log.push_back(std::move(undo));
}

void undo_to(SessionState& session, std::size_t place) {
  if (session.transaction == nullptr) return;
  Transaction& t = *session.transaction;
  while (t.undo.size() > place) {
    Undo last = std::move(t.undo.back());
    t.undo.pop_back();
    if (auto* rows = std::get_if<UndoRows>(&last)) {
      if (rows->deleted) {
        rows->data->undo_delete(rows->first, t.id);
      } else {
        rows->data->undo_insert(rows->first, rows->count, t.id);
      }
    } else if (auto* discard = std::get_if<UndoDiscard>(&last)) {
      discard->data->add_discarded(discard->rows, discard->hash, !discard->taken_away, t.id);
    } else {
      std::get<UndoDefinition>(last).undo();
    }
  }
  std::erase_if(t.savepoints, [&](const Savepoint& s) { return s.undo > place; });
}

namespace {

void release_snapshot(ServerState& server, Moment& snapshot) {
  if (snapshot == 0) return;
  server.snapshots.erase(server.snapshots.find(snapshot));
  snapshot = 0;
  const Moment oldest = server.snapshots.empty() ? server.moment : *server.snapshots.begin();
  std::erase_if(server.versioned, [&](const std::weak_ptr<TableData>& table) {
    const auto data = table.lock();
    if (data == nullptr) return true;
    data->forget(oldest);
    return !data->keeps_versions();
  });
}

void note_versions(ServerState& server, const std::shared_ptr<TableData>& data) {
  if (!data->keeps_versions()) return;
  const bool known = std::any_of(server.versioned.begin(), server.versioned.end(),
                                 [&](const std::weak_ptr<TableData>& table) { return table.lock() == data; });
  if (!known) server.versioned.push_back(data);
}

void finish(SessionState& session, bool commit, ResultWriter* writer) {
  Transaction& t = *session.transaction;
  ServerState& server = *session.server;
  release_snapshot(server, t.snapshot);
  if (commit) {
    ++server.moment;
    const Moment moment = server.snapshots.empty() ? 0 : server.moment;
    for (Undo& entry : t.undo) {
      auto* rows = std::get_if<UndoRows>(&entry);
      if (rows == nullptr) continue;
      if (rows->deleted) {
        rows->data->commit_delete(rows->first, moment);
      } else {
        rows->data->commit_insert(rows->first, rows->count, t.id, moment);
      }
    }
  } else {
    undo_to(session, 0);
  }
  for (const auto& data : t.touched) {
    data->settle(t.id, commit);
    note_versions(server, data);
  }
  if (t.user && writer != nullptr) {
    EnvChange change;
    change.kind = commit ? EnvChange::Kind::commit : EnvChange::Kind::rollback;
    change.descriptor = descriptor_of(t);
    writer->env_change(change);
  }
  server.owners.erase(t.id);
  session.transaction.reset();
  session.statement_undo = 0;
  server.locks.release_all(session.spid, LockSpan::transaction);
  server.wake_waiting(session.spid);
}

}  // namespace

void commit_transaction(SessionState& session, ResultWriter* writer) {
  if (session.transaction != nullptr) finish(session, true, writer);
}

void rollback_transaction(SessionState& session, ResultWriter* writer) {
  if (session.transaction != nullptr) finish(session, false, writer);
}

void begin_user_transaction(SessionState& session, const std::string& name, ResultWriter& writer) {
  Transaction& t = transaction_of(session);
  if (!t.user) {
    t.user = true;
    t.count = 0;
    t.name = name;
    EnvChange change;
    change.kind = EnvChange::Kind::begin;
    change.descriptor = descriptor_of(t);
    writer.env_change(change);
  }
  ++t.count;
}

Moment take_snapshot(SessionState& session, bool of_transaction) {
  Moment& snapshot =
      of_transaction && session.transaction != nullptr ? session.transaction->snapshot : session.snapshot;
  if (snapshot == 0) {
    snapshot = session.server->moment;
    session.server->snapshots.insert(snapshot);
  }
  return snapshot;
}

Moment snapshot_of(const SessionState& session) {
  const bool of_transaction = session.transaction != nullptr && session.transaction->snapshot != 0;
  return of_transaction ? session.transaction->snapshot : session.snapshot;
}

void end_statement_locks(SessionState& session) {
  release_snapshot(*session.server, session.snapshot);
  if (session.server->locks.release_all(session.spid, LockSpan::statement)) session.server->wake_waiting(session.spid);
}

void block_on_transaction(const ServerState& server, TransactionId other) {
  const auto owner = server.owners.find(other);
  throw WouldBlock{owner == server.owners.end() ? 0 : owner->second};
}

}  // namespace rowferry::sandbox::engine
