#pragma once
// The CORS protocol of https://fetch.spec.whatwg.org: which pages of other origins may read
// answers.

#include "base/client_rules.hpp"
#include "net/http.hpp"

#include <memory>
#include <optional>
#include <string_view>

namespace hearth::api {

// Whether pages of this origin, as the header `Origin` has it, may read answers.
[[nodiscard]] bool allows_origin(const CorsRules& rules, std::string_view origin);

// The answer to a preflight of a page that may; nothing for every other request. A preflight has
// no token, so it is answered before a token is asked for.
[[nodiscard]] std::optional<net::HttpResponse> preflight_answer(const CorsRules& rules,
                                                                const net::HttpRequest& request);

// Adds to an answer of the request the headers that the page needs. CORS headers that it has are
// replaced.
void add_cors(const CorsRules& rules, const net::HttpRequest& request, net::HttpResponse& answer);

// An exchange whose answer, whoever gives it and however, add_cors() was done to.
[[nodiscard]] std::shared_ptr<net::HttpExchange> with_cors(
    std::shared_ptr<net::HttpExchange> exchange, const CorsRules& rules);

}  // namespace hearth::api
