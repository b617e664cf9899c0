#pragma once
// The rows of an agent's queue, in the agent's own database.

#include "durable/retry_policy.hpp"
#include "storage/agent_database.hpp"
#include "storage/statement.hpp"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace hearth::durable {

// One row. Times are Unix milliseconds.
//
//   cf_agents_queues(seq INTEGER PRIMARY KEY,  the order of delivery
//                    id TEXT NOT NULL UNIQUE, callback TEXT NOT NULL, created_at INTEGER NOT NULL,
//                    dead INTEGER NOT NULL DEFAULT 0,
//                    deliveries INTEGER NOT NULL DEFAULT 0,     how often it was claimed
//                    failures INTEGER NOT NULL DEFAULT 0,       of the callback
//                    interruptions INTEGER NOT NULL DEFAULT 0,  claims in a row of which no end is known
//                    next_at INTEGER NOT NULL DEFAULT 0,        not delivered before
//                    max_attempts, retry_base, retry_cap, last_error TEXT, payload TEXT)
struct QueueRow {
  std::int64_t seq = 0;
  std::string id;
  std::string callback;
  std::int64_t created_at_ms = 0;
  bool dead = false;
  int deliveries = 0;
  int failures = 0;
  int interruptions = 0;
  std::int64_t next_at_ms = 0;
  RetryPolicy retry;
  std::optional<std::string> last_error;
  std::optional<std::string> payload;  // JSON; none is null
};

// The first one that is not dead. What its delivery needs is read when it is delivered.
struct QueueHead {
  std::int64_t seq = 0;
  int interruptions = 0;
  std::int64_t next_at_ms = 0;
  std::int64_t longest_wait_ms = 0;  // of its retries
};

// What a walk looks for; what is not set does not restrict.
struct QueueQuery {
  std::string_view callback{};
  std::optional<bool> dead{};
  std::optional<std::int64_t> only{};    // the row with this seq
  std::optional<std::int64_t> except{};  // any but this one
  std::int64_t after = 0;                // with a greater seq
};

// Threads    The agent's shard.  Lifetime  Destroyed before the database is closed.
// Durable    Writes join the agent's implicit transaction; whoever calls decides when to commit.
// Failure    StorageError.
class QueueTable {
 public:
  explicit QueueTable(storage::AgentDatabase& database);
  ~QueueTable();
  QueueTable(const QueueTable&) = delete;
  QueueTable& operator=(const QueueTable&) = delete;

  // Gives up its statements: the database is about to be closed.
  void close();

  // Reading makes nothing: an agent without the table has no rows.
  [[nodiscard]] std::optional<QueueHead> head();
  [[nodiscard]] std::optional<QueueRow> find(std::string_view id);
  [[nodiscard]] std::optional<QueueRow> find(std::int64_t seq);
  [[nodiscard]] std::optional<std::int64_t> seq_of(std::string_view id);
  // In the order of delivery, until `see` returns false. `see` may read, but not write.
  void walk(const QueueQuery& query, const std::function<bool(QueueRow&)>& see);
  // An upper bound of size(), at the cost of two looks into the table.
  [[nodiscard]] std::size_t size_bound();
  [[nodiscard]] std::size_t size();

  // At the end; returns its seq.
  std::int64_t append(const QueueRow& row);
  // Everything that changes: dead, the counts, next_at, last_error.
  void update(const QueueRow& row);
  void erase(std::int64_t seq);
  // How many have gone.
  std::size_t erase(const QueueQuery& query);
  // To the end, alive.
  void move_to_end(std::int64_t seq);

 private:
  struct Prepared;

  bool has_table();
  void prepare_write();
  Prepared& prepared();

  storage::AgentDatabase& database_;
  bool has_table_ = false;
  std::unique_ptr<Prepared> prepared_;  // what pushing and delivering need
};

}  // namespace hearth::durable
