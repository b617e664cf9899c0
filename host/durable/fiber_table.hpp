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
//                  next_at INTEGER NOT NULL DEFAULT 0,   recovery is not begun before this moment
//                  dead INTEGER NOT NULL DEFAULT 0,      recovery was given up
//                  last_error TEXT)
//
//   index cf_agents_runs_order(dead, created_at, id): what is dead costs those that are not nothing. A database that has none gets
//   it with its next write.
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
};

// Threads    The agent's shard.  Lifetime  Destroyed before the database is closed.
// Durable    Writes join the agent's implicit transaction; whoever calls decides when to commit.
// Failure    StorageError.
class FiberTable {
 public:
  explicit FiberTable(storage::AgentDatabase& database) : database_(database) {}

  // Those that are not dead, oldest first, without their snapshots. Makes nothing: an agent without the table has none.
  [[nodiscard]] std::vector<FiberRow> load();
  // The dead one of this id; without its snapshot.
  [[nodiscard]] std::optional<FiberRow> find_dead(std::string_view id);
  // At most `limit` dead ones, oldest first: those after `after`, or from the first on. Without their snapshots.
  [[nodiscard]] std::vector<FiberRow> dead_after(const std::optional<FiberRow>& after,
                                                 std::size_t limit);
  [[nodiscard]] std::size_t count_dead();
  [[nodiscard]] std::optional<std::string> snapshot(std::string_view id);
  [[nodiscard]] std::optional<std::string> last_error(std::string_view id);

  // Gives up its statements: the database is about to be closed.
  void close() { stash_.reset(); }

  void insert(const FiberRow& row);
  // The work has come further: what recovery has tried so far no longer counts.
  void stash(std::string_view id, std::string_view json);
  void note_attempt(std::string_view id, int attempts, std::int64_t next_at_ms);
  void note_failure(std::string_view id, std::string_view error, std::int64_t next_at_ms,
                    bool dead);
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
