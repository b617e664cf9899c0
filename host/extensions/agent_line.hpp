#pragma once
// What a line of the log says of the agent that it is about.

#include "base/logger.hpp"
#include "extensions/types.hpp"

#include <cstddef>
#include <initializer_list>
#include <string_view>
#include <vector>

namespace hearth::extensions {

// Of a method: clients choose it.
inline constexpr std::size_t kMaxShownMethod = 64;

// Whose line it is, and of which event. The texts are borrowed.
struct LineOrigin {
  std::string_view agent_class{};
  std::string_view agent{};
  CallId call = 0;            // 0: none is known
  std::string_view method{};  // of that; empty: it is of none
  std::string_view trace{};   // a traceparent; empty: none
};

// Class, agent, the fields of `own`, and then call, method and trace, as far as they are known.
[[nodiscard]] std::vector<LogField> agent_line(const LineOrigin& origin,
                                               std::initializer_list<LogField> own);

}  // namespace hearth::extensions
