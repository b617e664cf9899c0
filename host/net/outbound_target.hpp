#pragma once
// Where a request goes, taken apart; and what is wrong with a request. Pure functions.

#include "base/error.hpp"
#include "net/outbound_http.hpp"

#include <cstdint>
#include <string>
#include <string_view>

namespace hearth::net {

// A URL of http or https in the one form that everybody reads alike.
struct OutboundTarget {
  std::string url;   // without fragment
  std::string host;  // lower case, no dot at its end; an address in its usual form
  std::uint16_t port = 0;
  bool is_https = false;

  // The same scheme, host and port.
  [[nodiscard]] bool has_origin_of(const OutboundTarget& other) const;
};

// kInvalidArgument: not http or https, a user or password, or no URL.
[[nodiscard]] Result<OutboundTarget> parse_target(std::string_view url);

// Where a `Location` leads from there. It may be relative, and less strict than a URL.
[[nodiscard]] Result<OutboundTarget> resolve_location(const OutboundTarget& from,
                                                      std::string_view location);

// The proxy's own place: http only, and here a user and password may be there.
[[nodiscard]] Result<OutboundTarget> parse_proxy(std::string_view url);

// Method and headers: kInvalidArgument with the name of what is wrong, never its value.
[[nodiscard]] Result<void> check_words(const OutboundRequest& request);

// Makes `request` what a redirect with this status asks for next.
void follow_redirect(OutboundRequest& request, int status, bool same_origin);

// Whether a status is one of those that are followed.
[[nodiscard]] bool is_redirect(int status);

}  // namespace hearth::net
