#pragma once
// What a class promises about its methods: hearth.methods/1.

#include "plugins/admission/file_rules.hpp"

#include <hearth/ext/methods.h>

#include <string>
#include <string_view>
#include <vector>

namespace hearth::plugins {

// The names of the methods that are idempotent, sorted, each once. `table`: what the class
// `class_name` gives for HEARTH_EXT_METHODS, or null.
//   Failure   L2: a table that is too small, too many methods, a name that is none.
//   Bounded   Reads HEARTH_METHODS_MAX entries at most, and of each name no more than it says and
//             HEARTH_METHOD_NAME_MAX bytes.
[[nodiscard]] Checked<std::vector<std::string>> read_idempotent_methods(
    const hearth_methods_v1* table, std::string_view class_name);

}  // namespace hearth::plugins
