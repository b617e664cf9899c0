#include "extensions/types.hpp"

#include <algorithm>

namespace hearth::extensions {
namespace {

char lower(char c) {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}

bool same_header(std::string_view a, std::string_view b) {
  return std::ranges::equal(a, b, [](char x, char y) { return lower(x) == lower(y); });
}

}  // namespace

std::string_view to_string(EventKind kind) noexcept {
  const auto number = static_cast<std::uint32_t>(kind);
  return is_event_kind(number) ? event_rule(number).name : "unknown";
}

std::string_view to_string(EvictReason reason) noexcept {
  switch (reason) {
    case EvictReason::kIdle: return "idle";
    case EvictReason::kCodeUpdate: return "code_update";
    case EvictReason::kPluginRemoved: return "plugin_removed";
    case EvictReason::kShutdown: return "shutdown";
    case EvictReason::kDestroyed: return "destroyed";
    case EvictReason::kHung: return "hung";
    case EvictReason::kLimit: return "limit";
    case EvictReason::kAdmin: return "admin";
  }
  return "unknown";
}

const std::string* find_header(const Headers& headers, std::string_view name) {
  for (const auto& [key, value] : headers) {
    if (same_header(key, name)) return &value;
  }
  return nullptr;
}

}  // namespace hearth::extensions
