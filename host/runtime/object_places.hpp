#pragma once
// Room for objects in memory, over all shards of a server.

#include "runtime/shard_loop.hpp"

#include <atomic>
#include <chrono>
#include <cstddef>
#include <deque>
#include <functional>
#include <memory>
#include <optional>

namespace hearth::runtime {

// An object in memory holds a place. Where all places are taken, a shard asks all of them which
// object is idle and was used longest ago. That object leaves, and its place goes to the shard that
// has asked.
//
// Promises
//  P1 Bounded     Never more than `max` places are taken.
//  P2 Leaving     The least recently used idle object of all shards that answer. A shard whose loop
//                 stands still is waited for once, for kPatience. From then on it is not asked
//                 before it has answered: it counts as a shard without idle objects.
//  P3 An end      A question is answered after twice kPatience at most.
//
// Threads    join() before the loops run; all else from any shard's thread.
// Lifetime   The loops and the members outlive their last task.
class ObjectPlaces {
 public:
  static constexpr std::chrono::milliseconds kPatience{100};

  // A shard, as the others see it. Called on its own thread.
  class Member {
   public:
    Member() = default;
    Member(const Member&) = delete;
    Member& operator=(const Member&) = delete;

    // When its least recently used idle object was used last; nothing: none is idle.
    [[nodiscard]] virtual std::optional<SteadyTime> object_idle_since() = 0;
    // That object leaves, and its place is the caller's to use or give back. False: none is idle.
    [[nodiscard]] virtual bool spare_object() = 0;

   protected:
    ~Member() = default;
  };

  explicit ObjectPlaces(std::size_t max) : max_(max) {}

  // A member is known by its loop.
  void join(ShardLoop& loop, Member& member) { members_.emplace_back(loop, member); }

  // True: the caller has a place.
  [[nodiscard]] bool take();
  void give_back() { --taken_; }
  // A place comes back soon, because its object is leaving; it has come back. Each once, in this
  // order.
  void leaving() { ++leaving_; }
  void has_left() {
    give_back();
    --leaving_;
  }
  // A place is free, or comes back soon.
  [[nodiscard]] bool may_be_free_soon() const { return leaving_ > 0 || taken_ < max_; }

  enum class Answer { kPlace, kNone, kLater };
  // Has an idle object leave for the caller, the member of `loop`. kPlace: the caller has its
  // place. kNone: no object is idle. kLater: `later` is called once, from the caller's loop, with
  // one of the two, or with kLater: the object that was to leave is in use again, or its shard
  // does not answer any more.
  [[nodiscard]] Answer ask(ShardLoop& loop, std::function<void(Answer)> later);

 private:
  struct Place {
    Place(ShardLoop& its_loop, Member& its_member) : loop(its_loop), member(its_member) {}

    // Has its thread do something.
    void post(SteadyTime now, std::function<void()> task);
    [[nodiscard]] bool is_silent(SteadyTime now) const;

    ShardLoop& loop;
    Member& member;
    // Since when a task of ours waits in its loop; SteadyTime::max(): none does. Only such a task
    // resets it, so a shard that stood still is asked again once it goes on.
    std::atomic<SteadyTime> posted_at = SteadyTime::max();
  };
  struct Question;

  static void note(const std::shared_ptr<Question>& question, Place& place,
                   std::optional<SteadyTime> idle_since);
  static void choose(const std::shared_ptr<Question>& question);

  const std::size_t max_;
  std::atomic<std::size_t> taken_ = 0;
  std::atomic<std::size_t> leaving_ = 0;  // of them
  std::deque<Place> members_;
};

}  // namespace hearth::runtime
