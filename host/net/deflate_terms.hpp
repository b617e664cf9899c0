#pragma once
// Negotiates the compression of messages with a client: permessage-deflate, RFC 7692 section 7.1.
// Pure functions.

#include "net/http.hpp"
#include "net/options.hpp"

#include <optional>
#include <string>

namespace hearth::net {

// The window of the server's messages, and the largest that the server keeps for a client's. For
// JSON, more than the last 4 KiB helps little, and memory grows with the window.
inline constexpr int kDeflateWindowBits = 12;

// How messages of one connection are compressed.
struct DeflateTerms {
  // Whether each side may refer to its earlier messages. If not, its window is not kept between two
  // messages.
  bool server_keeps_context = false;
  bool client_keeps_context = false;
  // Of the client's window; nothing: it may use all 15, and keeps no context.
  std::optional<int> client_window_bits = std::nullopt;
  // Whether the client asked to bound the server's window: then the answer has the bound.
  bool tells_server_window = false;

  bool operator==(const DeflateTerms&) const = default;
};

// The first offer in `headers` that this server accepts. Nothing: there is none, or `wanted` is
// kNone; then messages are not compressed.
//
// Limits    An offer is skipped if its server_max_window_bits is below kDeflateWindowBits, or if it
//           has a parameter that RFC 7692 does not have, a parameter twice, or a wrong value. A
//           client that does not offer client_max_window_bits gets client_no_context_takeover.
[[nodiscard]] std::optional<DeflateTerms> choose_deflate(const HttpHeaders& headers,
                                                         Compression wanted);

// The value of the answer's Sec-WebSocket-Extensions.
[[nodiscard]] std::string deflate_answer(const DeflateTerms& terms);

}  // namespace hearth::net
