#pragma once
// The way in of an agent, and what keeps it out: no room, no class, a version on trial, files that
// are being removed.

#include "runtime/agent_exit.hpp"
#include "runtime/agent_place.hpp"
#include "runtime/agent_turns.hpp"
#include "runtime/agent_work.hpp"

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace hearth::runtime {

// Threads    The shard's.
class AgentEntry {
 public:
  AgentEntry(AgentPlace& place, AgentWork& work, AgentExit& exit, AgentTurns& turns)
      : place_(place), work_(work), exit_(exit), turns_(turns) {}

  // Brings an agent into memory that is not there. If that is not possible now, its events wait or
  // are refused.
  void wake();
  // The same for its durable work. A permit of this kind is free: the agent takes it if it wakes.
  void wake_for_work(PermitKind kind);
  // Opens a cold agent for visits, without an instance; it ends at once.
  void open(std::vector<AgentVisit> visits);
  // The agent has just become cold: wakes it if it is needed.
  void go_on_after(GoneAgent gone);

  // ---- while it is not in memory ----
  // Files of a destroyed agent are removed first.
  void await_removal();
  // The server stops.
  void refuse_for_shutdown();
  // As Admission::Applicant.
  [[nodiscard]] Admission::Need need() const;
  void take_turn(const Admission::Verdict& verdict);
  // The trial is decided: events behind a start that failed need not wait any longer.
  void trial_is_over();
  // The class that the agent waited for is back; or the wait for it is over, and the agent's
  // clients are told to try again later.
  void class_is_back();
  void class_is_gone();

 private:
  // The agent comes in, and has no live agent yet.
  template <class State>
  State& enter(std::shared_ptr<const ServedClass> served);
  void make_instance(std::shared_ptr<const ServedClass> served);
  // Opens the database. Throws StorageError.
  [[nodiscard]] std::unique_ptr<LiveAgent> make_live(const Resident& resident);
  // True: there is no room now. The agent stands in the line, or its events have been refused.
  bool lacks_room();
  // The agent had its turn, and another taker got the free descriptors.
  void rejoin_room_line();
  // Does nothing if the agent is not in the line. Events and visits that still wait ask again.
  void leave_room_line();
  void refuse_for_room(RoomLack lack);
  void refuse_for_now(std::string why);
  void refuse_waiting(const Error& error, std::uint16_t close_code);
  // Answers the waiting events with the failure to start on `version`, now or once it is certain
  // that this version stays.
  void start_failed(const std::shared_ptr<StartCounts>& version, Error failure);
  // It is certain. If another version is served by now, that version gets the events.
  void answer_failure(const StartCounts& version, const Error& failure);
  // The agent has failed to start on this version, and may yet get another one.
  [[nodiscard]] bool awaits_decision(const ServedClass& version) const;
  void forget_failed_start();

  AgentPlace& place_;
  AgentWork& work_;
  AgentExit& exit_;
  AgentTurns& turns_;
};

}  // namespace hearth::runtime
