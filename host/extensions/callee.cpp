#include "extensions/callee.hpp"

#include "base/names.hpp"
#include "base/utf8.hpp"
#include "extensions/agent_router.hpp"

#include <hearth/ext/call.h>

#include <algorithm>
#include <cstddef>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace hearth::extensions {
namespace {

using storage::AgentKey;

constexpr std::size_t kMaxCalleePathBytes = 8192;  // for a path

Error bad_callee(const char* why) {
  return Error{Errc::kInvalidArgument, why};
}

// One agent of a path: its class as the path names it, its name decoded.
struct Step {
  std::string_view agent_class;
  std::string name;
};

// The steps, topmost first. Absent: it is not a path.
std::optional<std::vector<Step>> steps_of(std::string_view agent_class, std::string_view way) {
  if (way.size() > kMaxCalleePathBytes || has_control_character(way)) return std::nullopt;
  std::vector<std::string_view> pieces;
  for (std::size_t end = way.find('/'); end != std::string_view::npos; end = way.find('/')) {
    pieces.push_back(way.substr(0, end));
    way.remove_prefix(end + 1);
  }
  // The class of the last agent is given apart from the path.
  pieces.push_back(agent_class);
  pieces.push_back(way);
  if (pieces.size() % 2 != 0 || pieces.size() / 2 > AgentKey::kMaxDepth + 1) return std::nullopt;
  std::vector<Step> steps;
  for (std::size_t at = 0; at < pieces.size(); at += 2) {
    // A root's name stands as URLs spell it.
    auto name = at == 0 ? std::optional(std::string(pieces[1]))
                        : storage::decode_sub_agent_name(pieces[at + 1]);
    if (!name || !is_class_name(pieces[at]) || (at == 0 && !storage::is_root_name(*name)))
      return std::nullopt;
    steps.push_back({pieces[at], *std::move(name)});
  }
  return steps;
}

Result<AgentKey> end_of_way(const CallingAgent& caller, const CalleeName& named) {
  const auto steps = steps_of(named.agent_class, named.name);
  if (!steps)
    return bad_callee(
        "an agent's name has no slash, and this is not a path to a sub-agent as caller() gives it: "
        "use HEARTH_CALL_BELOW for a sub-agent");
  AgentKey key;
  for (const Step& step : *steps) {
    Result<std::string> own_name = std::string(step.agent_class);
    if (caller.router != nullptr) own_name = caller.router->class_name(step.agent_class);
    if (!own_name) return own_name.error();
    key = key.name.empty() ? AgentKey{*std::move(own_name), step.name}
                           : key.child(*own_name, step.name);
  }
  const bool is_answer = caller.asked_by != nullptr && key == *caller.asked_by;
  if (is_answer || key.root() == caller.key.root()) return key;
  return Error{Errc::kForbidden, "the path leads to a sub-agent of another tree"};
}

}  // namespace

Result<AgentKey> callee_of(const CallingAgent& caller, const CalleeName& named) {
  if ((named.flags & HEARTH_CALL_ABOVE) != 0) {
    if (auto above = caller.key.parent()) return *std::move(above);
    return Error{Errc::kNotFound, "nothing is above this agent"};
  }
  if (!is_class_name(named.agent_class)) return bad_callee("this is not the name of a class");
  if ((named.flags & HEARTH_CALL_BELOW) != 0) {
    if (!storage::is_sub_agent_name(named.name))
      return bad_callee(
          "a sub-agent's name is UTF-8 without control characters, neither . nor .., "
          "and at most 256 bytes long in a URL");
    if (caller.key.depth() == AgentKey::kMaxDepth)
      return bad_callee("too many agents stand above this one");
    return caller.key.child(named.agent_class, named.name);
  }
  if (named.name.find('/') != std::string_view::npos) return end_of_way(caller, named);
  if (!storage::is_root_name(named.name))
    return bad_callee(
        "an agent's name has 1 to 256 bytes and no control characters, and is "
        "neither . nor ..");
  return AgentKey{std::string(named.agent_class), std::string(named.name)};
}

bool must_exist_already(const AgentKey& caller, const AgentKey& callee) {
  const auto parent = callee.parent();
  return parent && *parent != caller && callee != caller;
}

}  // namespace hearth::extensions
