#pragma once
// The receiver of an event's answer: an RPC reply, an HTTP response, or the start gate.

#include "base/error.hpp"
#include "base/interface.hpp"
#include "extensions/trace.hpp"
#include "runtime/types.hpp"

#include <functional>
#include <string_view>

namespace hearth::runtime {

// Contract   part() any number of times, then finish() exactly once, or neither if the caller has
//            left. Both come only after all earlier writes of the agent are as durable as its class
//            asks.
// Threads    The agent's shard. Neither may call back into the runtime.
// Lifetime   Owned by the runtime until finish(). A sink of a connection is not used after the
//            connection's port was destroyed.
class CallSink : public Interface {
 public:
  // The agent's code is about to begin the event, as this call and span. Comes again if the event
  // was cut off and is delivered again. `shows_failures`: ClassSettings::show_failures.
  virtual void begun(CallId /*call*/, const extensions::Span& /*span*/, bool /*shows_failures*/) {}

  // The caller is gone, so that parts of the answer are not needed. A hint: it may come late or
  // never, and finish() is called all the same.
  [[nodiscard]] virtual bool abandoned() const { return false; }

  // One part of a streaming answer: a JSON value for a method call, bytes of the body for a
  // request.
  virtual void part(const ResponseHead& head, std::string_view body) = 0;

  // Calls `notice` once, on any thread, when the client has taken most of the parts, or is gone.
  // `notice` must work on any thread, and even inside this call.
  // NOLINTNEXTLINE(performance-unnecessary-value-param): others keep it
  virtual void when_drained(std::function<void()> notice) { notice(); }

  // The end. For a method call the value is JSON text, or empty for "no value". For a request it is
  // the rest of the body. `head` is for requests. For a call with a key that did not run, its
  // status gives the reason (423 it is under way, 409 it was cut off, 422, 429), or a header marks
  // the answer as a stored one. For a write of the state, 403 is a read-only connection.
  virtual void finish(const ResponseHead& head, const Result<std::string_view>& outcome) = 0;
};

}  // namespace hearth::runtime
