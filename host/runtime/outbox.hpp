#pragma once
// The one way out of an agent: what it sends waits here until what it wrote before is durable.

#include "base/client_memory.hpp"
#include "base/error.hpp"
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
  std::uint64_t state_write = 0;  // of a frame that shows the state: which write of it
};

// The end of a connection, after what was sent to it.
struct CloseEffect {
  ConnectionId connection = 0;
  std::uint16_t code = 0;
  std::string reason;
};

// The protocol's first frames to a new client.
struct HandshakeEffect {
  ConnectionId connection = 0;
  std::optional<std::string> state;  // as it was when the client was let in
};

// A part of a streaming answer. The call may be over when it leaves; then it is dropped.
struct PartEffect {
  std::shared_ptr<CallSink> sink;  // shared with the call that goes on
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

// A job for the blocking pool: code that may reach the outside on its own.
struct JobEffect {
  OperationId operation = 0;
  std::uint64_t job = 0;
  std::shared_ptr<std::atomic<bool>> abandoned;  // set when no waiter is left
  std::optional<std::int64_t> fiber{};           // whose work has submitted it: JobOrigin::fiber
};

// An operation that goes on outside of the agent. One that was cancelled meanwhile is not started.
struct RemoteEffect {
  OperationId operation = 0;
};

// A wait until the client of a call has taken what was sent before. Without a sink: until all that
// was sent before is on its way.
struct DrainEffect {
  OperationId operation = 0;
  std::shared_ptr<CallSink> sink{};
  ConnectionId connection = 0;  // the caller's, or 0
};

using Effect = std::variant<FrameEffect, CloseEffect, HandshakeEffect, PartEffect, FinishEffect,
                            JobEffect, DrainEffect, RemoteEffect>;

// Bytes of its texts and addressees.
[[nodiscard]] std::size_t bytes_of(const Effect& effect);

// What the outbox asks of its agent.
class OutboxOwner {
 public:
  OutboxOwner() = default;
  virtual ~OutboxOwner() = default;
  OutboxOwner(const OutboxOwner&) = delete;
  OutboxOwner& operator=(const OutboxOwner&) = delete;

  // Are there writes that are not committed yet?
  [[nodiscard]] virtual bool dirty() const = 0;
  // Commits them. Throws StorageError.
  virtual void commit() = 0;
  // Lets an effect out. Does not call back into the outbox.
  virtual void apply(Effect& effect) = 0;
  // The effect will never leave, since the writes before it were lost.
  virtual void discard(Effect& effect) = 0;
  // The gate has said yes, and nothing waits for a later answer: all that was committed is durable.
  // Without a gate never.
  virtual void all_durable() = 0;
  // The gate has said no: what was committed may not be durable.
  virtual void durability_lost() = 0;
};

// Promises
//  P1 Gate     No effect is applied before every write that preceded it is committed and, with a
//              gate, durable.
//  P2 Order    Effects are applied in the order pushed.
//  P3 Open     With nothing uncommitted and nothing held, push() applies at once: reading costs no
//              wait.
//  P4 Answer   Each effect is applied or discarded, exactly once.
//  P5 Account  With a gate, the bytes of what is held are on the account of client memory. Nothing
//              is refused for them: the owner asks is_crowded() before it delivers more.
//
// Threads     The agent's shard.
// Lifetime    The owner and the memory outlive it. Answers of the gate that come after destruction
//             are ignored.
class Outbox {
 public:
  // `gate` may be null (durability `process`): then a commit opens the outbox. Not owned.
  Outbox(OutboxOwner& owner, DurabilityGate* gate, ClientMemory& memory);
  ~Outbox();
  Outbox(const Outbox&) = delete;
  Outbox& operator=(const Outbox&) = delete;

  void push(Effect effect);

  // True if an effect pushed now would be applied at once (P3): the caller may then skip building
  // it.
  [[nodiscard]] bool open() const;

  // Commits what is uncommitted and lets out what that frees. Throws StorageError; then call
  // discard_all().
  void flush();

  // With a gate: what is pushed from now on waits as if something had been committed just now.
  // Nothing is uncommitted.
  void hold_back();

  // The agent has rolled back each write of its state after this one: the frames that would show
  // them go, as if they had never been pushed. They are of the transaction that is open, so no
  // answer of the gate is about them.
  void withdraw_states(std::uint64_t last_write);

  // Nothing leaves any more: discards what is held and whatever is pushed later.
  void discard_all();

  [[nodiscard]] bool empty() const { return held_.empty(); }
  // So much waits for the gate that nothing should add to it before some of it has left: 4096
  // effects, 4 MiB, or what the account refuses while it is overdrawn. Without a gate never.
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
  HeldBytes bytes_;              // with a gate: of held_
  std::uint64_t first_ = 1;      // the number of held_.front()
  std::uint64_t requested_ = 0;  // effects up to this number wait for an answer of the gate
  bool discarding_ = false;
  std::shared_ptr<Outbox*> self_;  // the gate's answers reach us through it; null after destruction
};

}  // namespace hearth::runtime
