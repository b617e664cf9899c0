#pragma once
// Moves the shards' writes to host.db from the WAL into the file, on its own thread.

#include "base/mutex.hpp"
#include "storage/connection.hpp"

#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <thread>

namespace hearth::storage {

// SQLite would do this inside the commit that fills the WAL: two waits for the device on a shard's
// thread, while all clients of the shard wait. A restart of many agents needs dozens of
// checkpoints.
//
// Promises
//  P1 Elsewhere   A shard that commits never waits for the device, and shards can write while the
//                 WAL is moved.
//  P2 Bounded     A WAL longer than kLongPages is emptied even if pages must be moved then, while
//                 writers wait.
//  P3 Failure     A failed checkpoint loses nothing: the WAL stays and grows, and the next
//                 checkpoint moves it.
//
// P1: only the checkpointer restarts the WAL, and it empties the WAL for that. So the first commit
// in it overwrites nothing, and needs no sync.
//
// P3: after a failed sync this process makes no more checkpoints, because the system may wrongly
// treat the pages as written. The next start writes the WAL again.
//
// Threads    written(): any. on_failure: the checkpointer's own.
// Lifetime   Outlives every Directory that reports to it. The file exists before the checkpointer.
class DirectoryCheckpointer {
 public:
  // The number of pages in the WAL at which it is moved; SQLite's default.
  static constexpr int kPages = 1000;
  static constexpr int kLongPages = 8 * kPages;

  // Throws StorageError if the file cannot be opened. `on_failure` gets a sentence for the
  // operator. `vfs` as of Directory.
  DirectoryCheckpointer(const std::filesystem::path& path,
                        std::function<void(const std::string&)> on_failure,
                        const std::string& vfs = {});
  ~DirectoryCheckpointer();  // waits for a checkpoint in progress
  DirectoryCheckpointer(const DirectoryCheckpointer&) = delete;
  DirectoryCheckpointer& operator=(const DirectoryCheckpointer&) = delete;

  // A commit was made, and the WAL now has `pages` pages.
  void written(int pages);

 private:
  void run();
  int next();
  bool checkpoint(int pages);  // false: never again
  int empty_wal(bool must);

  struct FileMethods;
  std::unique_ptr<FileMethods> methods_;  // of the connection's file
  Connection connection_;                 // of the thread
  const std::function<void(const std::string&)> on_failure_;
  Mutex mutex_;
  Condition work_came_;
  int pages_ GUARDED_BY(mutex_) = 0;  // in the WAL, to be moved; 0: none
  bool stopping_ GUARDED_BY(mutex_) = false;
  std::thread thread_;  // last: it uses the rest
};

}  // namespace hearth::storage
