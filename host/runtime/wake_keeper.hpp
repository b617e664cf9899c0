#pragma once
// What the wake index knows of one live agent.

#include "base/logger.hpp"
#include "durable/wake.hpp"
#include "runtime/alarm_clock.hpp"
#include "storage/agent_key.hpp"

namespace hearth::runtime {

// Keeps the index on the safe side: it may wake an agent without need, but never too late.
//
// Promises
//  P1 Before  before_commit() writes a nearer wake to the index, so that it is there before the
//             rows that need it.
//  P2 After   after_commit() writes a later wake, or none, to the index.
//  P3 Quiet   A wake that the index has already is not written again.
//
// Threads    The shard's.
// Lifetime   The constructor arguments outlive it.
// Failure    before_commit() and keep() throw StorageError; then the index is unchanged.
class WakeKeeper {
 public:
  WakeKeeper(AlarmClock& alarms, Logger& logger, const storage::AgentKey& key)
      : alarms_(alarms), logger_(logger), key_(key), known_(alarms.known(key)) {}

  // The index would wake the agent too late for `wake`.
  [[nodiscard]] bool is_late_for(const durable::Wake& wake) const {
    return wake.earlier_than(known_);
  }
  // True: the index was written.
  bool before_commit(const durable::Wake& wake);
  // The rows behind `wake` are as durable as the class asks. A failure is logged.
  void after_commit(const durable::Wake& wake);
  // The agent leaves memory, and its rows are as durable as the class asks. `rest`: the wake from
  // its rows alone; the work in progress is still known. A failure is logged.
  void at_end(const durable::Wake& rest);
  // For a wake that no row depends on.
  void keep(const durable::Wake& wake);

 private:
  void tell(const durable::Wake& wake);

  AlarmClock& alarms_;
  Logger& logger_;
  const storage::AgentKey& key_;
  durable::Wake known_;  // as the index has it
};

}  // namespace hearth::runtime
