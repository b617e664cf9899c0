#pragma once
// The text of HTTP responses. Pure functions.

#include "net/http.hpp"

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace hearth::net {

// How the length of a response's body is told.
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

// Appends the status line, the headers and the empty line to `out`. False, and `out` as it was, if
// the status or a header could not be sent without breaking the protocol.
[[nodiscard]] bool append_head(std::string& out, const HttpResponse& response,
                               const ResponseHead& head);

// The 500 in place of a response that append_head() refuses. It keeps the headers by which a page
// of another origin may read it.
[[nodiscard]] HttpResponse replacement_for(const HttpResponse& invalid);

// Appends one chunk; nothing for an empty part, since an empty chunk would be the end.
void append_chunk(std::string& out, std::string_view part);

// What the Server header says.
inline constexpr std::string_view kServerName = "hearth";

// What follows the last chunk.
inline constexpr std::string_view kLastChunk = "0\r\n\r\n";

// "Not Found"; empty for a status without a registered phrase.
[[nodiscard]] std::string_view reason_phrase(int status);

// What is wrong with a request that asks for an upgrade to WebSocket (RFC 6455 4.2.1), as the
// answer to give; nothing if it is right.
[[nodiscard]] std::optional<HttpResponse> upgrade_fault(const HttpRequest& request);

}  // namespace hearth::net
