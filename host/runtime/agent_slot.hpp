#pragma once
// One agent's place on its shard. The agent comes and goes; its clients stay here.

#include "extensions/wait.hpp"
#include "runtime/agent_entry.hpp"
#include "runtime/agent_exit.hpp"
#include "runtime/agent_place.hpp"
#include "runtime/agent_turns.hpp"
#include "runtime/agent_visits.hpp"
#include "runtime/agent_work.hpp"

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace hearth::runtime {

// Promises (states and transitions: agent_state.hpp)
//  P1 One path   There is one way in, AgentEntry, and one way out, AgentExit, whatever the reason.
//  P2 Order      Events of a connection are delivered in the order received, after its CONNECT is
//                over; events without a connection in the order received.
//  P3 Bounded    At most max_waiting calls and requests wait, with at most max_waiting_bytes;
//                further ones are refused.
//  P4 Answered   Events that wait behind a start that fails are answered with its error.
//  P5 Destroyed  An agent that has asked to be destroyed gets no event, and its clients are closed
//                with 4410.
//  P6 Again      A CONNECT or an idempotent call that an eviction cuts off is delivered again to
//                the next instance, before the events that wait.
//  P7 Shared     In one turn of the loop an agent gets at most AgentTurns::kMostAtOnce of its
//                waiting events, and no further one after kLongestAtOnce.
//  P8 Alone      While a call or a request that runs alone (extensions/call_order.hpp) is in
//                progress, no other call or request is.
//
// P3: While the account of client memory is overdrawn, large events are refused too. A connection
// with too much waiting is not read, so that at most a few of its frames wait as well.
//
// P4: An agent that evicts itself before its START is over has failed to start. If it failed on a
// version under trial (StartCounts::undecided_until), its events wait within P3 until the trial is
// decided, and the agent is not woken before. If another version is served then, it gets the
// events. If the same version stays, the events are answered with the error.
//
// P5: The agent's earlier answers are still sent. Requests and clients that it never knew wait
// until its files are removed, and meet a new, empty agent of its name. If the files cannot be
// removed, they are refused.
//
// P6: A call is delivered again if the evicted code had exported its method as idempotent, and no
// part of its answer was emitted. The order is that of the first delivery. The client's handshake
// is not sent again. An event that waits for its second delivery is a waiting event: P4, a class
// that stays away and a shutdown apply to it.
//   cut off                                      what happens
//   any other call                               answered kClosing, "try again"
//   no room (P3), or after kHung                 a call is answered kClosing
//   storage has failed                           P3 of AgentStore
//   after kShutdown, kDestroyed                  nothing is delivered again
//   after kAdmin                                 no STATE_CHANGED of a change that was made by a
//                                                handler of STATE_CHANGED
//   limits.call_timeout after first delivery,    a call is answered kTimeout, a client closed
//   also while it waits for its class            with 1012
//   more than Interruptions::kMost times         a call is answered kClosing, a client closed
//                                                with 1012
//   a call whose answer can no longer be read    it is not repeated
//
// P7: The other events follow in the next turn of the loop. In between, the shard serves its other
// agents and clients, whatever this agent causes.
//
// P8: With `calls: serial` each call and request runs alone, else those of exclusive methods. A
// call that has to wait does so within P3, at most limits.call_timeout or as long as its caller
// said. Later events of its client wait behind it (P2).
//
// Threads    The shard's.
// Lifetime   Owned by the shard, which removes it from a task of its own once is_unused(). The
//            members for events and AgentTurns::after_turn() may run plugin code, but destroy
//            neither the slot nor the live agent.
class AgentSlot final : public Admission::Applicant {
 public:
  AgentSlot(const ShardParts& parts, storage::AgentKey key, std::string segment);
  ~AgentSlot();
  AgentSlot(const AgentSlot&) = delete;
  AgentSlot& operator=(const AgentSlot&) = delete;

  [[nodiscard]] const storage::AgentKey& key() const { return place_.key; }
  // How the class is named in URLs.
  [[nodiscard]] const std::string& segment() const { return place_.segment; }
  [[nodiscard]] const AgentLife& life() const { return place_.life; }
  [[nodiscard]] AgentInbox& inbox() { return place_.inbox; }
  [[nodiscard]] const AgentInbox& inbox() const { return place_.inbox; }
  [[nodiscard]] AgentEntry& entry() { return entry_; }
  [[nodiscard]] AgentTurns& turns() { return turns_; }
  [[nodiscard]] const AgentTurns& turns() const { return turns_; }
  [[nodiscard]] AgentWork& work() { return work_; }
  [[nodiscard]] AgentExit& exit() { return exit_; }
  // Not in memory nor in the line for room, without clients and without events that wait.
  [[nodiscard]] bool is_unused() const;
  // How long one event may be in progress: as the class says, else as the server does.
  [[nodiscard]] std::chrono::milliseconds call_timeout() const;
  // What the agent waits for, but for its durable work and the permits of its shard.
  [[nodiscard]] std::vector<extensions::Wait> list_waits() const;

  // Delivers the event, or queues it and wakes the agent.
  void accept(Event incoming);
  // A new client, in state kWaiting. The slot makes its CONNECT event.
  void connect(ConnectionId id);
  // The client's socket is gone. The connection is forgotten after the agent has seen CLOSE, or at
  // once if the agent never knew it.
  void disconnected(ConnectionId id, std::uint16_t code, std::string_view reason, bool was_clean);
  // Brings the agent into memory.
  void be_awake();
  // Work of an agent in memory is due. If the agent waits for its turn to end, it ends soon, so
  // that it can be woken again for the work.
  void come_for_work();
  // What an administrator does with its data (agent_visit.hpp).
  void visit(AgentVisit visit);
  // The server stops: refuses the events that wait. Evicts the agent at once unless it is busy.
  void begin_shutdown();
  // The agent was condemned while it was not in memory. Ends its clients and their events; its
  // files are removed next.
  void was_condemned();
  // The events that wait meet a new agent, or are refused if the files could not be removed.
  void removal_is_over();

  // ---- Admission::Applicant ----
  [[nodiscard]] Admission::Need need() const override { return entry_.need(); }
  [[nodiscard]] bool may_leave_for_room() const override;
  void leave_for_room() override;
  void take_turn(const Admission::Verdict& verdict) override { entry_.take_turn(verdict); }

 private:
  void gone(GoneAgent gone);

  AgentPlace place_;
  AgentVisits visits_;
  AgentWork work_;
  AgentExit exit_;
  AgentTurns turns_;
  AgentEntry entry_;
};

}  // namespace hearth::runtime
