#pragma once
// Notices new, changed and removed files in some directories.

#include "base/file_descriptor.hpp"
#include "base/logger.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <thread>
#include <vector>

namespace hearth::plugins {

// Tells whether the content of a file may have changed, without reading it.
struct FileStamp {
  std::uint64_t device = 0;
  std::uint64_t inode = 0;
  std::int64_t bytes = 0;
  std::int64_t modified_ns = 0;
  std::int64_t changed_ns = 0;

  friend bool operator==(const FileStamp&, const FileStamp&) = default;
};

// The files of interest in some directories, at one moment.
using DirectoryImage = std::map<std::filesystem::path, FileStamp>;

struct FileChanges {
  std::vector<std::filesystem::path> changed;  // new or different, in the order of their names
  std::vector<std::filesystem::path> gone;

  [[nodiscard]] bool none() const { return changed.empty() && gone.empty(); }
};

// The files of interest in a directory: with `names` only the files of these names; otherwise those
// that are not hidden and have one of the extensions.
struct WatchedDirectory {
  std::filesystem::path path;
  std::vector<std::string> extensions = {".so"};
  std::size_t max_files = 1024;
  // True: the stamp of a symbolic link is that of its target. False: its own stamp; the rules of
  // loading refuse links later.
  bool follows_links = false;
  std::vector<std::string> names = {};
};

// The files of interest. An absent directory has none. A directory that is named again for the same
// files, perhaps by a link, is left out. A directory that cannot be listed (no descriptor is left,
// no permission) has the files that `known` has of it: its files may be there.
//   Bounded   At most `max_files` of each directory.
DirectoryImage look_at(const std::vector<WatchedDirectory>& directories,
                       const DirectoryImage& known = {});

// The changes from `before` to `after`.
FileChanges difference(const DirectoryImage& before, const DirectoryImage& after);

// Both changes together. The last state of each file counts.
FileChanges merged(const FileChanges& first, const FileChanges& then);

struct WatchOptions {
  std::vector<WatchedDirectory> directories;
  // A change is reported after this time without news: copying tools and linkers write in steps.
  std::chrono::milliseconds quiet_time{300};
  // If it is never quiet, changes are reported after this time.
  std::chrono::milliseconds longest_wait{5'000};
  // How often to look without news: for directories that are absent, and for file systems that send
  // no news (a network's).
  std::chrono::milliseconds poll_time{2'000};
};

// Watches with inotify. News are hints only: each makes the watcher look again, and it reports the
// difference to its last look. So lost news (a queue overflow, a directory that was moved away and
// back) delay a change and lose none.
//
// Promises
//  P1 Told once     Each difference is reported once, after quiet_time without news or differences,
//                   in one call for all files that changed together.
//  P2 Since when    The first difference is to `known`, which the caller has read before.
//  P3 Absence       A directory that is absent, replaced or cannot be read is looked at again every
//                   poll_time.
//  P4 Stalls        A file that was quiet for quiet_time, or never quiet for longest_wait, is
//                   reported as it is, and again when it changes again.
//
// P1: that includes changes that send no news, such as targets of links and network file systems.
// P4: the watcher cannot see whether a writer that has stopped is done. The loader finds out that
// half a file is no library.
//
// Threads    The constructor starts a thread, which calls `on_change`. The destructor waits for the
//            thread: do not call it from `on_change`.
// Failure    Without inotify (a limit of the system) it polls, and logs that once (watch.polling).
class DirectoryWatcher {
 public:
  using OnChange = std::function<void(const FileChanges&)>;

  DirectoryWatcher(WatchOptions options, DirectoryImage known, OnChange on_change, Logger& logger);
  ~DirectoryWatcher();
  DirectoryWatcher(const DirectoryWatcher&) = delete;
  DirectoryWatcher& operator=(const DirectoryWatcher&) = delete;

 private:
  using Moment = std::chrono::steady_clock::time_point;

  void serve();
  // True if a directory is watched that was not.
  bool watch_directories();
  // Waits for news, the destructor or `limit`. True: there was news.
  bool wait(std::chrono::milliseconds limit);
  // Reports differences, once it is quiet.
  void compare();

  const WatchOptions options_;
  const OnChange on_change_;
  Logger& logger_;
  FileDescriptor news_;                           // inotify; none: polling
  FileDescriptor stop_;                           // eventfd
  std::map<std::filesystem::path, int> watched_;  // the watch of each directory; the thread only
  DirectoryImage known_;                          // the thread only
  bool stopping_ = false;                         // the thread only
  std::thread thread_;                            // last: it uses the fields above
};

}  // namespace hearth::plugins
