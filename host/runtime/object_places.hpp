#pragma once
// Room for objects in memory, over all shards of a server.

#include "runtime/shard_loop.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <deque>
#include <functional>
#include <memory>
#include <optional>

namespace hearth::runtime {

// An object holds a place from before it comes in until it has left memory. If all places are
// taken, a shard asks all shards for their least recently used idle object. The oldest of these
// leaves, and once it has left, the asking shard gets its place.
//
// Promises
//  P1 Bounded     Never more than `max` places are taken.
//  P2 Leaving     The object that leaves is the least recently used idle object of all shards that
//                 answer.
//  P3 An end      A question is answered after twice kPatience at most, or once the object that
//                 leaves for it has left.
//
// P2: A question waits at most kPatience for a shard whose loop is blocked. Until that shard has
// answered it is not asked again, and counts as a shard without idle objects.
//
// Threads    join() before the loops run; all others from any shard's thread.
// Lifetime   The loops and the members outlive their last task.
class ObjectPlaces {
 public:
  static constexpr std::chrono::milliseconds kPatience{100};
  static constexpr std::size_t kMostWaitingWork = 16;

  // A shard, as the others see it. Its members are called on its own thread.
  class Member {
   public:
    Member() = default;
    Member(const Member&) = delete;
    Member& operator=(const Member&) = delete;

    // The last use of its least recently used idle object; nothing: no object is idle.
    [[nodiscard]] virtual std::optional<SteadyTime> object_idle_since() = 0;
    // That object leaves. Once it has left, the caller has its place, and `left` is called on this
    // member's thread. False: no object is idle.
    [[nodiscard]] virtual bool spare_object(std::function<void()> left) = 0;

   protected:
    ~Member() = default;
  };

  explicit ObjectPlaces(std::size_t max) : max_(max) {}

  // A member is known by its loop.
  void join(ShardLoop& loop, Member& member) { members_.emplace_back(loop, member); }

  // True: the caller has a place.
  [[nodiscard]] bool take();
  void give_back() { --taken_; }
  // leaving(): an object leaves, and its place becomes free soon. has_left(): the place is free, or
  // passed on to the shard that asked for it. Each once, in this order.
  void leaving() { ++leaving_; }
  void has_left(bool is_passed_on) {
    if (!is_passed_on) give_back();
    --leaving_;
  }
  // A place is free, or becomes free soon.
  [[nodiscard]] bool may_be_free_soon() const { return leaving_ > 0 || taken_ < max_; }

  enum class Answer { kPlace, kNone, kLater };
  // Asks an idle object to leave for the caller, the member of `loop`. kNone: no object is idle.
  // kLater: the caller's loop calls `later` once, with kPlace (the caller has a place) or kNone. It
  // passes kLater if the chosen object is in use again, or its shard does not answer.
  [[nodiscard]] Answer ask(ShardLoop& loop, std::function<void(Answer)> later);

  // Work that waits, over all shards: a notification that arrives, an agent that waits for room or
  // a place without a caller that waits for it.
  void work_waits() { ++waiting_work_; }
  void work_goes_on() { --waiting_work_; }
  // No further notification is sent now: its sender would stay in memory too, and take the room of
  // those that wait. A few senders leave most places to calls.
  [[nodiscard]] bool is_crowded() const {
    return waiting_work_ >= std::clamp<std::size_t>(max_ / 8, 1, kMostWaitingWork);
  }

 private:
  struct Place {
    Place(ShardLoop& its_loop, Member& its_member) : loop(its_loop), member(its_member) {}

    // Runs `task` on the member's thread.
    void post(SteadyTime now, std::function<void()> task);
    [[nodiscard]] bool is_silent(SteadyTime now) const;

    ShardLoop& loop;
    Member& member;
    // Since when a task of this class waits in the loop; SteadyTime::max(): none waits. Only such a
    // task resets it, so a shard that was blocked is asked again once it goes on.
    std::atomic<SteadyTime> posted_at = SteadyTime::max();
  };
  struct Question;

  static void note(const std::shared_ptr<Question>& question, Place& place,
                   std::optional<SteadyTime> idle_since);
  static void choose(const std::shared_ptr<Question>& question);
  static std::function<void()> when_left(const std::shared_ptr<Question>& question);

  const std::size_t max_;
  std::atomic<std::size_t> taken_ = 0;
  std::atomic<std::size_t> leaving_ = 0;  // of taken_
  std::atomic<std::size_t> waiting_work_ = 0;
  std::deque<Place> members_;
};

}  // namespace hearth::runtime
