#include "extensions/call_order.hpp"

#include "extensions/abi_call.hpp"

#include <hearth/ext/methods.h>

namespace hearth::extensions {

std::vector<std::string> exclusive_methods(const hearth_class& definition) {
  std::vector<std::string> names;
  if (!HEARTH_HAS(&definition, hearth_class, get_extension)) return names;
  const auto* const table = static_cast<const hearth_methods_v1*>(
      definition.get_extension(&definition, HEARTH_EXT_METHODS));
  if (table == nullptr) return names;
  for (const hearth_method& method : std::span(table->methods, table->count)) {
    const auto name = text_of(method.name);
    if (name && (method.flags & HEARTH_METHOD_EXCLUSIVE) != 0) names.emplace_back(*name);
  }
  std::ranges::sort(names);
  return names;
}

}  // namespace hearth::extensions
