#pragma once
// The child of one case of a check.

#include "base/error.hpp"
#include "plugins/check/check_subject.hpp"

#include <string>
#include <string_view>

namespace hearth::plugins {

// The argument that makes this program such a child: --plugin-check CASE SETTING. main() checks it
// first.
inline constexpr const char* kCheckArgument = "--plugin-check";

// A setting as one argument, and back.
[[nodiscard]] std::string to_argument(const CheckSetting& setting);
[[nodiscard]] Result<CheckSetting> parse_setting(std::string_view argument);

// Runs the child and returns its exit status: 0 also if the library fails. Reports on descriptor 3
// (check_voice.hpp).
[[nodiscard]] int run_plugin_check(std::string_view case_id, std::string_view setting);

}  // namespace hearth::plugins
