#pragma once
// The access to /admin, and the shape of its answers. Other layers add the rows of its paths.

#include "api/console_sessions.hpp"
#include "json/json.hpp"
#include "net/http.hpp"
#include "telemetry/metrics.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace hearth::api {

// 200, or {"error":{"code","message"}} with the status of the code. Neither is kept by caches.
[[nodiscard]] net::HttpResponse admin_answer(const Json& body);
[[nodiscard]] net::HttpResponse admin_refusal(const Error& error);
// The same for a response that is made elsewhere.
[[nodiscard]] net::HttpResponse admin_sealed(net::HttpResponse response);

// A member of an answer; null for an empty text or an absent number.
[[nodiscard]] inline Json or_null(std::string_view text) {
  return text.empty() ? Json() : Json(text);
}
[[nodiscard]] inline Json or_null(const std::optional<std::int64_t>& number) {
  return number ? Json(*number) : Json();
}

// Promises
//  P1 Closed      Every path returns 401 without the token, whether the path exists or not.
//  P2 Browsers    A page of another origin (Origin, Sec-Fetch-Site) gets 403 even with the token,
//                 and no answer has a header that would let such a page read it.
//
// P1: the token is `Authorization: Bearer TOKEN` or `X-Api-Key: TOKEN`. The time that the
// comparison takes does not depend on its text. A session of the console is as good as the token
// (ConsoleSessions::is_page()).
//
// Threads    Any, concurrently.
// Lifetime   The metrics and the sessions outlive it, and it outlives the server's connections.
class AdminApi {
 public:
  // `token`: not empty. `console`: null: it has no sessions.
  AdminApi(std::string token, Metrics& metrics, ConsoleSessions* console = nullptr);

  // Whether a path (without a query) is /admin or below it, in any spelling. All such paths are for
  // administrators, whether they exist or not.
  [[nodiscard]] static bool is_ours(std::string_view path);

  static constexpr std::string_view kKeys =
      "send the token of this server's administrators: Authorization: Bearer TOKEN";

  // The refusal of a request without the administrators' token (P1, P2); absent: the request has
  // it. `keys`: the message for a request without the right token.
  [[nodiscard]] std::optional<net::HttpResponse> refusal(const net::HttpRequest& request,
                                                         std::string_view keys = kKeys);

  // The sender of a request that is not refused, for the audit log: "administrator", or "console"
  // in a session of the console.
  [[nodiscard]] static std::string_view actor_of(const net::HttpRequest& request);

 private:
  const std::string token_;
  Counter& refusals_;
  ConsoleSessions* const console_;
};

}  // namespace hearth::api
