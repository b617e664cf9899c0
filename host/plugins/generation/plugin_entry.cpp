#include "plugins/generation/plugin_entry.hpp"

#include "base/escape.hpp"
#include "extensions/abi_call.hpp"
#include "extensions/abi_status.hpp"

#include <algorithm>
#include <utility>

namespace hearth::plugins {
namespace {

// A NUL-terminated text of the library; absent if it is null or longer than any valid text. Reads
// no further, so a text without an end costs at most a page.
std::optional<std::string> bounded_text(const char* text) {
  constexpr std::size_t kMaxBytes = 64;
  static_assert(kMaxBytes >= kMaxVersionBytes);
  if (text == nullptr) return std::nullopt;
  const std::size_t size = ::strnlen(text, kMaxBytes + 1);
  if (size > kMaxBytes) return std::nullopt;
  return std::string(text, size);
}

Checked<EntryClass> read_class(const hearth_plugin& plugin, std::uint32_t index) {
  const std::string which = "its class " + std::to_string(index) + " ";
  const hearth_class* const table = plugin.get_class(index);
  if (table == nullptr) return finding("L2", which + "is null although class_count announces it");
  if (table->struct_size < extensions::kClassSize10) {
    return finding("L2", which + "has a struct_size of " + std::to_string(table->struct_size) +
                             ": set it to sizeof(hearth_class)");
  }
  const auto name = bounded_text(table->name);
  const auto version = bounded_text(table->version);
  if (!name || !is_valid_class_name(*name)) return finding("L2", which + "has no valid name");
  if (!version || !is_valid_version(*version)) return finding("L2", which + "has no valid version");
  if (table->create == nullptr || table->destroy == nullptr || table->on_event == nullptr ||
      table->on_cancel == nullptr || table->on_result == nullptr) {
    return finding("L2", "its class " + show_name(*name) +
                             " lacks a function: only get_extension may be null");
  }
  return EntryClass{.table = table, .name = *name, .version = *version};
}

}  // namespace

std::optional<Finding> check_entry(const hearth_plugin& plugin, const PluginNote& note) {
  if (plugin.magic != HEARTH_MAGIC) {
    return finding("L2",
                   "its symbol hearth_plugin_v1 has a wrong magic number: set it to HEARTH_MAGIC");
  }
  if (plugin.struct_size < extensions::kPluginSize10) {
    return finding("L2", "its symbol hearth_plugin_v1 has a struct_size of " +
                             std::to_string(plugin.struct_size) +
                             ": set it to sizeof(hearth_plugin)");
  }
  const auto version = [](unsigned major, unsigned minor) {
    return std::to_string(major) + "." + std::to_string(minor);
  };
  if (plugin.abi_major != HEARTH_ABI_MAJOR) {  // as rule N2
    return finding("L2", "its symbol hearth_plugin_v1 says version " +
                             version(plugin.abi_major, plugin.abi_minor) +
                             " of the ABI, and this server has " +
                             version(HEARTH_ABI_MAJOR, HEARTH_ABI_MINOR));
  }
  if (plugin.init == nullptr || plugin.deinit == nullptr || plugin.get_class == nullptr) {
    return finding("L2", "its symbol hearth_plugin_v1 lacks init, deinit or get_class");
  }
  if (plugin.class_count != note.manifest.classes.size()) {
    return finding("L3", "it has " + std::to_string(plugin.class_count) +
                             " classes, and its note names " +
                             std::to_string(note.manifest.classes.size()));
  }
  return std::nullopt;
}

Checked<std::vector<EntryClass>> read_classes(const hearth_plugin& plugin, const PluginNote& note) {
  std::vector<EntryClass> classes;
  for (std::uint32_t index = 0; index < plugin.class_count; ++index) {
    auto entry = read_class(plugin, index);
    if (!entry) return entry.error();
    const auto& announced = note.manifest.classes;
    if (std::ranges::find(announced, entry->name) == announced.end()) {
      return finding("L3",
                     "it has a class " + show_name(entry->name) + ", which its note does not name");
    }
    if (std::ranges::find(classes, entry->name, &EntryClass::name) != classes.end()) {
      return finding("L3", "it has the class " + show_name(entry->name) + " twice");
    }
    classes.push_back(*std::move(entry));
  }
  if (plugin.get_class(plugin.class_count) != nullptr) {
    return finding("L2", "its get_class answers for an index that does not exist: return null");
  }
  return classes;
}

std::optional<Finding> check_init(hearth_status status) {
  if (status == HEARTH_OK) return std::nullopt;
  return finding("L4", "its init() failed with " + std::string(extensions::status_name(status)));
}

}  // namespace hearth::plugins
