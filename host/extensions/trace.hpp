#pragma once
// W3C Trace Context: the trace that an event belongs to, and the span of the event in it.
// https://www.w3.org/TR/trace-context/
//
//   00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01
//      trace                            span (parent-id)  flags

#include "base/random.hpp"

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

namespace hearth::extensions {

// A value type: each event has one, and most are never written as text.
struct Span {
  std::array<std::uint64_t, 2> trace{};
  std::uint64_t id = 0;  // 0: no span
  std::uint8_t flags = 1;
  std::uint64_t parent = 0;  // of a span of this server: the span above it; 0: none, or not known

  [[nodiscard]] bool is_none() const { return id == 0; }
  // The flag `sampled`.
  [[nodiscard]] bool is_recorded() const { return !is_none() && (flags & 1U) != 0; }
  // A traceparent of version 00; empty for no span.
  [[nodiscard]] std::string text() const;
};

// The span that a traceparent names; none if the text is not a traceparent. From a later version it
// reads the fields of version 00, as the specification says.
[[nodiscard]] Span read_span(std::string_view traceparent);

class SpanLog;

// Gives different ids without a system call for each. The ids are not secret: some of them are
// enough to guess others.
//
// Threads   One.
class SpanSource {
 public:
  // `log`: takes the spans that are recorded (open_span.hpp); null: none are.
  explicit SpanSource(Random& random, SpanLog* log = nullptr);

  [[nodiscard]] SpanLog* log() const { return log_; }

  // The first span of a new trace.
  [[nodiscard]] Span root();
  // Another span of the same trace, with the same flags; a root if `cause` is none.
  [[nodiscard]] Span below(const Span& cause);

 private:
  std::uint64_t next();  // never 0

  std::uint64_t state_;
  SpanLog* const log_;
};

// A new trace, as text.
[[nodiscard]] std::string new_trace(Random& random);
// The text as a traceparent of version 00; empty if it is none.
[[nodiscard]] std::string valid_trace(std::string_view text);

}  // namespace hearth::extensions
