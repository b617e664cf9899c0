#include "server/stuck_agents.hpp"

#include "base/clock.hpp"
#include "extensions/wait.hpp"
#include "server/shard_questions.hpp"
#include "server/why.hpp"

#include <algorithm>
#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <utility>
#include <vector>

namespace hearth::server {
namespace {

using storage::AgentKey;
using StuckKeys = std::vector<AgentKey>;

// "Counter/a": a class has no slash.
std::optional<AgentKey> read_stuck_cursor(const std::string& text) {
  if (text.empty()) return AgentKey{};
  const std::size_t slash = text.find('/');
  if (slash == std::string::npos) return std::nullopt;
  return AgentKey{text.substr(0, slash), text.substr(slash + 1)};
}

// Those to look at. A shard that does not answer has agents that wait for it: `skipped` says so.
std::set<AgentKey> candidates(runtime::Runtime& runtime, storage::Directory& directory,
                              const std::string& agent_class, const AgentKey& after,
                              const std::function<bool(const extensions::Wait&)>& is_urgent,
                              Json& skipped) {
  std::set<AgentKey> keys;
  const bool is_each = agent_class == kEachClass;
  for (unsigned index = 0; index < runtime.shard_count(); ++index) {
    const auto hints = ask_one<StuckKeys>(
        runtime, index, AgentWaits::kLoopPatience,
        [is_urgent](runtime::Shard& shard) { return shard.admin().waiting(is_urgent); });
    if (!hints)
      skipped.push_back({{"class", nullptr}, {"agent", nullptr}, {"reason", no_loop().message}});
    for (const AgentKey& key : hints.value_or(StuckKeys())) {
      if (key > after && (agent_class.empty() || is_each || key.agent_class == agent_class))
        keys.insert(key);
    }
  }
  if (agent_class.empty()) return keys;
  std::vector<std::string> classes{agent_class};
  if (is_each) classes = directory.classes();
  std::ranges::sort(classes);
  std::size_t listed = 0;
  for (const std::string& each : classes) {
    if (each < after.agent_class || listed > kMostStuckLooks) continue;
    const std::string from = after.agent_class == each ? after.name : std::string();
    for (auto& entry : directory.list(each, from, kMostStuckLooks + 1 - listed)) {
      keys.insert(std::move(entry.key));
      ++listed;
    }
  }
  return keys;
}

}  // namespace

Result<Json> stuck_page(runtime::Runtime& runtime, storage::Directory& directory,
                        const AgentWaits& waits, const api::AgentPageRequest& request,
                        const std::string& agent_class,
                        std::chrono::steady_clock::time_point until) {
  const auto after = read_stuck_cursor(request.after);
  if (!after) return Error{Errc::kInvalidArgument, "after is the `next` of a page"};
  const std::int64_t now_ms = unix_millis(SystemClock().wall_now());
  const auto is_urgent = [now_ms](const extensions::Wait& wait) {
    return urgency_of(wait, now_ms) != Urgency::kNone;
  };
  Json skipped = Json::array();
  const std::set<AgentKey> keys =
      candidates(runtime, directory, agent_class, *after, is_urgent, skipped);
  Json stuck = Json::array();
  std::size_t looks = 0;
  const AgentKey* last = nullptr;
  for (const AgentKey& key : keys) {
    const auto now = std::chrono::steady_clock::now();
    if (stuck.size() >= request.limit || looks >= kMostStuckLooks || (looks > 0 && now >= until))
      break;
    ++looks;
    last = &key;
    AgentWaits::Seen seen = waits.look(key, std::min(until, now + AgentWaits::kLoopPatience));
    const bool is_stuck = std::ranges::any_of(seen.waits, is_urgent);
    if (!is_stuck && !seen.not_seen.empty()) {
      skipped.push_back(
          {{"class", key.agent_class}, {"agent", key.name}, {"reason", seen.not_seen}});
    }
    if (is_stuck) stuck.push_back(why_json(std::move(seen), now_ms));
  }
  const bool has_more = looks < keys.size();
  return Json{{"agents", std::move(stuck)},
              {"skipped", std::move(skipped)},
              {"next", has_more ? Json(last->agent_class + '/' + last->name) : Json()}};
}

}  // namespace hearth::server
