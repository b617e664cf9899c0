#include "api/client_proof.hpp"

#include "base/http_token.hpp"
#include "protocol/request_query.hpp"

#include <algorithm>
#include <utility>

namespace hearth::api {
namespace {

void take(ClientProof& proof, std::string text) {
  proof.is_ambiguous = proof.is_ambiguous || proof.text.has_value();
  proof.text = std::move(text);
}

// For "bearer, TOKEN": the client offers both, and the server chooses the first.
void look_into_subprotocols(std::string_view list, ClientProof& proof) {
  const std::size_t comma = list.find(',');
  if (comma == std::string_view::npos || trimmed(list.substr(0, comma)) != kTokenSubprotocol)
    return;
  const std::string_view rest = list.substr(comma + 1);
  take(proof, std::string(trimmed(rest.substr(0, rest.find(',')))));
  proof.subprotocol = kTokenSubprotocol;
}

// Removes the pairs with the token from the query.
void look_into_query(std::string_view target, ClientProof& proof) {
  const std::size_t path_end = std::min(target.find('?'), target.size());
  proof.target = target.substr(0, path_end);
  std::string_view query = target.substr(std::min(path_end + 1, target.size()));
  char before = '?';
  while (path_end < target.size()) {
    const std::size_t end = std::min(query.find('&'), query.size());
    const std::string_view pair = query.substr(0, end);
    const std::string_view name = pair.substr(0, pair.find('='));
    if (protocol::percent_decode(name) == kTokenParameter) {
      take(proof, protocol::query_value(pair, kTokenParameter, pair.size()).value_or(""));
    } else {
      proof.target += std::exchange(before, '&');
      proof.target += pair;
    }
    if (end == query.size()) return;
    query.remove_prefix(end + 1);
  }
}

}  // namespace

std::string_view bearer_token(std::string_view authorization) {
  constexpr std::string_view kScheme = "Bearer ";
  if (authorization.size() <= kScheme.size()) return {};
  if (!equal_ignoring_case(authorization.substr(0, kScheme.size()), kScheme)) return {};
  return authorization.substr(kScheme.size());
}

std::string_view api_key_of(const net::HttpHeaders& headers) {
  std::string_view key;
  bool is_found = false;
  for (const net::HttpHeader& header : headers) {
    const bool is_bearer = equal_ignoring_case(header.name, "Authorization");
    if (!is_bearer && !equal_ignoring_case(header.name, "X-Api-Key")) continue;
    if (std::exchange(is_found, true)) return {};
    key = is_bearer ? bearer_token(header.value) : std::string_view(header.value);
  }
  return key;
}

ClientProof proof_of(const net::HttpRequest& request) {
  ClientProof proof;
  look_into_query(request.target, proof);
  for (const net::HttpHeader& header : request.headers) {
    if (equal_ignoring_case(header.name, "Authorization")) {
      take(proof, std::string(bearer_token(header.value)));
    } else if (equal_ignoring_case(header.name, "Sec-WebSocket-Protocol")) {
      look_into_subprotocols(header.value, proof);
    } else if (equal_ignoring_case(header.name, "X-Api-Key")) {
      proof.api_keys.push_back(header.value);
    }
  }
  return proof;
}

}  // namespace hearth::api
