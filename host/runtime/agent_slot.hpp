#pragma once
// One agent's place on its shard. The agent comes and goes; its clients stay here.

#include "base/error.hpp"
#include "extensions/wait.hpp"
#include "runtime/admission.hpp"
#include "runtime/agent_inbox.hpp"
#include "runtime/agent_state.hpp"
#include "runtime/agent_visits.hpp"
#include "runtime/alarm_clock.hpp"
#include "runtime/class_registry.hpp"
#include "runtime/delivery.hpp"
#include "runtime/live_agent.hpp"
#include "runtime/types.hpp"
#include "storage/agent_key.hpp"

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace hearth::runtime {

class AgentHandles;
class PacedSteps;
enum class StepKind : std::uint8_t;
struct ShardServices;

// Promises (states and transitions: agent_state.hpp)
//  P1 One path   There is one way in, wake(), and one way out, finish_end(), whatever the reason.
//  P2 Order      Events of a connection are delivered in the order received, after its CONNECT is
//                over; events without a connection in the order received.
//  P3 Bounded    At most max_waiting calls and requests wait, with at most max_waiting_bytes;
//                further ones are refused.
//  P4 Answered   Events that wait behind a start that fails are answered with its error.
//  P5 Destroyed  An agent that has asked to be destroyed gets no event, and its clients are closed
//                with 4410.
//  P6 Again      A CONNECT or an idempotent call that an eviction cuts off is delivered again to
//                the next instance, before the events that wait.
//  P7 Shared     In one turn of the loop an agent gets at most kMostAtOnce of its waiting events,
//                and no further one after kLongestAtOnce.
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
//   storage has failed                           P5 of LiveAgent
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
//            members for events and after_turn() may run plugin code, but destroy neither the slot
//            nor the live agent.
class AgentSlot final : public Admission::Applicant {
 public:
  static constexpr unsigned kMostAtOnce = 64;
  static constexpr std::chrono::milliseconds kLongestAtOnce{5};

  // The parts of its shard that all slots use. They and this outlive the slots.
  struct Parts {
    ShardServices& services;  // what live agents use, and the slot too
    Admission& admission;     // its residents: slots in memory
    AgentHandles& handles;
    PacedSteps& steps;
    const bool& stopping;  // the server stops: no agent is woken
    // The slot may be unused. The shard removes it soon if it is still unused then.
    std::function<void(const AgentSlot& slot)> look_at_unused;
    // An agent has left memory.
    std::function<void()> one_left;
    // The agent was condemned, and with it the agents below it: those end soon.
    std::function<void(const storage::AgentKey& key)> end_below;
  };

  AgentSlot(const Parts& parts, storage::AgentKey key, std::string segment);
  ~AgentSlot();
  AgentSlot(const AgentSlot&) = delete;
  AgentSlot& operator=(const AgentSlot&) = delete;

  [[nodiscard]] AgentState state() const { return life_.state(); }
  [[nodiscard]] bool in_memory() const { return life_.resident() != nullptr; }
  // Null: the agent is not in memory, or its database could not be opened and it ends.
  [[nodiscard]] LiveAgent* live();
  // Not in memory nor in the line for room, without clients and without events that wait.
  [[nodiscard]] bool is_unused() const {
    return !in_memory() && inbox_.clients().empty() && inbox_.empty() && !stands_in_line() &&
           visits_.empty();
  }

  // How long one event may be in progress: as the class says, else as the server does.
  [[nodiscard]] std::chrono::milliseconds call_timeout() const;

  // ---- events in ----
  // Delivers the event, or queues it and wakes the agent.
  void accept(Event incoming);
  // A new client, in state kWaiting. The slot makes its CONNECT event.
  void connect(ConnectionId id);
  // The client's socket is gone. The connection is forgotten after the agent has seen CLOSE, or at
  // once if the agent never knew it.
  void disconnected(ConnectionId id, std::uint16_t code, std::string_view reason, bool was_clean);

  // Brings the agent into memory.
  void be_awake();
  // What an administrator does with its data (agent_visit.hpp; agent_slot_visits.cpp).
  void visit(AgentVisit visit);
  // The agent is in memory for visits alone, without an instance.
  [[nodiscard]] bool is_only_open() const;
  // What the agent waits for, but for its durable work and the permits of its shard.
  [[nodiscard]] std::vector<extensions::Wait> list_waits();

  // ---- the way out (agent_slot_exit.cpp) ----
  // Begins the eviction of a live agent; does nothing in any other state. `grace`: for EVICT; 0: no
  // EVICT is sent. Without it: as the class says.
  void evict(EvictReason reason, std::chrono::milliseconds grace);
  void evict(EvictReason reason);
  // Ends the agent without EVICT, also while it starts or leaves. Does nothing if the agent is not
  // in memory or its end is certain.
  void end(EvictReason reason);
  // The server stops: refuses the events that wait. Evicts the agent at once unless it is busy.
  void begin_shutdown();
  // The agent was condemned while it was not in memory. Ends its clients and their events; its
  // files are removed next.
  void was_condemned();
  // The events that wait meet a new agent, or are refused if the files could not be removed.
  void removal_is_over();

  // ---- durable work (agent_slot_work.cpp) ----
  // Work of an agent in memory is due. If the agent waits for its turn to end, it ends soon, so
  // that it can be woken again for the work.
  void come_for_work();
  // It is the agent's turn to recover. The slot takes the permit if the agent can use it.
  void let_recover();
  // The agent is not in memory, and a permit of this kind is free: the slot takes it if the agent
  // wakes.
  void wake_for_work(PermitKind kind);

  // ---- Admission::Applicant (agent_slot_room.cpp) ----
  [[nodiscard]] Admission::Need need() const override;
  [[nodiscard]] bool may_leave_for_room() const override;
  void leave_for_room() override;
  void take_turn(const Admission::Verdict& verdict) override;

  // ---- another version of its class, or none (agent_slot_versions.cpp) ----
  // The version of its code; null: the agent is cold.
  [[nodiscard]] const ServedClass* version() const;
  // The agent has to leave its version, for `reason`: before its next event, at leave_here(), or
  // once it has started. With `when_idle`, it leaves at its next idle moment instead of before its
  // next event.
  void must_leave(EvictReason reason, bool when_idle);
  // The agent leaves now if it must. Called from a task of the loop, with none of the agent's code
  // on the stack. A sudden eviction is over when this returns, except for closing files on another
  // thread: so a caller that paces many evictions knows the cost of each.
  void leave_here();
  // The agent leaves without EVICT, even while it is starting.
  void leave_suddenly(EvictReason reason);
  // A live agent leaves and comes back on the version under trial if the trial has a place: now, or
  // when it is idle.
  void may_try(const std::shared_ptr<VersionTrial>& trial);
  // The trial is decided: events behind a start that failed need not wait any longer.
  void trial_is_over();
  // The class that the agent waited for is back; or the wait for it is over, and the agent's
  // clients are told to try again later.
  void class_is_back();
  void class_is_gone();
  void end_clients(std::uint16_t code, std::string_view why) { inbox_.end_clients(code, why); }

  [[nodiscard]] const storage::AgentKey& key() const { return key_; }
  // How the class is named in URLs.
  [[nodiscard]] const std::string& segment() const { return segment_; }
  [[nodiscard]] const std::vector<ConnectionId>& connections() const { return inbox_.clients(); }
  // When an event last came, or a turn of the instance ended.
  [[nodiscard]] SteadyTime last_activity() const { return last_activity_; }
  // As LiveAgent::Parts.
  void after_turn();

 private:
  [[nodiscard]] SteadyTime now() const;
  // A task for the loop: does `what`, if this slot is still there.
  [[nodiscard]] std::function<void()> task(void (*what)(AgentSlot& slot)) const;
  // ---- the way in ----
  void wake();
  void make_instance(std::shared_ptr<const ServedClass> served);
  // Opens the database. Throws StorageError.
  [[nodiscard]] std::unique_ptr<LiveAgent> make_live(const Resident& resident);
  void migrated(const Completion& completion);
  void started(const Completion& completion);
  // Counts the agent for its version, once that has gone on with the fibers that are due; at the
  // end of the agent in any case.
  void count_trial();
  // ---- visits (agent_slot_visits.cpp) ----
  void open_for_visits();
  // ---- turns ----
  [[nodiscard]] bool is_ready_for(const Event& incoming) const;
  [[nodiscard]] Delivery delivery() const;
  // Of the agent's class. Valid as long as the class is.
  [[nodiscard]] extensions::CallOrder call_order() const;
  bool deliver_next();
  void deliver(OwnedEvent event);
  // This turn of the loop has delivered enough: the other events are delivered in the next one
  // (P7).
  void go_on_later();
  void go_on();
  void settle();
  void after_settling();
  // Lends the agent for a checkpoint, and takes it back. Only this agent waits for the device; its
  // slot keeps it meanwhile.
  void checkpoint(LiveAgent& agent);
  void completed(const Completion& completion);
  void connected(const Completion& completion);
  void forget(ConnectionId id);
  // ---- idleness ----
  void touch();
  void watch_idleness();
  void look_if_idle();
  // ---- the way out (agent_slot_exit.cpp) ----
  // The error for events that wait for the agent's start; nothing once it has started.
  [[nodiscard]] std::optional<Ending::StartFailure> if_waking(const char* why) const;
  // Logs that an event has failed.
  void write_failure(std::string_view line, const Error& failure, CallId call,
                     const extensions::Span& span) const;
  void leave(EvictReason reason, std::chrono::milliseconds grace, bool wake_again);
  // Does nothing if the end is certain already.
  void begin_ending(Ending how);
  void post_end();
  // The end of an idle agent is one of the paced steps, so it may be late.
  void end_in_turn(StepKind kind);
  // An event or a visit waits for this agent now.
  void hurry_end();
  // Ends the agent if its end is certain and not in progress.
  void end_now();
  void finish_end();
  // What the slot must know of the instance when it is gone.
  struct Rest {
    durable::Wake next_wake;
    std::optional<std::int64_t> next_look;  // Unix milliseconds
    std::chrono::milliseconds at_least{0};
    bool destroyed = false;
  };
  // end_instance(): the last answers have left. gone(): the database is closed; `trouble` says what
  // went wrong, or is empty.
  void end_instance(Rest rest);
  void gone(const Rest& rest, const std::string& trouble);
  void go_on_after(Ending ending, bool destroyed);
  void refuse_waiting(const Error& error, std::uint16_t close_code);
  void await_removal();
  // The error for a call in progress. After a destruction it must not invite a retry: the retry
  // would meet a new agent.
  [[nodiscard]] static Error why_it_ended(EvictReason reason);
  // ---- durable work (agent_slot_work.cpp) ----
  // Begins one thing that is due, and comes back while there is more. Each is a paced step, so that
  // clients' frames and other agents' work come in between.
  void pump();
  void look();
  void give_back_permits();
  // ---- room (agent_slot_room.cpp) ----
  // True: there is no room now. The agent stands in the line, or its events have been refused.
  bool lacks_room();
  // The agent had its turn, and another taker got the free descriptors.
  void rejoin_room_line();
  // Does nothing if the agent is not in the line. Events and visits that still wait ask again.
  void leave_room_line();
  void refuse_for_room(RoomLack lack);
  // ---- versions (agent_slot_versions.cpp) ----
  // The agent ends now if it must leave, and with `wake_again` is woken at once.
  void leave_now(bool wake_again);
  void leave_while_idle();
  // Answers the waiting events with the failure to start on `version`, now or once it is certain
  // that this version stays. If another version is served by now, that version gets them.
  void start_failed(const std::shared_ptr<StartCounts>& version, Error failure);
  // The agent has failed to start on this version, and may yet get another one.
  [[nodiscard]] bool awaits_decision(const ServedClass& version) const;
  void forget_failed_start();

  const Parts& parts_;
  const storage::AgentKey key_;
  const std::string segment_;
  AgentInbox inbox_;
  AgentLife life_;
  AgentVisits visits_;
  HeldPermits permits_;    // held from the line for room until the agent is gone
  bool settling_ = false;  // after_turn() is on the stack, or must do nothing now
  SteadyTime last_activity_;
  std::shared_ptr<AgentSlot*> self_;  // tasks reach us through it; null after destruction
};

}  // namespace hearth::runtime
