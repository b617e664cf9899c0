#pragma once
// The agent in whose code the process before has ended itself.

#include "durable/fibers.hpp"
#include "storage/agent_key.hpp"

#include <atomic>
#include <cstddef>
#include <optional>
#include <string>
#include <utility>

namespace hearth::runtime {

// Threads    take() is safe on any.
class CrashedAgent {
 public:
  CrashedAgent() = default;  // there was none
  // `name` may be its beginning, if that is longer than a crash record holds.
  CrashedAgent(std::string agent_class, std::string name, durable::EndedProcess how)
      : agent_class_(std::move(agent_class)), name_(std::move(name)), how_(how) {}

  // How, if it is this one. Once: what it had begun is only counted when it is loaded first.
  std::optional<durable::EndedProcess> take(const storage::AgentKey& key) {
    constexpr std::size_t kShortestCut = 61;  // of 64 bytes, so that no character is cut in two
    if (agent_class_.empty() || key.agent_class != agent_class_) return std::nullopt;
    const bool is_it =
        key.name == name_ || (name_.size() >= kShortestCut && key.name.starts_with(name_));
    if (!is_it || is_taken_.exchange(true)) return std::nullopt;
    return how_;
  }

 private:
  std::string agent_class_;
  std::string name_;
  durable::EndedProcess how_;
  std::atomic<bool> is_taken_{false};
};

}  // namespace hearth::runtime
