#include "runtime/residents.hpp"

#include "base/assert.hpp"

#include <utility>

namespace hearth::runtime {

void Residents::enter(RoomApplicant& agent) {
  HEARTH_ASSERT(!agent.is_resident(), "an agent comes in twice");
  agent.place().resident = line_.insert(line_.end(), &agent);
}

void Residents::used(RoomApplicant& agent, SteadyTime now) {
  RoomApplicant::Place& place = agent.place();
  HEARTH_ASSERT(place.resident, "an agent is used that did not come in");
  place.used_at = now;
  line_.splice(line_.end(), line_, *place.resident);
}

void Residents::left(RoomApplicant& agent) {
  RoomApplicant::Place& place = agent.place();
  HEARTH_ASSERT(place.resident, "an agent leaves that did not come in");
  line_.erase(*place.resident);
  place.resident.reset();
  if (std::exchange(place.was_sent_away, false)) --sent_away_;
  --leaving_;
  --ending_;
}

void Residents::may_be_idle(const RoomApplicant& agent) {
  if (none_idle_until_ == SteadyTime{} && no_object_idle_until_ == SteadyTime{}) return;
  if (!agent.may_leave_for_room()) return;
  none_idle_until_ = {};
  if (agent.place().has_object_place) no_object_idle_until_ = {};
}

// Objects in use keep their places in the order of use.
RoomApplicant* Residents::idle_object(SteadyTime now) {
  if (now < no_object_idle_until_) return nullptr;
  for (RoomApplicant* const agent : line_) {
    if (agent->place().has_object_place && agent->may_leave_for_room()) return agent;
  }
  no_object_idle_until_ = now + kNoneIdleFor;
  return nullptr;
}

void Residents::send_away(RoomApplicant& agent) {
  if (!std::exchange(agent.place().was_sent_away, true)) ++sent_away_;
  agent.leave_for_room();
}

// Looks at all residents, but only if some may have become idle.
bool Residents::send_idle_away(SteadyTime now) {
  if (now < none_idle_until_) return false;
  for (std::size_t left = line_.size(); left > 0; --left) {
    RoomApplicant* const agent = line_.front();
    if (agent->may_leave_for_room()) {
      send_away(*agent);
      return true;
    }
    line_.splice(line_.end(), line_, line_.begin());  // it is in use
  }
  none_idle_until_ = now + kNoneIdleFor;
  return false;
}

}  // namespace hearth::runtime
