#include "runtime/types.hpp"

#include <algorithm>

namespace hearth::runtime {
namespace {

char lower(char c) {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}

bool same_header(std::string_view a, std::string_view b) {
  return std::ranges::equal(a, b, [](char x, char y) { return lower(x) == lower(y); });
}

}  // namespace

std::string_view to_string(EventKind kind) noexcept {
  switch (kind) {
    case EventKind::kStart: return "start";
    case EventKind::kConnecting: return "connecting";
    case EventKind::kConnect: return "connect";
    case EventKind::kMessage: return "message";
    case EventKind::kClose: return "close";
    case EventKind::kCall: return "call";
    case EventKind::kRequest: return "request";
    case EventKind::kStateCheck: return "state_check";
    case EventKind::kStateChanged: return "state_changed";
    case EventKind::kEvict: return "evict";
    case EventKind::kFiberRecovered: return "fiber_recovered";
    case EventKind::kSchedule: return "schedule";
    case EventKind::kQueueItem: return "queue_item";
    case EventKind::kFiberSettled: return "fiber_settled";
    case EventKind::kFibersRecovered: return "fibers_recovered";
    case EventKind::kMigrate: return "migrate";
  }
  return "unknown";
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

}  // namespace hearth::runtime
