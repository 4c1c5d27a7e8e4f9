// An intrusive doubly linked list: a node is in at most one list and unlinks itself when it dies.
#pragma once

#include <cassert>

namespace rowferry::async {

class ListNode {
 public:
  ListNode() = default;
  ListNode(const ListNode&) = delete;
  ListNode& operator=(const ListNode&) = delete;
  ~ListNode() { unlink(); }

  bool linked() const noexcept { return next_ != nullptr; }
  void unlink() noexcept {
    if (next_ == nullptr) return;
    prev_->next_ = next_;
    next_->prev_ = prev_;
    next_ = prev_ = nullptr;
  }

 private:
  template <class T>
  friend class List;
  ListNode* next_ = nullptr;
  ListNode* prev_ = nullptr;
};

// A list of T, which derives from ListNode. Owns nothing.
template <class T>
class List {
 public:
  List() noexcept { head_.next_ = head_.prev_ = &head_; }
  List(const List&) = delete;
  List& operator=(const List&) = delete;
  ~List() {
    while (!empty()) front()->unlink();
    head_.next_ = head_.prev_ = nullptr;
  }

  bool empty() const noexcept { return head_.next_ == &head_; }
  T* front() noexcept { return empty() ? nullptr : static_cast<T*>(head_.next_); }
  void push_back(T& node) noexcept {
    ListNode& n = node;
    assert(!n.linked());
    n.prev_ = head_.prev_;
    n.next_ = &head_;
    head_.prev_->next_ = &n;
    head_.prev_ = &n;
  }
  T* pop_front() noexcept {
    T* node = front();
    if (node != nullptr) static_cast<ListNode*>(node)->unlink();
    return node;
  }
  // The node behind `node`, or null. `node` may be unlinked afterwards.
  T* after(T& node) noexcept {
    ListNode* next = static_cast<ListNode&>(node).next_;
    return next == &head_ ? nullptr : static_cast<T*>(next);
  }

 private:
  ListNode head_;
};

}  // namespace rowferry::async
