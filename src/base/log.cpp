#include "base/log.hpp"

#include <fmt/format.h>
#include <spdlog/sinks/base_sink.h>
#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

#include <atomic>
#include <memory>
#include <mutex>
#include <vector>

#include "base/json.hpp"
#include "base/time.hpp"

namespace rowferry::log {

namespace {

constexpr std::string_view level_names[] = {"debug", "info", "warning", "error"};

// Our lines are whole already; spdlog serialises and writes them.
std::shared_ptr<spdlog::logger> make_logger(spdlog::sink_ptr sink) {
  auto logger = std::make_shared<spdlog::logger>("rowferry", std::move(sink));
  logger->set_pattern("%v");
  logger->set_level(spdlog::level::trace);
  logger->flush_on(spdlog::level::trace);
  // A log that cannot be written (a full disk, nobody who reads) stops nothing and has nowhere to say so.
  logger->set_error_handler([](const std::string&) {});
  return logger;
}

class FunctionSink final : public spdlog::sinks::base_sink<std::mutex> {
 public:
  explicit FunctionSink(std::function<void(std::string_view line)> sink) : sink_(std::move(sink)) {}

 private:
  void sink_it_(const spdlog::details::log_msg& message) override {
    sink_({message.payload.data(), message.payload.size()});
  }
  void flush_() override {}

  std::function<void(std::string_view line)> sink_;
};

struct Door {
  std::atomic<Format> format{Format::text};
  std::atomic<Level> level{Level::info};
  std::shared_ptr<spdlog::logger> logger = make_logger(std::make_shared<spdlog::sinks::stderr_sink_mt>());
};

Door& door() {
  static Door the_door;
  return the_door;
}

bool bare(std::string_view text) {
  if (text.empty()) return false;
  for (const char c : text) {
    if (static_cast<unsigned char>(c) <= ' ' || c == '"' || c == '\\' || c == '=' || c == 0x7F) return false;
  }
  return true;
}

std::string text_line(Level level, std::string_view message, const Field* begin, const Field* end) {
  std::string line =
      fmt::format("{} {:<7} ", time::utc_text(time::now()), level_names[static_cast<std::size_t>(level)]);
  for (const char c : message) line += static_cast<unsigned char>(c) < ' ' ? ' ' : c;
  for (const Field* field = begin; field != end; ++field) {
    fmt::format_to(std::back_inserter(line), " {}=", field->name());
    if (const auto* text = std::get_if<std::string_view>(&field->value())) {
      if (bare(*text)) {
        line += *text;
      } else {
        append_json_string(line, *text);
      }
    } else {
      std::visit([&](const auto& value) { fmt::format_to(std::back_inserter(line), "{}", value); }, field->value());
    }
  }
  return line;
}

std::string json_line(Level level, std::string_view message, const Field* begin, const Field* end) {
  JsonWriter json;
  json.begin_object();
  json.field("time", time::utc_text(time::now()));
  json.field("level", level_names[static_cast<std::size_t>(level)]);
  json.field("message", message);
  for (const Field* field = begin; field != end; ++field) {
    std::visit([&](const auto& value) { json.field(field->name(), value); }, field->value());
  }
  json.end_object();
  return json.take();
}

void put(Level level, std::string_view message, const Field* begin, const Field* end) {
  Door& to = door();
  const bool json = to.format.load(std::memory_order_relaxed) == Format::json;
  const std::string line = json ? json_line(level, message, begin, end) : text_line(level, message, begin, end);
  to.logger->log(spdlog::level::info, spdlog::string_view_t(line.data(), line.size()));
}

}  // namespace

void setup(Format format, Level level) {
  door().format = format;
  door().level = level;
}

void redirect(std::function<void(std::string_view line)> sink) {
  if (!sink) {
    door().logger = make_logger(std::make_shared<spdlog::sinks::stderr_sink_mt>());
    return;
  }
  door().logger = make_logger(std::make_shared<FunctionSink>(std::move(sink)));
}

std::optional<Level> parse_level(std::string_view name) {
  for (std::size_t i = 0; i < std::size(level_names); ++i) {
    if (level_names[i] == name) return static_cast<Level>(i);
  }
  return std::nullopt;
}

std::optional<Format> parse_format(std::string_view name) {
  if (name == "text") return Format::text;
  if (name == "json") return Format::json;
  return std::nullopt;
}

bool enabled(Level level) noexcept { return level >= door().level.load(std::memory_order_relaxed); }

void write(Level level, std::string_view message, Fields fields) {
  if (enabled(level)) put(level, message, fields.begin(), fields.end());
}

void failure(std::string_view message, const Error& error, Fields fields) {
  if (!enabled(Level::error)) return;
  const std::string line = error.one_line();
  std::vector<Field> all(fields.begin(), fields.end());
  all.emplace_back("code", error.code());
  all.emplace_back("detail", line);
  put(Level::error, message, all.data(), all.data() + all.size());
}

}  // namespace rowferry::log
