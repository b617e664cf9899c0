#pragma once
// Tools that a model may call. One with a function runs on the server, as an operation of the
// ledger of the kind `chat.tool.<effect>`; one without is a client's.
//
//     turn.tool("refund", "Refunds an order.", hearth::Effect::kKeyed, &Support::refund,
//               {.approval = true});
//     hearth::Task<hearth::Json> refund(Order order, hearth::chat::ToolCall call);
//
// The input is a struct with HEARTH_FIELDS, or Json; its JSON schema is made from the type. The
// result is anything that JSON can hold, or a Task of it. ToolCall may be left out.

#include <hearth/chat/prompt.hpp>
#include <hearth/fields.hpp>
#include <hearth/json.hpp>
#include <hearth/method.hpp>
#include <hearth/operations.hpp>
#include <hearth/option.hpp>
#include <hearth/schema.hpp>
#include <hearth/task.hpp>

#include <functional>
#include <memory>
#include <set>
#include <stop_token>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

namespace hearth::chat {

// Chats whose answers a turn waits for, as asking_chat() writes them; one for each call.
using AskedChats = std::multiset<std::string>;

struct ToolCall {
  std::string id;        // of the call, as the model names it
  std::string turn;      // of the turn
  std::string op;        // OperationAttempt::id: for FetchRequest::op, or as a key
  std::stop_token stop;  // the user has stopped the turn
  // Shows clients what the tool has so far. The last such output is kept if the turn is stopped.
  std::function<void(Json preliminary)> show;
  std::string asked_by = {};              // TurnRecord::asked_by, for ask_chat() ...
  std::shared_ptr<AskedChats> asks = {};  // ... and those that the turn asks; null: not kept
};

struct ToolOptions {
  FlagOption approval = false;  // the user is asked first
  std::string kind = {};        // an operation kind of the class, instead of chat.tool.<effect>
};

using ToolFunction = std::function<Task<Json>(Json input, ToolCall call)>;

struct Tool {
  ToolSpec spec;
  Effect effect = Effect::kUnsafe;
  ToolFunction run = nullptr;  // null: a client runs it
  ToolOptions options = {};
};

// "chat.tool.read" and so on. A tool cannot be probed: use kUnsafe, or a kind of your own.
[[nodiscard]] const char* tool_kind_name(Effect effect) noexcept;
[[nodiscard]] OperationKind tool_kind(Effect effect);

namespace tools {

template <class Result>
Task<Json> tool_result(Result result) {
  if constexpr (kIsTask<Result>) {
    if constexpr (std::is_void_v<TaskValue<Result>>) {
      co_await std::move(result);
      co_return Json();
    } else {
      const auto value = co_await std::move(result);
      co_return Json(value);
    }
  } else {
    co_return Json(result);
  }
}

template <class Agent, class Class, class Result, class Input, class... Call>
Tool member_tool(std::string name, std::string description, Effect effect, Agent& agent,
                 Result (Class::*function)(Input, Call...), ToolOptions options) {
  static_assert(sizeof...(Call) <= 1, "a tool takes its input, and hearth::chat::ToolCall");
  static_assert(
      !kIsTask<Result> || !(std::is_reference_v<Input> || (std::is_reference_v<Call> || ...)),
      "a tool that returns a Task takes its input and ToolCall by value");
  using Value = std::remove_cvref_t<Input>;
  Tool tool;
  tool.spec.name = std::move(name);
  tool.spec.description = std::move(description);
  if constexpr (!std::is_same_v<Value, Json>) tool.spec.schema = json_schema<Value>();
  tool.effect = effect;
  tool.options = std::move(options);
  auto& object = static_cast<Class&>(agent);
  tool.run = [&object, function](Json input, ToolCall call) -> Task<Json> {
    if constexpr (sizeof...(Call) == 0)
      return tool_result((object.*function)(read_json<Value>(input, "input")));
    else
      return tool_result((object.*function)(read_json<Value>(input, "input"), std::move(call)));
  };
  return tool;
}

}  // namespace tools
}  // namespace hearth::chat
