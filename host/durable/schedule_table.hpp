#pragma once
// The rows of an agent's schedules, in the agent's own database.

#include "durable/jobs.hpp"
#include "durable/retry_policy.hpp"
#include "durable/schedule_types.hpp"
#include "storage/agent_database.hpp"
#include "storage/statement.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace hearth::durable {

// One row: a schedule, or one run of a schedule whose runs may overlap. Such a run has a parent,
// and its row is removed after the run. All times are Unix milliseconds.
//
// In cf_agents_jobs (storage/agent_schema.hpp) the row has kind 3. Only schedules have these
// columns:
//
//     parent TEXT, type TEXT ('delay', 'at', 'cron', 'interval'), length_ms INTEGER, cron TEXT,
//     time_zone TEXT, fixed_rate INTEGER, misfire, misfire_limit, overlap, paused INTEGER,
//     missing INTEGER,                how often in a row the class had no such callback, or this
//                                     machine had no time zones
//     running INTEGER,                unfinished runs of this instance or of an earlier one
//     scheduled_for INTEGER,          the occurrence that `next_at` belongs to (a retry of it is
//                                     later)
//     owed INTEGER,                   1: the occurrence still has to run, even if late. 2: it ended
//                                     at `set_at`, and the next time is not computed yet.
//     missed INTEGER,                 the number of missed occurrences: replaced by this run, or
//                                     skipped before it
//     begun_at INTEGER,               when that occurrence first began; 0: not yet
//     catch_up_until INTEGER,         occurrences up to here were missed, and run one by one
//     last_run INTEGER
//
// Common columns: name: the callback. key: the likeness. next_at: the time; NULL: never. attempts:
// failed tries of the occurrence. interruptions, fatal_attempts: as in Job. claims: the number of
// runs.
struct ScheduleRow {
  std::int64_t seq = 0;
  std::string id;
  std::string parent;
  std::string callback;
  ScheduleType type{};
  std::optional<std::int64_t> time;
  std::int64_t length_ms = 0;  // of kDelay and kInterval
  std::string cron;
  std::string time_zone;
  bool fixed_rate = false;
  std::string likeness;
  RetryPolicy retry;
  Misfire misfire{};
  std::uint32_t misfire_limit = 0;
  Overlap overlap{};
  bool paused = false;
  bool dead = false;
  int missing = 0;
  int running = 0;
  std::int64_t scheduled_for = 0;
  bool owed = false;
  bool over = false;  // owed is 2 on disk
  std::uint32_t missed = 0;
  int attempts = 0;
  int interruptions = 0;
  int fatal_attempts = 0;
  std::int64_t begun_at = 0;
  std::int64_t catch_up_until = 0;
  std::int64_t set_at = 0;
  std::int64_t created_at = 0;
  std::int64_t runs = 0;
  std::int64_t failures = 0;
  std::optional<std::int64_t> last_run;
  std::optional<std::string> last_error;
  std::optional<std::string> known_error;  // as it is on disk

  // The row is removed after its run.
  [[nodiscard]] bool is_one_shot() const {
    return !parent.empty() || type == ScheduleType::kDelay || type == ScheduleType::kAt;
  }
  // Its runs may overlap. Each run is a row of its own then.
  [[nodiscard]] bool may_overlap() const {
    return parent.empty() && overlap == Overlap::kAllow &&
           (type == ScheduleType::kCron || fixed_rate);
  }
  // Waits for a length of time, not for a time of the wall clock.
  [[nodiscard]] bool waits_a_length() const {
    return type == ScheduleType::kDelay || type == ScheduleType::kInterval || attempts > 0 ||
           missing > 0;
  }
};

// Threads    The agent's shard.  Lifetime  Destroyed, or closed, before the database is closed.
// Durable    Writes join the agent's implicit transaction; the caller decides when to commit.
// Failure    StorageError.
class ScheduleTable {
 public:
  explicit ScheduleTable(storage::AgentDatabase& database) : database_(database), jobs_(database) {}

  // All rows, in the order of creation. Makes no table: without one there are no rows.
  [[nodiscard]] std::vector<ScheduleRow> load();
  [[nodiscard]] std::optional<ScheduleRow> find(std::int64_t seq);
  [[nodiscard]] std::optional<ScheduleRow> find(std::string_view id);  // only schedules
  [[nodiscard]] std::string payload(std::int64_t seq);  // JSON; "null" if there is no row
  [[nodiscard]] std::vector<std::int64_t> children(std::string_view parent);
  // The oldest schedule with this likeness, except dead ones and one-shots in progress.
  [[nodiscard]] std::optional<std::int64_t> find_alike(std::string_view likeness);
  // The oldest dead schedule with this likeness.
  [[nodiscard]] std::optional<std::int64_t> find_dead(std::string_view likeness);
  // The schedules that match the filter, next due first. Empty also if no schedule has the id
  // `after`.
  [[nodiscard]] std::vector<std::int64_t> list(const ScheduleFilter& filter);

  // The waiting row with the earliest time, without paused and claimed rows.
  [[nodiscard]] std::optional<Job> first_due();
  // True if at least so many rows are due.
  [[nodiscard]] bool is_crowded(std::int64_t now_ms, std::uint64_t least);

  struct Crowd {
    std::string callback;
    std::string id;  // of one of the rows
    std::uint64_t rows = 0;
  };
  // The callbacks with at least `least` due one-shot rows.
  [[nodiscard]] std::vector<Crowd> crowds(std::int64_t now_ms, std::uint64_t least);

  // Gives the row its seq.
  void insert(ScheduleRow& row, std::string_view payload);
  // Writes the columns that may change.
  void update(const ScheduleRow& row);
  void erase(std::int64_t seq);
  // Makes the runs of `parent` those of the schedule `heir`.
  void hand_over_children(std::string_view parent, std::string_view heir);
  // The wall clock was set by so much: moves the times of all rows that wait for a length of time.
  void shift(std::int64_t by_ms);

 private:
  void prepare_write();
  bool has_table();
  void fill_in(ScheduleRow& row);

  storage::AgentDatabase& database_;
  Jobs jobs_;
};

}  // namespace hearth::durable
