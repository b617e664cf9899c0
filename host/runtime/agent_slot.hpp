#pragma once
// One agent's place on its shard: the life cycle, the start gate, and the clients that stay while
// the agent comes and goes.

#include "base/error.hpp"
#include "runtime/admission.hpp"
#include "runtime/alarm_clock.hpp"
#include "runtime/class_registry.hpp"
#include "runtime/event_queue.hpp"
#include "runtime/live_agent.hpp"
#include "runtime/migration.hpp"
#include "runtime/types.hpp"
#include "storage/agent_key.hpp"

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace hearth::runtime {

class PacedSteps;
class Shard;  // NOLINT(cppcoreguidelines-virtual-class-destructor): it is final

// state      what is true                                  leaves it
// kCold      no live agent, no event waits                 wake(): an event came
// kWaking    live agent made, START in progress            started(): START completed, or failed
// kLive      events are delivered                          evict(), fail(): see EvictReason
// kEvicting  no event is delivered; EVICT in progress, or  finish_eviction(), from the loop
//            the end is posted
enum class AgentState { kCold, kWaking, kLive, kEvicting };

// Promises
//  P1 One path   There is one way in (wake) and one way out (finish_eviction), whatever the reason.
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
//                gets it, or, if that is the same, it is told.
//  P5 Destroyed  After an agent has asked to be destroyed it gets no event; what it answered before
//                leaves, its clients are closed with 4410, and requests and clients that it never
//                knew meet a new, empty agent of its name.
//  P6 Again      What an eviction cuts off is delivered again to the next instance, if it is a
//                CONNECT, or a call of a method that the evicted code had exported as idempotent
//                and of whose answer no part was emitted. It comes before what waits, in the order
//                of the first delivery, and the client's handshake is not sent again. All other
//                calls are answered kClosing, "try again"; so are these after kHung or when storage
//                has failed (then as P4 of LiveAgent says), and those for which P3 leaves no room.
//                After kShutdown and kDestroyed nothing comes again. Its time goes on:
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
//
// Threads    The shard's. Lifetime  Owned by the shard, while it is not cold or has clients.
class AgentSlot final : public Admission::Applicant, public MovingAgent {
 public:
  static constexpr unsigned kMostAtOnce = 64;
  static constexpr std::chrono::milliseconds kLongestAtOnce{5};

  AgentSlot(Shard& shard, storage::AgentKey key, std::string segment);
  ~AgentSlot();
  AgentSlot(const AgentSlot&) = delete;
  AgentSlot& operator=(const AgentSlot&) = delete;

  [[nodiscard]] const storage::AgentKey& key() const override { return key_; }
  [[nodiscard]] const std::string& segment() const { return segment_; }
  [[nodiscard]] AgentState state() const { return state_; }
  [[nodiscard]] const std::vector<ConnectionId>& connections() const { return connections_; }
  [[nodiscard]] LiveAgent* live() { return live_.get(); }
  // When an event last came, or a turn ended. The clock is read for it once each time: who delivers
  // need not read it again.
  [[nodiscard]] SteadyTime last_activity() const { return last_activity_; }

  // Delivers the event, or queues it and wakes the agent.
  void accept(Event incoming);

  // A new client, in state kWaiting. The CONNECT event follows by itself.
  void connect(ConnectionId id);
  // Its socket is gone. The connection is forgotten once the agent has seen CLOSE, or never knew
  // it.
  void disconnected(ConnectionId id, std::uint16_t code, std::string_view reason, bool was_clean);

  // Starts the way out of a live agent; does nothing in any other state. With `sudden` no EVICT
  // event is sent.
  void evict(EvictReason reason, bool sudden = false);

  // ---- Admission::Applicant (agent_slot_room.cpp) ----
  [[nodiscard]] bool may_leave_for_room() const override;
  void leave_for_room() override;
  [[nodiscard]] bool is_wanted() const override;
  void come_in() override;
  void turn_away(RoomLack lack) override;

  // ---- MovingAgent: another version of its class, or none (agent_slot_versions.cpp) ----
  [[nodiscard]] const ServedClass* version() const override { return served_.get(); }
  void must_leave(EvictReason reason, bool when_idle) override;
  void leave_here() override;
  void leave_suddenly(EvictReason reason) override;
  void may_try(const std::shared_ptr<VersionTrial>& trial) override;
  // Goes now if it must, and with `wake_again` comes back at once.
  void leave_now(bool wake_again);
  // It has been decided which version stays: what waits behind a start that failed need wait no
  // longer.
  void trial_is_over();
  // The class that it waited for is back, or is waited for no longer: then its clients are told to
  // come again later.
  void class_is_back();
  void class_is_gone();

  // Something of a live agent's durable work may be due: looked at soon, from the loop. In other
  // states nothing: an agent looks when it has started.
  void look();

  // The state was replaced, by its write of this number: a STATE_CHANGED event follows this turn.
  // `chain`: of the handler that did it, else null (EventFreight).
  void state_changed(ConnectionId source, std::string_view json, std::uint64_t state_write,
                     std::shared_ptr<unsigned> chain);
  // All writes of it after this one were rolled back: their events do not come.
  void states_undone(std::uint64_t last_write);

  // No plugin code of this agent is on the stack: acts on what happened, then delivers what waits.
  void after_turn();

  // The server stops: refuses what waits; evicts at once what is not busy.
  void begin_shutdown();

 private:
  friend class Shard;

  void wake();
  [[nodiscard]] bool is_unused() const {
    return state_ == AgentState::kCold && connections_.empty() && queue_.empty() && !room.waiting;
  }
  // ---- room (agent_slot_room.cpp) ----
  bool lacks_room();
  // It had its turn, and somebody else took the descriptors that were there.
  void rejoin_room_line();
  // Does nothing if it is not in it. Whoever waits for the agent's time asks again.
  void leave_room_line();
  void refuse_for_room(RoomLack lack);
  void settle();
  void after_settling();
  // What events that wait for the agent's start are told; nothing once it has started.
  [[nodiscard]] std::optional<Error> if_waking(const char* why) const;
  void completed(const Completion& completion);
  void migrated(const Completion& completion);
  void started(const Completion& completion);
  void connected(const Completion& completion);
  bool deliver_next();
  // This turn of the loop has brought enough: what waits goes on in the next one (P7).
  void go_on_later();
  void deliver(OwnedEvent event);
  [[nodiscard]] bool deliverable(EventKind kind, ConnectionId connection) const;
  // Tells what waits that it waits in vain.
  void refuse_waiting(const Error& error, std::uint16_t close_code);
  void refuse(const std::vector<OwnedEvent>& events, const Error& error, std::uint16_t close_code);
  void refuse_strangers();
  // ---- versions on trial (agent_slot_versions.cpp) ----
  // What waits is told that the agent failed to start on `version`, now or when it is certain that
  // this version stays; if another one is served by now, that gets it.
  void start_failed(const std::shared_ptr<StartCounts>& version, Error failure);
  // It has failed to start on this version, and may yet get another one.
  [[nodiscard]] bool awaits_decision(const ServedClass& version) const;
  void forget_failed_trial();
  void leave_while_idle();
  void leave_trial();
  void schedule_end(EvictReason reason, std::optional<Error> start_failure);
  void post_end();
  // The end of an idle one is a step among others, so it may take its time.
  void end_in_turn(PacedSteps& steps);
  // Somebody waits for it now.
  void hurry_end();
  void finish_eviction();
  // The rest of it, once its last answers have left; and once the database is closed. `trouble` is
  // what closing met with, or empty.
  struct Ending;
  void end_instance(Ending ending);
  void closed(const Ending& ending, const std::string& trouble);
  void note_kept(bool destroyed);
  void part_with_the_known();
  // What a call in progress is told. Nobody should try again by himself after a destruction: he
  // would meet a new agent.
  [[nodiscard]] static Error why_it_ended(EvictReason reason);
  void forget(ConnectionId id);
  // ---- what was cut off (agent_slot_interrupted.cpp) ----
  void put_back(std::vector<OwnedEvent> events);
  // The time of some that wait may be over.
  void expire_interrupted();
  void watch_interrupted();
  // It will not be delivered again.
  void give_up(const OwnedEvent& event);
  void part_with_unconnected(Connection& client);
  void touch();
  void arm_idle_timer(SteadyTime due);
  void idle_timer_fired();

  Shard& shard_;
  const storage::AgentKey key_;
  const std::string segment_;
  AgentState state_ = AgentState::kCold;
  std::shared_ptr<const ServedClass> served_;  // while not cold
  std::unique_ptr<LiveAgent> live_;            // while not cold
  AgentHandle handle_ = 0;
  EventQueue queue_;
  bool goes_on_later_ = false;             // posted: nothing is taken from the queue before
  TimerId interrupted_timer_ = 0;          // for the first of queue_ whose time is over
  std::vector<ConnectionId> connections_;  // in the order of arrival
  EvictReason reason_ = EvictReason::kIdle;
  std::optional<Error> start_failure_;    // while evicting: why the start failed
  bool tells_start_failure_ = false;      // ... and clients are told
  std::optional<EvictReason> leave_for_;  // must_leave()
  bool leave_when_idle_ = false;
  std::shared_ptr<VersionTrial> trial_;  // may_try(): it was busy
  // A start that failed on a version that is on trial, while cold. The counts tell versions apart,
  // and keep no code.
  struct FailedTrial {
    std::shared_ptr<StartCounts> version;
    Error failure;
  };
  std::optional<FailedTrial> failed_trial_;
  TimerId trial_timer_ = 0;  // runs while there is one: nobody has decided
  bool wake_again_ = false;
  bool end_posted_ = false;
  bool end_waits_ = false;  // for its turn: end_in_turn()
  bool ends_here_ = false;  // leave_here()
  bool settling_ = false;
  bool trimmed_ = false;
  HeldPermits permits_;
  bool pump_posted_ = false;
  SteadyTime last_activity_;
  TimerId idle_timer_ = 0;
  bool wakes_for_itself_ = false;  // no event waited when it joined the line for room
  bool lost_descriptors_ = false;
};

}  // namespace hearth::runtime
