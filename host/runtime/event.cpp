#include "runtime/event.hpp"

#include "extensions/trace.hpp"

namespace hearth::runtime {

extensions::OriginPtr traced_origin(const Headers& headers) {
  const std::string* const header = find_header(headers, "traceparent");
  if (header == nullptr) return nullptr;
  const std::string_view trace = extensions::valid_trace(*header);
  if (trace.empty()) return nullptr;
  auto origin = std::make_shared<extensions::Origin>();
  origin->trace = trace;
  return origin;
}

}  // namespace hearth::runtime
