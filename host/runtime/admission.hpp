#pragma once
// Room for agents on one shard: how many are in memory, and whether the process has file
// descriptors for one more.

#include "base/assert.hpp"
#include "runtime/object_places.hpp"
#include "runtime/shard_loop.hpp"
#include "storage/agent_key.hpp"

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
// comes in; if there is no room, idle residents are asked to leave, and it waits in line until they
// have left. An object first waits for its place, in a line of its own.
//
// Promises
//  P1 Bounded    At most max_live residents, and one more for each that is leaving. An object comes
//                in with a place (object_places.hpp); an object that leaves for another one leaves
//                it its place. None comes in while the process has hardly a descriptor left: those
//                that remain are for clients' sockets.
//  P2 In turn    An agent that asks while others wait for room stands behind them. An object also
//                stands behind the objects that wait for a place, and behind one that waits for
//                room with its place, so that this shard holds one unused place at most. Agents
//                that need no place do not wait for objects. Only the first of each line is looked
//                at: every few milliseconds, and whenever a resident has left.
//  P3 Leaving    The least recently used resident that is idle; for an object without a place the
//                least recently used idle object of all shards. If there is none, the object is
//                refused, and so are others for a moment.
//  P4 An end     An agent waits kLongestWait at most. It waits for room only while some resident
//                is leaving; for a place only while one is free, an object of any shard is leaving
//                or the shards are asked. Then it is refused.
//
// Threads    The shard's.
// Lifetime   The loop, the places, and all agents that are residents or wait outlive it, until
//            stop().
class Admission final : public ObjectPlaces::Member {
 public:
  static constexpr std::chrono::milliseconds kLongestWait{5'000};

  class Applicant;
  using Line = std::list<Applicant*>;

  // Where an agent stands: a hook, as an intrusive list has one, so that coming, going and use need
  // no search. It lies in the agent, and Admission alone writes it.
  struct Place {
    std::optional<Line::iterator> resident;  // in the order of use
    std::optional<Line::iterator> waiting;   // in its line
    Line* line = nullptr;                    // while it waits
    std::optional<SteadyTime> lacks_since;   // until it leaves, or is refused
    bool has_room = false;                   // found for it; it comes in just now
    bool has_object_place = false;           // an object's, from its turn until it has left
    bool waits_with_place = false;           // for room, an object that has its place
  };

  // An agent, as Admission sees it. No member is called from inside a call of the agent's own but
  // ask().
  class Applicant {
   public:
    Applicant() = default;
    Applicant(const Applicant&) = delete;
    Applicant& operator=(const Applicant&) = delete;

    [[nodiscard]] bool is_resident() const { return place_.resident.has_value(); }
    // It stands in a line.
    [[nodiscard]] bool waits() const { return place_.waiting.has_value(); }
    // For Admission.
    [[nodiscard]] Place& place() { return place_; }
    [[nodiscard]] const Place& place() const { return place_; }

    [[nodiscard]] virtual const storage::AgentKey& key() const = 0;
    // Asked when it wants to come in.
    [[nodiscard]] virtual bool is_object() const = 0;
    // When it was used last.
    [[nodiscard]] virtual SteadyTime last_activity() const = 0;
    // A resident: it is idle, and would leave for another one.
    [[nodiscard]] virtual bool may_leave_for_room() const = 0;
    // It goes, from the loop.
    virtual void leave_for_room() = 0;
    // In the line: something still waits for it.
    [[nodiscard]] virtual bool is_wanted() const = 0;
    // First in the line, and there is room: it becomes a resident, or wants to no longer.
    virtual void come_in() = 0;
    // First in the line: it must not wait any longer, or is not wanted (kNothing). It leaves the
    // line.
    virtual void turn_away(RoomLack lack) = 0;

   protected:
    ~Applicant() = default;

   private:
    Place place_;
  };

  // `has_files`: whether so many descriptors could be had.
  Admission(ShardLoop& loop, std::size_t max_live, ObjectPlaces& places,
            std::function<bool(unsigned count)> has_files);

  // ---- a cold agent ----
  enum class Answer { kComeIn, kWait, kRefused };
  struct Verdict {
    Answer answer = Answer::kComeIn;
    RoomLack lack = RoomLack::kNothing;
  };
  // It would come in. kWait: it stands in the line now, or did already.
  Verdict ask(Applicant& agent);
  // It had its turn, and another taker got the descriptors (left_without_files()): it is first
  // again. An object that finds no place then waits behind others. False: it has waited too long,
  // counted from its first question.
  [[nodiscard]] bool ask_again(Applicant& agent);
  // It waits no longer, for whatever reason. True if it stood in the line.
  bool drop_out(Applicant& agent);

  // ---- residents ----
  // It comes in: as ask() has told it, or for a moment in which it runs no code. Then it is no
  // object that counts.
  void enter(Applicant& agent);
  void used(Applicant& agent) {
    const auto& resident = agent.place().resident;
    HEARTH_ASSERT(resident.has_value(), "an agent is used that did not come in");
    residents_.splice(residents_.end(), residents_, *resident);
  }
  // It begins to leave; its end is certain, and soon; it has left. Each once, in this order.
  void leaving(const Applicant& agent) {
    ++leaving_;
    if (agent.place().has_object_place) places_.leaving();
  }
  void ending() { ++ending_; }
  void left(Applicant& agent);
  // It has left because another taker got its descriptors: its wait for room goes on.
  void left_without_files(Applicant& agent);
  // This one may have become idle.
  void may_be_idle(const Applicant& agent) {
    if (none_idle_until_ != SteadyTime{} && agent.may_leave_for_room()) none_idle_until_ = {};
    const bool looks_away =
        no_object_idle_until_ != SteadyTime{} || none_idle_anywhere_until_ != SteadyTime{};
    if (agent.place().has_object_place && looks_away && agent.may_leave_for_room())
      no_object_idle_until_ = none_idle_anywhere_until_ = {};
  }
  // Least recently used first.
  [[nodiscard]] const Line& residents() const { return residents_; }

  // ---- ObjectPlaces::Member ----
  [[nodiscard]] std::optional<SteadyTime> object_idle_since() override;
  [[nodiscard]] bool spare_object() override;

  // Looks at the lines no more.
  void stop() { loop_.cancel_timer(std::exchange(timer_, 0)); }

 private:
  RoomLack find_room(Applicant& agent);
  bool evict_idle();
  // True: the agent has a place. False: there is none, or the shards are asked for one.
  bool find_object_place(Applicant& agent);
  void places_answered(ObjectPlaces::Answer answer);
  void give_back_place(Applicant& agent);
  [[nodiscard]] Applicant* idle_object();
  // What is lacking may come by itself, without a request for it.
  [[nodiscard]] bool may_come(RoomLack lack) const;
  void serve();
  // True: the first of the line has had its turn.
  bool serve_first(Line& line);
  [[nodiscard]] Line& line_for(RoomLack lack) {
    return lack == RoomLack::kObjects ? object_line_ : line_;
  }
  // False: it does not stand in a line.
  bool leave_line(Applicant& agent);
  void serve_in(std::chrono::milliseconds wait);
  void join(Line& line, Line::iterator before, Applicant& agent);
  void note_place(Applicant& agent);

  ShardLoop& loop_;
  const std::size_t max_live_;
  ObjectPlaces& places_;
  const std::function<bool(unsigned)> has_files_;
  Line residents_;
  Line line_;                              // for room
  Line object_line_;                       // for a place: they join line_ with it
  TimerId timer_ = 0;                      // runs while some agent waits
  std::size_t leaving_ = 0;                // residents
  std::size_t ending_ = 0;                 // of them
  bool asks_for_place_ = false;            // the shards, for the first object
  bool has_place_ = false;                 // for the first object, just now
  std::size_t places_in_line_ = 0;         // of objects that wait for room with them: one or none
  SteadyTime none_idle_until_{};           // none was idle, and none has said since that it is
  SteadyTime no_object_idle_until_{};      // ... of the objects
  SteadyTime none_idle_anywhere_until_{};  // ... of those of all shards, as they have said
};

}  // namespace hearth::runtime
