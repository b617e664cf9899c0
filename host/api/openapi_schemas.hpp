#pragma once
// The schemas of bodies and answers that the table of routes names (RouteShape).

#include <string_view>

namespace hearth::api {

// A JSON object: for each name a JSON Schema, as an OpenAPI 3.1 document has them. They say which
// members there are and of which types. Answers may get further members in later versions.
[[nodiscard]] std::string_view openapi_schemas();

}  // namespace hearth::api
