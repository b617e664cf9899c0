// The way out of an agent: its eviction, whatever the reason, and the removal of a destroyed agent.
#include "base/close_codes.hpp"
#include "base/stop_point.hpp"
#include "runtime/agent_handles.hpp"
#include "runtime/agent_slot.hpp"
#include "runtime/condemned_agents.hpp"
#include "runtime/paced_steps.hpp"
#include "runtime/shard_services.hpp"

#include <algorithm>
#include <utility>

namespace hearth::runtime {

Error AgentSlot::why_it_ended(EvictReason reason) {
  if (reason == EvictReason::kDestroyed) return Error{Errc::kNotFound, "the agent was destroyed"};
  return Error{Errc::kClosing,
               "the agent was evicted (" + std::string(to_string(reason)) + "); try again"};
}

std::optional<Ending::StartFailure> AgentSlot::if_waking(const char* why) const {
  const Waking* const waking = life_.as<Waking>();
  if (waking == nullptr) return std::nullopt;
  return Ending::StartFailure{.error = Error{Errc::kInternal, why}, .span = waking->span};
}

void AgentSlot::evict(EvictReason reason, std::chrono::milliseconds grace) {
  leave(reason, grace, false);
}

void AgentSlot::evict(EvictReason reason) {
  if (const Live* live = life_.as<Live>()) evict(reason, live->served->settings.evict_grace);
}

void AgentSlot::leave(EvictReason reason, std::chrono::milliseconds grace, bool wake_again) {
  Live* live = life_.as<Live>();
  if (live == nullptr) return;
  if (grace.count() <= 0 || live->live->broken()) {
    begin_ending(Ending{.reason = reason, .wake_again = wake_again});
    return;
  }
  parts_.admission.leaving(*this);
  Leaving& leaving = life_.enter(Leaving{std::move(*live), reason, wake_again, now()});
  leaving.live->ask_to_leave(reason, grace);
}

void AgentSlot::end(EvictReason reason) {
  begin_ending(Ending{.reason = reason});
}

// The end comes from the loop: the caller may still be using the live agent.
void AgentSlot::begin_ending(Ending how) {
  Resident* resident = life_.resident();
  if (resident == nullptr || state() == AgentState::kEnding) return;
  if (const Leaving* leaving = life_.as<Leaving>()) {
    how.wake_again = leaving->wake_again;
  } else {
    parts_.admission.leaving(*this);
  }
  parts_.admission.residents().ending();
  how.from = state();
  static_cast<Resident&>(how) = std::move(*resident);
  const Ending& ending = life_.enter(std::move(how));
  // The end of an idle agent is not urgent, and after a recovery there are thousands.
  if (ending.reason == EvictReason::kIdle && !parts_.stopping) {
    end_in_turn(StepKind::kDeparture);
  } else {
    post_end();
  }
}

void AgentSlot::post_end() {
  life_.as<Ending>()->pace = Ending::Pace::kPosted;
  parts_.services.loop.post(task([](AgentSlot& slot) { slot.end_now(); }));
}

void AgentSlot::end_in_turn(StepKind kind) {
  life_.as<Ending>()->pace = Ending::Pace::kWaitsForTurn;
  parts_.steps.add(kind, task([](AgentSlot& slot) { slot.end_now(); }));
}

void AgentSlot::end_now() {
  const Ending* ending = life_.as<Ending>();
  if (ending != nullptr && ending->pace != Ending::Pace::kUnderWay) finish_end();
}

void AgentSlot::hurry_end() {
  const Ending* ending = life_.as<Ending>();
  if (ending != nullptr && ending->pace == Ending::Pace::kWaitsForTurn) post_end();
}

void AgentSlot::finish_end() {
  Ending& ending = *life_.as<Ending>();
  ending.pace = Ending::Pace::kUnderWay;
  LiveAgent* const live = ending.live.get();
  if (live != nullptr && live->postpone([this] { finish_end(); })) return;
  // Asked before the instance is destroyed: what it releases then was interrupted, not finished.
  Rest rest;
  if (live != nullptr) {
    if (!live->broken()) {  // else the index knows it: end_instance()
      rest.next_wake = live->wake();
      rest.next_look = live->work().next_look_ms();
    }
    settling_ = true;
    live->finish_turns(live->destruction_requested() ? EvictReason::kDestroyed : ending.reason);
    settling_ = false;
    if (live->postpone([this, rest] { end_instance(rest); })) return;
  }
  end_instance(rest);
}

void AgentSlot::end_instance(Rest rest) {
  Ending& ending = *life_.as<Ending>();
  LiveAgent* const live = ending.live.get();
  // When storage failed, memory is ahead of the disk, so the wake index is right. And an immediate
  // retry would fail again.
  const bool failed =
      ending.start_failure || ending.lost_descriptors || live == nullptr || live->broken();
  // (An agent below a destroyed one has not asked for its own destruction.)
  rest.destroyed = live != nullptr &&
                   (live->destruction_requested() || parts_.services.condemned.contains(key_));
  if (rest.destroyed) {
    ending.reason = EvictReason::kDestroyed;  // whatever caused the end
    parts_.end_below(key_);
  }
  if (failed) {
    AlarmClock& alarms = parts_.services.alarms;
    rest.next_wake = durable::either(rest.next_wake, alarms.known(key_));
    if (!rest.next_wake.none() && !ending.lost_descriptors)
      rest.at_least = alarms.wait_after_failure(key_);
    if (rest.next_wake.working)
      rest.at_least = std::min(rest.at_least, ending.served->settings.keep_alive_interval);
  }
  const auto done = [this, rest](const std::string& trouble) {
    if (!rest.destroyed) return gone(rest, trouble);
    parts_.services.condemned.finish(key_, [this, rest, trouble] { gone(rest, trouble); });
  };
  if (live == nullptr) {
    done({});
    return;
  }
  const Error why = why_it_ended(ending.reason);
  settling_ = true;
  std::vector<OwnedEvent> interrupted = live->shut(ending.reason, why);
  settling_ = false;
  if (ending.served->settings.is_object) stop_point("object.hibernate.shut");
  inbox_.put_back(std::move(interrupted), ending.reason, why);
  // A MIGRATE or a turn that failed leaves uncommitted writes, which the file does not have.
  inbox_.undo_states(live->commits().state_writes());
  // The next instance numbers its writes from the start, and undoes none of these.
  inbox_.queue().forget_state_writes();
  // Otherwise an agent whose handler of STATE_CHANGED changes the state would return after each
  // eviction.
  if (ending.reason == EvictReason::kAdmin)
    (void)inbox_.queue().take_if(
        [](const OwnedEvent& each) { return each.state_chain != nullptr; });
  // Events that come meanwhile wait, as during any eviction.
  BlockingPool* const closers = parts_.services.closers;
  const bool elsewhere =
      closers != nullptr && closers->run([live, done, &loop = parts_.services.loop](bool) {
        loop.post([done, trouble = live->close_database()] { done(trouble); });
      });
  if (!elsewhere) done(live->close_database());
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

// NOLINTNEXTLINE(readability-function-cognitive-complexity): the ways out, one by one
void AgentSlot::gone(const Rest& rest, const std::string& trouble) {
  const ShardServices& services = parts_.services;
  if (!trouble.empty()) {
    services.logger.write_limited(
        LogLevel::kWarn, "agent.close_failed", {key_.agent_class},
        {{"class", key_.agent_class}, {"agent", key_.name}, {"error", trouble}});
  }
  Ending ending = std::move(*life_.as<Ending>());
  if (ending.live && ending.live->commits().kept_at_end() && !rest.destroyed)
    services.files.note_kept(key_, storage::Kept::kOnDevice);
  ending.live.reset();
  StartCounts& starts = *ending.served->starts;
  if (ending.start_failure) {
    starts.count_failure(key_.name);
  } else if (ending.had_started() && !ending.is_tried) {
    starts.count_start();
  }
  starts.count_leave();
  parts_.handles.remove(ending.handle);
  ClassMetrics& figures = services.metrics.of_class(key_.agent_class);
  figures.live_agents.add(-1);
  // Condemned while another thread closed its database.
  const bool awaits_removal = !rest.destroyed && parts_.services.condemned.contains(key_);
  ending.lost_descriptors =
      ending.lost_descriptors && !rest.destroyed && !awaits_removal && !parts_.stopping;
  // Before its place is free: the figures never show more objects than there are places.
  if (ending.served->settings.is_object && !ending.was_only_opened())
    note_object_left(services, key_, ending, rest.destroyed);
  if (ending.lost_descriptors) {
    parts_.admission.left_without_files(*this);
  } else {
    parts_.admission.left(*this);
    if (!ending.start_failure && !ending.was_only_opened()) figures.evicted(ending.reason);
    if (permits_.any()) give_back_permits();
  }
  if (rest.destroyed) {
    inbox_.part_with_known(why_it_ended(EvictReason::kDestroyed));
  } else {
    const bool waits_for_code =
        rest.next_wake.at_ms && durable::is_next_version(*rest.next_wake.at_ms);
    // A visit leaves the moment at which its code is tried.
    if (!(waits_for_code && ending.was_only_opened() && services.alarms.is_scheduled(key_)))
      services.alarms.rest(key_, rest.next_wake, rest.next_look, rest.at_least);
    // The version that the agent waits for may have come.
    if (rest.next_wake.may_wait_for_code() &&
        (ending.reason == EvictReason::kCodeUpdate || ending.has_come_for_work))
      services.alarms.look_at(key_, unix_millis(services.loop.clock().wall_now()));
  }
  life_.enter(Cold{});
  services.logger.write(
      LogLevel::kDebug, "agent.evicted",
      {{"class", key_.agent_class}, {"agent", key_.name}, {"reason", to_string(ending.reason)}});
  inbox_.part_with_unfinished();
  if (awaits_removal) was_condemned();
  // Otherwise its files are still being removed, and removal_is_over() tells the visits.
  if (state() != AgentState::kCondemned) tell_who_waits_for_cold(rest.destroyed);
  go_on_after(std::move(ending), rest.destroyed);
  if (!in_memory()) receive_visits();
  if (awaits_removal) parts_.services.condemned.finish(key_);  // last: it may be over at once
  parts_.look_at_unused(*this);
  parts_.one_left();
}

// The agent is cold: wakes it if it is needed.
void AgentSlot::go_on_after(Ending ending, bool destroyed) {
  if (ending.start_failure) {
    const Error& failure = ending.start_failure->error;
    const std::shared_ptr<StartCounts> version = ending.served->starts;
    ending.served.reset();  // a cold agent keeps no code
    parts_.services.metrics.of_class(key_.agent_class).failed_starts.add();
    write_failure("agent.start_failed", failure, ending.start_failure->call,
                  ending.start_failure->span);
    if (state() == AgentState::kCondemned) return;  // removal_is_over() wakes the agent
    start_failed(version,
                 Error{Errc::kUnavailable,
                       ending.start_failure->is_for_clients || parts_.services.limits.show_failures
                           ? failure.message
                           : "the agent failed to start; the server's log says why"});
    return;
  }
  ending.served.reset();
  if (ending.lost_descriptors) {
    rejoin_room_line();  // with its permit
  } else if (!inbox_.empty() || (ending.wake_again && !destroyed)) {
    wake();
  }
}

void AgentSlot::refuse_waiting(const Error& error, std::uint16_t close_code) {
  leave_room_line();
  inbox_.refuse_all(error, close_code);
  parts_.look_at_unused(*this);
}

void AgentSlot::was_condemned() {
  inbox_.part_with_known(why_it_ended(EvictReason::kDestroyed));
  await_removal();
  parts_.look_at_unused(*this);
}

void AgentSlot::await_removal() {
  if (state() == AgentState::kCondemned) return;
  leave_room_line();
  forget_failed_start();
  life_.enter(Condemned{});
}

void AgentSlot::removal_is_over() {
  if (state() != AgentState::kCondemned) return;
  life_.enter(Cold{});
  tell_who_waits_for_cold(false);
  if (!inbox_.empty()) wake();
  parts_.look_at_unused(*this);
}

void AgentSlot::begin_shutdown() {
  if (!in_memory()) {  // events that wait for the class are refused
    forget_failed_start();
    refuse_waiting(Error{Errc::kClosing, "the server is shutting down"}, kCloseGoingAway);
    return;
  }
  hurry_end();
  const Live* live = life_.as<Live>();
  if (live != nullptr && !settling_ && live->live->in_progress().empty() &&
      !live->live->awaits_durability())
    evict(EvictReason::kShutdown);
}

}  // namespace hearth::runtime
