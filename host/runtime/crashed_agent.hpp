#pragma once
// The agent in whose work the previous process crashed.

#include "base/sha256.hpp"
#include "durable/jobs.hpp"
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
  std::uint64_t sender = 0;  // WorkMark::sender: the agent whose work ran, if it is another one
  durable::EndedProcess how;
};

// Threads    take(): any.
class CrashedAgent {
 public:
  explicit CrashedAgent(std::optional<AgentCrash> crash) : crash_(std::move(crash)) {}

  // How the process ended, if it was in this agent's work. Once: only the first load counts what
  // the agent had begun.
  std::optional<durable::EndedProcess> take(const storage::AgentKey& key) {
    if (!crash_ || is_taken_ || !is_of(key, *crash_) || is_taken_.exchange(true))
      return std::nullopt;
    return crash_->how;
  }

 private:
  static bool is_of(const storage::AgentKey& key, const AgentCrash& crash) {
    if (crash.sender != 0) return key.digest() == crash.sender;
    return key.agent_class == crash.agent_class && sha256_prefix(key.name) == crash.agent_digest;
  }

  const std::optional<AgentCrash> crash_;
  std::atomic<bool> is_taken_{false};
};

}  // namespace hearth::runtime
