// HashSink: the content hash of the batches that a reader puts; for reading back what was loaded.
#pragma once

#include <optional>
#include <utility>
#include <vector>

#include "system/source.hpp"

namespace rowferry::system {

class HashSink final : public BatchSink {
 public:
  // `compared`, per column: whether it counts.
  explicit HashSink(std::vector<bool> compared) : compared_(std::move(compared)) {}

  async::Task<void> put(rows::BatchPtr batch) override {
    if (!hasher_) hasher_.emplace(batch->schema(), compared_);
    hasher_->add(*batch, hash_);
    co_return;
  }
  const rows::ContentHash& hash() const noexcept { return hash_; }

 private:
  std::vector<bool> compared_;
  std::optional<rows::RowHasher> hasher_;
  rows::ContentHash hash_;
};

}  // namespace rowferry::system
