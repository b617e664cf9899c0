#include "base/names.hpp"
#include "extensions/abi_call.hpp"
#include "extensions/basics.hpp"
#include "extensions/sub_agents_port.hpp"
#include "json/json_text.hpp"

#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace hearth::extensions {
namespace {

using storage::AgentKey;

static_assert(HEARTH_SUBAGENT_DEPTH == AgentKey::kMaxDepth);
static_assert(HEARTH_SUBAGENT_NAME_MAX == storage::kMaxNameBytes);
static_assert(HEARTH_EVENT_SUB_AGENT == static_cast<std::uint32_t>(EventKind::kSubAgent));

constexpr std::size_t kListedByDefault = 100;
constexpr std::size_t kMostListed = 1000;

Error no_sub_agents() {
  return {Errc::kUnsupported, "this host has no sub-agents"};
}

void append_key(std::string& out, const AgentKey& key) {
  out += "{\"class\":";
  append_json_string(out, key.agent_class);
  out += ",\"name\":";
  append_json_string(out, key.own_name());
}

// The key of an agent right below; absent if the class or the name is invalid.
std::optional<AgentKey> child_of(const AgentContext& agent, std::string_view agent_class,
                                 std::string_view name) {
  if (!is_class_name(agent_class) || !storage::is_sub_agent_name(name)) return std::nullopt;
  return agent.key().child(agent_class, name);
}

// `filter` may be null.
Result<std::string> list_sub_agents(AgentContext& it, const hearth_subagents_filter* filter) {
  SubAgents* const port = it.ports().sub_agents;
  if (port == nullptr) return no_sub_agents();
  const auto wanted =
      filter == nullptr ? std::optional(hearth_subagents_filter()) : read_struct(filter);
  if (!wanted) return bad_struct();
  const auto limit = read_limit(wanted->limit, kListedByDefault, kMostListed);
  if (!limit) return Error{Errc::kInvalidArgument, "at most 1000 sub-agents are listed at once"};
  const auto texts = texts_of({wanted->after_class, wanted->after_name});
  if (!texts) return bad_slice();
  const auto& [after_class, after_name] = *texts;
  const AgentKey after = after_name.empty() ? AgentKey() : it.key().child(after_class, after_name);
  std::string json = "[";
  for (const SubAgent& each : port->list(it.key(), after, *limit)) {
    if (json.size() > 1) json += ',';
    append_key(json, each.key);
    json += ",\"created_at\":" + std::to_string(each.created_at_ms) + '}';
  }
  return json + ']';
}

Result<void> destroy_sub_agent(AgentContext& it, std::string_view agent_class,
                               std::string_view name) {
  SubAgents* const port = it.ports().sub_agents;
  if (port == nullptr) return no_sub_agents();
  const auto child = child_of(it, agent_class, name);
  if (!child) return Error{Errc::kNotFound, "there is no such sub-agent"};
  return port->destroy(*child, it.handle());
}

Result<std::string> path_of_agent(AgentContext& it) {
  std::vector<AgentKey> way{it.key()};
  while (auto above = way.back().parent()) way.push_back(*std::move(above));
  std::string json = "[";
  while (!way.empty()) {
    if (json.size() > 1) json += ',';
    append_key(json, way.back());
    json += '}';
    way.pop_back();
  }
  return json + ']';
}

}  // namespace

constexpr hearth_subagents_v1 kSubAgentsTable = {.list = kDoor<list_sub_agents>,
                                                 .destroy = kDoor<destroy_sub_agent>,
                                                 .path = kDoor<path_of_agent>};

}  // namespace hearth::extensions
