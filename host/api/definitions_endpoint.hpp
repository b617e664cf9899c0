#pragma once
// /objects/definitions: settings for classes, given while the server runs.

#include "api/definition_actions.hpp"
#include "api/routes.hpp"

namespace hearth::api {

// For administrators; the key of objects is not enough:
//  GET    /objects/definitions           {"success":true,"data":[definition...]}
//  POST   /objects/definitions           201; body: a definition. 409: the class has a definition
//                                        or a class file
//  GET, PUT, DELETE /objects/definitions/{class}
//
// A definition has the members of a class file, as JSON (config/definitions.hpp). `image` and
// `init_command` get 422 unsupported.
//
// Threads, Lifetime  As ObjectsAdmin.
class DefinitionsEndpoint {
 public:
  explicit DefinitionsEndpoint(DefinitionActions& actions) : actions_(actions) {}

  // Call it before the rows of other objects are added: "definitions" is neither a class nor an id.
  // The rows call this object: it outlives the table's last use.
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
