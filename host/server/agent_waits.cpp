#include "server/agent_waits.hpp"

#include "api/admin_api.hpp"
#include "base/clock.hpp"
#include "base/sha256.hpp"
#include "diagnosis/call_records.hpp"
#include "extensions/agent_context.hpp"
#include "extensions/durable_work.hpp"
#include "protocol/class_segment.hpp"
#include "server/agent_visits.hpp"
#include "server/chats.hpp"
#include "server/shard_questions.hpp"
#include "server/why.hpp"
#include "server/work_waits.hpp"

#include <algorithm>
#include <iterator>
#include <memory>
#include <optional>
#include <utility>

namespace hearth::server {
namespace {

using api::or_null;
using diagnosis::RunningCall;
using extensions::Wait;
using extensions::WaitKind;
using runtime::AgentState;

constexpr std::int64_t kDayLength = std::chrono::milliseconds(std::chrono::days(1)).count();

std::int64_t wall_ms() {
  return unix_millis(SystemClock().wall_now());
}

std::string_view word(Urgency urgency) {
  switch (urgency) {
    case Urgency::kNone: return "none";
    case Urgency::kLong: return "long";
    case Urgency::kPerson: return "person";
  }
  return "none";
}

// Reads what the agent's own database says, on its shard.
std::vector<Wait> durable_waits(extensions::AgentContext& agent, bool is_live) {
  std::vector<Wait> waits = work_waits(agent.database(), is_live);
  if (auto* const operations = agent.work().find_operations())
    for (durable::UnknownOperation& each : operations->unknown().standing())
      waits.push_back({.kind = WaitKind::kUnknown,
                       .subject = std::move(each.id),
                       .detail = std::move(each.kind),
                       .since_ms = each.since_ms});
  std::ranges::move(chat_waits(agent), std::back_inserter(waits));
  if (agent.settings().operations.kinds.empty()) return waits;
  for (durable::UsedUpBudget& each : agent.work().operations().budgets().used_up())
    waits.push_back({.kind = WaitKind::kBudget,
                     .subject = std::move(each.kind),
                     .since_ms = each.since_ms,
                     .until_ms = (wall_ms() / kDayLength + 1) * kDayLength});
  return waits;
}

}  // namespace

std::string_view state_word(AgentState state) {
  switch (state) {
    case AgentState::kCold:
    case AgentState::kAwaitingRoom:
    case AgentState::kAwaitingVersion:
    case AgentState::kCondemned:
    case AgentState::kOpened: return "cold";
    case AgentState::kWaking: return "waking";
    case AgentState::kLive: return "live";
    case AgentState::kLeaving:
    case AgentState::kEnding: return "evicting";
  }
  return "cold";
}

AgentWaits::Seen AgentWaits::look(const storage::AgentKey& key,
                                  std::chrono::steady_clock::time_point until) const {
  struct OnShard {
    runtime::ShardAdmin::Standing standing{};
    std::vector<Wait> waits{};
  };
  const auto there = ask_home(parts_.runtime, key, kLoopPatience, [key](runtime::Shard& shard) {
    return OnShard{.standing = shard.admin().standing(key), .waits = shard.admin().waits(key)};
  });
  Seen seen{.key = key, .state = "unknown"};
  if (!there) {
    seen.waits = {who_holds_up(key)};
    seen.not_seen = no_loop().message;
    return seen;
  }
  const AgentState state = there->standing.state;
  seen.state = state_word(state);
  seen.waits = there->waits;
  seen.is_known = state != AgentState::kCold || !seen.waits.empty();
  add_class(seen);
  add_trial(seen, there->standing);
  const bool is_live = state == AgentState::kLive;
  if (state == AgentState::kWaking || state == AgentState::kLeaving) {
    seen.not_seen = "it can be read when the agent is live or cold";
  } else {
    add_work(seen, is_live, until);
  }
  return seen;
}

// The oldest call that runs on the agent's loop. Jobs ("offload") run on threads of their own.
Wait AgentWaits::who_holds_up(const storage::AgentKey& key) const {
  const unsigned index = parts_.runtime.shard_index(key);
  Wait found{.kind = WaitKind::kLoop};
  diagnosis::for_each_call([&](const RunningCall& call) {
    if (call.call == "offload" || call.owner == nullptr || call.agent().empty()) return;
    const bool is_it =
        call.owner->agent_class == key.agent_class && call.agent_digest == sha256_prefix(key.name);
    const storage::AgentKey other{call.owner->agent_class, std::string(call.agent())};
    if (!is_it && parts_.runtime.shard_index(other) != index) return;
    const auto age = diagnosis::call_clock() - call.since;
    if (!is_it && age < kLoopPatience / 2) return;
    const std::string code(call.method().empty() ? call.call : call.method());
    found.kind = is_it ? WaitKind::kCall : WaitKind::kLoop;
    found.subject = is_it ? code : other.agent_class + '/' + other.name + ", in " + code;
    found.since_ms = wall_ms() - std::chrono::floor<std::chrono::milliseconds>(age).count();
    found.detail = parts_.stack_of ? parts_.stack_of(call) : std::string();
  });
  return found;
}

// A class that is not served: an agent without work or clients does not miss it, but cannot wake.
void AgentWaits::add_class(Seen& seen) const {
  const std::string& name = seen.key.agent_class;
  const auto served = parts_.runtime.classes().find(protocol::kebab_case(name));
  if (served && served->refusal.empty()) return;
  std::erase_if(seen.waits, [](const Wait& each) { return each.kind == WaitKind::kNoClass; });
  for (const plugins::ClassFacts& each : parts_.ledger.quarantined()) {
    if (each.agent_class != name) continue;
    seen.waits.push_back({.kind = WaitKind::kQuarantine,
                          .subject = name,
                          .detail = each.reason + " in " + each.call,
                          .since_ms = each.since_ms});
    return;
  }
  // A class that this process has never served is missing since its start.
  const auto since = parts_.runtime.classes().missing_since(protocol::kebab_case(name));
  seen.waits.push_back({.kind = WaitKind::kNoClass,
                        .detail = served ? served->refusal : std::string(),
                        .since_ms = since ? unix_millis(*since) : parts_.started_ms});
}

// It runs: so nothing waits for the trial, but a crash or a failed start ends this version.
void AgentWaits::add_trial(Seen& seen, const runtime::ShardAdmin::Standing& standing) const {
  if (standing.served == nullptr) return;
  const auto add = [&](const char* what) {
    seen.waits.push_back({.kind = WaitKind::kOnTrial, .detail = what});
  };
  if (parts_.ledger.is_on_trial(standing.sha256)) add("library");
  const std::string segment = protocol::kebab_case(seen.key.agent_class);
  const auto trial = parts_.ledger.find({plugins::Subject::Kind::kSettings, segment});
  const bool is_newest = parts_.runtime.classes().find(segment).get() == standing.served;
  if (trial && !trial->on_trial.empty() && is_newest) add("settings");
}

void AgentWaits::add_work(Seen& seen, bool is_live,
                          std::chrono::steady_clock::time_point until) const {
  // Shared: the visit may take place after this has returned.
  const auto work = std::make_shared<std::vector<Wait>>();
  const auto read = visit_agent(
      parts_.runtime, seen.key,
      [work, is_live](extensions::AgentContext& agent) -> Result<std::string> {
        *work = durable_waits(agent, is_live);
        return std::string();
      },
      until);
  if (!read) {
    seen.not_seen = read.error().message;
    return;
  }
  seen.waits.insert(seen.waits.end(), work->begin(), work->end());
}

Json why_json(AgentWaits::Seen seen, std::int64_t now_ms) {
  sort_by_urgency(seen.waits, now_ms);
  Json waits = Json::array();
  for (const Wait& wait : seen.waits) {
    const Explanation told = explain(wait, seen.key.agent_class + ' ' + seen.key.name, now_ms);
    waits.push_back({{"kind", told.kind},
                     {"urgency", word(told.urgency)},
                     {"what", told.what},
                     {"since_ms", or_null(wait.since_ms)},
                     {"until_ms", or_null(wait.until_ms)},
                     {"ends_by", or_null(told.ends)},
                     {"do", or_null(told.action)},
                     {"run", or_null(told.command)}});
  }
  return {{"class", seen.key.agent_class},
          {"agent", seen.key.name},
          {"state", seen.state},
          {"waits", std::move(waits)},
          {"not_seen", or_null(seen.not_seen)}};
}

}  // namespace hearth::server
