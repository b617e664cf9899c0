#pragma once
// The agents of a shard that asked to be destroyed, until their data is removed.

#include "base/logger.hpp"
#include "durable/wake_index.hpp"
#include "storage/agent_key.hpp"
#include "storage/data_directory.hpp"
#include "storage/directory.hpp"

#include <functional>
#include <set>
#include <string>
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
//  P4 Stubborn   If files cannot be removed, the agent stays condemned: contains() is true,
//                unfinished() lists it for a retry, and the next load() tries again.
//
// P1: After a restart load() finishes the destruction, before a client can reach the agent and
// before any of its work can be due.
// P2: A directory of two hex digits, which the agent shared with others, may stay.
// P4: The failure is reported. The shard must not wake a condemned agent, because its data would
// come back.
//
// Cost       remove_files() waits for the device, the others do not.
// Threads    One shard's; remove_files() any.
// Lifetime   The constructor arguments outlive it.
class CondemnedAgents {
 public:
  CondemnedAgents(storage::Directory& directory, const storage::DataDirectory& data,
                  durable::WakeIndex& wakes, Logger& logger);

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

  // False: a backup copies the files first, early.
  [[nodiscard]] bool may_remove_files(const storage::AgentKey& key) const;
  // Removes the files of a condemned agent that is not in memory. Returns what went wrong, or "".
  [[nodiscard]] std::string remove_files(const storage::AgentKey& key) const;

  // Removes the rest of the agent; `trouble` is the result of remove_files(). False: the agent
  // stays condemned, and the log says why.
  bool finish(const storage::AgentKey& key, const std::string& trouble);

  // All condemned agents, without those that are in memory according to `in_memory`: those are
  // finished when they have left.
  [[nodiscard]] std::vector<storage::AgentKey> unfinished(
      const std::function<bool(const storage::AgentKey&)>& in_memory) const;

 private:
  storage::Directory& directory_;
  const storage::DataDirectory& data_;
  durable::WakeIndex& wakes_;
  Logger& logger_;
  std::set<storage::AgentKey> keys_;
};

}  // namespace hearth::runtime
