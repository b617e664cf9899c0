#pragma once
// The close codes of a WebSocket: what each means here, and how clients react.
//
// Clients of the agents protocol reconnect after every close code except 1008 and 4000 to 4999. So
// a permanent refusal must use one of those, and a temporary condition must not. A permanent
// refusal answers 101 first, because clients retry an HTTP error to the upgrade for ever.
//
// plugin-api/README.md has the table for authors; tests/base/close_codes_test.cpp compares the two.

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace hearth {

using CloseCode = std::uint16_t;

// Clients reconnect after these.
inline constexpr CloseCode kCloseNormal = 1000;          // the agent closed it
inline constexpr CloseCode kCloseGoingAway = 1001;       // the server stops
inline constexpr CloseCode kCloseProtocolError = 1002;   // bytes that are no WebSocket frames
inline constexpr CloseCode kCloseInvalidText = 1007;     // a text frame that is not UTF-8
inline constexpr CloseCode kCloseTooBig = 1009;          // a message above the limit
inline constexpr CloseCode kCloseInternalError = 1011;   // the agent failed, or the server did
inline constexpr CloseCode kCloseServiceRestart = 1012;  // drained for a restart: come back
inline constexpr CloseCode kCloseTryAgainLater = 1013;   // overload, or a client that is too slow

// The reason of a 1012 after which the client must authenticate again.
inline constexpr std::string_view kAccessChanged =
    "the rules of access have changed: connect again";

// Clients stop after these, and report the reason to their user.
inline constexpr CloseCode kClosePolicyViolation = 1008;  // a transport that is not supported
inline constexpr CloseCode kCloseBadAddress = 4400;       // class or name is not acceptable
inline constexpr CloseCode kCloseUnauthorized = 4401;     // no token, or none that is valid (now)
inline constexpr CloseCode kCloseForbidden = 4403;        // the agent refused the client
inline constexpr CloseCode kCloseUnknownClass = 4404;     // there has never been such a class
// The agent was destroyed. A client that reconnected would create a new, empty agent of the same
// name, for as long as a browser has the page open. (The service that the clients were written for
// sends 1001 here, so that they reconnect.)
inline constexpr CloseCode kCloseDestroyed = 4410;

// For reports only; no close frame may carry them.
inline constexpr CloseCode kCloseNoCode = 1005;    // the peer's close frame had none
inline constexpr CloseCode kCloseAbnormal = 1006;  // lost without a close frame

// The longest reason that a close frame can carry, in bytes of UTF-8 (RFC 6455, 5.5: a control
// frame has at most 125 bytes).
inline constexpr std::size_t kMaxCloseReason = 123;

// Whether a close frame may have the code (RFC 6455, 7.4). Others are for reports only or not
// assigned.
constexpr bool is_sendable(CloseCode code) {
  return (code >= 1000 && code <= 1003) || (code >= 1007 && code <= 1014) ||
         (code >= 3000 && code <= 4999);
}

// Whether an agent may close a client with the code. Codes about frames are for the network layer.
constexpr bool is_agents_close_code(std::uint32_t code) {
  return code == kCloseNormal || code == kCloseGoingAway || code == kClosePolicyViolation ||
         (code >= kCloseInternalError && code <= kCloseTryAgainLater) ||
         (code >= 3000 && code <= 4999);
}

}  // namespace hearth
