// From rowferry::Error to a status and a problem document.
#pragma once

#include <exception>

#include "base/error.hpp"
#include "http/problem.hpp"

namespace rowferry::api {

int status_of(const Error& error) noexcept;
http::Response error_response(const Error& error);
// Any exception: an Error as above; what is not one becomes 500 without its text (which goes to the log).
http::Response error_response(const std::exception_ptr& error);

}  // namespace rowferry::api
