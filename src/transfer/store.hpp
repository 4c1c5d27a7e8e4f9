// Store: the state directory. One JSON record per transfer, its artifact beside it.
//
//   <state_dir>/transfers/<id>.json       the record; whoever holds flock(2) on it owns the transfer
//   <state_dir>/transfers/<id>.artifact   the artifact, in every terminal state
//   <state_dir>/keys/<fingerprint>.json   an idempotency key
//   <state_dir>/pipelines/<fingerprint>.json   a pipeline's last runs (transfer/history.hpp)
//
// A record is replaced whole: temporary file, fsync, rename, fsync of the directory. The new file is locked before it
// takes the name, so that a record in use is never seen without its lock; who finds a lock free looks whether the name
// still leads to the file that it has locked.
// The functions block: call them on the thread pool (net::offload).
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace rowferry::transfer {

class RecordFile {
 public:
  RecordFile(std::string path, int fd) : path_(std::move(path)), fd_(fd) {}
  ~RecordFile();
  RecordFile(const RecordFile&) = delete;
  RecordFile& operator=(const RecordFile&) = delete;

  // Replaces the content; the lock passes to the new file. Throws Error(internal, "state_dir") and leaves the old one.
  void write(std::string_view text);
  std::string read() const;

 private:
  friend class Store;
  std::string path_;
  int fd_;  // locked
};
using RecordFilePtr = std::shared_ptr<RecordFile>;

// Holds a lock among processes as long as it lives; the system lets go of it with the process.
class StoreLock {
 public:
  explicit StoreLock(int fd) : fd_(fd) {}
  ~StoreLock();
  StoreLock(StoreLock&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  StoreLock& operator=(StoreLock&&) = delete;

 private:
  int fd_;
};

// The first bytes of a record and the last two.
struct RecordEnds {
  std::string head;  // at most limits::record_head_bytes
  std::string tail;
};

class Store {
 public:
  using KeyTest = std::function<bool(std::string_view text)>;
  explicit Store(std::string dir) : dir_(std::move(dir)) {}

  // Makes the directories. Error(input, "state_dir") saying what is wrong.
  void open() const;

  RecordFilePtr create(const std::string& id, std::string_view text) const;
  // Takes the lock of an existing record; null: absent, or another process (or another owner in this one) has it.
  RecordFilePtr own(const std::string& id) const;
  std::optional<std::string> read(const std::string& id) const;
  bool exists(const std::string& id) const;
  std::optional<RecordEnds> read_ends(const std::string& id) const;  // nullopt: unreadable
  std::vector<std::string> ids() const;                              // newest first
  void remove(const RecordFilePtr& record, const std::string& id) const;

  std::string artifact_path(const std::string& id) const;
  void write_artifact(const std::string& id, std::string_view text) const;
  std::optional<std::string> read_artifact(const std::string& id) const;

  // Takes the key, also against other processes; else gives the text of who has it. `free` says of a text whether it no
  // longer counts.
  std::optional<std::string> claim_key(std::string_view key, std::string_view text, const KeyTest& free) const;
  std::vector<std::string> read_keys() const;                          // the texts
  void remove_key(std::string_view key, std::string_view text) const;  // unless another text has taken it

  // Temporary files of writers that died, older than `age`.
  void remove_unfinished(std::chrono::seconds age) const;
  // Empty: a file of a block's size can be made and written.
  std::string why_not_writable() const;

  // For reading and writing a history as one step; waits for others, who hold it for no longer than that.
  StoreLock lock_histories() const;
  void write_history(std::string_view pipeline, std::string_view text) const;
  std::optional<std::string> read_history(std::string_view pipeline) const;
  std::vector<std::string> read_histories() const;  // the texts

 private:
  StoreLock lock_folder(std::string_view folder) const;
  std::string record_path(const std::string& id) const;
  std::string key_path(std::string_view key) const;
  std::string history_path(std::string_view pipeline) const;
  std::vector<std::string> read_folder(std::string_view folder) const;

  std::string dir_;
};

}  // namespace rowferry::transfer
