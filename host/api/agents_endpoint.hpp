#pragma once
// /agents/{class}/{name}: which agent a client means, on which loop it lives, and how the client is
// told when there is none.

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
//            no token, or not a good one  401 unauthorized           101, then close 4401
//            its keys are on their way    503 unavailable            the same: clients try again
//            a token for another agent    403 forbidden              101, then close 4403
//            no class or no name          404 not_found              101, then close 4400
//            class or name unacceptable   400 invalid_argument       101, then close 4400
//            class expected, not loaded   503 unavailable            503: clients try again
//            class not known              400 unknown_class          101, then close 4404
//            an agent above it refuses    its status                 101, then close 4000 + status
//            another transport wanted     -                          101, then close 1008
//            new, and too many of those   429 limit_exceeded         101, then close 1013
//            from the client's address
//            A client that must stop is told so by a close code, because it retries an HTTP error
//            for ever. Expected (runtime/class_registry.hpp) is a class that was served before, has
//            settings or has agents: its library was removed, or refused at the start, and may come
//            back at any time. That is so during the grace after a removal as well; only clients
//            that were connected then stay, and wait.
//
// Below      A path .../sub/{class}/{name} with a class that is known or expected means an agent
//            below the one before it (storage/agent_key.hpp). All agents on the way are asked
//            first, in order (api/sub_agent_gate.hpp). Any other path below an agent is its own.
//
//            A class alone (/agents/{class}) is no agent. GET or HEAD of it is answered with the
//            list of the class's methods if the setting list_methods says so, else it is refused as
//            above. A list is JSON: {"class":"counter","methods":[...]}, where each method has
//            "name", "idempotent", "read_only", "streaming" and "exclusive", and "description",
//            "arguments" and "result" (JSON schemas) as far as they are known.
//
// Who        The class's rules for clients hold, or the server's (api/edge_rules.hpp). For an agent
//            below others it is the class of the topmost one. A token is looked at only where one
//            is asked for. The agent then gets its claims, and a target without it. A socket is
//            closed with 4401 when its token ends. The administrators' token opens no agent. Where
//            claims give the name, only its one spelling in edge_rules.hpp is let in. Rules that
//            change while a client comes in, or tokens that are withdrawn, have it come again (503,
//            or close 1012), also while it waits for the agents above.
//
// Promises
//  P1 Place     A socket is opened on the loop of its agent's shard; a request is delivered there.
//  P2 Identity  The id of a connection is the `_pk` of the query if that is acceptable, else a new
//               UUID.
//  P3 Closed    A refusal names no class but the one that was asked for.
//  P4 Hope      A client of a class that may come back is never told to stop.
//  P5 Alias     An alias of a class leads to the agents of the class. Clients are told the class's
//               own segment; the agent sees the target as it was sent.
//  P6 Object    In a class of objects all spellings of a name lead to one agent, the one that
//               /objects reaches (protocol/object_address.hpp).
//
// Threads    Both members from any loop of the runtime.
// Lifetime   All parameters of the constructor outlive it. It outlives the HttpServer, and the
//            runtime the sockets. The runtime's loops must be the server's, in the same order.
class AgentsEndpoint {
 public:
  AgentsEndpoint(runtime::Runtime& runtime, const Readiness& readiness, Random& random,
                 Logger& logger, std::size_t max_name_bytes, EdgeRules edge = {});

  // The rows call this object: it outlives the table's last use. They have the paths as clients
  // write them; those with empty segments have no row and mean the same.
  void add_routes(Routes& routes);

  // Answers in this call or later, on the agent's loop or this one.
  void on_request(std::shared_ptr<net::HttpExchange> exchange);

  [[nodiscard]] net::UpgradePlan on_upgrade(const net::HttpRequest& request);

  // A client wants to reach an agent by another path than its own: the claims of its token, or why
  // it may not. `served`: the agent's class; null: none, so that the server's rules hold. `name`:
  // as it stands in the agent's URL.
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
    std::vector<Gate> gates;  // the topmost first; none: it is a root
  };
  // A client that may go where it wants.
  struct Guest {
    Destination to;
    std::string target;  // what the agent sees
    auth::Visitor visitor;
    std::string subprotocol;  // of the answer to an upgrade
  };
  struct Refusal {
    int status = 0;
    CloseCode close_code = 0;  // 0: a WebSocket is refused with the status too
    std::string_view code;
    std::string message;
  };

  // Whom the client may reach.
  [[nodiscard]] std::variant<Guest, Refusal> admit(const net::HttpRequest& request) const;
  // One who may be let in to the agent at `address`, which the class's rules have a say in.
  [[nodiscard]] std::variant<Guest, Refusal> lead_in(std::string_view address,
                                                     std::shared_ptr<const EntryRules> own,
                                                     auth::Visitor visitor, ClientProof proof,
                                                     const net::HttpRequest& request) const;
  // Whether the class has other rules for its clients (EntryRules::auth) than these.
  [[nodiscard]] bool has_changed(const EntryRules& rules, std::string_view segment) const;
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
  // Nothing if the server takes clients.
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
  // Leads on to the agent below it that the rest of the address means, if it means one.
  [[nodiscard]] std::variant<Destination, Refusal> go_below(Destination from,
                                                            std::string_view rest) const;
  // What is said of a class that is not served.
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
