// Meter: what this process uses of memory and processor.
#pragma once

#include <cstdint>

namespace rowferry::transfer {

struct CpuSeconds {
  double user = 0;
  double system = 0;
};
CpuSeconds process_cpu() noexcept;

// Resident memory by /proc/self/statm (proc(5)), which stays open: a sample costs one read.
class RssMeter {
 public:
  RssMeter();
  ~RssMeter();
  RssMeter(const RssMeter&) = delete;
  RssMeter& operator=(const RssMeter&) = delete;
  std::uint64_t bytes() const noexcept;  // 0: not known

 private:
  int fd_;
};

}  // namespace rowferry::transfer
