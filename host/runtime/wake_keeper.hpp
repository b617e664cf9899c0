#pragma once
// What the wake index knows of one live agent.

#include "base/logger.hpp"
#include "durable/wake.hpp"
#include "runtime/alarm_clock.hpp"
#include "storage/agent_key.hpp"

namespace hearth::runtime {

// Keeps the index on the safe side of what the agent needs: the index may wake an agent without
// need, and never too late.
//
// Promises
//  P1 Before   before_commit() tells the index of a nearer wake, so that it is there before the
//              rows that need it.
//  P2 After    after_commit() tells the index of a later wake, or of none.
//  P3 Quiet    An exact wake is not written again.
//
// Threads    The shard's.
// Lifetime   What the constructor is given outlives it.
// Failure    before_commit() and keep() throw StorageError; then the index has what it had.
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
  // The rows that allow `wake` are as durable as the class asks. A failure is logged.
  void after_commit(const durable::Wake& wake);
  // The agent leaves memory, and its rows are as durable as the class asks. `rest`: of its rows
  // alone; what it worked on is still known. A failure is logged.
  void at_end(const durable::Wake& rest);
  // No row has to do with it.
  void keep(const durable::Wake& wake);

 private:
  void tell(const durable::Wake& wake);

  AlarmClock& alarms_;
  Logger& logger_;
  const storage::AgentKey& key_;
  durable::Wake known_;  // as the index has it
};

}  // namespace hearth::runtime
