#pragma once
// Which agent a request is for: /agents/{class}/{name}[/{rest}][?{query}]

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace hearth::protocol {

// Lifetime  the fields point into the target that was parsed.
struct AgentAddress {
  std::string_view class_segment;  // as written; unknown classes are the caller's to refuse
  std::string_view name;           // as written and NOT decoded: "Room%201" is a name of its own
  std::string_view rest;   // what follows the name: empty, or begins with a slash; unchecked
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
  std::string_view reason;  // one fixed sentence, safe to show; never quotes what was sent
};

inline constexpr std::size_t kMaxClassSegmentBytes = 128;
inline constexpr std::size_t kDefaultMaxNameBytes = 512;

// Parses a request target as it stands in the request line (origin form). Any bytes are fine.
//
// Empty segments count for nothing: //agents//counter///a is /agents/counter/a. The prefix is
// compared byte by byte.
//
// Rules for class and name, on the bytes as written and on the bytes that percent-decoding gives:
//   1 to 128 bytes for the class, 1 to `max_name_bytes` for the name, as written;
//   decoded, well-formed UTF-8 without control characters (Unicode Cc, so NUL too);
//   neither `.` nor `..`, not in an encoded form either.
// An encoded slash or a backslash is an ordinary character: a name never becomes a path.
std::variant<AgentAddress, AddressError> parse_agent_address(
    std::string_view target, std::size_t max_name_bytes = kDefaultMaxNameBytes);

// One agent below another: .../sub/{class}/{name}
struct SubAgentStep {
  std::string_view class_segment;  // as written
  std::string name;                // decoded
};

inline constexpr std::size_t kMaxSubAgentSteps = 8;

// The class of /agents/{class}[?{query}], a path without a name, as written; empty if the target is
// anything else. Unchecked.
std::string_view class_alone(std::string_view target);

// Clients address an agent below another one as .../sub/{class}/{name}, at any place behind the
// name of the one above. Gives the steps from the first such piece whose class `is_class` knows, of
// what follows it again the first one, and so on; none if there is none: then the path is the
// agent's own. `rest`: AgentAddress::rest. Names break the rules of parse_agent_address() or not;
// there are at most kMaxSubAgentSteps.
std::variant<std::vector<SubAgentStep>, AddressError> parse_sub_agents(
    std::string_view rest, const std::function<bool(std::string_view)>& is_class,
    std::size_t max_name_bytes = kDefaultMaxNameBytes);

// The rules for a name alone, for callers that get one by another way. Empty when it is acceptable,
// else the sentence that says what is wrong.
std::string_view name_problem(std::string_view name, std::size_t max_name_bytes);

}  // namespace hearth::protocol
