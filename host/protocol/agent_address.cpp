#include "protocol/agent_address.hpp"

#include "base/utf8.hpp"
#include "protocol/request_query.hpp"

#include <algorithm>
#include <string>

namespace hearth::protocol {
namespace {

constexpr std::string_view kPrefix = "agents";
constexpr std::string_view kSubAgent = "sub";

struct Sentences {
  std::string_view empty, too_long, not_utf8, control, dots;
};

constexpr Sentences kClassSentences{.empty = "the agent class is empty",
                                    .too_long = "the agent class is too long",
                                    .not_utf8 = "the agent class is not valid UTF-8",
                                    .control = "the agent class contains a control character",
                                    .dots = "the agent class must not be . or .."};

constexpr Sentences kNameSentences{.empty = "the agent name is empty",
                                   .too_long = "the agent name is too long",
                                   .not_utf8 = "the agent name is not valid UTF-8",
                                   .control = "the agent name contains a control character",
                                   .dots = "the agent name must not be . or .."};

// The length is checked first, so that the rest reads and copies no more than the limit.
std::string_view problem(std::string_view text, std::size_t max_bytes, const Sentences& say) {
  if (text.empty()) return say.empty;
  if (text.size() > max_bytes) return say.too_long;
  const std::string decoded = percent_decode(text);
  if (!is_valid_utf8(text) || !is_valid_utf8(decoded)) return say.not_utf8;
  if (has_control_character(text) || has_control_character(decoded)) return say.control;
  if (decoded == "." || decoded == "..") return say.dots;
  return {};
}

}  // namespace

std::string_view take_segment(std::string_view& path) {
  path.remove_prefix(std::min(path.find_first_not_of('/'), path.size()));
  const std::string_view segment = path.substr(0, path.find('/'));
  path.remove_prefix(segment.size());
  return segment;
}

std::variant<std::vector<SubAgentStep>, AddressError> parse_sub_agents(
    std::string_view rest, const std::function<bool(std::string_view)>& is_class,
    std::size_t max_name_bytes) {
  std::vector<SubAgentStep> steps;
  for (std::string_view segment = take_segment(rest); !segment.empty();
       segment = take_segment(rest)) {
    if (segment != kSubAgent) continue;
    std::string_view behind = rest;
    const std::string_view agent_class = take_segment(behind);
    const std::string_view name = take_segment(behind);
    if (name.empty() || !is_class(agent_class)) continue;
    if (const auto why = name_problem(name, max_name_bytes); !why.empty())
      return AddressError{AddressFault::kBadName, why};
    if (steps.size() == kMaxSubAgentSteps)
      return AddressError{AddressFault::kBadName, "too many agents stand above this one"};
    steps.push_back({agent_class, percent_decode(name)});
    rest = behind;
  }
  return steps;
}

std::string_view class_alone(std::string_view target) {
  std::string_view path = target.substr(0, target.find('?'));
  if (!path.starts_with('/') || take_segment(path) != kPrefix) return {};
  const std::string_view agent_class = take_segment(path);
  return take_segment(path).empty() ? agent_class : std::string_view();
}

std::string_view name_problem(std::string_view name, std::size_t max_name_bytes) {
  return problem(name, max_name_bytes, kNameSentences);
}

std::variant<AgentAddress, AddressError> parse_agent_address(std::string_view target,
                                                             std::size_t max_name_bytes) {
  const std::size_t path_end = std::min(target.find('?'), target.size());
  std::string_view path = target.substr(0, path_end);
  if (!path.starts_with('/') || take_segment(path) != kPrefix) {
    return AddressError{AddressFault::kNotOurs, "the path does not begin with /agents"};
  }
  AgentAddress address;
  address.class_segment = take_segment(path);
  address.name = take_segment(path);
  address.rest = path;
  address.query = target.substr(std::min(path_end + 1, target.size()));

  if (address.name.empty()) {
    return AddressError{AddressFault::kTooShort, "the path must be /agents/{class}/{name}"};
  }
  if (const auto why = problem(address.class_segment, kMaxClassSegmentBytes, kClassSentences);
      !why.empty()) {
    return AddressError{AddressFault::kBadClass, why};
  }
  if (const auto why = name_problem(address.name, max_name_bytes); !why.empty()) {
    return AddressError{AddressFault::kBadName, why};
  }
  return address;
}

}  // namespace hearth::protocol
