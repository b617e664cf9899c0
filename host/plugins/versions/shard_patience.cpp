#include "plugins/versions/shard_patience.hpp"

#include <vector>

namespace hearth::plugins {

runtime::RolloutSettings ShardPatience::settings() const {
  runtime::RolloutSettings rollout = rules_;
  if (!silence_.empty()) rollout.patience = {};
  return rollout;
}

std::string ShardPatience::tell(const runtime::ClassRollout& rollout) {
  const std::vector<unsigned> silent = rollout.silent_shards();
  if (rollout.state() != runtime::RolloutState::kTrying || silent.empty())
    return {};  // the rollout has not waited
  if (!silence_.empty()) return silence_;
  std::string note;
  for (const unsigned shard : silent) {
    logger_.write(LogLevel::kWarn, "reload.shard_silent",
                  {{"class", rollout.next().agent_class->name()},
                   {"shard", shard},
                   {"advice", "some agent's code holds it up; its agents follow when it goes on"}});
    note += (note.empty() ? "shard " : ", ") + std::to_string(shard);
  }
  silence_ = note + " does not answer: its agents follow when it goes on";
  return silence_;
}

}  // namespace hearth::plugins
