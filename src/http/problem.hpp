// Problem documents: RFC 9457, with our members beside the standard ones: code, field, hint,
// where it happened (connection, table, slice, column, row, value) and what a database said (server).
#pragma once

#include <string>

#include "base/error.hpp"
#include "http/wire/message.hpp"

namespace rowferry::http {

struct ProblemText {
  int status = 500;
  std::string code;
  std::string detail;
  std::string field;
  std::string hint;
  ErrorContext context;
  std::optional<ServerFault> fault;
};

// {"type","title","status","code","detail",…}: empty members are left out.
std::string problem_json(const ProblemText& problem);
// As a response of type application/problem+json.
Response problem_response(const ProblemText& problem);

}  // namespace rowferry::http
