#pragma once
// Failures of requests as values. Pure functions.

#include "net/outbound_http.hpp"
#include "net/outbound_target.hpp"

namespace hearth::net {

// For a CURLcode that is not CURLE_OK.
[[nodiscard]] OutboundFailure curl_failure(int code, OutboundFailure::Phase phase, bool sent);

// The rules refuse the name, the address, or all addresses of the name.
[[nodiscard]] OutboundFailure rules_failure(bool sent, const OutboundTarget& target);

// A deadline has passed in this phase.
[[nodiscard]] OutboundFailure timeout_failure(OutboundFailure::Phase phase, bool sent);

}  // namespace hearth::net
