#pragma once
// Notices when files of some directories are new, changed or gone.

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

// What tells one content of a file from another without reading it.
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

// Which files of a directory are of interest: those with an extension, unless they are hidden, or,
// if there are `names`, those alone, whatever else is there.
struct WatchedDirectory {
  std::filesystem::path path;
  std::vector<std::string> extensions = {".so"};
  std::size_t max_files = 1024;
  // Whether a symbolic link stands for what it leads to. Else it is an image of itself: the rules
  // of loading refuse it later.
  bool follows_links = false;
  std::vector<std::string> names = {};
};

// The files of interest. A directory that is absent has none. One that is there and cannot be
// listed (no descriptor is left, no permission) has those that `known` has of it: that nobody can
// look does not mean that files are gone.
//   Bounded   At most `max_files` of each directory.
DirectoryImage look_at(const std::vector<WatchedDirectory>& directories,
                       const DirectoryImage& known = {});

// What leads from `before` to `after`.
FileChanges difference(const DirectoryImage& before, const DirectoryImage& after);

// Both, one after the other: of each file the last state counts.
FileChanges merged(const FileChanges& first, const FileChanges& then);

struct WatchOptions {
  std::vector<WatchedDirectory> directories;
  // How long everything must have been quiet before a change is told: copying tools and linkers
  // write in steps.
  std::chrono::milliseconds quiet_time{300};
  // Though something is always changing, changes are told at last after this.
  std::chrono::milliseconds longest_wait{5'000};
  // A look without any news, for directories that are not there yet, and for file systems that send
  // none (a network's).
  std::chrono::milliseconds poll_time{2'000};
};

// Watches with inotify. The news are hints only: each makes it look again, and what it tells is the
// difference to what it saw last. So lost news (a queue overflow, a directory that was moved away
// and back) cost time and no change.
//
// Promises
//  P1 Told once     Each difference is told once, after quiet_time without news in which nothing
//                   became different either, in one call for all files that changed together. So
//                   also of what makes no news: the targets of links, a network's file systems.
//  P2 Since when    The first difference is to `known`, what the caller has read before.
//  P3 Absence       A directory that is absent, replaced or cannot be read is looked at again every
//                   poll_time.
//  P4 Stalls        Nobody can see whether a writer that stands still is done. A file that has been
//                   quiet for quiet_time, or has never been quiet for longest_wait, is told as it
//                   is, and again when it goes on: that half of it is no library is the loader's to
//                   find.
//
// Threads    The constructor starts one of its own, which calls `on_change`; the destructor waits
//            for it, so not from there.
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
  // True if one is watched that was not.
  bool watch_directories();
  // Waits for news, the destructor or `limit`. True: something was heard.
  bool wait(std::chrono::milliseconds limit);
  // Tells what is different, once it is quiet.
  void compare();

  const WatchOptions options_;
  const OnChange on_change_;
  Logger& logger_;
  FileDescriptor news_;                           // inotify; none: polling
  FileDescriptor stop_;                           // eventfd
  std::map<std::filesystem::path, int> watched_;  // the watch of each directory; the thread's
  DirectoryImage known_;                          // the thread's
  bool stopping_ = false;                         // the thread's
  std::thread thread_;                            // last: it uses the fields above
};

}  // namespace hearth::plugins
