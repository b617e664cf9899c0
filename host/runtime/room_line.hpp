#pragma once
// A line of agents that wait for room, in two lanes.

#include "runtime/room_applicant.hpp"

#include <array>
#include <cstddef>

namespace hearth::runtime {

// Agents whose caller waits stand in the first lane, those with work alone in the second: so
// callers never wait behind work, of which a single call can cause any amount. A lane is in the
// order in which its agents first lacked room.
//
// Threads    The shard's.  Lifetime  The agents in it outlive it, or have left it.
class RoomLine {
 public:
  // The agent stands in no line. `is_first`: before those that have lacked room as long as it.
  void join(RoomApplicant& agent, bool is_awaited, bool is_first = false);
  // The agent stands in this line. True: it stood in the lane of work.
  bool leave(RoomApplicant& agent);
  [[nodiscard]] bool contains(const RoomApplicant& agent) const;
  [[nodiscard]] bool is_for_work(const RoomApplicant& agent) const {
    return agent.place().line == &lanes_[1];
  }
  [[nodiscard]] std::size_t size() const { return lanes_[0].size() + lanes_[1].size(); }
  // Null: the lane is empty.
  [[nodiscard]] RoomApplicant* first(std::size_t lane) const {
    return lanes_.at(lane).empty() ? nullptr : lanes_.at(lane).front();
  }

 private:
  std::array<RoomApplicant::Line, 2> lanes_;
};

}  // namespace hearth::runtime
