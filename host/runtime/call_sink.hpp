#pragma once
// Where the answer to one event goes: an RPC reply, an HTTP response, or the start gate.

#include "base/error.hpp"
#include "extensions/trace.hpp"
#include "runtime/types.hpp"

#include <functional>
#include <string_view>

namespace hearth::runtime {

// Contract   part() any number of times, then finish() exactly once, or neither if the caller has
//            left. Both are called only when everything the agent wrote before is as durable as its
//            class asks.
// Threads    The agent's shard. Neither may call back into the runtime.
// Lifetime   Owned by the runtime until finish(). A sink that belongs to a connection is never used
//            after that connection's port was destroyed.
class CallSink {
 public:
  CallSink() = default;
  virtual ~CallSink() = default;
  CallSink(const CallSink&) = delete;
  CallSink& operator=(const CallSink&) = delete;

  // The agent's code is about to begin the event, as this call and span: again, if it was cut off
  // before.
  virtual void begun(CallId /*call*/, const extensions::Span& /*span*/) {}

  // The caller is gone, so that the parts of the answer need not be made. Advice: it may come late
  // or never, and finish() is due all the same.
  [[nodiscard]] virtual bool abandoned() const { return false; }

  // One part of a streaming answer: a JSON value for a method call, bytes of the body for a
  // request.
  virtual void part(const ResponseHead& head, std::string_view body) = 0;

  // Calls `notice` once, on whatever thread, when the client has taken most of the parts, or is
  // gone. What it does with that must not depend on where it is called, not even inside this call.
  // NOLINTNEXTLINE(performance-unnecessary-value-param): others keep it
  virtual void when_drained(std::function<void()> notice) { notice(); }

  // The end. For a method call the value is JSON text or empty for "no value"; for a request the
  // rest of the body. `head` has meaning for requests; for a call with a key that did not run, its
  // status says why (409, 422, 429), or a header that the answer is a stored one.
  virtual void finish(const ResponseHead& head, const Result<std::string_view>& outcome) = 0;
};

}  // namespace hearth::runtime
