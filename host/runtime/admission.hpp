#pragma once
// Room for agents on one shard: how many are in memory, and file descriptors for one more.

#include "runtime/object_places.hpp"
#include "runtime/residents.hpp"
#include "runtime/room_applicant.hpp"
#include "runtime/room_line.hpp"
#include "runtime/shard_loop.hpp"

#include <chrono>
#include <cstddef>
#include <functional>
#include <optional>
#include <utility>

namespace hearth::runtime {

// A cold agent asks before it comes in. If there is no room, idle residents are asked to leave, and
// the agent waits in line until they have left. An object first waits for its place, in a line of
// its own. Work of an agent (room_line.hpp) is also a notification that it receives.
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
// P2: An object also stands behind objects that wait for a place, and behind an object that
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

  using Applicant = RoomApplicant;
  using Answer = RoomApplicant::Answer;
  using Verdict = RoomApplicant::Verdict;
  using Need = RoomApplicant::Need;

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
  // An agent enters after ask() allowed it, or for a moment in which it runs no code. In the second
  // case it does not count as an object.
  [[nodiscard]] Residents& residents() { return residents_; }
  [[nodiscard]] const Residents& residents() const { return residents_; }
  // The agent begins to leave. Instead of Residents::leaving(), as left() and may_be_idle().
  void leaving(const Applicant& agent) {
    residents_.leaving();
    if (agent.place().has_object_place) places_.leaving();
  }
  void left(Applicant& agent);
  // The agent has left because another taker got its descriptors: its wait for room goes on.
  void left_without_files(Applicant& agent);
  void may_be_idle(const Applicant& agent) {
    residents_.may_be_idle(agent);
    if (none_idle_anywhere_until_ != SteadyTime{} && agent.place().has_object_place &&
        agent.may_leave_for_room())
      none_idle_anywhere_until_ = {};
  }

  // ---- ObjectPlaces::Member ----
  [[nodiscard]] std::optional<SteadyTime> object_idle_since() override;
  [[nodiscard]] bool spare_object(std::function<void()> left) override;

  // Stops looking at the lines.
  void stop() { loop_.cancel_timer(std::exchange(timer_, 0)); }

 private:
  RoomLack find_room(Applicant& agent, const Need& need);
  // Idle residents leave for agents that wait.
  void make_room();
  // True: the agent has a place. False: there is none, or the shards are asked for one.
  bool find_object_place(Applicant& agent);
  void ask_for_places();
  void places_answered(ObjectPlaces::Answer answer);
  void give_back_place(Applicant& agent);
  // The room or place may become free without a new request.
  [[nodiscard]] bool may_come(RoomLack lack) const;
  void serve();
  // True: the first of the lane has had its turn.
  bool serve_first(RoomLine& line, std::size_t lane);
  [[nodiscard]] RoomLine& line_for(RoomLack lack) {
    return lack == RoomLack::kObjects ? object_line_ : line_;
  }
  // False: the agent does not stand in a line.
  bool leave_line(Applicant& agent);
  void serve_in(std::chrono::milliseconds wait);
  void join(RoomLine& line, Applicant& agent, bool is_awaited, bool is_first = false);

  ShardLoop& loop_;
  const std::size_t max_live_;
  ObjectPlaces& places_;
  const std::function<bool(unsigned)> has_files_;
  Residents residents_;
  RoomLine line_;                          // for room
  const Applicant* with_place_ = nullptr;  // the object in line_ that has its place
  RoomLine object_line_;                   // for a place; objects move to line_ with it
  std::size_t turn_ = 0;                   // the lane that is served first
  TimerId timer_ = 0;                      // runs while some agent waits
  std::size_t asked_ = 0;                  // places for which the shards are asked
  bool has_place_ = false;                 // for the first object, now
  SteadyTime none_idle_anywhere_until_{};  // no object of any shard was idle, as they answered
};

}  // namespace hearth::runtime
