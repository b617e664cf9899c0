#include "plugins/generation/class_methods.hpp"

#include "base/escape.hpp"
#include "base/utf8.hpp"

#include <algorithm>
#include <span>

namespace hearth::plugins {

Checked<std::vector<std::string>> read_idempotent_methods(const hearth_methods_v1* table,
                                                          std::string_view class_name) {
  std::vector<std::string> names;
  if (table == nullptr) return names;
  const auto broken = [class_name](const std::string& how) {
    return finding("L2", "the " HEARTH_EXT_METHODS " of its class " + show_name(class_name) + how);
  };
  if (table->struct_size < sizeof(hearth_methods_v1)) {
    return broken(" has a struct_size of " + std::to_string(table->struct_size) +
                  ": set it to sizeof(hearth_methods_v1)");
  }
  if (table->count > HEARTH_METHODS_MAX) {
    return broken(" has " + std::to_string(table->count) + " methods, more than " +
                  std::to_string(HEARTH_METHODS_MAX));
  }
  if (table->count > 0 && table->methods == nullptr) return broken(" has no methods");
  for (const hearth_method& method : std::span(table->methods, table->count)) {
    const hearth_bytes name = method.name;
    const bool has_length =
        name.ptr != nullptr && name.len > 0 && name.len <= HEARTH_METHOD_NAME_MAX;
    const std::string_view text =
        has_length ? std::string_view(static_cast<const char*>(name.ptr), name.len)
                   : std::string_view();
    if (!has_length || !is_valid_utf8(text)) {
      return broken(" has a method whose name is not 1 to " +
                    std::to_string(HEARTH_METHOD_NAME_MAX) + " bytes of UTF-8");
    }
    if ((method.flags & HEARTH_METHOD_IDEMPOTENT) != 0) names.emplace_back(text);
  }
  std::ranges::sort(names);
  const auto repeated = std::ranges::unique(names);
  names.erase(repeated.begin(), repeated.end());
  return names;
}

}  // namespace hearth::plugins
