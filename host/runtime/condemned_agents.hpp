#pragma once
// The agents of a shard that asked to be destroyed, until nothing is left of them.

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

// condemn(): a marker in host.db -> the agent leaves memory -> finish(): its files go -> its entry,
// its wake and the marker go, in one transaction
//
// Promises
//  P1 Certain    When condemn() has returned the agent does not come back, whatever ends the
//                process afterwards: what is left of it is finished by load(), before a client
//                can reach it and before any of its work can be due.
//  P2 No trace   After finish() no file of the agent and no row about it is left. (A directory of
//                two hex digits, which it shared with others, may stay.)
//  P3 Again      Each step may be done twice: one that was cut short is done again.
//  P4 Stubborn   Files that cannot be removed are reported, and the agent stays condemned:
//                contains() says so, and the shard must not wake it, since its data would come
//                back. retry() and the next load() try again.
//
// Cost       remove_files() waits for the device, the others do not.
// Threads    One shard's; remove_files() any.
// Lifetime   What the constructor is given outlives it.
class CondemnedAgents {
 public:
  CondemnedAgents(storage::Directory& directory, const storage::DataDirectory& data,
                  durable::WakeIndex& wakes, Logger& logger);

  // Finishes those that an earlier process has left and that `mine` says are this shard's. Once,
  // before the wakes are loaded. Throws StorageError if the directory cannot be read.
  void load(const std::function<bool(const storage::AgentKey&)>& mine);

  // With all agents below it, which share its shard. Throws StorageError; then none is condemned.
  void condemn(const storage::AgentKey& key);
  // Those below it that are condemned.
  [[nodiscard]] std::vector<storage::AgentKey> below(const storage::AgentKey& key) const;

  [[nodiscard]] bool contains(const storage::AgentKey& key) const { return keys_.contains(key); }
  [[nodiscard]] bool empty() const { return keys_.empty(); }

  // Removes the files of a condemned agent, which is not in memory. What went wrong, or "".
  [[nodiscard]] std::string remove_files(const storage::AgentKey& key) const;

  // Removes what else is left of it; `trouble` is what remove_files() has said. False: it stays
  // condemned, and the log says why.
  bool finish(const storage::AgentKey& key, const std::string& trouble);

  // All that are condemned, but for those that `in_memory` names: they are finished when they have
  // left.
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
