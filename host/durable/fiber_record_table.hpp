#pragma once
// The records of an agent's managed fibers, in the agent's own database.

#include "durable/fiber_record.hpp"
#include "storage/agent_database.hpp"
#include "storage/statement.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace hearth::durable {

// What a walk over the records looks for; what is not set does not restrict.
struct RecordQuery {
  bool open = true;           // those that are not settled
  std::uint32_t settled = 0;  // bits: settled ones with these statuses
  std::string_view name{};
  std::int64_t before_ms = 0;      // created before
  std::int64_t after = INT64_MAX;  // older than the record with this seq
  bool dead = false;               // only those that recovery has given up
  bool spare_dead = false;         // only the others
};

// A settled record that has not been told.
struct UntoldRow {
  std::string id;
  std::int64_t tell_at_ms = 0;
  int failures = 0;
  int interruptions = 0;  // tellings in a row that were begun and not ended
};

//   cf_agents_fibers(seq INTEGER PRIMARY KEY, fiber_id TEXT NOT NULL UNIQUE, idempotency_key TEXT UNIQUE, name TEXT NOT NULL,
//                    status TEXT NOT NULL,   as a word; may be stale while completed_at is null
//                    dead, created_at, started_at, completed_at, attempts, failures, max_retries, retry_base, retry_cap, next_at,
//                    told INTEGER NOT NULL,  0: settled, and the agent's code has not heard of it
//                    tell_at, tell_failures, tell_interruptions (the last column: tables of earlier versions get it by upgrade()),
//                    keep TEXT,              how long it is kept: 'completed', 'failed'; null: as long as it takes
//                    input, metadata, snapshot, result, error)
//
// Three partial indexes: what is open, what is untold, and what retention looks at. Each costs only the records that it is about.
//
// Threads    The agent's shard.  Lifetime  Destroyed before the database is closed.
// Durable    Writes join the agent's implicit transaction; whoever calls decides when to commit.
// Failure    StorageError.
class FiberRecordTable {
 public:
  explicit FiberRecordTable(storage::AgentDatabase& database);
  ~FiberRecordTable();
  FiberRecordTable(const FiberRecordTable&) = delete;
  FiberRecordTable& operator=(const FiberRecordTable&) = delete;

  // Gives up its statements: the database is about to be closed.
  void close();

  // Reading makes nothing: an agent without the table has no records.
  [[nodiscard]] bool exists() { return has_table(); }
  // Gives a table of an earlier version the columns that came later. Once, before anything else but exists(). Writes only then.
  void upgrade();
  [[nodiscard]] std::optional<std::int64_t> seq_of(std::string_view id);
  [[nodiscard]] std::optional<FiberRecord> find(std::string_view id);
  [[nodiscard]] std::optional<FiberRecord> find_by_key(std::string_view key);
  // Newest first, until `see` returns false. `see` may read, but not write.
  void walk(const RecordQuery& query, const std::function<bool(FiberRecord&)>& see);
  [[nodiscard]] std::vector<std::string> open_ids();
  [[nodiscard]] std::vector<UntoldRow> untold();  // settled longest ago first
  // An upper bound of size(), at the cost of two looks into the table.
  [[nodiscard]] std::size_t size_bound();
  [[nodiscard]] std::size_t size();
  // Settled ones that `query` names, settled longest ago first, at most `limit`.
  [[nodiscard]] std::vector<std::string> settled_ids(const RecordQuery& query, std::size_t limit);

  void insert(const FiberRecord& record);
  // Everything that changes in the course of a fiber's life. A settled record has to be told then, an open one has not.
  void update(const FiberRecord& record, std::int64_t now_ms);
  // False if there is no such settled record.
  bool note_told(std::string_view id);
  bool note_not_told(std::string_view id, int failures, std::int64_t tell_at_ms);
  // Telling begins, or was given back: how many tellings in a row have had no end, this one included.
  void note_telling(std::string_view id, int interruptions, std::int64_t tell_at_ms);
  // Not to be told any more, and retention leaves it alone.
  void note_never_told(std::string_view id);
  void erase(std::string_view id);
  // Up to `limit` told records of each kind that were settled before. How many have gone.
  std::size_t erase_expired(std::int64_t completed_before_ms, std::int64_t failed_before_ms,
                            std::size_t limit);

 private:
  struct Prepared;

  bool has_table();
  void prepare_write();
  Prepared& prepared();
  std::optional<FiberRecord> first(storage::Statement& select, std::string_view param);

  storage::AgentDatabase& database_;
  bool has_table_ = false;
  std::unique_ptr<Prepared> prepared_;  // what starting and settling need
};

}  // namespace hearth::durable
