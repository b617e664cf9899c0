// An agent whose database another thread has for a checkpoint.
#include "base/assert.hpp"
#include "runtime/agent_slot.hpp"
#include "runtime/live_agent.hpp"
#include "runtime/shard_services.hpp"

#include <utility>

namespace hearth::runtime {

void LiveAgent::lend() {
  HEARTH_ASSERT(!entered_ && !lent_ && checkpoint_due(), "lent while it is in use");
  lent_ = true;
}

bool LiveAgent::postpone(std::function<void()> step) {
  if (lent_) postponed_.push_back(std::move(step));
  return lent_;
}

void LiveAgent::take_back(const std::string& trouble) {
  lent_ = false;
  const std::shared_ptr<LiveAgent*> self = self_;
  if (database_.broken()) {
    storage_failed(trouble);
  } else if (!trouble.empty()) {
    services_.logger().write_limited(
        LogLevel::kWarn, "agent.checkpoint_failed", {class_->name()},
        {{"class", class_->name()}, {"agent", slot_.key().name}, {"error", trouble}});
  }
  if (!broken_ && dirty()) schedule_flush();
  for (const std::function<void()>& step : std::exchange(postponed_, {})) {
    step();
    if (*self == nullptr || shutting_) return;
  }
  slot_.look();
  services_.after_turn(slot_);
}

}  // namespace hearth::runtime
