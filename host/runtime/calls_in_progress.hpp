#pragma once
// The events of one agent that are in progress, with their callers.

#include "base/client_memory.hpp"
#include "base/slot_map.hpp"
#include "extensions/durable_work.hpp"
#include "extensions/open_span.hpp"
#include "extensions/trace.hpp"
#include "extensions/types.hpp"
#include "runtime/call_sink.hpp"
#include "runtime/event.hpp"
#include "runtime/shard_loop.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace hearth::runtime {

// One event in progress: from its delivery until its answer. Also events without a caller.
struct CallInProgress {
  EventKind kind{};
  std::string method;  // of a call or a request: its beginning, for the log
  ConnectionId connection = 0;
  bool is_readonly = false;  // its client has left, and was read-only
  extensions::OriginPtr origin;
  // The span of the event, and of operations that it has begun. Those may go on when it is over.
  extensions::Span span;
  extensions::OpenSpan traced;  // the record of that span
  std::shared_ptr<CallSink> sink;
  std::unique_ptr<RequestHead> request;
  ResponseHead head;
  std::optional<extensions::CallKey> retry_key;  // under which its answer is kept
  std::unique_ptr<extensions::DueWork> work;     // set by begin_work(); null: a client's event
  bool part_sent = false;
  bool runs_alone = false;           // set by run_alone()
  std::unique_ptr<OwnedEvent> copy;  // for a second delivery
  std::uint64_t copied = 0;          // the number of that copy
  Interruptions interruptions;
  TimerId deadline = 0;
  std::chrono::milliseconds timeout{0};  // for the whole answer, or until the next part; 0: none
  SteadyTime due{};                      // when `timeout` is over
  SteadyTime began;                      // if its kind is_timed
};

// Promises
//  P1 Counted  size(), client_events(), runs_method() and runs_alone() are true between any two
//              calls of this class.
//  P2 Timers   The deadline of a call that has ended does not run.
//  P3 Again    take_interrupted() gives the events that interrupt() has cut off, and no other, in
//              the order in which they were kept.
//  P4 Bounded  It keeps at most max_kept calls, with at most max_kept_bytes in their names, bodies
//              and claims, which are on the account of client memory.
//
// P4: A call beyond these bounds, or while that account is overdrawn, is not delivered again.
//
// Threads    The shard's.
// Lifetime   The constructor arguments outlive it.
class CallsInProgress {
 public:
  CallsInProgress(ShardLoop& loop, ClientMemory& memory, std::size_t max_kept,
                  std::size_t max_kept_bytes)
      : loop_(loop),
        memory_(memory),
        max_kept_(max_kept),
        max_kept_bytes_(max_kept_bytes),
        held_(memory) {}

  // The call is valid until end().
  std::pair<CallId, CallInProgress&> begin(EventKind kind, const extensions::Span& span);
  // This call runs alone (extensions/call_order.hpp). Before its code begins.
  void run_alone(CallInProgress& call);
  // This call delivers durable work.
  void begin_work(CallInProgress& call, extensions::DueWork work);
  // `call` is not valid afterwards.
  void end(CallId id, CallInProgress& call);

  [[nodiscard]] CallInProgress* find(CallId id) { return calls_.find(id); }
  [[nodiscard]] const CallInProgress* find(CallId id) const { return calls_.find(id); }
  template <class Visit>
  void for_each(const Visit& visit) {
    calls_.for_each(visit);
  }
  template <class Visit>
  void for_each(const Visit& visit) const {
    calls_.for_each(visit);
  }

  [[nodiscard]] std::size_t size() const { return calls_.size(); }
  [[nodiscard]] bool empty() const { return calls_.empty(); }
  // Those that are no durable work.
  [[nodiscard]] std::size_t client_events() const { return calls_.size() - work_; }
  // A call or a request is in progress; and one that runs alone is in progress.
  [[nodiscard]] bool runs_method() const { return methods_ > 0; }
  [[nodiscard]] bool runs_alone() const { return alone_ > 0; }

  // ---- deadlines ----
  // Runs `time_out` after `timeout`, in place of an earlier deadline. 0: no deadline any more.
  void arm_deadline(CallInProgress& call, std::chrono::milliseconds timeout,
                    std::function<void()> time_out);
  void disarm_deadline(CallInProgress& call);

  // ---- events that are delivered again if the agent is evicted before they end ----
  // See promise P6 of AgentSlot: the callers only notice a longer wait. Keeps a copy of an event
  // that goes on beyond its first turn. `is_idempotent`: of the method, if it has one.
  void keep_if_interruptible(CallInProgress& call, const AgentEvent& event, bool is_idempotent);
  void forbid_another_try(CallInProgress& call);
  // The end of the instance cuts the call off. False: no copy is kept.
  bool interrupt(CallInProgress& call);
  [[nodiscard]] std::vector<OwnedEvent> take_interrupted();

 private:
  void release(const OwnedEvent& copy);

  ShardLoop& loop_;
  ClientMemory& memory_;
  const std::size_t max_kept_;
  const std::size_t max_kept_bytes_;
  SlotMap<CallInProgress> calls_;
  std::size_t work_ = 0;
  std::size_t methods_ = 0;
  std::size_t alone_ = 0;
  std::size_t kept_ = 0;  // calls with a copy
  HeldBytes held_;        // for these copies
  std::uint64_t last_copy_ = 0;
  std::map<std::uint64_t, OwnedEvent> interrupted_;  // by the number of the copy
};

}  // namespace hearth::runtime
