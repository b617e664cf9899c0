#pragma once
// How long rollouts wait for shards that some agent's code holds up.

#include "base/logger.hpp"
#include "runtime/class_rollout.hpp"

#include <string>

namespace hearth::plugins {

// All that changes together waits once, with the first rollout that some shard does not answer.
//
// Threads   One.
// Lifetime  The logger outlives it.
class ShardPatience {
 public:
  ShardPatience(const runtime::RolloutSettings& rules, Logger& logger)
      : rules_(rules), logger_(logger) {}

  // Something else changes.
  void renew() { silence_.clear(); }

  // What is configured.
  [[nodiscard]] const runtime::RolloutSettings& rules() const { return rules_; }
  // What the next rollout is to be begun with.
  [[nodiscard]] runtime::RolloutSettings settings() const;

  // What is to be known of a rollout that has just begun: which shards do not answer, or nothing.
  // The first time it is logged as well (reload.shard_silent).
  [[nodiscard]] std::string tell(const runtime::ClassRollout& rollout);

 private:
  const runtime::RolloutSettings rules_;
  Logger& logger_;
  std::string silence_;  // of which shards there is no answer; empty: all answer
};

}  // namespace hearth::plugins
