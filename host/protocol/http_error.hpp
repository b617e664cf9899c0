#pragma once
// The body of every HTTP answer that is an error: {"error":{"code":"not_found","message":"..."}}.

#include "base/error.hpp"

#include <string>
#include <string_view>

namespace hearth::protocol {

// `code` is a stable word for programs, `message` one sentence for people; both are escaped.
// Neither may contain internals: any client can see them.
std::string http_error_body(std::string_view code, std::string_view message);

// The same with the word of `error.code`. The caller picks the status.
std::string http_error_body(const Error& error);

}  // namespace hearth::protocol
