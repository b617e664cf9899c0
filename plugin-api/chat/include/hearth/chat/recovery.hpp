#pragma once
// Whether an interrupted turn goes on, and when. Duration is never a bound: a turn that progresses
// goes on for ever.

#include <hearth/fields.hpp>
#include <hearth/json.hpp>
#include <hearth/time.hpp>

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace hearth::chat {

struct RecoveryConfig {
  int max_attempts = 10;  // so many interruptions without progress end the turn
  std::int64_t no_progress_timeout_ms = 300'000;
  // Work since the incident began. Absent: any; 0: the turn may be repeated, but not be interrupted
  // once more after it has made anything.
  std::optional<std::int64_t> max_recovery_work = {};
  std::int64_t stable_timeout_ms = 10'000;  // how long an attempt waits for frames before it
  // What the client reads when the turn is given up.
  std::string terminal_message =
      "The assistant was interrupted and could not recover. Please try again.";
  HEARTH_FIELDS(max_attempts, no_progress_timeout_ms, max_recovery_work, stable_timeout_ms,
                terminal_message)
};

// Interruptions within this time that bring no progress count once, so that a row of restarts does
// not use up the attempts.
inline constexpr std::chrono::seconds kDebounce{30};
inline constexpr std::chrono::seconds kMaxBackoff{30};
inline constexpr std::chrono::seconds kMaxRetryAfter{60};
// Until an attempt that had to wait for too long is made again.
inline constexpr std::chrono::seconds kUnstableDelay{3};

// Of one turn, from its first interruption to its end. A value that the turn's row keeps.
struct Incident {
  int attempt = 0;       // since the last progress; 0: the turn was never interrupted
  int failed_calls = 0;  // stalls and failures since the last progress, for the backoff
  std::int64_t first_seen_ms = 0;
  std::int64_t last_counted_ms = 0;  // when `attempt` was set
  std::int64_t last_progress_ms = 0;
  std::int64_t not_before_ms = 0;  // the attempt that was promised last
  std::int64_t progress = 0;       // the turn's counters at the last interruption ...
  std::int64_t first_work = 0;     // ... and at the first one
  bool is_shown = false;           // clients know that the turn recovers
  std::string exhausted = {};      // with this reason on_exhausted has been called
  HEARTH_FIELDS(attempt, failed_calls, first_seen_ms, last_counted_ms, last_progress_ms,
                not_before_ms, progress, first_work, is_shown, exhausted)
};

enum class Trigger : std::uint8_t {
  kRestart,   // of the server, the agent or its library
  kStall,     // no chunk came within stall_timeout_ms
  kFailure,   // of a kind that may pass: may_pass()
  kUnstable,  // frames before the attempt were not handled within stable_timeout_ms
};

struct Interruption {
  Trigger trigger = Trigger::kRestart;
  // Counters of the turn that only grow: rows of its log, and those of them with is_progress().
  std::int64_t work = 0;
  std::int64_t progress = 0;
  bool awaits_client = false;  // a client's tool or an approval is open
  std::optional<std::chrono::milliseconds> retry_after = {};
};

enum class GiveUp : std::uint8_t {
  kWorkBudgetExceeded,
  kNoProgressTimeout,
  kRecoveryAborted,  // the hook should_keep_recovering said so, not judge()
  kMaxAttemptsExceeded,
  kStableTimeout,
};

// "no_progress_timeout" and so on.
[[nodiscard]] std::string_view reason_text(GiveUp reason) noexcept;

struct Verdict {
  Incident incident;              // to be kept
  std::optional<GiveUp> give_up;  // nothing: the turn goes on
  Time at = {};                   // when it goes on, not before `now`
  bool asks_hook = false;         // should_keep_recovering decides as well
  std::int64_t work = 0;          // since the incident began, for the hooks
};

// The bounds, in this order: work, time without progress, attempts. An interruption while a client
// is awaited costs nothing and is never given up.
[[nodiscard]] Verdict judge(const Incident& incident, const Interruption& interruption,
                            const RecoveryConfig& config, Time now);

// Whether a chunk shows that the turn gets on. `keeps_all`: a cut answer is fetched on, so that
// thoughts and the beginnings of calls are not lost with it.
[[nodiscard]] bool is_progress(const Json& chunk, bool keeps_all);

}  // namespace hearth::chat
