#pragma once
// The spans of the operations that an agent's code runs now (open_span.hpp).

#include "base/error.hpp"
#include "extensions/agent_context.hpp"
#include "extensions/agent_extension.hpp"
#include "extensions/open_span.hpp"

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>

namespace hearth::extensions {

// Bounded  By the operations that run; an operation has at most kMostAttributes attributes of its
//          code, each with at most kMostKeyBytes and kMostTextBytes.
// Threads  The agent's shard.
class OperationSpans final : public AgentExtension {
 public:
  static constexpr std::size_t kMostAttributes = 32;
  static constexpr std::size_t kMostKeyBytes = 64;
  static constexpr std::size_t kMostTextBytes = 256;

  explicit OperationSpans(AgentContext& agent) : agent_(agent) {}

  // An operation begins, as a part of what the agent's code does now.
  void begin(std::uint64_t operation, std::string_view id, std::string_view kind);
  // `state`: its new state, or why it could not be settled. Does nothing if it has no span.
  void end(std::uint64_t operation, std::string_view state, bool has_failed);
  // kInvalidArgument: `attributes` is no JSON object of texts, numbers and booleans, or is beyond
  // the bounds. An operation without a span is described in vain.
  Result<void> describe(std::string_view id, std::string_view name, std::string_view attributes);

  // None: it has no span.
  [[nodiscard]] Span span_of(std::string_view id) const;

 private:
  struct Running {
    std::string id;
    OpenSpan span;
  };

  AgentContext& agent_;
  std::map<std::uint64_t, Running> running_;
};

}  // namespace hearth::extensions
