#include "protocol/client_frame.hpp"

#include "json/json.hpp"
#include "json/json_scanner.hpp"
#include "json/json_text.hpp"

#include <algorithm>
#include <array>

namespace hearth::protocol {
namespace {

constexpr std::string_view kRpcType = R"("rpc")";
constexpr std::string_view kStateType = R"("cf_agent_state")";

bool contains(std::string_view text, std::string_view part) {
  // string::find stops at every quote; memmem does not.
  return memmem(text.data(), text.size(), part.data(), part.size()) != nullptr;
}

bool opens_an_object(std::string_view text) {
  const std::size_t first = text.find_first_not_of(" \t\r\n");
  return first != std::string_view::npos && text[first] == '{';
}

// Takes `part` and the space before it from the beginning of `text`. False: it is not there.
bool take(std::string_view& text, std::string_view part) {
  text.remove_prefix(std::min(text.find_first_not_of(" \t\r\n"), text.size()));
  if (!text.starts_with(part)) return false;
  text.remove_prefix(part.size());
  return true;
}

// Whether the first member is the type, and is none of ours.
bool begins_with_other_type(std::string_view text) {
  if (!take(text, "{") || !take(text, R"("type")") || !take(text, ":") || !take(text, R"(")"))
    return false;
  const std::size_t end = text.find_first_of(R"("\)");
  if (end == std::string_view::npos || text[end] != '"') return false;
  const std::string_view type = text.substr(0, end);
  return type != "rpc" && type != "cf_agent_state";
}

// The letters of the type have only one other spelling: \u escapes.
bool may_be_protocol_frame(std::string_view text) {
  if (text.size() > kLongFrame && begins_with_other_type(text)) return false;
  return opens_an_object(text) &&
         (contains(text, kRpcType) || contains(text, kStateType) || contains(text, R"(\u)"));
}

bool is_string(std::string_view json) {
  return json.starts_with('"');
}

bool is_array(std::string_view json) {
  return json.starts_with('[');
}

// `json` is the string that `expected` spells without escapes.
bool is_type(std::string_view json, std::string_view expected) {
  if (json == expected) return true;
  if (!is_string(json) || !contains(json, R"(\u)")) return false;
  return decode_json_string(json) == expected.substr(1, expected.size() - 2);
}

// Why the value of a recognised frame is refused; empty if it is not.
std::string problem_with(std::string_view json) {
  const Result<Json> parsed = parse_json(json);
  return parsed ? std::string() : parsed.error().message;
}

std::string problem_of_call(std::string_view id, std::string_view args, bool is_plain) {
  if (id.size() > kMostIdBytes) return "its id is longer than 1024 bytes";
  const std::string problem = is_plain ? std::string() : problem_with(args);
  return problem.empty() ? problem : "the arguments cannot be taken: " + problem;
}

}  // namespace

ClientFrame classify_client_frame(std::string_view text, std::string& mended) {
  if (!may_be_protocol_frame(text)) return UnknownFrame{};

  std::array<WantedMember, 5> members{
      {{"type", {}}, {"id", {}}, {"method", {}}, {"args", {}}, {"state", {}}}};
  const auto& [type, id, method, args, state] = members;
  std::string_view whole = text;
  const bool is_plain = scan_json_object(text, members);
  if (!is_plain) {
    if (auto replaced = without_lone_surrogates(text)) whole = mended = *std::move(replaced);
    if (!scan_unbounded_json_object(whole, members)) return UnknownFrame{};
  }

  if (is_type(type.json, kRpcType)) {
    if (!is_string(id.json) || !is_string(method.json) || !is_array(args.json)) {
      return UnknownFrame{};
    }
    // A replacement is as long as the replaced text.
    const auto id_at = static_cast<std::size_t>(id.json.data() - whole.data());
    return RpcCall{.id_json = text.substr(id_at, id.json.size()),
                   .method = decode_json_string(method.json),
                   .args_json = args.json,
                   .problem = problem_of_call(id.json, args.json, is_plain)};
  }
  if (is_type(type.json, kStateType) && !state.json.empty()) {
    return StateWrite{.state_json = state.json,
                      .problem = is_plain ? std::string() : problem_with(state.json)};
  }
  return UnknownFrame{};
}

}  // namespace hearth::protocol
