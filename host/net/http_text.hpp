#pragma once
// The text of HTTP responses. Pure functions.

#include "net/http.hpp"

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace hearth::net {

// How a response tells the length of its body.
enum class BodyFraming {
  kLength,   // Content-Length
  kChunked,  // Transfer-Encoding: chunked
  kToEnd,    // until the connection closes
  kNone,     // 1xx, 204 and 304 have none
};

struct ResponseHead {
  BodyFraming framing = BodyFraming::kLength;
  std::size_t length = 0;  // for kLength
  bool keep_alive = true;
  std::string_view date = {};  // for the Date header; empty: without one
};

// Appends the status line, the headers and the empty line to `out`. False if the status or a header
// would break the protocol; `out` is then unchanged.
[[nodiscard]] bool append_head(std::string& out, const HttpResponse& response,
                               const ResponseHead& head);

// The 500 instead of a response that append_head() refuses. It keeps the headers that let a page of
// another origin read it.
[[nodiscard]] HttpResponse replacement_for(const HttpResponse& invalid);

// Appends one chunk. Appends nothing for an empty part, because an empty chunk would be the end.
void append_chunk(std::string& out, std::string_view part);

// The value of the Server header.
inline constexpr std::string_view kServerName = "hearth";

// The end of a chunked body.
inline constexpr std::string_view kLastChunk = "0\r\n\r\n";

// "Not Found"; empty for a status without a registered phrase.
[[nodiscard]] std::string_view reason_phrase(int status);

// The answer to a faulty request for an upgrade to WebSocket (RFC 6455 4.2.1); nothing if the
// request is valid.
[[nodiscard]] std::optional<HttpResponse> upgrade_fault(const HttpRequest& request);

}  // namespace hearth::net
