#pragma once
// The recovery of an agent's interrupted fibers: which is offered next to the agent's code, and
// what its hook makes of it.

#include "durable/fiber_ends.hpp"
#include "durable/fiber_runs.hpp"
#include "durable/fiber_turns.hpp"

#include <cstdint>
#include <deque>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace hearth::durable {

// An interrupted fiber that is offered to the agent's code.
struct Interrupted {
  std::string id;
  FiberRow row = kNoFiber;
  std::string name;
  std::optional<std::string> snapshot;  // JSON
  std::int64_t created_at_ms = 0;
  int attempt = 1;          // from 1
  bool is_pending = false;  // no run of it was interrupted: its work begins, or is retried
};

// Members of HEARTH_EVENT_FIBER_RECOVERED.
struct Offered {
  std::string record;       // JSON
  std::string_view reason;  // a literal
};

// An interrupted fiber that an earlier instance left.
struct LeftOver {
  std::string id;
  std::string name;
  // Its work was interrupted; false: its work or its last recovery had failed.
  bool was_running = false;
};

// Promises, numbered with those of Fibers
//  P4 Counted      An attempt is on disk before the hook is called, so that a hook that kills the
//                  process counts.
//  P5 Oldest first  Interrupted fibers are offered in the order of their creation, unless plan()
//                  gives another order.
//  P6 One hook     A fiber is not offered while another hook has to decide about it.
//  P7 Bounded      A fiber is dead after max_attempts recoveries that failed or crashed without a
//                  new checkpoint, and after max_recoveries in all; a turn is dead after
//                  max_turn_recoveries in all.
//  P8 Poison       A fiber is dead after max_crashes runs that crashed the process, before its
//                  class is suspect.
//
// P5: A fiber whose recovery has failed is offered when its time has come, after those that were
// due before.
// P8: A plan of several fibers counts for none of them. A checkpoint by a run that is five minutes
// old resets the count.
// P7: JobLine bounds recoveries that have no end. The second bound is for work whose checkpoints
// always differ, such as by the time. If a fiber was interrupted on purpose or its work is retried,
// the recovery that follows does not count; but the first recovery of its life does. A retry of a
// turn neither raises nor lowers the turn's count. Progress is a checkpoint that differs from the
// one before; with FiberRequest::resets_by_progress it resets the failures of the work, and the
// recoveries of a turn.
//
// Threads, Durable, Failure   As Jobs, which outlives it, as all that the constructor gets.
class FiberRecovery final : private LinePolicy<Job> {
 public:
  FiberRecovery(Jobs& jobs, FiberTable& table, FiberTurns& turns, FiberEnds& ends, FiberRuns& runs,
                const Clock& clock, Random& random, const FiberSettings& settings);
  // Finds the fibers that an earlier instance left. Once, after Jobs::release().
  void load();

  // Of the interrupted fibers; claimed: the recovering ones.
  [[nodiscard]] JobLine<Job>& line() { return line_; }
  [[nodiscard]] const JobLine<Job>& line() const { return line_; }
  [[nodiscard]] FiberNow now_of(std::string_view id) const;
  // A row of a fiber was read: as it is in this instance.
  [[nodiscard]] FiberChange change_of(Job job) {
    const FiberNow now = now_of(job.id);
    return table_.change_of(std::move(job), now);
  }
  // Writes the row of a fiber.
  void write(const Job& job);
  // The interrupted fibers that load() found. Empty from the second call on.
  std::vector<LeftOver> take_left_over() { return std::exchange(left_over_, {}); }

  // The next due interrupted fiber, now recovering. Nothing: none is due. A due fiber beyond a
  // bound of P7 or P8 becomes dead, and the next one is taken: JobLine::take_given_up().
  std::optional<Interrupted> begin();
  // The fiber of begin() is now offered. The record is as it is now, also if the fiber was
  // cancelled in between.
  Offered offer(FiberRow row);
  // The due fibers in the order in which they will be offered, without snapshots. Reads all of
  // their rows.
  [[nodiscard]] std::vector<Interrupted> due_list();
  // The id of the fiber that begin() looks at next; empty: none is due.
  [[nodiscard]] std::string next_due_id();
  // Offers the due fibers in the order of `ids`, each once, and then all others, oldest first. An
  // id that no due fiber has is ignored. If an id is there twice, its first place counts.
  void plan(std::span<const std::string> ids) { plan_.assign(ids.begin(), ids.end()); }
  // If this fiber is due, makes it recovering without a hook; it is not counted. False: not due.
  bool claim_uncounted(std::string_view id);

  // The hook has ended well. `outcome_json`: the body that completed the event, or empty.
  // kNotFound: the fiber was resumed or settled meanwhile, which is fine. Any other error: the body
  // is no outcome; the caller treats the hook as failed.
  Result<FiberChange> recovered(std::string_view id, std::string_view outcome_json);
  struct Failure {
    bool dead = false;
    std::int64_t next_at_ms = 0;
  };
  // The hook has failed. `is_final`: no retry can end better, so the fiber is dead.
  Failure failed(std::string_view id, std::string_view error, bool is_final = false);
  // The recovering fiber waits for another version of the code; the recovery does not count. False:
  // it was settled meanwhile.
  bool unknown(std::string_view id);

  // ---- what ends elsewhere ----
  // This fiber, which neither runs nor recovers any more, waits for another version of the code.
  void put_aside(Job& job);
  // FiberEnds::settle(). The fibers that end are in progress no more.
  FiberChange settle(Job job, const FiberOutcome& outcome, bool dead = false);
  // The instance ends on purpose: what runs or recovers now does not count. Writes only if a count
  // is taken back.
  void interrupt_on_purpose();
  // Counts a recovery. If it does not end, the next one waits as after a failure.
  void claim(Job& job) override;

 private:
  std::optional<std::int64_t> first_moment() override {
    return jobs_.first_moment(JobKind::kFiber);
  }
  std::optional<Job> next_due() override { return first_until(now_ms()); }
  [[nodiscard]] std::string_view why_given_up(const Job& job) const override {
    return why_not_recovered(job, settings_);
  }
  // Settles the fiber as dead.
  void give_up(Job& job, std::string_view why) override;
  // Takes back the counts. The row stays claimed, until the load() of the next instance.
  void give_back(Job& job) override;
  void follow(std::int64_t jump_ms) override;

  // The fiber to offer next, of those whose moment on disk is not later.
  [[nodiscard]] std::optional<Job> first_until(std::int64_t until_ms);
  [[nodiscard]] std::int64_t now_ms() const { return unix_millis(clock_.wall_now()); }

  Jobs& jobs_;
  FiberTable& table_;
  FiberTurns& turns_;
  FiberEnds& ends_;
  FiberRuns& runs_;
  const Clock& clock_;
  Random& random_;
  const FiberSettings& settings_;
  JobLine<Job> line_;
  std::deque<std::string> plan_;  // ids that are offered before all others
  std::vector<LeftOver> left_over_;
};

}  // namespace hearth::durable
