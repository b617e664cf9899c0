#pragma once
// One agent's SQLite file: opening and closing it, the implicit transaction, and the agent's state.

#include "base/error.hpp"
#include "storage/agent_key.hpp"
#include "storage/connection.hpp"
#include "storage/kept_statements.hpp"
#include "storage/sync_service.hpp"

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace hearth::storage {

class CopyMark;

struct AgentDatabaseOptions {
  // Page cache, in pages of 4 KiB. Grows as needed; release_memory() frees it.
  int cache_pages = 64;

  // The file's largest size in pages; 0: no bound. A write beyond it is a StorageError, as on a
  // full disk. (PluginSqlLimits::max_database_bytes is a softer bound for a plugin's SQL.)
  std::int64_t max_pages = 0;

  // The number of pages in the WAL at which checkpoint_due() becomes true. SQLite's default.
  int checkpoint_pages = 1000;

  // Stored with the identity of a new agent, see class_schema(); 0: not stored.
  std::uint32_t class_schema = 0;

  // Durability `power` (P7); null: `process`. Outlives the database.
  SyncService* sync = nullptr;

  // Checkpoints wait for a backup (P6); null: they do not. Outlives the database.
  CopyMark* copy_mark = nullptr;

  // The agent has stored data (Directory::kept()). A missing or empty file, or one without tables,
  // is then a StorageError that says what to do; no file is made or removed.
  bool must_exist = false;

  // A registered sqlite3_vfs for tests that inject faults; empty: kSingleOwnerVfs.
  std::string vfs{};
};

// Promises
//  P1 No trace    An agent that has written nothing leaves no file.
//  P2 Identity    The file of another agent, or of another format (storage/data_format.hpp), is
//                 refused, and stays as it is.
//  P3 Atomic      All writes between two commits are one transaction, those to the host's tables
//                 and to the plugin's tables alike.
//  P4 Durable     When commit() has returned, its writes survive SIGKILL of this process
//                 (durability `process`).
//  P5 Fail-stop   When a commit fails, or the transaction is lost in any other way, the database is
//                 *broken*, and every later call except close() throws StorageError.
//  P5a In place   A commit fails if the file was removed or replaced more than kPlaceInterval
//                 before.
//  P6 At rest     After close() only the .db file remains, without a WAL; the WAL stays if a backup
//                 has not copied the agent yet.
//  P7 Power       With a sync service, a loss of power does not damage the file, and loses no
//                 commit for which a later sync of sync_target() was answered with yes.
//  P8 No waiting  Only checkpoint(), close() and the destructor wait for the device.
//
// P1: the first write, or the plugin's first SQL, makes the file. If nothing was committed, it is
// removed at the end.
//
// P2: the file holds the agent's class and name, and the format.
//
// P4: the writes are in the WAL file, but not flushed to the device.
//
// P5: the agent's memory may then differ from the disk. Only a new object over the same file can
// continue, with the data on disk.
//
// P7: commit() does not wait for the device. A file with a failed sync is not checkpointed any
// more. If a broken object or a crash has left a WAL, the next object writes it again, and has a
// sync_target() from the start. Data from such a file may leave only after a sync.
//
// The host's tables (host/README.md, "On disk") are made when first needed, in the transaction that
// needs them. cf_agents_meta(key, value) comes with the first one: class, name, schema
// (kDataFormat), incarnation, and class_schema if it is not 0. cf_agents_state(id, state) comes
// with the first store_state(). `incarnation` is a random word that distinguishes agents that have
// had the same class and name, one after another. Every copy of a file has it.
//
// Bounded         If the owner calls checkpoint() whenever checkpoint_due(), the WAL has at most
//                 checkpoint_pages and the pages of the last commit. It grows further while a
//                 statement of the plugin reads, and after a failed checkpoint. The WAL of a busy
//                 agent keeps its length, so that later commits need no new blocks.
// Threads         One at a time: the agent's shard, or for checkpoint() and close() another thread
//                 that the shard has handed the database to.
// Lifetime        Statements on connection(), and the PluginSql, are destroyed before close().
// Failure         StorageError, and only that: I/O, corruption, disk full, wrong file.
class AgentDatabase {
 public:
  static constexpr std::chrono::milliseconds kPlaceInterval{10};

  // Opens the agent's file if there is one. If must_exist is not set, an absent or empty file is a
  // new agent. So is a file that a crash before the first commit has left (at most a page and no
  // WAL): it is removed. The first write makes the directories above the file (0700).
  AgentDatabase(std::filesystem::path path, AgentKey key, AgentDatabaseOptions options = {});

  // The agent that the file belongs to; nothing if no agent has committed to it. The file must not
  // be open elsewhere. Throws StorageError if it is not an agent's database.
  [[nodiscard]] static std::optional<AgentKey> owner_of(const std::filesystem::path& path);

  // The directory of the agent's other files, if it has any. It is removed with the agent.
  [[nodiscard]] std::filesystem::path files_directory() const { return files_beside(path_); }
  [[nodiscard]] static std::filesystem::path files_beside(std::filesystem::path database) {
    return database.replace_extension(kFilesExtension);
  }
  static constexpr const char* kFilesExtension = ".files";

  // Drops uncommitted writes. Never throws: call close() before, to see errors of closing.
  ~AgentDatabase();
  AgentDatabase(const AgentDatabase&) = delete;
  AgentDatabase& operator=(const AgentDatabase&) = delete;

  // Drops uncommitted writes, moves the WAL into the file, removes the WAL and closes. Afterwards
  // only the destructor may be called (asserted); a second close() does nothing. If it throws, the
  // WAL stays beside the file: no commit is lost, and the next open reads the WAL.
  void close();

  // ---- the implicit transaction --------------------------------------------------------------

  // Whether writes wait for commit().
  [[nodiscard]] bool dirty() const noexcept { return in_transaction_; }

  // Starts the transaction if it is not open. Call it before each write.
  void begin_write();

  // Makes the writes durable (P4). Does nothing if no write waits. It first resets statements that
  // are in the middle of writing (a half-read RETURNING), and releases open savepoints; statements
  // that read continue.
  void commit();

  // Undoes the writes that wait for commit(), which are all the host's own and can be made again.
  // Does nothing if there are none.
  void roll_back();

  // Whether the WAL is long enough that the owner should call checkpoint(). With `idle` a quarter
  // of checkpoint_pages is enough, because no event waits for an idle agent. False while a write is
  // uncommitted, or a statement is in the middle of reading.
  [[nodiscard]] bool checkpoint_due(bool idle = false) const;

  // Moves the WAL into the file and empties it. Waits for the device. Returns the error; empty:
  // success. After an error the commits are still in the WAL. The database is then broken if it has
  // a sync service, or if the WAL may be half emptied. Otherwise the next checkpoint is due when
  // the WAL has grown by checkpoint_pages more.
  std::string checkpoint();

  // Whether the database is broken (P5).
  [[nodiscard]] bool broken() const noexcept { return broken_; }
  // Whether AgentDatabaseOptions::max_pages bounds the file.
  [[nodiscard]] bool is_bounded() const noexcept { return options_.max_pages > 0; }

  // ---- the agent's state: one JSON text, or none ----------------------------------------------

  // Nothing if there is no state. The text as store_state() got it; it is not parsed.
  [[nodiscard]] std::optional<std::string> load_state();
  void store_state(std::string_view json);
  void remove_state();
  // The number of calls of these two. A rollback does not lower it: each write has its own number.
  [[nodiscard]] std::uint64_t state_writes() const noexcept { return state_writes_; }

  // ---- the version of the class's own data in the file ------------------------------------------

  // As last stored, in the open transaction too; 0: the class has no versions, or nothing is stored
  // yet.
  [[nodiscard]] std::uint32_t class_schema() const noexcept { return class_schema_; }
  // Not 0 (asserted). Part of the transaction.
  void store_class_schema(std::uint32_t version);

  // ---- for the layers that keep tables of their own in the file --------------------------------

  // The connection; makes and opens the file if it is not open. A caller that writes through it
  // calls begin_write() first.
  [[nodiscard]] sqlite3& connection();

  // The host's statement with the text `before` + `literal`, prepared once. The reference is good
  // until memory is released. At most one Rows of it is alive at a time.
  [[nodiscard]] Statement& kept(std::string_view literal, std::string_view before = {}) {
    return kept_.get(connection(), literal, before);
  }

  // In the open transaction, too. `name`: a literal.
  [[nodiscard]] bool has_table(std::string_view name);

  // The number of transactions that were started. A caller can compare two values to see whether
  // its transaction is still open.
  [[nodiscard]] std::uint64_t transactions() const noexcept { return transactions_; }

  // Call it after a plugin's statement failed. Some failures (a full disk, an interrupted write, ON
  // CONFLICT ROLLBACK) make SQLite roll back the whole transaction. Then this marks the database as
  // broken. True: it is broken.
  bool transaction_was_lost() noexcept;

  // Call it after a savepoint was rolled back: its tables may no longer exist.
  void forget_schema() noexcept;

  // Whether anything was ever written, in the open transaction too.
  [[nodiscard]] bool exists() const noexcept { return has_meta_; }

  // Whether anything was ever committed.
  [[nodiscard]] bool stored() const noexcept { return has_meta_ && !meta_is_pending_; }

  // The size of the data without free pages, with the open transaction.
  [[nodiscard]] std::int64_t used_bytes();

  // Frees cached pages and kept statements: all, for an agent that has become idle, or the pages
  // and those statements that were not used since the last call. Nothing in a transaction.
  void release_memory() noexcept;
  void release_unused() noexcept;

  // The target to sync after a commit. Null without a sync service. Null before the first write
  // too, except when an earlier object has left a WAL (P7).
  [[nodiscard]] const std::shared_ptr<SyncTarget>& sync_target() const noexcept { return target_; }

  [[nodiscard]] const AgentKey& key() const noexcept { return key_; }

 private:
  class FailStop;

  void open_file();
  void check_identity();
  void write_identity();
  void write_class_schema(std::uint32_t version);
  bool has_state_table();
  bool finds_table(std::string_view name);  // also of a broken database
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
  std::string close_connection();  // the error; empty: none
  void remove_if_unwritten() noexcept;

  std::filesystem::path path_;
  AgentKey key_;
  AgentDatabaseOptions options_;

  std::unique_ptr<Connection> connection_;  // null until the file is needed, and after close()
  KeptStatements kept_;                     // destroyed before connection_
  std::unique_ptr<SyncedFile> first_page_;  // until the target has it
  std::shared_ptr<SyncTarget> target_;      // shared with the requests in progress
  std::uint64_t inode_ = 0;   // of the open file; 0: not known, or with a VFS of a test
  std::uint64_t device_ = 0;  // of the open file
  std::chrono::steady_clock::time_point looked_at_;  // the last check_in_place()
  std::uint64_t transactions_ = 0;
  int wal_pages_ = -1;     // as of the last commit; -1: not known before the first one
  int checkpoint_at_ = 0;  // pages
  std::uint64_t state_writes_ = 0;
  std::uint32_t seen_mark_ = 0;  // of the CopyMark
  bool wal_is_blank_ = false;    // the WAL has blocks, but no content
  bool in_transaction_ = false;
  bool broken_ = false;
  bool closed_ = false;
  bool has_meta_ = false;  // cf_agents_meta exists, possibly uncommitted
  std::uint32_t class_schema_ = 0;
  bool meta_is_pending_ = false;   // ... in the open transaction
  std::optional<bool> has_state_;  // whether cf_agents_state exists; nothing: not known
  // The host's tables that has_table() has found outside a transaction: nothing drops them.
  std::vector<std::string_view> host_tables_;
};

}  // namespace hearth::storage
