#pragma once
// Errors and lists of methods as HTTP responses.

#include "base/error.hpp"
#include "net/http.hpp"
#include "runtime/call_sink.hpp"

#include <string>
#include <string_view>

namespace hearth::api {

// The status for an outcome that the agent, or the runtime in its place, has reported:
//   kInvalidArgument 400           kTooLarge 413            kUnavailable, kClosing, kCancelled 503
//   kForbidden 403                 kLimitExceeded 429       kTimeout 504
//   kNotFound, kUnsupported 404    kPlugin, kInternal 500
//   kConflict 409
// kUnsupported is an agent that answers no HTTP at all: the client sees that there is nothing.
[[nodiscard]] int http_status(Errc code) noexcept;

// Answers {"error":{"code":...,"message":...}}, both escaped. A 503 also has Retry-After: 1.
[[nodiscard]] net::HttpResponse error_answer(int status, std::string_view code,
                                             std::string_view message);

// Answers {"class":segment,"methods":[...]}. `methods`: JSON of runtime::AgentClass::methods().
[[nodiscard]] net::HttpResponse methods_answer(std::string_view segment, std::string_view methods);

// The text of a failed event, for a client.
//
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
  // Adds the header `traceresponse` (W3C Trace Context), unless the agent has set one: clients read
  // the trace's id in it.
  void add_trace(net::HttpHeaders& headers) const;

 private:
  extensions::Span span_;
  bool shows_all_ = false;
};

}  // namespace hearth::api
