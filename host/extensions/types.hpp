#pragma once
// Types that the runtime and the extensions share: ids, and the enums that cross layers.

#include <hearth/event_rules.hpp>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace hearth::extensions {

// One live agent of this process: shard, slot and generation in one number; hearth_agent in the
// plugin ABI. The handle of a destroyed agent is never valid again.
using AgentHandle = std::uint64_t;

// One accepted event of a live agent; 0: none.
using CallId = std::uint64_t;
// One operation that an agent submitted; 0: none.
using OperationId = std::uint64_t;
// One client of a shard, while its socket lives, also over evictions; 0: none.
using ConnectionId = std::uint64_t;

// Events that reach an agent's code. The values are those of HEARTH_EVENT_* in hearth/abi.h and
// hearth/ext/; hearth/event_rules.hpp has a row for each.
enum class EventKind : std::uint32_t {
  kStart = 1,
  kConnecting = 2,
  kConnect = 3,
  kMessage = 4,
  kClose = 5,
  kCall = 6,
  kRequest = 7,
  kStateCheck = 8,
  kStateChanged = 9,
  kEvict = 10,
  kFiberRecovered = 11,
  kSchedule = 12,
  kQueueItem = 13,
  kFiberSettled = 14,
  kFibersRecovered = 15,
  kMigrate = 16,
  kSubAgent = 17,
  kOperationUnknown = 18,
};

// The rules of a kind of event.
[[nodiscard]] constexpr const EventRule& rule_of(EventKind kind) {
  return event_rule(static_cast<std::uint32_t>(kind));
}
// Whether a client waits for the end of such an event and reads the text of a failure.
[[nodiscard]] constexpr bool answers_client(EventKind kind) {
  return rule_of(kind).runs_method || kind == EventKind::kSubAgent;
}

// Lower-case words for logs: "start", "message". Takes any value.
std::string_view to_string(EventKind kind) noexcept;

// The flag of a request whose body has not arrived: HEARTH_REQUEST_UNREAD_BODY.
inline constexpr std::uint32_t kUnreadBody = 1;

enum class FrameKind : std::uint32_t { kText = 0, kBinary = 1 };

// Why an agent is evicted. The values are those of HEARTH_EVICT_* in hearth/abi.h.
enum class EvictReason : std::uint32_t {
  kIdle = 1,
  kCodeUpdate = 2,
  kPluginRemoved = 3,
  kShutdown = 4,
  kDestroyed = 5,
  kHung = 6,
  kLimit = 7,
  kAdmin = 8,
};

// Lower-case words, stable, for logs and metrics: "idle", "code_update".
std::string_view to_string(EvictReason reason) noexcept;

// Names and values as they were sent, in order. Names are compared without case.
using Headers = std::vector<std::pair<std::string, std::string>>;

// The value of the first header called `name` (in any case), or null.
const std::string* find_header(const Headers& headers, std::string_view name);

// The head of an answer to an HTTP request. An agent may change it until the first byte of the
// body.
struct ResponseHead {
  unsigned status = 200;
  Headers headers;
};

// A caller's name for one call, for safe retries of the call.
struct CallKey {
  // Longer keys are refused at the server's edge: a UUID has 36 bytes.
  static constexpr std::size_t kMaxBytes = 255;

  std::string key;
  std::string fingerprint;  // of method and arguments: with another fingerprint it is another call

  friend bool operator==(const CallKey&, const CallKey&) = default;
};

}  // namespace hearth::extensions
