#pragma once
// Rules about each kind of event that host and SDK share, beyond abi.h: one row for each kind. Not
// part of the ABI.

#include <cstddef>
#include <cstdint>

namespace hearth {

// What causes an event.
enum class EventSender : std::uint8_t {
  kHost,    // the life of the agent and its connections; never rejected because a queue is full
  kClient,  // may be rejected: a queue is full, or the server is short of memory
  kWork,    // the agent's durable work; it has limits of its own, and no client waits
};

struct EventRule {
  std::uint32_t kind;  // HEARTH_EVENT_*
  const char* name;    // in logs and metrics
  EventSender sender;
  bool
      has_call : 1;  // asynchronous: completed with its call. Else it is over when on_event returns
  bool may_ignore : 1;    // UNSUPPORTED means that the class does not handle it
  bool runs_method : 1;   // for a client that waits for the answer
  bool is_timed : 1;      // a client waits, so its duration is a metric
  bool may_repeat : 1;    // may be delivered again if an eviction cuts it off
  bool is_retried : 1;    // the host delivers it again if it fails
  bool is_on_behalf : 1;  // a change of the state counts as the client's change
  bool answers_json : 1;  // its answer, and each part of it, is JSON
};

namespace detail {
// Columns of kEventRules, in the order of EventRule. A row names the columns that hold.
enum EventColumn : std::uint32_t {
  kCall = 1U << 0,
  kIgnore = 1U << 1,
  kMethod = 1U << 2,
  kTimed = 1U << 3,
  kRepeat = 1U << 4,
  kRetried = 1U << 5,
  kOnBehalf = 1U << 6,
  kJson = 1U << 7,
};
constexpr EventRule event_row(std::uint32_t kind, const char* name, EventSender sender,
                              std::uint32_t columns) {
  return {kind,
          name,
          sender,
          (columns & kCall) != 0,
          (columns & kIgnore) != 0,
          (columns & kMethod) != 0,
          (columns & kTimed) != 0,
          (columns & kRepeat) != 0,
          (columns & kRetried) != 0,
          (columns & kOnBehalf) != 0,
          (columns & kJson) != 0};
}
}  // namespace detail

// By kind, which begins at 1.
// clang-format off
inline constexpr EventRule kEventRules[] = {
    detail::event_row( 1, "start",            EventSender::kHost,   detail::kCall | detail::kIgnore),
    detail::event_row( 2, "connecting",       EventSender::kHost,   0),
    detail::event_row( 3, "connect",          EventSender::kHost,   detail::kCall | detail::kIgnore | detail::kTimed | detail::kRepeat),
    detail::event_row( 4, "message",          EventSender::kClient, detail::kCall | detail::kIgnore | detail::kTimed | detail::kOnBehalf),
    detail::event_row( 5, "close",            EventSender::kHost,   detail::kCall | detail::kIgnore),
    detail::event_row( 6, "call",             EventSender::kClient, detail::kCall | detail::kMethod | detail::kTimed | detail::kRepeat | detail::kOnBehalf | detail::kJson),
    detail::event_row( 7, "request",          EventSender::kClient, detail::kCall | detail::kMethod | detail::kTimed),
    detail::event_row( 8, "state_check",      EventSender::kClient, 0),
    detail::event_row( 9, "state_changed",    EventSender::kHost,   detail::kCall | detail::kIgnore),
    detail::event_row(10, "evict",            EventSender::kHost,   detail::kCall | detail::kIgnore),
    detail::event_row(11, "fiber_recovered",  EventSender::kWork,   detail::kCall | detail::kRetried),
    detail::event_row(12, "schedule",         EventSender::kWork,   detail::kCall | detail::kRetried),
    detail::event_row(13, "queue_item",       EventSender::kWork,   detail::kCall | detail::kRetried),
    detail::event_row(14, "fiber_settled",    EventSender::kWork,   detail::kCall | detail::kIgnore | detail::kRetried),
    detail::event_row(15, "fibers_recovered", EventSender::kWork,   detail::kCall | detail::kIgnore),
    detail::event_row(16, "migrate",          EventSender::kHost,   detail::kCall),
    detail::event_row(17, "sub_agent",        EventSender::kClient, detail::kCall | detail::kIgnore | detail::kTimed),
    detail::event_row(18, "operation_unknown", EventSender::kWork,  detail::kCall | detail::kIgnore | detail::kRetried),
};
// clang-format on
inline constexpr std::size_t kEventKinds = sizeof(kEventRules) / sizeof(kEventRules[0]);
static_assert(
    [] {
      for (std::size_t place = 0; place < kEventKinds; ++place) {
        if (kEventRules[place].kind != place + 1) return false;
      }
      return true;
    }(),
    "the rows stand in the order of the kinds");

[[nodiscard]] constexpr bool is_event_kind(std::uint32_t kind) {
  return kind >= 1 && kind <= kEventKinds;
}
// Only for a valid kind.
[[nodiscard]] constexpr const EventRule& event_rule(std::uint32_t kind) {
  return kEventRules[kind - 1];
}

}  // namespace hearth
