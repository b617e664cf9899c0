#pragma once
// A piece of durable work that is due and begins now, as an event of the agent; and what the end of
// the event says about it.

#include "base/error.hpp"
#include "durable/job_line.hpp"
#include "extensions/durable_events.hpp"
#include "extensions/types.hpp"

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace hearth::extensions {

// kind               in progress at once           outcomes of the event
// kSchedule          schedules.max_running         OK; NOT_FOUND, UNSUPPORTED: no such callback;
//                                                  UNREADABLE: its payload; both wait for code.
//                                                  FINAL: no retry; any other error
// kQueueItem         1                             the same
// kFiberSettled      8                             OK, UNSUPPORTED: told; else told again later
// kOperationUnknown  1                             OK, NOT_FOUND, UNSUPPORTED: told; else the next
//                                                  instance tells it again
// kFibersRecovered   1, once an instance           OK: a plan; else no plan
// kFiberRecovered    1, or as the plan says        OK, with an outcome; NOT_FOUND, UNSUPPORTED,
//                                                  UNREADABLE: it waits for another version. FINAL:
//                                                  it is dead; any other error. Or continued()
//                                                  before
struct DueWork {
  EventKind kind{};
  std::string id;  // of the schedule, item, fiber or operation; empty: a plan of several fibers
  std::uint64_t run = 0;  // kSchedule: the run's number; kFiberRecovered: the offer's
  std::int64_t row = 0;   // its WorkMark::row
  std::string name{};     // of the event
  std::string body{};
  std::chrono::milliseconds timeout{};
  std::optional<DurableEvent> step{};  // WorkDelivery reports it once the claim is on disk
  std::string trace{};  // the trace that it belongs to: see WorkReports::keep_trace()
};

[[nodiscard]] inline bool has_code(const Result<std::string_view>& outcome, Errc code) {
  return outcome.has_error() && outcome.error().code == code;
}

// The class has no such callback.
[[nodiscard]] inline bool is_missing(const Result<std::string_view>& outcome) {
  return has_code(outcome, Errc::kNotFound) || has_code(outcome, Errc::kUnsupported);
}

// This version of the class cannot do it: another one may.
[[nodiscard]] inline bool needs_code(const Result<std::string_view>& outcome) {
  return is_missing(outcome) || has_code(outcome, Errc::kUnreadable);
}

[[nodiscard]] inline durable::TryOutcome how_ended(const Result<std::string_view>& outcome) {
  using durable::TryOutcome;
  if (outcome) return TryOutcome::kDone;
  if (needs_code(outcome)) return TryOutcome::kNeedsCode;
  return has_code(outcome, Errc::kFinal) ? TryOutcome::kHopeless : TryOutcome::kFailed;
}

}  // namespace hearth::extensions
