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

// The answer to a preflight of an allowed page; absent for every other request. A preflight has no
// token, so call this before the token is checked.
[[nodiscard]] std::optional<net::HttpResponse> preflight_answer(const CorsRules& rules,
                                                                const net::HttpRequest& request);

// Adds the headers that the page needs to the answer. They replace CORS headers that it has.
void add_cors(const CorsRules& rules, const net::HttpRequest& request, net::HttpResponse& answer);

// An exchange that does add_cors() to its answer.
[[nodiscard]] std::shared_ptr<net::HttpExchange> with_cors(
    std::shared_ptr<net::HttpExchange> exchange, const CorsRules& rules);

}  // namespace hearth::api
