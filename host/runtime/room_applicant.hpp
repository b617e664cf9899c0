#pragma once
// An agent, as Admission sees it.

#include "base/clock.hpp"

#include <functional>
#include <list>
#include <optional>

namespace hearth::runtime {

// What keeps a cold agent from coming in.
enum class RoomLack { kNothing, kAgents, kObjects, kFiles };

// Only Admission::ask() calls its members from inside a call by the agent.
class RoomApplicant {
 public:
  using Line = std::list<RoomApplicant*>;

  // Where the agent stands: hooks as in an intrusive list, so that coming, going and use need no
  // search. Only Admission and its parts write it.
  struct Place {
    std::optional<Line::iterator> resident;  // in the order of use
    std::optional<Line::iterator> waiting;   // in its line
    Line* line = nullptr;                    // while it waits: its lane
    SteadyTime used_at{};                    // of a resident
    std::optional<SteadyTime> lacks_since;   // until the agent leaves, or is refused
    bool has_room = false;                   // found for the agent, which comes in now
    bool has_object_place = false;           // of an object, from its turn until it has left
    bool was_sent_away = false;              // for another agent, until it has left
    std::function<void()> heir;              // gets the place once the object has left
  };

  // What an agent needs that wants to come in.
  struct Need {
    bool is_object = false;  // it needs a place among objects
    bool is_awaited = true;  // a caller waits for it
    bool is_wanted = true;   // some event or visit still waits for it, or work of its own
  };

  enum class Answer { kComeIn, kWait, kRefused };
  struct Verdict {
    Answer answer = Answer::kComeIn;
    RoomLack lack = RoomLack::kNothing;
  };

  RoomApplicant() = default;
  RoomApplicant(const RoomApplicant&) = delete;
  RoomApplicant& operator=(const RoomApplicant&) = delete;

  [[nodiscard]] bool is_resident() const { return place_.resident.has_value(); }
  // The agent stands in a line.
  [[nodiscard]] bool stands_in_line() const { return place_.waiting.has_value(); }
  // For Admission.
  [[nodiscard]] Place& place() { return place_; }
  [[nodiscard]] const Place& place() const { return place_; }

  // Of an agent that wants to come in, or stands in a line.
  [[nodiscard]] virtual Need need() const = 0;
  // Of a resident: it is idle, or leaves for being idle, and may leave for another agent.
  [[nodiscard]] virtual bool may_leave_for_room() const = 0;
  // The agent leaves soon, from the loop.
  virtual void leave_for_room() = 0;
  // The agent was first in the line. kComeIn: there is room, and it becomes a resident or gives
  // up. kRefused: it has waited too long or is not wanted (kNothing), and leaves the line.
  virtual void take_turn(const Verdict& verdict) = 0;

 protected:
  ~RoomApplicant() = default;

 private:
  Place place_;
};

}  // namespace hearth::runtime
