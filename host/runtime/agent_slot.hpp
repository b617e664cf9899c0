#pragma once
// One agent's place on its shard: its life cycle, while its clients stay.

#include "base/error.hpp"
#include "runtime/admission.hpp"
#include "runtime/agent_inbox.hpp"
#include "runtime/agent_state.hpp"
#include "runtime/alarm_clock.hpp"
#include "runtime/class_registry.hpp"
#include "runtime/live_agent.hpp"
#include "runtime/live_agent_owner.hpp"
#include "runtime/migration.hpp"
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
class AgentSlot;  // NOLINT(cppcoreguidelines-virtual-class-destructor): it is final
class CondemnedAgents;
class DatabaseThreads;
class Destructions;
class PacedSteps;
class ShardServices;

// The slots of a shard, as one of them sees it.
class AgentSlots {
 public:
  AgentSlots() = default;
  AgentSlots(const AgentSlots&) = delete;
  AgentSlots& operator=(const AgentSlots&) = delete;

  // A task for the loop: does `what` to the slot of that key, if there is one by then.
  [[nodiscard]] virtual std::function<void()> task(const storage::AgentKey& key,
                                                   void (*what)(AgentSlot& slot)) = 0;
  // The server stops: nobody is woken.
  [[nodiscard]] virtual bool stopping() const = 0;
  // It may be of no use any more, and is removed soon if it still is none then.
  virtual void look_at_unused(const AgentSlot& slot) = 0;
  // An agent has left memory.
  virtual void one_left() = 0;
  // The agent was condemned, and those below it with it: they end soon.
  virtual void end_below(const storage::AgentKey& key) = 0;

 protected:
  ~AgentSlots() = default;
};

// Promises (the states and what leads from one to another: agent_state.hpp)
//  P1 One path   There is one way in (wake) and one way out (finish_end), whatever the reason.
//  P2 Order      Events of one connection are delivered in the order received, after its CONNECT is
//                over; events of no connection in the order received.
//  P3 Bounded    At most max_waiting calls and requests wait, with at most max_waiting_bytes; more
//                are refused, and so is what is large while the account of client memory is
//                overdrawn. A connection with too much waiting is not read from, so that at most a
//                few frames of each wait as well.
//  P4 Answered   Whoever waits behind a start that fails is told. One that evicts itself before its
//                START is over has failed to start. If the version that it failed on is on trial
//                (StartCounts::undecided_until) all that waits stays until that is over, within the
//                bounds of P3, and the agent is not woken before: the version that is served then
//                gets it; if that is the same one, what waits is answered with the error.
//  P5 Destroyed  After an agent has asked to be destroyed it gets no event; its earlier answers are
//                still sent, its clients are closed with 4410, and requests and clients that it
//                never knew wait until its files are removed, and meet a new, empty agent of its
//                name. If the files cannot be removed, they are refused.
//  P6 Again      What an eviction cuts off is delivered again to the next instance, if it is a
//                CONNECT, or a call of a method that the evicted code had exported as idempotent
//                and of whose answer no part was emitted. It comes before what waits, in the order
//                of the first delivery, and the client's handshake is not sent again. All other
//                calls are answered kClosing, "try again"; so are these after kHung or when storage
//                has failed (then as P4 of LiveAgent says), and those for which P3 leaves no room.
//                After kShutdown and kDestroyed nothing comes again; after kAdmin, no STATE_CHANGED
//                of a change that a handler of STATE_CHANGED has made. Its time goes on:
//                limits.call_timeout counts from the first delivery, also while it waits for its
//                class; then a call is answered kTimeout, and a client closed with 1012. What was
//                delivered again Interruptions::kMost times and is cut off once more does not come
//                again either: a call is answered kClosing, and a client closed with 1012. A call
//                of which nobody can read the answer any more is not repeated.
//                While it waits it is one of those who wait: P4, a class that stays away, the end
//                of the server.
//  P7 Shared     In one turn of the loop an agent gets at most kMostAtOnce of the events that wait,
//                and no further one once it has had kLongestAtOnce. The others follow in the next
//                turn: whatever an agent causes itself, the shard's other agents and clients have
//                theirs in between.
//  P8 Alone      While a call or a request that runs alone (extensions/call_order.hpp) is in
//                progress no other is: with `calls: serial` each, else those of exclusive methods.
//                What has to wait waits within P3, at most limits.call_timeout or as its caller
//                said. What its client sent behind it waits too (P2).
//
// Threads    The shard's.
// Lifetime   Owned by the shard, which removes it from a task of its own once is_unused(). Events
//            in and after_turn() may run plugin code, but destroy neither slot nor live agent.
class AgentSlot final : public Admission::Applicant, public MovingAgent, public LiveAgentOwner {
 public:
  static constexpr unsigned kMostAtOnce = 64;
  static constexpr std::chrono::milliseconds kLongestAtOnce{5};

  // Parts of its shard. All of them outlive it.
  struct Parts {
    ShardServices& services;  // what live agents use, and the slot too
    AgentSlots& slots;
    ClassRegistry& classes;
    Admission& admission;  // its residents: slots in memory
    AgentHandles& handles;
    const CondemnedAgents& condemned;
    Destructions& destructions;
    DatabaseThreads& threads;
    PacedSteps& steps;       // who wakes because a time has come
    PacedSteps& departures;  // who leaves, and is not waited for
    PacedSteps& recoveries;  // who recovers
  };

  AgentSlot(const Parts& parts, storage::AgentKey key, std::string segment);
  ~AgentSlot();
  AgentSlot(const AgentSlot&) = delete;
  AgentSlot& operator=(const AgentSlot&) = delete;

  [[nodiscard]] AgentState state() const { return life_.state(); }
  [[nodiscard]] bool in_memory() const { return life_.resident() != nullptr; }
  // Null: it is not in memory, or its database could not be opened and it ends.
  [[nodiscard]] LiveAgent* live();
  // Not in memory nor in the line for room, without clients and without events that wait.
  [[nodiscard]] bool is_unused() const {
    return !in_memory() && inbox_.clients().empty() && inbox_.empty() && !waits() &&
           visits_.empty();
  }

  // How long one event may be in progress: as its class says, or as the server does.
  [[nodiscard]] std::chrono::milliseconds call_timeout() const;

  // ---- events in ----
  // Delivers the event, or queues it and wakes the agent.
  void accept(Event incoming);
  // A new client, in state kWaiting. The CONNECT event follows by itself.
  void connect(ConnectionId id);
  // Its socket is gone. The connection is forgotten once the agent has seen CLOSE, or never knew
  // it.
  void disconnected(ConnectionId id, std::uint16_t code, std::string_view reason, bool was_clean);

  // What an administrator does with its data (agent_visit.hpp; agent_slot_visits.cpp).
  void visit(AgentVisit visit);
  // It is in memory for visits alone, without an instance.
  [[nodiscard]] bool is_only_open() const;

  // ---- the way out (agent_slot_exit.cpp) ----
  // Starts the way out of a live agent; does nothing in any other state. With `sudden` no EVICT
  // event is sent.
  void evict(EvictReason reason, bool sudden = false);
  // It goes with no time for EVICT, also if it is starting or was asked to leave for another
  // reason. Does nothing if it is not in memory, or if its end is certain.
  void end(EvictReason reason);
  // The server stops: refuses what waits; evicts the agent at once unless it is busy.
  void begin_shutdown();
  // It is not in memory, and was condemned: its clients and what they have sent are ended. Its
  // files are removed next.
  void was_condemned();
  // What waits meets a new agent, or is told that the files could not be removed.
  void removal_is_over();

  // ---- durable work (agent_slot_work.cpp) ----
  // Work of one that is in memory is due. If it waits for its turn to end, it ends soon, so that it
  // can be woken again for it.
  void come_for_work();
  // It is its turn to recover. It takes the permit if it can use it.
  void let_recover();
  // It is not in memory, and there is a permit of that kind: the slot takes it if the agent wakes.
  void wake_for_work(PermitKind kind);

  // ---- Admission::Applicant (agent_slot_room.cpp) ----
  [[nodiscard]] bool is_object() const override;
  [[nodiscard]] bool may_leave_for_room() const override;
  void leave_for_room() override;
  [[nodiscard]] bool is_wanted() const override;
  void come_in() override;
  void turn_away(RoomLack lack) override;

  // ---- MovingAgent: another version of its class, or none (agent_slot_versions.cpp) ----
  [[nodiscard]] const ServedClass* version() const override;
  void must_leave(EvictReason reason, bool when_idle) override;
  void leave_here() override;
  void leave_suddenly(EvictReason reason) override;
  void may_try(const std::shared_ptr<VersionTrial>& trial) override;
  // It has been decided which version stays: what waits behind a start that failed need wait no
  // longer.
  void trial_is_over();
  // The class that it waited for is back, or is waited for no longer: then its clients are told to
  // come again later.
  void class_is_back();
  void class_is_gone();
  void end_clients(std::uint16_t code, std::string_view why) { inbox_.end_clients(code, why); }

  // ---- LiveAgentOwner ----
  [[nodiscard]] const storage::AgentKey& key() const override { return key_; }
  [[nodiscard]] const std::string& segment() const override { return segment_; }
  [[nodiscard]] extensions::EgressPtr egress() const override {
    return parts_.classes.egress(segment_);
  }
  [[nodiscard]] const std::vector<ConnectionId>& connections() const override {
    return inbox_.clients();
  }
  [[nodiscard]] Connection* connection(ConnectionId id) const override;
  [[nodiscard]] SteadyTime last_activity() const override { return last_activity_; }
  void after_turn() override;
  void look() override;
  void state_changed(ConnectionId source, std::string_view json, std::uint64_t state_write,
                     std::shared_ptr<unsigned> chain, extensions::OriginPtr origin) override;
  void states_undone(std::uint64_t last_write) override;

 private:
  // ---- the way in ----
  void wake();
  void make_instance(std::shared_ptr<const ServedClass> served);
  void migrated(const Completion& completion);
  void started(const Completion& completion);
  // ---- visits (agent_slot_visits.cpp) ----
  void receive_visits();
  // It is cold. A destroyed one is not opened for those that came before its end.
  void tell_who_waits_for_cold(bool destroyed);
  void open_for_visits();
  // ---- turns ----
  [[nodiscard]] bool is_ready_for(const Event& incoming) const;
  [[nodiscard]] bool deliverable(EventKind kind, std::string_view name,
                                 ConnectionId connection) const;
  // The client's CONNECT is in progress.
  [[nodiscard]] bool is_connecting(ConnectionId connection) const;
  // Calls in progress are in its way (P8).
  [[nodiscard]] bool waits_for_calls(EventKind kind, std::string_view name) const;
  // Of its class. Good while that is.
  [[nodiscard]] extensions::CallOrder call_order() const;
  bool deliver_next();
  void deliver(OwnedEvent event);
  // This turn of the loop has brought enough: what waits goes on in the next one (P7).
  void go_on_later();
  void go_on();
  void settle();
  void after_settling();
  void completed(const Completion& completion);
  void connected(const Completion& completion);
  void forget(ConnectionId id);
  // ---- idleness ----
  void touch();
  void arm_idle_timer(SteadyTime due);
  void idle_timer_fired();
  // ---- the way out (agent_slot_exit.cpp) ----
  // What events that wait for the agent's start are told; nothing once it has started.
  [[nodiscard]] std::optional<Ending::StartFailure> if_waking(const char* why) const;
  // A line about an event that is over.
  void write_failure(std::string_view line, const Error& failure, CallId call,
                     const extensions::Span& span) const;
  void leave(EvictReason reason, bool sudden, bool wake_again);
  // Does nothing if its end is certain.
  void begin_ending(Ending how);
  void post_end();
  // The end of an idle one is a step among others, so it may take its time.
  void end_in_turn(PacedSteps& steps);
  // Somebody waits for it now.
  void hurry_end();
  void end_if_posted();
  void end_if_waiting();
  void finish_end();
  // What must be known of the instance when it is gone.
  struct Rest {
    durable::Wake next_wake;
    std::optional<std::int64_t> next_look;  // Unix milliseconds
    std::chrono::milliseconds at_least{0};
    bool destroyed = false;
  };
  // Once its last answers have left; and once the database is closed. `trouble` is what closing met
  // with, or empty.
  void end_instance(Rest rest);
  void gone(const Rest& rest, const std::string& trouble);
  void go_on_after(Ending ending, bool destroyed);
  void refuse_waiting(const Error& error, std::uint16_t close_code);
  void await_removal();
  // What a call in progress is told. Nobody should try again by himself after a destruction: he
  // would meet a new agent.
  [[nodiscard]] static Error why_it_ended(EvictReason reason);
  // ---- durable work (agent_slot_work.cpp) ----
  // Begins one thing that is due, and comes back while there is more: one event in each round of
  // the loop, so that clients' frames and other agents' work come in between.
  void pump();
  void give_back_permits();
  // ---- room (agent_slot_room.cpp) ----
  // True: not now. It waits in the line, or what waits for it has been told.
  bool lacks_room();
  // It had its turn, and somebody else took the descriptors that were there.
  void rejoin_room_line();
  // Does nothing if it is not in it. Whoever waits for the agent's time asks again.
  void leave_room_line();
  void refuse_for_room(RoomLack lack);
  // ---- versions (agent_slot_versions.cpp) ----
  // Goes now if it must, and with `wake_again` comes back at once.
  void leave_now(bool wake_again);
  void leave_while_idle();
  // What waits is told that the agent failed to start on `version`, now or when it is certain that
  // this version stays; if another one is served by now, that gets it.
  void start_failed(const std::shared_ptr<StartCounts>& version, Error failure);
  // It has failed to start on this version, and may yet get another one.
  [[nodiscard]] bool awaits_decision(const ServedClass& version) const;
  void forget_failed_start();

  const Parts parts_;
  const storage::AgentKey key_;
  const std::string segment_;
  AgentInbox inbox_;
  AgentLife life_;
  std::vector<AgentVisit> visits_;  // until it is live or cold
  HeldPermits permits_;             // from the line for room until it is gone
  bool settling_ = false;           // after_turn() is on the stack, or must do nothing now
  SteadyTime last_activity_;
};

}  // namespace hearth::runtime
