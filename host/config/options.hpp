#pragma once
// The options of a class: any YAML, as JSON for the plugin.

#include "base/error.hpp"
#include "config/yaml.hpp"
#include "json/json.hpp"

#include <string>
#include <string_view>

namespace hearth::config {

// The value of a scalar without quotes, by the core schema of YAML 1.2: null and ~, true and false
// (also True and TRUE), decimal, 0o and 0x integers, decimal fractions. Anything else is text, also
// `yes` and `on`.
//   Failure   kInvalidArgument: JSON cannot hold it (an integer beyond 64 bits, .inf, .nan). The
//             message does not repeat the text.
[[nodiscard]] Result<Json> core_schema_value(std::string_view text);

// The whole tree. A scalar in quotes is always text. A value that JSON cannot hold becomes null,
// and is reported with its path ("options.list[2].key: ..."), without the value.
[[nodiscard]] Json to_json(const YamlNode& node, const std::string& path, Report& report);

}  // namespace hearth::config
