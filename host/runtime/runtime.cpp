#include "runtime/runtime.hpp"

#include "base/assert.hpp"

#include <atomic>
#include <utility>

namespace hearth::runtime {

Runtime::Runtime(std::span<ShardLoop* const> loops, const storage::DataDirectory& data,
                 Logger& logger, RuntimeOptions options)
    : options_(std::move(options)),
      loops_(loops.begin(), loops.end()),
      pool_(options_.blocking_threads, options_.max_waiting_jobs) {
  HEARTH_ASSERT(!loops_.empty() && loops_.size() <= 256, "a handle has eight bits for the shard");
  const ShardEnvironment environment{options_.limits,     data, classes_, pool_, logger, random_,
                                     options_.state_frame};
  const auto count = static_cast<unsigned>(loops_.size());
  for (unsigned index = 0; index < count; ++index) {
    shards_.push_back(std::make_unique<Shard>(index, count, *loops_[index], environment));
  }
}

Runtime::~Runtime() {
  pool_.stop();
}

unsigned Runtime::shard_index(const storage::AgentKey& key) const {
  return runtime::shard_index(key, shard_count());
}

void Runtime::start_alarms() {
  for (unsigned index = 0; index < shard_count(); ++index) {
    loops_[index]->post([shard = shards_[index].get()] { shard->start_alarms(); });
  }
}

void Runtime::stop(std::chrono::milliseconds grace, std::function<void()> done) {
  auto left = std::make_shared<std::atomic<std::size_t>>(shards_.size());
  auto all_done = std::make_shared<std::function<void()>>(std::move(done));
  for (unsigned index = 0; index < shard_count(); ++index) {
    loops_[index]->post([this, index, grace, left, all_done] {
      const SteadyTime deadline = loops_[index]->clock().steady_now() + grace;
      shards_[index]->stop(deadline, [left, all_done] {
        if (left->fetch_sub(1) == 1) (*all_done)();
      });
    });
  }
}

std::optional<unsigned> Runtime::shard_of(AgentHandle handle) const {
  const auto index = static_cast<unsigned>(handle >> 56);
  if (handle == 0 || index >= shards_.size()) return std::nullopt;
  return index;
}

AgentDirectory::Found Runtime::find(AgentHandle handle) {
  const std::optional<unsigned> index = shard_of(handle);
  if (!index) return {};
  if (!loops_[*index]->on_this_thread()) return {Lookup::kWrongThread, nullptr};
  LiveAgent* agent = shards_[*index]->find_agent(handle);
  if (agent == nullptr) return {};
  // Another agent of this thread is no caller either: what it wrote here would belong to no turn.
  if (!agent->entered()) return {Lookup::kWrongThread, nullptr};
  if (agent->shutting()) return {Lookup::kClosing, agent};
  return {Lookup::kFound, agent};
}

bool Runtime::post(AgentHandle handle, std::uint64_t token) {
  const std::optional<unsigned> index = shard_of(handle);
  if (!index) return false;
  loops_[*index]->post([shard = shards_[*index].get(), handle, token] {
    // Only to an agent that is up: one that starts or goes has no use for it.
    LiveAgent* agent = shard->find_agent(handle);
    if (agent != nullptr && !agent->entered()) agent->deliver_post(token);
  });
  return true;
}

}  // namespace hearth::runtime
