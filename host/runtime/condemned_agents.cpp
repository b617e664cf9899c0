#include "runtime/condemned_agents.hpp"

#include "base/assert.hpp"
#include "base/stop_point.hpp"
#include "extensions/agent_context.hpp"
#include "storage/copy_mark.hpp"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <iterator>
#include <limits>
#include <vector>

namespace hearth::runtime {

namespace {

constexpr std::chrono::seconds kOneCopy{1};

}  // namespace

void CondemnedAgents::load(const std::function<bool(const storage::AgentKey&)>& mine) {
  for (const storage::AgentKey& key : parts_.directory.condemned()) {
    // The server writes no key with such a class name, so it builds no path from one.
    if (!mine(key) || !is_class_name(key.agent_class)) continue;
    keys_.insert(key);
    (void)forget(key, remove_files(key, false));
  }
}

void CondemnedAgents::condemn(const storage::AgentKey& key) {
  std::vector<storage::AgentKey> all{key};
  const auto below =
      parts_.directory.list_below(key, false, {}, std::numeric_limits<std::int32_t>::max());
  for (const storage::DirectoryEntry& each : below) all.push_back(each.key);
  parts_.directory.condemn(all);
  keys_.insert(all.begin(), all.end());
  stop_point("destroy.condemned");
  for (const storage::AgentKey& each : all) {
    if (parts_.directory.object(each)) {
      (void)parts_.logger.record_limited(LogLevel::kDebug, "object.deleted", {each.agent_class},
                                         {{"class", each.agent_class}, {"agent", each.name}},
                                         extensions::kAuditLimit);
    }
  }
  parts_.logger.write_limited(LogLevel::kInfo, "agent.condemned", {key.agent_class},
                              {{"class", key.agent_class}, {"agent", key.name}},
                              Logger::kWorkLimit);
}

std::vector<storage::AgentKey> CondemnedAgents::below(const storage::AgentKey& key) const {
  const std::string prefix = key.prefix_below();
  std::vector<storage::AgentKey> found;
  std::ranges::copy_if(keys_, std::back_inserter(found), [&prefix](const storage::AgentKey& each) {
    return each.name.starts_with(prefix);
  });
  return found;
}

std::string CondemnedAgents::remove_files(const storage::AgentKey& key,
                                          bool waits_for_marker) const {
  if (waits_for_marker && !parts_.sync.wait({parts_.directory_wal}))
    return "the directory of agents could not be synced";
  try {
    parts_.data.remove_agent(key);
    stop_point("destroy.files_removed");
    return {};
  } catch (const StorageError& failure) {  // the marker stays, and so does the key
    return failure.what();
  }
}

bool CondemnedAgents::forget(const storage::AgentKey& key, const std::string& trouble) {
  HEARTH_ASSERT(contains(key), "the end of an agent that is not condemned");
  try {
    if (!trouble.empty()) throw StorageError(trouble);
    parts_.directory.forget_condemned(key);
  } catch (const StorageError& failure) {  // agent boundary
    parts_.logger.write_limited(
        LogLevel::kError, "agent.destroy_failed", {key.agent_class},
        {{"class", key.agent_class},
         {"agent", key.name},
         {"error", std::string_view(failure.what())},
         {"next", "it is not served; tried again in a minute and at the next start"}});
    return false;
  }
  parts_.wakes.forget(key);
  parts_.logger.write_limited(LogLevel::kInfo, "agent.destroyed", {key.agent_class},
                              {{"class", key.agent_class}, {"agent", key.name}},
                              Logger::kWorkLimit);
  keys_.erase(storage::AgentKey(key));  // `key` may be the one in the set
  return true;
}

void CondemnedAgents::finish(const storage::AgentKey& key) {
  if (under_way_.contains(key)) return;
  if (!must_wait_for_copy(key)) return finish(key, [this, key] { parts_.is_over(key); });
  if (!is_under_way(key)) parts_.is_over(key);
}

// A backup copies the files first, early.
bool CondemnedAgents::must_wait_for_copy(const storage::AgentKey& key) {
  if (parts_.data.copy_mark().may_remove(key)) {
    copied_until_.erase(key);
    return false;
  }
  copied_until_.try_emplace(key, parts_.loop.clock().steady_now() + kLongestCopy);
  finish_later(kOneCopy);
  return true;
}

bool CondemnedAgents::is_under_way(const storage::AgentKey& key) const {
  if (under_way_.contains(key)) return true;
  const auto copied = copied_until_.find(key);
  return copied != copied_until_.end() && parts_.loop.clock().steady_now() < copied->second;
}

void CondemnedAgents::finish(const storage::AgentKey& key, const std::function<void()>& done) {
  if (under_way_.contains(key)) return;
  if (must_wait_for_copy(key)) return done();
  under_way_.insert(key);
  const auto removed = [this, key, done](const std::string& trouble) {
    under_way_.erase(key);
    if (!forget(key, trouble)) finish_later();
    parts_.alarms.forget_failures(key);
    done();
  };
  const bool elsewhere =
      parts_.remover != nullptr &&
      parts_.remover->run([this, key, removed, alive = parts_.alive, &loop = parts_.loop](bool) {
        loop.post([alive, removed, trouble = remove_files(key, true)] {
          if (*alive) removed(trouble);
        });
      });
  if (!elsewhere) removed(remove_files(key, true));
}

void CondemnedAgents::finish_later(std::chrono::seconds delay) {
  const SteadyTime at = parts_.loop.clock().steady_now() + delay;
  if (stopped_ || (looks_at_ && *looks_at_ <= at)) return;
  looks_at_ = at;
  timer_ = LoopTimer(parts_.loop, at, [this] {
    looks_at_.reset();
    // Those in memory are finished when they have left.
    for (const storage::AgentKey& key : std::vector(keys_.begin(), keys_.end())) {
      if (!parts_.is_in_memory(key)) finish(key);
    }
    if (!keys_.empty()) finish_later();
  });
}

void CondemnedAgents::stop() {
  stopped_ = true;
  timer_.cancel();
}

}  // namespace hearth::runtime
