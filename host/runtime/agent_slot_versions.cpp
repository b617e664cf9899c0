// An agent whose code is replaced or taken away while its clients stay.
#include "base/close_codes.hpp"
#include "runtime/agent_slot.hpp"
#include "runtime/shard_services.hpp"

#include <utility>

namespace hearth::runtime {

const ServedClass* AgentSlot::version() const {
  const Resident* resident = life_.resident();
  return resident == nullptr ? nullptr : resident->served.get();
}

void AgentSlot::must_leave(EvictReason reason, bool when_idle) {
  if (Waking* waking = life_.as<Waking>()) waking->intent = Intent{reason, when_idle};
  Live* live = life_.as<Live>();
  if (live == nullptr) return;
  live->candidacy = Candidacy();
  live->intent = Intent{reason, when_idle};
  if (when_idle && !settling_ && inbox_.empty() && live->live->idle()) leave_now(false);
}

void AgentSlot::leave_now(bool wake_again) {
  const Live* live = life_.as<Live>();
  if (live == nullptr || !live->intent) return;  // started() checks again
  leave(live->intent->reason, live->served->settings.evict_grace, wake_again);
}

void AgentSlot::leave_here() {
  if (state() != AgentState::kLive) return;  // started() checks again
  leave_now(false);
  end_now();
}

void AgentSlot::leave_suddenly(EvictReason reason) {
  hurry_end();
  const Leaving* leaving = life_.as<Leaving>();
  end(leaving == nullptr ? reason : leaving->reason);
}

// ---- a version under trial ----

void AgentSlot::may_try(const std::shared_ptr<VersionTrial>& trial) {
  Live* live = life_.as<Live>();
  if (live == nullptr) return;
  const bool is_busy = settling_ || !inbox_.empty() || !live->live->idle();
  live->candidacy = candidacy_in(trial);
  if (!is_busy || !trial->only_idle) leave_while_idle();
}

// Leaves now: the agent is idle, or the trial does not wait for idle agents.
void AgentSlot::leave_while_idle() {
  Live& live = *life_.as<Live>();
  if (!live.candidacy) return leave_now(false);
  const bool has_place = live.candidacy->take_place();  // first, so that it always counts
  live.candidacy = Candidacy();
  if (!has_place) return;
  live.intent = Intent{EvictReason::kCodeUpdate, false};
  leave_now(true);
}

void AgentSlot::count_trial() {
  Live* live = life_.as<Live>();
  if (live == nullptr) return;
  if (live->live->work().reports().take_unreadable()) {
    live->is_tried = true;
    live->served->starts->count_unreadable(key_.name);
  } else if (!live->is_tried && !live->live->work().recovery().in_progress() &&
             !live->live->work().recovery().due()) {
    live->is_tried = true;
    live->served->starts->count_start();
  }
}

void AgentSlot::start_failed(const std::shared_ptr<StartCounts>& version, Error failure) {
  // The order of these reads matters: a rollback first puts the other version, then decides, then
  // tells the shards.
  ShardLoop& loop = parts_.services.loop;
  const SteadyTime until = version->undecided_until;
  const bool is_undecided = loop.clock().steady_now() < until;
  const auto served = parts_.services.classes.find(segment_);
  if (parts_.stopping || (!is_undecided && served && served->starts == version)) {
    refuse_waiting(failure, kCloseInternalError);
  } else if (!is_undecided) {
    if (!inbox_.empty()) wake();
  } else {
    life_.enter(AwaitingVersion{version, std::move(failure),
                                LoopTimer(loop, until, [this] { trial_is_over(); }), now()});
  }
}

bool AgentSlot::awaits_decision(const ServedClass& version) const {
  const AwaitingVersion* awaiting = life_.as<AwaitingVersion>();
  return awaiting != nullptr && awaiting->version == version.starts &&
         parts_.services.loop.clock().steady_now() < version.starts->undecided_until.load();
}

void AgentSlot::forget_failed_start() {
  if (state() == AgentState::kAwaitingVersion) life_.enter(Cold{});
}

void AgentSlot::trial_is_over() {
  AwaitingVersion* const awaiting = life_.as<AwaitingVersion>();
  if (awaiting == nullptr) return;
  const auto served = parts_.services.classes.find(segment_);
  if (served && awaits_decision(*served)) return;  // this was the end of another trial
  const AwaitingVersion failed = std::move(*awaiting);
  forget_failed_start();
  if (served && served->starts == failed.version) {
    refuse_waiting(failed.failure, kCloseInternalError);
  } else if (!inbox_.empty()) {
    wake();
  }
}

// ---- a class that is not served ----

void AgentSlot::class_is_back() {
  if (state() == AgentState::kAwaitingVersion) {
    trial_is_over();
  } else if (!in_memory() && !inbox_.empty()) {
    wake();
  }
}

void AgentSlot::class_is_gone() {
  if (in_memory()) return;
  forget_failed_start();
  refuse_waiting(Error{Errc::kUnavailable, "the class is not loaded"}, kCloseServiceRestart);
  inbox_.end_clients(kCloseServiceRestart, "the class is not loaded");
}

}  // namespace hearth::runtime
