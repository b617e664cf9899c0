#pragma once
// W3C Trace Context: which trace an event belongs to, and which span of it the event is.
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

// A value: each event has one, and most are never written as text.
struct Span {
  std::array<std::uint64_t, 2> trace{};
  std::uint64_t id = 0;  // 0: it is none
  std::uint8_t flags = 1;

  [[nodiscard]] bool is_none() const { return id == 0; }
  // A traceparent of version 00; empty: it is none.
  [[nodiscard]] std::string text() const;
};

// The span that a traceparent names; none if it is no traceparent. Of a later version the fields of
// version 00 count, as the specification says.
[[nodiscard]] Span read_span(std::string_view traceparent);

// Gives ids that are different, without a system call for each. Who has seen some can guess others.
//
// Threads   One.
class SpanSource {
 public:
  explicit SpanSource(Random& random);

  // The first span of a trace of its own.
  [[nodiscard]] Span root();
  // Another span of the same trace, with the same flags; a root if `cause` is none.
  [[nodiscard]] Span below(const Span& cause);

 private:
  std::uint64_t next();  // never 0

  std::uint64_t state_;
};

// A trace of its own, as text.
[[nodiscard]] std::string new_trace(Random& random);
// The traceparent of version 00 that the text is read as; empty: it is none.
[[nodiscard]] std::string valid_trace(std::string_view text);

}  // namespace hearth::extensions
