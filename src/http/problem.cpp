#include "http/problem.hpp"

#include "base/json.hpp"

namespace rowferry::http {

namespace {

void text_field(JsonWriter& json, std::string_view name, std::string_view value) {
  if (!value.empty()) json.field(name, value);
}

// Beside the other members, as the `error` of a transfer has them.
void write_context(JsonWriter& json, const ErrorContext& context) {
  text_field(json, "connection", context.connection);
  text_field(json, "table", context.table);
  text_field(json, "slice", context.slice);
  text_field(json, "column", context.column);
  if (context.row) json.field("row", *context.row);
  text_field(json, "value", context.value);
}

void write_fault(JsonWriter& json, const ServerFault& fault) {
  json.begin_object();
  text_field(json, "number", fault.number);
  if (fault.severity > 0) json.field("severity", fault.severity);
  if (fault.state > 0) json.field("state", fault.state);
  if (fault.line > 0) json.field("line", fault.line);
  text_field(json, "server", fault.server);
  text_field(json, "procedure", fault.procedure);
  text_field(json, "message", fault.message);
  json.end_object();
}

}  // namespace

std::string problem_json(const ProblemText& problem) {
  JsonWriter json;
  json.begin_object();
  // RFC 9457 section 4.2.1: "about:blank" says that the title is the status's own phrase; `code` tells problems apart.
  json.field("type", "about:blank");
  json.field("title", reason_phrase(problem.status));
  json.field("status", problem.status);
  text_field(json, "code", problem.code);
  text_field(json, "detail", problem.detail);
  text_field(json, "field", problem.field);
  text_field(json, "hint", problem.hint);
  write_context(json, problem.context);
  if (problem.fault) write_fault(json.key("server"), *problem.fault);
  json.end_object();
  return json.take();
}

Response problem_response(const ProblemText& problem) {
  return {.status = problem.status,
          .content_type = "application/problem+json",
          .body = problem_json(problem),
          .headers = {{"Cache-Control", "no-store"}}};
}

}  // namespace rowferry::http
