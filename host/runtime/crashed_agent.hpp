#pragma once
// The agent in whose code the previous process crashed.

#include "base/sha256.hpp"
#include "durable/fibers.hpp"
#include "storage/agent_key.hpp"

#include <atomic>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>

namespace hearth::runtime {

struct AgentCrash {
  std::string agent_class;
  // sha256_prefix() of its whole name, since a crash record holds only the beginning of the name.
  // 0: unknown.
  std::uint64_t agent_digest = 0;
  durable::EndedProcess how;
};

// Threads    take(): any.
class CrashedAgent {
 public:
  explicit CrashedAgent(std::optional<AgentCrash> crash) : crash_(std::move(crash)) {}

  // How the process ended, if it was in this agent's code. Once: only the first load counts what
  // the agent had begun.
  std::optional<durable::EndedProcess> take(const storage::AgentKey& key) {
    if (!crash_ || key.agent_class != crash_->agent_class || is_taken_) return std::nullopt;
    if (sha256_prefix(key.name) != crash_->agent_digest || is_taken_.exchange(true))
      return std::nullopt;
    return crash_->how;
  }

 private:
  const std::optional<AgentCrash> crash_;
  std::atomic<bool> is_taken_{false};
};

}  // namespace hearth::runtime
