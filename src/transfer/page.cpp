#include "transfer/page.hpp"

#include <fmt/format.h>

namespace rowferry::transfer {

namespace {

std::optional<PageLine> page_line(const PageRequest& page, const std::string& id) {
  const std::string& wanted = page.request.state;
  const auto fits = [&](State state) { return wanted.empty() || to_string(state) == wanted; };
  if (const auto held = page.held.find(id); held != page.held.end()) {
    return fits(held->second) ? std::optional(PageLine{id, {}}) : std::nullopt;
  }
  if (!wanted.empty()) {
    const auto head = read_head(page.store, id);
    if (head && is_terminal(head->state) && !fits(head->state)) return std::nullopt;
  }
  std::optional<Record> record = read_record(page.store, id, page.version);
  if (!record || !fits(record->state)) return std::nullopt;
  return PageLine{id, std::move(record->status)};
}

}  // namespace

Page find_page(const PageRequest& request) {
  Page page;
  for (const std::string& id : request.store.ids()) {
    if (!request.request.after.empty() && id >= request.request.after) continue;
    try {
      std::optional<PageLine> line = page_line(request, id);
      if (!line) continue;
      page.more = page.lines.size() == request.limit;
      if (page.more) break;
      page.lines.push_back(std::move(*line));
    } catch (const Error& error) {
      page.damaged.push_back(fmt::format("{}: {}", id, error.detail()));
    }
  }
  return page;
}

}  // namespace rowferry::transfer
