#include "runtime/condemned_agents.hpp"

#include "base/assert.hpp"
#include "base/stop_point.hpp"
#include "extensions/agent_context.hpp"
#include "storage/copy_mark.hpp"

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <limits>
#include <vector>

namespace hearth::runtime {

CondemnedAgents::CondemnedAgents(storage::Directory& directory, const storage::DataDirectory& data,
                                 durable::WakeIndex& wakes, Logger& logger)
    : directory_(directory), data_(data), wakes_(wakes), logger_(logger) {}

void CondemnedAgents::load(const std::function<bool(const storage::AgentKey&)>& mine) {
  for (const storage::AgentKey& key : directory_.condemned()) {
    // The server writes no key with such a class name, so it builds no path from one.
    if (!mine(key) || !is_class_name(key.agent_class)) continue;
    keys_.insert(key);
    (void)finish(key, remove_files(key));
  }
}

void CondemnedAgents::condemn(const storage::AgentKey& key) {
  std::vector<storage::AgentKey> all{key};
  const auto below =
      directory_.list_below(key, false, {}, std::numeric_limits<std::int32_t>::max());
  for (const storage::DirectoryEntry& each : below) all.push_back(each.key);
  directory_.condemn(all);
  keys_.insert(all.begin(), all.end());
  stop_point("destroy.condemned");
  for (const storage::AgentKey& each : all) {
    if (directory_.object(each)) {
      (void)logger_.record_limited(LogLevel::kDebug, "object.deleted", {each.agent_class},
                                   {{"class", each.agent_class}, {"agent", each.name}},
                                   extensions::kAuditLimit);
    }
  }
  logger_.write_limited(LogLevel::kInfo, "agent.condemned", {key.agent_class},
                        {{"class", key.agent_class}, {"agent", key.name}}, Logger::kWorkLimit);
}

std::vector<storage::AgentKey> CondemnedAgents::below(const storage::AgentKey& key) const {
  const std::string prefix = key.prefix_below();
  std::vector<storage::AgentKey> found;
  std::ranges::copy_if(keys_, std::back_inserter(found), [&prefix](const storage::AgentKey& each) {
    return each.name.starts_with(prefix);
  });
  return found;
}

bool CondemnedAgents::may_remove_files(const storage::AgentKey& key) const {
  return data_.copy_mark().may_remove(key);
}

std::string CondemnedAgents::remove_files(const storage::AgentKey& key) const {
  try {
    data_.remove_agent(key);
    stop_point("destroy.files_removed");
    return {};
  } catch (const StorageError& failure) {  // the marker stays, and so does the key
    return failure.what();
  }
}

bool CondemnedAgents::finish(const storage::AgentKey& key, const std::string& trouble) {
  HEARTH_ASSERT(contains(key), "finish() of an agent that is not condemned");
  try {
    if (!trouble.empty()) throw StorageError(trouble);
    directory_.forget_condemned(key);
  } catch (const StorageError& failure) {  // agent boundary
    logger_.write_limited(
        LogLevel::kError, "agent.destroy_failed", {key.agent_class},
        {{"class", key.agent_class},
         {"agent", key.name},
         {"error", std::string_view(failure.what())},
         {"next", "it is not served; tried again in a minute and at the next start"}});
    return false;
  }
  wakes_.forget(key);
  logger_.write_limited(LogLevel::kInfo, "agent.destroyed", {key.agent_class},
                        {{"class", key.agent_class}, {"agent", key.name}}, Logger::kWorkLimit);
  keys_.erase(storage::AgentKey(key));  // `key` may be the one in the set
  return true;
}

std::vector<storage::AgentKey> CondemnedAgents::unfinished(
    const std::function<bool(const storage::AgentKey&)>& in_memory) const {
  std::vector<storage::AgentKey> keys;
  std::ranges::remove_copy_if(keys_, std::back_inserter(keys), in_memory);
  return keys;
}

}  // namespace hearth::runtime
