#include "runtime/room_line.hpp"

#include "base/assert.hpp"

#include <iterator>

namespace hearth::runtime {

void RoomLine::join(RoomApplicant& agent, bool is_awaited, bool is_first) {
  RoomApplicant::Place& place = agent.place();
  RoomApplicant::Line& lane = lanes_[is_awaited ? 0 : 1];
  auto before = is_first ? lane.begin() : lane.end();
  while (before != lane.begin() && (*std::prev(before))->place().lacks_since > place.lacks_since)
    --before;
  place.waiting = lane.insert(before, &agent);
  place.line = &lane;
}

bool RoomLine::leave(RoomApplicant& agent) {
  RoomApplicant::Place& place = agent.place();
  HEARTH_ASSERT(place.waiting, "an agent leaves a line in which it does not stand");
  place.line->erase(*place.waiting);
  place.waiting.reset();
  return is_for_work(agent);
}

bool RoomLine::contains(const RoomApplicant& agent) const {
  const RoomApplicant::Place& place = agent.place();
  return place.waiting && (place.line == &lanes_[0] || place.line == &lanes_[1]);
}

}  // namespace hearth::runtime
