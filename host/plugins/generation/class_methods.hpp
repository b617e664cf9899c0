#pragma once
// The methods that a class lists: hearth.methods/1.

#include "plugins/admission/file_rules.hpp"

#include <hearth/ext/methods.h>

#include <string>
#include <string_view>
#include <vector>

namespace hearth::plugins {

struct ClassMethods {
  // Methods that may be repeated: HEARTH_METHOD_IDEMPOTENT or READ_ONLY. Sorted, each once.
  std::vector<std::string> idempotent;
  // Methods that change nothing: HEARTH_METHOD_READ_ONLY. Sorted, each once.
  std::vector<std::string> read_only;
  // Methods that run alone: HEARTH_METHOD_EXCLUSIVE. Sorted, each once.
  std::vector<std::string> exclusive;
  // A JSON array, in the order of the table, each name once:
  //   {"name", "idempotent", "read_only", "streaming", "exclusive", "description", "arguments",
  //    "result"}
  // The last three are left out if they are empty.
  std::string listed = "[]";
};

// Reads the table of the class `class_name` for HEARTH_EXT_METHODS, which may be null.
//   Failure   L2: a table that is too small, too many methods, an invalid name, a description or a
//             schema that is invalid or too long.
//   Bounded   Reads at most HEARTH_METHODS_MAX entries, and no text beyond its length and its
//             limit.
[[nodiscard]] Checked<ClassMethods> read_class_methods(const hearth_methods_v1* table,
                                                       std::string_view class_name);

}  // namespace hearth::plugins
