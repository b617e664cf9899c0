#pragma once
// hearth repair: corrects the directory of agents and the wake index from the agents' files.

#include "storage/agent_key.hpp"

#include <cstddef>
#include <filesystem>
#include <string>
#include <vector>

namespace hearth {
class Clock;
}  // namespace hearth

namespace hearth::storage {
class DataDirectory;
}  // namespace hearth::storage

namespace hearth::runtime {

struct RepairReport {
  struct Damaged {
    std::filesystem::path file;
    std::string reason;
  };
  std::size_t agents = 0;                 // with an undamaged file
  std::filesystem::path set_aside;        // of the damaged host.db; empty: it was not damaged
  std::vector<storage::AgentKey> listed;  // had a file, but no entry
  std::vector<storage::AgentKey>
      scheduled;  // they have work that the wake index did not know, or not so early
  std::vector<storage::AgentKey> missing;  // have stored data, but their file is gone
  std::vector<storage::AgentKey>
      forgotten;                 // with forget_missing: the next client meets a new agent
  std::vector<Damaged> damaged;  // files of no agent, or in another agent's place
};

// Promises
//  P1 Safe side   No agent's data is changed, and a wake in the index stays or becomes earlier.
//  P2 At once     Entries and wakes change in one transaction, after the agents' files are on the
//                 device.
//  P3 Explicit    An agent with an entry and no file stays as it is, unless `forget_missing`
//                 removes it.
//
// P1: So an agent may wake without need.
// P3: Agents that are being destroyed are left to the server, except `restored`: it is listed.
//
// Bounded   Memory: the keys of all agents.  Threads  Any. Blocks: about 0.4 ms an agent.
// Failure   StorageError: a file cannot be read, written or synced. Calling it again continues.
[[nodiscard]] RepairReport repair(const storage::DataDirectory& data, bool forget_missing,
                                  const Clock& clock, const storage::AgentKey* restored = nullptr);

}  // namespace hearth::runtime
