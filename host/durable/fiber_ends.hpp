#pragma once
// The ends of an agent's fibers: how they are settled, told, kept, and removed.

#include "durable/counted_jobs.hpp"
#include "durable/fiber_counts.hpp"
#include "durable/fiber_table.hpp"

#include <functional>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace hearth::durable {

// Promises, numbered with those of Fibers
//  P3 Told         A settled record is due for telling until told(), unless it is replaced, retried
//                  or removed before.
//  P10 Brief       The turn that settles a brief record without an open parent removes it without
//                  a telling; a dead record gets a telling, and is kept for keep_failed.
//  P11 Parents     A brief record with an open parent is kept, untold, until the parent has another
//                  checkpoint or is settled, so that a parent that is run again finds the value.
//
// P3: Retention does not remove a record before it was told.
// P11: A dead or interrupted parent may be revived, and keeps the values. A kKept record stays, but
// loses its key at the same moment if the key begins with the parent's id and a slash.
//
// Threads, Durable, Failure   As Jobs, which outlives it, as all that the constructor gets.
class FiberEnds {
 public:
  static constexpr std::size_t kMostTelling = 8;  // at once

  FiberEnds(storage::AgentDatabase& database, Jobs& jobs, FiberTable& table, const Clock& clock,
            Random& random, const FiberSettings& settings);
  void load();

  // On disk. `forget` removes a fiber that was open from memory. It is called when the texts of its
  // end are built, for which the memory may not suffice, and before they are written.
  using Forget = std::function<void(const std::string& id)>;
  FiberChange settle(Job job, const FiberOutcome& outcome, bool dead = false,
                     const Forget& forget = {});
  // A fiber was settled since the last call of take_settled().
  [[nodiscard]] bool has_settled() const { return has_settled_; }
  bool take_settled() { return std::exchange(has_settled_, false); }

  // ---- telling: the event kFiberSettled ----
  // A telling has the id of its fiber, and is its key too: if a fiber ends once more while its
  // telling is in progress, the next telling begins when that one has ended. One that is given up
  // leaves no row.
  [[nodiscard]] CountedJobs& tellings() { return tellings_; }
  // The next due record that is to be told, claimed. Nothing: none is due, or
  // kMostTelling are in progress.
  std::optional<FiberChange> next_untold();
  // The telling has ended. `heard` false: it is repeated.
  void told(std::string_view id, bool heard);
  // The end of a telling in progress has no effect then.
  void tell_no_more(const std::string& id);

  // ---- the number of records ----
  // Makes room for one more record. kLimitExceeded.
  Result<void> make_room();
  void added() { count_.added(); }
  void erase(const Job& job);
  // Removes some expired records. True if it removed any. Cheap when none has expired.
  bool sweep();
  // The ids of the dead records that sweep() has removed since the last call.
  std::vector<std::string> take_expired() { return std::exchange(expired_, {}); }

  // ---- values of inner fibers ----
  // An earlier run of this running fiber may have left some.
  void may_have_values(const std::string& id) {
    if (has_records()) parents_.insert(id);
  }
  // Its checkpoint is written: it needs them no more.
  void drop_values(const std::string& id);

 private:
  FiberChange settle_alone(Job job, const FiberOutcome& outcome, bool dead, const Forget& forget);
  void abort_inner(FiberChange& outer, const FiberOutcome& outcome, const Forget& forget);
  void tell(const std::string& id);
  void remove_children(std::string_view parent);
  // A settled fiber is on record. Most interrupted agents have none: they need not prepare the
  // statements that look for particular ones.
  [[nodiscard]] bool has_records() { return jobs_.has_any(JobKind::kFiber, JobState::kSettled); }
  [[nodiscard]] std::int64_t now_ms() const { return unix_millis(clock_.wall_now()); }

  Jobs& jobs_;
  FiberTable& table_;
  const Clock& clock_;
  const FiberSettings& settings_;
  CountedJobs tellings_;
  JobCount count_;
  std::vector<std::string> expired_;  // ids
  // Ids of running fibers for which values may be kept since their last checkpoint.
  std::set<std::string, std::less<>> parents_;
  bool has_settled_ = false;
};

}  // namespace hearth::durable
