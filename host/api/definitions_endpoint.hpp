#pragma once
// /objects/definitions: settings for classes, given while the server runs.

#include "api/definition_actions.hpp"
#include "api/routes.hpp"

namespace hearth::api {

// For administrators; the key of objects is not enough:
//  GET    /objects/definitions           {"success":true,"data":[definition...]}
//  POST   /objects/definitions           201; body: a definition. 409: the class has one, or a file
//  GET, PUT, DELETE /objects/definitions/{class}
//
// A definition is what a class file says, as JSON (config/definitions.hpp). `image` and
// `init_command` get 422 unsupported.
//
// Threads, Lifetime  As ObjectsAdmin.
class DefinitionsEndpoint {
 public:
  explicit DefinitionsEndpoint(DefinitionActions& actions) : actions_(actions) {}

  // Before the rows of other objects: "definitions" is no class and no id. The rows call this
  // object: it outlives the table's last use.
  void add_routes(Routes& routes);

 private:
  void list(const RouteCall& call);
  void create(const RouteCall& call);
  void show(const RouteCall& call);
  void replace(const RouteCall& call);
  void remove(const RouteCall& call);

  DefinitionActions& actions_;
};

}  // namespace hearth::api
