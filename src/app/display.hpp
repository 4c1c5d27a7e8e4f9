// Progress of a transfer on standard error: a live line per worker on a terminal, plain lines otherwise.
#pragma once

#include <cstdio>
#include <string>
#include <vector>

#include "transfer/progress.hpp"

namespace rowferry::app {

class Display final : public transfer::Observer {
 public:
  // `live`: redraw in place (a terminal), at most ten times a second; else one line a state and one every
  // `plain_every`.
  Display(std::FILE* out, bool live);
  ~Display() override;
  void on_state(const transfer::Progress& progress) override;
  void on_tick(const transfer::Progress& progress) override;

 private:
  void redraw(const transfer::Progress& progress);
  void erase();
  void plain(const transfer::Progress& progress);

  std::FILE* out_;
  bool live_;
  std::size_t drawn_ = 0;  // lines on the screen that the next redraw replaces
  transfer::Clock::time_point last_plain_{};
};

// "1,234,567"
std::string grouped(std::uint64_t number);
// The lines that on_tick shows: a summary with rate and ETA, then one per worker.
std::vector<std::string> display_lines(const transfer::Progress& progress);

}  // namespace rowferry::app
