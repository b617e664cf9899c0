#include "runtime/alarm_clock.hpp"

#include "base/error.hpp"
#include "durable/retry_policy.hpp"

#include <algorithm>
#include <string>
#include <utility>

namespace hearth::runtime {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kLongestAlarmWait{60'000};
constexpr milliseconds kNoRoomWait{1'000};
// The wait after a failure; each further failure doubles it. Up to a quarter is added at random.
constexpr milliseconds kFailureBase{4'000};
constexpr milliseconds kFailureCap{240'000};
// A larger backward step means that the wall clock was set back, not only slowed down.
constexpr milliseconds kSetBack{1'000};
// How often the time is noted on disk at most, while an agent must be awake later. A clock that is
// set back while the server is down is noticed by this note.
constexpr milliseconds kNoteEvery{1'000};

}  // namespace

AlarmClock::AlarmClock(const Parts& parts, Agents agents, std::size_t max_recovering,
                       std::size_t max_waking)
    : parts_(parts), agents_(std::move(agents)), recovery_(max_recovering), waking_(max_waking) {}

void AlarmClock::start() {
  is_running_ = true;
  run();
}

void AlarmClock::stop() {
  noted_.reset();
  notice_clock();
  is_running_ = false;
  timer_.cancel();
}

// ---- moments ------------------------------------------------------------------------------------

void AlarmClock::set_wake(const storage::AgentKey& key, const durable::Wake& wake) {
  parts_.wakes.set(key, wake);
  arm();
}

void AlarmClock::look_at(const storage::AgentKey& key, std::int64_t at_ms) {
  parts_.wakes.look_again(key, at_ms);
  arm();
}

void AlarmClock::look_again(const storage::AgentKey& key, milliseconds wait) {
  if (!known(key).none()) look_at(key, now_ms() + wait.count());
}

void AlarmClock::rest(const storage::AgentKey& key, const durable::Wake& wake,
                      std::optional<std::int64_t> next_look, milliseconds at_least) {
  if (wake.none()) return;
  const std::int64_t now = now_ms();
  // Work that was in progress ended with the instance: it is interrupted now.
  std::int64_t at = wake.working ? now : wake.at_ms.value_or(now);
  // An agent that waits in line to recover is woken at its turn. Woken sooner, it would only take
  // the room of another waiting agent, which would do the same.
  if (!wake.working && recovery_.waits(key))
    at = next_look.value_or(now + kLongestAlarmWait.count());
  look_at(key, std::max(at, now + at_least.count()));
}

void AlarmClock::hurry(std::string_view agent_class) {
  parts_.wakes.hurry(std::string(agent_class), now_ms());
  run();
}

// ---- agents that are due ----

void AlarmClock::run() {
  if (!is_running_) return;
  notice_clock();
  const std::int64_t now = now_ms();
  while (const std::optional<storage::AgentKey> key = parts_.wakes.due(now)) {
    parts_.wakes.taken(*key);
    look_at_due(*key, now);
  }
  admit_waiting();
  arm();
}

// A live agent begins its due work. A cold agent waits for the permit that it needs.
void AlarmClock::look_at_due(const storage::AgentKey& key, std::int64_t now_ms) {
  if (!agents_.is_cold(key)) return agents_.look(key);
  const durable::Wake wake = known(key);
  const bool is_due_by_time = wake.at_ms && *wake.at_ms <= now_ms;
  if (!wake.working || is_due_by_time) return waking_.wait(key);
  recovery_.wait(key);
  if (wake.at_ms) parts_.wakes.look_again(key, *wake.at_ms);  // which may come before its turn
}

void AlarmClock::admit(PermitKind kind) {
  if (line_of(kind).waiting() == 0 || std::exchange(step_waits_.of(kind), true)) return;
  const bool wakes = kind == PermitKind::kWaking;
  parts_.steps.add(wakes ? StepKind::kWaking : StepKind::kRecovery, [this, kind, wakes] {
    step_waits_.of(kind) = false;
    if (!is_running_) return;
    const std::optional<storage::AgentKey> key = line_of(kind).next();
    if (!key) return;  // the next permit calls this again
    if (agents_.is_cold(*key)) {
      wake_cold(*key, kind);
    } else if (wakes) {
      agents_.look(*key);
    } else {
      agents_.let_recover(*key);
    }
    admit(kind);
  });
}

void AlarmClock::wake_cold(const storage::AgentKey& key, PermitKind kind) {
  if (known(key).none()) return;                         // it was awake meanwhile, and is done
  if (parts_.loop.clock().steady_now() < room_again_) {  // thousands of agents ask once
    look_at(key, now_ms() + kNoRoomWait.count());
    return;
  }
  agents_.wake(key, kind);
}

// Rows hold wall-clock times. If the clock is set back by an hour, intervals and delays must not
// take an hour longer, and cron expressions may be due sooner. So each agent is looked at, and
// corrects its rows.
void AlarmClock::notice_clock() {
  const SteadyTime steady = parts_.loop.clock().steady_now();
  const std::int64_t now = now_ms();
  const std::int64_t offset =
      now - std::chrono::duration_cast<milliseconds>(steady.time_since_epoch()).count();
  const std::int64_t last = std::exchange(clock_offset_ms_, offset).value_or(offset);
  const bool is_set_back = offset < last - kSetBack.count();
  const bool is_noted = noted_ && steady - *noted_ < kNoteEvery;
  if (!is_set_back && (is_noted || !parts_.wakes.next_ms())) return;
  noted_ = steady;
  try {
    if (is_set_back)
      parts_.wakes.clock_was_set_back(now);
    else
      parts_.wakes.note_time(now);
  } catch (const StorageError&) {  // NOLINT(bugprone-empty-catch): the next write says so
    // The agents are due in memory, and the next note tries again.
  }
}

void AlarmClock::arm() {
  notice_clock();  // first: arm() postpones the timer that would notice it
  publish();
  timer_.cancel();
  const std::optional<std::int64_t> next = parts_.wakes.next_ms();
  if (!next || !is_running_) return;
  // Rows hold wall-clock times, and that clock may jump. A look now and then limits the delay after
  // a jump.
  const auto bounded = milliseconds(
      std::clamp<std::int64_t>(*next - now_ms(), 0, milliseconds(kLongestAlarmWait).count()));
  timer_ = LoopTimer(parts_.loop, parts_.loop.clock().steady_now() + bounded, [this] { run(); });
}

void AlarmClock::publish() {
  parts_.metrics.recovering.set(static_cast<std::int64_t>(recovery_.out()));
  parts_.metrics.waiting_for_recovery.set(static_cast<std::int64_t>(recovery_.waiting()));
  parts_.metrics.waiting_for_wake.set(static_cast<std::int64_t>(waking_.waiting()));
  parts_.metrics.pending_wakes.set(std::ssize(parts_.wakes));
  parts_.metrics.unknown_operations.set(parts_.wakes.unknown_operations());
}

// ---- failures and permits -----------------------------------------------------------------------

milliseconds AlarmClock::wait_after_failure(const storage::AgentKey& key) {
  return durable::back_off(++failures_[key], kFailureBase, kFailureCap, parts_.random);
}

void AlarmClock::take(HeldPermits& held, PermitKind kind) {
  held.of(kind) = line_of(kind).take();
}

void AlarmClock::ask_to_recover(const storage::AgentKey& key, HeldPermits& held) {
  if (held.recovery) return;
  if (recovery_.waiting() == 0 && recovery_.take()) {
    held.recovery = true;
  } else {
    recovery_.wait(key);
  }
  publish();
}

void AlarmClock::give_back(HeldPermits& held, bool still_recovers) {
  if (std::exchange(held.waking, false)) waking_.give_back();
  if (!still_recovers && std::exchange(held.recovery, false)) recovery_.give_back();
  publish();
  admit_waiting();
}

}  // namespace hearth::runtime
