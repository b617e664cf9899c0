#pragma once
// Files of the operator that the server reads again while it runs: certificates, tokens, keys.

#include "base/logger.hpp"
#include "base/mutex.hpp"
#include "config/config.hpp"
#include "plugins/versions/directory_watcher.hpp"

#include <filesystem>
#include <functional>
#include <memory>
#include <vector>

namespace hearth::server {

// Files that are read together. `read_again` must not throw.
struct FileGroup {
  std::vector<std::filesystem::path> files;  // empty paths are ignored
  std::function<void()> read_again;
};

// A group is read again when one of its files has changed. reload() (SIGHUP) reads all groups
// again. A file that was removed changes nothing.
//
// Threads   reload() from any. Groups are read one at a time, on the watcher's thread or in
//           reload().
// Lifetime  The objects that the groups use outlive it.
class WatchedFiles {
 public:
  // `known`: from image(), before the files were read. With `reload.watch` off only reload() reads
  // them again.
  WatchedFiles(std::vector<FileGroup> groups, plugins::DirectoryImage known,
               const config::ReloadConfig& reload, Logger& logger);

  void reload();

  // The present stamps of the files that a configuration names. For a link it is the stamp of its
  // target: tools that renew certificates move links.
  [[nodiscard]] static plugins::DirectoryImage image(const config::ServerConfig& server);

 private:
  void take(const plugins::FileChanges& changes);

  const std::vector<FileGroup> groups_;
  Mutex one_at_a_time_;                                 // the watcher's thread, and reload()
  std::unique_ptr<plugins::DirectoryWatcher> watcher_;  // last: its thread uses the rest
};

}  // namespace hearth::server
