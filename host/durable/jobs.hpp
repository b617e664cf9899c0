#pragma once
// The jobs of one agent: every piece of its durable work, in the agent's own database.

#include "base/clock.hpp"
#include "durable/retry_policy.hpp"
#include "storage/agent_database.hpp"
#include "storage/statement.hpp"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace hearth::durable {

enum class JobKind : std::int64_t {
  kFiber = 1,
  kManaged = 2,
  kSchedule = 3,
  kItem = 4,
  kNotice = 5,
  kAlarm = 6
};

enum class JobState : std::int64_t {
  kWaiting = 0,  // begins when due_at comes; without due_at it stands behind another
  kClaimed = 1,  // by the instance that lives; one that is gone has left it: release()
  kDead = 2,
  kUntold = 3,  // settled; the agent's code hears of it when due_at comes
  kSettled = 4,
};

// What may be large lies beside the row, so that writing one rewrites neither the row nor the
// others.
enum class JobPart : std::int64_t {
  kInput = 1,  // or the payload
  kMetadata = 2,
  kSnapshot = 3,
  kResult = 4,
  kError = 5,
  kLastError = 6,  // of the host's last try
  kScope = 7,      // of a managed fiber: see Operations::keep_scope()
  kPassed = 8,     // of a turn that was given up, empty: a later one has begun
};
// The documents from this part on are marks: ManagedFibers::once().
inline constexpr std::int64_t kFirstMark = 16;

// A row without its documents. The columns are described in storage/agent_schema.hpp; those of
// schedules alone are in schedule_table.hpp. Times are Unix milliseconds.
struct Job {
  std::int64_t seq = 0;
  JobKind kind = JobKind::kFiber;
  JobState state = JobState::kWaiting;
  std::optional<std::int64_t> due_at_ms{};
  std::string id{};
  std::string name{};
  std::optional<std::string> key{};
  std::int64_t created_at_ms = 0;
  std::optional<std::int64_t> started_at_ms{};
  std::optional<std::int64_t> ended_at_ms{};
  std::int64_t next_at_ms = 0;  // the present step does not begin before; 0: at once
  int attempts = 0;
  int claims = 0;
  int failures = 0;
  int interruptions = 0;
  int fatal_attempts = 0;          // runs that ended the process
  std::int64_t runs_since_ms = 0;  // in this instance; in memory only
  RetryPolicy retry{0, std::chrono::milliseconds(0), std::chrono::milliseconds(0)};
  bool dead = false;
  bool has_failed = false;  // the host's last try has, and left kLastError
  std::optional<std::string> status{};
  int tell_failures = 0;
  std::optional<std::string> keep{};
  std::optional<std::string> parent{};  // the id of the fiber that asked for this one
  std::optional<std::string> type{};    // of a managed fiber: see ManagedFibers

  // Of a managed fiber: its record goes when it is settled; it is a turn.
  [[nodiscard]] bool is_brief() const { return type == "brief" || type == "turn"; }
  [[nodiscard]] bool is_turn() const { return type == "turn" || type == "kept turn"; }

  // Where it stands in its line: now, if nothing says later.
  void wait() {
    state = JobState::kWaiting;
    due_at_ms = next_at_ms > 0 ? next_at_ms : created_at_ms;
  }
  void claim() {
    state = JobState::kClaimed;
    due_at_ms.reset();
  }
};

// Promises
//  P1 One index   What is due, what is dead and what is behind the head are neighbours in one
//                 index: neither claiming nor looking for the next moment costs more with 10,000
//                 jobs than with 10.
//  P2 Lazy        Reading makes nothing: an agent without work has no tables.
//  P3 Compiled    A text of SQL is compiled once. A kind is compared as `kind = +?`: there are
//     once        partial indexes of a kind, and SQLite compiles a statement anew with each value
//                 of a parameter from which it could tell whether such an index serves. A kind or a
//                 state beside a column that tells more (parent, key) has a `+` too: else SQLite
//                 may take an index of the kind, and read all of its rows.
//
// Threads    The agent's shard.  Lifetime  Destroyed, or closed, before the database is closed.
// Durable    Writes join the agent's implicit transaction; the caller decides when to commit.
// Failure    StorageError.
class Jobs {
 public:
  using Params = std::span<const storage::Param>;

  explicit Jobs(storage::AgentDatabase& database) : database_(database) {}

  // Gives up its statements.
  void close() { statements_.clear(); }
  [[nodiscard]] bool exists();

  // ---- rows ----
  // Texts of SQL are literals: each is prepared once and kept. `where` is what follows the table's
  // name, up to the ORDER BY.
  [[nodiscard]] std::optional<Job> first(std::string_view where, Params params);
  // Until `see` returns false. `see` may read by other texts than this one, but not write.
  void each(std::string_view where, Params params, const std::function<bool(Job&)>& see);
  [[nodiscard]] std::optional<Job> find(std::int64_t seq);
  [[nodiscard]] std::optional<Job> find(JobKind kind, std::string_view id);
  // The first column of the first row; nothing if there is none, or it is null.
  [[nodiscard]] std::optional<std::int64_t> number(std::string_view sql, Params params);
  // How many rows were changed, documents that went with their jobs included.
  std::int64_t run(std::string_view sql, Params params);

  // Gives the job its seq.
  void insert(Job& job);
  // Everything that changes in its life.
  void update(const Job& job);
  void erase(std::int64_t seq);  // and its documents

  // ---- traces ----
  // To which trace a job belongs, as a traceparent. The first one stays.
  void keep_trace(JobKind kind, std::string_view id, std::string_view trace);
  // Empty: to none, or there is no such job.
  [[nodiscard]] std::string trace_of(JobKind kind, std::string_view id);

  // ---- lines ----
  // The first of a line, by its due_at; of those that fit, if `fits` is given.
  [[nodiscard]] std::optional<Job> first_due(JobKind kind, JobState state,
                                             const std::function<bool(const Job&)>& fits = {});
  [[nodiscard]] bool has_any(JobKind kind);
  [[nodiscard]] bool has_any(JobKind kind, JobState state);
  // What an instance that is gone had claimed, and was about to do (`settled` false) or tell
  // (true), waits again.
  void release(JobKind kind, bool settled, std::int64_t now_ms);
  // A line moves by so much: the wall's clock was set.
  void shift(JobKind kind, JobState state, std::int64_t by_ms);
  // No wait is longer than this: one that is was written by a clock that has been set back since.
  // One that has no wait is due.
  void bound_waits(JobKind kind, JobState state, std::int64_t now_ms,
                   std::chrono::milliseconds cap);

  // ---- numbers and retention ----
  // An upper bound of count(), at the cost of two looks into an index.
  [[nodiscard]] std::size_t count_bound(JobKind kind);
  [[nodiscard]] std::size_t count(JobKind kind);
  // Those under this retention that ended at `before_ms` or earlier, longest ago first; at most
  // `limit`.
  [[nodiscard]] std::vector<Job> expired(std::string_view keep, std::int64_t before_ms,
                                         std::size_t limit);

  // ---- documents ----
  [[nodiscard]] std::optional<std::string> document(std::int64_t seq, JobPart part);
  // But marks.
  void each_document(std::int64_t seq,
                     const std::function<void(JobPart, std::string_view body)>& see);
  // None: it goes.
  void put(std::int64_t seq, JobPart part, std::optional<std::string_view> body);

  // Before a write of one's own: makes the tables.
  void prepare_write();

 private:
  storage::Statement& kept(std::string_view sql);

  storage::AgentDatabase& database_;
  bool exists_ = false;
  std::unordered_map<const char*, std::unique_ptr<storage::Statement>> statements_;  // by literal
};

}  // namespace hearth::durable
