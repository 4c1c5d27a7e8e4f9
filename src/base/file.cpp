#include "base/file.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>

namespace rowferry {

namespace {

FileText refused(int reason) { return {.text = "", .problem = std::generic_category().message(reason)}; }

FileText read_if_fit(int fd, std::size_t most, FileKind kind) {
  struct stat about{};
  if (fstat(fd, &about) != 0) return refused(errno);
  if (S_ISDIR(about.st_mode)) return refused(EISDIR);
  if (kind == FileKind::regular && !S_ISREG(about.st_mode)) return {.text = "", .problem = "not a regular file"};
  return read_whole_descriptor(fd, most);
}

}  // namespace

FileText read_whole_file(const std::string& path, std::size_t most, FileKind kind) {
  // Without O_NONBLOCK the opening of a pipe waits for its writer.
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC | (kind == FileKind::regular ? O_NONBLOCK : 0));
  if (fd < 0) return refused(errno);
  FileText got = read_if_fit(fd, most, kind);
  close(fd);
  return got;
}

FileText read_whole_descriptor(int fd, std::size_t most) {
  FileText got;
  char block[16 * 1024];
  for (;;) {
    const ssize_t n = read(fd, block, sizeof block);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return refused(errno);
    if (n == 0) return got;
    got.text.append(block, static_cast<std::size_t>(n));
    if (got.text.size() > most) return {.text = "", .problem = fmt::format("larger than {} bytes", most)};
  }
}

}  // namespace rowferry
