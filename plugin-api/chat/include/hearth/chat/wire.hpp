#pragma once
// The frames of the chat protocol that useAgentChat speaks (npm @cloudflare/ai-chat 0.12 and
// agents 0.32; earlier ones ignore fields they do not know). Each is one text message on the
// agent's WebSocket: a JSON object with `type`.
//
// All functions are pure and may be called on any thread. Reading never throws, whatever the bytes.

#include <hearth/chat/message.hpp>
#include <hearth/json.hpp>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>

namespace hearth::chat {

// Limits of a frame. Those of a message are in message.hpp.
inline constexpr std::size_t kMaxMessages = 100'000;
inline constexpr std::size_t kMaxClientTools = 128;
inline constexpr std::size_t kMaxClientToolsBytes = std::size_t{256} << 10;
inline constexpr std::size_t kMaxCustomBodyBytes = std::size_t{64} << 10;
inline constexpr std::size_t kMaxToolOutputBytes = std::size_t{8} << 20;

// The large ones, which a test may make small.
struct FrameLimits {
  std::size_t messages = kMaxMessages;
  std::size_t message_bytes = kMaxMessageBytes;
  std::size_t tool_output_bytes = kMaxToolOutputBytes;
};

// ---- from clients -------------------------------------------------------------------------------

// cf_agent_use_chat_request
struct ChatRequest {
  std::string id;               // all frames of the turn have it
  bool is_regenerate = false;   // else a message was submitted
  Json messages = nullptr;      // at least one, each without a fault
  Json client_tools = nullptr;  // [{name, description?, parameters?}], or null: there are none
  Json body = nullptr;          // the other fields of the client, or null: there are none
};
// cf_agent_chat_messages
struct SetMessages {
  Json messages = nullptr;  // may be empty; each without a fault
};
// cf_agent_chat_clear
struct ClearChat {};
// cf_agent_chat_request_cancel
struct CancelRequest {
  std::string id;
};
// cf_agent_stream_resume_request
struct ResumeRequest {
  std::string probe_id;  // empty: none; the answer repeats it
};
// cf_agent_stream_resume_ack
struct ResumeAck {
  std::string id;
};
// cf_agent_tool_result
struct ToolResult {
  std::string call;
  std::string tool;       // may be empty
  Json output = nullptr;  // of a success
  bool is_failure = false;
  std::string error_text = {};  // of a failure; may be empty
  bool auto_continue = false;
  Json client_tools = nullptr;  // as in ChatRequest; null: the stored ones stay
};
// cf_agent_tool_approval
struct ToolApproval {
  std::string call;
  bool is_approved = false;
  bool auto_continue = false;
};
// A chat frame that breaks a rule. With an id it is a request, and refusal_frame() is its answer;
// else the frame is dropped.
struct Refusal {
  std::string id;
  std::string text;  // one sentence, without anything of the frame
};

using ClientFrame = std::variant<ChatRequest, SetMessages, ClearChat, CancelRequest, ResumeRequest,
                                 ResumeAck, ToolResult, ToolApproval, Refusal>;

// Frames that need not wait for those of other clients: they change no message.
[[nodiscard]] inline bool is_urgent(const ClientFrame& frame) {
  return std::holds_alternative<CancelRequest>(frame) ||
         std::holds_alternative<ResumeRequest>(frame) || std::holds_alternative<ResumeAck>(frame);
}

// Nothing: the text is no frame of a client of the chat; it may be one for another part of the
// agent. This is also so for a request whose method is not POST.
//
// A tool's output over kMaxToolOutputBytes or kMaxValueDepth becomes a failure with a sentence, so
// that the turn that waits for it goes on.
//
// Cost  Some milliseconds for each megabyte.
[[nodiscard]] std::optional<ClientFrame> read_client_frame(std::string_view text,
                                                           const FrameLimits& limits = {});

// ---- to clients ---------------------------------------------------------------------------------

// cf_agent_use_chat_response
struct ResponseFrame {
  std::string_view id;
  std::string_view body = {};  // the text of one chunk, or with `is_error` a sentence
  bool is_done = false;        // the last frame of the request
  bool is_error = false;
  bool is_continuation = false;     // of a turn that goes on in the last assistant message
  bool is_replay = false;           // from the log
  bool is_replay_complete = false;  // the log is at its end; live frames follow
  std::optional<std::uint64_t> seq = std::nullopt;  // of the chunk, from 0
  // With `is_done`: the user messages at the end of the request, and completed, error, aborted,
  // skipped or recovering. Empty: left out.
  std::span<const std::string> message_ids = {};
  std::string_view outcome = {};
};
[[nodiscard]] std::string response_frame(const ResponseFrame& frame);
[[nodiscard]] std::string refusal_frame(const Refusal& refusal);

// cf_agent_chat_messages. `messages` is the text of a JSON array. `is_connect`: to a client that
// has just connected, which then keeps what it could not send before.
[[nodiscard]] std::string messages_frame(std::string_view messages, bool is_connect = false);
// cf_agent_message_updated. `message` is the text of a message.
[[nodiscard]] std::string message_updated_frame(std::string_view message);
// cf_agent_chat_clear
[[nodiscard]] std::string clear_frame();
// cf_agent_stream_resuming
[[nodiscard]] std::string resuming_frame(std::string_view id, std::string_view probe_id = {});
// cf_agent_stream_pending
[[nodiscard]] std::string pending_frame(std::string_view id, std::string_view probe_id = {});
// cf_agent_stream_resume_none. `reason`: idle or continuation-owned; empty if a client is only let
// go.
[[nodiscard]] std::string resume_none_frame(std::string_view reason = {},
                                            std::string_view probe_id = {});
// cf_agent_chat_recovering
[[nodiscard]] std::string recovering_frame(bool is_recovering, std::string_view id = {});

}  // namespace hearth::chat
