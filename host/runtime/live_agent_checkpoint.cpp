// An agent that waits for the device while its shard does not. Another thread has its database for
// a checkpoint, or the agent leaves and its last answers are held back.
#include "base/assert.hpp"
#include "runtime/live_agent.hpp"
#include "runtime/shard_services.hpp"

#include <chrono>
#include <memory>
#include <utility>

namespace hearth::runtime {
namespace {

// How long a leaving agent waits for the device.
constexpr std::chrono::seconds kLastSync{10};

// Reasons of the operator and of the host: such an interruption does not count against the work.
// (An idle agent has no work in progress.)
bool is_on_purpose(EvictReason reason) {
  return reason == EvictReason::kShutdown || reason == EvictReason::kCodeUpdate ||
         reason == EvictReason::kPluginRemoved || reason == EvictReason::kLimit ||
         reason == EvictReason::kAdmin;
}

}  // namespace

void LiveAgent::lend() {
  HEARTH_ASSERT(!code_.entered() && !lent() && checkpoint_due(true), "lent while it is in use");
  loan_.begin(services_.loop.clock().steady_now());
}

void LiveAgent::finish_turns(EvictReason reason) {
  if (broken_ || phase_ == AgentPhase::kMigrating) return;
  // An agent that evicts itself, or cannot start, may do so because of its work.
  const bool is_its_own = eviction_requested() || phase_ != AgentPhase::kRunning;
  if (!is_its_own && is_on_purpose(reason)) guard([this] { work_.interrupt_on_purpose(); });
  flush();
  if (broken_ || !awaits_durability()) return;
  // Lent, so that it writes nothing more. The gate answers in order: by the time of its answer all
  // held effects have left or are discarded. A device that hangs does not keep the agent forever.
  loan_.begin(services_.loop.clock().steady_now());
  const auto come_back = [self = self_, is_back = std::make_shared<bool>(false)](bool answered) {
    if (*self == nullptr || std::exchange(*is_back, true)) return;
    if (!answered) (*self)->storage_failed("the device did not sync its last answers within 10 s");
    (*self)->take_back({});
  };
  commits_.gate()->request([come_back](bool) { come_back(true); });
  ShardLoop& loop = services_.loop;
  loop.call_at(loop.clock().steady_now() + kLastSync, [come_back] { come_back(false); });
}

void LiveAgent::take_back(const std::string& trouble) {
  const Loan::Steps postponed = loan_.end();
  const std::shared_ptr<LiveAgent*> self = self_;
  if (database_.broken()) {
    storage_failed(trouble);
  } else if (!trouble.empty()) {
    services_.logger.write_limited(
        LogLevel::kWarn, "agent.checkpoint_failed", {class_->name()},
        {{"class", class_->name()}, {"agent", parts_.key.name}, {"error", trouble}});
  }
  if (!broken_ && dirty()) schedule_flush();
  for (const std::function<void()>& step : postponed) {
    step();
    if (*self == nullptr || shutting()) return;
  }
  parts_.look();
  parts_.after_turn();
}

}  // namespace hearth::runtime
