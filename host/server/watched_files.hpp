#pragma once
// Files of the operator's that the server reads again while it runs: certificates, tokens, keys.

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
  std::vector<std::filesystem::path> files;  // an empty path is no file
  std::function<void()> read_again;
};

// One rule for all of them: a group is read again when one of its files is different, and all are
// when the server is told to (SIGHUP). A file that is gone changes nothing.
//
// Threads   reload() from any. Groups are read again one at a time, by a thread of its own or in
//           reload().
// Lifetime  Within that of what the groups use.
class WatchedFiles {
 public:
  // `known`: from image(), before the files were read. With `reload.watch` off only reload() reads
  // them again.
  WatchedFiles(std::vector<FileGroup> groups, plugins::DirectoryImage known,
               const config::ReloadConfig& reload, Logger& logger);

  void reload();

  // How the files that a configuration names are now. A link stands for what it leads to: tools
  // that renew certificates move links.
  [[nodiscard]] static plugins::DirectoryImage image(const config::ServerConfig& server);

 private:
  void take(const plugins::FileChanges& changes);

  const std::vector<FileGroup> groups_;
  Mutex one_at_a_time_;                                 // the watcher's thread, and reload()
  std::unique_ptr<plugins::DirectoryWatcher> watcher_;  // last: its thread uses the rest
};

}  // namespace hearth::server
