// Calls of tools that a model has asked for.
#include "chat.hpp"
#include "parts.hpp"

#include <hearth/agent_base.hpp>
#include <hearth/chat/tool_calls.hpp>

#include <algorithm>
#include <utility>

namespace hearth::chat {

namespace {

constexpr std::size_t kMaxErrorText = 1'000;
constexpr std::size_t kMaxShownInput = std::size_t{32} << 10;

bool is_approved(const Json& part) {
  const Json* const approval = parts::find(part, "approval");
  return approval != nullptr && parts::is_true(*approval, "approved");
}

// A call of a tool of the server that has no result yet, and lacks no answer of a user.
bool is_open(const Json& part) {
  if (!is_tool_part(part) || parts::is_true(part, "providerExecuted")) return false;
  const std::string& state = parts::text(part, "state");
  return state == "input-available" || parts::is_true(part, "preliminary") ||
         (state == "approval-responded" && is_approved(part));
}

constexpr const char* kMayHaveRun =
    "This call may have been executed; verify before it is repeated.";

Json call_error(const std::string& call, std::string_view text) {
  std::size_t end = std::min(text.size(), kMaxErrorText);
  // Not inside a character.
  while (end < text.size() && end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0U) == 0x80U)
    --end;
  return {{"type", "tool-output-error"}, {"toolCallId", call}, {"errorText", text.substr(0, end)}};
}

// The calls of a turn that may have been executed, as the ledger has them.
std::set<std::string> begun_calls(Agent& agent, const std::string& turn, const std::string& fiber) {
  std::set<std::string> calls;
  OperationFilter of_work;
  of_work.fiber = fiber;
  for (;;) {
    const std::vector<OperationRecord> page = agent.list_operations(of_work);
    if (page.empty()) return calls;
    of_work.after = page.back().id;
    for (const OperationRecord& each : page)
      if (each.state != OperationState::kNotExecuted && parts::text(each.args, "turn") == turn)
        calls.insert(parts::text(each.args, "id"));
  }
}

}  // namespace

bool is_for_clients(const std::exception& error) {
  if (dynamic_cast<const HostError*>(&error) != nullptr)
    return dynamic_cast<const CallError*>(&error) != nullptr;
  return dynamic_cast<const Error*>(&error) != nullptr;
}

std::vector<ToolSpec> client_tools(const TurnRecord& turn) {
  std::vector<ToolSpec> specs;
  if (!turn.client_tools.is_array()) return specs;
  for (const Json& tool : turn.client_tools) {
    ToolSpec spec{parts::text(tool, "name"), parts::text(tool, "description")};
    if (const Json* const schema = parts::find(tool, "parameters");
        schema != nullptr && schema->is_object())
      spec.schema = *schema;
    specs.push_back(std::move(spec));
  }
  return specs;
}

bool awaits_client(const Json& message, const std::vector<ToolSpec>& client_tools) {
  return std::ranges::any_of(parts::of(message), [&](const Json& part) {
    if (!is_tool_part(part)) return false;
    const std::string& state = parts::text(part, "state");
    return state == "approval-requested" ||
           (state == "input-available" &&
            std::ranges::any_of(client_tools,
                                [&](const ToolSpec& tool) { return tool.name == tool_of(part); }));
  });
}

void ToolCalls::add(Tool tool) {
  if (tool.run && chat_.own_tools.insert(tool.spec.name).second)
    chat_.agent.kv().put(Chat::kToolsKey, Json(chat_.own_tools));
  tools_.push_back(std::move(tool));
}

const Tool* ToolCalls::find(std::string_view name) const {
  const auto found = std::ranges::find(
      tools_, name, [](const Tool& tool) -> std::string_view { return tool.spec.name; });
  return found == tools_.end() ? nullptr : &*found;
}

std::vector<ToolSpec> ToolCalls::specs() const {
  std::vector<ToolSpec> specs;
  specs.reserve(tools_.size());
  for (const Tool& tool : tools_) specs.push_back(tool.spec);
  for (ToolSpec& tool : client_tools(running_.record()))
    if (find(tool.name) == nullptr) specs.push_back(std::move(tool));
  return specs;
}

bool ToolCalls::awaits_client() const {
  std::vector<ToolSpec> specs = client_tools(running_.record());
  for (const Tool& tool : tools_)
    if (!tool.run) specs.push_back(tool.spec);
  return chat::awaits_client(running_.message(), specs);
}

void ToolCalls::ask_approval(const std::string& call) {
  std::vector<Json> chunks;
  chunks.push_back({{"type", "tool-approval-request"}, {"approvalId", call}, {"toolCallId", call}});
  running_.write(std::move(chunks));
  running_.store_message([this](Json& message) { chat_.clean(message); });
}

Task<Json> ToolCalls::call_output(std::string call, const Tool& tool, Json input) {
  OperationCall operation;
  operation.kind = tool.options.kind.empty() ? tool_kind_name(tool.effect) : tool.options.kind;
  // The call names it; the input is for people, and the ledger takes 64 KiB.
  operation.args = {{"turn", running_.record().id}, {"id", call}, {"tool", tool.spec.name}};
  if (to_text(input).size() <= kMaxShownInput) operation.args["input"] = input;
  const auto act = [&](OperationAttempt attempt) {
    return tool.run(input, ToolCall{.id = call,
                                    .turn = running_.record().id,
                                    .op = std::move(attempt.id),
                                    .stop = running_.stop().get_token(),
                                    .show =
                                        [this, call](Json output) {
                                          if (chat_.running != &running_) return;  // a clear
                                          std::vector<Json> chunks;
                                          chunks.push_back({{"type", "tool-output-available"},
                                                            {"toolCallId", call},
                                                            {"output", std::move(output)},
                                                            {"preliminary", true}});
                                          running_.write(std::move(chunks));
                                        },
                                    .asked_by = running_.record().asked_by,
                                    .asks = running_.asks});
  };
  auto running = chat_.agent.operation(std::move(operation), act);
  co_return co_await std::move(running);
}

Task<void> ToolCalls::run_call(std::string call, const Tool& tool, Json input) {
  Json chunk;
  try {
    auto calling = call_output(call, tool, std::move(input));
    Json output = co_await std::move(calling);
    if (parts::is_deeper(output, kMaxValueDepth)) output = to_text(output);
    if (to_text(output).size() > kMaxToolOutputBytes)
      chunk = call_error(call, "The result of the tool is too large.");
    else
      chunk = {
          {"type", "tool-output-available"}, {"toolCallId", call}, {"output", std::move(output)}};
  } catch (const OperationUnknown&) {
    chunk = call_error(call, kMayHaveRun);
  } catch (const Unreadable&) {
    throw;
  } catch (const std::exception& error) {
    chat_.agent.log.warn("chat: the tool ", tool.spec.name, " failed: ", error.what());
    // The model may do something about a request that failed; its error names no address.
    const bool is_shown =
        is_for_clients(error) || dynamic_cast<const FetchError*>(&error) != nullptr;
    chunk = call_error(call, is_shown ? error.what() : "The tool failed.");
  }
  std::vector<Json> chunks;
  chunks.push_back(std::move(chunk));
  running_.write(std::move(chunks));
}

// Runs what the model has asked for, and what a user has approved; asks for approvals.
Task<bool> ToolCalls::run() {
  std::vector<Task<void>> calls;
  const std::vector<ToolSpec> of_client = client_tools(running_.record());
  const Json all = parts::of(running_.message());  // writing changes the message
  for (const Json& part : all) {
    if (!is_open(part)) continue;
    const bool is_asked = parts::text(part, "state") == "input-available";
    const std::string call = parts::text(part, "toolCallId");
    const Tool* const tool = find(tool_of(part));
    if (tool == nullptr) {
      if (std::ranges::find(of_client, tool_of(part), &ToolSpec::name) != of_client.end()) continue;
      std::vector<Json> chunks;
      chunks.push_back(call_error(call, "There is no tool of this name."));
      running_.write(std::move(chunks));
    } else if (is_asked && tool->options.approval) {
      ask_approval(call);
    } else if (tool->run) {
      calls.push_back(run_call(call, *tool, parts::as_input(part.value("input", Json::object()))));
    }
  }
  const bool has_run = !calls.empty();
  co_await when_all(std::move(calls));
  co_return has_run;
}

std::vector<Json> Chat::ends_of_calls(const RunningTurn& turn, const std::string& fiber) {
  std::vector<Json> chunks;
  const std::vector<ToolSpec> of_client = client_tools(turn.record());
  std::optional<std::set<std::string>> begun;
  for (const Json& part : parts::of(turn.message())) {
    if (!is_open(part) || !own_tools.contains(tool_of(part))) continue;
    const std::string& call = parts::text(part, "toolCallId");
    if (!begun) begun = begun_calls(agent, turn.record().id, fiber);
    if (begun->contains(call))
      chunks.push_back(call_error(call, kMayHaveRun));
    else if (std::ranges::find(of_client, tool_of(part), &ToolSpec::name) == of_client.end())
      chunks.push_back(call_error(call, "The call was not executed."));
  }
  return chunks;
}

}  // namespace hearth::chat
