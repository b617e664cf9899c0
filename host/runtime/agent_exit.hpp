#pragma once
// The way out of an agent, whatever the reason: it is asked to leave, it ends, it is gone.

#include "runtime/agent_place.hpp"
#include "runtime/agent_work.hpp"

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>

namespace hearth::runtime {

enum class StepKind : std::uint8_t;

// The error for a call in progress. After a destruction it must not invite a retry: the retry would
// meet a new agent.
[[nodiscard]] Error why_it_ended(EvictReason reason);

// An agent that has just become cold.
struct GoneAgent {
  Ending how;  // its instance is destroyed
  bool destroyed = false;
  bool awaits_removal = false;  // condemned while another thread closed its database
};

// Threads    The shard's. The end comes from the loop: the caller may still be using the live
//            agent.
class AgentExit {
 public:
  // `gone`: called from the loop.
  AgentExit(AgentPlace& place, AgentWork& work, std::function<void(GoneAgent gone)> gone)
      : place_(place), work_(work), gone_(std::move(gone)) {}

  // Begins the eviction of a live agent; does nothing in any other state. `grace`: for EVICT; 0: no
  // EVICT is sent. Without it: as the class says.
  void evict(EvictReason reason, std::chrono::milliseconds grace) { leave(reason, grace, false); }
  void evict(EvictReason reason);
  // Ends the agent without EVICT, also while it starts or leaves. Does nothing if the agent is not
  // in memory or its end is certain.
  void end(EvictReason reason) { begin(Ending{.reason = reason}); }
  void begin(Ending how);
  // An event or a visit waits for this agent now.
  void hurry();
  // Work of the agent is due, for which it has to be woken again: its turn to end is soon.
  void hurry_for_work();

  // ---- another version of its class, or none ----
  // The agent has to leave its version, for `reason`: before its next event, at leave_here(), or
  // once it has started. With `when_idle`, it leaves at its next idle moment instead of before its
  // next event.
  void must_leave(EvictReason reason, bool when_idle);
  // A live agent leaves and comes back on the version under trial if the trial has a place: now, or
  // when it is idle.
  void may_try(const std::shared_ptr<VersionTrial>& trial);
  // The agent leaves now if it must, idle or not.
  void leave_now();
  // It leaves now if it waits for an idle moment, and this is one.
  void leave_if_idle();
  // The same as leave_now(), from a task of the loop, with none of the agent's code on the stack. A
  // sudden eviction is over when this returns, except for closing files on another thread: so a
  // caller that paces many evictions knows the cost of each.
  void leave_here();
  // The agent leaves without EVICT, even while it is starting.
  void leave_suddenly(EvictReason reason);

 private:
  // What must be known of the instance when it is gone.
  struct Rest {
    durable::Wake next_wake;
    std::optional<std::int64_t> next_look;  // Unix milliseconds
    std::chrono::milliseconds at_least{0};
    bool destroyed = false;
  };
  void leave(EvictReason reason, std::chrono::milliseconds grace, bool wake_again);
  [[nodiscard]] bool is_idle(const Live& live) const;
  // Leaves now: the agent is idle, or the trial does not wait for idle agents.
  void leave_for_version(Live& live);
  // Ends the agent if its end is certain and not in progress.
  void end_now();
  // From the loop; with `turn` as one of the paced steps of this kind, so it may be late.
  void end_soon(std::optional<StepKind> turn = std::nullopt);
  void finish_end();
  // The last answers have left.
  void end_instance(Rest rest);
  // The database is closed; `trouble` says what went wrong, or is empty.
  void closed(const Rest& rest, const std::string& trouble);
  // The agent has left memory: metrics, Admission and its version count it.
  void count_gone(const Ending& ending, bool destroyed);
  void schedule_next(const Ending& ending, const Rest& rest);

  AgentPlace& place_;
  AgentWork& work_;
  const std::function<void(GoneAgent gone)> gone_;
};

}  // namespace hearth::runtime
