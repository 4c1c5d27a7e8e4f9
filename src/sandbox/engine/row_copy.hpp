// RowCopy: a stored row to a ROW body, where the items are stored columns sent as they are or without their length.
#pragma once

#include <vector>

#include "sandbox/engine/storage.hpp"

namespace rowferry::sandbox::engine {

class RowCopy {
 public:
  struct Item {
    int column = -1;              // stored column
    bool without_length = false;  // a fixed-length form: the length byte in front is left out
  };
  // Bound to the layout, which must outlive it.
  RowCopy(const Layout& layout, const std::vector<Item>& items);

  // Whether a row's body is the stored row itself.
  bool whole() const noexcept { return way_ == Way::whole; }
  void append(ByteView row, ByteBuffer& out);

 private:
  enum class Way : std::uint8_t { whole, in_order, any };
  enum class Action : std::uint8_t { skip, copy, strip };
  struct Step {
    Framing framing = Framing::fixed;
    Action action = Action::skip;
    const tds::TypeInfo* info = nullptr;
  };
  static std::size_t size_at(const Step& step, const std::uint8_t* at);
  void append_in_order(ByteView row, ByteBuffer& out) const;
  void append_any(ByteView row, ByteBuffer& out);

  std::vector<Item> items_;
  std::vector<Step> steps_;  // a stored column each, as far as one is needed
  std::vector<const std::uint8_t*> starts_;
  Way way_ = Way::any;
};

}  // namespace rowferry::sandbox::engine
