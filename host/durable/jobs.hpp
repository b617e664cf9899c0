#pragma once
// The jobs of one agent: all of its durable work but operations, in the agent's own database.

#include "base/clock.hpp"
#include "base/work_mark.hpp"
#include "durable/retry_policy.hpp"
#include "durable/wake.hpp"
#include "storage/agent_database.hpp"
#include "storage/statement.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace hearth::durable {

enum class JobKind : std::int64_t {
  kFiber = 2,
  kSchedule = 3,
  kItem = 4,
  kNotice = 5,
  kAlarm = 6,
  kTelling = 7,
  kQuestion = 8,  // always dead; see DurableWork::waits_for_person()
};

enum class JobState : std::int64_t {
  kWaiting = 0,  // begins when due_at comes; without due_at it waits behind another job
  kClaimed = 1,  // by this instance, or by an earlier one: see Jobs::release()
  kDead = 2,
  kSettled = 3,
};

// Documents: values that may be large, each stored beside the row. A write of one rewrites neither
// the row nor other documents.
enum class JobPart : std::int64_t {
  kInput = 1,  // or the payload
  kMetadata = 2,
  kSnapshot = 3,
  kResult = 4,
  kError = 5,
  kLastError = 6,  // of the host's last try
  kScope = 7,      // of a fiber: see OperationFibers::keep()
  kResets = 9,     // empty; of a fiber: see FiberRequest::resets_by_progress
  kPassed = 8,     // empty; of a turn that was given up: a later turn has begun
  kReason = 10,    // of the end of a fiber
};
// Documents from this part on are marks: see FiberTable::mark().
inline constexpr std::int64_t kFirstMark = 16;
// Of kError and kLastError; the rest of a longer text is cut off.
inline constexpr std::size_t kMaxJobErrorBytes = 4096;

// The process has crashed in work of an agent.
struct EndedProcess {
  // The row of the job that ran. kSeveralRows: the crash counts for none. Nothing: unknown.
  std::optional<std::int64_t> row;
};

// A row without its documents. storage/agent_schema.hpp describes the columns, schedule_table.hpp
// those that only schedules have. Times are Unix milliseconds.
//
//   counter         fiber                           the others                    schedule
//   attempts        recoveries since progress       -                             failed tries of
//                                                                                 the occurrence
//   claims          recoveries in all               deliveries begun              ended runs
//   failures        failed runs of the work         failed deliveries             failed runs
//   interruptions   tries without an end in a row, the one in progress included (JobLine)
//   fatal_attempts  tries that crashed the process (JobLine)
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
  std::int64_t next_at_ms = 0;  // the next try does not begin before; 0: at once
  std::int64_t set_at_ms = 0;   // when next_at_ms was set
  int attempts = 0;
  int claims = 0;
  int failures = 0;
  int interruptions = 0;
  int fatal_attempts = 0;
  std::int64_t runs_since_ms = 0;  // when it began to run in this instance; in memory only
  RetryPolicy retry{0, std::chrono::milliseconds(0), std::chrono::milliseconds(0)};
  bool dead = false;
  bool has_failed = false;  // the host's last try failed, and left kLastError
  std::optional<std::string> status{};
  std::optional<std::string> keep{};
  std::optional<std::string> parent{};  // the id of the fiber that asked for this one
  std::optional<std::string> type{};    // of a fiber: see Fibers
  std::optional<std::string> lane{};    // of a fiber

  // It lacks code that knows it, and is due with the next version.
  [[nodiscard]] bool waits_for_code() const {
    return state == JobState::kWaiting && due_at_ms && is_next_version(*due_at_ms);
  }
  // For fibers. Brief: the record is removed when the fiber is settled.
  [[nodiscard]] bool is_brief() const { return type == "brief" || type == "turn"; }
  [[nodiscard]] bool is_turn() const { return type == "turn" || type == "kept turn"; }

  // Waits for next_at_ms; without that, it is due now, in the order of creation.
  void wait(std::int64_t now_ms) {
    state = JobState::kWaiting;
    due_at_ms = next_at_ms > 0 ? due_at(next_at_ms) : std::min(created_at_ms, now_ms);
    set_at_ms = now_ms;
  }
  void claim(std::int64_t now_ms) {
    state = JobState::kClaimed;
    due_at_ms.reset();
    set_at_ms = now_ms;
  }
};

// Work that has failed so often in a row may fail for ever: Wake::needs_person.
inline constexpr int kOftenFailed = 3;

// Promises
//  P1 One index   Claiming a job and looking for the next moment cost no more with 10,000 jobs than
//                 with 10.
//  P2 Lazy        Reading makes nothing: an agent without work has no tables.
//  P3 Compiled    A text of SQL is compiled once.
//
// P1: due jobs, dead jobs and jobs behind the head are ranges of one index.
// P3: a kind is compared as `kind = +?`. There are partial indexes on kinds. SQLite recompiles a
// statement for each new value of a parameter that could decide whether such an index applies. A
// kind or a state beside a more selective column (parent, key) has a `+` too: without it SQLite may
// take an index of the kind, and read all of its rows.
//
// Threads    The agent's shard.  Lifetime  Destroyed before the database is closed.
// Durable    Writes join the agent's implicit transaction; the caller decides when to commit.
// Failure    StorageError.
class Jobs {
 public:
  using Params = std::span<const storage::Param>;

  explicit Jobs(storage::AgentDatabase& database) : database_(database) {}

  [[nodiscard]] bool exists();

  // ---- rows ----
  // Texts of SQL are literals: each is prepared once and kept. `where` is all that follows the
  // table's name. Values are as Statement::query() takes them.
  [[nodiscard]] std::optional<Job> first(std::string_view where,
                                         const storage::ParamValue auto&... values) {
    std::optional<Job> found;
    each(where, storage::params_of(values...), [&](Job& job) {
      found = std::move(job);
      return false;
    });
    return found;
  }
  // Calls `see` with each row until it returns false. `see` may read with other texts than this
  // one, but not write.
  void each(std::string_view where, Params params, const std::function<bool(Job&)>& see);
  [[nodiscard]] std::vector<Job> all(std::string_view where, Params params);
  [[nodiscard]] auto all(std::string_view where, const storage::ParamValue auto&... values) {
    return all(where, storage::params_of(values...));
  }
  [[nodiscard]] std::optional<Job> find(std::int64_t seq);
  [[nodiscard]] std::optional<Job> find(JobKind kind, std::string_view id);
  // The first column of the first row; nothing: no row, or null.
  [[nodiscard]] std::optional<std::int64_t> number(std::string_view sql, Params params);
  [[nodiscard]] auto number(std::string_view sql, const storage::ParamValue auto&... values) {
    return number(sql, storage::params_of(values...));
  }
  // The number of changed rows, with the documents that were removed with their jobs.
  std::int64_t run(std::string_view sql, Params params);
  std::int64_t run(std::string_view sql, const storage::ParamValue auto&... values) {
    return run(sql, storage::params_of(values...));
  }

  // Gives the job its seq.
  void insert(Job& job);
  // Writes the columns that may change.
  void update(const Job& job);
  void erase(std::int64_t seq);  // with its documents
  // This object has written a job that a person should look at: it is dead, or waits for code
  // or for its callback.
  [[nodiscard]] bool needs_person() const { return needs_person_; }
  void note_person(bool needs = true) { needs_person_ = needs; }
  // The tables have one, of any kind. It may read all settled fibers.
  [[nodiscard]] bool any_needs_person();

  // ---- traces ----
  // Sets the trace of a job, a traceparent. The first one stays.
  void keep_trace(JobKind kind, std::string_view id, std::string_view trace);
  // Empty: the job has no trace, or there is no such job.
  [[nodiscard]] std::string trace_of(JobKind kind, std::string_view id);

  // ---- lines ----
  // each() of the waiting jobs that have a due_at, the earliest first.
  void each_waiting(JobKind kind, const std::function<bool(Job&)>& see);
  // The waiting job with the smallest due_at, of those that fit if `fits` is given.
  [[nodiscard]] std::optional<Job> first_due(JobKind kind,
                                             const std::function<bool(const Job&)>& fits = {});
  // Its time.
  [[nodiscard]] std::optional<std::int64_t> first_moment(JobKind kind);
  [[nodiscard]] bool has_any(JobKind kind);
  [[nodiscard]] bool has_any(JobKind kind, JobState state);
  // The last process has crashed in a job that an earlier instance had claimed: its try was no
  // interruption, but a crash. If the job is unknown, this counts for all that were claimed, except
  // for notifications, whose work runs elsewhere. Before release().
  void count_crash(const EndedProcess& ended);
  // Jobs that an earlier instance had claimed wait again.
  void release(JobKind kind, std::int64_t now_ms);
  // Both leave out alarms that were never tried: their times are the wall clock's.
  // Moves the times of all waiting jobs: the wall clock was set.
  void shift(JobKind kind, std::int64_t by_ms);
  // Begins waits again whose row was written at a time that is still to come: the clock was set
  // back since. They keep their lengths. A job without next_at_ms is due.
  // `with_code`: also a job that waits for code.
  void restart_waits(JobKind kind, std::int64_t now_ms, bool with_code);

  // ---- numbers and retention ----
  // An upper bound of count(), at the cost of two lookups in an index.
  [[nodiscard]] std::size_t count_bound(JobKind kind);
  [[nodiscard]] std::size_t count(JobKind kind);
  // The jobs with this retention that ended at `before_ms` or earlier, the earliest first; at most
  // `limit`.
  [[nodiscard]] std::vector<Job> expired(std::string_view keep, std::int64_t before_ms,
                                         std::size_t limit);

  // ---- documents ----
  [[nodiscard]] std::optional<std::string> document(std::int64_t seq, JobPart part);
  // Marks are left out.
  void each_document(std::int64_t seq,
                     const std::function<void(JobPart, std::string_view body)>& see);
  // No body: removes the document.
  void put(std::int64_t seq, JobPart part, std::optional<std::string_view> body);

  // Begins the write, and makes the tables if they are missing. For callers with SQL of their own.
  void prepare_write();

 private:
  std::optional<Job> row(std::int64_t seq);  // the tables are there

  storage::AgentDatabase& database_;
  bool needs_person_ = false;
};

}  // namespace hearth::durable
