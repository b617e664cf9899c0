#pragma once
// The close codes of a WebSocket: what each means here, and what clients do about it.
//
// Clients of the agents protocol come back after every close but two kinds: 1008, and 4000 to 4999. So a
// refusal that will not change by itself must use one of those (with 101 first: an HTTP error to
// the upgrade is retried for ever), and everything that passes must use none of them.

#include <cstddef>
#include <cstdint>

namespace hearth::protocol {

using CloseCode = std::uint16_t;

// Clients reconnect after these.
inline constexpr CloseCode kCloseNormal = 1000;     // the agent closed without a code of its own
inline constexpr CloseCode kCloseGoingAway = 1001;  // the server stops
inline constexpr CloseCode kCloseProtocolError = 1002;    // bytes that are no WebSocket frames
inline constexpr CloseCode kCloseUnsupportedData = 1003;  // a kind of frame that is not taken here
inline constexpr CloseCode kCloseInvalidText = 1007;      // a text frame that is not UTF-8
inline constexpr CloseCode kCloseTooBig = 1009;           // a message above the limit
inline constexpr CloseCode kCloseInternalError = 1011;   // start or on_connect failed, or our fault
inline constexpr CloseCode kCloseServiceRestart = 1012;  // drained for a restart: come back
inline constexpr CloseCode kCloseTryAgainLater =
    1013;  // overloaded, or the client reads too slowly

// Clients stop after these, and report the reason to their user.
inline constexpr CloseCode kClosePolicyViolation =
    1008;                                              // e.g. a transport that is not spoken here
inline constexpr CloseCode kCloseBadAddress = 4400;    // class or name in the URL is not acceptable
inline constexpr CloseCode kCloseUnauthorized = 4401;  // no credentials, or not valid ones
inline constexpr CloseCode kCloseForbidden = 4403;     // valid, but not for this
inline constexpr CloseCode kCloseUnknownClass =
    4404;  // a class that there has never been, or a sub-agent
// The agent was destroyed. A client that came back by itself would make a new, empty agent of the same name, and what was
// to leave nothing would be there again for as long as a browser has it open. An agent whose clients should come back closes
// them itself, with 1012, before it destroys itself. (The service that the clients were written for says 1001 here, and has
// them come back.)
inline constexpr CloseCode kCloseDestroyed = 4410;

// The longest reason that a close frame can carry, in bytes of UTF-8.
inline constexpr std::size_t kMaxCloseReasonBytes = 123;

// Clients of the agents protocol do not reconnect after this code.
constexpr bool stops_client(CloseCode code) {
  return code == kClosePolicyViolation || (code >= 4000 && code <= 4999);
}

// May stand in a close frame at all (RFC 6455, 7.4). An agent's own close is checked with this:
// 1005, 1006 and 1015 are for reporting only, and others are not assigned.
constexpr bool is_sendable_close_code(CloseCode code) {
  return (code >= 1000 && code <= 1003) || (code >= 1007 && code <= 1014) ||
         (code >= 3000 && code <= 4999);
}

}  // namespace hearth::protocol
