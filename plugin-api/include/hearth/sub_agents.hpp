#pragma once
// Agents below an agent. Each has its own state, database, clients and durable work, and is
// destroyed with the agent above. Clients reach one at .../sub/{class}/{name}.

#include <hearth/callback.hpp>
#include <hearth/ext/subagents.h>
#include <hearth/time.hpp>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace hearth {

// Names a sub-agent.
struct SubAgentName {
  std::string class_name;
  std::string name;
};

struct SubAgentEntry {
  std::string class_name;
  std::string name;
  Time created_at;
};

struct SubAgentFilter {
  SubAgentName after = {};    // only agents after this one, which need not exist; empty: all
  std::uint32_t limit = 100;  // 1 to 1000
};

// Threads, Lifetime  As the agent that gives it: sub_agents().
class SubAgentList {
 public:
  explicit SubAgentList(detail::Activation& activation) : activation_(activation) {}

  // The agents right below, in the order of their names.
  [[nodiscard]] std::vector<SubAgentEntry> list(const SubAgentFilter& filter = {}) const {
    hearth_subagents_filter wanted = {};
    wanted.struct_size = sizeof wanted;
    wanted.limit = filter.limit;
    wanted.after_class = detail::slice(std::string_view(filter.after.class_name));
    wanted.after_name = detail::slice(std::string_view(filter.after.name));
    hearth_bytes agents = {nullptr, 0};
    activation_.check(table().list(activation_.host(), activation_.id(), &wanted, &agents),
                      "list sub-agents");
    std::vector<SubAgentEntry> all;
    for (const Json& each : detail::parse_record(detail::view(agents))) {
      all.push_back({each.at("class").get<std::string>(), each.at("name").get<std::string>(),
                     detail::read_time(each.at("created_at"))});
    }
    return all;
  }
  // Destroys it and all agents below it. Certain when this returns. False: it does not exist.
  bool destroy(std::string_view class_name, std::string_view name) {
    const hearth_status status = table().destroy(activation_.host(), activation_.id(),
                                                 detail::slice(class_name), detail::slice(name));
    return detail::found(activation_, status, "destroy a sub-agent");
  }
  // The path of this agent, the topmost agent first, itself last.
  [[nodiscard]] std::vector<SubAgentName> path() const {
    hearth_bytes path = {nullptr, 0};
    activation_.check(table().path(activation_.host(), activation_.id(), &path), "path");
    std::vector<SubAgentName> way;
    for (const Json& each : detail::parse_record(detail::view(path)))
      way.push_back({each.at("class").get<std::string>(), each.at("name").get<std::string>()});
    return way;
  }

 private:
  [[nodiscard]] const hearth_subagents_v1& table() const {
    return detail::need(activation_.tables().sub_agents, HEARTH_EXT_SUBAGENTS);
  }

  detail::Activation& activation_;
};

}  // namespace hearth
