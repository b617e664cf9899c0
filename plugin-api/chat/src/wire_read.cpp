#include "parts.hpp"

#include <hearth/chat/wire.hpp>

#include <algorithm>
#include <array>
#include <string>
#include <string_view>
#include <utility>

namespace hearth::chat {

namespace {

// Numbers grow by a few bytes when they are written again, so a text near the limit is measured.
bool is_larger(const Json& value, std::size_t limit) {
  return to_text(value).size() > limit;
}

std::string messages_fault(const Json& messages, std::size_t bytes, const FrameLimits& limits) {
  if (!messages.is_array()) return "The messages are no array.";
  if (messages.size() > limits.messages) return "There are more than 100000 messages.";
  for (const Json& message : messages) {
    if (std::string fault = message_fault(message); !fault.empty()) return fault;
    if (bytes > limits.message_bytes / 2 && is_larger(message, limits.message_bytes))
      return "A message is larger than 16 MiB.";
  }
  return {};
}

bool is_client_tool(const Json& tool) {
  const Json* const parameters = parts::find(tool, "parameters");
  const Json* const description = parts::find(tool, "description");
  return parts::has_id(tool, "name") && (parameters == nullptr || parameters->is_object()) &&
         (description == nullptr || description->is_string());
}

// Sets `tools` to the tools of the client, or to null if there are none.
std::string take_client_tools(const Json& from, Json& tools) {
  tools = nullptr;
  const Json* const given = parts::find(from, "clientTools");
  if (given == nullptr || given->is_null()) return {};
  if (!given->is_array()) return "The client's tools are no array.";
  if (given->empty()) return {};
  if (given->size() > kMaxClientTools) return "There are more than 128 tools of the client.";
  if (!std::ranges::all_of(*given, is_client_tool))
    return "A tool of the client has no name of 1 to 256 bytes, or parameters that are no object.";
  if (parts::is_deeper(*given, kMaxDepth))
    return "The client's tools are nested deeper than 64 levels.";
  if (is_larger(*given, kMaxClientToolsBytes)) return "The client's tools are larger than 256 KiB.";
  tools = *given;
  return {};
}

// What is left of the fields of the request.
std::string take_custom_body(Json body, Json& custom) {
  for (const char* const key : {"messages", "trigger", "clientTools"}) body.erase(key);
  custom = nullptr;
  if (body.empty()) return {};
  if (parts::is_deeper(body, kMaxDepth))
    return "The fields beside the messages are nested deeper than 64 levels.";
  if (is_larger(body, kMaxCustomBodyBytes))
    return "The fields beside the messages are larger than 64 KiB.";
  custom = std::move(body);
  return {};
}

// A sentence if the body is refused.
std::string take_body(const std::string& written, ChatRequest& request, const FrameLimits& limits) {
  Json body = parts::read(written);
  if (!body.is_object()) return "The body of the request is no JSON object.";
  Json* const messages = body.contains("messages") ? &body["messages"] : nullptr;
  if (messages == nullptr || (messages->is_array() && messages->empty()))
    return "The request has no messages.";
  if (std::string fault = messages_fault(*messages, written.size(), limits); !fault.empty())
    return fault;
  request.messages = std::move(*messages);
  request.is_regenerate = parts::text(body, "trigger") == "regenerate-message";
  if (std::string fault = take_client_tools(body, request.client_tools); !fault.empty())
    return fault;
  return take_custom_body(std::move(body), request.body);
}

using ReadFrame = std::optional<ClientFrame>;

ReadFrame refused(std::string_view sentence) {
  return Refusal{{}, std::string(sentence)};
}

ReadFrame read_request(const Json& frame, std::string_view, const FrameLimits& limits) {
  const Json* const init = parts::find(frame, "init");
  if (init == nullptr || parts::text(*init, "method") != "POST") return std::nullopt;
  if (!parts::has_id(frame, "id")) return refused("The request has no id of 1 to 256 bytes.");
  ChatRequest request{.id = parts::text(frame, "id")};
  if (std::string fault = take_body(parts::text(*init, "body"), request, limits); !fault.empty())
    return Refusal{request.id, std::move(fault)};
  return request;
}

ReadFrame read_messages(const Json& frame, std::string_view written, const FrameLimits& limits) {
  const Json* const messages = parts::find(frame, "messages");
  if (messages == nullptr) return SetMessages{Json::array()};
  if (const std::string fault = messages_fault(*messages, written.size(), limits); !fault.empty())
    return refused(fault);
  return SetMessages{*messages};
}

ReadFrame read_clear(const Json&, std::string_view, const FrameLimits&) {
  return ClearChat{};
}

ReadFrame read_cancel(const Json& frame, std::string_view, const FrameLimits&) {
  if (!parts::has_id(frame, "id"))
    return refused("The cancelled request has no id of 1 to 256 bytes.");
  return CancelRequest{parts::text(frame, "id")};
}

ReadFrame read_resume(const Json& frame, std::string_view, const FrameLimits&) {
  const Json* const probe = parts::find(frame, "probeId");
  if (probe == nullptr || probe->is_null()) return ResumeRequest{};
  if (!parts::has_id(frame, "probeId")) return refused("The probe has no id of 1 to 256 bytes.");
  return ResumeRequest{parts::text(frame, "probeId")};
}

ReadFrame read_ack(const Json& frame, std::string_view, const FrameLimits&) {
  if (!parts::has_id(frame, "id"))
    return refused("The resumed request has no id of 1 to 256 bytes.");
  return ResumeAck{parts::text(frame, "id")};
}

void take_output(const Json& frame, ToolResult& result, const FrameLimits& limits) {
  result.is_failure = parts::text(frame, "state") == "output-error";
  const Json* const given = parts::find(frame, result.is_failure ? "errorText" : "output");
  if (given == nullptr) return;
  const bool is_deep = parts::is_deeper(*given, kMaxValueDepth);
  if (is_deep || is_larger(*given, limits.tool_output_bytes)) {
    result.is_failure = true;
    result.error_text =
        is_deep ? "The result is nested too deeply." : "The result is larger than 8 MiB.";
  } else if (!result.is_failure) {
    result.output = *given;
  } else {
    result.error_text = parts::text(frame, "errorText");
  }
}

ReadFrame read_result(const Json& frame, std::string_view, const FrameLimits& limits) {
  if (!parts::has_id(frame, "toolCallId")) return refused("The call has no id of 1 to 256 bytes.");
  const std::string& tool = parts::text(frame, "toolName");
  if (tool.size() > kMaxIdBytes) return refused("The name of the tool is over 256 bytes.");
  ToolResult result{.call = parts::text(frame, "toolCallId"), .tool = tool};
  take_output(frame, result, limits);
  result.auto_continue = parts::is_true(frame, "autoContinue");
  if (const std::string fault = take_client_tools(frame, result.client_tools); !fault.empty())
    return refused(fault);
  return result;
}

ReadFrame read_approval(const Json& frame, std::string_view, const FrameLimits&) {
  const Json* const is_approved = parts::find(frame, "approved");
  if (!parts::has_id(frame, "toolCallId")) return refused("The call has no id of 1 to 256 bytes.");
  if (is_approved == nullptr || !is_approved->is_boolean())
    return refused("The answer about a call says neither true nor false.");
  return ToolApproval{parts::text(frame, "toolCallId"), is_approved->get<bool>(),
                      parts::is_true(frame, "autoContinue")};
}

struct FrameReader {
  std::string_view type;
  ReadFrame (*read)(const Json& frame, std::string_view written, const FrameLimits& limits);
};

constexpr std::array kReaders = {
    FrameReader{"cf_agent_use_chat_request", read_request},
    FrameReader{"cf_agent_chat_messages", read_messages},
    FrameReader{"cf_agent_chat_clear", read_clear},
    FrameReader{"cf_agent_chat_request_cancel", read_cancel},
    FrameReader{"cf_agent_stream_resume_request", read_resume},
    FrameReader{"cf_agent_stream_resume_ack", read_ack},
    FrameReader{"cf_agent_tool_result", read_result},
    FrameReader{"cf_agent_tool_approval", read_approval},
};

}  // namespace

std::optional<ClientFrame> read_client_frame(std::string_view text, const FrameLimits& limits) {
  const Json frame = parts::read(text);
  const auto reader = std::ranges::find(kReaders, parts::text(frame, "type"), &FrameReader::type);
  return reader == kReaders.end() ? std::nullopt : reader->read(frame, text, limits);
}

}  // namespace hearth::chat
