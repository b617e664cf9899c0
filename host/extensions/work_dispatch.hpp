#pragma once
// Which of an agent's durable work begins next, and what its end makes of it.

#include "extensions/work_recovery.hpp"

#include <optional>
#include <string_view>

namespace hearth::extensions {

// Promises
//  P1 Fair       The kinds take turns: a kind that is always due holds back no other kind.
//  P2 Claimed    next() claims its work in the open transaction, which the caller commits before it
//                delivers the work.
//  P3 One turn   ended() writes into the open transaction, so the end of a piece of work commits
//                with its last writes.
//
// Threads, Failure   As WorkKinds.
class WorkDispatch {
 public:
  // The references outlive this object.
  WorkDispatch(const storage::AgentKey& agent, const Clock& clock, const ClassSettings& settings,
               WorkKinds& kinds, WorkRecovery& recovery, WorkReports& reports,
               StopPointsAtCommit& stops);

  // The next work that begins now. `may_recover` false: no kFiberRecovered, no kFibersRecovered.
  std::optional<DueWork> next(bool may_recover);
  // Work of next() has ended.
  void ended(const DueWork& work, const Result<std::string_view>& outcome);
  // The next alarm or, with `may_notify`, notification that leaves now, claimed as P2 says. It is
  // no event of this agent. An alarm leaves like a notification to the agent itself, as a call
  // without a caller.
  std::optional<durable::NoticeDelivery> next_notice(bool may_notify = true);
  // The callee has answered, or could not be reached.
  void notice_ended(std::string_view id, const durable::NoticeOutcome& outcome);

 private:
  std::optional<DueWork> next_run();
  std::optional<DueWork> next_item();
  std::optional<DueWork> next_to_tell();
  std::optional<DueWork> next_unknown();
  void sweep();
  void run_ended(const DueWork& work, const Result<std::string_view>& outcome);
  void item_ended(const DueWork& work, const Result<std::string_view>& outcome);
  std::optional<durable::NoticeDelivery> next_alarm();
  std::optional<durable::NoticeDelivery> next_notification();
  void alarm_ended(std::string_view id, const durable::NoticeOutcome& outcome);

  const storage::AgentKey& agent_;
  const Clock& clock_;
  const ClassSettings& settings_;
  WorkKinds& kinds_;
  WorkRecovery& recovery_;
  WorkReports& reports_;
  StopPointsAtCommit& stops_;
  bool alarm_comes_first_ = false;  // in next_notice()
  unsigned turn_ = 0;               // the kind that had the last turn
  SteadyTime next_sweep_{};
};

}  // namespace hearth::extensions
