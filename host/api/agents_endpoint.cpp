#include "api/agents_endpoint.hpp"

#include "api/agent_response.hpp"
#include "api/agent_socket.hpp"
#include "api/http_errors.hpp"
#include "api/request_body.hpp"
#include "api/sub_agent_gate.hpp"
#include "base/escape.hpp"
#include "base/secret.hpp"
#include "protocol/agent_address.hpp"
#include "protocol/object_address.hpp"
#include "protocol/request_query.hpp"

#include <algorithm>
#include <optional>
#include <utility>

namespace hearth::api {
namespace {

// Bytes of the class's name in an error message: enough to recognise it, and with the sentence less
// than a close frame can carry.
constexpr std::size_t kMaxShownClassBytes = 64;

constexpr std::string_view kOtherTransport = "this transport is not supported";

runtime::Headers runtime_headers(const net::HttpHeaders& headers) {
  runtime::Headers copied;
  copied.reserve(headers.size());
  for (const auto& [name, value] : headers) copied.emplace_back(name, value);
  return copied;
}

// Whether the rules of access have changed since this call.
std::function<bool()> withdrawal_from_now(const runtime::ClassRegistry& classes) {
  return [&classes, generation = classes.access_generation()] {
    return classes.access_generation() != generation;
  };
}

std::string_view query_of(std::string_view target) {
  return target.substr(std::min(target.size(), path_of(target).size() + 1));
}

// The class of a target, with or without a name; empty: the target has no class.
std::string_view class_of(std::string_view target) {
  const auto parsed = protocol::parse_agent_address(target);
  if (const auto* address = std::get_if<protocol::AgentAddress>(&parsed))
    return address->class_segment;
  return protocol::class_alone(target);
}

// The class of /objects/{class}/...; empty: it is another path. Empty segments are skipped.
std::string_view class_of_object(std::string_view path) {
  const bool is_ours = protocol::take_segment(path) == "objects";
  return is_ours ? protocol::take_segment(path) : std::string_view();
}

// Whether the claims give this name, which may be in any spelling of URLs.
bool is_named_by(std::string_view rule, const Json& claims, std::string_view name) {
  return name_of_claims(rule, claims) == protocol::object_name(name);
}

}  // namespace

// A request that passed all checks. It may be delivered after the endpoint is gone.
struct AgentsEndpoint::Delivery {
  runtime::Shard& shard;
  runtime::ShardLoop& loop;  // the shard's
  Logger& logger;
  std::shared_ptr<net::HttpExchange> exchange;
  Guest guest;
  std::function<bool()> is_withdrawn;  // as open_gated_socket()
};

AgentsEndpoint::AgentsEndpoint(runtime::Runtime& runtime, const Readiness& readiness,
                               Random& random, Logger& logger, std::size_t max_name_bytes,
                               EdgeRules edge)
    : runtime_(runtime),
      readiness_(readiness),
      random_(random),
      logger_(logger),
      max_name_bytes_(max_name_bytes),
      edge_(std::move(edge)) {}

void AgentsEndpoint::add_routes(Routes& routes) {
  struct Row {
    std::string_view method, pattern, summary;
    RouteShape shape = {};  // for answers that do not come from an agent
  };
  static constexpr Row kRows[] = {
      {"GET",
       "/agents/{class}",
       "The methods of a class, if its setting list_methods says so.",
       {.answer = "MethodList"}},
      {"*", "/agents/{class}", "Refused: a class alone is no agent."},
      {"*", "/agents/{class}/{name}", "A request to an agent, or a WebSocket."},
      {"*", "/agents/{class}/{name}/{path...}",
       "A request to an agent with a path of its own, or to an agent below it."},
  };
  for (const Row& row : kRows) {
    routes.add({row.method, row.pattern, Access::kUser, row.summary,
                [this](const RouteCall& call) { on_request(call.exchange); }, row.shape});
  }
}

// The class does not depend on the client, so the name in a route's rule may be any.
bool AgentsEndpoint::reads_body(const net::HttpRequest& head) const {
  std::string target = head.target;
  const auto parsed = protocol::parse_agent_address(target, max_name_bytes_);
  const auto* const error = std::get_if<protocol::AddressError>(&parsed);
  if (error != nullptr && error->fault == protocol::AddressFault::kNotOurs) {
    const RouteRule* const found = find_route(edge_, path_of(target));
    if (found == nullptr || found->status != 0) return false;
    RouteRule rule = *found;
    rule.name = "any";
    target = routed_target(rule, head.target, {}, {}).value_or("");
  }
  const auto resolved = resolve(target);
  const auto* const to = std::get_if<Destination>(&resolved);
  return to != nullptr && to->served->agent_class->reads_bodies();
}

void AgentsEndpoint::on_request(std::shared_ptr<net::HttpExchange> exchange) {
  const net::HttpRequest& request = exchange->request();
  if (const auto listed = listed_class(request)) {
    const auto visitor = identify(rules_of(listed).get(), proof_of(request));
    if (const auto* refusal = std::get_if<Refusal>(&visitor))
      return exchange->respond(answer_of(*refusal));
    net::HttpResponse response = methods_answer(listed->segment, listed->agent_class->methods());
    response.headers.push_back({"Cache-Control", "no-store"});  // the next version has others
    return exchange->respond(std::move(response));
  }
  std::function<bool()> is_withdrawn = withdrawal_from_now(runtime_.classes());
  auto admitted = admit(request);
  if (const auto* refusal = std::get_if<Refusal>(&admitted))
    return exchange->respond(answer_of(*refusal));
  auto& guest = std::get<Guest>(admitted);
  const unsigned index = runtime_.shard_index(guest.to.key);
  runtime::ShardLoop& loop = runtime_.loop(index);
  Delivery delivery{runtime_.shard(index), loop,        logger_, std::move(exchange),
                    std::move(guest),      is_withdrawn};
  if (loop.on_this_thread()) return pass_gates(delivery);
  loop.post([delivery = std::move(delivery)] { pass_gates(delivery); });
}

void AgentsEndpoint::pass_gates(const Delivery& delivery) {
  const net::HttpRequest& request = delivery.exchange->request();
  const auto& [to, target, visitor, subprotocol] = delivery.guest;
  if (makes_too_many(delivery.shard, request.address.get(), to.gates, to.key))
    return delivery.exchange->respond(net::too_many_response(kNewAgents));
  if (to.gates.empty()) return deliver(delivery);
  ask_gates(delivery.shard, delivery.loop, to.gates,
            {target, runtime_headers(request.headers), visitor.claims},
            [delivery](const std::optional<GateRefusal>& refusal) {
              if (refusal && !delivery.is_withdrawn())
                return delivery.exchange->respond(refusal->answer);
              deliver(delivery);
            });
}

// The caller holds the exchange: the agent may answer, which ends its sink, and then go on reading
// the data that the event has lent.
void AgentsEndpoint::deliver(const Delivery& delivery) {
  const auto& [shard, loop, logger, exchange, guest, is_withdrawn] = delivery;
  if (is_withdrawn()) return exchange->respond(error_answer(503, "unavailable", kAccessChanged));
  const net::HttpRequest& request = exchange->request();
  auto head = std::make_unique<runtime::RequestHead>();
  head->target = guest.target;
  head->headers = runtime_headers(request.headers);
  head->claims = guest.visitor.claims;
  if (request.has_unread_body) head->body = body_reader(exchange, loop);
  shard.request(guest.to.key, guest.to.served->segment, request.method, request.body,
                std::move(head), make_agent_response(exchange, guest.to.key, logger));
}

net::UpgradePlan AgentsEndpoint::on_upgrade(const net::HttpRequest& request) {
  std::function<bool()> is_withdrawn = withdrawal_from_now(runtime_.classes());
  auto admitted = admit(request);
  net::UpgradePlan plan;
  if (auto* refusal = std::get_if<Refusal>(&admitted)) {
    if (refusal->close_code != 0) {
      plan = close_after_upgrade(refusal->close_code, std::move(refusal->message));
      // A browser that offers subprotocols takes an answer without one for a failure.
      plan.subprotocol = proof_of(request).subprotocol;
      return plan;
    }
    plan.refusal = answer_of(*refusal);
    return plan;
  }
  auto& guest = std::get<Guest>(admitted);
  auto& to = guest.to;
  const std::string_view query = query_of(guest.target);
  if (protocol::asks_for_other_transport(query)) {
    return close_after_upgrade(kClosePolicyViolation, std::string(kOtherTransport));
  }
  runtime::ConnectRequest connect;
  std::optional<std::string> chosen = protocol::connection_id(query);
  connect.id = chosen ? std::move(*chosen) : make_uuid(random_);
  connect.target = std::move(guest.target);
  connect.headers = runtime_headers(request.headers);
  connect.claims = std::move(guest.visitor.claims);

  const unsigned index = runtime_.shard_index(to.key);
  runtime::ShardLoop& loop = runtime_.loop(index);
  plan.loop = index;
  plan.subprotocol = std::move(guest.subprotocol);
  plan.max_frame = to.served->settings.max_frame;
  plan.opened = opener(std::move(to), std::move(connect), request.address, std::move(is_withdrawn));
  if (guest.visitor.ends_at) {
    plan.opened = [&loop, ends_at = *guest.visitor.ends_at,
                   opened = std::move(plan.opened)](const std::shared_ptr<net::WebSocket>& socket) {
      return close_when_expired(opened(socket), *socket, loop, ends_at);
    };
  }
  return plan;
}

AgentsEndpoint::Refusal AgentsEndpoint::address_refusal(const protocol::AddressError& error) {
  switch (error.fault) {
    case protocol::AddressFault::kNotOurs: break;
    case protocol::AddressFault::kTooShort:
      return {404, kCloseBadAddress, "not_found", std::string(error.reason)};
    case protocol::AddressFault::kBadClass:
    case protocol::AddressFault::kBadName:
      return {400, kCloseBadAddress, "invalid_argument", std::string(error.reason)};
  }
  return {404, 0, "not_found", "there is nothing at this path"};
}

AgentsEndpoint::Refusal AgentsEndpoint::route_refusal(int status) {
  // Clients retry an HTTP error for ever: an error that only the client can mend is a close code.
  const auto code = static_cast<CloseCode>(status >= 400 && status < 500 ? 4000 + status : 0);
  const std::string_view word = status == 404 || status == 410 ? "not_found"
                                : status == 403                ? "forbidden"
                                : status >= 500                ? "unavailable"
                                                               : "invalid_argument";
  return {status, code, word, "this server refuses this path"};
}

AgentsEndpoint::Refusal AgentsEndpoint::unauthorized(std::string message) {
  return {401, kCloseUnauthorized, "unauthorized", std::move(message)};
}

AgentsEndpoint::Refusal AgentsEndpoint::not_yours() {
  return {403, kCloseForbidden, "forbidden", "the token is for another agent"};
}

AgentsEndpoint::Refusal AgentsEndpoint::misspelled() {
  return {403, kCloseForbidden, "forbidden",
          "spell the agent's name as browsers do: encode what they encode, and / % \\"};
}

AgentsEndpoint::Opener AgentsEndpoint::opener(Destination to, runtime::ConnectRequest connect,
                                              std::shared_ptr<const net::ClientAddress> address,
                                              std::function<bool()> is_withdrawn) {
  const unsigned index = runtime_.shard_index(to.key);
  return [&shard = runtime_.shard(index), &loop = runtime_.loop(index), to = std::move(to),
          address = std::move(address), connect = std::move(connect),
          is_withdrawn = std::move(is_withdrawn)](
             const std::shared_ptr<net::WebSocket>& socket) mutable {  // called once
    if (is_withdrawn()) return refuse_socket(*socket, kCloseServiceRestart, kAccessChanged);
    if (makes_too_many(shard, address.get(), to.gates, to.key))
      return refuse_socket(*socket, kCloseTryAgainLater, net::too_many_reason(kNewAgents));
    const std::string& segment = to.served->segment;
    if (to.gates.empty())
      return open_agent_socket(shard, socket, to.key, segment, std::move(connect));
    return open_gated_socket(shard, loop, socket, std::move(to.gates), segment, std::move(connect),
                             std::move(is_withdrawn));
  };
}

std::variant<AgentsEndpoint::Guest, AgentsEndpoint::Refusal> AgentsEndpoint::admit(
    const net::HttpRequest& request) const {
  ClientProof proof = proof_of(request);
  std::string address = proof.target;
  const RouteRule* route = nullptr;
  auto parsed = protocol::parse_agent_address(address, max_name_bytes_);
  const auto* error = std::get_if<protocol::AddressError>(&parsed);
  if (error != nullptr && error->fault == protocol::AddressFault::kNotOurs) {
    route = find_route(edge_, path_of(address));
    if (route == nullptr) return address_refusal(*error);
    if (route->status != 0) return route_refusal(route->status);
    if (route->is_prefix) {
      address = routed_target(*route, proof.target, {}, {}).value_or("");
      parsed = protocol::parse_agent_address(address, max_name_bytes_);
      error = std::get_if<protocol::AddressError>(&parsed);
    }
  }
  const bool is_named = route == nullptr || route->is_prefix;
  if (is_named && error != nullptr) {
    if (error->fault != protocol::AddressFault::kTooShort) return address_refusal(*error);
    const auto alone = runtime_.classes().find_for_client(protocol::class_alone(address));
    auto identified = identify(rules_of(alone).get(), proof);
    auto* const refusal = std::get_if<Refusal>(&identified);
    return refusal != nullptr ? std::move(*refusal) : address_refusal(*error);
  }
  // Check this before the class is looked up: while plugins come and go, a class may be missing for
  // a moment.
  if (auto refusal = not_ready()) return *std::move(refusal);

  const auto served = runtime_.classes().find_for_client(
      is_named ? std::get<protocol::AgentAddress>(parsed).class_segment
               : std::string_view(route->agent_class));
  const auto rules = rules_of(served);
  auto identified = identify(rules.get(), proof);
  if (auto* refusal = std::get_if<Refusal>(&identified)) return std::move(*refusal);
  auto& visitor = std::get<auth::Visitor>(identified);
  if (!is_named) {
    auto routed = routed_target(*route, proof.target, visitor.values, request.headers);
    if (!routed) return not_yours();
    address = *std::move(routed);
  }
  return lead_in(address, rules, std::move(visitor), std::move(proof), request);
}

bool AgentsEndpoint::has_changed(const EntryRules& rules, std::string_view segment) const {
  return runtime_.classes().entry_rules(segment)->auth != rules.auth;
}

std::variant<AgentsEndpoint::Guest, AgentsEndpoint::Refusal> AgentsEndpoint::lead_in(
    std::string_view address, std::shared_ptr<const EntryRules> own, auth::Visitor visitor,
    ClientProof proof, const net::HttpRequest& request) const {
  auto resolved = resolve(address);
  if (auto* refusal = std::get_if<Refusal>(&resolved)) return std::move(*refusal);
  auto& to = std::get<Destination>(resolved);
  const std::string& asked = to.gates.empty() ? to.served->segment : to.gates.front().segment;
  if (own == nullptr || has_changed(*own, asked))
    return Refusal{503, 0, "unavailable", "the class has just come or changed: try again"};
  const EffectiveAuth rules = auth_of(edge_, own.get());
  const std::string& root = to.gates.empty() ? to.key.name : to.gates.front().above.name;
  if (!rules.name.empty() && !is_named_by(rules.name, visitor.values, root)) return not_yours();
  // Each spelling is an agent of its own, but one claim must lead to only one agent.
  if (!rules.name.empty() && protocol::object_name(root) != root) return misspelled();
  std::string target = request.target;
  if (rules.type != ProofKind::kNone) target = std::move(proof.target);
  return Guest{.to = std::move(to),
               .target = std::move(target),
               .visitor = std::move(visitor),
               .subprotocol = std::move(proof.subprotocol)};
}

std::variant<std::string, net::HttpResponse> AgentsEndpoint::claims_for(
    const net::HttpRequest& request, const std::shared_ptr<const runtime::ServedClass>& served,
    std::string_view name) const {
  const auto rules = rules_of(served);
  auto identified = identify(rules.get(), proof_of(request));
  if (const auto* refusal = std::get_if<Refusal>(&identified)) return answer_of(*refusal);
  auto& visitor = std::get<auth::Visitor>(identified);
  const std::string_view rule = auth_of(edge_, rules.get()).name;
  if (rule.empty() || is_named_by(rule, visitor.values, name)) return std::move(visitor.claims);
  return answer_of(not_yours());
}

bool AgentsEndpoint::has_objects_key(const ClientProof& proof) const {
  std::vector<std::string> keys = proof.api_keys;
  if (proof.text) keys.push_back(*proof.text);
  return !edge_.objects_key.empty() && keys.size() == 1 &&
         is_same_secret(keys.front(), edge_.objects_key);
}

std::variant<auth::Visitor, AgentsEndpoint::Refusal> AgentsEndpoint::identify(
    const EntryRules* rules, const ClientProof& proof) const {
  const ProofKind wanted = auth_of(edge_, rules).type;
  if (wanted == ProofKind::kNone) return auth::Visitor{};
  if (proof.is_ambiguous) return unauthorized("send one token, in one place");
  if (wanted == ProofKind::kObjectsKey) {
    if (has_objects_key(proof)) return auth::Visitor{};
    return unauthorized("send the key of objects: Authorization: Bearer KEY or X-Api-Key: KEY");
  }
  auto verdict = edge_.authenticator == nullptr ? auth::Refusal::kBadProof
                                                : edge_.authenticator->check(wanted, proof.text);
  const auto* const refusal = std::get_if<auth::Refusal>(&verdict);
  if (refusal == nullptr) return std::get<auth::Visitor>(std::move(verdict));
  switch (*refusal) {
    case auth::Refusal::kNoProof: return unauthorized("send a token: Authorization: Bearer TOKEN");
    case auth::Refusal::kBadProof: return unauthorized("the token is not accepted");
    case auth::Refusal::kTryAgain: break;
  }
  return Refusal{503, 0, "unavailable", "the keys for tokens are not there yet: try again"};
}

CorsRules AgentsEndpoint::cors(std::string_view path) const {
  // Find the class as the routes of objects do (api/object_lookup.hpp).
  if (const auto named = class_of_object(path); !named.empty())
    return cors_of(edge_, rules_of(find_by_any_name(runtime_.classes(), named)).get());
  std::string_view segment = class_of(path);
  std::string address;
  if (segment.empty()) {
    if (const RouteRule* const route = find_route(edge_, path)) {
      address = route->is_prefix ? routed_target(*route, path, {}, {}).value_or("") : "";
      segment = route->is_prefix ? class_of(address) : std::string_view(route->agent_class);
    }
  }
  const auto served = segment.empty() ? nullptr : runtime_.classes().find_for_client(segment);
  return cors_of(edge_, rules_of(served).get());
}

net::HttpResponse AgentsEndpoint::answer_of(const Refusal& refusal) const {
  net::HttpResponse response = error_answer(refusal.status, refusal.code, refusal.message);
  if (refusal.status == 401) {
    response.headers.push_back({"WWW-Authenticate", "Bearer realm=\"hearth\""});
    response.headers.push_back({"Cache-Control", "no-store"});
  }
  return response;
}

std::optional<AgentsEndpoint::Refusal> AgentsEndpoint::not_ready() const {
  switch (readiness_.phase()) {
    case Readiness::Phase::kReady: return std::nullopt;
    case Readiness::Phase::kStarting:
      return Refusal{503, 0, "unavailable", "the server is starting"};
    case Readiness::Phase::kLost:
      return Refusal{503, 0, "unavailable", "the server has lost its storage"};
    case Readiness::Phase::kStopping: break;
  }
  return Refusal{503, 0, "unavailable", "the server is shutting down"};
}

std::variant<AgentsEndpoint::Destination, AgentsEndpoint::Refusal> AgentsEndpoint::resolve(
    std::string_view target) const {
  const auto parsed = protocol::parse_agent_address(target, max_name_bytes_);
  if (const auto* error = std::get_if<protocol::AddressError>(&parsed))
    return address_refusal(*error);
  const auto& address = std::get<protocol::AgentAddress>(parsed);
  std::shared_ptr<const runtime::ServedClass> served =
      runtime_.classes().find_for_client(address.class_segment);
  if (served == nullptr) return absent(address.class_segment);
  if (!served->refusal.empty()) return Refusal{503, 0, "unavailable", served->refusal};
  std::string name(address.name);
  if (served->settings.is_object) {
    name = protocol::object_name(address.name);
    if (const auto problem = protocol::name_problem(name, max_name_bytes_); !problem.empty())
      return Refusal{400, kCloseBadAddress, "invalid_argument", std::string(problem)};
  }
  storage::AgentKey key{std::string(served->agent_class->name()), std::move(name)};
  return go_below({std::move(served), std::move(key), {}}, address.rest);
}

std::variant<AgentsEndpoint::Destination, AgentsEndpoint::Refusal> AgentsEndpoint::go_below(
    Destination from, std::string_view rest) const {
  const auto parsed = protocol::parse_sub_agents(
      rest, [this](std::string_view segment) { return is_known(segment); }, max_name_bytes_);
  if (const auto* error = std::get_if<protocol::AddressError>(&parsed))
    return Refusal{400, kCloseBadAddress, "invalid_argument", std::string(error->reason)};
  for (const auto& step : std::get<std::vector<protocol::SubAgentStep>>(parsed)) {
    std::shared_ptr<const runtime::ServedClass> served =
        runtime_.classes().find_for_client(step.class_segment);
    if (served == nullptr) return absent(step.class_segment);
    if (!served->refusal.empty()) return Refusal{503, 0, "unavailable", served->refusal};
    storage::AgentKey child = from.key.child(served->agent_class->name(), step.name);
    from.gates.push_back({std::move(from.key), from.served->segment, child});
    from.key = std::move(child);
    from.served = std::move(served);
  }
  return from;
}

std::shared_ptr<const EntryRules> AgentsEndpoint::rules_of(
    const std::shared_ptr<const runtime::ServedClass>& served) const {
  return served == nullptr ? nullptr : runtime_.classes().entry_rules(served->segment);
}

std::shared_ptr<const runtime::ServedClass> AgentsEndpoint::listed_class(
    const net::HttpRequest& request) const {
  if (request.method != "GET" && request.method != "HEAD") return nullptr;
  std::string target = request.target;
  const RouteRule* const route = find_route(edge_, path_of(target));
  if (protocol::class_alone(target).empty() && route != nullptr && route->is_prefix)
    target = routed_target(*route, target, {}, {}).value_or("");
  const std::string_view segment = protocol::class_alone(target);
  if (segment.empty() || readiness_.phase() != Readiness::Phase::kReady) return nullptr;
  auto served = runtime_.classes().find_for_client(segment);
  return served != nullptr && rules_of(served)->list_methods ? served : nullptr;
}

bool AgentsEndpoint::is_known(std::string_view segment) const {
  const runtime::ClassRegistry& classes = runtime_.classes();
  return classes.find_for_client(segment) != nullptr || classes.is_expected(segment);
}

AgentsEndpoint::Refusal AgentsEndpoint::absent(std::string_view segment) const {
  const std::string shown = quote_text(segment, kMaxShownClassBytes);
  if (runtime_.classes().is_expected(segment)) {
    // No close code: clients keep their unsent messages when a connection fails, and drop them at a
    // close.
    return Refusal{503, 0, "unavailable", "agent class " + shown + " is not loaded now: try again"};
  }
  return Refusal{400, kCloseUnknownClass, "unknown_class",
                 "no agent class " + shown + " is loaded"};
}

net::UpgradePlan AgentsEndpoint::close_after_upgrade(CloseCode code, std::string reason) const {
  net::UpgradePlan plan;
  plan.loop = loop_of_caller();
  plan.opened = [code, reason = std::move(reason)](const std::shared_ptr<net::WebSocket>& socket) {
    return refuse_socket(*socket, code, reason);
  };
  return plan;
}

std::size_t AgentsEndpoint::loop_of_caller() const {
  for (unsigned index = 0; index < runtime_.shard_count(); ++index) {
    if (runtime_.loop(index).on_this_thread()) return index;
  }
  return 0;
}

}  // namespace hearth::api
