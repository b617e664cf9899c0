#pragma once
// The agent that a request names: /agents/{class}/{name}[/{rest}][?{query}]

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace hearth::protocol {

// Lifetime  the fields point into the target that was parsed.
struct AgentAddress {
  std::string_view class_segment;  // as written; the caller refuses unknown classes
  std::string_view name;           // as written, NOT decoded: "Room%201" is another name
  std::string_view rest;   // the text after the name: empty, or begins with a slash; unchecked
  std::string_view query;  // without the `?`; unchecked
};

enum class AddressFault {
  kNotOurs,   // the path does not begin with /agents
  kTooShort,  // no class, or no name
  kBadClass,  // the class segment breaks a rule below
  kBadName,   // the name breaks a rule below
};

struct AddressError {
  AddressFault fault;
  std::string_view reason;  // one fixed sentence, safe to show; never quotes the request
};

inline constexpr std::size_t kMaxClassSegmentBytes = 128;
inline constexpr std::size_t kDefaultMaxNameBytes = 512;

// Removes the next segment that is not empty from the front of `path`, with the slashes before it.
std::string_view take_segment(std::string_view& path);

// Parses a request target as it is in the request line (origin form). Accepts any bytes.
//
// Empty segments are ignored: //agents//counter///a is /agents/counter/a. The prefix is compared
// byte by byte.
//
// Rules for class and name:
//   as written, 1 to 128 bytes for the class and 1 to `max_name_bytes` for the name;
//   percent-decoded, well-formed UTF-8 without control characters (Unicode Cc, NUL included);
//   neither `.` nor `..`, also in an encoded form.
// An encoded slash or a backslash is an ordinary character: a name never becomes a path.
std::variant<AgentAddress, AddressError> parse_agent_address(
    std::string_view target, std::size_t max_name_bytes = kDefaultMaxNameBytes);

// One agent below another: .../sub/{class}/{name}
struct SubAgentStep {
  std::string_view class_segment;  // as written
  std::string name;                // decoded
};

inline constexpr std::size_t kMaxSubAgentSteps = 8;

// The class of /agents/{class}[?{query}], a path without a name, as written. Empty for any other
// target. Unchecked.
std::string_view class_alone(std::string_view target);

// Clients address a sub-agent as .../sub/{class}/{name}, anywhere after the name of the agent above
// it. The first step is the first such piece whose class `is_class` knows. The search for the next
// step begins after it. No steps: the path belongs to the agent itself.
//   `rest`   AgentAddress::rest.
//   Failure  kBadName: a name breaks the rules of parse_agent_address(), or there are more than
//            kMaxSubAgentSteps steps.
std::variant<std::vector<SubAgentStep>, AddressError> parse_sub_agents(
    std::string_view rest, const std::function<bool(std::string_view)>& is_class,
    std::size_t max_name_bytes = kDefaultMaxNameBytes);

// The rules for a name alone, for names that do not come from a path. Empty if the name is valid,
// otherwise the sentence that says what is wrong.
std::string_view name_problem(std::string_view name, std::size_t max_name_bytes);

}  // namespace hearth::protocol
