#include "app/display.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "app/output.hpp"
#include "base/limits.hpp"

namespace rowferry::app {

namespace {

std::string eta(const transfer::Progress& p) {
  if (!p.row_estimate || p.load_rate < 1 || p.state != transfer::State::running) return "";
  const std::uint64_t left = *p.row_estimate > p.rows_written ? *p.row_estimate - p.rows_written : 0;
  const auto seconds = static_cast<std::uint64_t>(static_cast<double>(left) / p.load_rate);
  return fmt::format(", ETA {}:{:02}", seconds / 60, seconds % 60);
}

std::string summary(const transfer::Progress& p) {
  std::string line = fmt::format("{} {}", p.id, transfer::to_string(p.state));
  if (p.rows.read == 0) return line;
  line += fmt::format(": {} rows read, {} written", grouped(p.rows.read), grouped(p.rows_written));
  if (p.row_estimate && *p.row_estimate != 0) {
    const double share = static_cast<double>(p.rows_written) / static_cast<double>(*p.row_estimate);
    line += fmt::format(" (about {:.0f} %)", 100 * std::min(share, 1.0));
  }
  if (p.load_rate >= 1) line += fmt::format(", {} rows/s", grouped(static_cast<std::uint64_t>(p.load_rate)));
  return line + eta(p);
}

std::string worker_line(std::string_view role, int worker, const transfer::SliceProgress& slice, std::size_t slices,
                        std::uint64_t rows, double seconds) {
  const double rate = seconds > 0 ? static_cast<double>(rows) / seconds : 0;
  return fmt::format("  {} {}: slice {}/{}  {} rows  {} rows/s", role, worker + 1, slice.index + 1, slices,
                     grouped(rows), grouped(static_cast<std::uint64_t>(rate)));
}

}  // namespace

std::string grouped(std::uint64_t number) {
  std::string text = std::to_string(number);
  for (auto at = static_cast<std::ptrdiff_t>(text.size()) - 3; at > 0; at -= 3)
    text.insert(static_cast<std::size_t>(at), ",");
  return text;
}

std::vector<std::string> display_lines(const transfer::Progress& p) {
  std::vector<std::string> lines{summary(p)};
  if (p.state != transfer::State::running) return lines;
  using State = transfer::SliceProgress::State;
  std::map<int, std::string> exporting;
  std::map<int, std::string> loading;
  for (const transfer::SliceProgress& s : p.slices) {
    if (s.state == State::reading && s.export_worker >= 0) {
      exporting[s.export_worker] =
          worker_line("export", s.export_worker, s, p.slices.size(), s.rows_read, s.read_seconds);
    }
    if ((s.state == State::reading || s.state == State::loading) && s.load_worker >= 0) {
      loading[s.load_worker] =
          worker_line("load  ", s.load_worker, s, p.slices.size(), s.rows_written, s.write_seconds);
    }
  }
  for (auto& [worker, line] : exporting) lines.push_back(std::move(line));
  for (auto& [worker, line] : loading) lines.push_back(std::move(line));
  return lines;
}

Display::Display(std::FILE* out, bool live) : out_(out), live_(live) {}

Display::~Display() { std::fflush(out_); }

void Display::erase() {
  for (; drawn_ > 0; --drawn_) std::fputs("\x1b[1A\x1b[2K", out_);
}

void Display::redraw(const transfer::Progress& progress) {
  erase();
  for (const std::string& line : display_lines(progress)) {
    (void)put(out_, line + "\n");
    ++drawn_;
  }
  std::fflush(out_);
}

void Display::plain(const transfer::Progress& progress) {
  last_plain_ = transfer::Clock::now();
  (void)put(out_, summary(progress) + "\n");
}

void Display::on_state(const transfer::Progress& progress) {
  if (live_) {
    redraw(progress);
    if (transfer::is_terminal(progress.state)) drawn_ = 0;
  } else {
    plain(progress);
  }
}

void Display::on_tick(const transfer::Progress& progress) {
  if (live_) {
    redraw(progress);
  } else if (transfer::Clock::now() - last_plain_ >= limits::display_plain_interval) {
    plain(progress);
  }
}

}  // namespace rowferry::app
