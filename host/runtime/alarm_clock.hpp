#pragma once
// When each agent of a shard must be awake next, and which agents may wake or recover now.

#include "base/random.hpp"
#include "durable/wake_index.hpp"
#include "runtime/loop_timer.hpp"
#include "runtime/paced_steps.hpp"
#include "runtime/permits.hpp"
#include "runtime/shard_loop.hpp"
#include "runtime/shard_metrics.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <unordered_map>

namespace hearth::runtime {

// permits.hpp says what each kind is for.
enum class PermitKind : std::uint8_t { kRecovery, kWaking };

// The permits that an agent holds.
struct HeldPermits {
  bool recovery = false;
  bool waking = false;

  [[nodiscard]] bool& of(PermitKind kind) {
    return kind == PermitKind::kWaking ? waking : recovery;
  }
  [[nodiscard]] bool any() const { return recovery || waking; }
};

// One timer for the nearest moment of all agents. A live agent is told to look. A cold agent waits
// for a permit and is woken in its turn. Thousands may be due at once, so each wake is a step of
// the shard's PacedSteps.
//
// Classes take turns (durable/wake_index.hpp, permits.hpp), so that many agents of one class do not
// delay an agent of another. Agents that failed together retry at different times:
// durable/retry_policy.hpp adds a random part to each wait.
//
// Threads    The shard's.
// Lifetime   All that the constructor is given outlives it.
// Failure    set_wake() throws StorageError.
class AlarmClock {
 public:
  struct Parts {
    ShardLoop& loop;
    durable::WakeIndex& wakes;
    PacedSteps& steps;
    ShardMetrics& metrics;
    Random& random;
  };
  // The agents of its shard.
  struct Agents {
    std::function<bool(const storage::AgentKey& key)> is_cold;
    // The agent is not cold, and some of its work is due.
    std::function<void(const storage::AgentKey& key)> look;
    // The agent is not cold, and it is its turn to recover. It takes the permit if it can use it.
    std::function<void(const storage::AgentKey& key)> let_recover;
    // The agent is cold, and a permit of this kind is free. It takes the permit if it wakes.
    std::function<void(const storage::AgentKey& key, PermitKind kind)> wake;
  };
  AlarmClock(const Parts& parts, Agents agents, std::size_t max_recovering, std::size_t max_waking);

  // From now on agents are woken.
  void start();
  // No agent is woken any more.
  void stop();

  // ---- moments ----
  [[nodiscard]] durable::Wake known(const storage::AgentKey& key) const {
    return parts_.wakes.find(key);
  }
  // Of all agents that the wake index has.
  void each_known(
      const std::function<void(const storage::AgentKey&, const durable::Wake&)>& see) const {
    parts_.wakes.each(see);
  }
  void set_wake(const storage::AgentKey& key, const durable::Wake& wake);
  // It will be looked at, at some moment.
  [[nodiscard]] bool is_scheduled(const storage::AgentKey& key) const {
    return parts_.wakes.is_scheduled(key);
  }
  // Looks at this agent again at that moment (Unix milliseconds), even if nothing of it is due.
  void look_at(const storage::AgentKey& key, std::int64_t at_ms);
  // The agent could not be woken: tries again after `wait`, if the agent must be awake at all.
  void look_again(const storage::AgentKey& key, std::chrono::milliseconds wait);
  // The agent is cold now: schedules its next wake, not before `at_least` from now. `next_look`:
  // DurableWork::next_look_ms() at its end.
  void rest(const storage::AgentKey& key, const durable::Wake& wake,
            std::optional<std::int64_t> next_look, std::chrono::milliseconds at_least);
  // Looks at the agents of this class now.
  void hurry(std::string_view agent_class);

  // ---- failures ----
  // How long to wait after one more failure of an agent: longer each time, until it has started or
  // is gone.
  std::chrono::milliseconds wait_after_failure(const storage::AgentKey& key);
  void forget_failures(const storage::AgentKey& key) { failures_.erase(key); }
  // There was no room: no cold agent is woken before `until`.
  void no_room_until(SteadyTime until) { room_again_ = until; }

  // ---- permits ----
  // The permit for which the agent stands in line; nothing: it does not.
  [[nodiscard]] std::optional<PermitKind> awaited_permit(const storage::AgentKey& key) const {
    if (waking_.waits(key)) return PermitKind::kWaking;
    if (recovery_.waits(key)) return PermitKind::kRecovery;
    return std::nullopt;
  }
  void take(HeldPermits& held, PermitKind kind);
  // Takes a permit for an agent that must recover; if none is free, the agent waits in line for
  // let_recover().
  void ask_to_recover(const storage::AgentKey& key, HeldPermits& held);
  // An agent that still recovers keeps its recovery permit.
  void give_back(HeldPermits& held, bool still_recovers);

 private:
  void run();
  void look_at_due(const storage::AgentKey& key, std::int64_t now_ms);
  void admit_waiting() {
    admit(PermitKind::kWaking);
    admit(PermitKind::kRecovery);
  }
  void admit(PermitKind kind);
  void wake_cold(const storage::AgentKey& key, PermitKind kind);
  void notice_clock();
  void arm();
  void publish();  // to the metrics
  [[nodiscard]] Permits& line_of(PermitKind kind) {
    return kind == PermitKind::kWaking ? waking_ : recovery_;
  }
  [[nodiscard]] std::int64_t now_ms() const { return unix_millis(parts_.loop.clock().wall_now()); }

  const Parts parts_;
  const Agents agents_;
  Permits recovery_;
  Permits waking_;
  bool is_running_ = false;
  LoopTimer timer_;
  HeldPermits step_waits_;  // a step that admits an agent for a permit of this kind
  SteadyTime room_again_{};
  std::unordered_map<storage::AgentKey, int> failures_;  // in a row
  std::optional<std::int64_t> clock_offset_ms_;          // wall minus steady, at the last look
  std::optional<SteadyTime> noted_;                      // when the time was last noted on disk
};

}  // namespace hearth::runtime
