#pragma once
// What a client and this server agree on about the compression of messages: permessage-deflate, RFC
// 7692 section 7.1. Pure functions.

#include "net/http.hpp"
#include "net/options.hpp"

#include <optional>
#include <string>

namespace hearth::net {

// The window of what the server sends, and the largest that it keeps for what a client sends. 4 KiB
// of what went before are most of what helps messages of JSON, and memory grows with the window.
inline constexpr int kDeflateWindowBits = 12;

// How messages of one connection are compressed.
struct DeflateTerms {
  // Whether each side may refer to its earlier messages. If not, none of its window is kept between
  // two messages.
  bool server_keeps_context = false;
  bool client_keeps_context = false;
  // Of the client's window; none: it may use all 15, and keeps no context.
  std::optional<int> client_window_bits = std::nullopt;
  // Whether the client asked for a bound of the server's window: then it is told the bound.
  bool tells_server_window = false;

  bool operator==(const DeflateTerms&) const = default;
};

// What is agreed with a client that has sent `headers`: its first offer that this server can keep.
// Nothing: there is no such offer, or `wanted` is kNone; messages are not compressed then.
//
// Limits    An offer with a server_max_window_bits below kDeflateWindowBits is passed over. So is
//           one with a parameter that RFC 7692 does not know, a parameter twice, or a wrong value.
//           A client that does not take client_max_window_bits is told client_no_context_takeover.
[[nodiscard]] std::optional<DeflateTerms> choose_deflate(const HttpHeaders& headers,
                                                         Compression wanted);

// The value of the answer's Sec-WebSocket-Extensions.
[[nodiscard]] std::string deflate_answer(const DeflateTerms& terms);

}  // namespace hearth::net
