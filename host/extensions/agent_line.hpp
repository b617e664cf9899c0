#pragma once
// The fields of a log line that name the agent and its event.

#include "base/logger.hpp"
#include "extensions/types.hpp"

#include <cstddef>
#include <initializer_list>
#include <string_view>
#include <vector>

namespace hearth::extensions {

// Bytes of a method's name: clients choose it.
inline constexpr std::size_t kMaxShownMethod = 64;

// The agent and the event of a line. The texts are borrowed.
struct LineOrigin {
  std::string_view agent_class{};
  std::string_view agent{};
  CallId call = 0;            // 0: unknown
  std::string_view method{};  // of the call; empty: none
  std::string_view trace{};   // a traceparent; empty: none
};

// Class, agent, the fields of `own`, and then call, method and trace as far as they are known.
[[nodiscard]] std::vector<LogField> agent_line(const LineOrigin& origin,
                                               std::initializer_list<LogField> own);

}  // namespace hearth::extensions
