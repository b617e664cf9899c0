#include "runtime/agent_exit.hpp"

#include "base/stop_point.hpp"
#include "runtime/agent_handles.hpp"
#include "runtime/condemned_agents.hpp"
#include "runtime/paced_steps.hpp"

#include <algorithm>

namespace hearth::runtime {

Error why_it_ended(EvictReason reason) {
  if (reason == EvictReason::kDestroyed) return Error{Errc::kNotFound, "the agent was destroyed"};
  return Error{Errc::kClosing,
               "the agent was evicted (" + std::string(to_string(reason)) + "); try again"};
}

void AgentExit::evict(EvictReason reason) {
  if (const Live* live = place_.life.as<Live>()) evict(reason, live->served->settings.evict_grace);
}

void AgentExit::leave(EvictReason reason, std::chrono::milliseconds grace, bool wake_again) {
  Live* live = place_.life.as<Live>();
  if (live == nullptr) return;
  if (grace.count() <= 0 || live->live->store().broken()) {
    begin(Ending{.reason = reason, .wake_again = wake_again});
    return;
  }
  place_.shard.admission.leaving(place_.applicant);
  Leaving& leaving = place_.life.enter(Leaving{std::move(*live), reason, wake_again, place_.now()});
  leaving.live->ask_to_leave(reason, grace);
}

// ---- another version of its class, or none ----

bool AgentExit::is_idle(const Live& live) const {
  return place_.inbox.empty() && live.live->idle();
}

void AgentExit::must_leave(EvictReason reason, bool when_idle) {
  if (Waking* waking = place_.life.as<Waking>()) waking->intent = Intent{reason, when_idle};
  Live* live = place_.life.as<Live>();
  if (live == nullptr) return;
  live->candidacy = Candidacy();
  live->intent = Intent{reason, when_idle};
  if (when_idle && !live->settling) leave_if_idle();
}

void AgentExit::may_try(const std::shared_ptr<VersionTrial>& trial) {
  Live* live = place_.life.as<Live>();
  if (live == nullptr) return;
  const bool is_busy = live->settling || !is_idle(*live);
  live->candidacy = candidacy_in(trial);
  if (!is_busy || !trial->only_idle) leave_for_version(*live);
}

void AgentExit::leave_now() {
  const Live* live = place_.life.as<Live>();
  if (live == nullptr || !live->intent) return;  // once it has started, this is asked again
  evict(live->intent->reason);
}

void AgentExit::leave_if_idle() {
  Live* live = place_.life.as<Live>();
  if (live == nullptr) return;
  const bool waits = live->candidacy || (live->intent && live->intent->when_idle);
  if (waits && is_idle(*live)) leave_for_version(*live);
}

void AgentExit::leave_for_version(Live& live) {
  if (!live.candidacy) return leave_now();
  const bool has_place = live.candidacy->take_place();  // first, so that it always counts
  live.candidacy = Candidacy();
  if (has_place) leave(EvictReason::kCodeUpdate, live.served->settings.evict_grace, true);
}

void AgentExit::leave_here() {
  if (place_.life.state() != AgentState::kLive) return;
  leave_now();
  end_now();
}

void AgentExit::leave_suddenly(EvictReason reason) {
  hurry();
  const Leaving* leaving = place_.life.as<Leaving>();
  end(leaving == nullptr ? reason : leaving->reason);
}

// ---- the end ----

void AgentExit::begin(Ending how) {
  Resident* resident = place_.life.resident();
  if (resident == nullptr || place_.life.state() == AgentState::kEnding) return;
  if (const Leaving* leaving = place_.life.as<Leaving>()) {
    how.wake_again = leaving->wake_again;
  } else {
    place_.shard.admission.leaving(place_.applicant);
  }
  place_.shard.admission.residents().ending();
  how.from = place_.life.state();
  static_cast<Resident&>(how) = std::move(*resident);
  const Ending& ending = place_.life.enter(std::move(how));
  // The end of an idle agent is not urgent, and after a recovery there are thousands.
  const bool is_urgent = ending.reason != EvictReason::kIdle || place_.shard.stopping;
  end_soon(is_urgent ? std::nullopt : std::optional(StepKind::kDeparture));
}

void AgentExit::end_soon(std::optional<StepKind> turn) {
  place_.life.as<Ending>()->pace = turn ? Ending::Pace::kWaitsForTurn : Ending::Pace::kPosted;
  auto end = place_.task([this] { end_now(); });
  if (turn) return place_.shard.steps.add(*turn, std::move(end));
  place_.services.loop.post(std::move(end));
}

void AgentExit::end_now() {
  const Ending* ending = place_.life.as<Ending>();
  if (ending != nullptr && ending->pace != Ending::Pace::kUnderWay) finish_end();
}

void AgentExit::hurry() {
  const Ending* ending = place_.life.as<Ending>();
  if (ending != nullptr && ending->pace == Ending::Pace::kWaitsForTurn) end_soon();
}

void AgentExit::hurry_for_work() {
  Ending* const ending = place_.life.as<Ending>();
  if (ending == nullptr) return;
  if (ending->was_only_opened()) ending->has_come_for_work = true;
  if (ending->pace == Ending::Pace::kWaitsForTurn) end_soon(StepKind::kWaking);
}

void AgentExit::finish_end() {
  Ending& ending = *place_.life.as<Ending>();
  ending.pace = Ending::Pace::kUnderWay;
  LiveAgent* const live = ending.live.get();
  if (live != nullptr && live->store().loan().postpone([this] { finish_end(); })) return;
  // Asked before the instance is destroyed: what it releases then was interrupted, not finished.
  Rest rest;
  if (live != nullptr) {
    if (!live->store().broken()) {  // else the index knows it: end_instance()
      rest.next_wake = live->store().wake();
      rest.next_look = live->store().work().next_look_ms();
    }
    ending.settling = true;
    live->finish_turns(live->context().wants_destruction() ? EvictReason::kDestroyed
                                                           : ending.reason);
    ending.settling = false;
    if (live->store().loan().postpone([this, rest] { end_instance(rest); })) return;
  }
  end_instance(rest);
}

void AgentExit::end_instance(Rest rest) {
  Ending& ending = *place_.life.as<Ending>();
  LiveAgent* const live = ending.live.get();
  // When storage failed, memory is ahead of the disk, so the wake index is right. And an immediate
  // retry would fail again.
  const bool failed =
      ending.start_failure || ending.lost_descriptors || live == nullptr || live->store().broken();
  // (An agent below a destroyed one has not asked for its own destruction.)
  rest.destroyed = live != nullptr && (live->context().wants_destruction() ||
                                       place_.services.condemned.contains(place_.key));
  if (rest.destroyed) {
    ending.reason = EvictReason::kDestroyed;  // whatever caused the end
    place_.shard.end_below(place_.key);
  }
  if (failed) {
    AlarmClock& alarms = place_.services.alarms;
    rest.next_wake = durable::either(rest.next_wake, alarms.known(place_.key));
    if (!rest.next_wake.none() && !ending.lost_descriptors)
      rest.at_least = alarms.wait_after_failure(place_.key);
    if (rest.next_wake.working)
      rest.at_least = std::min(rest.at_least, ending.served->settings.keep_alive_interval);
  }
  const auto done = [this, rest](const std::string& trouble) {
    if (!rest.destroyed) return closed(rest, trouble);
    place_.services.condemned.finish(place_.key, [this, rest, trouble] { closed(rest, trouble); });
  };
  if (live == nullptr) {
    done({});
    return;
  }
  const Error why = why_it_ended(ending.reason);
  ending.settling = true;
  std::vector<OwnedEvent> interrupted = live->shut(ending.reason, why);
  ending.settling = false;
  if (ending.served->settings.is_object) stop_point("object.hibernate.shut");
  place_.inbox.put_back(std::move(interrupted), ending.reason, why);
  // A MIGRATE or a turn that failed leaves uncommitted writes, which the file does not have.
  place_.inbox.undo_states(live->store().commits().state_writes());
  // The next instance numbers its writes from the start, and undoes none of these.
  place_.inbox.queue().forget_state_writes();
  // Otherwise an agent whose handler of STATE_CHANGED changes the state would return after each
  // eviction.
  if (ending.reason == EvictReason::kAdmin)
    (void)place_.inbox.queue().take_if(
        [](const OwnedEvent& each) { return each.state_chain != nullptr; });
  // Events that come meanwhile wait, as during any eviction.
  BlockingPool* const closers = place_.services.closers;
  const bool elsewhere =
      closers != nullptr && closers->run([live, done, &loop = place_.services.loop](bool) {
        loop.post([done, trouble = live->store().commits().close()] { done(trouble); });
      });
  if (!elsewhere) done(live->store().commits().close());
}

namespace {

// An object has left memory. An object that failed to start was never awake, so it does not
// hibernate.
void note_object_left(const ShardServices& services, const storage::AgentKey& key,
                      const Ending& ending, bool destroyed) {
  stop_point("object.hibernate.closed");
  const bool hibernates = !destroyed && ending.had_started();
  services.metrics.of_class(key.agent_class).object_left(hibernates);
  if (!destroyed) services.files.note_active(key);
  if (!hibernates) return;
  (void)services.logger.record_limited(
      LogLevel::kDebug, "object.hibernated", {key.agent_class},
      {{"class", key.agent_class}, {"agent", key.name}, {"reason", to_string(ending.reason)}},
      extensions::kAuditLimit);
}

}  // namespace

void AgentExit::closed(const Rest& rest, const std::string& trouble) {
  const ShardServices& services = place_.services;
  const storage::AgentKey& key = place_.key;
  if (!trouble.empty()) {
    services.logger.write_limited(
        LogLevel::kWarn, "agent.close_failed", {key.agent_class},
        {{"class", key.agent_class}, {"agent", key.name}, {"error", trouble}});
  }
  GoneAgent gone{.how = std::move(*place_.life.as<Ending>()),
                 .destroyed = rest.destroyed,
                 .awaits_removal = !rest.destroyed && services.condemned.contains(key)};
  Ending& ending = gone.how;
  if (ending.live && ending.live->store().commits().kept_at_end() && !rest.destroyed)
    services.files.note_kept(key, storage::Kept::kOnDevice);
  ending.live.reset();
  ending.lost_descriptors =
      ending.lost_descriptors && !rest.destroyed && !gone.awaits_removal && !place_.shard.stopping;
  count_gone(ending, rest.destroyed);
  if (rest.destroyed) {
    place_.inbox.part_with_known(why_it_ended(EvictReason::kDestroyed));
  } else {
    schedule_next(ending, rest);
  }
  place_.life.enter(Cold{});
  services.logger.write(
      LogLevel::kDebug, "agent.evicted",
      {{"class", key.agent_class}, {"agent", key.name}, {"reason", to_string(ending.reason)}});
  place_.inbox.part_with_unfinished();
  gone_(std::move(gone));
}

void AgentExit::count_gone(const Ending& ending, bool destroyed) {
  StartCounts& starts = *ending.served->starts;
  if (ending.start_failure) {
    starts.count_failure(place_.key.name);
  } else if (ending.had_started() && !ending.is_tried) {
    starts.count_start();
  }
  starts.count_leave();
  place_.shard.handles.remove(ending.handle);
  ClassMetrics& figures = place_.services.metrics.of_class(place_.key.agent_class);
  figures.live_agents.add(-1);
  // Before its place is free: the figures never show more objects than there are places.
  if (ending.served->settings.is_object && !ending.was_only_opened())
    note_object_left(place_.services, place_.key, ending, destroyed);
  if (ending.lost_descriptors) return place_.shard.admission.left_without_files(place_.applicant);
  place_.shard.admission.left(place_.applicant);
  if (!ending.start_failure && !ending.was_only_opened()) figures.evicted(ending.reason);
  if (work_.permits().any()) work_.give_back();
}

void AgentExit::schedule_next(const Ending& ending, const Rest& rest) {
  AlarmClock& alarms = place_.services.alarms;
  const bool waits_for_code =
      rest.next_wake.at_ms && durable::is_next_version(*rest.next_wake.at_ms);
  // A visit leaves the moment at which its code is tried.
  if (!(waits_for_code && ending.was_only_opened() && alarms.is_scheduled(place_.key)))
    alarms.rest(place_.key, rest.next_wake, rest.next_look, rest.at_least);
  // The version that the agent waits for may have come.
  if (rest.next_wake.may_wait_for_code() &&
      (ending.reason == EvictReason::kCodeUpdate || ending.has_come_for_work))
    alarms.look_at(place_.key, unix_millis(place_.services.loop.clock().wall_now()));
}

}  // namespace hearth::runtime
