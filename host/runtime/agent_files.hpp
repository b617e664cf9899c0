#pragma once
// Where an agent's file is, and what the directory of agents says about it.

#include "base/clock.hpp"
#include "base/logger.hpp"
#include "base/random.hpp"
#include "storage/agent_key.hpp"
#include "storage/kept.hpp"

#include <filesystem>

namespace hearth::storage {
class CopyMark;
class DataDirectory;
class Directory;
}  // namespace hearth::storage

namespace hearth::runtime {

// Threads    The shard's, except sync_names().
// Lifetime   The constructor arguments outlive it.
// Failure    Throws StorageError, also if the data directory is gone. note_kept() and note_active()
//            do not throw.
class AgentFiles {
 public:
  AgentFiles(const storage::DataDirectory& data, storage::Directory& directory, const Clock& clock,
             Logger& logger)
      : data_(data), directory_(directory), clock_(clock), logger_(logger) {}

  [[nodiscard]] std::filesystem::path path(const storage::AgentKey& key) const;

  // Before an agent's first commit: adds it to the directory.
  void record(const storage::AgentKey& key);

  // Lists the agent in the directory as an object with an id of its own. False: it is listed
  // already.
  bool record_object(const storage::AgentKey& key, Random& random);
  // The object was in memory until now. A failure is logged.
  void note_active(const storage::AgentKey& key);

  // DataDirectory::has_room() and note_full().
  [[nodiscard]] bool has_room() const;
  void note_full() const;

  [[nodiscard]] storage::CopyMark& copy_mark() const;

  // What the directory knows of the agent's file.
  [[nodiscard]] storage::Kept kept(const storage::AgentKey& key);
  // Data was committed to the agent's file. A failure is logged: a later loss of the file goes
  // unnoticed.
  void note_kept(const storage::AgentKey& key, storage::Kept kept);
  // Any thread: whether the names that lead to the file are on the device. Waits for the device.
  [[nodiscard]] bool sync_names(const storage::AgentKey& key) const;

 private:
  const storage::DataDirectory& data_;
  storage::Directory& directory_;
  const Clock& clock_;
  Logger& logger_;
};

}  // namespace hearth::runtime
