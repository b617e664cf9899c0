#pragma once
// Checks on the entry symbol of a mapped library, the same in the probe and in the server.

#include "extensions/operations.hpp"
#include "plugins/admission/file_rules.hpp"
#include "plugins/admission/plugin_note.hpp"
#include "plugins/generation/class_methods.hpp"

#include <hearth/abi.h>

#include <optional>
#include <string>
#include <vector>

namespace hearth::plugins {

// L2 and L3 on the symbol itself: magic number, size (a larger one is a newer plugin and fine),
// version, functions that are not null, and the number of classes that the note announces. Runs no
// code of the library.
[[nodiscard]] std::optional<Finding> check_entry(const hearth_plugin& plugin,
                                                 const PluginNote& note);

// A class of a library, as checked.
struct EntryClass {
  const hearth_class* table;  // the library's
  std::string name;
  std::string version;
  ClassMethods methods = {};                   // not read_classes()'s to fill
  extensions::OperationKinds operations = {};  // the same
};

// The classes of a library whose init() has succeeded, in the library's order. Calls get_class()
// for each index and for one past the last.
//   Failure   L2 (null, too small, a missing function, a malformed text), L3 (not the classes of
//             the note).
//   Threads   The loader's.
[[nodiscard]] Checked<std::vector<EntryClass>> read_classes(const hearth_plugin& plugin,
                                                            const PluginNote& note);

// What init() answered, as a sentence about the library: L4, or nothing if it succeeded.
[[nodiscard]] std::optional<Finding> check_init(hearth_status status);

}  // namespace hearth::plugins
