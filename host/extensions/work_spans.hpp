#pragma once
// The spans of the operations and the fibers that an agent's code runs now (open_span.hpp).

#include "base/error.hpp"
#include "extensions/agent_context.hpp"
#include "extensions/agent_extension.hpp"
#include "extensions/open_span.hpp"

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>

namespace hearth::extensions {

enum class SpannedWork : std::uint8_t { kOperation, kFiber };

// A fiber has a span for each of its runs: from its start, or its recovery, until it ends or this
// instance does.
//
// Bounded  By the work that runs; an operation has at most kMostAttributes attributes of its code,
//          each with at most kMostKeyBytes and kMostTextBytes.
// Threads  The agent's shard.
class WorkSpans final : public AgentExtension {
 public:
  static constexpr std::size_t kMostAttributes = 32;
  static constexpr std::size_t kMostKeyBytes = 64;
  static constexpr std::size_t kMostTextBytes = 256;

  explicit WorkSpans(AgentContext& agent) : agent_(agent) {}
  // Work that still runs is interrupted.
  ~WorkSpans() override;

  // It begins, as a part of what the agent's code does now. `name`: of the fiber, or the
  // operation's kind.
  void begin(SpannedWork work, std::string_view id, std::string_view name);
  // `state`: its new state, or why it could not be settled. Does nothing if it has no span.
  void end(SpannedWork work, std::string_view id, std::string_view state, bool has_failed);
  // Of fibers that neither run nor recover any more: they were aborted with their outer one.
  void end_aborted();
  // kInvalidArgument: `attributes` is no JSON object of texts, numbers and booleans, or is beyond
  // the bounds. An operation without a span is described in vain.
  Result<void> describe(std::string_view id, std::string_view name, std::string_view attributes);

  // None: it has no span.
  [[nodiscard]] Span span_of(SpannedWork work, std::string_view id);

 private:
  using ById = std::map<std::string, OpenSpan, std::less<>>;
  // Null: it has none.
  [[nodiscard]] OpenSpan* find(SpannedWork work, std::string_view id);

  AgentContext& agent_;
  std::array<ById, 2> running_;  // by SpannedWork
};

}  // namespace hearth::extensions
