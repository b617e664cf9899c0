#include "runtime/event.hpp"

#include "extensions/trace.hpp"

#include <utility>

namespace hearth::runtime {

extensions::OriginPtr traced_origin(const Headers& headers, std::string claims) {
  const std::string* const header = find_header(headers, "traceparent");
  std::string trace = header == nullptr ? std::string() : extensions::valid_trace(*header);
  if (trace.empty() && claims.empty()) return nullptr;
  auto origin = std::make_shared<extensions::Origin>();
  origin->trace = std::move(trace);
  origin->claims = std::move(claims);
  return origin;
}

}  // namespace hearth::runtime
