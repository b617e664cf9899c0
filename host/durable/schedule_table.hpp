#pragma once
// The rows of an agent's schedules, in the agent's own database, and what authors see of them.

#include "durable/jobs.hpp"
#include "durable/schedule_types.hpp"
#include "storage/agent_database.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace hearth::durable {

// One row: a schedule, or one run of a schedule whose runs may overlap. Such a run has a parent,
// and its row is removed after the run. All times are Unix milliseconds.
//
// Of the job: name: the callback. key: the likeness. next_at_ms: the time; 0: never. type: a
// ScheduleType as a word. attempts: failed tries of the occurrence. claims: the number of runs. The
// members below have columns that only schedules have.
struct ScheduleRow : Job {
  std::int64_t length_ms = 0;  // of kDelay and kInterval
  std::string cron;
  std::string time_zone;
  bool fixed_rate = false;
  Misfire misfire{};
  std::uint32_t misfire_limit = 0;
  Overlap overlap{};
  bool paused = false;
  int missing = 0;  // how often in a row the class had no such callback, or this machine no zones
  int running = 0;  // unfinished runs of this instance or of an earlier one
  std::int64_t scheduled_for = 0;   // the occurrence of next_at_ms, which is later for a retry
  bool owed = false;                // the occurrence still has to run, even if late
  bool over = false;                // it ended at set_at_ms, and the next time is not computed yet
  std::uint32_t missed = 0;         // occurrences replaced by this run, or skipped before it
  std::int64_t begun_at = 0;        // when that occurrence first began; 0: not yet
  std::int64_t catch_up_until = 0;  // occurrences up to here were missed, and run one by one
  std::optional<std::int64_t> last_run;

  // ---- without a column ----
  std::optional<std::string> last_error;  // JobPart::kLastError
  std::uint64_t run = 0;                  // the number of the run in progress
  std::int64_t began_ms = 0;              // when it began, by the steady clock

  ScheduleRow() { kind = JobKind::kSchedule; }
  explicit ScheduleRow(Job job) : Job(std::move(job)) {}

  [[nodiscard]] bool is(ScheduleType its) const { return type == to_string(its); }
  // The id of the schedule.
  [[nodiscard]] const std::string& schedule_id() const { return parent ? *parent : id; }
  // "waiting", "running", "paused", "missing" or "dead".
  [[nodiscard]] std::string_view state_word() const;
  // The row is removed after its run.
  [[nodiscard]] bool is_one_shot() const {
    return parent || is(ScheduleType::kDelay) || is(ScheduleType::kAt);
  }
  // Its runs may overlap. Each run is a row of its own then.
  [[nodiscard]] bool may_overlap() const {
    return !parent && overlap == Overlap::kAllow && (is(ScheduleType::kCron) || fixed_rate);
  }
  // Waits for a length of time, not for a time of the wall clock.
  [[nodiscard]] bool waits_a_length() const {
    return is(ScheduleType::kDelay) || is(ScheduleType::kInterval) || attempts > 0 || missing > 0;
  }
  // Moves the times of a row that waits for a length of time: the wall clock was set by so much.
  void shift(std::int64_t by_ms);
};

// A record, as in hearth/ext/schedule.h. `payload` is JSON, and is copied unchanged.
std::string schedule_record(const ScheduleRow& row, std::string_view payload);
// The body of the event that runs the schedule now.
std::string run_body(const ScheduleRow& row, std::string_view payload, std::int64_t late_ms);

// Threads, Durable, Failure   As Jobs.
class ScheduleTable {
 public:
  explicit ScheduleTable(storage::AgentDatabase& database) : database_(database), jobs_(database) {}

  // All rows, in the order of creation. Once before size() and empty().
  [[nodiscard]] std::vector<ScheduleRow> load();
  [[nodiscard]] std::size_t size() const { return size_; }  // schedules
  [[nodiscard]] bool empty() const { return size_ + children_ == 0; }
  // A schedule, or a run of one.
  [[nodiscard]] std::optional<ScheduleRow> row(std::string_view id);
  [[nodiscard]] std::optional<ScheduleRow> find(std::string_view id);  // only schedules
  // Nothing: it is no run of a schedule that exists.
  [[nodiscard]] std::optional<ScheduleRow> parent_of(const ScheduleRow& row) {
    return row.parent ? find(*row.parent) : std::nullopt;
  }
  [[nodiscard]] std::string payload(std::int64_t seq);  // JSON; "null" if there is no row
  [[nodiscard]] std::vector<ScheduleRow> children(std::string_view parent);
  // The oldest schedule with this likeness: of those that are dead, or of the others without
  // one-shots in progress.
  [[nodiscard]] std::optional<ScheduleRow> find_alike(std::string_view likeness, bool dead);
  // The schedules that match the filter, next due first. Empty also if no schedule has the id
  // `after`. A schedule that moves in time between two pages by time may be in both, or in none.
  [[nodiscard]] std::vector<ScheduleRow> list(const ScheduleFilter& filter);
  // The waiting row with the earliest time, without paused and claimed rows.
  [[nodiscard]] std::optional<ScheduleRow> first_due();
  [[nodiscard]] std::optional<std::int64_t> first_moment() {
    return jobs_.first_moment(JobKind::kSchedule);
  }
  // True if at least so many rows are due.
  [[nodiscard]] bool is_crowded(std::int64_t now_ms, std::int64_t least);
  struct Crowd {
    std::string id;  // of one of the rows
    std::int64_t rows = 0;
  };
  // By callback, if at least `least` one-shot rows of it are due. At most 100.
  [[nodiscard]] std::vector<std::pair<std::string, Crowd>> crowds(std::int64_t now_ms,
                                                                  std::int64_t least);

  [[nodiscard]] bool needs_person() const { return jobs_.needs_person(); }

  // Gives the row its seq.
  void insert(ScheduleRow& row, std::string_view payload);
  // Writes the columns that may change.
  void update(ScheduleRow& row);
  void erase(const ScheduleRow& row);
  // Makes the runs of `parent` those of the schedule `heir`.
  void hand_over_children(std::string_view parent, std::string_view heir);

 private:
  std::optional<ScheduleRow> read(std::optional<Job> job);
  std::vector<ScheduleRow> all(std::string_view where, Jobs::Params params);
  void write(ScheduleRow& row);

  storage::AgentDatabase& database_;
  Jobs jobs_;
  std::size_t size_ = 0;      // schedules
  std::size_t children_ = 0;  // rows of overlapping runs
};

}  // namespace hearth::durable
