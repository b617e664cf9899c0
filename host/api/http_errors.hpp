#pragma once
// Errors as HTTP responses.

#include "base/error.hpp"
#include "net/http.hpp"

#include <string_view>

namespace hearth::api {

// The status for an outcome that the agent, or the runtime in its place, has reported:
//   kInvalidArgument 400           kTooLarge 413            kUnavailable, kClosing, kCancelled 503
//   kForbidden 403                 kLimitExceeded 429       kTimeout 504
//   kNotFound, kUnsupported 404    kPlugin, kInternal 500
//   kConflict 409
// kUnsupported is an agent that answers no HTTP at all: the client sees that there is nothing.
[[nodiscard]] int http_status(Errc code) noexcept;

// Answers {"error":{"code":...,"message":...}}, both escaped. A 503 also has Retry-After: 1.
[[nodiscard]] net::HttpResponse error_answer(int status, std::string_view code,
                                             std::string_view message);

}  // namespace hearth::api
