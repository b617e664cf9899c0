#pragma once
// The JSON schema of a type that read_json() takes: json_schema<Order>().

#include <hearth/detail/type_schema.hpp>
#include <hearth/json.hpp>

#include <string>

namespace hearth {

// An object that says nothing, {"type":"object"}, if the schema would be over 16 KiB.
template <class T>
[[nodiscard]] Json json_schema() {
  const detail::TypeSchema* const arguments[] = {&detail::kTypeSchema<T>};
  const std::string text = detail::SchemaText::of_arguments({arguments, 1, nullptr});
  if (text.empty()) return {{"type", "object"}};
  return parse_json(text).at("prefixItems").at(0);
}

}  // namespace hearth
