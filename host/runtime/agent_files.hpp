#pragma once
// Where an agent's file is, and what the directory of agents says about it.

#include "base/clock.hpp"
#include "base/logger.hpp"
#include "base/random.hpp"
#include "storage/agent_key.hpp"
#include "storage/data_directory.hpp"
#include "storage/directory.hpp"
#include "storage/kept.hpp"

namespace hearth::runtime {

// Threads    The shard's.
// Lifetime   The constructor arguments outlive it.
// Failure    Throws StorageError, also if the data directory is gone. note_kept() and note_active()
//            do not throw.
class AgentFiles {
 public:
  AgentFiles(const storage::DataDirectory& data, storage::Directory& directory, const Clock& clock,
             Logger& logger)
      : data_(data), directory_(directory), clock_(clock), logger_(logger) {}

  [[nodiscard]] const storage::DataDirectory& data() const { return data_; }

  // Before an agent's first commit: adds it to the directory.
  void record(const storage::AgentKey& key);

  [[nodiscard]] bool lists(const storage::AgentKey& key) { return directory_.contains(key); }

  // Lists the agent in the directory as an object with an id of its own. False: it is listed
  // already.
  bool record_object(const storage::AgentKey& key, Random& random);
  // The object was in memory until now. A failure is logged.
  void note_active(const storage::AgentKey& key);

  // What the directory knows of the agent's file.
  [[nodiscard]] storage::Kept kept(const storage::AgentKey& key);
  // Data was committed to the agent's file. A failure is logged: a later loss of the file goes
  // unnoticed.
  void note_kept(const storage::AgentKey& key, storage::Kept kept);

 private:
  const storage::DataDirectory& data_;
  storage::Directory& directory_;
  const Clock& clock_;
  Logger& logger_;
};

}  // namespace hearth::runtime
