// Chunks about tool calls. A provider may send a part of its stream twice, and a client may answer
// in between: what would take a part back is a replay.
#include "parts.hpp"

#include <algorithm>
#include <array>
#include <string>
#include <string_view>
#include <utility>

namespace hearth::chat::parts {

namespace {

using ApplyToCall = Applied (*)(Json& message, const Json& chunk, Json* part);

bool has_state(const Json& part, std::string_view state) {
  return text(part, "state") == state;
}

// What any chunk may say about the call.
void note_call(Json& part, const Json& chunk) {
  copy(part, chunk, {"providerExecuted", "title", "toolMetadata"});
  merge(part, "callProviderMetadata", find(chunk, "providerMetadata"));
}

void note_result(Json& part, const Json& chunk) {
  end_input(part);
  copy(part, chunk, {"providerExecuted", "toolMetadata"});
  merge(part, "resultProviderMetadata", find(chunk, "providerMetadata"));
}

// The part of a call that the message does not have. Null: it is full, or the chunk has no tool.
Json* add_call(Json& message, const Json& chunk) {
  if (!has_id(chunk, "toolName")) return nullptr;
  const std::string& tool = text(chunk, "toolName");
  Json part{{"toolCallId", chunk["toolCallId"]}, {"state", "input-streaming"}};
  if (is_true(chunk, "dynamic")) {
    part["type"] = "dynamic-tool";
    part["toolName"] = tool;
  } else {
    part["type"] = "tool-" + tool;
  }
  if (!push(message, std::move(part))) return nullptr;
  return &of(message).back();
}

Applied start_input(Json& message, const Json& chunk, Json* part) {
  if (part != nullptr) return {Use::kReplayed};
  part = add_call(message, chunk);
  if (part == nullptr) return {Use::kBad};
  (*part)["inputText"] = "";
  note_call(*part, chunk);
  return {Use::kStored};
}

Applied add_input(Json&, const Json& chunk, Json* part) {
  const Json* const delta = find(chunk, "inputTextDelta");
  if (part == nullptr || delta == nullptr || !delta->is_string()) return {Use::kBad};
  if (!has_state(*part, "input-streaming")) return {Use::kReplayed};
  Json& streamed = (*part)["inputText"];
  if (!streamed.is_string()) streamed = "";
  streamed.get_ref<std::string&>() += delta->get_ref<const std::string&>();
  return {Use::kStored};
}

// The chunk that a stored request for an approval came from.
Json approval_request(const Json& part) {
  Json chunk{{"type", "tool-approval-request"}, {"toolCallId", part["toolCallId"]}};
  const Json& approval = part["approval"];
  copy_as(chunk, "approvalId", approval, "id");
  copy_as(chunk, "approvalDescriptor", approval, "descriptor");
  copy_as(chunk, "reason", approval, "requestReason");
  copy(chunk, approval, {"isAutomatic", "signature"});
  return chunk;
}

Applied take_input(Json& message, const Json& chunk, Json* part) {
  const Json* const input = find(chunk, "input");
  if (input == nullptr) return {Use::kBad};
  if (part == nullptr) part = add_call(message, chunk);
  if (part == nullptr) return {Use::kBad};
  // A request for an approval may come before its input is whole. The user sees the input, so the
  // request is sent once more.
  const bool is_late = has_state(*part, "approval-requested") && part->contains("inputText");
  if (!is_late && !has_state(*part, "input-streaming")) return {Use::kReplayed};
  (*part)["input"] = *input;
  part->erase("inputText");
  note_call(*part, chunk);
  if (is_late) return {Use::kStored, approval_request(*part)};
  (*part)["state"] = "input-available";
  return {Use::kStored};
}

Applied fail_input(Json& message, const Json& chunk, Json* part) {
  const Json* const error = find(chunk, "errorText");
  if (error == nullptr || !error->is_string()) return {Use::kBad};
  if (part != nullptr && is_settled(*part)) return {Use::kReplayed};
  if (part == nullptr) part = add_call(message, chunk);
  if (part == nullptr) return {Use::kBad};
  part->erase("inputText");
  part->erase("input");
  copy_as(*part, text(*part, "type") == "dynamic-tool" ? "input" : "rawInput", chunk, "input");
  note_result(*part, chunk);
  (*part)["state"] = "output-error";
  (*part)["errorText"] = *error;
  return {Use::kStored};
}

Applied request_approval(Json&, const Json& chunk, Json* part) {
  if (part == nullptr || !has_id(chunk, "approvalId")) return {Use::kBad};
  if (is_settled(*part) || has_state(*part, "approval-responded")) return {Use::kReplayed};
  // `inputText` stays: it shows that the input has not come.
  if (const Json* const streamed = find(*part, "inputText")) (*part)["input"] = as_input(*streamed);
  Json approval = Json::object();
  copy_as(approval, "id", chunk, "approvalId");
  copy_as(approval, "descriptor", chunk, "approvalDescriptor");
  copy_as(approval, "requestReason", chunk, "reason");
  copy(approval, chunk, {"isAutomatic", "signature"});
  (*part)["approval"] = std::move(approval);
  (*part)["state"] = "approval-requested";
  return {Use::kStored};
}

Json* find_approval(Json& message, std::string_view id) {
  for (Json& part : of(message)) {
    const Json* const approval = find(part, "approval");
    if (approval != nullptr && is_tool_part(part) && text(*approval, "id") == id) return &part;
  }
  return nullptr;
}

// The only one without a toolCallId.
Applied answer_approval(Json& message, const Json& chunk) {
  const Json* const is_approved = find(chunk, "approved");
  if (!has_id(chunk, "approvalId") || is_approved == nullptr || !is_approved->is_boolean())
    return {Use::kBad};
  Json* const part = find_approval(message, text(chunk, "approvalId"));
  if (part == nullptr) return {Use::kElsewhere};
  if (is_settled(*part)) return {Use::kReplayed};
  end_input(*part);
  copy((*part)["approval"], chunk, {"approved", "reason"});
  note_call(*part, chunk);
  (*part)["state"] = "approval-responded";
  return {Use::kStored};
}

Applied take_output(Json&, const Json& chunk, Json* part) {
  const Json* const output = find(chunk, "output");
  if (output == nullptr) return {Use::kBad};
  if (part == nullptr) return {Use::kElsewhere};
  note_result(*part, chunk);
  part->erase("errorText");
  part->erase("preliminary");
  copy(*part, chunk, {"preliminary"});
  (*part)["state"] = "output-available";
  (*part)["output"] = *output;
  return {Use::kStored};
}

Applied fail_output(Json&, const Json& chunk, Json* part) {
  const Json* const error = find(chunk, "errorText");
  if (error == nullptr || !error->is_string()) return {Use::kBad};
  if (part == nullptr) return {Use::kElsewhere};
  note_result(*part, chunk);
  part->erase("output");
  part->erase("preliminary");
  (*part)["state"] = "output-error";
  (*part)["errorText"] = *error;
  return {Use::kStored};
}

Applied deny_output(Json&, const Json&, Json* part) {
  if (part == nullptr) return {Use::kElsewhere};
  if (is_settled(*part) || has_state(*part, "approval-responded")) return {Use::kReplayed};
  end_input(*part);
  (*part)["state"] = "output-denied";
  return {Use::kStored};
}

struct ToolKind {
  std::string_view type;
  ApplyToCall apply;
};

constexpr std::array kToolKinds = {
    ToolKind{"tool-input-start", start_input},
    ToolKind{"tool-input-delta", add_input},
    ToolKind{"tool-input-available", take_input},
    ToolKind{"tool-input-error", fail_input},
    ToolKind{"tool-approval-request", request_approval},
    ToolKind{"tool-output-available", take_output},
    ToolKind{"tool-output-error", fail_output},
    ToolKind{"tool-output-denied", deny_output},
};

}  // namespace

Applied apply_tool_chunk(Json& message, const Json& chunk) {
  const std::string& type = text(chunk, "type");
  if (type == "tool-approval-response") return answer_approval(message, chunk);
  const auto kind = std::ranges::find(kToolKinds, type, &ToolKind::type);
  if (kind == kToolKinds.end() || !has_id(chunk, "toolCallId")) return {Use::kBad};
  return kind->apply(message, chunk, find_call(message, text(chunk, "toolCallId")));
}

}  // namespace hearth::chat::parts
