#include "sandbox/faults.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>

#include "base/error.hpp"
#include "base/json.hpp"

namespace rowferry::sandbox {

namespace {

constexpr std::array<std::pair<std::string_view, FaultKind>, 11> kinds{{
    {"cut_bulk", FaultKind::cut_bulk},
    {"cut_before_commit", FaultKind::cut_before_commit},
    {"cut_after_commit", FaultKind::cut_after_commit},
    {"cut_reply", FaultKind::cut_reply},
    {"stall_bulk", FaultKind::stall_bulk},
    {"delay", FaultKind::delay},
    {"error", FaultKind::error},
    {"login_error", FaultKind::login_error},
    {"packet_size", FaultKind::packet_size},
    {"feature_ack", FaultKind::feature_ack},
    {"encryption_reply", FaultKind::encryption_reply},
}};

Error invalid(const std::string& why) {
  return Error(Category::input, "faults_invalid", fmt::format("the fault plan is not valid: {}", why));
}

bool same_letter(char a, char b) {
  return std::tolower(static_cast<unsigned char>(a)) == std::tolower(static_cast<unsigned char>(b));
}

std::string_view::iterator find_without_case(std::string_view text, std::string_view part) {
  return std::search(text.begin(), text.end(), part.begin(), part.end(), same_letter);
}

bool contains(std::string_view text, std::string_view part) {
  return part.empty() || find_without_case(text, part) != text.end();
}

template <class T>
T number(std::string_view key, const Json& value, std::uint64_t max) {
  const auto n = value.uint64();
  if (!n || *n > max) throw invalid(fmt::format("\"{}\" must be a whole number from 0 to {}", key, max));
  return static_cast<T>(*n);
}

std::string string(std::string_view key, const Json& value) {
  if (value.string() == nullptr) throw invalid(fmt::format("\"{}\" must be a string", key));
  return *value.string();
}

FaultKind kind_named(std::string_view name) {
  for (const auto& [text, kind] : kinds) {
    if (text == name) return kind;
  }
  throw invalid(fmt::format("no kind \"{}\"", name));
}

void set_member(Fault& fault, std::string_view key, const Json& value) {
  constexpr std::uint64_t any = INT64_MAX;
  if (key == "kind") {
    fault.kind = kind_named(string(key, value));
  } else if (key == "nth") {
    fault.nth = std::max<std::uint64_t>(1, number<std::uint64_t>(key, value, any));
  } else if (key == "times") {
    fault.times = number<std::uint64_t>(key, value, any);
  } else if (key == "match") {
    fault.match = string(key, value);
  } else if (key == "bytes") {
    fault.bytes = number<std::uint64_t>(key, value, any);
  } else if (key == "wait_ms") {
    fault.wait = std::chrono::milliseconds(number<std::int64_t>(key, value, INT32_MAX));
  } else if (key == "number") {
    fault.number = number<std::int32_t>(key, value, INT32_MAX);
  } else if (key == "severity") {
    fault.severity = number<std::uint8_t>(key, value, 25);
  } else if (key == "state") {
    fault.state = number<std::uint8_t>(key, value, 255);
  } else if (key == "text") {
    fault.text = string(key, value);
  } else if (key == "feature") {
    fault.feature = number<std::uint8_t>(key, value, 254);
  } else if (key == "reply") {
    fault.reply = number<std::uint8_t>(key, value, 255);
  } else {
    throw invalid(fmt::format("no member \"{}\"", key));
  }
}

Fault parse_fault(const Json& element) {
  if (element.object() == nullptr) throw invalid("each fault must be an object");
  Fault fault;
  for (const auto& [key, value] : *element.object()) set_member(fault, key, value);
  if (element.find("kind") == nullptr) throw invalid("a fault without \"kind\"");
  return fault;
}

bool is_word_letter(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '@' || c == '#' ||
         (static_cast<unsigned char>(c) & 0x80U) != 0;
}

}  // namespace

FaultPlan FaultPlan::from_json(std::string_view json) {
  Json root;
  try {
    root = Json::parse(json);
  } catch (const Error& error) {
    throw invalid(error.detail());
  }
  const Json* list = root.find("faults");
  if (list == nullptr || list->array() == nullptr) throw invalid("\"faults\" must be a list");
  FaultPlan plan;
  for (const Json& element : *list->array()) plan.add(parse_fault(element));
  return plan;
}

const Fault* FaultPlan::strike(FaultKind kind, std::string_view statement) {
  const Fault* struck = nullptr;
  for (Fault& fault : faults_) {
    if (fault.kind != kind || !contains(statement, fault.match)) continue;
    ++fault.seen;
    const bool due = fault.seen >= fault.nth && (fault.times == 0 || fault.seen < fault.nth + fault.times);
    if (due && struck == nullptr) struck = &fault;
  }
  if (struck != nullptr) ++struck_;
  return struck;
}

bool is_commit(std::string_view statement) noexcept {
  constexpr std::string_view word = "commit";
  for (std::string_view rest = statement; true;) {
    const auto at = find_without_case(rest, word);
    if (at == rest.end()) return false;
    const auto begin = static_cast<std::size_t>(at - rest.begin());
    const std::size_t end = begin + word.size();
    const bool starts = begin == 0 || !is_word_letter(rest[begin - 1]);
    if (starts && (end == rest.size() || !is_word_letter(rest[end]))) return true;
    rest.remove_prefix(end);
  }
}

}  // namespace rowferry::sandbox
