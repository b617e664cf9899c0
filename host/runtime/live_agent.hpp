#pragma once
// An agent that is in memory: its store, its code, and its work in progress, put together. For
// visits alone it is only opened: its store is loaded, without start(), and no instance is made.

#include "extensions/agent_context.hpp"
#include "extensions/wait.hpp"
#include "runtime/agent_calls.hpp"
#include "runtime/agent_class.hpp"
#include "runtime/agent_clients.hpp"
#include "runtime/agent_code.hpp"
#include "runtime/agent_effects.hpp"
#include "runtime/agent_operations.hpp"
#include "runtime/agent_store.hpp"
#include "runtime/agent_visit.hpp"
#include "runtime/class_settings.hpp"
#include "runtime/live_context.hpp"
#include "runtime/state_changes.hpp"
#include "runtime/work_delivery.hpp"

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace hearth::runtime {

class AgentInbox;
struct ShardServices;

// What each part promises stands with it: turns and commits in AgentStore, entries in AgentCode,
// answers in AgentCalls. When storage fails, the slot evicts the agent.
//
// Threads    The shard's.
// Lifetime   Owned by its slot. shut() and AgentCommits::close() come before destruction.
class LiveAgent {
 public:
  // What it uses of its slot. All of it outlives the live agent.
  struct Parts {
    const storage::AgentKey& key;
    const std::string& segment;  // how URLs name the class
    ShardServices& services;
    AgentInbox& inbox;  // its clients, and the events that wait
    // No plugin code of this agent is on the stack any more: handles the results, then delivers the
    // events that wait. Does not destroy the live agent.
    std::function<void()> after_turn;
    // Durable work of the agent may be due: a task of the loop looks soon.
    std::function<void()> look;
  };

  // Opens the database. Throws StorageError.
  LiveAgent(const Parts& parts, std::shared_ptr<const AgentClass> agent_class,
            const ClassSettings& settings, AgentHandle handle);
  ~LiveAgent();

  // ---- its parts ----
  [[nodiscard]] AgentStore& store() { return store_; }
  [[nodiscard]] LiveContext& context() { return context_; }
  [[nodiscard]] AgentCalls& calls() { return calls_; }

  // ---- the way in ----
  // Makes the instance and delivers START, all under this span. The result is a Completion of kind
  // kStart. If the data has an older schema version of the class, it delivers MIGRATE first
  // (hearth/ext/schema.h): the result is a Completion of kind kMigrate, to be given to migrated().
  // If the data has a newer version: kUnavailable.
  Result<void> start(const extensions::Span& span);
  // Whether the class knows the schema version of the agent's data. Clients may see the error.
  [[nodiscard]] Result<void> check_schema();
  // MIGRATE has ended: commits its writes, with the new version, and delivers START. If MIGRATE
  // failed, its writes are never committed. Throws StorageError.
  Result<void> migrated(const Completion& ended);

  // ---- events. The slot has checked that they may be delivered ----
  // One that began at `now`.
  void deliver(Event incoming, SteadyTime now);
  // Lets a waiting client in: CONNECTING, handshake, CONNECT. False: the client was refused and
  // closed.
  bool admit(Connection& connection, SteadyTime now);
  void deliver_post(std::uint64_t token);
  // Ends a call in progress with this error, and cancels it in the instance. Does nothing if the
  // call has ended.
  void abandon(CallId call, const Error& why);
  // Delivers kEvict. The result is a Completion of that kind.
  void ask_to_leave(EvictReason reason, std::chrono::milliseconds grace);
  // WorkDelivery::begin(), with its event. Durable work and clients' events have limits of their
  // own, do not wait for each other, and take turns on the loop. False: nothing begins now.
  bool dispatch(bool may_recover, bool may_notify);
  // Does what an administrator wants with the agent's data, now or after AgentStore::take_back().
  // The visit's sink gets the result.
  void receive(AgentVisit& visit);
  // What it waits for, but for its durable work.
  [[nodiscard]] std::vector<extensions::Wait> waits();

  // No event is in progress and no effect is held back.
  [[nodiscard]] bool idle();
  [[nodiscard]] bool entered() const { return code_.on_stack().entered(); }

  // ---- the way out ----
  // Once, before shut(): commits. The store may be lent afterwards (AgentStore::finish).
  void finish_turns(EvictReason reason);
  // Answers every call in progress with `why`, except those that are delivered again. Cancels
  // everything and destroys the instance. Afterwards only the store may be used, for
  // AgentCommits::close().
  // Returns the interrupted events that are delivered again, in the order of their delivery. These
  // are CONNECT, and a call of an idempotent method (AgentClass::is_idempotent) whose caller still
  // waits and has seen no part of its answer. None after kHung, kShutdown and kDestroyed, and when
  // storage has failed.
  [[nodiscard]] std::vector<OwnedEvent> shut(EvictReason reason, const Error& why);

 private:
  // Begins a call for an event of the agent's own life, and delivers it.
  void deliver_own(AgentEvent event, extensions::Span span, std::chrono::milliseconds time);
  void write_state_of_client(Event& incoming);
  [[nodiscard]] bool is_let_in(Connection& connection);
  // Delivers the event of a call, which is in progress since this turn.
  void accept_call(const AgentEvent& event);
  Result<void> enter(const AgentEvent& event, const extensions::Span& span = {});
  // Ends a turn.
  void leave();
  void ended(const CallInProgress& call, const Result<std::string_view>& outcome);
  void time_out(CallId id);
  // Tells the instance, if it may hear it.
  void tell(OperationNews news);

  const Parts parts_;
  AgentStore store_;
  AgentClients clients_;
  AgentOperations operations_;
  AgentCode code_;
  AgentCalls calls_;
  WorkDelivery work_;
  StateChanges state_;
  AgentEffects effects_;
  LiveContext context_;
};

}  // namespace hearth::runtime
