#pragma once
// The text of a failed event, for a client.

#include "base/error.hpp"
#include "runtime/call_sink.hpp"

#include <string>

namespace hearth::api {

// The texts of a failure inside the agent's code (kPlugin) are for its author: the runtime logs
// them, and clients read "the method failed" and under which trace the log has it. The author's
// errors with any other code, and those of the host, are for clients.
//
// Before begun(), the code has not run for this event, and there is no trace.
class FailureText {
 public:
  // `shows_all`: the class shows clients all texts (ClassSettings::show_failures).
  void begun(const extensions::Span& span, bool shows_all) {
    span_ = span;
    shows_all_ = shows_all;
  }
  [[nodiscard]] std::string of(const Error& error) const;
  [[nodiscard]] const extensions::Span& span() const { return span_; }

 private:
  extensions::Span span_;
  bool shows_all_ = false;
};

}  // namespace hearth::api
