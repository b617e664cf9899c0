#pragma once
// /objects: agents as durable objects, for clients of plain HTTP and JSON.

#include "api/object_lookup.hpp"
#include "api/readiness.hpp"
#include "api/routes.hpp"
#include "runtime/runtime.hpp"

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <variant>

namespace hearth::api {

// An object is an agent of a class with `objects: true`. {class} is the class's segment, an alias
// of it, or its own name; {id} is any text (protocol/object_address.hpp says which agent's name it
// is).
//
//  POST /objects/{class}/{id}/call            {"method": text, "args": value}
//  POST /objects/{class}/{id}/call/{method}   the value of the arguments, or nothing
//
// A call makes the object and wakes it. Arguments that are an array are positional; any other value
// is the one argument.
//
// Answers    object_answer.hpp has their shape, and the statuses of what an object answers. Beside
//            those of object_lookup.hpp:
//              400 invalid_argument          a body or an Idempotency-Key that cannot be
//              404 invalid_method            also for names that begin with __, which are reserved
//
// Once       A call with the header Idempotency-Key (1 to 255 printable ASCII characters) runs
//            once. Whoever sends it again, with the same method and the same arguments, gets the
//            stored answer with `Idempotency-Replayed: true`, after a crash of the server too. See
//            extensions/call_answers.hpp for what is stored, and for how long.
// Retries    The server begins no call again but those of idempotent methods (AgentSlot's P6).
// Deadline   ClassSettings::object_call_timeout, from the arrival of the call.
// Clients    A key is one client's, if the class asks for tokens: with another `sub` it is another
//            call (422).
// Claims     Of a token that the class asks for, the agent gets the claims (hearth.connections/2).
//
// Threads    Any of the server's loops, concurrently.
// Lifetime   As AgentsEndpoint.
class ObjectsEndpoint {
 public:
  ObjectsEndpoint(runtime::Runtime& runtime, const Readiness& readiness,
                  std::size_t max_name_bytes);

  // The rows call this object: it outlives the table's last use.
  void add_routes(Routes& routes);

 private:
  using Exchange = std::shared_ptr<net::HttpExchange>;

  // The object, or what the client is told.
  [[nodiscard]] std::variant<ObjectAddress, net::HttpResponse> find(const RouteCall& call) const;
  void call(const RouteCall& call);
  void call_method(const RouteCall& call);
  void deliver(const RouteCall& asked, ObjectAddress object, std::string method,
               std::string arguments);

  runtime::Runtime& runtime_;
  const Readiness& readiness_;
  const std::size_t max_name_bytes_;
};

}  // namespace hearth::api
