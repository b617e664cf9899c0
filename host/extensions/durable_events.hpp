#pragma once
// The steps in the life of durable work: fibers, schedules, queue items, notifications, alarms,
// operations. Each step is a line of the log, and is counted where there are metrics
// (runtime/durable_counts.hpp).

#include "base/interface.hpp"
#include "base/logger.hpp"
#include "durable/operations.hpp"
#include "extensions/agent_line.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace hearth::extensions {

//  subject   steps
//  fiber     run:started -> stash -> run:completed | run:failed | cancelled | run:interrupted |
//            run:retry (-> run:started, later)
//            run:interrupted -> recovery:detected -> recovery:attempt -> recovery:handled |
//            recovery:skipped | recovery:failed (-> recovery:attempt, later) | recovery:dead |
//            unknown (it waits for another version); recovery:dead -> expired; never_told
//  schedule  create -> execute -> ... -> cancel; execute -> retry | error; dead; missed (its time
//            passed while it could not run); missing_callback (it is kept); duplicate_warning
//  queue     create -> retry -> error | dead; missing_callback (it is kept)
//  notify    create -> delivered | refused (delivered, and the callee answered with an error) |
//            retry (-> delivered | refused | retry | dead, later) | dead: a notification
//  operation unknown (it may have been executed), resolved (by the agent, or an administrator)
//  alarm     set -> done | retry | dead: a call of an object's method at a given time.
//            woken: an agent was woken because its time had come; class_missing, no_room: the agent
//            could not be woken, and will be later
enum class DurableEvent : std::uint8_t {
  kFiberRunStarted,
  kFiberRunCompleted,
  kFiberRunFailed,
  kFiberRunRetry,          // its work has failed, and will run again
  kFiberRunInterrupted,    // an instance found a run that an earlier one did not end
  kFiberRecoveryDetected,  // an instance found an earlier instance's fiber to recover
  kFiberRecoveryAttempt,
  kFiberRecoveryHandled,
  kFiberRecoverySkipped,
  kFiberRecoveryFailed,
  kFiberRecoveryDead,
  kFiberUnknown,  // this version of the class cannot go on with it: it waits for another version
  kFiberStash,
  kFiberCancelled,
  kFiberExpired,    // dead for longer than fibers.keep_failed: its row was removed
  kFiberNeverTold,  // the agent crashed too often when it was told of its end; the record stays
  kScheduleCreate,
  kScheduleExecute,
  kScheduleRetry,
  kScheduleError,
  kScheduleDead,
  kScheduleCancel,
  kScheduleDuplicateWarning,
  kScheduleMissed,
  kScheduleMissingCallback,
  kQueueCreate,
  kQueueRetry,
  kQueueError,
  kQueueMissingCallback,
  kQueueDead,
  kNotifyCreate,
  kNotifyDelivered,
  kNotifyRefused,  // delivered, and the callee's code answered with an error
  kNotifyRetry,
  kNotifyDead,
  kAlarmSet,
  kAlarmDone,
  kAlarmRetry,
  kAlarmDead,
  kOperationUnknown,  // it is not known whether it was executed
  kOperationResolved,
  kAlarmWoken,
  kAlarmClassMissing,
  kAlarmNoRoom,
};

struct DurableEventTraits {
  std::string_view name;     // stable: operators search and alert by it
  LogLevel level;            // kDebug for routine steps that may come every second
  std::string_view subject;  // the log field for the id; empty: the step has no id
};

// In the order of the enumerators.
inline constexpr std::array kDurableEvents = {
    DurableEventTraits{"fiber:run:started", LogLevel::kInfo, "fiber"},
    DurableEventTraits{"fiber:run:completed", LogLevel::kInfo, "fiber"},
    DurableEventTraits{"fiber:run:failed", LogLevel::kWarn, "fiber"},
    DurableEventTraits{"fiber:run:retry", LogLevel::kWarn, "fiber"},
    DurableEventTraits{"fiber:run:interrupted", LogLevel::kInfo, "fiber"},
    DurableEventTraits{"fiber:recovery:detected", LogLevel::kInfo, "fiber"},
    DurableEventTraits{"fiber:recovery:attempt", LogLevel::kInfo, "fiber"},
    DurableEventTraits{"fiber:recovery:handled", LogLevel::kInfo, "fiber"},
    DurableEventTraits{"fiber:recovery:skipped", LogLevel::kWarn, "fiber"},
    DurableEventTraits{"fiber:recovery:failed", LogLevel::kWarn, "fiber"},
    DurableEventTraits{"fiber:recovery:dead", LogLevel::kWarn, "fiber"},
    DurableEventTraits{"fiber:unknown", LogLevel::kWarn, "fiber"},
    DurableEventTraits{"fiber:stash", LogLevel::kDebug, "fiber"},
    DurableEventTraits{"fiber:cancelled", LogLevel::kInfo, "fiber"},
    DurableEventTraits{"fiber:expired", LogLevel::kInfo, "fiber"},
    DurableEventTraits{"fiber:never_told", LogLevel::kWarn, "fiber"},
    DurableEventTraits{"schedule:create", LogLevel::kDebug, "schedule"},
    DurableEventTraits{"schedule:execute", LogLevel::kDebug, "schedule"},
    DurableEventTraits{"schedule:retry", LogLevel::kWarn, "schedule"},
    DurableEventTraits{"schedule:error", LogLevel::kWarn, "schedule"},
    DurableEventTraits{"schedule:dead", LogLevel::kWarn, "schedule"},
    DurableEventTraits{"schedule:cancel", LogLevel::kDebug, "schedule"},
    DurableEventTraits{"schedule:duplicate_warning", LogLevel::kWarn, "schedule"},
    DurableEventTraits{"schedule:missed", LogLevel::kWarn, "schedule"},
    DurableEventTraits{"schedule:missing_callback", LogLevel::kWarn, "schedule"},
    DurableEventTraits{"queue:create", LogLevel::kDebug, "item"},
    DurableEventTraits{"queue:retry", LogLevel::kWarn, "item"},
    DurableEventTraits{"queue:error", LogLevel::kWarn, "item"},
    DurableEventTraits{"queue:missing_callback", LogLevel::kWarn, "item"},
    DurableEventTraits{"queue:dead", LogLevel::kWarn, "item"},
    DurableEventTraits{"notify:create", LogLevel::kDebug, "notification"},
    DurableEventTraits{"notify:delivered", LogLevel::kDebug, "notification"},
    DurableEventTraits{"notify:refused", LogLevel::kWarn, "notification"},
    DurableEventTraits{"notify:retry", LogLevel::kWarn, "notification"},
    DurableEventTraits{"notify:dead", LogLevel::kWarn, "notification"},
    DurableEventTraits{"alarm:set", LogLevel::kDebug, "alarm"},
    DurableEventTraits{"alarm:done", LogLevel::kDebug, "alarm"},
    DurableEventTraits{"alarm:retry", LogLevel::kWarn, "alarm"},
    DurableEventTraits{"alarm:dead", LogLevel::kWarn, "alarm"},
    DurableEventTraits{"operation:unknown", LogLevel::kWarn, "operation"},
    DurableEventTraits{"operation:resolved", LogLevel::kInfo, "operation"},
    DurableEventTraits{"alarm:woken", LogLevel::kDebug, ""},
    DurableEventTraits{"alarm:class_missing", LogLevel::kDebug, ""},
    DurableEventTraits{"alarm:no_room", LogLevel::kDebug, ""},
};
inline constexpr std::size_t kDurableEventCount = kDurableEvents.size();
static_assert(kDurableEventCount == static_cast<std::size_t>(DurableEvent::kAlarmNoRoom) + 1);

[[nodiscard]] constexpr const DurableEventTraits& traits_of(DurableEvent event) {
  return kDurableEvents[static_cast<std::size_t>(event)];
}

// Gets each step.
//
// Threads    One object a shard, on the shard's thread.
class DurableEvents : public Interface {
 public:
  // `whose` has the class's name in the code ("ChatRoom"). `id` and `detail` may be empty. A step
  // that the caller commits is reported after its commit. A step in the running turn is reported
  // when it is made; if that turn is lost, agent.storage_failed follows.
  virtual void report(DurableEvent event, const LineOrigin& whose, std::string_view id,
                      std::string_view detail) = 0;
  // Whether report() uses more of `whose` than the class.
  [[nodiscard]] virtual bool is_logged(DurableEvent /*event*/) const { return true; }
  // The ledger has written that an operation of this kind has begun, or has ended in this state.
  virtual void operation_changed(std::string_view /*agent_class*/, std::string_view /*kind*/,
                                 durable::OperationState /*state*/) {}
};

// Writes `fiber:run:started class=Research agent=a fiber=<id> detail=...` at the event's level,
// without fields that are empty, and then the fields of agent_line().
//
// Bounded    Names of agents, ids and details go only to the log, which cuts and escapes them.
// Lifetime   The logger outlives it.
class DurableLog : public DurableEvents {
 public:
  explicit DurableLog(Logger& logger) : logger_(logger) {}

  [[nodiscard]] bool is_logged(DurableEvent event) const override {
    return logger_.enabled(traits_of(event).level);
  }
  void report(DurableEvent event, const LineOrigin& whose, std::string_view id,
              std::string_view detail) override;

 private:
  Logger& logger_;
};

}  // namespace hearth::extensions
