#pragma once
// The JSON Schemas of bodies and answers; the table of routes names them (RouteShape).

#include <string_view>

namespace hearth::api {

// A JSON object: for each name a JSON Schema, as an OpenAPI 3.1 document has them. A schema lists
// the members and their types. Answers may get further members in later versions.
[[nodiscard]] std::string_view openapi_schemas();

}  // namespace hearth::api
