#include "app/output.hpp"

#include <fcntl.h>

#include <cerrno>
#include <csignal>
#include <system_error>

#include "base/error.hpp"

namespace rowferry::app {

void prepare_standard_streams() {
  std::signal(SIGPIPE, SIG_IGN);
  for (int fd = 0; fd <= 2; ++fd) {
    if (fcntl(fd, F_GETFD) != -1 || errno != EBADF) continue;
    // open() gives the lowest free number: this one, as those below are open by now.
    (void)open("/dev/null", fd == 0 ? O_WRONLY : O_RDONLY);
  }
}

bool put(std::FILE* out, std::string_view text) noexcept {
  const bool whole = std::fwrite(text.data(), 1, text.size(), out) == text.size();
  const bool flushed = std::fflush(out) == 0;
  const int reason = errno;
  if (!whole || !flushed) std::clearerr(out);
  errno = reason;
  return whole && flushed;
}

void write_result(std::string_view text) {
  if (put(stdout, text)) return;
  const int reason = errno;
  throw Error(Category::internal, "output_failed",
              "cannot write to standard output: " + std::generic_category().message(reason));
}

}  // namespace rowferry::app
