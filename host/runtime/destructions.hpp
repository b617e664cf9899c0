#pragma once
// Removes what is left of condemned agents: their files on another thread, the rest on the shard.

#include "runtime/alarm_clock.hpp"
#include "runtime/blocking_pool.hpp"
#include "runtime/condemned_agents.hpp"
#include "runtime/loop_timer.hpp"
#include "runtime/shard_loop.hpp"
#include "storage/agent_key.hpp"
#include "storage/sync_service.hpp"

#include <functional>
#include <memory>
#include <set>
#include <string>

namespace hearth::runtime {

// Promises
//  P1 Certain first  The mark that an agent is condemned is on the device before its files go from
//                    it: else a loss of power could leave an agent that is listed, and whose file
//                    is missing.
//  P2 Stubborn       Removing files that could not be removed is tried again every minute. Usually
//                    a person has to do something first.
//
// Threads    The shard's. Removing files waits for the device: that is done on a pool.
// Lifetime   What the constructor is given outlives it. Tasks of the loop that come after its
//            destruction do nothing.
class Destructions {
 public:
  struct Parts {
    ShardLoop& loop;
    CondemnedAgents& condemned;
    AlarmClock& alarms;
    BlockingPool* remover;  // null: files are removed here and now
    storage::SyncService& sync;
    std::shared_ptr<storage::SyncTarget> directory_wal;
    std::shared_ptr<const bool> alive;  // false: the shard is gone
  };
  // `is_in_memory`: its file may be open. `is_over`: an attempt of finish(key), or a retry, has
  // worked or failed.
  Destructions(Parts parts, std::function<bool(const storage::AgentKey&)> is_in_memory,
               std::function<void(const storage::AgentKey&)> is_over);

  // Removes what is left of a condemned agent that is not in memory. Does nothing while an attempt
  // is under way.
  void finish(const storage::AgentKey& key);
  // That of an agent whose end is under way, and whose database is closed. Then `done`, on the
  // shard, whether that has worked or not.
  void finish(const storage::AgentKey& key, const std::function<void()>& done);
  // Its files are being removed now.
  [[nodiscard]] bool under_way(const storage::AgentKey& key) const {
    return under_way_.contains(key);
  }
  // Those that an earlier process or attempt has left, in a while.
  void finish_later();
  // No attempt begins after this.
  void stop();

 private:
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
