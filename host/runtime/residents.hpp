#pragma once
// The agents in memory on one shard, in the order of their last use.

#include "runtime/room_applicant.hpp"

#include <chrono>
#include <cstddef>

namespace hearth::runtime {

// A search that finds no idle resident is not repeated for kNoneIdleFor, unless one has become
// idle.
//
// Threads    The shard's.  Lifetime  The residents outlive it.
class Residents {
 public:
  // A resident that becomes idle tells it at the end of its turn. This wait is for those that
  // become idle without a turn.
  static constexpr std::chrono::milliseconds kNoneIdleFor{100};

  void enter(RoomApplicant& agent);
  void used(RoomApplicant& agent, SteadyTime now);
  // The agent begins to leave; its end is certain, and soon; it has left. Each once, in this order.
  void leaving() { ++leaving_; }
  void ending() { ++ending_; }
  void left(RoomApplicant& agent);
  // The agent may have become idle.
  void may_be_idle(const RoomApplicant& agent);

  // Least recently used first.
  [[nodiscard]] const RoomApplicant::Line& all() const { return line_; }
  [[nodiscard]] std::size_t size() const { return line_.size(); }
  // Those that have begun to leave; and of these, those whose end is certain.
  [[nodiscard]] std::size_t count_leaving() const { return leaving_; }
  [[nodiscard]] std::size_t count_ending() const { return ending_; }
  // Those that leave for other agents.
  [[nodiscard]] std::size_t count_sent_away() const { return sent_away_; }

  // The least recently used idle object; null: none is idle.
  [[nodiscard]] RoomApplicant* idle_object(SteadyTime now);
  // The agent leaves for another one.
  void send_away(RoomApplicant& agent);
  // The least recently used idle agent does. False: none is idle.
  bool send_idle_away(SteadyTime now);

 private:
  RoomApplicant::Line line_;
  std::size_t leaving_ = 0;
  std::size_t ending_ = 0;
  std::size_t sent_away_ = 0;
  SteadyTime none_idle_until_{};
  SteadyTime no_object_idle_until_{};
};

}  // namespace hearth::runtime
