#pragma once
// The directory with all data of a server, and the lock that keeps other servers out.

#include "base/error.hpp"
#include "base/file_descriptor.hpp"
#include "storage/agent_key.hpp"

#include <atomic>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>

namespace hearth::storage {

class CopyMark;

// data/
//   lock                               locked with flock() while the server runs; has its process
//                                      id, if the disk had room for it
//   host.db                            the directory of agents (directory.hpp)
//   agents/<class>/<2 hex>/<32 hex>.db one file an agent (agent_database.hpp)
//
// Promises
//  P1 Private     A directory that open() makes is 0700; an existing directory keeps its mode.
//  P2 One server  While an object lives, no other object, in this process or another, can open the
//                 same directory.
//  P3 Names stay  A path has the first 32 hex digits of SHA-256 of the agent's name, and no part of
//     inside      the name itself.
//  P4 Power       After open() has returned, the directory and the names in it survive a loss of
//                 power.
//
// P2: the kernel drops the lock when the process ends, also after a crash.
//
// P3: if two names have the same 32 digits, AgentDatabase refuses the second.
//
// Threads         open() once; the const members from any thread.
// Lifetime        Outlives everything that opens a file below it.
class DataDirectory {
 public:
  // Makes `path` if it is absent (its parent must exist), takes the lock and checks that files can
  // be written there. A full disk is a failure only if the lock's file cannot be made.
  //
  // Failure  kConflict     another server holds the lock; the message has its process id.
  //          kUnavailable  the directory cannot be made, read or written; the message has the
  //                        system's text and what to do. Both messages are for the operator.
  static Result<DataDirectory> open(const std::filesystem::path& path);

  DataDirectory(DataDirectory&& other) noexcept;
  DataDirectory& operator=(DataDirectory&&) = delete;
  ~DataDirectory();  // releases the lock

  [[nodiscard]] const std::filesystem::path& path() const noexcept { return path_; }

  // Whether the lock file shows that the directory was removed, moved or replaced since it was
  // opened. Writes below it are then lost. Once true, it stays true. It checks at most once in
  // kLookEvery, so it may be called often.
  [[nodiscard]] bool is_lost() const;
  static constexpr std::chrono::milliseconds kLookEvery{100};
  // Throws StorageError if the directory is lost, with what to do. Checks at each call.
  void check_not_lost() const;

  // Whether there is room for new data: false from the moment when open() or note_full() has met a
  // full disk. Then this call tries to write, at most once in kTryEvery, until there is room again.
  // Any thread, like note_full(); it may wait for the disk.
  [[nodiscard]] bool has_room() const;
  void note_full() const { watch_->is_full = true; }
  static constexpr std::chrono::milliseconds kTryEvery{500};

  // Writes the process id into the lock's file, if the disk was too full for that in open(). True:
  // the file has it. Call it on the thread that owns the object.
  bool name_holder();

  // The path of the agent's database, whether it exists or not. Pure: no file is read or made. The
  // class must be is_class_name() (asserted).
  [[nodiscard]] std::filesystem::path agent_path(const AgentKey& key) const {
    return agent_path_below(path_, key);
  }
  [[nodiscard]] static std::filesystem::path agent_path_below(const std::filesystem::path& data,
                                                              const AgentKey& key);

  // Removes every file of the agent: the database, SQLite's files beside it, and the agent's other
  // files. After it has returned, a loss of power does not bring them back. It is not an error if
  // there are none. The database must not be open, and must not be opened meanwhile.
  // While a server runs: copy_mark() has allowed it.
  //
  // Failure  StorageError: the system refused; some of the files may be removed. Another call
  //          removes the rest.
  void remove_agent(const AgentKey& key) const;

  // Brings the names that lead to the agent's file to the device, and waits for that. False: it
  // failed.
  [[nodiscard]] bool sync_names_of(const AgentKey& key) const;

  // Throws StorageError if the directory of agents is missing or empty and there are agents' files.
  // That is a loss, because the directory is on the device before the first agent's file is made.
  void check_directory_not_lost() const;

  // For the backup of a running server. Any thread.
  [[nodiscard]] CopyMark& copy_mark() const { return *copy_mark_; }

  // Calls `found` with the path of each agent's database below agents/, in any order, until it
  // returns false.
  // Failure  StorageError: a directory cannot be read.
  void each_agent_file(const std::function<bool(const std::filesystem::path&)>& found) const;

  // The path of the directory of agents.
  [[nodiscard]] std::filesystem::path directory_path() const { return path_ / "host.db"; }
  // The SQLite VFS for all connections to the directory of agents; empty: the system's. If the disk
  // had no room for the index of the WAL in open(), it is a VFS that keeps the index in memory. No
  // other process can then read the directory of agents.
  [[nodiscard]] const std::string& directory_vfs() const { return directory_vfs_; }

 private:
  DataDirectory(std::filesystem::path path, FileDescriptor lock) noexcept;

  [[nodiscard]] bool look_for_loss() const;

  std::filesystem::path path_;
  FileDescriptor lock_;  // data/lock
  bool names_holder_ = true;
  std::string directory_vfs_;

  // The state of is_lost() and has_room(), in a separate object so that the DataDirectory can be
  // moved.
  struct Watch {
    std::atomic<std::int64_t> next_look_ns = 0;  // of the steady clock
    std::atomic<bool> lost = false;
    std::atomic<std::int64_t> next_try_ns = 0;  // the same
    std::atomic<bool> is_full = false;
  };
  std::unique_ptr<Watch> watch_ = std::make_unique<Watch>();
  std::unique_ptr<CopyMark> copy_mark_;
};

}  // namespace hearth::storage
