#pragma once
// W3C Trace Context, version 00: which trace an event belongs to, and which span of it the event
// is. https://www.w3.org/TR/trace-context/
//
//   00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01
//      trace                            span (parent-id)  flags

#include "base/random.hpp"

#include <string>
#include <string_view>

namespace hearth::extensions {

// A trace of its own.
[[nodiscard]] std::string new_trace(Random& random);
// The text if it is a traceparent; else empty.
[[nodiscard]] std::string_view valid_trace(std::string_view text);
// Another span of the same trace, with the same flags; empty if `trace` is no traceparent.
[[nodiscard]] std::string next_span(std::string_view trace, Random& random);

}  // namespace hearth::extensions
