#pragma once
// Checks on the entry symbol of a mapped library. The probe and the server use the same ones.

#include "extensions/operations.hpp"
#include "plugins/admission/file_rules.hpp"
#include "plugins/admission/plugin_note.hpp"
#include "plugins/generation/class_methods.hpp"

#include <hearth/abi.h>

#include <optional>
#include <string>
#include <vector>

namespace hearth::plugins {

// L2 and L3 on the symbol itself: magic number, size, version, no null functions, and the number of
// classes in the note. A larger size is accepted: the plugin is newer. Runs no code of the library.
[[nodiscard]] std::optional<Finding> check_entry(const hearth_plugin& plugin,
                                                 const PluginNote& note);

// A checked class of a library.
struct EntryClass {
  const hearth_class* table;  // in the library
  std::string name;
  std::string version;
  ClassMethods methods = {};                   // read_classes() does not fill it
  extensions::OperationKinds operations = {};  // read_classes() does not fill it
};

// The classes of a library whose init() has succeeded, in the library's order. Calls get_class()
// for each index and for one past the last.
//   Failure   L2 (null, too small, a missing function, a malformed text), L3 (not the classes of
//             the note).
//   Threads   The loader's.
[[nodiscard]] Checked<std::vector<EntryClass>> read_classes(const hearth_plugin& plugin,
                                                            const PluginNote& note);

// L4, with what init() answered; nothing if init() succeeded.
[[nodiscard]] std::optional<Finding> check_init(hearth_status status);

}  // namespace hearth::plugins
