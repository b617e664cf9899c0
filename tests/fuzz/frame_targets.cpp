// What clients send as text: frames, JSON.
#include "fuzz/targets.hpp"
#include "json/json.hpp"
#include "json/json_scanner.hpp"
#include "json/json_text.hpp"
#include "protocol/client_frame.hpp"

#include <array>
#include <variant>

namespace hearth::fuzz {

void client_frame(std::string_view bytes) {
  std::string mended;
  const protocol::ClientFrame frame = protocol::classify_client_frame(bytes, mended);
  if (const auto* call = std::get_if<protocol::RpcCall>(&frame)) {
    const std::string id(call->id_json);  // as it came
    require(is_json(without_lone_surrogates(id).value_or(id)), "the id is JSON");
    require(!call->problem.empty() || parse_json(call->args_json).has_value(),
            "arguments are JSON, or the call has a problem");
  } else if (const auto* write = std::get_if<protocol::StateWrite>(&frame)) {
    require(!write->problem.empty() || parse_json(write->state_json).has_value(),
            "a state is JSON, or the write has a problem");
  }
}

void json_text(std::string_view bytes) {
  const auto parsed = parse_json(bytes);
  const bool has_mark = bytes.starts_with("\xef\xbb\xbf");
  require(has_mark || is_json(bytes) == parsed.has_value(), "is_json() agrees with parse_json()");
  std::array<WantedMember, 2> wanted = {{{.name = "type", .json = {}}, {.name = "a", .json = {}}}};
  const bool is_object = parsed.has_value() && parsed->is_object();
  require(has_mark || scan_json_object(bytes, wanted) == is_object,
          "scan_json_object() takes what is an object to parse_json()");
  (void)scan_unbounded_json_object(bytes, wanted);
  (void)without_lone_surrogates(bytes);
  if (parsed) {
    const auto again = parse_json(dump_json(*parsed));
    require(again.has_value() && *again == *parsed, "what is printed reads as what it was");
  }
  std::string quoted;
  append_json_string(quoted, bytes);
  const auto string = parse_json(quoted);
  require(string.has_value() && string->is_string(), "any bytes are a string once they are quoted");
  require(quoted.size() <= bytes.size() * 6 + 2, "six bytes for one at most");
}

}  // namespace hearth::fuzz
