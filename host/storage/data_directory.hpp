#pragma once
// The directory that holds everything a server keeps, and the lock that makes it one server's.

#include "base/error.hpp"
#include "storage/agent_key.hpp"

#include <atomic>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>

namespace hearth::storage {

// data/
//   lock                               flock held while the server runs; holds its process id, if
//                                      there was room for it
//   host.db                            the directory of agents (directory.hpp)
//   agents/<class>/<2 hex>/<32 hex>.db one file an agent (agent_database.hpp)
//
// Promises
//  P1 Private     A directory that open() makes is 0700. One that exists keeps its mode, and
//                 open_to_others() tells if that lets other users in.
//  P2 One server  While an object lives no other one, in this process or another, opens the same
//                 directory. The kernel drops the lock with the process, however it ends.
//  P3 Names stay  The 32 hex digits are the first half of SHA-256 of the agent's name; nothing of
//     inside      the name itself is ever part of a path. (Two names with one hash are told apart
//                 by AgentDatabase, which refuses the second.)
//  P4 Power       When open() has returned, a loss of power takes away neither the directory nor
//                 the names in it.
//
// Threads         open() once; the const members from any thread.
// Lifetime        Outlives everything that opens a file below it.
class DataDirectory {
 public:
  // Makes `path` if it is absent (its parent must exist), takes the lock and checks that files can
  // be written there; a full disk is no failure, unless the lock's file cannot be made.
  //
  // Failure  kConflict     another server holds it; the message names its process id.
  //          kUnavailable  it cannot be made, read or written; the message says what the system
  //                        said and what to do about it. Both messages are for the operator.
  static Result<DataDirectory> open(const std::filesystem::path& path);

  DataDirectory(DataDirectory&& other) noexcept;
  DataDirectory& operator=(DataDirectory&&) = delete;
  ~DataDirectory();  // gives up the lock

  [[nodiscard]] const std::filesystem::path& path() const noexcept { return path_; }

  // Whether the directory was removed, moved away or replaced since it was opened, as its lock file
  // tells: what is written below it is lost then. Final. Looks at most once in kLookEvery, for
  // callers that ask all the time.
  [[nodiscard]] bool is_lost() const;
  static constexpr std::chrono::milliseconds kLookEvery{100};
  // Throws StorageError if it is, which says what to do. Looks each time.
  void check_not_lost() const;

  // Whether group or others had any access to the directory when it was opened. What agents keep is
  // for their server alone, so the operator should hear of it.
  [[nodiscard]] bool open_to_others() const noexcept { return open_to_others_; }

  // Writes the process id into the lock's file, where the disk was too full for it when the
  // directory was opened. True: it is there. On the thread that owns the object.
  bool name_holder();

  // Where the agent's database is or would be. Pure: nothing is looked at or made. The class must
  // be is_class_name() (asserted).
  [[nodiscard]] std::filesystem::path agent_path(const AgentKey& key) const;

  // Removes every file of the agent: the database and what SQLite keeps beside it. When this has
  // returned none of them comes back with the loss of power. Not an error if there are none. Nobody
  // has the database open, and nobody opens it meanwhile.
  //
  // Failure  StorageError: the system refused; some of the files may be gone. Calling it again goes
  //          on.
  void remove_agent(const AgentKey& key) const;

  // Whether the names that lead to the agent's file are on the device. Waits for it.
  [[nodiscard]] bool sync_names_of(const AgentKey& key) const;

  // Throws StorageError if the directory of agents is missing or empty though agents have files: it
  // is on the device before the first of them is made.
  void check_directory_not_lost() const;

  // Calls `found` with each file of an agent's database below agents/, in no order, until it
  // returns false.
  // Failure  StorageError: a directory cannot be read.
  void each_agent_file(const std::function<bool(const std::filesystem::path&)>& found) const;

  // Where the directory of agents is.
  [[nodiscard]] std::filesystem::path directory_path() const { return path_ / "host.db"; }
  // The SQLite VFS with which all connections to it are opened. The system's, unless there was no
  // room for the index of its WAL when this was opened: then one that keeps the index in memory,
  // and no other process can read the directory.
  [[nodiscard]] const std::string& directory_vfs() const { return directory_vfs_; }

 private:
  DataDirectory(std::filesystem::path path, int lock, bool open_to_others) noexcept;

  [[nodiscard]] bool look_for_loss() const;

  std::filesystem::path path_;
  int lock_;  // file descriptor of data/lock; -1 after being moved from
  bool open_to_others_;
  bool names_holder_ = true;
  std::string directory_vfs_;

  // What is_lost() knows. Of its own, so that the directory can be moved.
  struct Watch {
    std::atomic<std::int64_t> next_look_ns = 0;  // of the steady clock
    std::atomic<bool> lost = false;
  };
  std::unique_ptr<Watch> watch_ = std::make_unique<Watch>();
};

}  // namespace hearth::storage
