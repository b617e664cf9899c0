#pragma once
// Which pages may use this server, and under which names. A browser sends requests, and opens
// WebSockets, for any page, with the user's network. So the server decides which pages it serves.

#include "base/authority.hpp"
#include "base/client_rules.hpp"
#include "net/http.hpp"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace hearth::api {

// Origin  A request without Origin comes from no page, and is served. But if it has Sec-Fetch-Site:
//         cross-site, as browsers send for images, it is served only if all origins are allowed. A
//         request with Origin is served in three cases:
//          - its authority is that of the request's Host: the page came from this server;
//          - the listener is on loopback, and the page came from this machine, from any port: a
//            development server;
//          - the origin is one of the allowed origins.
// Host    A loopback name or address is served on each listener: this machine's commands send it,
//         or the listener's own address, which the server then allows. Any other must be an allowed
//         host on a loopback listener. Else a page could give its own name this machine's address,
//         and would have the same origin (DNS rebinding). On another listener any Host is served;
//         if some hosts are allowed, no others.
//
// Threads   Any: it does not change.
class OriginRules {
 public:
  // Serves every page and every Host.
  OriginRules() = default;
  // `on_loopback`: whether the server listens on this machine alone. Origins are
  // "https://app.example", "null" or "*"; hosts are "app.example", with or without a port, or "*".
  // Other texts match nothing.
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
