#pragma once
// What the mock host keeps of schedules, the queue and managed fibers: the rows, and the JSON that
// plugins read.

#include <hearth/fiber_record.hpp>
#include <hearth/queue.hpp>
#include <hearth/schedule.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace hearth::testing::detail {

struct ScheduleRow {
  std::string id;
  std::string callback;
  Json payload;
  ScheduleType type = ScheduleType::kDelay;
  std::int64_t length_ms = 0;          // of a delay or an interval
  std::optional<std::int64_t> due_ms;  // on the wall's clock; cron: never, see Host::fire()
  std::string cron;
  std::string time_zone;
  bool fixed_rate = false;
  RetryOptions retry;
  Misfire misfire = Misfire::kOnce;
  std::uint32_t misfire_limit = 10;
  Overlap overlap = Overlap::kSkip;
  bool running = false;
  bool paused = false;
  bool dead = false;
  int interruptions = 0;          // kills in a row in the middle of its runs
  int missing = 0;                // how often the class had no such callback
  int missing_in_activation = 0;  // the last time: another one tries at once
  int attempts = 0;               // failed ones of this occurrence
  std::int64_t wait_until_ms = 0;
  std::int64_t created_at_ms = 0;
  std::uint64_t runs = 0;
  std::uint64_t failures = 0;
  std::uint64_t missed = 0;  // since the last run
  std::optional<std::int64_t> last_run_ms;
  std::optional<std::string> last_error;

  [[nodiscard]] bool one_shot() const {
    return type == ScheduleType::kDelay || type == ScheduleType::kAt;
  }
  [[nodiscard]] ScheduleState state() const {
    if (running) return ScheduleState::kRunning;
    if (dead) return ScheduleState::kDead;
    if (paused) return ScheduleState::kPaused;
    return missing > 0 ? ScheduleState::kMissing : ScheduleState::kWaiting;
  }
  // When a run may begin; nullopt: not by itself.
  [[nodiscard]] std::optional<std::int64_t> ready_ms() const {
    if (running || dead || paused || !due_ms) return std::nullopt;
    return std::max(*due_ms, wait_until_ms);
  }
};

struct QueueRow {
  std::string id;
  std::string callback;
  Json payload;
  QueueState state = QueueState::kWaiting;
  std::int64_t created_at_ms = 0;
  int attempts = 0;
  std::int64_t next_at_ms = 0;  // after a failed attempt
  RetryOptions retry;
  std::optional<std::string> last_error;
};

// The record of a managed fiber. While it is not settled its checkpoint and attempts are in the
// FiberRecord of the same id.
struct ManagedRow {
  hearth::FiberRecord record;
  std::int64_t retry_base_ms = 1'000;
  std::int64_t retry_max_ms = 300'000;
  bool told = false;     // FIBER_SETTLED was heard
  bool telling = false;  // is being delivered
  std::uint64_t tell_after_ns = 0;
};

struct DurableRows {
  std::vector<ScheduleRow> schedules;  // in order of creation
  std::vector<QueueRow> queue;         // in order of delivery
  std::vector<ManagedRow> managed;     // in order of creation
};

inline Json optional_number(const std::optional<std::int64_t>& number) {
  return number ? Json(*number) : Json();
}

inline Json schedule_record(const ScheduleRow& row) {
  static constexpr const char* kMisfires[] = {"once", "skip", "all"};
  static constexpr const char* kOverlaps[] = {"skip", "queue", "allow"};
  using hearth::detail::word_of;
  Json json = {{"id", row.id},
               {"callback", row.callback},
               {"payload", row.payload},
               {"type", std::string(word_of(hearth::detail::kScheduleTypes, row.type))},
               {"time", optional_number(row.due_ms)},
               {"fixed_rate", row.fixed_rate},
               {"retry", hearth::detail::to_json_retry(row.retry)},
               {"misfire", kMisfires[static_cast<std::size_t>(row.misfire)]},
               {"misfire_limit", row.misfire_limit},
               {"overlap", kOverlaps[static_cast<std::size_t>(row.overlap)]},
               {"state", std::string(word_of(hearth::detail::kScheduleStates, row.state()))},
               {"created_at", row.created_at_ms},
               {"runs", row.runs},
               {"failures", row.failures},
               {"last_run", optional_number(row.last_run_ms)},
               {"last_error", hearth::detail::to_json_text(row.last_error)}};
  switch (row.type) {
    case ScheduleType::kDelay: json["delay_ms"] = row.length_ms; break;
    case ScheduleType::kAt: break;
    case ScheduleType::kInterval: json["interval_ms"] = row.length_ms; break;
    case ScheduleType::kCron:
      json["cron"] = row.cron;
      json["time_zone"] = row.time_zone;
      break;
  }
  return json;
}

inline Json queue_record(const QueueRow& row) {
  return {{"id", row.id},
          {"callback", row.callback},
          {"payload", row.payload},
          {"state", std::string(hearth::detail::word_of(hearth::detail::kQueueStates, row.state))},
          {"created_at", row.created_at_ms},
          {"attempts", row.attempts},
          {"next_at",
           row.state == QueueState::kWaiting && row.next_at_ms > 0 ? Json(row.next_at_ms) : Json()},
          {"retry", hearth::detail::to_json_retry(row.retry)},
          {"last_error", hearth::detail::to_json_text(row.last_error)}};
}

}  // namespace hearth::testing::detail
