#pragma once
// The options of a class: any YAML, as the JSON that its plugin is given.

#include "base/error.hpp"
#include "config/yaml.hpp"
#include "json/json.hpp"

#include <string>
#include <string_view>

namespace hearth::config {

// The value of a scalar without quotes, by YAML 1.2's core schema: null and ~, true and false (also
// True and TRUE), decimal, 0o and 0x integers, decimal fractions; anything else is text, `yes` and
// `on` included. Integers beyond 64 bits, .inf and .nan, which JSON cannot hold, are
// kInvalidArgument; the message does not repeat the text.
[[nodiscard]] Result<Json> core_schema_value(std::string_view text);

// The whole tree. A scalar in quotes is text, whatever it looks like. What cannot be is reported
// under its path ("options.list[2].key: ..."), without its value, and becomes null.
[[nodiscard]] Json to_json(const YamlNode& node, const std::string& path, Report& report);

}  // namespace hearth::config
