#pragma once
// The durable work of one live agent: fibers, schedules, the queue, notifications,
// alarms and operations. It says which work begins next, and writes how it ended. LiveAgent
// delivers the work.

#include "base/clock.hpp"
#include "base/error.hpp"
#include "base/random.hpp"
#include "base/stop_point.hpp"
#include "durable/alarms.hpp"
#include "durable/fibers.hpp"
#include "durable/jobs.hpp"
#include "durable/notices.hpp"
#include "durable/operations.hpp"
#include "durable/queue.hpp"
#include "durable/schedules.hpp"
#include "durable/wake.hpp"
#include "durable/work_part.hpp"
#include "extensions/class_settings.hpp"
#include "extensions/durable_events.hpp"
#include "extensions/types.hpp"
#include "storage/agent_database.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace hearth::extensions {

class CallPort;

// A piece of work that is due and begins now, as an event.
struct DueWork {
  EventKind kind{};
  std::string id;  // of the schedule, item, fiber or operation; empty: a plan of several fibers
  std::uint64_t run = 0;  // kSchedule: the run's number; kFiberRecovered: the offer's
  std::int64_t row = 0;   // its WorkMark::row
  std::string name{};     // of the event
  std::string body{};
  std::chrono::milliseconds timeout{};
  std::optional<DurableEvent> step{};  // LiveAgent reports it once the claim is on disk
  std::string trace{};                 // the trace that it belongs to: see keep_trace()
};

// kind               in progress at once           outcomes of the event
// kSchedule          schedules.max_running         OK; NOT_FOUND, UNSUPPORTED: no such callback;
//                                                  UNREADABLE: its payload; both wait for code.
//                                                  FINAL: no retry; any other error
// kQueueItem         1                             the same
// kFiberSettled      8                             OK, UNSUPPORTED: told; else told again later
// kOperationUnknown  1                             OK, NOT_FOUND, UNSUPPORTED: told; else the next
//                                                  instance tells it again
// kFibersRecovered   1, once an instance (P6)      OK: a plan; else no plan
// kFiberRecovered    1, or as the plan says        OK, with an outcome; NOT_FOUND, UNSUPPORTED,
//                                                  UNREADABLE: it waits for another version. FINAL:
//                                                  it is dead; any other error. Or continued()
//                                                  before
//
// Promises
//  P1 Fair       The kinds take turns: a kind that is always due holds back no other kind.
//  P2 Claimed    next() claims its work in the open transaction, which the caller commits before it
//                delivers the work.
//  P3 One turn   ended() writes into the open transaction, so the end of a piece of work commits
//                with its last writes.
//  P4 Planned    If interrupted fibers are to be recovered, the agent's code is asked for a plan
//                before the first fiber is offered.
//  P5 Lean       An agent without durable work costs one look at its database when it is loaded, if
//                it has a database.
//  P6 Poison     After a crash in a plan or in a fiber's work, a plan is asked for each fiber
//                alone, right before that fiber is offered.
//
// P4: The oldest fiber is claimed before the plan. So a plan that kills the process is followed by
// that fiber's wait, like a hook that kills it.
// P6: So the crash record names the fiber. A crash in a plan of several fibers counts for none.
//
// Threads    The agent's shard.  Lifetime  close() before the database is closed.
// Failure    StorageError.
class DurableWork {
 public:
  // The references outlive this object. `agent`: the agent of this work, named in the reports.
  DurableWork(storage::AgentDatabase& database, const storage::AgentKey& agent, const Clock& clock,
              Random& random, const ClassSettings& settings, DurableEvents& events,
              StopPointsAtCommit& stops);

  // Log lines name the event in progress from `calls`, which outlives the last report. Without it
  // they name none.
  void use(const CallPort& calls) { calls_ = &calls; }
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

  // ---- the parts; each but the fibers is made at its first use ----
  durable::Fibers& fibers() { return fibers_; }
  durable::Schedules& schedules();
  durable::Queue& queue();
  durable::Notices& notices();
  durable::Alarms& alarms();
  durable::Operations& operations();
  // This fiber has written a checkpoint, in this turn: its operations begin after those before.
  void checkpointed(std::string_view fiber_id);
  // The agent has sent a fetch without `op`, a call or a notification.
  void sent_elsewhere();
  // The agent has cancelled an operation that it had submitted and that has not ended.
  void cancelled(OperationId operation);
  // An offered fiber goes on in this instance, and this is on disk. Its recovery is over, and the
  // later end of its hook has no effect.
  void continued(std::string_view fiber_id);
  // The work of this running fiber cannot read `what`, such as its checkpoint.
  Result<durable::FiberChange> wait_for_code(durable::FiberHandle fiber, std::string_view what);
  // Since the last call, code could not read what an earlier version has stored for durable work.
  bool take_unreadable() { return std::exchange(is_unreadable_, false); }
  // The news of turns for clients, since the last call.
  std::vector<durable::TurnNews> take_turn_news() { return fibers_.turns().take(); }
  // The news of turns and the unknown operations, for a client that has just connected.
  std::vector<durable::TurnNews> standing_turns() { return fibers_.turns().standing(); }
  std::vector<durable::UnknownOperation> standing_unknown() {
    return operations_ ? operations_->standing_unknown() : std::vector<durable::UnknownOperation>();
  }
  // Warns, once for each callback: while the agent started, it made a schedule that does not say
  // whether it is idempotent.
  void warn_of_duplicates(std::string_view callback);

  // ---- for the parts' own steps ----
  [[nodiscard]] Random& random() const { return random_; }
  // Writes a log line and counts the event. The line has the trace of the agent's code, or else the
  // trace of the work.
  void report(DurableEvent event, std::string_view id, std::string_view detail = {});
  // Sets the trace (a traceparent) of a piece of work, for the DueWork of next(). A trace that it
  // has already stays. Empty: writes nothing.
  void keep_trace(durable::JobKind kind, std::string_view id, std::string_view trace);
  // The trace of a fiber, by its id; empty: it has none.
  [[nodiscard]] std::string trace_of_fiber(std::string_view id);
  // The agent waits for a person to do what this names; empty: not any more. `key`
  // tells several apart. Joins the agent's open transaction. kLimitExceeded: there are
  // kMostQuestions.
  static constexpr std::size_t kMostQuestions = 16;
  Result<void> waits_for_person(std::string_view what, std::string_view key = {});
  // Reports the operations with a new state since the last call.
  void report_operations();
  // Reaches the stop point once the open transaction has been committed.
  void stop_at_commit(StopPoint place) { stops_.add(place); }

  // ---- what is due ----
  // The next work that begins now. `may_recover` false: no kFiberRecovered, no kFibersRecovered.
  std::optional<DueWork> next(bool may_recover);
  // The next alarm or, with `may_notify`, notification that leaves now, claimed as P2 says. It is
  // no event of this agent. An alarm leaves like a notification to the agent itself, as a call
  // without a caller.
  std::optional<durable::NoticeDelivery> next_notice(bool may_notify = true);
  // The callee has answered, or could not be reached.
  void notice_ended(std::string_view id, const durable::NoticeOutcome& outcome);
  // Work of next() has ended.
  void ended(const DueWork& work, const Result<std::string_view>& outcome);

  // True if next(false) would probably find work.
  [[nodiscard]] bool due() const;
  // True if next(true) would find a fiber to recover.
  [[nodiscard]] bool recovery_due() const;
  // A plan is in progress, or a hook that has not continued its fiber.
  [[nodiscard]] bool recovering() const { return planning_ || !offers_.empty(); }
  // The agent has no durable work, and had none in this instance.
  [[nodiscard]] bool empty() const;
  // No fiber runs. (Runs of schedules and hooks are events in progress: their agent is not idle.)
  [[nodiscard]] bool idle() const { return fibers_.runs().size() == 0; }

  // When the agent must be awake again: the wakes of all parts. Each part has its wake in memory
  // (JobLine, P4), so that no turn reads the disk for it.
  [[nodiscard]] durable::Wake wake() const;
  // When to call next() again if no event comes before. Due work that cannot begin now is looked at
  // again after a second. Due recovery is not: it waits for a permit.
  [[nodiscard]] std::optional<std::int64_t> next_look_ms() const;

 private:
  struct Offer {
    std::string id;
    std::uint64_t number;  // tells apart two offers of one fiber: an older hook may still run
    bool is_pending;       // as in Interrupted
  };

  [[nodiscard]] bool is_of_fibers(const durable::EndedProcess& ended);
  std::optional<DueWork> next_of_any(bool may_recover);
  [[nodiscard]] std::string trace_of(const DueWork& work);
  [[nodiscard]] std::string trace_of(DurableEvent event, std::string_view id);
  std::optional<DueWork> next_run();
  std::optional<DueWork> next_item();
  std::optional<DueWork> next_to_tell();
  std::optional<DueWork> next_unknown();
  std::optional<DueWork> next_recovery();
  std::optional<durable::Interrupted> next_interrupted();
  DueWork ask_for_plan(const std::vector<durable::Interrupted>& others);
  DueWork offer(durable::Interrupted fiber);
  void sweep();

  void run_ended(const DueWork& work, const Result<std::string_view>& outcome);
  void item_ended(const DueWork& work, const Result<std::string_view>& outcome);
  void plan_ended(const Result<std::string_view>& outcome);
  void skip(const std::string& id);
  void offer_ended(const DueWork& work, const Result<std::string_view>& outcome);
  void hook_failed(const std::string& id, std::string_view why, bool is_final);
  void report_waiting(std::string_view id, std::string_view what);
  void note_unreadable(const Result<std::string_view>& outcome);
  std::optional<durable::NoticeDelivery> next_alarm();
  std::optional<durable::NoticeDelivery> next_notification();
  void alarm_ended(std::string_view id, const durable::NoticeOutcome& outcome);
  void report_notes();
  template <class Part>
  void report_given_up(const Part& part, DurableEvent event);
  // Makes the part at its first use. `more`: for its constructor, after the database.
  template <class Part, class... More>
  Part& made(std::unique_ptr<Part>& part, More&&... more);
  [[nodiscard]] std::int64_t now_ms() const { return unix_millis(clock_.wall_now()); }

  storage::AgentDatabase& database_;
  const storage::AgentKey& agent_;
  const Clock& clock_;
  Random& random_;
  const ClassSettings& settings_;
  DurableEvents& events_;
  const CallPort* calls_ = nullptr;
  StopPointsAtCommit& stops_;

  durable::Jobs jobs_;  // of all kinds
  durable::Fibers fibers_;
  std::unique_ptr<durable::Schedules> schedules_;
  std::unique_ptr<durable::Queue> queue_;
  std::unique_ptr<durable::Notices> notices_;
  std::unique_ptr<durable::Alarms> alarms_;
  std::unique_ptr<durable::Operations> operations_;
  std::vector<durable::WorkPart*> parts_;  // the parts that exist; fibers_ and its tellings first

  // Traces of the notifications in progress, by id.
  std::map<std::string, std::string, std::less<>> notice_traces_;

  bool needed_person_ = false;
  bool has_code_ = true;  // when it was loaded
  bool is_closed_ = false;
  bool is_unreadable_ = false;      // see take_unreadable()
  bool alarm_comes_first_ = false;  // in next_notice()
  unsigned turn_ = 0;               // the kind that had the last turn
  SteadyTime next_sweep_{};

  // ---- recovery ----
  std::vector<Offer> offers_;  // offered fibers whose hooks have to decide
  std::uint64_t last_offer_ = 0;
  bool planned_ = false;       // the agent's code was asked for the plan
  bool planning_ = false;      // a plan is in progress
  bool plans_singly_ = false;  // P6
  std::size_t parallel_ = 1;
  std::optional<durable::Interrupted> held_;          // claimed before the plan, not yet offered
  std::vector<std::string> order_;                    // the plan's order, until held_ is offered
  std::unique_ptr<std::vector<std::string>> warned_;  // callbacks, see warn_of_duplicates()
};

}  // namespace hearth::extensions
