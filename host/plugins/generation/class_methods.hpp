#pragma once
// What a class tells of its methods: hearth.methods/1 and /2.

#include "plugins/admission/file_rules.hpp"

#include <hearth/ext/methods_2.h>

#include <string>
#include <string_view>
#include <vector>

namespace hearth::plugins {

struct ClassMethods {
  // The names of those that may be repeated: HEARTH_METHOD_IDEMPOTENT or READ_ONLY. Sorted, each
  // once.
  std::vector<std::string> idempotent;
  // The names of those that change nothing: HEARTH_METHOD_READ_ONLY. Sorted, each once.
  std::vector<std::string> read_only;
  // The names of those that run alone, HEARTH_METHOD_EXCLUSIVE. Sorted, each once.
  std::vector<std::string> exclusive;
  // A JSON array, in the order of the table, each name once:
  //   {"name", "idempotent", "read_only", "streaming", "exclusive", "description", "arguments",
  //    "result"}
  // The last three are left out if they are empty.
  std::string listed = "[]";
};

// What the class `class_name` gives for HEARTH_EXT_METHODS and HEARTH_EXT_METHODS_2, either or both
// null. The second counts if it is there.
//   Failure   L2: a table that is too small, too many methods, a name that is none, a description
//             or a schema that breaks a limit or is not what it should be.
//   Bounded   Reads HEARTH_METHODS_MAX entries at most, and of each text no more than it says and
//             its limit.
[[nodiscard]] Checked<ClassMethods> read_class_methods(const hearth_methods_v1* first,
                                                       const hearth_methods_v2* second,
                                                       std::string_view class_name);

}  // namespace hearth::plugins
