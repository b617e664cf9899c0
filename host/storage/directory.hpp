#pragma once
// host.db: which agents exist, when they must be awake, and which are to be destroyed.

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

// What is kept of an object beside what is kept of every agent.
struct ObjectEntry {
  AgentKey key;
  std::string uuid;                 // its own id, which no other object ever has
  std::int64_t created_at_ms = 0;   // Unix time
  std::int64_t last_active_ms = 0;  // when it last left memory, or was made
};

// When an agent must be awake though nobody asks for it. What the fields mean is durable::Wake's to
// say.
struct WakeEntry {
  AgentKey key;
  std::optional<std::int64_t> at_ms;  // Unix time
  bool working = false;
  std::optional<std::int64_t> unknown_operations{};
};

// One connection to the directory of agents.
//
// Promises
//  P1 Shared      Any number of Directory objects, one a thread, may be open on the same file. A
//                 writer waits up to 5 s for another one; readers wait for nobody.
//  P2 Durable     When a call that writes has returned, it survives SIGKILL of the process.
//  P3 Ordered     list() is in byte order of the names, so that paging neither skips nor repeats an
//                 agent that exists throughout.
//
// The directory is kept beside the agents' own files and can differ from them after a crash: an
// agent is recorded before its first commit, so an entry may have no file, never the other way.
// kept() tells the entries whose file must be there.
//
// Threads         One thread an object.
// Failure         StorageError: I/O, corruption, a file that may only be read, a writer that waited
//                 too long, a newer file.
class Directory {
 public:
  // Opens or makes the file and brings its tables up to date. `vfs`: a registered sqlite3_vfs for
  // tests that inject faults; empty: the system's. A server passes DataDirectory::directory_vfs().
  explicit Directory(const std::filesystem::path& path, const std::string& vfs = {});
  ~Directory();
  Directory(const Directory&) = delete;
  Directory& operator=(const Directory&) = delete;

  // From now on `checkpointer`, which outlives the directory, moves the WAL into the file and
  // begins it anew, and no call of this object waits for the device. Until then the commit that
  // fills the WAL does both.
  void leave_wal_to(DirectoryCheckpointer& checkpointer);

  // Moves everything committed into the file, and syncs it: for the first connection that is
  // opened, since what an earlier process has left may be in memory only.
  // Failure  DiskFull: it is as it was, and as good; the next checkpoint tries again.
  void empty_wal();

  // For the connection that is closed last: empties the WAL if there is room for that, and leaves
  // it where it is, so that the next start need not make it.
  void leave_wal() noexcept;

  // Notes that the agent exists. One that is there already keeps its time. True if it is new.
  bool record(const AgentKey& key, std::int64_t created_at_ms);

  // As an object, too. True if it was there.
  bool forget(const AgentKey& key);

  [[nodiscard]] bool contains(const AgentKey& key);
  // When it was first recorded (Unix milliseconds), or nothing.
  [[nodiscard]] std::optional<std::int64_t> created_at_ms(const AgentKey& key);

  // Whether the agent's file must hold data, as note_kept() was last told. Not synced, and lost
  // without harm: it is told after the file's data were, so that kOnDevice is never on the device
  // before them.
  [[nodiscard]] Kept kept(const AgentKey& key);
  // kOnDevice stays. Nothing happens if there is no entry.
  void note_kept(const AgentKey& key, Kept kept);

  // At most `limit` agents of a class whose name is greater than `after_name`; "" starts a listing.
  // (An agent's name is never empty.)
  [[nodiscard]] std::vector<DirectoryEntry> list(std::string_view agent_class,
                                                 std::string_view after_name, std::size_t limit);

  // Agents below `above`, at most `limit`, in byte order of their names and then of their classes,
  // behind `after`, which need not exist; an empty key starts a listing. `direct`: only those right
  // below it.
  [[nodiscard]] std::vector<DirectoryEntry> list_below(const AgentKey& above, bool direct,
                                                       const AgentKey& after, std::size_t limit);

  // Of all classes, or of one. Walks an index: for pages people look at, not for every request.
  [[nodiscard]] std::int64_t count();
  [[nodiscard]] std::int64_t count(std::string_view agent_class);

  // The classes that have agents, in byte order.
  [[nodiscard]] std::vector<std::string> classes();

  // Classes that a library has had, by segment and in byte order, whether they have agents or not.
  // They are never forgotten.
  void record_served(std::string_view segment);
  [[nodiscard]] std::vector<std::string> served_classes();

  // ---- objects (directory_objects.cpp) ----
  // Notes that the agent is an object. One that is there already keeps its id. True if it is new.
  bool record_object(const AgentKey& key, std::string_view uuid, std::int64_t now_ms);
  // Nothing happens if there is no such object.
  void note_active(const AgentKey& key, std::int64_t at_ms);
  [[nodiscard]] std::optional<ObjectEntry> object(const AgentKey& key);
  [[nodiscard]] std::optional<ObjectEntry> object(std::string_view uuid);
  // Objects of a class, or of all ("") in the order of class and name, behind `after`, which need
  // not exist; an empty key starts a listing.
  [[nodiscard]] std::vector<ObjectEntry> list_objects(std::string_view agent_class,
                                                      const AgentKey& after, std::size_t limit);

  // ---- the wake index: at most one entry an agent ----
  void set_wake(const WakeEntry& entry);
  void clear_wake(const AgentKey& key);
  // All entries, by time; those without one first. Read once, when a server starts.
  [[nodiscard]] std::vector<WakeEntry> wakes();
  // Agents whose entry has unknown_operations, of one class or of all (""), in byte order of class
  // and name, behind `after`, which need not exist; an empty key starts a listing.
  [[nodiscard]] std::vector<AgentKey> with_operations(std::string_view agent_class,
                                                      const AgentKey& after, std::size_t limit);

  // All of it in one transaction, for `hearth repair`: the agents of `found`, whose files are on
  // the device, get entries unless they have them, `wakes` take the places of those that there are,
  // and of `forgotten` nothing is left. Waits for the device.
  void rebuild(std::span<const DirectoryEntry> found, std::span<const WakeEntry> wakes,
               std::span<const AgentKey> forgotten);

  // ---- agents that are to be destroyed ----
  // Marks the agents as condemned, together. One that is condemned already stays so.
  void condemn(std::span<const AgentKey> keys);
  // All that are condemned, in byte order of class and name.
  [[nodiscard]] std::vector<AgentKey> condemned();
  // The files of a condemned agent are gone: its entry, its wake and its marker go in one
  // transaction. Not an error if there is none of them.
  void forget_condemned(const AgentKey& key);

 private:
  void forget_object(const AgentKey& key);
  // Statements that only agents with durable work need are prepared when first used.
  Statement& kept(std::unique_ptr<Statement>& statement, std::string_view sql);

  const std::int64_t boot_;
  struct FileMethods;
  std::unique_ptr<FileMethods>
      methods_;            // of the connection's file, once leave_wal_to() was called
  Connection connection_;  // before the statements: they must go first
  Statement insert_;
  Statement erase_;
  Statement find_;
  Statement list_;
  Statement kept_;
  Statement set_kept_;
  std::unique_ptr<Statement> set_wake_;
  std::unique_ptr<Statement> clear_wake_;
};

// What is wrong with the file of a directory, as far as its structure tells; empty: nothing, or
// there is no file.
// Failure  StorageError: it cannot be read.
[[nodiscard]] std::string damage_of(const std::filesystem::path& path);

}  // namespace hearth::storage
