#pragma once
// /objects: agents as durable objects, for clients of plain HTTP and JSON.

#include "api/routes.hpp"
#include "runtime/runtime.hpp"

#include <memory>
#include <string>

namespace hearth::api {

// An object is an agent of a class with `objects: true`. {class} is the class's segment, an alias
// of it, or its name in the code. {id} is any text; protocol/object_address.hpp says which name the
// agent has.
//
//  POST /objects/{class}/{id}/call            {"method": text, "args": value}
//  POST /objects/{class}/{id}/call/{method}   the value of the arguments, or nothing
//
// A call makes the object if it does not exist, and wakes it. An array is a list of positional
// arguments; any other value is the one argument.
//
// Answers    object_answer.hpp has their shape, and the statuses of an object's answers. There are
//            also those of object_lookup.hpp, and:
//              400 invalid_argument          an invalid body or Idempotency-Key
//              404 invalid_method            also for names that begin with __, which are reserved
//
// Once       A call with the header Idempotency-Key (1 to 255 printable ASCII characters) runs
//            once. If a client sends it again with the same method and arguments, it gets the
//            stored answer with `Idempotency-Replayed: true`, also after a crash of the server.
//            extensions/call_answers.hpp says what is stored, and for how long.
// Retries    The server retries only calls of idempotent methods (AgentSlot's P6).
// Deadline   ClassSettings::object_call_timeout, from the arrival of the call.
// Clients    If the class asks for tokens, a key belongs to one client: with another `sub` it is
//            another call (422).
// Claims     If the class asks for a token, the agent gets its claims (hearth.connections/1).
//
// Threads    Any of the server's loops, concurrently.
// Lifetime   As AgentsEndpoint.
class ObjectsEndpoint {
 public:
  explicit ObjectsEndpoint(runtime::Runtime& runtime) : runtime_(runtime) {}

  // The rows call this object: it outlives the table's last use.
  void add_routes(Routes& routes);

 private:
  using Exchange = std::shared_ptr<net::HttpExchange>;

  void call(const RouteCall& call);
  void call_method(const RouteCall& call);
  void deliver(const RouteCall& asked, std::string method, std::string arguments);

  runtime::Runtime& runtime_;
};

}  // namespace hearth::api
