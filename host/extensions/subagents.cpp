#include "extensions/subagents.hpp"

#include "base/names.hpp"
#include "extensions/abi_request.hpp"
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

hearth_status no_sub_agents(AgentContext& agent) {
  return fail(agent, HEARTH_E_UNSUPPORTED, "this host has no sub-agents");
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

hearth_status list_sub_agents(AgentContext& it, const hearth_subagents_filter* filter,
                              hearth_bytes* agents) {
  SubAgents* const port = it.ports().sub_agents;
  if (port == nullptr) return no_sub_agents(it);
  hearth_subagents_filter wanted{};
  if (filter != nullptr) {
    const auto given = read_struct(filter);
    if (!given) return bad_struct(it);
    wanted = *given;
  }
  const auto limit = read_limit(wanted.limit, kListedByDefault, kMostListed);
  if (!limit) return fail(it, HEARTH_E_INVALID, "at most 1000 sub-agents are listed at once");
  const auto after_class = text_of(wanted.after_class);
  const auto after_name = text_of(wanted.after_name);
  if (!after_class || !after_name) return bad_slice(it);
  const AgentKey after =
      after_name->empty() ? AgentKey() : it.key().child(*after_class, *after_name);
  std::string json = "[";
  for (const SubAgent& each : port->list(it.key(), after, *limit)) {
    if (json.size() > 1) json += ',';
    append_key(json, each.key);
    json += ",\"created_at\":" + std::to_string(each.created_at_ms) + '}';
  }
  lend(it, json + ']', agents);
  return HEARTH_OK;
}

hearth_status destroy_sub_agent(AgentContext& it, hearth_bytes agent_class, hearth_bytes name) {
  SubAgents* const port = it.ports().sub_agents;
  if (port == nullptr) return no_sub_agents(it);
  const auto its_class = text_of(agent_class);
  const auto its_name = text_of(name);
  if (!its_class || !its_name) return bad_slice(it);
  const auto child = child_of(it, *its_class, *its_name);
  if (!child) return fail(it, HEARTH_E_NOT_FOUND, "there is no such sub-agent");
  return status_of(it, port->destroy(*child, it.handle()));
}

hearth_status path_of_agent(AgentContext& it, hearth_bytes* path) {
  std::vector<AgentKey> way{it.key()};
  while (auto above = way.back().parent()) way.push_back(*std::move(above));
  std::string json = "[";
  while (!way.empty()) {
    if (json.size() > 1) json += ',';
    append_key(json, way.back());
    json += '}';
    way.pop_back();
  }
  lend(it, json + ']', path);
  return HEARTH_OK;
}

constexpr hearth_subagents_v1 kSubAgents = {.list = kDoor<list_sub_agents>,
                                            .destroy = kDoor<destroy_sub_agent>,
                                            .path = kDoor<path_of_agent>};

}  // namespace

const hearth_subagents_v1& subagents_extension() noexcept {
  return kSubAgents;
}

}  // namespace hearth::extensions
