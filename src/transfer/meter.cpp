#include "transfer/meter.hpp"

#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <charconv>

namespace rowferry::transfer {

CpuSeconds process_cpu() noexcept {
  rusage usage{};
  if (getrusage(RUSAGE_SELF, &usage) != 0) return {};
  const auto seconds = [](const timeval& t) {
    return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_usec) / 1e6;
  };
  return {seconds(usage.ru_utime), seconds(usage.ru_stime)};
}

RssMeter::RssMeter() : fd_(open("/proc/self/statm", O_RDONLY | O_CLOEXEC)) {}

RssMeter::~RssMeter() {
  if (fd_ >= 0) close(fd_);
}

std::uint64_t RssMeter::bytes() const noexcept {
  char text[128];
  const ssize_t got = fd_ < 0 ? -1 : pread(fd_, text, sizeof text, 0);
  if (got <= 0) return 0;
  // "size resident shared …", in pages
  const char* end = text + got;
  const char* at = text;
  while (at < end && *at != ' ') ++at;
  std::uint64_t pages = 0;
  if (at == end || std::from_chars(at + 1, end, pages).ec != std::errc()) return 0;
  return pages * static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
}

}  // namespace rowferry::transfer
