#pragma once
// The only way out of an agent: its effects wait here until its earlier writes are durable.

#include "base/client_memory.hpp"
#include "base/error.hpp"
#include "base/interface.hpp"
#include "base/work_mark.hpp"
#include "runtime/call_sink.hpp"
#include "runtime/durability_gate.hpp"
#include "runtime/types.hpp"

#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

namespace hearth::runtime {

// A frame to some clients.
struct FrameEffect {
  std::vector<ConnectionId> to;
  std::string payload;
  FrameKind kind = FrameKind::kText;
  std::uint64_t state_write = 0;  // of a frame that shows the state: the number of its write
};

// The end of a connection, after the frames sent before.
struct CloseEffect {
  ConnectionId connection = 0;
  std::uint16_t code = 0;
  std::string reason;
};

// The protocol's first frames to a new client.
struct HandshakeEffect {
  ConnectionId connection = 0;
  std::optional<std::string> state;  // the state when the client was let in
};

// A part of a streaming answer. Dropped if the call is over when the part leaves.
struct PartEffect {
  std::shared_ptr<CallSink> sink;  // shared with the call, which goes on
  ConnectionId connection = 0;     // the caller's, or 0
  ResponseHead head;
  std::string body;
};

// The end of a call.
struct FinishEffect {
  std::shared_ptr<CallSink> sink;
  ConnectionId connection = 0;
  ResponseHead head;
  Result<std::string> outcome = std::string();
};

// A job for the blocking pool: its code may reach the outside by itself.
struct OffloadEffect {
  OperationId operation = 0;
  std::uint64_t job = 0;
  std::shared_ptr<std::atomic<bool>> abandoned;  // set when no waiter is left
  std::optional<WorkMark> work{};  // of the code that submitted it: OffloadOrigin::work
};

// An operation outside of the agent. Not started if it was cancelled meanwhile.
struct RemoteEffect {
  OperationId operation = 0;
};

// A wait until a client has taken what was sent before: the client of a call, or without a sink the
// client of the connection. With neither: until everything sent before is on its way.
struct DrainEffect {
  OperationId operation = 0;
  std::shared_ptr<CallSink> sink{};
  ConnectionId connection = 0;  // the caller's, or 0
};

using Effect = std::variant<FrameEffect, CloseEffect, HandshakeEffect, PartEffect, FinishEffect,
                            OffloadEffect, DrainEffect, RemoteEffect>;

// Bytes of its texts and of its list of receivers.
[[nodiscard]] std::size_t bytes_of(const Effect& effect);

// What the outbox needs from its agent.
class OutboxOwner : public Interface {
 public:
  // Whether there are uncommitted writes.
  [[nodiscard]] virtual bool dirty() const = 0;
  // Lets an effect out. Must not call back into the outbox.
  virtual void apply(Effect& effect) = 0;
  // The effect will never leave, because the writes before it were lost.
  virtual void discard(Effect& effect) = 0;
  // The gate has answered, and nothing waits for a later answer: all commits are durable. False:
  // it has failed, and commits may not be durable. Not called without a gate.
  virtual void synced(bool ok) = 0;
};

// Promises
//  P1 Gate    No effect is applied before every earlier write is committed and, with a gate,
//             durable.
//  P2 Order   Effects are applied in the order pushed.
//  P3 Open    If nothing is uncommitted and nothing is held, push() applies at once: reading costs
//             no wait.
//  P4 Answer  Each effect is applied or discarded, exactly once.
//  P5 Account With a gate, the bytes of held effects are on the account of client memory.
//
// P5: The outbox refuses no effect for memory. Instead, the owner checks is_crowded() before it
// delivers more events.
//
// Threads     The agent's shard.
// Lifetime    The owner and the memory outlive it. Answers of the gate that come after destruction
//             are ignored.
class Outbox {
 public:
  // `gate`: null with durability `process`: then a commit opens the outbox. Not owned.
  Outbox(OutboxOwner& owner, DurabilityGate* gate, ClientMemory& memory);
  ~Outbox();
  Outbox(const Outbox&) = delete;
  Outbox& operator=(const Outbox&) = delete;

  void push(Effect effect);

  // True if push() would apply an effect at once (P3). The caller may then skip building it.
  [[nodiscard]] bool open() const;

  // The owner has committed, if anything was uncommitted (`wrote`): lets out the effects that
  // waited for it. After a commit that has failed, call discard_all() instead.
  void committed(bool wrote);

  // With a gate, and nothing uncommitted: effects pushed from now on wait as after a new commit.
  void hold_back();

  // The agent has rolled back each write of its state after this one: drops the frames that would
  // show those writes. The frames belong to the open transaction, so no answer of the gate is
  // pending for them.
  void withdraw_states(std::uint64_t last_write);

  // Nothing leaves any more: discards the held effects and all later ones.
  void discard_all();

  [[nodiscard]] bool empty() const { return held_.empty(); }
  // So much waits for the gate that more effects should wait until some has left: 4096 effects, 4
  // MiB, or the account's limit while it is overdrawn. Always false without a gate.
  [[nodiscard]] bool is_crowded() const;

 private:
  void hold(Effect effect);
  Effect take_first();
  void request(std::uint64_t up_to);
  void release(std::uint64_t up_to);
  void durable(std::uint64_t up_to, bool ok);

  OutboxOwner& owner_;
  DurabilityGate* gate_;
  std::deque<Effect> held_;
  HeldBytes bytes_;              // with a gate: for held_
  std::uint64_t first_ = 1;      // the number of held_.front()
  std::uint64_t requested_ = 0;  // effects up to this number wait for an answer of the gate
  bool discarding_ = false;
  std::shared_ptr<Outbox*> self_;  // the gate's answers reach us through it; null after destruction
};

}  // namespace hearth::runtime
