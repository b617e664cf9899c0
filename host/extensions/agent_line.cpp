#include "extensions/agent_line.hpp"

namespace hearth::extensions {

std::vector<LogField> agent_line(const LineOrigin& origin, std::initializer_list<LogField> own) {
  constexpr std::size_t kOthers = 5;
  std::vector<LogField> fields;
  fields.reserve(own.size() + kOthers);
  fields.emplace_back("class", origin.agent_class);
  fields.emplace_back("agent", origin.agent);
  fields.insert(fields.end(), own);
  if (origin.call != 0) fields.emplace_back("call", origin.call);
  if (!origin.method.empty()) fields.emplace_back("method", origin.method);
  if (!origin.trace.empty()) fields.emplace_back("trace", origin.trace);
  return fields;
}

}  // namespace hearth::extensions
