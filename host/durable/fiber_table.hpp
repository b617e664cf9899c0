#pragma once
// The rows of an agent's fibers, in the agent's own database.

#include "storage/agent_database.hpp"
#include "storage/statement.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace hearth::durable {

// One row. It exists while the fiber's work is not over.
//
//   cf_agents_runs(id TEXT PRIMARY KEY NOT NULL, name TEXT NOT NULL, snapshot TEXT, created_at INTEGER NOT NULL,
//                  attempts INTEGER NOT NULL DEFAULT 0,  how often recovery was begun since the last progress
//                  next_at INTEGER NOT NULL DEFAULT 0,   recovery is not begun before this moment; of a dead one: when it died
//                  dead INTEGER NOT NULL DEFAULT 0,      recovery was given up
//                  last_error TEXT,
//                  recoveries INTEGER NOT NULL DEFAULT 0)  how often recovery was begun in all (tables of earlier versions get
//                                                          the column by upgrade())
//
//   index cf_agents_runs_order(dead, created_at, id): what is dead costs those that are not nothing. A database that has none gets
//   it with its next write.
//   index cf_agents_runs_dead(dead, next_at) of the dead ones: retention finds those that have had their time without a look at the others.
//
// Times are Unix milliseconds. The first four columns are what agents' authors know; they read the table with SQL.
struct FiberRow {
  std::string id;
  std::string name;
  std::optional<std::string> snapshot;  // JSON
  std::int64_t created_at_ms = 0;
  int attempts = 0;
  std::int64_t next_at_ms = 0;
  bool dead = false;
  bool has_failed = false;  // a recovery of it has, since its last checkpoint
  int recoveries = 0;       // begun in all, whatever progress there was in between
};

// Threads    The agent's shard.  Lifetime  Destroyed before the database is closed.
// Durable    Writes join the agent's implicit transaction; whoever calls decides when to commit.
// Failure    StorageError.
class FiberTable {
 public:
  explicit FiberTable(storage::AgentDatabase& database) : database_(database) {}

  // Gives a table of an earlier version what came later. Once, before anything else. Writes only then: its dead ones, which do not
  // say when they died, count as having died at `now_ms`.
  void upgrade(std::int64_t now_ms);
  // Those that are not dead, oldest first, without their snapshots. Makes nothing: an agent without the table has none.
  [[nodiscard]] std::vector<FiberRow> load();
  // The dead one of this id; without its snapshot.
  [[nodiscard]] std::optional<FiberRow> find_dead(std::string_view id);
  // At most `limit` dead ones, oldest first: those after `after`, or from the first on. Without their snapshots.
  [[nodiscard]] std::vector<FiberRow> dead_after(const std::optional<FiberRow>& after,
                                                 std::size_t limit);
  [[nodiscard]] std::size_t count_dead();
  [[nodiscard]] bool has_dead();
  // At most `limit` ids of those that died at `before_ms` or earlier, dead longest first.
  [[nodiscard]] std::vector<std::string> dead_since(std::int64_t before_ms, std::size_t limit);
  [[nodiscard]] std::optional<std::string> snapshot(std::string_view id);
  [[nodiscard]] std::optional<std::string> last_error(std::string_view id);

  // Gives up its statements: the database is about to be closed.
  void close() { stash_.reset(); }

  void insert(const FiberRow& row);
  // The work has come further: the attempts so far no longer count. The recoveries do.
  void stash(std::string_view id, std::string_view json);
  // Writes its counts and its next_at.
  void note_attempt(const FiberRow& row);
  // Of one that is `dead` now, next_at is the moment of its death.
  void note_failure(std::string_view id, std::string_view error, std::int64_t next_at_ms,
                    bool dead);
  // Not dead any more, and both counts begin anew.
  void revive(std::string_view id);
  void erase(std::string_view id);

 private:
  void prepare_write();
  bool has_table();
  std::optional<std::string> text_of(std::string_view select, std::string_view id);

  storage::AgentDatabase& database_;
  bool has_table_ = false;
  bool has_index_ = false;
  std::unique_ptr<storage::Statement> stash_;  // the one that runs often
};

}  // namespace hearth::durable
