#pragma once
// Which code of an agent is on the stack: for which event, under which span, for which work.

#include "base/assert.hpp"
#include "base/work_mark.hpp"
#include "extensions/call_rules.hpp"
#include "extensions/trace.hpp"
#include "runtime/types.hpp"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace hearth::runtime {

// Log lines, operations and crash records name the work that this class names. The contract of
// plugins excludes re-entry by construction: no function that a plugin can call delivers an event.
//
// Threads    The agent's shard.
class CodeOnStack {
 public:
  // The code is on the stack for this event. What it was for stays known until the code returns,
  // since the call may be over before.
  class Entry {
   public:
    // `call` 0: for no call. An empty `method`: for no method.
    Entry(CodeOnStack& code, CallId call, const extensions::Span& span, std::string_view method)
        : code_(code) {
      HEARTH_ASSERT(!code.entered_, "instance entered while it is on the stack");
      code.entered_ = true;
      code.call_ = call;
      code.method_ = method;
      code.span_ = code.entry_span_ = span;
      ++code.entries_;
    }
    ~Entry() {
      code_.entered_ = false;
      code_.call_ = 0;
      code_.method_.clear();
      code_.span_ = code_.entry_span_ = {};
      if (const auto cause = std::move(code_.state_cause_)) cause->has_waited = true;
    }
    Entry(const Entry&) = delete;
    Entry& operator=(const Entry&) = delete;

   private:
    CodeOnStack& code_;
  };
  // During its life, reports belong to this span. An empty span changes nothing.
  class UnderSpan {
   public:
    UnderSpan(CodeOnStack& code, const extensions::Span& span) : code_(code), before_(code.span_) {
      if (!span.is_none()) code.span_ = span;
    }
    ~UnderSpan() { code_.span_ = before_; }
    UnderSpan(const UnderSpan&) = delete;
    UnderSpan& operator=(const UnderSpan&) = delete;

   private:
    CodeOnStack& code_;
    const extensions::Span before_;
  };

  [[nodiscard]] bool entered() const { return entered_; }
  // The call in which the code is on the stack; 0: none, or not known.
  [[nodiscard]] CallId call() const { return call_; }
  // The method of that call, also when the call is over.
  [[nodiscard]] const std::string& method() const { return method_; }
  [[nodiscard]] const extensions::Span& span() const { return span_; }
  // The code goes on under this span; none: under that of the event.
  void go_on_under(const extensions::Span& span) { span_ = span.is_none() ? entry_span_ : span; }

  // How often the code was entered so far.
  [[nodiscard]] std::uint64_t entries() const { return entries_; }

  // ---- the durable work that the code does, for the crash record ----
  // Nothing: not known.
  [[nodiscard]] std::optional<WorkMark> work() const { return work_; }
  // False: it does this work already.
  bool begin_work(std::optional<WorkMark> work) {
    if (work == work_) return false;
    work_ = work;
    return true;
  }
  // The code names the work that it does. It does so in each later turn.
  void tells_work() { tells_work_ = true; }
  // For a turn of which nothing else is known.
  [[nodiscard]] std::optional<WorkMark> work_at_entry() const {
    return tells_work_ ? std::optional(WorkMark()) : std::nullopt;
  }

  // ---- the STATE_CHANGED that is on the stack, or that began the work on the stack ----
  // It is entered next, or is on the stack.
  void begin_cause(std::shared_ptr<extensions::StateCause> cause) {
    state_cause_ = std::move(cause);
  }
  // Null: neither.
  [[nodiscard]] const std::shared_ptr<extensions::StateCause>& state_cause() const {
    return state_cause_;
  }
  // For operations that the code submits now. A fiber outlives the handler that began it: its later
  // changes do not count as the handler's.
  [[nodiscard]] std::shared_ptr<extensions::StateCause> cause_to_carry() const {
    return work_.value_or(WorkMark()) != WorkMark() ? nullptr : state_cause_;
  }

 private:
  bool entered_ = false;
  CallId call_ = 0;
  std::string method_;  // keeps its memory
  extensions::Span span_;
  extensions::Span entry_span_;
  std::uint64_t entries_ = 0;
  std::optional<WorkMark> work_;
  bool tells_work_ = false;
  std::shared_ptr<extensions::StateCause> state_cause_;
};

}  // namespace hearth::runtime
