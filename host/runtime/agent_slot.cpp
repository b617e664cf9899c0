#include "runtime/agent_slot.hpp"

#include "base/assert.hpp"
#include "base/close_codes.hpp"
#include "runtime/condemned_agents.hpp"

#include <optional>
#include <utility>

namespace hearth::runtime {

AgentSlot::AgentSlot(const ShardParts& parts, storage::AgentKey key, std::string segment)
    : place_{parts,
             parts.services,
             std::move(key),
             std::move(segment),
             *this,
             [this] { place_.shard.look_at_unused(*this); },
             AgentInbox(place_.key,
                        {parts.services.connections, parts.services.client_memory,
                         parts.services.limits, parts.services.loop, parts.services.logger},
                        [this] {
                          // Events may have waited behind them.
                          if (life().state() == AgentState::kLive) turns_.after_turn();
                          place_.look_at_unused();
                        })},
      work_(place_,
            [this] {
              const AgentWork::Then then = work_.begin_due();
              if (then == AgentWork::Then::kSettle) turns_.after_turn();
              if (then == AgentWork::Then::kLeaveIfIdle)
                exit_.must_leave(EvictReason::kAdmin, true);
            }),
      exit_(place_, work_, [this](GoneAgent agent) { gone(std::move(agent)); }),
      turns_(place_, visits_, work_, exit_),
      entry_(place_, work_, exit_, turns_) {}

AgentSlot::~AgentSlot() {
  *place_.alive = false;
  HEARTH_ASSERT(!life().in_memory(), "slot destroyed with a live agent");
  HEARTH_ASSERT(!stands_in_line(), "slot destroyed while it waits for room");
}

bool AgentSlot::is_unused() const {
  return !life().in_memory() && inbox().clients().empty() && inbox().empty() && !stands_in_line() &&
         visits_.empty();
}

std::chrono::milliseconds AgentSlot::call_timeout() const {
  const auto served = place_.served();
  if (served && served->settings.call_timeout.count() > 0) return served->settings.call_timeout;
  return place_.services.limits.call_timeout;
}

// ---- events in ----------------------------------------------------------------------------------

void AgentSlot::accept(Event incoming) {
  turns_.touch();
  if (turns_.deliver_now(incoming)) return;
  if (rule_of(incoming.kind).runs_method && !incoming.interruptions.has_due()) {
    const auto served = place_.served();
    if (served && served->call_order().holds_calls())
      incoming.interruptions.due = turns_.last_activity() + call_timeout();
  }
  place_.inbox.push(std::move(incoming));
  exit_.hurry();
  const Live* live = place_.life.as<Live>();
  if (live != nullptr && live->leaves_before_event())
    exit_.leave_now();  // the event meets the other version
  if (!life().in_memory()) {
    entry_.wake();
  } else if (life().state() == AgentState::kLive) {
    turns_.after_turn();  // events of another client may wait for its CONNECT
  }
}

void AgentSlot::connect(ConnectionId id) {
  place_.inbox.add(id);
  Event incoming;
  incoming.kind = EventKind::kConnect;
  incoming.connection = id;
  accept(std::move(incoming));
}

void AgentSlot::disconnected(ConnectionId id, std::uint16_t code, std::string_view reason,
                             bool was_clean) {
  Connection* client = place_.services.connections.find(id);
  const bool known =
      client->state == ConnectionState::kConnecting || client->state == ConnectionState::kOpen;
  client->state = ConnectionState::kClosed;
  if (LiveAgent* agent = place_.life.live()) agent->calls().forget_connection(id);
  if (!known || place_.shard.stopping) {
    (void)place_.inbox.queue().take_if(
        [id](const OwnedEvent& event) { return event.connection == id; });
    place_.forget(id);
    return;
  }
  Event incoming;
  incoming.kind = EventKind::kClose;
  incoming.connection = id;
  incoming.origin = client->origin;
  incoming.name = reason;
  incoming.flags = code | (was_clean ? 0x10000U : 0U);  // HEARTH_CLOSE_WAS_CLEAN
  accept(std::move(incoming));
}

void AgentSlot::be_awake() {
  turns_.touch();
  exit_.hurry();
  if (!life().in_memory()) entry_.wake();
}

void AgentSlot::come_for_work() {
  work_.look();
  exit_.hurry_for_work();
}

// ---- administrators -----------------------------------------------------------------------------

void AgentSlot::visit(AgentVisit visit) {
  const bool is_condemned = place_.services.condemned.contains(place_.key);
  switch (visit_step(place_.life.state(), bool(visit.work), is_condemned)) {
    case VisitStep::kReceive: return place_.life.live()->receive(visit);
    case VisitStep::kTellCold: return visit.tell(std::string());
    case VisitStep::kRefuse: return visit.tell(visit_refused());
    case VisitStep::kNotFound: return visit.tell(visit_of_destroyed());
    case VisitStep::kWait: visits_.push(std::move(visit)); return exit_.hurry();
    case VisitStep::kAwaitRemoval: visits_.push(std::move(visit)); return entry_.await_removal();
    case VisitStep::kOpen: visits_.push(std::move(visit)); return entry_.open(visits_.take());
  }
}

std::vector<extensions::Wait> AgentSlot::list_waits() const {
  using extensions::WaitKind;
  std::vector<extensions::Wait> all;
  if (life().is_only_open()) return all;
  if (LiveAgent* const agent = life().live()) all = agent->waits();
  const auto add = [&](WaitKind kind, std::optional<SteadyTime> since, std::string detail = {}) {
    extensions::Wait wait{.kind = kind, .detail = std::move(detail)};
    if (since) wait.since_ms = unix_millis_of(*since, place_.services.loop.clock());
    all.push_back(std::move(wait));
  };
  if (life().as<Cold>() != nullptr && !inbox().empty()) add(WaitKind::kNoClass, std::nullopt);
  if (const auto* line = life().as<AwaitingRoom>()) add(WaitKind::kRoom, line->since);
  if (const auto* trial = life().as<AwaitingVersion>())
    add(WaitKind::kTrial, trial->since, trial->failure.message);
  if (life().as<Condemned>() != nullptr) add(WaitKind::kRemoval, std::nullopt);
  if (const auto* start = life().as<Waking>()) add(WaitKind::kStart, start->since);
  if (const auto* eviction = life().as<Leaving>())
    add(WaitKind::kEviction, eviction->since, std::string(to_string(eviction->reason)));
  const auto* const ending = life().as<Ending>();
  if (ending != nullptr && ending->pace == Ending::Pace::kUnderWay)
    add(WaitKind::kEviction, std::nullopt, std::string(to_string(ending->reason)));
  return all;
}

// ---- the way out --------------------------------------------------------------------------------

void AgentSlot::gone(GoneAgent gone) {
  const bool awaits_removal = gone.awaits_removal;
  if (awaits_removal) was_condemned();
  // Otherwise its files are still being removed, and removal_is_over() tells the visits.
  if (life().state() != AgentState::kCondemned) visits_.became_cold(gone.destroyed);
  entry_.go_on_after(std::move(gone));
  if (!life().in_memory()) {
    for (AgentVisit& waiting : visits_.take()) visit(std::move(waiting));
  }
  if (awaits_removal) place_.services.condemned.finish(key());  // last: it may be over at once
  place_.look_at_unused();
  place_.shard.one_left();
}

void AgentSlot::was_condemned() {
  place_.inbox.part_with_known(why_it_ended(EvictReason::kDestroyed));
  entry_.await_removal();
  place_.look_at_unused();
}

void AgentSlot::removal_is_over() {
  if (life().state() != AgentState::kCondemned) return;
  place_.life.enter(Cold{});
  visits_.became_cold(false);
  if (!inbox().empty()) entry_.wake();
  place_.look_at_unused();
}

void AgentSlot::begin_shutdown() {
  if (!life().in_memory()) return entry_.refuse_for_shutdown();
  exit_.hurry();
  const Live* live = place_.life.as<Live>();
  if (live != nullptr && !live->settling && live->live->calls().empty() &&
      !live->live->store().awaits_durability())
    exit_.evict(EvictReason::kShutdown);
}

bool AgentSlot::may_leave_for_room() const {
  // An agent that was just woken for its work is about to do it.
  const Live* live = life().as<Live>();
  if (live != nullptr) return inbox().empty() && live->live->idle() && !work_.permits().waking;
  const Ending* const ending = life().as<Ending>();
  return ending != nullptr && ending->pace == Ending::Pace::kWaitsForTurn;
}

void AgentSlot::leave_for_room() {
  exit_.evict(EvictReason::kLimit, std::chrono::milliseconds(0));
  exit_.hurry();
}

}  // namespace hearth::runtime
