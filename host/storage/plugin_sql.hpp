#pragma once
// A plugin's SQL on its agent's database: integer handles, limits, an authorizer.

#include "base/clock.hpp"
#include "base/error.hpp"
#include "base/slot_map.hpp"
#include "storage/agent_database.hpp"
#include "storage/authorizer.hpp"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

struct sqlite3_stmt;

namespace hearth::storage {

// Never 0 and never reused by one PluginSql, so a stale handle is an error, not another statement.
enum class StatementHandle : std::uint64_t {};
enum class SavepointHandle : std::uint64_t {};

enum class StepOutcome {
  kRow,   // columns may be read
  kDone,  // finished; the next step() starts it again with the same bindings
};

// SQLite's types and numbers; they cross the plugin ABI.
enum class ColumnType { kInteger = 1, kDouble = 2, kText = 3, kBlob = 4, kNull = 5 };

// FTS5 holds the places of all words of a query in a row at the same time: up to a megabyte a word.
inline constexpr std::size_t kMostSearchBytes = 1'000;

struct PluginSqlLimits {
  std::size_t max_sql_bytes = 256U << 10U;             // of one statement; pass values as variables
  int max_variables = 1'000;                           // ?N in one statement
  std::size_t max_value_bytes = std::size_t{2} << 20;  // of one text or blob, and of one row
  int max_expression_depth = 100;                      // SQLite's parser recurses
  std::chrono::milliseconds sql_time{5'000};           // of one step(), which blocks the shard
  std::size_t max_open_handles = 64;                   // prepared, not finalized
  std::size_t cached_statements = 32;                  // finalized, kept for the next prepare()
  std::int64_t max_database_bytes = 0;  // above it, statements that grow it fail; 0: no bound
};

// Promises
//  P1 Confined    No statement of a plugin changes the host's tables, reaches another file, or ends
//                 the host's transaction (authorizer.hpp).
//  P2 Bounded     Each limit, of PluginSqlLimits and below, is enforced before the memory or time
//                 is spent.
//  P3 One turn    A statement that writes joins the implicit transaction; the host commits.
//  P4 No surprise A misuse (stale handle, wrong column or parameter) is a Result, never a crash.
//  P5 Cheap again prepare() of a text that was finalized before takes it from a small cache.
//
// P2, limits besides PluginSqlLimits:
//   patterns   a pattern of LIKE or GLOB has at most 200 bytes
//   searches   a text bound to a statement with MATCH has at most kMostSearchBytes
//   functions  sql_guards.hpp
// The time is looked at between SQLite's instructions. A function of SQLite is one instruction, and
// so is a search's look at one row: these take as long as they take.
//
// Errors   kInvalidArgument  SQL that SQLite rejects (its message), misuse of a handle
//          kForbidden        refused by the authorizer, with the reason
//          kLimitExceeded    PluginSqlLimits except time; an insert without a rowid into a table
//                            with AUTOINCREMENT that has used its largest rowid
//          kTimeout          sql_time
//          kConflict         a constraint; a table locked by an open cursor of the plugin itself
//          kCancelled        step() on a cursor whose turn has ended, see end_turn()
//          StorageError is thrown for I/O, corruption and a full disk: the caller evicts the agent.
//          Messages are for the plugin's author and hold no paths.
//
// Three errors roll back the turn's whole transaction: a write that timed out, an insert for which
// AUTOINCREMENT had no rowid left, and a conflict of a statement with ON CONFLICT ROLLBACK. The
// call returns the error, and the AgentDatabase is broken: the turn's commit throws, and the agent
// restarts from the data on disk.
//
// Threads   One thread, the agent's shard.
// Lifetime  Destroyed before the AgentDatabase is closed. The clock outlives it.
class PluginSql {
 public:
  // Called after each rollback that has undone writes of the agent's state, with the number of the
  // last write that is still valid (AgentDatabase::state_writes()). From then on the state is the
  // one in the file. Must not throw.
  using StateUndone = std::function<void(std::uint64_t last_write)>;

  PluginSql(AgentDatabase& database, const Clock& clock, PluginSqlLimits limits = {},
            StateUndone state_undone = {});
  ~PluginSql();
  PluginSql(const PluginSql&) = delete;
  PluginSql& operator=(const PluginSql&) = delete;

  // Compiles exactly one statement. Blanks, semicolons and comments may follow it.
  // `may_create`: a view of durable work that does not exist yet is made in the file. Without it
  // one statement at a time may name such views, without `main.`, if the file has durable work.
  Result<StatementHandle> prepare(std::string_view sql, bool may_create = true);
  // From now on a call takes at most this, if it is less than limits.sql_time.
  void limit_time(std::optional<std::chrono::milliseconds> most) { time_ = most; }
  // Whether it may write.
  Result<bool> writes(StatementHandle handle);

  // ---- parameters, numbered from 1; they keep their value over steps until bound again ---------
  // Text and blobs are copied. Call reset() first if the statement is between rows.
  Result<void> bind_null(StatementHandle handle, int index);
  Result<void> bind_int64(StatementHandle handle, int index, std::int64_t value);
  Result<void> bind_double(StatementHandle handle, int index, double value);
  Result<void> bind_text(StatementHandle handle, int index, std::string_view value);
  Result<void> bind_blob(StatementHandle handle, int index, std::span<const std::byte> value);
  Result<int> parameter_count(StatementHandle handle);

  // Runs to the next row or to the end.
  Result<StepOutcome> step(StatementHandle handle);

  // ---- columns, numbered from 0 --------------------------------------------------------------
  // Count and names at any time; values only after kRow. SQLite converts numbers and texts. Views
  // stay valid until the next call with the same handle.
  Result<int> column_count(StatementHandle handle);
  Result<std::string_view> column_name(StatementHandle handle, int column);
  Result<ColumnType> column_type(StatementHandle handle, int column);
  Result<std::int64_t> column_int64(StatementHandle handle, int column);
  Result<double> column_double(StatementHandle handle, int column);
  Result<std::string_view> column_text(StatementHandle handle, int column);
  Result<std::span<const std::byte>> column_blob(StatementHandle handle, int column);

  // Back to before the first row; bindings stay.
  Result<void> reset(StatementHandle handle);

  // Releases the handle. An unknown handle is kInvalidArgument, and has no effect.
  Result<void> finalize(StatementHandle handle);

  // Rows changed by the last finished INSERT, UPDATE or DELETE of the plugin, and the rowid of its
  // last INSERT; 0 if there was none.
  [[nodiscard]] std::int64_t changes() const noexcept { return changes_; }
  [[nodiscard]] std::int64_t last_insert_rowid() const noexcept { return last_insert_rowid_; }

  // ---- savepoints: parts of a turn that can be undone ------------------------------------------
  // They nest, at most kMaxSavepoints deep, inside the implicit transaction. The commit of the turn
  // keeps their writes and ends them all: their handles are stale afterwards (kInvalidArgument).
  static constexpr std::size_t kMaxSavepoints = 16;
  Result<SavepointHandle> begin_savepoint();
  // Keeps its writes; ends it and the savepoints inside it.
  Result<void> release(SavepointHandle savepoint);
  // Undoes its writes, also to the agent's state; ends it and the savepoints inside it.
  Result<void> rollback_to(SavepointHandle savepoint);

  // ---- for the host --------------------------------------------------------------------------

  // Call it when the event ends or suspends. Resets cursors that are between rows, so that none
  // blocks a checkpoint. step() on such a cursor is kCancelled until the plugin resets it.
  void end_turn() noexcept;

  // Drops the cached statements: all, for an agent that has become idle, or those that were not
  // used since the last call.
  void release_memory() noexcept;
  void release_unused() noexcept;

  // Whether a savepoint of this transaction is open. The next turn must then not share its commit.
  [[nodiscard]] bool has_savepoints() const noexcept {
    return database_.dirty() && !savepoints_.empty() &&
           savepoints_.back().transaction == database_.transactions();
  }

 private:
  struct Finalize {
    void operator()(sqlite3_stmt* stmt) const noexcept;
  };
  using OwnedStatement = std::unique_ptr<sqlite3_stmt, Finalize>;

  enum class Cursor {
    kIdle,     // before the first step, after the last row, or reset
    kOnRow,    // columns can be read
    kExpired,  // was on a row when its turn ended
  };
  struct Compiled {
    OwnedStatement stmt;
    bool worth_keeping = false;
    bool writes = false;    // needs the transaction
    bool grows = false;     // may need more pages: it writes more than a DELETE or DROP does
    bool searches = false;  // full text: a bound value may be a query
    bool used = true;       // since release_unused()
    Cursor cursor = Cursor::kIdle;
  };
  struct Savepoint {
    SavepointHandle handle;
    std::uint64_t transaction;   // AgentDatabase::transactions() at its begin
    std::uint64_t state_writes;  // AgentDatabase::state_writes() at its begin
  };
  class PluginScope;  // while it lives, the authorizer, the limits and the deadline are active

  void attach();
  Result<Compiled> compile(std::string_view sql);
  Result<StatementHandle> prepare_with_views(std::string_view sql, const Error& why);
  std::optional<Error> refuse_unreported(sqlite3_stmt& stmt, std::string_view sql) const;
  std::optional<Compiled> take_cached(std::string_view sql);
  void keep_for_later(Compiled compiled);
  Result<void> check_growth(const Compiled& compiled);
  Result<StepOutcome> finish_step(Compiled& compiled, int outcome);
  Error to_error(int code);
  void rewind(Compiled& compiled) noexcept;
  Result<Compiled*> find(StatementHandle handle);
  Result<sqlite3_stmt*> find_to_bind(StatementHandle handle, std::string_view value);
  Result<sqlite3_stmt*> find_value(StatementHandle handle, int column);
  Result<void> bound(int code);
  Result<std::size_t> find_savepoint(SavepointHandle savepoint);
  void run_savepoint(const char* verb, std::size_t depth);
  void drop_ended_savepoints();

  AgentDatabase& database_;
  const Clock& clock_;
  const PluginSqlLimits limits_;
  const StateUndone state_undone_;          // may be empty
  sqlite3* connection_ = nullptr;           // null until attach()
  std::unique_ptr<Authorizer> authorizer_;  // null until attach()
  SlotMap<Compiled> open_;
  std::optional<StatementHandle> views_of_;  // for which views of this connection were made
  std::vector<Compiled> cache_;              // least recently used first
  std::vector<Savepoint> savepoints_;
  std::uint64_t last_savepoint_ = 0;
  [[nodiscard]] std::chrono::milliseconds time_of_call() const {
    return std::min(limits_.sql_time, time_.value_or(limits_.sql_time));
  }

  std::optional<std::chrono::milliseconds> time_;  // limit_time()
  std::optional<SteadyTime> deadline_;             // of the call in progress
  std::int64_t changes_ = 0;
  std::int64_t last_insert_rowid_ = 0;
};

}  // namespace hearth::storage
