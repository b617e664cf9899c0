#pragma once
// The plugin's SQL on its agent's database: integer handles, limits, an authorizer.

#include "base/clock.hpp"
#include "base/error.hpp"
#include "base/slot_map.hpp"
#include "storage/agent_database.hpp"
#include "storage/authorizer.hpp"

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

// Never 0 and never used twice by one PluginSql: a stale handle is an error, not another statement.
enum class StatementHandle : std::uint64_t {};
enum class SavepointHandle : std::uint64_t {};

enum class StepOutcome {
  kRow,   // columns may be read
  kDone,  // finished; the next step() starts it again with the same bindings
};

// As SQLite tells them apart; values are SQLite's and cross the plugin ABI.
enum class ColumnType { kInteger = 1, kDouble = 2, kText = 3, kBlob = 4, kNull = 5 };

struct PluginSqlLimits {
  std::size_t max_sql_bytes = 256U << 10U;  // of one statement; values belong in variables
  int max_variables = 1'000;                // ?N in one statement
  std::size_t max_value_bytes = std::size_t{2} << 20;  // of one text or blob, and of one row
  int max_expression_depth = 100;                      // SQLite's parser recurses
  std::chrono::milliseconds sql_time{5'000};           // of one step(); it holds up the whole shard
  std::size_t max_open_handles = 64;                   // prepared and not finalized
  std::size_t cached_statements = 16;                  // finalized, kept for the next prepare()
  std::int64_t max_database_bytes = 0;  // past it growing statements fail; 0: no bound
};

// Promises
//  P1 Confined    Nothing a plugin prepares or runs changes the host's tables, leaves the file, or
//                 ends the host's transaction (authorizer.hpp).
//  P2 Bounded     PluginSqlLimits, each enforced before the memory or time is spent. A full-text
//                 query has at most kMostQueryTokens (step_budget.hpp), and a text bound to a
//                 statement that searches is within the bound of full_text_query.hpp. A pattern of
//                 LIKE or GLOB has at most 200 bytes, and fewer where SQLite's program of the
//                 statement has more than 8 places for them: 1,600 over their number. Not bounded
//                 so, where the SQL makes a query of literals and of what is stored, are NEAR,
//                 and queries of a table that names no tokenizer.
//  P3 One turn    A statement that writes joins the implicit transaction; the host commits.
//  P4 No surprise A misuse (stale handle, wrong column or parameter) is a Result, never a crash.
//  P5 Cheap again prepare() of a text that was finalized before takes it from a small cache.
//
// Errors   kInvalidArgument  SQL that SQLite rejects (its message), misuse of a handle
//          kForbidden        what the authorizer refuses, with the reason
//          kLimitExceeded    PluginSqlLimits, but for time; a table with AUTOINCREMENT that has
//                            given its largest rowid, for rows without one of their own
//          kTimeout          sql_time
//          kConflict         a constraint; a table locked by an open cursor of the plugin itself
//          kCancelled        step() on a cursor whose turn has ended, see end_turn()
//          StorageError is thrown for I/O, corruption and a full disk: the agent is to be evicted.
//          Messages are for the plugin's author and hold no paths.
//
// A few errors take the turn's whole transaction with them: a write that timed out, one for which
// AUTOINCREMENT had no rowid left, and a conflict for which the plugin itself has asked ROLLBACK.
// The error is returned, and the AgentDatabase is broken from then on: the turn's commit throws,
// and the agent comes back from the disk.
//
// Threads   One thread, the agent's shard.
// Lifetime  Destroyed before the AgentDatabase is closed. The clock outlives it.
class PluginSql {
 public:
  // Told of each rollback that has undone writes of the agent's state, with the number of the last
  // one that still counts (AgentDatabase::state_writes()). What the file holds is the state from
  // then on. Must not throw.
  using StateUndone = std::function<void(std::uint64_t last_write)>;

  PluginSql(AgentDatabase& database, const Clock& clock, PluginSqlLimits limits = {},
            StateUndone state_undone = {});
  ~PluginSql();
  PluginSql(const PluginSql&) = delete;
  PluginSql& operator=(const PluginSql&) = delete;

  // Compiles exactly one statement (trailing blanks, semicolons and comments are fine).
  Result<StatementHandle> prepare(std::string_view sql);

  // ---- parameters, numbered from 1; they keep their value over steps until bound again ---------
  // Text and blobs are copied. A statement that is between rows must be reset() before.
  Result<void> bind_null(StatementHandle handle, int index);
  Result<void> bind_int64(StatementHandle handle, int index, std::int64_t value);
  Result<void> bind_double(StatementHandle handle, int index, double value);
  Result<void> bind_text(StatementHandle handle, int index, std::string_view value);
  Result<void> bind_blob(StatementHandle handle, int index, std::span<const std::byte> value);
  Result<int> parameter_count(StatementHandle handle);

  // Runs to the next row or to the end.
  Result<StepOutcome> step(StatementHandle handle);

  // ---- columns, numbered from 0 --------------------------------------------------------------
  // Count and names at any time; values only after kRow. Numbers and texts are converted as SQLite
  // converts them. Views stay valid until the next call with the same handle.
  Result<int> column_count(StatementHandle handle);
  Result<std::string_view> column_name(StatementHandle handle, int column);
  Result<ColumnType> column_type(StatementHandle handle, int column);
  Result<std::int64_t> column_int64(StatementHandle handle, int column);
  Result<double> column_double(StatementHandle handle, int column);
  Result<std::string_view> column_text(StatementHandle handle, int column);
  Result<std::span<const std::byte>> column_blob(StatementHandle handle, int column);

  // Back to before the first row; bindings stay.
  Result<void> reset(StatementHandle handle);

  // Gives the handle up. An unknown handle is kInvalidArgument and harmless.
  Result<void> finalize(StatementHandle handle);

  // Rows changed by the last finished INSERT, UPDATE or DELETE of the plugin, and the rowid of its
  // last INSERT; 0 if there was none.
  [[nodiscard]] std::int64_t changes() const noexcept { return changes_; }
  [[nodiscard]] std::int64_t last_insert_rowid() const noexcept { return last_insert_rowid_; }

  // ---- savepoints: parts of a turn that can be undone ------------------------------------------
  // They nest, at most kMaxSavepoints deep, inside the implicit transaction. The commit of the turn
  // keeps what they hold and ends them all: their handles are stale afterwards (kInvalidArgument).
  static constexpr std::size_t kMaxSavepoints = 16;
  Result<SavepointHandle> begin_savepoint();
  // Keeps its writes; ends it and those inside it.
  Result<void> release(SavepointHandle savepoint);
  // Undoes its writes, those of the agent's state too; ends it and those inside it.
  Result<void> rollback_to(SavepointHandle savepoint);

  // ---- for the host --------------------------------------------------------------------------

  // The event ends or suspends. Cursors between rows are reset, so that none holds the WAL back;
  // step() on one is kCancelled until it is reset.
  void end_turn() noexcept;

  // Drops the cached statements. For an agent that has fallen idle.
  void release_memory() noexcept;

  // Whether a savepoint of this transaction is open: then the next turn must not share its commit.
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
    bool searches = false;  // full text: what is bound to it may be a query
    bool changes_schema = false;
    int matches = 0;               // as count_matches()
    std::uint64_t matches_of = 0;  // the schema_version_ that they are of; 0: not counted
    Cursor cursor = Cursor::kIdle;
  };
  struct Savepoint {
    SavepointHandle handle;
    std::uint64_t transaction;   // AgentDatabase::transactions() when it was begun
    std::uint64_t state_writes;  // AgentDatabase::state_writes() likewise
  };
  class PluginScope;  // while it lives, the authorizer, the limits and the deadline are active

  void attach();
  Result<Compiled> compile(std::string_view sql);
  std::optional<Error> refuse_unreported(sqlite3_stmt& stmt, std::string_view sql) const;
  void count_matches(Compiled& compiled);
  bool schema_names_match();
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
  std::vector<Compiled> cache_;  // least recently used first
  std::vector<Savepoint> savepoints_;
  std::uint64_t last_savepoint_ = 0;
  std::uint64_t schema_version_ = 1;   // rises whenever the plugin may have changed the schema
  std::uint64_t matching_schema_ = 0;  // the one that schema_matches_ is of
  bool schema_matches_ = false;        // it has LIKE or GLOB somewhere
  std::int64_t changes_ = 0;
  std::int64_t last_insert_rowid_ = 0;
};

}  // namespace hearth::storage
