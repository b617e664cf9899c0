#pragma once
// The durable work of one live agent as one thing: fibers, managed fibers, schedules and the queue.
// It says what is due next and what becomes of it; LiveAgent delivers it.

#include "base/clock.hpp"
#include "base/error.hpp"
#include "base/random.hpp"
#include "base/stop_point.hpp"
#include "durable/alarms.hpp"
#include "durable/fibers.hpp"
#include "durable/jobs.hpp"
#include "durable/managed_fibers.hpp"
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
#include <vector>

namespace hearth::extensions {

class AgentCalls;

// One thing that is due and begins now, as an event.
struct DueWork {
  EventKind kind{};
  std::string id;         // of the schedule, the item or the fiber; of a plan of several: none
  std::uint64_t run = 0;  // kSchedule: which run; kFiberRecovered: which offer
  std::string name;       // of the event
  std::string body;
  std::chrono::milliseconds timeout{};
  std::optional<DurableEvent> step;  // to be reported once it is on disk that it begins
  std::string trace{};               // under which it was begun: keep_trace()
};

// kind               at once                       ends as (outcome of the event)
// kSchedule          schedules.max_running         OK, NOT_FOUND or UNSUPPORTED (no such callback),
//                    any other error
// kQueueItem         1                             the same
// kFiberSettled      8                             OK or UNSUPPORTED: told; else told again later
// kOperationUnknown  1                             OK, NOT_FOUND or UNSUPPORTED: told; else told
//                                                  again by the next instance
// kFibersRecovered   1, once an instance (P6)      OK with a plan; anything else: no plan
// kFiberRecovered    1, or as the plan says        OK (with an outcome if it is managed),
//                    UNSUPPORTED (refused), NOT_FOUND (no such name), any other error;
//                                                  or before, by continued()
//
// Promises
//  P1 Fair       Of the kinds that are due each has its turn: one that is always due again holds
//                back none of the others.
//  P2 Claimed    What next() gives is claimed in the open transaction. It is delivered after the
//                caller has committed that.
//  P3 One turn   ended() writes into the open transaction: the end of a piece of work commits with
//                its last writes.
//  P4 Planned    When several fibers are to be recovered, or one of hearth.fibers/2, the plan is
//                asked for before the first is offered. The oldest is claimed before that, so that
//                a plan that kills the process is followed by a wait, as a hook is.
//  P5 Lean       An agent that has none of it costs one look at its database when it is loaded, if
//                it has one.
//  P6 Poison     After a crash in a plan, or in the work of a fiber, a plan is asked for each fiber
//                alone, right before that fiber is offered. So it is known which one ends the
//                process: a crash in a plan of several counts for none of them.
//
// Threads    The agent's shard.  Lifetime  close() before the database is closed.
// Failure    StorageError.
class DurableWork {
 public:
  // The references outlive it; `agent` is whom the reports are about.
  DurableWork(storage::AgentDatabase& database, const storage::AgentKey& agent, const Clock& clock,
              Random& random, const ClassSettings& settings, DurableEvents& events,
              StopPointsAtCommit& stops);

  // Whose events the lines of the log name. It outlives the last report. Without it they name none.
  void use(const AgentCalls& calls) { calls_ = &calls; }
  // What an earlier instance left. Once, before anything else. `ended`: as Fibers::load().
  void load(const std::optional<durable::EndedProcess>& ended = std::nullopt);
  // Gives up what holds the database; only wake() and the questions may be called afterwards.
  void close();
  // The instance goes on purpose: what is in progress is interrupted, and that counts for nothing.
  void interrupt_on_purpose();

  // ---- the parts; each but the first is made when it is first asked for ----
  durable::Fibers& fibers() { return fibers_; }
  durable::ManagedFibers& managed();
  durable::Schedules& schedules();
  durable::Queue& queue();
  durable::Notices& notices();
  durable::Alarms& alarms();
  durable::Operations& operations();
  // This fiber has written a checkpoint, in this turn.
  void checkpointed(std::string_view fiber_id);
  // The agent has sent a fetch without `op`, a call or a notification.
  void sent_elsewhere();
  // It has cancelled what it had submitted, which has not ended.
  void cancelled(OperationId operation);
  [[nodiscard]] bool is_managed(std::string_view fiber_id);
  // A fiber that is being offered goes on in this instance (a managed one was resumed, another one
  // replaced), which is on disk: its recovery is over. The end of its hook, whenever it comes,
  // decides nothing any more.
  void continued(std::string_view fiber_id);
  // What clients are to hear of turns, since the last call.
  std::vector<durable::TurnNews> take_turn_news() {
    return managed_ ? managed_->take_turn_news() : std::vector<durable::TurnNews>();
  }
  // What a client that has just come is to hear of turns and of operations.
  std::vector<durable::TurnNews> standing_turns() {
    return managed_ ? managed_->standing_turns() : std::vector<durable::TurnNews>();
  }
  std::vector<durable::UnknownOperation> standing_unknown() {
    return operations_ ? operations_->standing_unknown() : std::vector<durable::UnknownOperation>();
  }
  // A schedule without a word on repetition was made while the agent started: told once a callback.
  void warn_of_duplicates(std::string_view callback);

  // ---- for the parts' own steps ----
  [[nodiscard]] Random& random() const { return random_; }
  // A line of the log, and a count. The line has the trace that the agent's code is under, or else
  // that of the work.
  void report(DurableEvent event, std::string_view id, std::string_view detail = {});
  // What next() will give of this piece of work belongs to this trace (a traceparent), unless it
  // has one already. Empty: to none, and nothing is written.
  void keep_trace(durable::JobKind kind, std::string_view id, std::string_view trace);
  // That of a fiber, by its id; empty: it has none.
  [[nodiscard]] std::string trace_of_fiber(std::string_view id);
  // The operations that have another state since the last call.
  void report_operations();
  // Named when what is written now has been committed.
  void stop_at_commit(StopPoint place) { stops_.add(place); }

  // ---- what is due ----
  // The next thing that begins now. `may_recover` false: no kFiberRecovered, no kFibersRecovered.
  std::optional<DueWork> next(bool may_recover);
  // The next notification that leaves now, claimed as P2 says. It is no event of this agent. An
  // alarm leaves like a notification to the agent itself, and is a call that it gets from no agent.
  std::optional<durable::NoticeDelivery> next_notice();
  // Its callee has answered, or could not be reached.
  void notice_ended(std::string_view id, const durable::NoticeOutcome& outcome);
  // What next() gave is over.
  void ended(const DueWork& work, const Result<std::string_view>& outcome);

  // next(false) would probably find something.
  [[nodiscard]] bool due() const;
  // next(true) would find something to recover.
  [[nodiscard]] bool recovery_due() const;
  // The plan is in progress, or a hook that has not continued its fiber.
  [[nodiscard]] bool recovering() const { return planning_ || !offers_.empty(); }
  // Nothing of it is there, and nothing ever was in this instance.
  [[nodiscard]] bool empty() const;
  // No work is under way that only memory knows. (Runs and hooks are events in progress; their
  // agent is not idle.)
  [[nodiscard]] bool idle() const { return fibers_.running() == 0; }

  // When the agent must be awake again: the parts' wakes together. Each part has its own in memory
  // (JobLine, P4), so that no turn looks at the disk for it.
  [[nodiscard]] durable::Wake wake() const;
  // When to look at next() again, though nothing happens meanwhile: work that is due and cannot
  // begin is looked at now and then, recovery that is due is not: it waits for a permit.
  [[nodiscard]] std::optional<std::int64_t> next_look_ms() const;

 private:
  struct Offer {
    std::string id;
    std::uint64_t number;  // of the same fiber there may be another one, whose hook has decided
    bool is_retry;         // its work has failed, and begins again: that is no recovery
  };

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
  void hook_failed(const std::string& id, std::string_view why);
  std::optional<durable::NoticeDelivery> next_alarm();
  void alarm_ended(std::string_view id, const durable::NoticeOutcome& outcome);
  void report_notes();
  template <class Part>
  void report_given_up(const std::unique_ptr<Part>& part, DurableEvent event);
  // Makes the part when it is first asked for. `more`: for its constructor, after the database.
  template <class Part, class... More>
  Part& made(std::unique_ptr<Part>& part, More&&... more);
  [[nodiscard]] std::int64_t now_ms() const { return unix_millis(clock_.wall_now()); }

  storage::AgentDatabase& database_;
  const storage::AgentKey& agent_;
  const Clock& clock_;
  Random& random_;
  const ClassSettings& settings_;
  DurableEvents& events_;
  const AgentCalls* calls_ = nullptr;
  StopPointsAtCommit& stops_;

  durable::Jobs jobs_;  // of all kinds
  durable::Fibers fibers_;
  std::unique_ptr<durable::ManagedFibers> managed_;
  std::unique_ptr<durable::Schedules> schedules_;
  std::unique_ptr<durable::Queue> queue_;
  std::unique_ptr<durable::Notices> notices_;
  std::unique_ptr<durable::Alarms> alarms_;
  std::unique_ptr<durable::Operations> operations_;
  std::vector<durable::WorkPart*> parts_;  // all that are made; fibers_ first

  // Of notifications that are on their way, by id.
  std::map<std::string, std::string, std::less<>> notice_traces_;

  unsigned turn_ = 0;  // whose turn it was
  SteadyTime next_sweep_{};

  // ---- recovery ----
  std::vector<Offer> offers_;  // those whose hooks are to decide
  std::uint64_t last_offer_ = 0;
  bool planned_ = false;       // the plan was asked for
  bool planning_ = false;      // and is in progress
  bool plans_singly_ = false;  // P6
  std::size_t parallel_ = 1;
  std::optional<durable::Interrupted> held_;          // claimed before the plan was asked for
  std::vector<std::string> order_;                    // of the plan, until held_ has had its place
  std::unique_ptr<std::vector<std::string>> warned_;  // callbacks, see warn_of_duplicates()
};

}  // namespace hearth::extensions
