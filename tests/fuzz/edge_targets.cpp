// The parts of a request that name the client and the agent.
#include "api/client_proof.hpp"
#include "api/edge_rules.hpp"
#include "fuzz/targets.hpp"
#include "protocol/agent_address.hpp"
#include "protocol/request_query.hpp"

#include <algorithm>
#include <array>
#include <string>
#include <variant>

namespace hearth::fuzz {
namespace {

std::string_view next_line(std::string_view& bytes) {
  const std::string_view line = bytes.substr(0, bytes.find('\n'));
  bytes.remove_prefix(std::min(line.size() + 1, bytes.size()));
  return line;
}

// A line with the target, and one for each header.
net::HttpRequest request_of(std::string_view bytes) {
  net::HttpRequest request;
  request.method = "GET";
  request.target = next_line(bytes);
  while (!bytes.empty()) {
    const std::string_view line = next_line(bytes);
    const std::size_t colon = std::min(line.find(':'), line.size());
    const std::string_view value = line.substr(std::min(colon + 1, line.size()));
    request.headers.push_back({std::string(line.substr(0, colon)), std::string(value)});
  }
  return request;
}

}  // namespace

void client_proof(std::string_view bytes) {
  const net::HttpRequest request = request_of(bytes);
  const api::ClientProof proof = api::proof_of(request);
  require(!proof.is_ambiguous || proof.text, "two tokens are tokens");
  require(proof.subprotocol.empty() || proof.text, "the subprotocol is chosen with a token");
  const std::size_t path_end = std::min(proof.target.find('?'), proof.target.size());
  require(request.target.starts_with(std::string_view(proof.target).substr(0, path_end)),
          "the path stays");
  if (path_end < proof.target.size()) {
    const std::string_view query = std::string_view(proof.target).substr(path_end + 1);
    require(!protocol::query_value(query, api::kTokenParameter, query.size()),
            "no token is left in the target");
  }
  if (request.headers.empty())
    require(proof.text || proof.target == request.target, "without a token the target stays");
  const std::string_view key = api::api_key_of(request.headers);
  const auto sent = std::ranges::count_if(request.headers, [key](const net::HttpHeader& header) {
    return header.value.size() >= key.size() && header.value.ends_with(key);
  });
  require(key.empty() || sent > 0, "a key is what a header says");
}

// As client_proof. The second route takes its name from the header X-User. The third takes it from
// a claim, which here has the value of X-Claim.
void route(std::string_view bytes) {
  static const api::EdgeRules rules = [] {
    api::EdgeRules made;
    made.routes.resize(3);
    made.routes[0].path = "/api/agents";
    made.routes[0].is_prefix = true;
    made.routes[1].path = "/user";
    made.routes[1].name = "{header:x-user}";
    made.routes[2].path = "/me/";
    made.routes[2].name = "u-{sub}";
    made.routes[1].agent_class = made.routes[2].agent_class = "user-agent";
    return made;
  }();
  const net::HttpRequest request = request_of(bytes);
  const std::string_view target = request.target;
  const RouteRule* const rule = api::find_route(rules, target.substr(0, target.find('?')));
  if (rule == nullptr) return;
  const auto value_of = [&request](std::string_view name) {
    return std::string(net::find_header(request.headers, name).value_or(""));
  };
  const Json claims = {{"sub", value_of("X-Claim")}};
  const auto routed = api::routed_target(*rule, target, claims, request.headers);
  if (rule->is_prefix) {
    require(routed && routed->starts_with("/agents"), "a prefix stands for /agents");
    return;
  }
  const bool is_user = rule->path == "/user";
  const std::string value = value_of(is_user ? "X-User" : "X-Claim");
  require(routed.has_value() == !value.empty(), "a route needs what its name asks for");
  if (!routed) return;
  const auto address = protocol::parse_agent_address(*routed, 3 * bytes.size() + 2);
  const auto* const found = std::get_if<protocol::AgentAddress>(&address);
  if (found == nullptr) return;  // no agent may have that name
  require(found->class_segment == "user-agent", "a route leads to its class");
  require(protocol::percent_decode(found->name) == (is_user ? value : "u-" + value),
          "whatever the target says, the name is the value");
}

}  // namespace hearth::fuzz
