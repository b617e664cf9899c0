#pragma once
// The durable work of one live agent: fibers, schedules, the queue, notifications,
// alarms and operations. WorkDelivery (runtime) delivers the work.

#include "extensions/work_dispatch.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <type_traits>

namespace hearth::extensions {

// Promises, with those of WorkDispatch and WorkRecovery
//  P5 Lean       An agent without durable work costs one look at its database when it is loaded, if
//                it has a database.
//
// Threads    The agent's shard.  Lifetime  close() before the database is closed.
// Failure    StorageError.
class DurableWork {
 public:
  // The references outlive this object. `agent`: the agent of this work, named in the reports.
  DurableWork(storage::AgentDatabase& database, const storage::AgentKey& agent, const Clock& clock,
              Random& random, const ClassSettings& settings, DurableEvents& events,
              StopPointsAtCommit& stops);

  // Takes over the rows of an earlier instance. Once, before any other member. `ended`: the crash
  // of that instance's process, if work of this agent caused it. `needed_person`: as the index has
  // it (Wake::needs_person). `has_code` false: an administrator looks, and what waits for code
  // waits on.
  void load(const std::optional<durable::EndedProcess>& ended = std::nullopt,
            bool needed_person = false, bool has_code = true);
  // Releases the database. Afterwards only wake() and the other const members may be called. Only
  // now it looks whether dead work was revived or removed.
  void close();
  // The instance ends on purpose: interrupts the work in progress, which does not count as a try.
  void interrupt_on_purpose();

  // ---- the parts ----
  [[nodiscard]] durable::Fibers& fibers() { return kinds_.fibers(); }
  [[nodiscard]] durable::Schedules& schedules() { return kinds_.get<durable::Schedules>(); }
  [[nodiscard]] durable::Queue& queue() { return kinds_.get<durable::Queue>(); }
  [[nodiscard]] durable::Notices& notices() { return kinds_.get<durable::Notices>(); }
  [[nodiscard]] durable::Alarms& alarms() { return kinds_.get<durable::Alarms>(); }
  [[nodiscard]] durable::Operations& operations();
  // One of these kinds.
  template <class Kind>
  [[nodiscard]] Kind& kind() {
    if constexpr (std::is_same_v<Kind, durable::Operations>)
      return operations();
    else
      return kinds_.get<Kind>();
  }
  // Null: the agent has none.
  [[nodiscard]] durable::Operations* find_operations() {
    return kinds_.find<durable::Operations>();
  }
  [[nodiscard]] WorkReports& reports() { return reports_; }
  [[nodiscard]] WorkDispatch& dispatch() { return dispatch_; }
  [[nodiscard]] WorkRecovery& recovery() { return recovery_; }
  [[nodiscard]] Random& random() const { return random_; }
  // The agent has sent a fetch without `op`, a call or a notification.
  void sent_elsewhere() {
    if (auto* const operations = find_operations()) operations->running().sent_elsewhere();
  }
  // Reaches the stop point once the open transaction has been committed.
  void stop_at_commit(StopPoint place) { stops_.add(place); }

  // The agent waits for a person to do what this names; empty: not any more. `key`
  // tells several apart. Joins the agent's open transaction. kLimitExceeded: there are
  // kMostQuestions.
  static constexpr std::size_t kMostQuestions = 16;
  Result<void> waits_for_person(std::string_view what, std::string_view key = {});

  // ---- what is due ----
  // True if WorkDispatch::next(false) would probably find work.
  [[nodiscard]] bool due() const;
  // The agent has no durable work, and had none in this instance.
  [[nodiscard]] bool empty() const;
  // When the agent must be awake again: the wakes of all parts. Each part has its wake in memory
  // (JobLine, P4), so that no turn reads the disk for it.
  [[nodiscard]] durable::Wake wake() const;
  // When to call WorkDispatch::next() again if no event comes before. Due work that cannot begin
  // now is looked at again after a second. Due recovery is not: it waits for a permit.
  [[nodiscard]] std::optional<std::int64_t> next_look_ms() const;

 private:
  [[nodiscard]] std::int64_t now_ms() const { return unix_millis(clock_.wall_now()); }

  storage::AgentDatabase& database_;
  const Clock& clock_;
  Random& random_;
  StopPointsAtCommit& stops_;
  WorkKinds kinds_;
  WorkReports reports_;
  WorkRecovery recovery_;
  WorkDispatch dispatch_;
  bool needed_person_ = false;
  bool is_closed_ = false;
};

}  // namespace hearth::extensions
