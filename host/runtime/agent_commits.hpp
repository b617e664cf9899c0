#pragma once
// How the writes of one live agent become durable, in an order that loses nothing.

#include "base/logger.hpp"
#include "base/stop_point.hpp"
#include "durable/wake.hpp"
#include "runtime/agent_files.hpp"
#include "runtime/alarm_clock.hpp"
#include "runtime/durability_gate.hpp"
#include "storage/agent_database.hpp"
#include "storage/kept.hpp"

#include <cstdint>
#include <memory>
#include <string>

namespace hearth::runtime {

// Promises
//  P1 Listed   The directory lists the agent before its first commit.
//  P2 In time  The wake index has a nearer wake before the commit of the rows that need it, and
//              loses a wake only after the commit of the rows without it.
//  P3 Power    With a gate, the gate hears of each write to the directory, so that effects wait for
//              it too.
//
// P2: So the index may wake the agent without need, but never too late.
//
// Threads    The shard's, except close().
// Lifetime   The parts outlive it.
// Failure    StorageError, except close(); then the index is unchanged. That a wake could not be
//            taken from it is only logged.
class AgentCommits {
 public:
  struct Parts {
    AgentFiles& files;
    AlarmClock& alarms;
    Logger& logger;
    const storage::AgentKey& key;
    storage::AgentDatabase& database;
  };

  // `kept`: what the directory knew of the file before it was opened. `gate` null: durability
  // `process`.
  AgentCommits(const Parts& parts, storage::Kept kept, std::unique_ptr<DurabilityGate> gate);

  [[nodiscard]] DurabilityGate* gate() const { return gate_.get(); }
  // Places that the open turn has passed.
  [[nodiscard]] StopPointsAtCommit& stops() { return stops_; }

  // Before the first turn. True: an earlier process did not close this agent, so nothing that
  // depends on its data may leave before the next commit is durable.
  [[nodiscard]] bool must_hold_back();
  // The directory lists the agent from now on.
  void record();
  // The directory was written for this agent. `is_awaited`: the agent's effects wait until the next
  // commit makes that durable.
  void directory_was_written(bool is_awaited);

  // Whether something waits for a commit. `wake` is a function without arguments.
  template <class WakeNow>
  [[nodiscard]] bool dirty(const WakeNow& wake) const {
    // Effects must not leave before the nearer wake that they depend on, even if no row holds it.
    return parts_.database.dirty() || directory_dirty_ || (gate_ && wake().earlier_than(known_));
  }
  void commit(const durable::Wake& wake);
  // Every commit would survive a loss of power. `wake`: if nothing waits for a commit; else null.
  void all_durable(const durable::Wake* wake);
  // For a wake that no row depends on.
  void keep(const durable::Wake& wake) {
    if (wake != known_) tell(wake);
  }
  // The agent leaves memory, and everything is committed. `rest`: the wake from its rows alone; the
  // work in progress is still known.
  void at_end(const durable::Wake& rest);
  // Once, on any thread, when nothing else uses this object: moves the WAL into the file, which
  // waits for the device, and closes the file. Returns what went wrong, or "". All that is
  // committed is on disk in any case.
  std::string close();
  // After close(): the stored data and the names that lead to it are on the device, and the
  // directory does not know that yet.
  [[nodiscard]] bool kept_at_end() const { return kept_at_end_; }

  // The last committed write of the state (AgentDatabase::state_writes()); 0: none.
  [[nodiscard]] std::uint64_t state_writes() const { return state_writes_; }

 private:
  void note_kept(storage::Kept kept);
  // The rows behind `wake` are as durable as the class asks.
  void tell_later(const durable::Wake& wake);
  void tell(const durable::Wake& wake);

  const Parts parts_;
  const std::unique_ptr<DurabilityGate> gate_;
  durable::Wake known_;  // as the index has it
  StopPointsAtCommit stops_;
  storage::Kept kept_;  // as the directory knows it
  bool recorded_;       // the directory lists the agent
  bool directory_dirty_ = false;
  bool kept_at_end_ = false;
  std::uint64_t state_writes_ = 0;
};

}  // namespace hearth::runtime
