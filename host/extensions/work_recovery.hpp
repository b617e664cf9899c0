#pragma once
// The recovery of one agent's fibers: the plan for which its code is asked, and the hooks to which
// fibers are offered.

#include "base/stop_point.hpp"
#include "extensions/due_work.hpp"
#include "extensions/work_reports.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace hearth::extensions {

// Promises
//  P4 Planned    If interrupted fibers are to be recovered, the agent's code is asked for a plan
//                before the first fiber is offered.
//  P6 Poison     After a crash in a plan or in a fiber's work, a plan is asked for each fiber
//                alone, right before that fiber is offered.
//
// P4: The oldest fiber is claimed before the plan. So a plan that kills the process is followed by
// that fiber's wait, like a hook that kills it.
// P6: So the crash record names the fiber. A crash in a plan of several fibers counts for none.
//
// Threads, Failure   As WorkKinds.
class WorkRecovery {
 public:
  // The references outlive this object.
  WorkRecovery(durable::Fibers& fibers, const ClassSettings& settings, WorkReports& reports,
               StopPointsAtCommit& stops)
      : fibers_(fibers), settings_(settings), reports_(reports), stops_(stops) {}
  void plan_singly() { plans_singly_ = true; }  // P6

  // A plan or an offer that begins now, claimed in the open transaction. Nothing: there is none.
  std::optional<DueWork> next();
  void plan_ended(const Result<std::string_view>& outcome);
  void offer_ended(const DueWork& work, const Result<std::string_view>& outcome);
  // An offered fiber goes on in this instance, and this is on disk. Its recovery is over, and the
  // later end of its hook has no effect.
  void continued(std::string_view fiber_id);
  // The work of this running fiber cannot read `what`, such as its checkpoint.
  Result<durable::FiberChange> wait_for_code(durable::FiberHandle fiber, std::string_view what);

  // True if next() would find a fiber to recover.
  [[nodiscard]] bool due() const;
  // A plan is in progress, or a hook that has not continued its fiber.
  [[nodiscard]] bool in_progress() const { return planning_ || !offers_.empty(); }
  // No fiber is offered, or as many as may be at once.
  [[nodiscard]] bool none_or_full() const { return offers_.empty() || is_full(); }

 private:
  struct Offer {
    std::string id;
    std::uint64_t number;  // tells apart two offers of one fiber: an older hook may still run
    bool is_pending;       // as in Interrupted
  };

  [[nodiscard]] bool is_full() const { return offers_.size() >= parallel_; }
  std::optional<durable::Interrupted> next_interrupted();
  DueWork ask_for_plan(const std::vector<durable::Interrupted>& others);
  DueWork offer(durable::Interrupted fiber);
  void skip(const std::string& id);
  void hook_failed(const std::string& id, std::string_view why, bool is_final);
  void report_waiting(std::string_view id, std::string_view what);

  durable::Fibers& fibers_;
  const ClassSettings& settings_;
  WorkReports& reports_;
  StopPointsAtCommit& stops_;
  std::vector<Offer> offers_;  // offered fibers whose hooks have to decide
  std::uint64_t last_offer_ = 0;
  bool planned_ = false;   // the agent's code was asked for the plan
  bool planning_ = false;  // a plan is in progress
  bool plans_singly_ = false;
  std::size_t parallel_ = 1;
  std::optional<durable::Interrupted> held_;  // claimed before the plan, not yet offered
  std::vector<std::string> order_;            // the plan's order, until held_ is offered
};

}  // namespace hearth::extensions
