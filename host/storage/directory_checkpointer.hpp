#pragma once
// Moves what the shards have written to host.db from its WAL into the file, on a thread of its own.

#include "base/mutex.hpp"
#include "storage/connection.hpp"

#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <thread>

namespace hearth::storage {

// SQLite would do it in the middle of the commit that fills the WAL: two waits for the device, on a
// shard's thread, while all its clients wait. After a restart of many agents there are dozens of
// these.
//
// Promises
//  P1 Elsewhere   A shard that commits never waits for the device; and while the WAL is moved,
//                 shards write on. Only the checkpointer lets the WAL begin anew, and empties it
//                 for that: the first commit in it overwrites nothing, and needs no sync.
//  P2 Bounded     A WAL longer than kLongPages is emptied even if pages are left to move then, for
//                 which writers wait.
//  P3 Failure     A failed checkpoint loses nothing: the WAL stays and grows, and the next one
//                 takes it up. After a failed sync there is none any more in this process, since
//                 the system may believe that the pages are on the device; the next start writes
//                 the WAL again.
//
// Threads    written(): any. on_failure: the checkpointer's own.
// Lifetime   Outlives every Directory that reports to it. The file exists when it is made.
class DirectoryCheckpointer {
 public:
  // Pages in the WAL at which it is moved; SQLite's own number.
  static constexpr int kPages = 1000;
  static constexpr int kLongPages = 8 * kPages;

  // Throws StorageError if the file cannot be opened. `on_failure` gets a sentence for the
  // operator. `vfs` as of Directory.
  DirectoryCheckpointer(const std::filesystem::path& path,
                        std::function<void(const std::string&)> on_failure,
                        const std::string& vfs = {});
  ~DirectoryCheckpointer();  // waits for a checkpoint that is under way
  DirectoryCheckpointer(const DirectoryCheckpointer&) = delete;
  DirectoryCheckpointer& operator=(const DirectoryCheckpointer&) = delete;

  // A commit has been made and there are so many pages in the WAL now.
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
  int pages_ GUARDED_BY(mutex_) = 0;  // that wait; 0: none
  bool stopping_ GUARDED_BY(mutex_) = false;
  std::thread thread_;  // last: it uses the rest
};

}  // namespace hearth::storage
