#pragma once
// The runs of an agent's schedules: which begin, and what follows from their ends.

#include "base/clock.hpp"
#include "base/random.hpp"
#include "durable/job_line.hpp"
#include "durable/schedule_table.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace hearth::durable {

// Its promises are P1 to P5 of Schedules.
//
// Durable    As Schedules. A begin_due() that returns nothing may have written too: put off a row,
//            or followed the clock.
// Threads, Failure   As Jobs.  Lifetime  What the constructor gets outlives it.
// Bounded    In memory: the runs in progress. Only load() and the first call after a jump of the
//            clock read all rows.
class ScheduleRuns final : private LinePolicy<ScheduleRow> {
 public:
  ScheduleRuns(ScheduleTable& table, const Clock& clock, Random& random,
               const ScheduleSettings& settings, int max_crashes)
      : table_(table),
        clock_(clock),
        random_(random),
        settings_(settings),
        line_(clock, *this, settings.max_running, ClockRule::kBoth, max_crashes) {}
  // As Schedules::load().
  void load(bool has_code);

  // Claimed: also runs whose row was removed meanwhile.
  [[nodiscard]] JobLine<ScheduleRow>& line() { return line_; }
  [[nodiscard]] const JobLine<ScheduleRow>& line() const { return line_; }
  // The next due run, claimed. Nothing: none is due, or max_running run.
  std::optional<ScheduleRun> begin_due();
  // A run of begin_due() has ended. `error`: a text for logs and records, cut to 4 KiB.
  ScheduleEnd ended(std::uint64_t run, TryOutcome outcome, std::string_view error);
  // No run begins any more.
  void interrupt_on_purpose();
  [[nodiscard]] bool due() const { return !going_ && line_.due(); }
  // What happened since the last call.
  std::vector<ScheduleNote> take_notes() { return std::exchange(notes_, {}); }
  // Writes a row that has changed.
  void store(ScheduleRow& row);
  void remove(const ScheduleRow& row);

 private:
  std::optional<std::int64_t> first_moment() override { return table_.first_moment(); }
  std::optional<ScheduleRow> next_due() override { return table_.first_due(); }
  void give_up(ScheduleRow& row, std::string_view why) override;
  // If runs may overlap, each run gets a row of its own, which is due next, and the schedule goes
  // on to its next time.
  bool admit(ScheduleRow& row) override;
  void claim(ScheduleRow& row) override;
  void give_back(ScheduleRow& row) override;
  void follow(std::int64_t jump_ms) override;

  [[nodiscard]] std::int64_t now_ms() const { return unix_millis(clock_.wall_now()); }
  [[nodiscard]] std::int64_t steady_ms() const;
  void take_up(ScheduleRow& row, bool has_code);
  void note(const ScheduleRow& row, ScheduleNote::What what, std::uint64_t count,
            std::string reason = {});
  void note_crowds(std::int64_t now);
  void give_up_or_put_off(ScheduleRow& row, const Error& why, std::int64_t now);
  bool may_run(ScheduleRow& row, std::int64_t now);
  void spin_off(ScheduleRow& row, std::int64_t now);
  void go_on(ScheduleRow& row, std::optional<std::int64_t> at, std::int64_t now);
  void set_next_after_run(ScheduleRow& row, std::int64_t ended_at, std::int64_t now);
  ScheduleEnd end_run(ScheduleRow& row, TryOutcome outcome, std::string_view error);
  ScheduleEnd end_child(ScheduleRow& child, ScheduleRow& parent, TryOutcome outcome,
                        std::string_view error);

  ScheduleTable& table_;
  const Clock& clock_;
  Random& random_;
  const ScheduleSettings& settings_;
  JobLine<ScheduleRow> line_;
  std::uint64_t last_run_ = 0;
  bool going_ = false;    // interrupt_on_purpose() was called
  bool crowded_ = false;  // many rows are due at once, and a note says so
  std::vector<ScheduleNote> notes_;
};

}  // namespace hearth::durable
