#pragma once
// The HTTP routes of a server as an OpenAPI 3.1 document, made from its table of routes.

#include "api/routes.hpp"

#include <string>

namespace hearth::api {

// The document as JSON text. Each row of the table is an operation. A row for all methods becomes
// an operation for each of GET, PUT, POST, PATCH and DELETE that no other row of its path has. The
// rest of a path ("{path...}") is one parameter; OpenAPI cannot express that it may contain
// slashes.
//
// Schemas   RouteShape names them; openapi_schemas.hpp has them. Errors below /objects have the
//           shape ObjectError, others the shape Error.
//
// `objects_ask_for_key`: all requests below /objects need a key.
[[nodiscard]] std::string openapi_document(const Routes& routes, bool objects_ask_for_key = false);

}  // namespace hearth::api
