#include "sandbox/engine/locks.hpp"

#include <algorithm>

#include "sandbox/engine/errors.hpp"

namespace rowferry::sandbox::engine {

bool compatible(LockMode a, LockMode b) {
  if (a > b) std::swap(a, b);
  switch (b) {
    case LockMode::schema_modification:
      return false;
    case LockMode::exclusive:
      return a == LockMode::schema_stability;
    case LockMode::bulk_update:
      return a == LockMode::schema_stability || a == LockMode::bulk_update;
    case LockMode::update:
      return a == LockMode::schema_stability || a == LockMode::intent_shared || a == LockMode::shared;
    case LockMode::shared:
      return a == LockMode::schema_stability || a == LockMode::intent_shared || a == LockMode::shared;
    default:
      return true;  // Sch-S, IS, IX among themselves
  }
}

int Locks::blocker(int spid, const std::string& resource, LockMode mode) const {
  const auto found = held_.find(resource);
  if (found == held_.end()) return 0;
  for (const Held& held : found->second)
    if (held.spid != spid && !compatible(held.mode, mode)) return held.spid;
  return 0;
}

void Locks::take(int spid, const std::string& resource, LockMode mode, LockSpan span) {
  if (const int holder = blocker(spid, resource, mode); holder != 0) throw WouldBlock{holder};
  auto& held = held_[resource];
  for (Held& h : held) {
    if (h.spid != spid || h.mode != mode || h.span != span) continue;
    ++h.count;
    return;
  }
  held.push_back({spid, mode, span, 1});
}

bool Locks::holds(int spid, const std::string& resource, LockSpan span) const {
  const auto found = held_.find(resource);
  return found != held_.end() && std::any_of(found->second.begin(), found->second.end(),
                                             [&](const Held& h) { return h.spid == spid && h.span == span; });
}

LockMode Locks::mode_held(int spid, const std::string& resource) const {
  LockMode mode = LockMode::schema_stability;
  const auto found = held_.find(resource);
  if (found != held_.end())
    for (const Held& h : found->second)
      if (h.spid == spid) mode = std::max(mode, h.mode);
  return mode;
}

bool Locks::release(int spid, const std::string& resource, LockSpan span) {
  const auto found = held_.find(resource);
  if (found == held_.end()) return false;
  auto& held = found->second;
  const auto at =
      std::find_if(held.begin(), held.end(), [&](const Held& h) { return h.spid == spid && h.span == span; });
  if (at == held.end()) return false;
  if (--at->count == 0) held.erase(at);
  if (held.empty()) held_.erase(found);
  return true;
}

bool Locks::release_all(int spid, LockSpan span) {
  bool any = false;
  for (auto at = held_.begin(); at != held_.end();) {
    any = std::erase_if(at->second, [&](const Held& h) { return h.spid == spid && h.span == span; }) != 0 || any;
    at = at->second.empty() ? held_.erase(at) : std::next(at);
  }
  return any;
}

}  // namespace rowferry::sandbox::engine
