// New transfers: idempotency keys, validation, the first record.
#include <fmt/format.h>

#include "base/id.hpp"
#include "base/limits.hpp"
#include "transfer/manager_impl.hpp"

namespace rowferry::transfer {

namespace {

[[noreturn]] void key_reused() {
  throw Error(Category::input, "idempotency_key_reused", "the idempotency key came with another body before")
      .with_field("Idempotency-Key");
}

}  // namespace

// The transfer that the same key has made before.
std::optional<Submitted> Manager::Impl::repeated(const SubmitRequest& request) const {
  if (request.idempotency_key.empty()) return std::nullopt;
  if (request.idempotency_key.size() > limits::idempotency_key_chars_max) {
    throw Error(Category::input, "bad_value", "the idempotency key is too long").with_field("Idempotency-Key");
  }
  const auto hit = keys.find(request.idempotency_key);
  if (hit == keys.end() || WallClock::now() - hit->second.at > limits::idempotency_keep) return std::nullopt;
  if (hit->second.body != fingerprint(request.spec)) key_reused();
  return Submitted{.id = hit->second.id, .repeated = true, .status = {}};
}

Task<std::optional<Submitted>> Manager::Impl::repeated_with_status(const SubmitRequest& request) {
  std::optional<Submitted> before = repeated(request);
  if (!before) co_return before;
  if (const EntryPtr entry = find(before->id)) {
    before->status = entry->status();
    co_return before;
  }
  const Store store = shared.store;
  const std::optional<std::string> text =
      co_await net::offload(shared.loop, [store, id = before->id] { return store.read(id); });
  // Its record may be past its retention: then the key is a new one.
  if (!text) co_return std::nullopt;
  before->status = document(parse_record(*text).status.text());
  co_return before;
}

EntryPtr Manager::Impl::prepare(const SubmitRequest& request) {
  Spec spec = parse_spec(request.spec);
  std::vector<system::Notice> notices;
  Route route = validate_offline(spec, connections, notices);
  check_room();
  auto entry = std::make_shared<Entry>(shared, new_transfer_id(), request.spec);
  entry->progress().pipeline = request.pipeline;
  entry->take(std::move(spec), std::move(route), std::move(notices));
  entry->accept();
  entries.emplace(entry->progress().id, entry);
  return entry;
}

namespace {

struct Claim {
  std::optional<Key> holder;          // another one; nullopt: the key is ours
  std::optional<std::string> record;  // of the holder's transfer; nullopt: not there (yet)
};

// A key counts for a day; one without a record counts as long as its process may still be writing it.
bool key_is_free(const Store& store, std::string_view text) {
  const std::optional<Key> key = parse_key(text);
  if (!key) return true;
  const auto age = WallClock::now() - key->at;
  return age > limits::idempotency_keep || (age > limits::key_record_wait && !store.exists(key->id));
}

Claim try_claim(const Store& store, const Key& key) {
  Claim claim;
  const auto free = [&store](std::string_view text) { return key_is_free(store, text); };
  const std::optional<std::string> held = store.claim_key(key.key, key_text(key), free);
  if (!held) return claim;
  claim.holder = parse_key(*held);
  if (claim.holder) claim.record = store.read(claim.holder->id);
  return claim;
}

}  // namespace

// Two processes on one state directory honour each other's keys: the file is the truth. Whoever comes second waits for
// the record of the first, or for its key to lapse.
Task<std::optional<Submitted>> Manager::Impl::claim(Key key) {
  for (;;) {
    key.at = WallClock::now();
    Claim claim = co_await net::offload(shared.loop, [store = shared.store, key] { return try_claim(store, key); });
    if (!claim.holder) {
      keys.insert_or_assign(key.key, key);
      co_return std::nullopt;
    }
    if (claim.holder->body != key.body) key_reused();
    if (claim.record) {
      keys.insert_or_assign(key.key, *claim.holder);
      co_return Submitted{
          .id = claim.holder->id, .repeated = true, .status = document(parse_record(*claim.record).status.text())};
    }
    co_await net::sleep_for(shared.loop, limits::key_record_poll);
  }
}

Task<std::optional<Submitted>> Manager::Impl::record_new(EntryPtr entry, Key key) {
  if (!key.key.empty()) {
    if (std::optional<Submitted> other = co_await claim(key)) co_return other;
  }
  std::exception_ptr error;
  try {
    co_await entry->create_record();
  } catch (...) {
    error = std::current_exception();
  }
  if (!error) co_return std::nullopt;
  if (const auto mine = keys.find(key.key); mine != keys.end()) {
    const Key gone = mine->second;
    keys.erase(mine);
    co_await net::offload(shared.loop, [store = shared.store, gone] { store.remove_key(gone.key, key_text(gone)); });
  }
  std::rethrow_exception(error);
}

Task<void> Manager::Impl::claim_settled(std::string key) {
  for (auto hit = claiming.find(key); hit != claiming.end(); hit = claiming.find(key)) {
    const std::shared_ptr<async::Event> settled = hit->second;
    co_await settled->wait();
  }
}

Task<Submitted> Manager::submit(SubmitRequest request) {
  Impl& m = *impl_;
  co_await m.claim_settled(request.idempotency_key);
  if (std::optional<Submitted> before = co_await m.repeated_with_status(request)) co_return std::move(*before);
  const EntryPtr entry = m.prepare(request);
  const Key key{request.idempotency_key, fingerprint(request.spec), entry->progress().id, WallClock::now()};
  const auto settled = std::make_shared<async::Event>();
  if (!key.key.empty()) m.claiming.insert_or_assign(key.key, settled);
  std::optional<Submitted> other;
  std::exception_ptr error;
  try {
    other = co_await async::shield(m.record_new(entry, key));
  } catch (...) {
    error = std::current_exception();
  }
  if (const auto mine = m.claiming.find(key.key); mine != m.claiming.end() && mine->second == settled) {
    m.claiming.erase(mine);
  }
  settled->set();
  if (error || other) m.entries.erase(entry->progress().id);
  if (error) std::rethrow_exception(error);
  if (other) co_return std::move(*other);
  m.enqueue(entry);
  co_return Submitted{.id = entry->progress().id, .repeated = false, .status = entry->status()};
}

}  // namespace rowferry::transfer
