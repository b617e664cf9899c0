#include "protocol/server_frames.hpp"

#include "json/json_text.hpp"

namespace hearth::protocol {
namespace {

// Room for the fixed parts of the longest frame.
constexpr std::size_t kFixedBytes = 80;

// {"type":"rpc","id":<id>. The caller appends the rest, with its comma.
std::string begin_rpc(std::string_view id_json, std::size_t body_bytes) {
  std::string frame;
  frame.reserve(kFixedBytes + id_json.size() + body_bytes);
  frame += R"({"type":"rpc","id":)";
  frame += id_json;
  return frame;
}

std::string rpc_value_frame(std::string_view id_json, std::string_view head,
                            std::string_view json) {
  std::string frame = begin_rpc(id_json, json.size());
  frame += head;
  frame += json;
  frame += '}';
  return frame;
}

std::string text_frame(std::string_view head, std::string_view text) {
  std::string frame;
  frame.reserve(head.size() + text.size() + 8);
  frame += head;
  append_json_string(frame, text);
  frame += '}';
  return frame;
}

}  // namespace

std::string identity_frame(std::string_view name, std::string_view class_segment,
                           StateFollows state_follows) {
  std::string frame;
  frame.reserve(kFixedBytes + name.size() + class_segment.size());
  frame += R"({"type":"cf_agent_identity","name":)";
  append_json_string(frame, name);
  frame += R"(,"agent":)";
  append_json_string(frame, class_segment);
  if (state_follows == StateFollows::kYes) frame += R"(,"stateFollows":true)";
  frame += '}';
  return frame;
}

std::string state_frame(std::string_view state_json) {
  constexpr std::string_view kHead = R"({"type":"cf_agent_state","state":)";
  if (state_json.empty()) return R"({"type":"cf_agent_state"})";
  std::string frame;
  frame.reserve(kHead.size() + state_json.size() + 1);
  frame += kHead;
  frame += state_json;
  frame += '}';
  return frame;
}

std::string state_error_frame(std::string_view message) {
  return text_frame(R"({"type":"cf_agent_state_error","error":)", message);
}

std::string_view mcp_servers_frame() {
  return R"({"type":"cf_agent_mcp_servers","mcp":{"prompts":[],"resources":[],"servers":{},"tools":[]}})";
}

std::string rpc_result_frame(std::string_view id_json, std::string_view result_json) {
  return rpc_value_frame(id_json, R"(,"success":true,"done":true,"result":)", result_json);
}

std::string rpc_void_frame(std::string_view id_json) {
  std::string frame = begin_rpc(id_json, 0);
  frame += R"(,"success":true,"done":true})";
  return frame;
}

std::string rpc_chunk_frame(std::string_view id_json, std::string_view chunk_json) {
  return rpc_value_frame(id_json, R"(,"success":true,"done":false,"result":)", chunk_json);
}

std::string rpc_error_frame(std::string_view id_json, std::string_view message) {
  std::string frame = begin_rpc(id_json, message.size());
  frame += R"(,"success":false,"error":)";
  append_json_string(frame, message);
  frame += '}';
  return frame;
}

}  // namespace hearth::protocol
