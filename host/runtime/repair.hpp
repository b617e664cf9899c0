#pragma once
// hearth repair: makes the directory of agents and the wake index say what the agents' files say.

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
  std::size_t agents = 0;           // whose files are whole
  std::filesystem::path set_aside;  // where the damaged host.db is now; empty: it was not damaged
  std::vector<storage::AgentKey> listed;  // they have a file, and had no entry
  std::vector<storage::AgentKey>
      scheduled;  // they have work that the wake index did not know, or not so early
  std::vector<storage::AgentKey> missing;  // they have stored data, and their file is gone
  std::vector<storage::AgentKey>
      forgotten;                 // with forget_missing: the next client meets a new agent
  std::vector<Damaged> damaged;  // files that are no agent's, or lie in another agent's place
};

// Promises
//  P1 Safe side   No agent's data is changed. A wake of the index stays, or becomes earlier: an
//                 agent may wake without need.
//  P2 At once     Entries and wakes change together, or none of them does; with the device, as the
//                 agents' files.
//  P3 Explicit    An agent that has an entry and no file stays as it is, unless `forget_missing`:
//                 then nothing is left of it. Agents that are to be destroyed are left to the
//                 server.
//
// Bounded   Memory: the keys of all agents.  Threads  Any. Blocks: about 0.4 ms an agent.
// Failure   StorageError: something cannot be read, written or synced. Calling it again goes on.
[[nodiscard]] RepairReport repair(const storage::DataDirectory& data, bool forget_missing,
                                  const Clock& clock);

}  // namespace hearth::runtime
