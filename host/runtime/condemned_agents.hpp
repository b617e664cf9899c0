#pragma once
// The agents of a shard that asked to be destroyed, until their data is removed: their files on
// another thread, the rest on the shard.

#include "base/logger.hpp"
#include "durable/wake_index.hpp"
#include "runtime/alarm_clock.hpp"
#include "runtime/blocking_pool.hpp"
#include "runtime/loop_timer.hpp"
#include "runtime/shard_loop.hpp"
#include "storage/agent_key.hpp"
#include "storage/data_directory.hpp"
#include "storage/directory.hpp"
#include "storage/sync_service.hpp"

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace hearth::runtime {

// condemn(): marker in host.db -> the agent leaves memory -> finish(): its files are removed ->
// its entry, its wake and the marker are removed, in one transaction
//
// Promises
//  P1 Certain    Once condemn() has returned the agent does not come back, even if the process ends
//                at any later moment.
//  P2 No trace   After finish() no file of the agent and no row about it is left.
//  P3 Again      Each step may be done twice: one that was cut short is done again.
//  P4 Stubborn   If files cannot be removed, the agent stays condemned, and this is tried again
//                every minute (every second while a backup copies them) and by the next load().
//
// P1: After a restart load() finishes the destruction, before a client can reach the agent and
// before any of its work can be due. The marker is on the device before the agent's files are
// removed: otherwise a loss of power could leave an agent that is listed and has no file.
// P2: A directory of two hex digits, which the agent shared with others, may stay.
// P4: The log has the failure. While a backup copies the files, calls and visits of the agent wait
// for at most kLongestCopy; after that they get "try again". The shard must not wake a condemned
// agent, because its data would come back.
//
// Threads    One shard's. Removing files waits for the device, so a pool does it.
// Lifetime   The parts outlive it. Tasks of the loop that run after its destruction do nothing.
class CondemnedAgents {
 public:
  static constexpr std::chrono::seconds kLongestCopy{10};

  struct Parts {
    storage::Directory& directory;
    const storage::DataDirectory& data;
    durable::WakeIndex& wakes;
    Logger& logger;
    ShardLoop& loop;
    AlarmClock& alarms;
    BlockingPool* remover;  // null: this shard removes the files, inside the call
    storage::SyncService& sync;
    std::shared_ptr<storage::SyncTarget> directory_wal;
    std::shared_ptr<const bool> alive;  // false: the shard is gone
    // The agent's file may be open.
    std::function<bool(const storage::AgentKey&)> is_in_memory;
    // An attempt of finish(key), or a retry, has succeeded or failed.
    std::function<void(const storage::AgentKey&)> is_over;
  };
  explicit CondemnedAgents(Parts parts) : parts_(std::move(parts)) {}

  // Finishes the destructions that an earlier process has left and `mine` assigns to this shard.
  // Once, before the wakes are loaded. Throws StorageError if the directory cannot be read.
  void load(const std::function<bool(const storage::AgentKey&)>& mine);

  // Condemns the agent and all agents below it, which share its shard. Throws StorageError; then no
  // agent is condemned.
  void condemn(const storage::AgentKey& key);
  // The condemned agents below it.
  [[nodiscard]] std::vector<storage::AgentKey> below(const storage::AgentKey& key) const;

  [[nodiscard]] bool contains(const storage::AgentKey& key) const { return keys_.contains(key); }
  [[nodiscard]] bool empty() const { return keys_.empty(); }

  // Removes the rest of a condemned agent that is not in memory. Does nothing while an attempt is
  // in progress, or a backup copies its files.
  void finish(const storage::AgentKey& key);
  // The same for an agent whose end is in progress and whose database is closed. Then calls `done`
  // on the shard, also after a failure.
  void finish(const storage::AgentKey& key, const std::function<void()>& done);
  // The agent's files are being removed now, or will be once they are copied.
  [[nodiscard]] bool is_under_way(const storage::AgentKey& key) const;
  // Later, finishes destructions that an earlier process or attempt has left.
  void finish_later(std::chrono::seconds delay = std::chrono::minutes(1));
  // No attempt begins after this.
  void stop();

 private:
  [[nodiscard]] std::string remove_files(const storage::AgentKey& key, bool waits_for_marker) const;
  // False: the agent stays condemned, and the log says why.
  bool forget(const storage::AgentKey& key, const std::string& trouble);

  [[nodiscard]] bool must_wait_for_copy(const storage::AgentKey& key);

  const Parts parts_;
  std::set<storage::AgentKey> keys_;
  std::set<storage::AgentKey> under_way_;
  std::map<storage::AgentKey, SteadyTime> copied_until_;
  std::optional<SteadyTime> looks_at_;  // when timer_ fires
  bool stopped_ = false;
  LoopTimer timer_;
};

}  // namespace hearth::runtime
