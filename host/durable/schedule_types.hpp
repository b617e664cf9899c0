#pragma once
// The types of requests, runs and reports of schedules.

#include "base/error.hpp"
#include "durable/time_zone.hpp"

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace hearth::durable {

// The values are those of hearth/ext/schedule.h.
enum class ScheduleType : std::uint32_t { kDelay = 1, kAt = 2, kCron = 3, kInterval = 4 };
enum class Idempotent : std::uint32_t { kByType = 0, kYes = 1, kNo = 2 };
enum class Misfire : std::uint32_t { kOnce = 0, kSkip = 1, kAll = 2 };
enum class Overlap : std::uint32_t { kSkip = 0, kQueue = 1, kAllow = 2 };

// As in records.
[[nodiscard]] constexpr std::string_view to_string(ScheduleType type) {
  return std::array{"", "delay", "at", "cron", "interval"}.at(static_cast<std::size_t>(type));
}
[[nodiscard]] constexpr std::string_view to_string(Misfire misfire) {
  return std::array{"once", "skip", "all"}.at(static_cast<std::size_t>(misfire));
}
[[nodiscard]] constexpr std::string_view to_string(Overlap overlap) {
  return std::array{"skip", "queue", "allow"}.at(static_cast<std::size_t>(overlap));
}

// An agent's request. The views are borrowed for the call. checked_schedule() checks the fields.
struct ScheduleRequest {
  ScheduleType type{};
  std::string_view callback;
  std::string_view payload;  // JSON; empty: null
  std::int64_t when_ms = 0;
  std::string_view cron;
  std::string_view time_zone;
  Idempotent idempotent = Idempotent::kByType;
  Misfire misfire = Misfire::kOnce;
  std::uint32_t misfire_limit = 0;
  Overlap overlap = Overlap::kSkip;
  bool fixed_rate = false;
  std::uint32_t max_attempts = 0;
  std::uint64_t retry_base_ms = 0;
  std::uint64_t retry_max_ms = 0;
};

struct ScheduleFilter {
  std::optional<ScheduleType> type{};
  std::string_view callback{};
  std::string_view state{};
  std::int64_t from_ms = 0;
  std::int64_t until_ms = 0;  // 0: no bound
  std::string_view after{};
  std::size_t limit = 100;
  bool by_age = false;  // all of them, the oldest first, instead of those that fit by time
};

struct ScheduleSettings {
  std::chrono::milliseconds timeout{300'000};  // of one run
  std::size_t max_schedules = 10'000;          // of one agent
  std::size_t max_running = 32;                // of one agent at once
  std::size_t max_payload_bytes = std::size_t{1} << 20;
  // Looks up time zones; tests set one that fails.
  Result<TimeZone> (*find_zone)(std::string_view name) = &TimeZone::find;
};

// A run to deliver.
struct ScheduleRun {
  std::uint64_t run = 0;  // names it in ended(); never reused
  std::string id;
  std::int64_t row = 0;  // of this run, which may be one of several of the schedule
  std::string callback;
  std::string body;  // of HEARTH_EVENT_SCHEDULE
  int attempt = 1;
  std::int64_t late_ms = 0;
  std::uint32_t missed = 0;
};

// The state of a schedule after a run, for logs and counts.
struct ScheduleEnd {
  std::string id;
  std::string callback;
  enum class Next { kGone, kRetry, kWaiting, kMissing, kCancelled } next{};
  std::int64_t next_ms = 0;
};

// For logs: occurrences that were skipped (misfire, overlap), rows that died, rows that were put
// off because there are no time zones now, and many rows due at once.
struct ScheduleNote {
  std::string id;
  std::string callback;
  enum class What { kMissed, kOverlapped, kDead, kPutOff, kManyDue } what{};
  std::uint64_t count = 1;
  std::string reason{};  // for kDead and kPutOff
};

}  // namespace hearth::durable
