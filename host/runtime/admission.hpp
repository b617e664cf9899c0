#pragma once
// Room for agents on one shard: how many are in memory, and file descriptors for one more.

#include "base/assert.hpp"
#include "runtime/object_places.hpp"
#include "runtime/shard_loop.hpp"

#include <array>
#include <chrono>
#include <cstddef>
#include <functional>
#include <list>
#include <optional>
#include <utility>

namespace hearth::runtime {

// What keeps a cold agent from coming in.
enum class RoomLack { kNothing, kAgents, kObjects, kFiles };

// Agents in memory are residents, kept in the order of their last use. A cold agent asks before it
// comes in. If there is no room, idle residents are asked to leave, and the agent waits in line
// until they have left. An object first waits for its place, in a line of its own. Each line has
// two lanes: for agents whose caller waits, and for those that only have work of their own to do or
// a notification to receive.
//
// Promises
//  P1 Bounded    At most max_live agents are residents, and none comes in while the process has
//                hardly a descriptor left.
//  P2 In turn    An agent that asks while others wait for room stands behind those of its lane, and
//                only the first of each lane is looked at: the lanes take turns.
//  P3 Leaving    The least recently used idle resident leaves; for an object without a place, the
//                least recently used idle object of all shards.
//  P4 An end     An agent waits at most kLongestWait, and is then refused.
//
// P1: A resident that leaves counts until it has left. An object comes in with a place
// (object_places.hpp). The remaining descriptors are for clients' sockets.
//
// P2: So callers wait for each other, and never behind work, of which a single call can cause any
// amount. An object also stands behind objects that wait for a place, and behind an object that
// waits for room with its place. So this shard holds at most one unused place. Agents that need no
// place do not wait for objects. The first of a lane is looked at every few milliseconds, and
// whenever a resident has left.
//
// P3: If no object is idle, the object is refused, and for a moment other objects are refused too.
//
// P4: An agent waits for room only while some resident is leaving. An object waits for a place only
// while a place is free, an object of any shard is leaving, or the shards are being asked.
// Otherwise it is refused at once.
//
// Threads    The shard's.
// Lifetime   The loop, the places, and all agents that are residents or wait outlive it, until
//            stop().
class Admission final : public ObjectPlaces::Member {
 public:
  static constexpr std::chrono::milliseconds kLongestWait{5'000};

  enum class Answer { kComeIn, kWait, kRefused };
  struct Verdict {
    Answer answer = Answer::kComeIn;
    RoomLack lack = RoomLack::kNothing;
  };

  class Applicant;
  using Line = std::list<Applicant*>;

  // Where an agent stands: hooks as in an intrusive list, so that coming, going and use need no
  // search. It is a member of the agent, and only Admission writes it.
  struct Place {
    std::optional<Line::iterator> resident;  // in the order of use
    std::optional<Line::iterator> waiting;   // in its line
    Line* line = nullptr;                    // while it waits: its lane
    SteadyTime used_at{};                    // of a resident
    std::optional<SteadyTime> lacks_since;   // until the agent leaves, or is refused
    bool has_room = false;                   // found for the agent, which comes in now
    bool has_object_place = false;           // of an object, from its turn until it has left
    bool waits_with_place = false;           // an object that waits for room and has its place
    bool was_sent_away = false;              // for another agent, until it has left
    std::function<void()> heir;              // gets the place once the object has left
  };

  // What an agent needs that wants to come in.
  struct Need {
    bool is_object = false;  // it needs a place among objects
    bool is_awaited = true;  // a caller waits for it
    bool is_wanted = true;   // some event or visit still waits for it, or work of its own
  };

  // An agent, as Admission sees it. Only ask() calls its members from inside a call by the agent.
  class Applicant {
   public:
    Applicant() = default;
    Applicant(const Applicant&) = delete;
    Applicant& operator=(const Applicant&) = delete;

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
    ~Applicant() = default;

   private:
    Place place_;
  };

  // `has_files`: whether `count` more descriptors are available.
  Admission(ShardLoop& loop, std::size_t max_live, ObjectPlaces& places,
            std::function<bool(unsigned count)> has_files);

  // ---- a cold agent ----
  // The agent wants to come in. kWait: it stands in the line, now or already; a caller may have
  // come to it since.
  Verdict ask(Applicant& agent);
  // The agent had its turn, and another taker got the descriptors (left_without_files()): it is
  // first in line again. An object that finds no place then waits behind others. False: the agent
  // has waited too long since its first ask().
  [[nodiscard]] bool ask_again(Applicant& agent);
  // The agent stops waiting, for any reason. True if it stood in the line.
  bool drop_out(Applicant& agent);

  // ---- residents ----
  // The agent comes in: after ask() allowed it, or for a moment in which it runs no code. In the
  // second case it does not count as an object.
  void enter(Applicant& agent);
  void used(Applicant& agent, SteadyTime now) {
    Place& place = agent.place();
    HEARTH_ASSERT(place.resident.has_value(), "an agent is used that did not come in");
    place.used_at = now;
    residents_.splice(residents_.end(), residents_, *place.resident);
  }
  // The agent begins to leave; its end is certain, and soon; it has left. Each once, in this order.
  void leaving(const Applicant& agent) {
    ++leaving_;
    if (agent.place().has_object_place) places_.leaving();
  }
  void ending() { ++ending_; }
  void left(Applicant& agent);
  // The agent has left because another taker got its descriptors: its wait for room goes on.
  void left_without_files(Applicant& agent);
  // The agent may have become idle.
  void may_be_idle(const Applicant& agent) {
    if (none_idle_until_ != SteadyTime{} && agent.may_leave_for_room()) none_idle_until_ = {};
    const bool looks_away =
        no_object_idle_until_ != SteadyTime{} || none_idle_anywhere_until_ != SteadyTime{};
    if (agent.place().has_object_place && looks_away && agent.may_leave_for_room())
      no_object_idle_until_ = none_idle_anywhere_until_ = {};
  }
  // Work of this shard or another waits (ObjectPlaces).
  void work_waits() { places_.work_waits(); }
  void work_goes_on() { places_.work_goes_on(); }
  [[nodiscard]] bool is_crowded() const { return places_.is_crowded(); }
  // Least recently used first.
  [[nodiscard]] const Line& residents() const { return residents_; }

  // ---- ObjectPlaces::Member ----
  [[nodiscard]] std::optional<SteadyTime> object_idle_since() override;
  [[nodiscard]] bool spare_object(std::function<void()> left) override;

  // Stops looking at the lines.
  void stop() { loop_.cancel_timer(std::exchange(timer_, 0)); }

 private:
  // The lanes of a line. An agent whose caller waits stands in the first.
  using Lanes = std::array<Line, 2>;

  RoomLack find_room(Applicant& agent, const Need& need);
  // Idle residents leave for agents that wait.
  void make_room();
  bool evict_idle();
  void send_away(Applicant& agent);
  // True: the agent has a place. False: there is none, or the shards are asked for one.
  bool find_object_place(Applicant& agent);
  void ask_for_places();
  void places_answered(ObjectPlaces::Answer answer);
  void give_back_place(Applicant& agent);
  [[nodiscard]] Applicant* idle_object();
  // The room or place may become free without a new request.
  [[nodiscard]] bool may_come(RoomLack lack) const;
  void serve();
  // True: the first of the lane has had its turn.
  bool serve_first(Line& lane);
  [[nodiscard]] static std::size_t size(const Lanes& lanes) {
    return lanes[0].size() + lanes[1].size();
  }
  [[nodiscard]] static bool is_in(const Lanes& lanes, const Place& place);
  [[nodiscard]] Lanes& lanes_for(RoomLack lack) {
    return lack == RoomLack::kObjects ? object_lanes_ : lanes_;
  }
  // False: the agent does not stand in a line.
  bool leave_line(Applicant& agent);
  void serve_in(std::chrono::milliseconds wait);
  void join(Lanes& lanes, Applicant& agent, bool is_awaited, bool is_first = false);
  void note_place(Applicant& agent);

  ShardLoop& loop_;
  const std::size_t max_live_;
  ObjectPlaces& places_;
  const std::function<bool(unsigned)> has_files_;
  Line residents_;
  Lanes lanes_;                            // for room
  Lanes object_lanes_;                     // for a place; objects move to lanes_ with it
  std::size_t turn_ = 0;                   // the lane that is served first
  TimerId timer_ = 0;                      // runs while some agent waits
  std::size_t leaving_ = 0;                // residents that are leaving
  std::size_t ending_ = 0;                 // of those: the end is certain
  std::size_t sent_away_ = 0;              // residents that leave for other agents
  std::size_t asked_ = 0;                  // places for which the shards are asked
  bool has_place_ = false;                 // for the first object, now
  std::size_t places_in_line_ = 0;         // of objects in lanes_: one or none
  SteadyTime none_idle_until_{};           // no resident was idle, and none has reported idle since
  SteadyTime no_object_idle_until_{};      // the same for objects
  SteadyTime none_idle_anywhere_until_{};  // the same for objects of all shards, as they answered
};

}  // namespace hearth::runtime
