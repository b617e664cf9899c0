// What administrators do with an agent's data: agent_visit.hpp.
#include "runtime/agent_handles.hpp"
#include "runtime/agent_slot.hpp"
#include "runtime/condemned_agents.hpp"
#include "runtime/shard_services.hpp"

#include <utility>

namespace hearth::runtime {
namespace {

Error visit_refused() {
  return Error{Errc::kUnavailable, "the agent cannot be opened now; try again later"};
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

void AgentSlot::visit(AgentVisit visit) {
  switch (state()) {
    case AgentState::kLive:
      if (!visit.work) break;
      return live()->receive(visit);
    case AgentState::kOpened:
    case AgentState::kWaking:
    case AgentState::kLeaving:
    case AgentState::kEnding: break;
    case AgentState::kCondemned:
      if (!visit.work) return visits_.push_back(std::move(visit));
      return visit.tell(Error{Errc::kNotFound, "the agent was destroyed"});
    case AgentState::kAwaitingRoom:
    case AgentState::kAwaitingVersion:
      if (!visit.work) return visit.tell(std::string());
      return visit.tell(visit_refused());
    case AgentState::kCold:
      if (!visit.work && parts_.services.condemned.contains(key_)) {
        visits_.push_back(std::move(visit));
        return await_removal();
      }
      if (!visit.work) return visit.tell(std::string());
      visits_.push_back(std::move(visit));
      return open_for_visits();
  }
  hurry_end();
  visits_.push_back(std::move(visit));
}

bool AgentSlot::is_only_open() const {
  const Ending* const ending = life_.as<Ending>();
  return state() == AgentState::kOpened || (ending != nullptr && ending->was_only_opened());
}

SteadyTime AgentSlot::now() const {
  return parts_.services.loop.clock().steady_now();
}

std::vector<extensions::Wait> AgentSlot::list_waits() {
  using extensions::WaitKind;
  std::vector<extensions::Wait> all;
  if (is_only_open()) return all;
  Resident* const resident = life_.resident();
  if (resident != nullptr && resident->live) all = resident->live->waits();
  const auto add = [&](WaitKind kind, std::optional<SteadyTime> since, std::string detail = {}) {
    extensions::Wait wait{.kind = kind, .detail = std::move(detail)};
    if (since) wait.since_ms = unix_millis_of(*since, parts_.services.loop.clock());
    all.push_back(std::move(wait));
  };
  switch (state()) {
    case AgentState::kCold:
      if (!inbox_.empty()) add(WaitKind::kNoClass, std::nullopt);
      break;
    case AgentState::kAwaitingRoom: add(WaitKind::kRoom, life_.as<AwaitingRoom>()->since); break;
    case AgentState::kAwaitingVersion: {
      const AwaitingVersion& awaiting = *life_.as<AwaitingVersion>();
      add(WaitKind::kTrial, awaiting.since, awaiting.failure.message);
      break;
    }
    case AgentState::kCondemned: add(WaitKind::kRemoval, std::nullopt); break;
    case AgentState::kWaking: add(WaitKind::kStart, life_.as<Waking>()->since); break;
    case AgentState::kLeaving: {
      const Leaving& leaving = *life_.as<Leaving>();
      add(WaitKind::kEviction, leaving.since, std::string(to_string(leaving.reason)));
      break;
    }
    case AgentState::kEnding: {
      const Ending& ending = *life_.as<Ending>();
      if (ending.pace == Ending::Pace::kUnderWay)
        add(WaitKind::kEviction, std::nullopt, std::string(to_string(ending.reason)));
      break;
    }
    case AgentState::kOpened:
    case AgentState::kLive: break;
  }
  return all;
}

// The agent is live or cold.
void AgentSlot::receive_visits() {
  for (AgentVisit& visit : std::exchange(visits_, {})) this->visit(std::move(visit));
}

void AgentSlot::tell_who_waits_for_cold(bool destroyed) {
  std::erase_if(visits_, [destroyed](AgentVisit& visit) {
    if (!visit.work) {
      visit.tell(std::string());
    } else if (destroyed) {
      visit.tell(Error{Errc::kNotFound, "the agent was destroyed"});
    }
    return visit.is_over;
  });
}

void AgentSlot::open_for_visits() {
  std::vector<AgentVisit> visits = std::exchange(visits_, {});
  if (parts_.stopping || parts_.services.condemned.contains(key_)) {
    for (AgentVisit& visit : visits) visit.tell(visit_refused());
    return parts_.look_at_unused(*this);
  }
  std::shared_ptr<const ServedClass> served = parts_.services.classes.find(segment_);
  if (served == nullptr) {
    served = std::make_shared<const ServedClass>(
        ServedClass{.segment = segment_,
                    .agent_class = std::make_shared<AbsentClass>(key_.agent_class),
                    .settings = parts_.services.classes.last_settings(segment_)});
  }
  ++served->starts->agents;
  parts_.admission.residents().enter(*this);
  parts_.services.metrics.of_class(key_.agent_class).live_agents.add(1);
  Opened& opened = life_.enter(Opened{{served, nullptr, parts_.handles.add(*this)}});
  settling_ = true;  // without an instance there is nothing to settle
  try {
    opened.live = make_live(opened);
    opened.live->open();
    for (AgentVisit& visit : visits) opened.live->receive(visit);
  } catch (const StorageError& failure) {  // agent boundary
    parts_.services.note_storage_failed(key_, failure);
    if (opened.live) opened.live->give_up(failure.what());
    for (AgentVisit& visit : visits) {
      if (!visit.is_over) visit.tell(visit_refused());
    }
  }
  settling_ = false;
  begin_ending(Ending{.reason = EvictReason::kAdmin});
}

}  // namespace hearth::runtime
