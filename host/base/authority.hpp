#pragma once
// The host and the port in `Host: example.com:8787` and `Origin: http://[::1]:5173`. Pure
// functions.

#include <optional>
#include <string>
#include <string_view>

namespace hearth {

// RFC 3986 section 3.2, without user information.
struct Authority {
  std::string host;  // in lower case; an IPv6 address without its brackets
  std::string port;  // digits; empty if there is none

  bool operator==(const Authority&) const = default;
};

// Nothing if the text is not an authority: it has other characters, a port that is not a number up
// to 65535, or brackets around something other than an IPv6 address.
[[nodiscard]] std::optional<Authority> parse_authority(std::string_view text);

// The origin of a page (RFC 6454).
struct WebOrigin {
  std::string scheme;  // in lower case
  Authority authority;

  bool operator==(const WebOrigin&) const = default;
};

// "https://example.com:8443": a scheme, an authority, and nothing behind it.
[[nodiscard]] std::optional<WebOrigin> parse_origin(std::string_view text);

// Drops the port if it is the scheme's default: 80 for http and ws, 443 for https and wss.
[[nodiscard]] Authority without_default_port(Authority authority, std::string_view scheme);

// Whether a host is always this machine: `localhost` and names below it, 127.0.0.0/8, ::1.
[[nodiscard]] bool is_loopback_host(std::string_view host);

}  // namespace hearth
