#include "transfer/store.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <utility>

#include "base/error.hpp"
#include "base/id.hpp"
#include "base/limits.hpp"

namespace rowferry::transfer {

namespace {

namespace fs = std::filesystem;

constexpr std::string_view unfinished = ".new";
constexpr std::size_t probe_bytes = 4096;  // a block: a full disk refuses it

[[noreturn]] void failed(const std::string& what, const std::string& path, int code) {
  throw Error(Category::internal, "state_dir", fmt::format("{} {}: {}", what, path, std::strerror(code)));
}

class Fd {
 public:
  explicit Fd(int fd) : fd_(fd) {}
  ~Fd() {
    if (fd_ >= 0) close(fd_);
  }
  Fd(const Fd&) = delete;
  Fd& operator=(const Fd&) = delete;
  int get() const noexcept { return fd_; }
  int release() noexcept { return std::exchange(fd_, -1); }

 private:
  int fd_;
};

void write_all(int fd, std::string_view text, const std::string& path) {
  while (!text.empty()) {
    const ssize_t n = write(fd, text.data(), text.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) failed("writing", path, errno);
    text.remove_prefix(static_cast<std::size_t>(n));
  }
}

std::string read_all(int fd, const std::string& path) {
  std::string text;
  char block[64 * 1024];
  for (off_t at = 0;;) {
    const ssize_t n = pread(fd, block, sizeof block, at);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) failed("reading", path, errno);
    if (n == 0) return text;
    text.append(block, static_cast<std::size_t>(n));
    if (text.size() > limits::record_bytes_max) failed("reading", path, EFBIG);
    at += n;
  }
}

void sync_directory(const std::string& path) {
  const std::string dir = fs::path(path).parent_path().string();
  const Fd fd(open(dir.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (fd.get() < 0 || fsync(fd.get()) != 0) failed("syncing", dir, errno);
}

void write_and_rename(int fd, const std::string& temporary, const std::string& path, std::string_view text) {
  write_all(fd, text, temporary);
  if (fsync(fd) != 0) failed("syncing", temporary, errno);
  if (rename(temporary.c_str(), path.c_str()) != 0) failed("renaming", temporary, errno);
}

// Temporary file, locked, fsync, rename. Gives the descriptor that holds the lock of the new file.
int replace_file(const std::string& path, std::string_view text) {
  const std::string temporary = path + std::string(unfinished);
  Fd fd(open(temporary.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_NONBLOCK | O_CLOEXEC, 0600));
  if (fd.get() < 0) failed("creating", temporary, errno);
  if (flock(fd.get(), LOCK_EX | LOCK_NB) != 0) failed("locking", temporary, errno);
  try {
    write_and_rename(fd.get(), temporary, path, text);
  } catch (const Error&) {
    unlink(temporary.c_str());  // ours: its lock is held
    throw;
  }
  sync_directory(path);
  return fd.release();
}

// Never waits, whatever bears the name: a pipe or a folder is no record.
int open_regular(const std::string& path, int mode) {
  Fd fd(open(path.c_str(), mode | O_NONBLOCK | O_CLOEXEC));
  if (fd.get() < 0) return -1;
  struct stat about{};
  if (fstat(fd.get(), &about) != 0) return -1;
  if (S_ISREG(about.st_mode)) return fd.release();
  errno = S_ISDIR(about.st_mode) ? EISDIR : EINVAL;
  return -1;
}

std::vector<fs::path> files_in(const fs::path& folder) {
  std::vector<fs::path> files;
  std::error_code error;
  fs::directory_iterator at(folder, error);
  for (; !error && at != fs::directory_iterator(); at.increment(error)) {
    std::error_code unknown;
    if (at->is_regular_file(unknown)) files.push_back(at->path());
  }
  if (error) failed("listing", folder.string(), error.value());
  return files;
}

std::optional<std::string> read_file(const std::string& path) {
  const Fd fd(open_regular(path, O_RDONLY));
  if (fd.get() < 0 && errno == ENOENT) return std::nullopt;
  if (fd.get() < 0) failed("opening", path, errno);
  return read_all(fd.get(), path);
}

bool still_named(int fd, const std::string& path) {
  struct stat mine{};
  struct stat named{};
  return fstat(fd, &mine) == 0 && stat(path.c_str(), &named) == 0 && mine.st_dev == named.st_dev &&
         mine.st_ino == named.st_ino;
}

}  // namespace

RecordFile::~RecordFile() {
  if (fd_ >= 0) close(fd_);
}

void RecordFile::write(std::string_view text) {
  const int fd = replace_file(path_, text);
  close(std::exchange(fd_, fd));
}

std::string RecordFile::read() const { return read_all(fd_, path_); }

void Store::open() const {
  try {
    fs::create_directories(fs::path(dir_) / "transfers");
    fs::create_directories(fs::path(dir_) / "keys");
    fs::create_directories(fs::path(dir_) / "pipelines");
  } catch (const fs::filesystem_error& error) {
    throw Error(Category::input, "state_dir", fmt::format("the state directory {}: {}", dir_, error.code().message()))
        .with_field("server.state_dir");
  }
  const std::string transfers = (fs::path(dir_) / "transfers").string();
  if (access(transfers.c_str(), R_OK | W_OK | X_OK) != 0) {
    throw Error(Category::input, "state_dir", fmt::format("the state directory {} is not writable", dir_))
        .with_field("server.state_dir");
  }
}

std::string Store::record_path(const std::string& id) const { return fmt::format("{}/transfers/{}.json", dir_, id); }
std::string Store::artifact_path(const std::string& id) const {
  return fmt::format("{}/transfers/{}.artifact", dir_, id);
}
std::string Store::key_path(std::string_view key) const {
  return fmt::format("{}/keys/{}.json", dir_, fingerprint(key));
}

RecordFilePtr Store::create(const std::string& id, std::string_view text) const {
  const std::string path = record_path(id);
  return std::make_shared<RecordFile>(path, replace_file(path, text));
}

RecordFilePtr Store::own(const std::string& id) const {
  const std::string path = record_path(id);
  // An owner may replace the file between our open and our lock: then the lock is one on a file without a name.
  constexpr int tries = 16;
  for (int i = 0; i < tries; ++i) {
    Fd fd(open_regular(path, O_RDWR));
    if (fd.get() < 0 && errno == ENOENT) return nullptr;
    if (fd.get() < 0) failed("opening", path, errno);
    if (flock(fd.get(), LOCK_EX | LOCK_NB) != 0) {
      if (errno == EWOULDBLOCK && still_named(fd.get(), path)) return nullptr;
      if (errno != EWOULDBLOCK) failed("locking", path, errno);
      continue;
    }
    if (still_named(fd.get(), path)) return std::make_shared<RecordFile>(path, fd.release());
  }
  return nullptr;
}

std::optional<std::string> Store::read(const std::string& id) const { return read_file(record_path(id)); }

std::vector<std::string> Store::ids() const {
  std::vector<std::string> ids;
  for (const fs::path& path : files_in(fs::path(dir_) / "transfers")) {
    if (path.extension() == ".json" && is_transfer_id(path.stem().string())) ids.push_back(path.stem().string());
  }
  std::ranges::sort(ids, std::greater<>());
  return ids;
}

void Store::remove(const RecordFilePtr& record, const std::string& id) const {
  if (!record) return;
  std::error_code ignored;
  fs::remove(artifact_path(id), ignored);
  fs::remove(record_path(id), ignored);
}

void Store::write_artifact(const std::string& id, std::string_view text) const {
  close(replace_file(artifact_path(id), text));
}

std::optional<std::string> Store::read_artifact(const std::string& id) const { return read_file(artifact_path(id)); }

bool Store::exists(const std::string& id) const { return access(record_path(id).c_str(), F_OK) == 0; }

std::optional<RecordEnds> Store::read_ends(const std::string& id) const {
  const Fd fd(open_regular(record_path(id), O_RDONLY));
  struct stat about{};
  if (fd.get() < 0 || fstat(fd.get(), &about) != 0 || about.st_size < 2) return std::nullopt;
  RecordEnds ends{.head = std::string(limits::record_head_bytes, 0), .tail = "  "};
  const ssize_t head = pread(fd.get(), ends.head.data(), ends.head.size(), 0);
  if (head < 0 || pread(fd.get(), ends.tail.data(), 2, about.st_size - 2) != 2) return std::nullopt;
  ends.head.resize(static_cast<std::size_t>(head));
  return ends;
}

std::optional<std::string> Store::claim_key(std::string_view key, std::string_view text, const KeyTest& free) const {
  const StoreLock lock = lock_folder("keys");
  std::optional<std::string> held = read_file(key_path(key));
  if (held && !free(*held)) return held;
  close(replace_file(key_path(key), text));
  return std::nullopt;
}

std::vector<std::string> Store::read_folder(std::string_view folder) const {
  std::vector<std::string> texts;
  for (const fs::path& path : files_in(fs::path(dir_) / folder)) {
    if (path.extension() != ".json") continue;
    if (std::optional<std::string> text = read_file(path.string())) texts.push_back(std::move(*text));
  }
  return texts;
}

std::vector<std::string> Store::read_keys() const { return read_folder("keys"); }

void Store::remove_key(std::string_view key, std::string_view text) const {
  const StoreLock lock = lock_folder("keys");
  if (read_file(key_path(key)) != text) return;
  std::error_code ignored;
  fs::remove(key_path(key), ignored);
}

StoreLock::~StoreLock() {
  if (fd_ >= 0) close(fd_);
}

void Store::remove_unfinished(std::chrono::seconds age) const {
  const auto before = fs::file_time_type::clock::now() - age;
  for (const char* folder : {"transfers", "keys", "pipelines"}) {
    for (const fs::path& path : files_in(fs::path(dir_) / folder)) {
      std::error_code unknown;
      if (path.extension() != unfinished || fs::last_write_time(path, unknown) > before || unknown) continue;
      const Fd fd(open_regular(path.string(), O_RDWR));
      if (fd.get() >= 0 && flock(fd.get(), LOCK_EX | LOCK_NB) == 0) unlink(path.c_str());
    }
  }
}

std::string Store::why_not_writable() const {
  const std::string probe = fmt::format("{}/transfers/probe-{}{}", dir_, getpid(), unfinished);
  try {
    const Fd fd(::open(probe.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_NONBLOCK | O_CLOEXEC, 0600));
    if (fd.get() < 0) failed("creating", probe, errno);
    write_all(fd.get(), std::string(probe_bytes, ' '), probe);
  } catch (const Error& error) {
    unlink(probe.c_str());
    return error.detail();
  }
  unlink(probe.c_str());
  return "";
}

std::string Store::history_path(std::string_view pipeline) const {
  return fmt::format("{}/pipelines/{}.json", dir_, fingerprint(pipeline));
}

StoreLock Store::lock_histories() const { return lock_folder("pipelines"); }

StoreLock Store::lock_folder(std::string_view folder) const {
  const std::string path = fmt::format("{}/{}/lock", dir_, folder);
  Fd fd(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  if (fd.get() < 0) failed("opening", path, errno);
  while (flock(fd.get(), LOCK_EX) != 0) {
    if (errno != EINTR) failed("locking", path, errno);
  }
  return StoreLock(fd.release());
}

void Store::write_history(std::string_view pipeline, std::string_view text) const {
  close(replace_file(history_path(pipeline), text));
}

std::optional<std::string> Store::read_history(std::string_view pipeline) const {
  return read_file(history_path(pipeline));
}

std::vector<std::string> Store::read_histories() const { return read_folder("pipelines"); }

}  // namespace rowferry::transfer
