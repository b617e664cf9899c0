#pragma once
// Errors as HTTP responses.

#include "base/error.hpp"
#include "net/http.hpp"

#include <string_view>

namespace hearth::api {

// The status for an outcome that the agent, or the runtime in its place, has reported:
//   kNotFound, kUnsupported 404      kConflict 409               kUnavailable, kClosing, kCancelled
//                                    503
//   kInvalidArgument 400             kLimitExceeded 429          kTimeout 504
//   kForbidden 403                   kPlugin, kInternal 500
// kUnsupported is an agent that answers no HTTP at all: as far as the client can tell nothing is
// there.
[[nodiscard]] int http_status(Errc code) noexcept;

// {"error":{"code":...,"message":...}}, both escaped. A 503 also says that a client may try again
// in a second.
[[nodiscard]] net::HttpResponse error_answer(int status, std::string_view code,
                                             std::string_view message);

}  // namespace hearth::api
