#include "api/admin_api.hpp"

#include "api/client_proof.hpp"
#include "api/edge_rules.hpp"
#include "api/http_errors.hpp"
#include "base/assert.hpp"
#include "base/http_token.hpp"
#include "base/secret.hpp"

#include <utility>

namespace hearth::api {
namespace {

constexpr std::string_view kRoot = "/admin";

// Whether a browser sends this for a page of another origin. No page can set what the browser says
// of it; a proxy may have changed the Host with which the origin is compared otherwise.
bool is_foreign_page(const net::HttpHeaders& headers) {
  if (const auto site = net::find_header(headers, "Sec-Fetch-Site"))
    return *site != "same-origin" && *site != "none";
  const auto origin = net::find_header(headers, "Origin");
  if (!origin) return false;
  const auto host = net::find_header(headers, "Host");
  if (!host || host->empty()) return true;
  return !equal_ignoring_case(*origin, "http://" + std::string(*host)) &&
         !equal_ignoring_case(*origin, "https://" + std::string(*host));
}

}  // namespace

net::HttpResponse admin_sealed(net::HttpResponse response) {
  response.headers.push_back({"Cache-Control", "no-store"});
  response.headers.push_back({"X-Content-Type-Options", "nosniff"});
  return response;
}

net::HttpResponse admin_answer(const Json& body) {
  net::HttpResponse response;
  response.headers.push_back({"Content-Type", "application/json"});
  response.body = dump_json(body);
  return admin_sealed(std::move(response));
}

net::HttpResponse admin_refusal(const Error& error) {
  return admin_sealed(error_answer(http_status(error.code), to_string(error.code), error.message));
}

AdminApi::AdminApi(std::string token, Metrics& metrics, ConsoleSessions* console)
    : token_(std::move(token)),
      refusals_(metrics.counter("hearth_admin_refused_total",
                                "Requests to /admin without the token, or of a foreign page.")),
      console_(console) {
  HEARTH_ASSERT(!token_.empty(), "an admin API without a token");
}

bool AdminApi::is_ours(std::string_view path) {
  return is_at_or_below(kRoot, path);
}

std::optional<net::HttpResponse> AdminApi::refusal(const net::HttpRequest& request,
                                                   std::string_view keys) {
  const net::HttpHeaders& headers = request.headers;
  if (is_foreign_page(headers)) {
    refusals_.add();
    return admin_refusal({Errc::kForbidden, "pages of other origins are not answered here"});
  }
  const std::string_view key = api_key_of(headers);
  if (is_same_secret(key, token_)) return std::nullopt;
  if (console_ != nullptr && key.empty() && console_->is_page(request)) return std::nullopt;
  refusals_.add();
  net::HttpResponse response = error_answer(401, "unauthorized", keys);
  response.headers.push_back({"WWW-Authenticate", "Bearer realm=\"hearth admin\""});
  return admin_sealed(std::move(response));
}

std::string_view AdminApi::actor_of(const net::HttpRequest& request) {
  return api_key_of(request.headers).empty() ? "console" : "administrator";
}

}  // namespace hearth::api
