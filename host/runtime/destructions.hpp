#pragma once
// Removes what is left of condemned agents: their files on another thread, the rest on the shard.

#include "runtime/alarm_clock.hpp"
#include "runtime/blocking_pool.hpp"
#include "runtime/condemned_agents.hpp"
#include "runtime/loop_timer.hpp"
#include "runtime/shard_loop.hpp"
#include "storage/agent_key.hpp"
#include "storage/sync_service.hpp"

#include <chrono>
#include <functional>
#include <memory>
#include <set>
#include <string>

namespace hearth::runtime {

// Promises
//  P1 Certain first  The mark that an agent is condemned is on the device before the agent's files
//                    are removed.
//  P2 Stubborn       If files cannot be removed, this is tried again every minute, or in a second
//                    if a backup copies them first.
//
// P1: Otherwise a loss of power could leave an agent that is listed and has no file.
// P2: Usually an operator has to repair something first.
//
// Threads    The shard's. Removing files waits for the device, so a pool does it.
// Lifetime   The constructor arguments outlive it. Tasks of the loop that run after its destruction
//            do nothing.
class Destructions {
 public:
  struct Parts {
    ShardLoop& loop;
    CondemnedAgents& condemned;
    AlarmClock& alarms;
    BlockingPool* remover;  // null: this shard removes the files, inside the call
    storage::SyncService& sync;
    std::shared_ptr<storage::SyncTarget> directory_wal;
    std::shared_ptr<const bool> alive;  // false: the shard is gone
  };
  // `is_in_memory`: the agent's file may be open. `is_over`: an attempt of finish(key), or a retry,
  // has succeeded or failed.
  Destructions(Parts parts, std::function<bool(const storage::AgentKey&)> is_in_memory,
               std::function<void(const storage::AgentKey&)> is_over);

  // Removes the rest of a condemned agent that is not in memory. Does nothing while an attempt is
  // in progress.
  void finish(const storage::AgentKey& key);
  // The same for an agent whose end is in progress and whose database is closed. Then calls `done`
  // on the shard, also after a failure.
  void finish(const storage::AgentKey& key, const std::function<void()>& done);
  // The agent's files are being removed now.
  [[nodiscard]] bool under_way(const storage::AgentKey& key) const {
    return under_way_.contains(key);
  }
  // Later, finishes destructions that an earlier process or attempt has left.
  void finish_later();
  // No attempt begins after this.
  void stop();

 private:
  void finish_later(std::chrono::seconds delay);
  [[nodiscard]] std::string remove_files(const storage::AgentKey& key) const;

  const Parts parts_;
  const std::function<bool(const storage::AgentKey&)> is_in_memory_;
  const std::function<void(const storage::AgentKey&)> is_over_;
  std::set<storage::AgentKey> under_way_;
  bool waits_ = false;  // timer_ runs
  bool stopped_ = false;
  LoopTimer timer_;
};

}  // namespace hearth::runtime
