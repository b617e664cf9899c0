#pragma once
// host.db: which agents exist, when to wake them, and which agents are condemned.

#include "storage/agent_key.hpp"
#include "storage/connection.hpp"
#include "storage/directory_checkpointer.hpp"
#include "storage/kept.hpp"
#include "storage/statement.hpp"

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace hearth::storage {

struct DirectoryEntry {
  AgentKey key;
  std::int64_t created_at_ms;  // Unix time, when the agent was first recorded
};

// What host.db has of an object, besides what it has of every agent.
struct ObjectEntry {
  AgentKey key;
  std::string uuid;                 // an id that no other object ever has
  std::int64_t created_at_ms = 0;   // Unix time
  std::int64_t last_active_ms = 0;  // when it last left memory, or was created
};

// When an agent must wake without an event from outside. durable::Wake explains the fields.
struct WakeEntry {
  AgentKey key;
  std::optional<std::int64_t> at_ms;  // Unix time
  bool working = false;
  std::optional<std::int64_t> unknown_operations{};
  bool needs_person = false;
};

// One connection to the directory of agents.
//
// Promises
//  P1 Shared      Any number of Directory objects, one a thread, may be open on the same file; a
//                 writer waits up to 5 s for another writer, and readers do not wait.
//  P2 Durable     When a call that writes has returned, its writes survive SIGKILL of the process.
//  P3 Ordered     list() is in byte order of the names, so that paging neither skips nor repeats an
//                 agent that exists throughout.
//
// After a crash the directory can differ from the agents' files. An agent is recorded before its
// first commit, so an entry may have no file, but a file always has an entry, unless host.db was
// lost. kept() says whether an entry's file must exist.
//
// Threads         One thread an object.
// Failure         StorageError: I/O, corruption, a read-only file, a writer that waited too long, a
//                 newer file.
class Directory {
 public:
  // Opens or makes the file and brings its tables up to date. `vfs`: a registered sqlite3_vfs for
  // tests that inject faults; empty: the system's. A server passes DataDirectory::directory_vfs().
  explicit Directory(const std::filesystem::path& path, const std::string& vfs = {});
  ~Directory();
  Directory(const Directory&) = delete;
  Directory& operator=(const Directory&) = delete;

  // From now on `checkpointer`, which outlives the directory, moves the WAL into the file and
  // restarts it, and no call of this object waits for the device. Before this call, the commit that
  // fills the WAL does both.
  void leave_wal_to(DirectoryCheckpointer& checkpointer);

  // Moves all commits into the file, and syncs it. For the first connection of a process, because
  // the writes of an earlier process may be only in the system's memory.
  // Failure  DiskFull: nothing has changed or is lost; the next checkpoint tries again.
  void empty_wal();

  // For the connection that is closed last: empties the WAL if the disk has room for that, and
  // keeps the file, so that the next start need not make it.
  void leave_wal() noexcept;

  // Records that the agent exists. A recorded agent keeps its time. True if it is new.
  bool record(const AgentKey& key, std::int64_t created_at_ms);

  // Removes the agent's entry, as an object too. True if there was one.
  bool forget(const AgentKey& key);

  [[nodiscard]] bool contains(const AgentKey& key);
  // When it was first recorded (Unix milliseconds), or nothing.
  [[nodiscard]] std::optional<std::int64_t> created_at_ms(const AgentKey& key);

  // Whether the agent's file must hold data, as note_kept() stored it. It is not synced, and its
  // loss does no harm. It is stored after the file's data are synced, so that kOnDevice is never on
  // the device before them.
  [[nodiscard]] Kept kept(const AgentKey& key);
  // Never replaces kOnDevice. Does nothing if there is no entry.
  void note_kept(const AgentKey& key, Kept kept);

  // At most `limit` agents of a class whose name is greater than `after_name`; "" starts a listing.
  // (An agent's name is never empty.)
  [[nodiscard]] std::vector<DirectoryEntry> list(std::string_view agent_class,
                                                 std::string_view after_name, std::size_t limit);

  // At most `limit` agents below `above` that come after `after`, in byte order of their names and
  // then of their classes. `after` need not exist; an empty key starts a listing. `direct`: only
  // agents one level below.
  [[nodiscard]] std::vector<DirectoryEntry> list_below(const AgentKey& above, bool direct,
                                                       const AgentKey& after, std::size_t limit);

  // The number of agents of all classes, or of one. It walks an index: use it for pages that people
  // read, not for every request.
  [[nodiscard]] std::int64_t count();
  [[nodiscard]] std::int64_t count(std::string_view agent_class);

  // The classes that have agents, in byte order.
  [[nodiscard]] std::vector<std::string> classes();

  // Segments of all classes that a library has ever served, in byte order, with or without agents.
  // They are never removed.
  void record_served(std::string_view segment);
  [[nodiscard]] std::vector<std::string> served_classes();

  // ---- objects (directory_objects.cpp) ----
  // Records that the agent is an object. A recorded object keeps its id. True if it is new.
  bool record_object(const AgentKey& key, std::string_view uuid, std::int64_t now_ms);
  // Does nothing if there is no such object.
  void note_active(const AgentKey& key, std::int64_t at_ms);
  [[nodiscard]] std::optional<ObjectEntry> object(const AgentKey& key);
  [[nodiscard]] std::optional<ObjectEntry> object(std::string_view uuid);
  // Objects of a class, or of all classes (""), in the order of class and name, after `after`.
  // `after` need not exist; an empty key starts a listing.
  [[nodiscard]] std::vector<ObjectEntry> list_objects(std::string_view agent_class,
                                                      const AgentKey& after, std::size_t limit);

  // ---- the wake index: at most one entry an agent ----
  void set_wake(const WakeEntry& entry);
  void clear_wake(const AgentKey& key);
  // All entries, by time; entries without a time first. Read once, when a server starts.
  [[nodiscard]] std::vector<WakeEntry> wakes();
  // The wall clock's time at the last note_time(); nothing: there was none.
  [[nodiscard]] std::optional<std::int64_t> seen_ms();
  void note_time(std::int64_t now_ms);
  // The clock was set back: notes its time, and makes later wakes due now, in one transaction.
  void hurry_wakes(std::int64_t now_ms);
  // Agents whose entry has unknown_operations, of one class or of all classes (""), in byte order
  // of class and name, after `after`. `after` need not exist; an empty key starts a listing.
  [[nodiscard]] std::vector<AgentKey> with_operations(std::string_view agent_class,
                                                      const AgentKey& after, std::size_t limit);

  // For `hearth repair`, in one transaction. Waits for the device.
  //   `found`      agents whose files are on the device: each gets an entry if it has none
  //   `wakes`      replace all wakes
  //   `forgotten`  agents whose entries are removed
  void rebuild(std::span<const DirectoryEntry> found, std::span<const WakeEntry> wakes,
               std::span<const AgentKey> forgotten);

  // ---- agents that are to be destroyed ----
  // Marks the agents as condemned, in one transaction. A condemned agent stays condemned.
  void condemn(std::span<const AgentKey> keys);
  // All condemned agents, in byte order of class and name.
  [[nodiscard]] std::vector<AgentKey> condemned();
  // Call it after the files of a condemned agent are removed: removes its entry, its wake and its
  // marker in one transaction. It is not an error if there are none.
  void forget_condemned(const AgentKey& key);

 private:
  void forget_object(const AgentKey& key);
  // Prepares a statement at its first use: only agents with durable work need it.
  Statement& kept(std::unique_ptr<Statement>& statement, std::string_view sql);

  const std::int64_t boot_;
  struct FileMethods;
  std::unique_ptr<FileMethods>
      methods_;            // of the connection's file, once leave_wal_to() was called
  Connection connection_;  // before the statements: they must be destroyed first
  Statement insert_;
  Statement erase_;
  Statement find_;
  Statement list_;
  Statement kept_;
  Statement set_kept_;
  std::unique_ptr<Statement> set_wake_;
  std::unique_ptr<Statement> clear_wake_;
  std::unique_ptr<Statement> note_time_;
};

// The damage in the structure of a directory's file; empty: none, or there is no file.
// Failure  StorageError: it cannot be read.
[[nodiscard]] std::string damage_of(const std::filesystem::path& path);

}  // namespace hearth::storage
