#include "sandbox/engine/row_copy.hpp"

#include <algorithm>

namespace rowferry::sandbox::engine {

RowCopy::RowCopy(const Layout& layout, const std::vector<Item>& items) : items_(items) {
  int last = -1;
  bool ascending = true;
  bool stripped = false;
  for (const Item& item : items) {
    ascending = ascending && item.column > last;
    last = std::max(last, item.column);
    stripped = stripped || item.without_length;
  }
  for (int i = 0; i <= last; ++i) {
    const StoredColumn& column = layout[static_cast<std::size_t>(i)];
    steps_.push_back({column.framing, Action::skip, &column.info});
  }
  for (const Item& item : items)
    steps_[static_cast<std::size_t>(item.column)].action = item.without_length ? Action::strip : Action::copy;
  starts_.resize(steps_.size() + 1);
  if (ascending) way_ = items.size() == layout.size() && !stripped ? Way::whole : Way::in_order;
}

std::size_t RowCopy::size_at(const Step& step, const std::uint8_t* at) {
  if (step.framing == Framing::length8) return 1U + *at;
  return value_size(*step.info, step.framing, at);
}

void RowCopy::append(ByteView row, ByteBuffer& out) {
  if (way_ == Way::whole) return out.append(row);
  if (way_ == Way::in_order) return append_in_order(row, out);
  append_any(row, out);
}

// Columns that stay together are copied together.
void RowCopy::append_in_order(ByteView row, ByteBuffer& out) const {
  const std::size_t before = out.size();
  std::uint8_t* to = out.extend(row.size());
  const std::uint8_t* at = row.data();
  const std::uint8_t* run = nullptr;
  const auto flush = [&] {
    if (run == nullptr) return;
    std::memcpy(to, run, static_cast<std::size_t>(at - run));
    to += at - run;
    run = nullptr;
  };
  for (const Step& step : steps_) {
    if (step.action == Action::copy) {
      if (run == nullptr) run = at;
    } else {
      flush();
      if (step.action == Action::strip) run = at + 1;
    }
    at += size_at(step, at);
  }
  flush();
  out.resize(before + static_cast<std::size_t>(to - (out.data() + before)));
}

void RowCopy::append_any(ByteView row, ByteBuffer& out) {
  const std::uint8_t* at = row.data();
  for (std::size_t i = 0; i < steps_.size(); ++i) {
    starts_[i] = at;
    at += size_at(steps_[i], at);
  }
  starts_[steps_.size()] = at;
  for (const Item& item : items_) {
    const auto column = static_cast<std::size_t>(item.column);
    const std::uint8_t* from = starts_[column] + (item.without_length ? 1 : 0);
    out.append(ByteView{from, static_cast<std::size_t>(starts_[column + 1] - from)});
  }
}

}  // namespace rowferry::sandbox::engine
