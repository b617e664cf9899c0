#include "runtime/agent_visits.hpp"

namespace hearth::runtime {

Error visit_refused() {
  return Error{Errc::kUnavailable, "the agent cannot be opened now; try again later"};
}

Error visit_of_destroyed() {
  return Error{Errc::kNotFound, "the agent was destroyed"};
}

VisitStep visit_step(AgentState state, bool has_work, bool is_condemned) {
  switch (state) {
    case AgentState::kLive: return has_work ? VisitStep::kReceive : VisitStep::kWait;
    case AgentState::kOpened:
    case AgentState::kWaking:
    case AgentState::kLeaving:
    case AgentState::kEnding: return VisitStep::kWait;
    case AgentState::kCondemned: return has_work ? VisitStep::kNotFound : VisitStep::kWait;
    case AgentState::kAwaitingRoom:
    case AgentState::kAwaitingVersion: return has_work ? VisitStep::kRefuse : VisitStep::kTellCold;
    case AgentState::kCold: break;
  }
  if (has_work) return VisitStep::kOpen;
  return is_condemned ? VisitStep::kAwaitRemoval : VisitStep::kTellCold;
}

void AgentVisits::go_to(LiveAgent& live) {
  for (AgentVisit& visit : take()) {
    if (!visit.work) {
      push(std::move(visit));
    } else {
      live.receive(visit);
    }
  }
}

void AgentVisits::became_cold(bool destroyed) {
  std::erase_if(waiting_, [destroyed](AgentVisit& visit) {
    if (!visit.work) {
      visit.tell(std::string());
    } else if (destroyed) {
      visit.tell(visit_of_destroyed());
    }
    return visit.is_over;
  });
}

}  // namespace hearth::runtime
