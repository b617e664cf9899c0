#pragma once
// Parses the target of a request, and checks a request. Pure functions.

#include "base/error.hpp"
#include "net/outbound_http.hpp"

#include <cstdint>
#include <string>
#include <string_view>

namespace hearth::net {

// A URL of http or https in a normal form that all parsers read in the same way.
struct OutboundTarget {
  std::string url;   // without fragment
  std::string host;  // lower case, no dot at its end; an address in its usual form
  std::uint16_t port = 0;
  bool is_https = false;

  // The same scheme, host and port.
  [[nodiscard]] bool has_origin_of(const OutboundTarget& other) const;
};

// kInvalidArgument: not http or https, has a user or password, or is not a URL.
[[nodiscard]] Result<OutboundTarget> parse_target(std::string_view url);

// The target of a `Location` in an answer of `from`. It may be relative, and less strict than a
// URL.
[[nodiscard]] Result<OutboundTarget> resolve_location(const OutboundTarget& from,
                                                      std::string_view location);

// The target of a proxy: http only; a user and password are allowed.
[[nodiscard]] Result<OutboundTarget> parse_proxy(std::string_view url);

// Checks method and headers: kInvalidArgument with the name of the wrong one, never its value.
[[nodiscard]] Result<void> check_words(const OutboundRequest& request);

// Changes `request` into the next request after a redirect with this status.
//   Failure   kForbidden: its body would go to another origin.
[[nodiscard]] Result<void> follow_redirect(OutboundRequest& request, int status, bool same_origin);

// Whether a status is a redirect that is followed.
[[nodiscard]] bool is_redirect(int status);

}  // namespace hearth::net
