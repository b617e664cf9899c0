#pragma once
// The only way out of an agent: its effects wait here until its earlier writes are durable.

#include "base/client_memory.hpp"
#include "base/error.hpp"
#include "base/interface.hpp"
#include "base/work_mark.hpp"
#include "runtime/call_sink.hpp"
#include "runtime/types.hpp"

#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
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

// Where effects go.
class EffectPort : public Interface {
 public:
  // Lets an effect out. Must not call back into the outbox.
  virtual void apply(Effect& effect) = 0;
  // The effect will never leave, because the writes before it were lost.
  virtual void discard(Effect& effect) = 0;
};

// Promises
//  P1 Gate    No effect is applied before every earlier write is committed and, if the outbox
//             awaits the device, durable.
//  P2 Order   Effects are applied in the order pushed.
//  P3 Open    If nothing is uncommitted and nothing is held, push() applies at once: reading costs
//             no wait.
//  P4 Answer  Each effect is applied or discarded, exactly once.
//  P5 Account If it awaits the device, the bytes of held effects are on the account of client
//             memory.
//
// P5: The outbox refuses no effect for memory. Instead, the owner checks is_crowded() before it
// delivers more events.
//
// Threads     The agent's shard.
// Lifetime    The port and the memory outlive it.
class Outbox {
 public:
  // A number of effects, counted from the agent's first. For each that is not 0 the device is asked
  // to sync, and durable() gets the answer.
  using Mark = std::uint64_t;

  // `dirty`: whether there are uncommitted writes. `awaits_device` false: durability `process`, a
  // commit alone opens the outbox.
  Outbox(EffectPort& port, std::function<bool()> dirty, bool awaits_device, ClientMemory& memory);
  ~Outbox();
  Outbox(const Outbox&) = delete;
  Outbox& operator=(const Outbox&) = delete;

  void push(Effect effect);

  // True if push() would apply an effect at once (P3). The caller may then skip building it.
  [[nodiscard]] bool open() const;

  // All is committed, and something was uncommitted before (`wrote`): lets out the effects that
  // waited for it alone. After a commit that has failed, call discard_all() instead.
  [[nodiscard]] Mark committed(bool wrote);

  // If it awaits the device, and nothing is uncommitted: effects pushed from now on wait as after a
  // new commit.
  [[nodiscard]] Mark hold_back();

  // The device has all that was committed before this mark was given; marks come in their order.
  // True: no later one is awaited, so all commits are durable.
  bool durable(Mark up_to);

  // The agent has rolled back each write of its state after this one: drops the frames that would
  // show those writes. The frames belong to the open transaction, so no mark is pending for them.
  void withdraw_states(std::uint64_t last_write);

  // Nothing leaves any more: discards the held effects and all later ones.
  void discard_all();

  [[nodiscard]] bool empty() const { return held_.empty(); }
  // So much waits for the device that more effects should wait until some has left: 4096 effects, 4
  // MiB, or the account's limit while it is overdrawn. False if it does not await the device.
  [[nodiscard]] bool is_crowded() const;

 private:
  void hold(Effect effect);
  Effect take_first();
  [[nodiscard]] Mark last() const { return first_ + held_.size() - 1; }
  void release(Mark up_to);

  EffectPort& port_;
  const std::function<bool()> dirty_;
  const bool awaits_device_;
  std::deque<Effect> held_;
  HeldBytes bytes_;     // if it awaits the device: for held_
  Mark first_ = 1;      // the number of held_.front()
  Mark requested_ = 0;  // effects up to this number wait for the device
  bool discarding_ = false;
};

}  // namespace hearth::runtime
