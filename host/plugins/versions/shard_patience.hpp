#pragma once
// How long rollouts wait for shards that some agent's code holds up.

#include "base/logger.hpp"
#include "runtime/class_rollout.hpp"

#include <string>

namespace hearth::plugins {

// Rollouts that begin together wait once: with the first one that some shard does not answer.
//
// Threads   One.
// Lifetime  The logger outlives it.
class ShardPatience {
 public:
  ShardPatience(const runtime::RolloutSettings& rules, Logger& logger)
      : rules_(rules), logger_(logger) {}

  // The next rollouts do not belong to the ones before: they may wait again.
  void renew() { silence_.clear(); }

  // As configured.
  [[nodiscard]] const runtime::RolloutSettings& rules() const { return rules_; }
  // For the next rollout.
  [[nodiscard]] runtime::RolloutSettings settings() const;

  // A sentence that names the shards that do not answer a rollout that has just begun; empty: all
  // answer. Logs the first one (reload.shard_silent).
  [[nodiscard]] std::string tell(const runtime::ClassRollout& rollout);

 private:
  const runtime::RolloutSettings rules_;
  Logger& logger_;
  std::string silence_;  // names the shards that have not replied; empty: all have
};

}  // namespace hearth::plugins
