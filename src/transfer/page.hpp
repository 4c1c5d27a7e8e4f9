// Page: one page of the list of transfers.
#pragma once

#include <map>

#include "transfer/manager.hpp"
#include "transfer/recover.hpp"

namespace rowferry::transfer {

// One page of the list, found on the thread pool: what this process holds is known by its state, of the rest as little
// is read as tells its state, and only what is shown is read whole.
struct PageRequest {
  Store store;
  ListRequest request;
  std::size_t limit;
  std::string version;
  std::map<std::string, State> held;
};
struct PageLine {
  std::string id;
  Json status;  // null: held by this process
};
struct Page {
  std::vector<PageLine> lines;
  bool more = false;
  std::vector<std::string> damaged;
};
// Blocking. What is damaged or unreadable is left out, and told.
Page find_page(const PageRequest& request);

}  // namespace rowferry::transfer
