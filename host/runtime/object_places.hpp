#pragma once
// Room for objects in memory, over all shards of a server.

#include "runtime/shard_loop.hpp"

#include <atomic>
#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

namespace hearth::runtime {

// An object in memory holds a place. Where all places are taken, a shard asks all of them which
// object is idle and was used longest ago. That object leaves, and its place goes to the shard that
// has asked.
//
// Promises
//  P1 Bounded     Never more than `max` places are taken.
//  P2 Who leaves  The least recently used idle object of the server, as far as the shards answer
//                 within kPatience: one whose loop stands still does not hold up the others.
//
// Threads    take(), give_back() and ask() from any shard's thread; join() before the loops run.
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
  void join(ShardLoop& loop, Member& member) { members_.push_back({&loop, &member}); }

  // True: the caller has a place.
  [[nodiscard]] bool take();
  void give_back() { taken_.fetch_sub(1, std::memory_order_relaxed); }

  enum class Answer { kPlace, kNone, kLater };
  // Has an idle object leave for the caller, the member of `loop`. kPlace: the caller has its
  // place. kNone: no object is idle. kLater: `later` is called once, from the caller's loop, with
  // one of the two, or with kLater: the object that was to leave is in use again.
  [[nodiscard]] Answer ask(ShardLoop& loop, std::function<void(Answer)> later);

 private:
  struct Place {
    ShardLoop* loop;
    Member* member;
  };
  struct Question;

  static void note(const std::shared_ptr<Question>& question, const Place& place,
                   std::optional<SteadyTime> idle_since);
  static void choose(const std::shared_ptr<Question>& question);

  const std::size_t max_;
  std::atomic<std::size_t> taken_ = 0;
  std::vector<Place> members_;
};

}  // namespace hearth::runtime
