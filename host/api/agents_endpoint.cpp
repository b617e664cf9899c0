#include "api/agents_endpoint.hpp"

#include "api/agent_response.hpp"
#include "api/agent_socket.hpp"
#include "api/class_page.hpp"
#include "api/http_errors.hpp"
#include "base/escape.hpp"
#include "protocol/agent_address.hpp"
#include "protocol/request_query.hpp"

#include <optional>
#include <utility>

namespace hearth::api {
namespace {

// Of the class in an error message: enough to recognise it, and together with the sentence less
// than a close frame can carry.
constexpr std::size_t kMaxShownClassBytes = 64;

constexpr std::string_view kOtherTransport = "this transport is not supported";

runtime::Headers runtime_headers(const net::HttpHeaders& headers) {
  runtime::Headers copied;
  copied.reserve(headers.size());
  for (const auto& [name, value] : headers) copied.emplace_back(name, value);
  return copied;
}

// Whether one of the agents would be made by a client whose address has made too many. On the loop
// of `shard`. Where nobody can tell, the agent itself finds out.
bool makes_too_many(runtime::Shard& shard, const net::ClientAddress* address,
                    const storage::AgentKey& key) {
  if (address == nullptr) return false;
  try {
    return !shard.exists(key) && !address->may_make_agent();
  } catch (const StorageError&) {  // agent boundary
    return false;
  }
}

constexpr std::string_view kNewAgents = "new agents";

// On the loop of `shard`. The exchange is held here because the agent may answer, which ends its
// sink, and go on reading what the event has lent it.
void deliver(runtime::Shard& shard, const storage::AgentKey& key, std::string_view segment,
             const std::shared_ptr<net::HttpExchange>& exchange, Logger& logger) {
  const net::HttpRequest& request = exchange->request();
  if (makes_too_many(shard, request.address.get(), key))
    return exchange->respond(net::too_many_response(kNewAgents));
  auto head = std::make_unique<runtime::RequestHead>();
  head->target = request.target;
  head->headers = runtime_headers(request.headers);
  shard.request(key, segment, request.method, request.body, std::move(head),
                make_agent_response(exchange, key, logger));
}

// As deliver(), once the agents above have let it through.
void deliver_below(runtime::Shard& shard, runtime::ShardLoop& loop, const std::vector<Gate>& gates,
                   const std::string& segment, const std::shared_ptr<net::HttpExchange>& exchange,
                   Logger& logger) {
  if (makes_too_many(shard, exchange->request().address.get(), gates.front().above))
    return exchange->respond(net::too_many_response(kNewAgents));
  ask_gates(shard, loop, gates, exchange->request().target,
            runtime_headers(exchange->request().headers),
            [&shard, &logger, key = gates.back().child, segment,
             exchange](const std::optional<GateRefusal>& refusal) {
              if (refusal) return exchange->respond(refusal->answer);
              deliver(shard, key, segment, exchange, logger);
            });
}

}  // namespace

AgentsEndpoint::AgentsEndpoint(runtime::Runtime& runtime, const Readiness& readiness,
                               Random& random, Logger& logger, std::size_t max_name_bytes)
    : runtime_(runtime),
      readiness_(readiness),
      random_(random),
      logger_(logger),
      max_name_bytes_(max_name_bytes) {}

void AgentsEndpoint::on_request(std::shared_ptr<net::HttpExchange> exchange) {
  if (const auto listed = listed_class(exchange->request())) {
    net::HttpResponse response = methods_answer(listed->segment, listed->agent_class->methods());
    response.headers.push_back({"Cache-Control", "no-store"});  // the next version has others
    return exchange->respond(std::move(response));
  }
  auto resolved = resolve(exchange->request().target);
  if (const auto* refusal = std::get_if<Refusal>(&resolved)) {
    exchange->respond(error_answer(refusal->status, refusal->code, refusal->message));
    return;
  }
  auto& to = std::get<Destination>(resolved);
  const unsigned index = runtime_.shard_index(to.key);
  runtime::Shard& shard = runtime_.shard(index);
  runtime::ShardLoop& loop = runtime_.loop(index);
  if (!to.gates.empty()) {
    loop.post([&shard, &loop, &logger = logger_, served = std::move(to.served),
               gates = std::move(to.gates), exchange = std::move(exchange)] {
      deliver_below(shard, loop, gates, served->segment, exchange, logger);
    });
    return;
  }
  if (loop.on_this_thread()) {
    deliver(shard, to.key, to.served->segment, exchange, logger_);
    return;
  }
  loop.post(
      [&shard, &logger = logger_, served = std::move(to.served), key = std::move(to.key),
       exchange = std::move(exchange)] { deliver(shard, key, served->segment, exchange, logger); });
}

net::UpgradePlan AgentsEndpoint::on_upgrade(const net::HttpRequest& request) {
  auto resolved = resolve(request.target);
  net::UpgradePlan plan;
  if (auto* refusal = std::get_if<Refusal>(&resolved)) {
    if (refusal->close_code != 0) {
      return close_after_upgrade(refusal->close_code, std::move(refusal->message));
    }
    plan.refusal = error_answer(refusal->status, refusal->code, refusal->message);
    return plan;
  }
  auto& to = std::get<Destination>(resolved);
  if (protocol::asks_for_other_transport(to.query)) {
    return close_after_upgrade(kClosePolicyViolation, std::string(kOtherTransport));
  }
  runtime::ConnectRequest connect;
  std::optional<std::string> chosen = protocol::connection_id(to.query);
  connect.id = chosen ? std::move(*chosen) : make_uuid(random_);
  connect.target = request.target;
  connect.headers = runtime_headers(request.headers);

  const unsigned index = runtime_.shard_index(to.key);
  plan.loop = index;
  plan.max_frame = to.served->settings.max_frame;
  if (!to.gates.empty()) {
    plan.opened = [&shard = runtime_.shard(index), &loop = runtime_.loop(index),
                   address = request.address, segment = to.served->segment,
                   gates = std::move(to.gates),
                   connect = std::move(connect)](
                      const std::shared_ptr<net::WebSocket>& socket) mutable {  // called once
      if (makes_too_many(shard, address.get(), gates.front().above) ||
          makes_too_many(shard, address.get(), gates.back().child))
        return refuse_socket(*socket, kCloseTryAgainLater, net::too_many_reason(kNewAgents));
      return open_gated_socket(shard, loop, socket, std::move(gates), std::move(segment),
                               std::move(connect));
    };
    return plan;
  }
  plan.opened = [&shard = runtime_.shard(index), address = request.address,
                 served = std::move(to.served), key = std::move(to.key),
                 connect = std::move(connect)](
                    const std::shared_ptr<net::WebSocket>& socket) mutable {  // called once
    if (makes_too_many(shard, address.get(), key))
      return refuse_socket(*socket, kCloseTryAgainLater, net::too_many_reason(kNewAgents));
    return open_agent_socket(shard, socket, key, served->segment, std::move(connect));
  };
  return plan;
}

std::variant<AgentsEndpoint::Destination, AgentsEndpoint::Refusal> AgentsEndpoint::resolve(
    std::string_view target) const {
  const auto parsed = protocol::parse_agent_address(target, max_name_bytes_);
  if (const auto* error = std::get_if<protocol::AddressError>(&parsed)) {
    switch (error->fault) {
      case protocol::AddressFault::kNotOurs:
        return Refusal{404, 0, "not_found", "there is nothing at this path"};
      case protocol::AddressFault::kTooShort:
        return Refusal{404, kCloseBadAddress, "not_found", std::string(error->reason)};
      case protocol::AddressFault::kBadClass:
      case protocol::AddressFault::kBadName:
        return Refusal{400, kCloseBadAddress, "invalid_argument", std::string(error->reason)};
    }
  }
  // Before the class is looked up: while plugins come and go, one that is missing says nothing.
  const Readiness::Phase phase = readiness_.phase();
  if (phase != Readiness::Phase::kReady) {
    const char* why = "the server is shutting down";
    if (phase == Readiness::Phase::kStarting) why = "the server is starting";
    if (phase == Readiness::Phase::kLost) why = "the server has lost its storage";
    return Refusal{503, 0, "unavailable", why};
  }
  const auto& address = std::get<protocol::AgentAddress>(parsed);
  std::shared_ptr<const runtime::ServedClass> served =
      runtime_.classes().find_for_client(address.class_segment);
  if (served == nullptr) return absent(address.class_segment);
  if (!served->refusal.empty()) return Refusal{503, 0, "unavailable", served->refusal};
  storage::AgentKey key{std::string(served->agent_class->name()), std::string(address.name)};
  return go_below({std::move(served), std::move(key), address.query, {}}, address.rest);
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

std::shared_ptr<const runtime::ServedClass> AgentsEndpoint::listed_class(
    const net::HttpRequest& request) const {
  if (request.method != "GET" && request.method != "HEAD") return nullptr;
  const std::string_view segment = protocol::class_alone(request.target);
  if (segment.empty() || readiness_.phase() != Readiness::Phase::kReady) return nullptr;
  auto served = runtime_.classes().find_for_client(segment);
  return served != nullptr && served->settings.list_methods ? served : nullptr;
}

bool AgentsEndpoint::is_known(std::string_view segment) const {
  const runtime::ClassRegistry& classes = runtime_.classes();
  return classes.find_for_client(segment) != nullptr || classes.is_expected(segment);
}

AgentsEndpoint::Refusal AgentsEndpoint::absent(std::string_view segment) const {
  const std::string shown = quote_text(segment, kMaxShownClassBytes);
  if (runtime_.classes().is_expected(segment)) {
    // No close code: the clients keep what they have to say through a connection that fails, and
    // give it up at a close.
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
