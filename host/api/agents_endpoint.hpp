#pragma once
// /agents/{class}/{name}: finds the agent that a client means and the loop where it lives, and
// refuses the client if there is no such agent.

#include "api/client_proof.hpp"
#include "api/edge_rules.hpp"
#include "api/readiness.hpp"
#include "api/routes.hpp"
#include "api/sub_agent_gate.hpp"
#include "base/close_codes.hpp"
#include "base/logger.hpp"
#include "base/random.hpp"
#include "net/http.hpp"
#include "protocol/agent_address.hpp"
#include "runtime/runtime.hpp"

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace hearth::api {

// Hands requests and sockets for agents to the shard of the agent.
//
// Refusals   what                         over HTTP                  a WebSocket
//            not ready, or stopping       503 unavailable            the same: clients try again
//            not under /agents, no route  404 not_found              the same
//            a route with a status        the status                 101, then close 4000 + status
//            no token, or a rejected one  401 unauthorized           101, then close 4401
//            the keys are being read      503 unavailable            the same: clients try again
//            a token for another agent    403 forbidden              101, then close 4403
//            no class or no name          404 not_found              101, then close 4400
//            class or name unacceptable   400 invalid_argument       101, then close 4400
//            class expected, not loaded   503 unavailable            503: clients try again
//            class not known              400 unknown_class          101, then close 4404
//            an agent above it refuses    its status                 101, then close 4000 + status
//            another transport wanted     -                          101, then close 1008
//            too many new agents from     429 limit_exceeded         101, then close 1013
//            the client's address
//            A client that must stop gets a close code, because it retries an HTTP error for ever.
//            A class is expected (runtime/class_registry.hpp) if it was served before, has
//            settings, or has agents. Its library was removed, or rejected at the start, and may
//            come back at any time. This also holds during the grace after a removal. Only clients
//            that were connected at the removal stay connected, and wait.
//
// Below      A path .../sub/{class}/{name} with a class that is known or expected means an agent
//            below the one before it (storage/agent_key.hpp). All agents on the way are asked
//            first, in order (api/sub_agent_gate.hpp). Any other path below an agent belongs to the
//            agent.
//
//            A class alone (/agents/{class}) is not an agent. If the setting list_methods allows
//            it, GET and HEAD are answered with the list of the class's methods; else the request
//            is refused as above. The list is JSON: {"class":"counter","methods":[...]}. Each
//            method has "name", "idempotent", "read_only", "streaming" and "exclusive", and
//            "description", "arguments" and "result" (JSON schemas) as far as they are known.
//
// Access     The class's rules for clients hold, or the server's (api/edge_rules.hpp). For a
//            sub-agent the class of the topmost agent decides. A token is checked only where the
//            rules ask for one. The agent then gets its claims, and a target without the token.
//            When the token ends, the socket is closed with 4401. The administrators' token opens
//            no agent. Where claims give the name, only the spelling of edge_rules.hpp is accepted.
//            If access changes before the client is connected, or before its request reaches the
//            agent, the client must retry (503, or close 1012). Access changes when rules change or
//            tokens are withdrawn.
//
// Promises
//  P1 Place     A socket is opened on the loop of its agent's shard; a request is delivered there.
//  P2 Identity  The id of a connection is the `_pk` of the query if that is acceptable, else a new
//               UUID.
//  P3 Closed    A refusal names no class except the one that the client named.
//  P4 Hope      A client of a class that may come back is never told to stop.
//  P5 Alias     An alias of a class leads to the agents of the class: clients are told the class's
//               own segment, and the agent sees the target as it was sent.
//  P6 Object    In a class of objects all spellings of a name lead to one agent, the one that
//               /objects reaches (protocol/object_address.hpp).
//
// Threads    Both members from any loop of the runtime.
// Lifetime   All parameters of the constructor outlive it. It outlives the HttpServer, and the
//            runtime outlives the sockets. The runtime's loops must be the server's, in the same
//            order.
class AgentsEndpoint {
 public:
  AgentsEndpoint(runtime::Runtime& runtime, const Readiness& readiness, Random& random,
                 Logger& logger, std::size_t max_name_bytes, EdgeRules edge = {});

  // The rows call this object: it outlives the table's last use. The rows have the paths as clients
  // write them. A path with empty segments means the same, and has no row.
  void add_routes(Routes& routes);

  // Whether the request is for an agent whose class reads bodies.
  [[nodiscard]] bool reads_body(const net::HttpRequest& head) const;

  // Answers in this call or later, on the agent's loop or this one.
  void on_request(std::shared_ptr<net::HttpExchange> exchange);

  [[nodiscard]] net::UpgradePlan on_upgrade(const net::HttpRequest& request);

  // For a client that reaches an agent by another path than the agent's own: the claims of its
  // token, or the refusal. `served`: the agent's class; null: the class is unknown, so the server's
  // rules hold. `name`: as it stands in the agent's URL.
  [[nodiscard]] std::variant<std::string, net::HttpResponse> claims_for(
      const net::HttpRequest& request, const std::shared_ptr<const runtime::ServedClass>& served,
      std::string_view name) const;

  // Whether the operator's routes (EdgeRules::routes) have this path.
  [[nodiscard]] bool has_route(std::string_view path) const {
    return find_route(edge_, path) != nullptr;
  }

  // Which pages may read the answers at a path (without a query).
  [[nodiscard]] CorsRules cors(std::string_view path) const;

 private:
  struct Destination {
    std::shared_ptr<const runtime::ServedClass> served;
    storage::AgentKey key;
    std::vector<Gate> gates;  // the topmost first; empty: `key` has no agent above it
  };
  // A client that passed all checks.
  struct Guest {
    Destination to;
    std::string target;  // what the agent sees
    auth::Visitor visitor;
    std::string subprotocol;  // for the answer to an upgrade
  };
  struct Refusal {
    int status = 0;
    CloseCode close_code = 0;  // 0: a WebSocket is refused with the status too
    std::string_view code;
    std::string message;
  };

  struct Delivery;
  // On the loop of the agent's shard: delivers after the agents above have let the request through.
  static void pass_gates(const Delivery& delivery);
  static void deliver(const Delivery& delivery);

  // Finds the agent that the client asks for, and checks the client.
  [[nodiscard]] std::variant<Guest, Refusal> admit(const net::HttpRequest& request) const;
  // Checks a client whose proof is good against the name rule of the class, for the agent at
  // `address`.
  [[nodiscard]] std::variant<Guest, Refusal> lead_in(std::string_view address,
                                                     std::shared_ptr<const EntryRules> own,
                                                     auth::Visitor visitor, ClientProof proof,
                                                     const net::HttpRequest& request) const;
  // Whether the class now has other rules for its clients (EntryRules::auth) than `rules`.
  [[nodiscard]] bool has_changed(const EntryRules& rules, std::string_view segment) const;
  // Whether the proof is the key of objects alone.
  [[nodiscard]] bool has_objects_key(const ClientProof& proof) const;
  [[nodiscard]] std::variant<auth::Visitor, Refusal> identify(const EntryRules* rules,
                                                              const ClientProof& proof) const;
  using Opener =
      std::function<std::shared_ptr<net::WebSocketListener>(std::shared_ptr<net::WebSocket>)>;
  // `is_withdrawn`: as open_gated_socket().
  [[nodiscard]] Opener opener(Destination to, runtime::ConnectRequest connect,
                              std::shared_ptr<const net::ClientAddress> address,
                              std::function<bool()> is_withdrawn);
  [[nodiscard]] static Refusal address_refusal(const protocol::AddressError& error);
  [[nodiscard]] static Refusal route_refusal(int status);
  [[nodiscard]] static Refusal unauthorized(std::string message);
  [[nodiscard]] static Refusal not_yours();
  [[nodiscard]] static Refusal misspelled();
  // Absent if the server accepts clients.
  [[nodiscard]] std::optional<Refusal> not_ready() const;
  [[nodiscard]] net::HttpResponse answer_of(const Refusal& refusal) const;
  [[nodiscard]] std::variant<Destination, Refusal> resolve(std::string_view target) const;
  // Null without a class.
  [[nodiscard]] std::shared_ptr<const EntryRules> rules_of(
      const std::shared_ptr<const runtime::ServedClass>& served) const;
  // Null if the request is for something else, or the class does not list its methods.
  [[nodiscard]] std::shared_ptr<const runtime::ServedClass> listed_class(
      const net::HttpRequest& request) const;
  [[nodiscard]] bool is_known(std::string_view segment) const;
  // `from`, or the sub-agent of `from` that `rest` of the address means.
  [[nodiscard]] std::variant<Destination, Refusal> go_below(Destination from,
                                                            std::string_view rest) const;
  // The refusal for a class that is not served.
  [[nodiscard]] Refusal absent(std::string_view segment) const;
  [[nodiscard]] net::UpgradePlan close_after_upgrade(CloseCode code, std::string reason) const;
  // The loop that runs this call.
  [[nodiscard]] std::size_t loop_of_caller() const;

  runtime::Runtime& runtime_;
  const Readiness& readiness_;
  Random& random_;
  Logger& logger_;
  const std::size_t max_name_bytes_;
  const EdgeRules edge_;
};

}  // namespace hearth::api
