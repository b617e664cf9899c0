#pragma once
// Which pages may use this server, and under which names. A browser sends requests, and opens
// WebSockets, for any page that asks it to, with the user's network: what a page may reach is the
// server's to decide.

#include "base/authority.hpp"
#include "base/client_rules.hpp"
#include "net/http.hpp"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace hearth::api {

// A request without Origin comes from no page, unless it says that it does (Sec-Fetch-Site:
// cross-site, as browsers send for images and the like): then it is served only if all origins are
// allowed. One with it is served
//   - if the origin's authority is that of the request's Host: the page came from here;
//   - on a loopback listener, if the page came from this machine, whatever its port: a development
//     server's;
//   - if the origin is one of those allowed.
// On a loopback listener the Host is a loopback name or address, or one of those allowed: else a
// page could give its own name this machine's address, and would be of the same origin (DNS
// rebinding). On another listener any Host is served, or, if some are allowed, those alone.
//
// Threads   Any: it does not change.
class OriginRules {
 public:
  // Serves every page and every Host.
  OriginRules() = default;
  // `on_loopback`: whether the server listens on this machine alone. Origins are
  // "https://app.example", "null" or "*", hosts "app.example", with or without a port, or "*"; what
  // is none of these matches nothing.
  OriginRules(bool on_loopback, const std::vector<std::string>& allowed_origins,
              const std::vector<std::string>& allowed_hosts);

  // The answer to a request that is not served: 403. The origins of `cors` are allowed as well.
  [[nodiscard]] std::optional<net::HttpResponse> refusal(const net::HttpHeaders& headers,
                                                         const CorsRules& cors = {}) const;

 private:
  [[nodiscard]] bool serves_host(const Authority& host) const;
  [[nodiscard]] bool serves_origin(std::string_view origin,
                                   const std::optional<Authority>& host) const;

  bool any_origin_ = true;
  bool any_host_ = true;
  bool null_origin_ = true;
  bool is_loopback_ = false;
  std::vector<WebOrigin> origins_;  // without default ports
  std::vector<Authority> hosts_;    // without a port: any
};

}  // namespace hearth::api
