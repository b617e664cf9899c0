#pragma once
// Another chat as a tool: Turn::chat_tool().
//
// The other chat answers in a turn of its own, which is begun once for a call of the tool: after an
// interruption of either side the same turn is followed on. What it has said so far is a
// preliminary output of the tool, so that clients see it grow.

#include <hearth/agent_base.hpp>
#include <hearth/chat/tool.hpp>
#include <hearth/json.hpp>
#include <hearth/task.hpp>

#include <string>
#include <string_view>

namespace hearth::chat {

// Its answer as text. `input`: {"text": "..."}. If the user stops the turn, so does the other chat.
// Failure   Error, for the model: the other chat has failed, is gone, is no chat, has said nothing
//           for an hour, or waits for this one itself
[[nodiscard]] Task<Json> ask_chat(Agent& agent, std::string agent_class, std::string name,
                                  Json input, ToolCall call);

// The line of a chat in TurnRecord::asked_by.
[[nodiscard]] std::string asking_chat(std::string_view agent_class, std::string_view name);

// A chat in AskedChats: the same for each way to spell its class, such as ChatRoom and chat-room.
[[nodiscard]] std::string asked_chat(std::string_view agent_class, std::string_view name);

// Of {"text": "..."}.
[[nodiscard]] Json ask_chat_schema();

// A tool that asks the chat `agent_class`/`name`.
[[nodiscard]] Tool ask_chat_tool(Agent& agent, ToolSpec spec, std::string agent_class,
                                 std::string name, ToolOptions options);

}  // namespace hearth::chat
