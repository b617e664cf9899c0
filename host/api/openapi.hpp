#pragma once
// The HTTP surface of a server as an OpenAPI 3.1 document, made of its table of routes.

#include "api/routes.hpp"

#include <string>

namespace hearth::api {

// The document as JSON text. Each row of the table is an operation. A row for all methods is one
// for each of GET, PUT, POST, PATCH and DELETE that no other row of its path has. What remains of a
// path ("{path...}") is one parameter, whose slashes OpenAPI cannot express.
//
// Schemas   RouteShape names them; openapi_schemas.hpp has them. Errors below /objects have the
//           shape ObjectError, others that of Error.
//
// `objects_ask_for_key`: nobody may do anything below /objects without a key.
[[nodiscard]] std::string openapi_document(const Routes& routes, bool objects_ask_for_key = false);

}  // namespace hearth::api
