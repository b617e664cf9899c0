#pragma once
// One agent's SQLite file: its life on disk, the implicit transaction, and the agent's state.

#include "base/error.hpp"
#include "storage/agent_key.hpp"
#include "storage/connection.hpp"
#include "storage/sync_service.hpp"

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace hearth::storage {

// The version of the tables that the host keeps in an agent's file. A file with a higher one was
// written by a newer server and is refused; one with a lower one is brought to this when it is
// opened. 1: a table for each kind of durable work. 2: storage/agent_schema.hpp.
inline constexpr std::int64_t kAgentSchemaVersion = 2;

struct AgentDatabaseOptions {
  // Page cache, in pages of 4 KiB; taken as needed and given back by release_memory().
  int cache_pages = 64;

  // The file may not grow past so many pages; 0: no bound. Reaching it is like a full disk: a
  // StorageError. (A plugin's own, softer bound is PluginSqlLimits::max_database_bytes.)
  std::int64_t max_pages = 0;

  // So many pages in the WAL, and checkpoint_due() says that they should be moved into the file.
  // SQLite's own number.
  int checkpoint_pages = 1000;

  // Stored with the identity of a new agent, see class_schema(); 0: nothing is.
  std::uint32_t class_schema = 0;

  // Durability `power` (P7); null: `process`. Outlives the database.
  SyncService* sync = nullptr;

  // The agent has stored data (Directory::kept()): a file that is missing, empty or without tables
  // is a StorageError, which says what to do, and nothing is made or removed.
  bool must_exist = false;

  // A registered sqlite3_vfs for tests that inject faults; empty: the product's.
  std::string vfs{};
};

// Promises
//  P1 No trace    An agent that was only looked at leaves no file: it is made by the first write,
//                 or when the plugin prepares SQL, and removed at the end if nothing was written.
//  P2 Identity    A file holds its agent's class and name. Opening it for another agent, or one
//                 written by a newer server, is refused.
//                 Tables of an earlier version are brought to this one in one transaction: the file
//                 has the old ones or the new ones, whatever comes in between.
//  P3 Atomic      Everything written between two commits is one transaction, whoever wrote it: host
//                 tables and the plugin's tables live and die together.
//  P4 Durable     When commit() has returned, its writes survive SIGKILL of this process
//                 (durability `process`). They are in the WAL file but not flushed to the device.
//  P5 Fail-stop   When a commit fails, or the transaction is lost in any other way, the
//                 database is *broken*: what the agent has in memory may differ from the disk, and
//                 every later call but close() throws StorageError. Only a new object over the
//                 same file goes on, from what is on disk.
//  P5a In place   A commit fails if the file was removed or replaced more than kPlaceInterval
//                 before.
//  P6 At rest     After close() only the .db file remains, without a WAL.
//  P7 Power       With a sync service, what a loss of power leaves behind is whole, whenever it
//                 comes, and holds every commit that a sync of sync_target(), requested after it,
//                 has been answered yes for. commit() itself does not wait for the device. A file
//                 that a sync has failed for is not checkpointed any more. The WAL that a broken
//                 life or a crash has left is written again by the next life, which has a
//                 sync_target() from the beginning then: nothing that the file holds may be told
//                 before it is synced.
//
// The host's tables are made when first needed, in the transaction that needs them:
//   cf_agents_meta(key, value)   class, name, schema (and class_schema), and incarnation: a random
//                                word, which of all agents that ever have this class and name it
//                                is. In the very first transaction, so that each copy of the file
//                                has it. Files of an earlier server have none until it is
//                                needed, or their tables are changed
//   cf_agents_state(id, state)   at the first store_state()
//   cf_agents_kv, cf_agents_kv_usage   at the first value that is kept by key (extensions/kv.hpp)
//   those of durable work        at its first piece (storage/agent_schema.hpp)
//
//  P8 No waiting  Only checkpoint(), close() and the destructor wait for the device.
//
// Bounded         The WAL, if its owner calls checkpoint() as soon as checkpoint_due():
//                 checkpoint_pages and what the last commit wrote. While a statement of the
//                 plugin's reads, and after a checkpoint that failed, it grows. The WAL of a busy
//                 agent keeps its length, so that the next commits have no block to find.
// Threads         One at a time: the agent's shard; for checkpoint() and close() another one to
//                 which the shard hands it over.
// Lifetime        Statements on connection(), and the PluginSql over it, go before close().
// Failure         StorageError, and only that: I/O, corruption, disk full, wrong or newer file.
class AgentDatabase {
 public:
  static constexpr std::chrono::milliseconds kPlaceInterval{10};

  // Opens the agent's file if there is one. Unless it must exist, an absent or empty file is a new
  // agent; so is one that was cut short in the making, of at most a page and without a WAL, which
  // is removed. Directories above the file are made (0700) by the first write.
  AgentDatabase(std::filesystem::path path, AgentKey key, AgentDatabaseOptions options = {});

  // Whose file it is; nothing if no agent has committed to it. Nobody has it open. Throws
  // StorageError: no agent's database.
  [[nodiscard]] static std::optional<AgentKey> owner_of(const std::filesystem::path& path);

  // Where the agent's files beside its database lie, if it has any. Removed with the agent.
  [[nodiscard]] std::filesystem::path files_directory() const { return files_beside(path_); }
  [[nodiscard]] static std::filesystem::path files_beside(std::filesystem::path database) {
    return database.replace_extension(kFilesExtension);
  }
  static constexpr const char* kFilesExtension = ".files";

  // Drops uncommitted writes. Never throws: failures of closing are lost, so call close() before.
  ~AgentDatabase();
  AgentDatabase(const AgentDatabase&) = delete;
  AgentDatabase& operator=(const AgentDatabase&) = delete;

  // Drops uncommitted writes, moves the WAL into the file, removes it and closes. Afterwards only
  // the destructor may be called (asserted); a second close() does nothing. A throw means that the
  // WAL stayed beside the file: nothing committed is lost, and the next open takes it up.
  void close();

  // ---- the implicit transaction --------------------------------------------------------------

  // Whether writes wait for commit().
  [[nodiscard]] bool dirty() const noexcept { return in_transaction_; }

  // Starts the transaction unless it is open. Everything that writes calls it just before.
  void begin_write();

  // Makes the writes durable (P4). Does nothing when clean. Statements that are in the middle of
  // writing (a half-read RETURNING) are reset first, open savepoints are released with it; readers
  // go on.
  void commit();

  // Whether the WAL has grown so long that the owner should call checkpoint(); with `idle` a
  // quarter of that is enough, since nobody waits for it. False while something is uncommitted, or
  // a statement is in the middle of reading.
  [[nodiscard]] bool checkpoint_due(bool idle = false) const;

  // Moves the WAL into the file and empties it. Waits for the device. Returns what went wrong;
  // empty: nothing. Then the commits are in the WAL as before, and it is due again once the WAL has
  // grown by as much; unless the database is broken: always so with a sync service, and otherwise
  // if the WAL may be half emptied.
  std::string checkpoint();

  // Whether the database refuses to go on (P5).
  [[nodiscard]] bool broken() const noexcept { return broken_; }
  // Whether the file may not grow past AgentDatabaseOptions::max_pages.
  [[nodiscard]] bool is_bounded() const noexcept { return options_.max_pages > 0; }

  // ---- the agent's state: one JSON text, or none ----------------------------------------------

  // None if it was never stored. The text is what store_state() got; it is not parsed.
  [[nodiscard]] std::optional<std::string> load_state();
  void store_state(std::string_view json);
  void remove_state();
  // How many of these two there were. A rollback does not count back: each write has a number of
  // its own.
  [[nodiscard]] std::uint64_t state_writes() const noexcept { return state_writes_; }

  // ---- the version of what the class keeps in the file ------------------------------------------

  // As last stored, the open transaction included; 0: by a class without versions, or nothing is
  // stored yet.
  [[nodiscard]] std::uint32_t class_schema() const noexcept { return class_schema_; }
  // Not 0 (asserted). Part of the transaction.
  void store_class_schema(std::uint32_t version);

  // ---- for the layers that keep tables of their own in the file --------------------------------

  // The connection; makes and opens the file if need be. Whoever writes through it calls
  // begin_write() first.
  [[nodiscard]] sqlite3& connection();

  // How many transactions were started. Tells whether what was done in one still stands open.
  [[nodiscard]] std::uint64_t transactions() const noexcept { return transactions_; }

  // To be called after foreign statements failed: some failures (a full disk, an interrupted
  // write, a plugin's ON CONFLICT ROLLBACK) make SQLite roll the whole transaction back by
  // itself. Marks the database as broken and returns true if that has happened.
  bool transaction_was_lost() noexcept;

  // To be called after a savepoint was rolled back: tables may be gone again.
  void forget_schema() noexcept;

  // Whether anything was ever written, the open transaction included.
  [[nodiscard]] bool exists() const noexcept { return has_meta_; }

  // Whether anything was ever committed.
  [[nodiscard]] bool stored() const noexcept { return has_meta_ && !meta_is_pending_; }

  // The size of what is stored, free pages not counted. The open transaction included.
  [[nodiscard]] std::int64_t used_bytes();

  // Gives cached pages back. For an agent that has fallen idle; the next use reads them again.
  void release_memory() noexcept;

  // What to sync after a commit; null before the first write, unless an earlier life has left a WAL
  // (P7), and without a sync service.
  [[nodiscard]] const std::shared_ptr<SyncTarget>& sync_target() const noexcept { return target_; }

  [[nodiscard]] const AgentKey& key() const noexcept { return key_; }

 private:
  struct Prepared;  // statements that every turn needs
  class FailStop;

  void open_file();
  void check_identity();
  void write_identity();
  void upgrade_schema(std::int64_t version);
  void write_class_schema(std::uint32_t version);
  bool has_state_table();
  void check_usable() const;
  void prepare_for_power(bool is_new);
  void start_over();
  void check_in_place();
  void check_not_lost() const;
  [[noreturn]] void refuse_loss(std::string_view state) const;
  void open_sync_target();
  void check_sync_target() const;
  [[nodiscard]] bool may_checkpoint() noexcept;
  static void checkpoint_on_close(Connection& connection, bool wanted) noexcept;
  [[nodiscard]] std::string move_wal() noexcept;
  void check_wal_begins();
  static int after_commit(void* self, sqlite3* connection, const char* name, int pages);
  std::string close_connection();  // what failed; empty if nothing
  void remove_if_unwritten() noexcept;

  std::filesystem::path path_;
  AgentKey key_;
  AgentDatabaseOptions options_;

  std::unique_ptr<Connection> connection_;  // null until the file is needed, and after close()
  std::unique_ptr<Prepared> prepared_;      // null while connection_ is; destroyed before it
  std::unique_ptr<SyncedFile> first_page_;  // until the target has it
  std::shared_ptr<SyncTarget> target_;      // shared with the requests that are under way
  std::uint64_t inode_ = 0;   // of the file that is open; 0: it is none of the system's
  std::uint64_t device_ = 0;  // ... which numbers its inodes
  std::chrono::steady_clock::time_point looked_at_;  // whether it is in its place
  std::uint64_t transactions_ = 0;
  int wal_pages_ = 0;      // as of the last commit
  int checkpoint_at_ = 0;  // pages
  std::uint64_t state_writes_ = 0;
  bool wal_is_blank_ = false;  // it has its blocks, and no content
  bool in_transaction_ = false;
  bool broken_ = false;
  bool closed_ = false;
  bool has_meta_ = false;  // cf_agents_meta is there, possibly uncommitted
  std::uint32_t class_schema_ = 0;
  bool meta_is_pending_ = false;   // ... and goes again unless this transaction is committed
  std::optional<bool> has_state_;  // whether cf_agents_state is there; none: not known
};

}  // namespace hearth::storage
