#include "runtime/agent_entry.hpp"

#include "base/assert.hpp"
#include "base/close_codes.hpp"
#include "runtime/agent_handles.hpp"
#include "runtime/condemned_agents.hpp"

#include <string>
#include <utility>

namespace hearth::runtime {
namespace {

// How long until the next look at an agent that should be awake and cannot be.
constexpr std::chrono::milliseconds kClassMissingRetry{60'000};

constexpr std::chrono::milliseconds kNextTry{1'000};  // there was no room

constexpr const char* kClassMissing = "the class is not loaded";

// A retry does not help: an operator has to look.
Error visit_failed() {
  return Error{Errc::kUnavailable,
               "the agent's file cannot be opened: agent.storage_failed in the log says why"};
}

// Replaces a class whose library is not loaded: visits need none of its code.
class AbsentClass final : public AgentClass {
 public:
  explicit AbsentClass(std::string name) : name_(std::move(name)) {}

  [[nodiscard]] std::string_view name() const override { return name_; }
  [[nodiscard]] std::string_view version() const override { return {}; }
  [[nodiscard]] std::string_view origin() const override { return {}; }
  [[nodiscard]] bool checks_state() const override { return false; }
  [[nodiscard]] bool watches_state() const override { return false; }
  Result<std::unique_ptr<AgentInstance>> create(extensions::AgentContext& /*host*/,
                                                std::string_view /*name*/,
                                                std::string_view /*options*/) const override {
    return visit_refused();
  }
  [[nodiscard]] bool runs_jobs() const override { return false; }
  Result<void> run_offloaded(std::uint64_t /*job*/, bool /*cancelled*/,
                             const OffloadOrigin& /*origin*/) const override {
    return visit_refused();
  }

 private:
  const std::string name_;
};

}  // namespace

void AgentEntry::wake() {
  HEARTH_ASSERT(!place_.life.in_memory(), "wake() of an agent that is in memory");
  if (place_.shard.stopping) return refuse_for_shutdown();
  if (place_.life.state() == AgentState::kCondemned ||
      place_.services.condemned.is_under_way(place_.key))
    return await_removal();
  // Files that could not be removed must not come back.
  if (place_.services.condemned.contains(place_.key))
    return refuse_for_now("the agent is being destroyed; try again later");
  std::shared_ptr<const ServedClass> served = place_.services.classes.find(place_.segment);
  if (!served || !served->refusal.empty() || awaits_decision(*served))
    place_.services.alarms.look_again(place_.key, kClassMissingRetry);
  if (!served) {
    if (!place_.services.classes.is_awaited(place_.segment)) return refuse_for_now(kClassMissing);
    // Events of the agent's own clients wait with their clients, CLOSE included.
    leave_room_line();
    place_.inbox.refuse_strangers(Error{Errc::kUnavailable, kClassMissing}, kCloseTryAgainLater);
    return place_.look_at_unused();
  }
  if (!served->refusal.empty()) return refuse_for_now(served->refusal);
  if (awaits_decision(*served)) return;
  forget_failed_start();
  if (!lacks_room()) make_instance(std::move(served));
}

template <class State>
State& AgentEntry::enter(std::shared_ptr<const ServedClass> served) {
  ++served->starts->agents;
  place_.shard.admission.residents().enter(place_.applicant);
  place_.services.metrics.of_class(place_.key.agent_class).live_agents.add(1);
  // Its results are settled once it has begun.
  return place_.life.enter(State{{.served = std::move(served),
                                  .handle = place_.shard.handles.add(place_.life),
                                  .settling = true}});
}

void AgentEntry::make_instance(std::shared_ptr<const ServedClass> served) {
  const ShardServices& services = place_.services;
  const bool is_object = served->settings.is_object;
  Waking& waking = enter<Waking>(std::move(served));
  waking.since = place_.now();
  const extensions::Span span = place_.services.spans.root();
  waking.span = span;
  if (is_object) services.metrics.of_class(place_.key.agent_class).object_came();
  Result<void> starting;
  Ending how{.reason = EvictReason::kAdmin};
  try {
    waking.live = make_live(waking);
    starting = waking.live->start(span);
  } catch (const OutOfDescriptors& failure) {  // agent boundary
    // Another taker got the descriptors that lacks_room() had found. This is no failure of the
    // agent, which waits for others.
    services.logger.write(LogLevel::kDebug, "agent.lost_descriptors",
                          {{"class", place_.key.agent_class},
                           {"agent", place_.key.name},
                           {"error", std::string_view(failure.what())}});
    if (waking.live) waking.live->store().give_up(failure.what());
    how.lost_descriptors = true;
  } catch (const StorageError& failure) {  // agent boundary
    services.note_storage_failed(place_.key, failure, span);
    if (waking.live) waking.live->store().give_up(failure.what());
    starting = Error{Errc::kInternal, "the agent's storage cannot be opened"};
  }
  waking.settling = false;
  if (starting.has_error()) {
    const bool is_for_clients = waking.live && waking.live->check_schema().has_error();
    how.start_failure = Ending::StartFailure{
        .error = starting.error(), .is_for_clients = is_for_clients, .span = span};
  }
  if (how.lost_descriptors || how.start_failure) {
    exit_.begin(std::move(how));
  } else {
    turns_.after_turn();
  }
}

std::unique_ptr<LiveAgent> AgentEntry::make_live(const Resident& resident) {
  const ServedClass& served = *resident.served;
  const LiveAgent::Parts parts{place_.key,
                               place_.segment,
                               place_.services,
                               place_.inbox,
                               [this] { turns_.after_turn(); },
                               [this] { work_.look(); }};
  return std::make_unique<LiveAgent>(parts, served.agent_class, served.settings, resident.handle);
}

void AgentEntry::open(std::vector<AgentVisit> visits) {
  if (place_.shard.stopping || place_.services.condemned.contains(place_.key)) {
    for (AgentVisit& visit : visits) visit.tell(visit_refused());
    return place_.look_at_unused();
  }
  std::shared_ptr<const ServedClass> served = place_.services.classes.find(place_.segment);
  if (served == nullptr) {
    served = std::make_shared<const ServedClass>(
        ServedClass{.segment = place_.segment,
                    .agent_class = std::make_shared<AbsentClass>(place_.key.agent_class),
                    .settings = place_.services.classes.last_settings(place_.segment)});
  }
  Opened& opened = enter<Opened>(std::move(served));
  try {
    opened.live = make_live(opened);
    opened.live->store().load(false);
    for (AgentVisit& visit : visits) opened.live->receive(visit);
  } catch (const StorageError& failure) {  // agent boundary
    place_.services.note_storage_failed(place_.key, failure);
    if (opened.live) opened.live->store().give_up(failure.what());
    for (AgentVisit& visit : visits) {
      if (!visit.is_over) visit.tell(visit_failed());
    }
  }
  opened.settling = false;
  exit_.end(EvictReason::kAdmin);
}

// ---- the agent is cold ----

void AgentEntry::go_on_after(GoneAgent gone) {
  Ending& ending = gone.how;
  const std::shared_ptr<StartCounts> version = ending.served->starts;
  ending.served.reset();  // a cold agent keeps no code
  if (ending.start_failure) {
    const auto& [failure, is_for_clients, call, span] = *ending.start_failure;
    place_.services.metrics.of_class(place_.key.agent_class).failed_starts.add();
    place_.services.write_failure("agent.start_failed", place_.key, failure, call, span);
    if (place_.life.state() == AgentState::kCondemned) return;  // the end of the removal wakes it
    start_failed(version, Error{Errc::kUnavailable,
                                is_for_clients || place_.services.limits.show_failures
                                    ? failure.message
                                    : "the agent failed to start; the server's log says why"});
  } else if (ending.lost_descriptors) {
    rejoin_room_line();  // with its permit
  } else if (!place_.inbox.empty() || (ending.wake_again && !gone.destroyed)) {
    wake();
  }
}

void AgentEntry::refuse_waiting(const Error& error, std::uint16_t close_code) {
  leave_room_line();
  place_.inbox.refuse_all(error, close_code);
  place_.look_at_unused();
}

void AgentEntry::await_removal() {
  if (place_.life.state() == AgentState::kCondemned) return;
  leave_room_line();
  forget_failed_start();
  place_.life.enter(Condemned{});
}

void AgentEntry::refuse_for_now(std::string why) {
  refuse_waiting(Error{Errc::kUnavailable, std::move(why)}, kCloseTryAgainLater);
}

void AgentEntry::refuse_for_shutdown() {
  forget_failed_start();
  refuse_waiting(Error{Errc::kClosing, "the server is shutting down"}, kCloseGoingAway);
}

void AgentEntry::wake_for_work(PermitKind kind) {
  const AgentState before = place_.life.state();
  if (before == AgentState::kAwaitingRoom) return;  // it looks for due work once it is awake
  if (before == AgentState::kCondemned) return;     // its work is removed with its files
  const ShardServices& services = place_.services;
  work_.take(kind);
  services.metrics.woken_by_alarm.add();
  services.durable_events.report(extensions::DurableEvent::kAlarmWoken,
                                 {.agent_class = place_.key.agent_class, .agent = place_.key.name},
                                 "", "");
  wake();
  if (!place_.life.in_memory() && place_.life.state() != AgentState::kAwaitingRoom)
    work_.give_back();  // it was refused
}

// ---- room ----

bool AgentEntry::lacks_room() {
  const Admission::Verdict verdict = place_.shard.admission.ask(place_.applicant);
  if (verdict.answer == Admission::Answer::kComeIn) return false;
  if (verdict.answer == Admission::Answer::kRefused) {
    refuse_for_room(verdict.lack);
  } else if (place_.life.state() != AgentState::kAwaitingRoom) {
    place_.life.enter(AwaitingRoom{place_.inbox.empty(), place_.now()});
  }
  return true;
}

void AgentEntry::rejoin_room_line() {
  if (place_.shard.admission.ask_again(place_.applicant)) {
    place_.life.enter(AwaitingRoom{place_.inbox.empty(), place_.now()});
    return;
  }
  refuse_for_room(RoomLack::kFiles);
  work_.give_back();
}

void AgentEntry::leave_room_line() {
  if (place_.life.state() == AgentState::kAwaitingRoom) place_.life.enter(Cold{});
  if (!place_.shard.admission.drop_out(place_.applicant)) return;
  place_.services.alarms.look_again(place_.key, kNextTry);
  work_.give_back();
}

Admission::Need AgentEntry::need() const {
  const auto served = place_.services.classes.find(place_.segment);
  const AwaitingRoom* const waits = place_.life.as<AwaitingRoom>();
  // The sender of a notification repeats it, and does not wait.
  const auto awaits_it = [](const OwnedEvent& event) {
    return event.origin == nullptr || event.origin->notification.empty();
  };
  return {.is_object = served != nullptr && served->settings.is_object,
          .is_awaited = place_.inbox.queue().contains(awaits_it),
          .is_wanted = !place_.inbox.empty() || (waits != nullptr && waits->for_itself)};
}

void AgentEntry::take_turn(const Admission::Verdict& verdict) {
  if (verdict.answer == Admission::Answer::kComeIn) {
    wake();
    if (!place_.life.in_memory()) work_.give_back();  // it was refused
  } else if (verdict.lack != RoomLack::kNothing) {
    refuse_for_room(verdict.lack);
  } else {
    leave_room_line();  // no event or visit waits for the agent any more
    place_.look_at_unused();
  }
}

void AgentEntry::refuse_for_room(RoomLack lack) {
  const ShardServices& services = place_.services;
  const bool has_files = lack != RoomLack::kFiles;
  const char* const why = lack == RoomLack::kAgents ? "too many agents are busy; try again later"
                          : lack == RoomLack::kObjects
                              ? "too many objects are active; try again later"
                              : "too many files are open; try again later";
  if (work_.permits().any()) {  // other agents whose time has come would find no room either
    services.alarms.no_room_until(services.loop.clock().steady_now() + kNextTry);
    services.durable_events.report(
        extensions::DurableEvent::kAlarmNoRoom,
        {.agent_class = place_.key.agent_class, .agent = place_.key.name}, "",
        has_files ? "" : "too many files are open");
  }
  if (!has_files) {
    services.logger.write_limited(LogLevel::kWarn, "agent.no_descriptors", {place_.key.agent_class},
                                  {{"class", place_.key.agent_class},
                                   {"agent", place_.key.name},
                                   {"advice", "raise the limit of open files (LimitNOFILE)"}});
  }
  services.alarms.look_again(place_.key, kNextTry);
  refuse_for_now(why);
}

// ---- a version on trial, and a class that is not served ----

void AgentEntry::start_failed(const std::shared_ptr<StartCounts>& version, Error failure) {
  // The order of these reads matters: a rollback first puts the other version, then decides, then
  // tells the shards.
  const SteadyTime until = version->undecided_until;
  if (place_.shard.stopping || place_.now() >= until) return answer_failure(*version, failure);
  place_.life.enter(AwaitingVersion{
      version, std::move(failure),
      LoopTimer(place_.services.loop, until, [this] { trial_is_over(); }), place_.now()});
}

void AgentEntry::answer_failure(const StartCounts& version, const Error& failure) {
  const auto served = place_.services.classes.find(place_.segment);
  if (place_.shard.stopping || (served && served->starts.get() == &version)) {
    refuse_waiting(failure, kCloseInternalError);
  } else if (!place_.inbox.empty()) {
    wake();
  }
}

bool AgentEntry::awaits_decision(const ServedClass& version) const {
  const AwaitingVersion* awaiting = place_.life.as<AwaitingVersion>();
  return awaiting != nullptr && awaiting->version == version.starts &&
         place_.now() < version.starts->undecided_until.load();
}

void AgentEntry::forget_failed_start() {
  if (place_.life.state() == AgentState::kAwaitingVersion) place_.life.enter(Cold{});
}

void AgentEntry::trial_is_over() {
  AwaitingVersion* const awaiting = place_.life.as<AwaitingVersion>();
  if (awaiting == nullptr) return;
  const auto served = place_.services.classes.find(place_.segment);
  if (served && awaits_decision(*served)) return;  // this was the end of another trial
  const AwaitingVersion failed = std::move(*awaiting);
  forget_failed_start();
  answer_failure(*failed.version, failed.failure);
}

// ---- a class that is not served ----

void AgentEntry::class_is_back() {
  if (place_.life.state() == AgentState::kAwaitingVersion) {
    trial_is_over();
  } else if (!place_.life.in_memory() && !place_.inbox.empty()) {
    wake();
  }
}

void AgentEntry::class_is_gone() {
  if (place_.life.in_memory()) return;
  forget_failed_start();
  refuse_waiting(Error{Errc::kUnavailable, kClassMissing}, kCloseServiceRestart);
  place_.inbox.end_clients(kCloseServiceRestart, kClassMissing);
}

}  // namespace hearth::runtime
