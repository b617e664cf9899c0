#pragma once
// The rows of an agent's schedules, in the agent's own database.

#include "durable/jobs.hpp"
#include "durable/retry_policy.hpp"
#include "durable/schedule_types.hpp"
#include "storage/agent_database.hpp"
#include "storage/statement.hpp"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace hearth::durable {

// One row: a schedule, or one run of a schedule whose runs may overlap (it has a parent then, and
// is over after this run). All times are Unix milliseconds.
//
// In cf_agents_jobs (storage/agent_schema.hpp) it has kind 3, and these columns of its own:
//
//     parent TEXT, type TEXT ('delay', 'at', 'cron', 'interval'), length_ms INTEGER, cron TEXT,
//     time_zone TEXT, fixed_rate INTEGER, misfire, misfire_limit, overlap, paused INTEGER,
//     missing INTEGER,                how often in a row the class had no such callback, or this
//                                     machine no time zones
//     running INTEGER,                runs that were begun and are not over, by this instance or by
//                                     one that is gone
//     scheduled_for INTEGER,          the occurrence that `next_at` is about (a try of it may be
//                                     later)
//     owed INTEGER,                   1: that occurrence runs, however late it is; 2: it has run,
//                                     and when the next one is could not be found out at `set_at`,
//                                     when it ended
//     missed INTEGER,                 occurrences that it stands for, or that were skipped before
//                                     it
//     begun_at INTEGER,               when that occurrence was begun first; 0: not yet
//     catch_up_until INTEGER,         occurrences up to here were missed and run one by one
//     set_at INTEGER,                 when `next_at` was decided on
//     last_run INTEGER
//
// Of the common ones: name is the callback, key the likeness, next_at the time (NULL: never),
// attempts the tries of the occurrence that have failed, interruptions times in a row that a begun
// run came to no end, claims the runs.
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
  std::int64_t begun_at = 0;
  std::int64_t catch_up_until = 0;
  std::int64_t set_at = 0;
  std::int64_t created_at = 0;
  std::int64_t runs = 0;
  std::int64_t failures = 0;
  std::optional<std::int64_t> last_run;
  std::optional<std::string> last_error;
  std::optional<std::string> known_error;  // as it is on disk

  // Gone after its run.
  [[nodiscard]] bool is_one_shot() const {
    return !parent.empty() || type == ScheduleType::kDelay || type == ScheduleType::kAt;
  }
  // Its runs may be beside each other; then each is a row of its own.
  [[nodiscard]] bool may_overlap() const {
    return parent.empty() && overlap == Overlap::kAllow &&
           (type == ScheduleType::kCron || fixed_rate);
  }
  // Waits for a length of time rather than for what the clock shows.
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

  // Gives up its statements.
  void close();

  // All rows, in the order of creation. Makes nothing: an agent without the table has none.
  [[nodiscard]] std::vector<ScheduleRow> load();
  [[nodiscard]] std::optional<ScheduleRow> find(std::int64_t seq);
  [[nodiscard]] std::optional<ScheduleRow> find(std::string_view id);  // no run of a parent
  [[nodiscard]] std::string payload(std::int64_t seq);  // JSON; "null" if there is no row
  [[nodiscard]] std::vector<std::int64_t> children(std::string_view parent);
  // The oldest schedule that is like it and waits, is paused or missing, or comes again after its
  // run. A dead one is none.
  [[nodiscard]] std::optional<std::int64_t> find_alike(std::string_view likeness);
  // The oldest dead one that is like it.
  [[nodiscard]] std::optional<std::int64_t> find_dead(std::string_view likeness);
  // Those that the filter asks for, next due first; none if `after` names no schedule.
  [[nodiscard]] std::vector<std::int64_t> list(const ScheduleFilter& filter);

  // Of those that wait and are neither paused nor claimed: the first by its time.
  [[nodiscard]] std::optional<Job> first_due();
  // At least so many are due.
  [[nodiscard]] bool is_crowded(std::int64_t now_ms, std::uint64_t least);

  struct Crowd {
    std::string callback;
    std::string id;  // of one of them
    std::uint64_t rows = 0;
  };
  // Callbacks of which at least `least` one-shot rows are due.
  [[nodiscard]] std::vector<Crowd> crowds(std::int64_t now_ms, std::uint64_t least);

  // Gives the row its seq.
  void insert(ScheduleRow& row, std::string_view payload);
  // Everything that changes in the life of a row; what it was made with stays.
  void update(const ScheduleRow& row);
  void erase(std::int64_t seq);
  // The runs of one schedule are another's from now on.
  void hand_over_children(std::string_view parent, std::string_view heir);
  // The wall's clock was moved by so much: whatever waits for a length of time moves with it.
  void shift(std::int64_t by_ms);

 private:
  void prepare_write();
  bool has_table();
  void fill_in(ScheduleRow& row);
  storage::Statement& kept(std::unique_ptr<storage::Statement>& statement, std::string_view sql);

  storage::AgentDatabase& database_;
  Jobs jobs_;
  // The ones that every run needs.
  std::unique_ptr<storage::Statement> find_;
  std::unique_ptr<storage::Statement> update_;
};

}  // namespace hearth::durable
