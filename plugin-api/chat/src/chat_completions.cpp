// ChatCompletions: https://platform.openai.com/docs/api-reference/chat, and what other servers make
// of it.
#include "lenient.hpp"

#include <hearth/chat/provider.hpp>

namespace hearth::chat {
namespace {

// ---- request

Json file_content(const FilePart& file) {
  if (file.is_image()) return {{"type", "image_url"}, {"image_url", {{"url", file.data_url()}}}};
  if (const auto text = file.text()) return {{"type", "text"}, {"text", *text}};
  const bool is_wave = file.media_type == "audio/wav" || file.media_type == "audio/x-wav";
  if (!file.base64.empty() && (is_wave || file.media_type == "audio/mpeg")) {
    return {{"type", "input_audio"},
            {"input_audio", {{"data", file.base64}, {"format", is_wave ? "wav" : "mp3"}}}};
  }
  if (file.base64.empty()) return {{"type", "text"}, {"text", file.note()}};
  return {{"type", "file"},
          {"file",
           {{"filename", file.name.empty() ? "file" : file.name}, {"file_data", file.data_url()}}}};
}

// A text alone is a string: some servers know no lists.
Json user_content(const ModelMessage& message) {
  Json list = Json::array();
  for (const Json* part : message.parts) {
    if (is_text(*part)) list.push_back({{"type", "text"}, {"text", part_text(*part)}});
    if (is_file(*part)) list.push_back(file_content(file_part(*part)));
  }
  if (list.size() == 1 && list[0]["type"] == "text") return list[0]["text"];
  return list;
}

void add_step(Json& messages, const ModelMessage& step) {
  std::string text;
  Json calls = Json::array();
  Json results = Json::array();
  for (const Json* part : step.parts) {
    if (is_text(*part)) text += part_text(*part);
    const auto call = find_call(*part);
    if (!call || call->is_executed_by_provider) continue;
    calls.push_back({{"id", call->id},
                     {"type", "function"},
                     {"function", {{"name", call->tool}, {"arguments", to_text(call->input)}}}});
    results.push_back({{"role", "tool"}, {"tool_call_id", call->id}, {"content", call->result}});
  }
  if (text.empty() && calls.empty()) return;
  Json message{{"role", "assistant"}, {"content", text.empty() ? Json() : Json(text)}};
  if (!calls.empty()) message["tool_calls"] = std::move(calls);
  messages.push_back(std::move(message));
  for (Json& result : results) messages.push_back(std::move(result));
}

Json chat_messages(const Prompt& prompt) {
  Json messages = Json::array();
  if (!prompt.system.empty()) messages.push_back({{"role", "system"}, {"content", prompt.system}});
  for (const ModelMessage& message : model_messages(prompt.messages)) {
    if (message.role == Role::kAssistant) {
      add_step(messages, message);
    } else if (Json content = user_content(message); !content.empty()) {
      const char* role = message.role == Role::kSystem ? "system" : "user";
      messages.push_back({{"role", role}, {"content", std::move(content)}});
    }
  }
  return messages;
}

// ---- answer

constexpr std::string_view kText = "text";
constexpr std::string_view kReasoning = "reasoning";

Usage read_chat_usage(const Json& usage) {
  return {.input_tokens = integer_member(usage, "prompt_tokens"),
          .cached_tokens = integer_member(member(usage, "prompt_tokens_details"), "cached_tokens"),
          .output_tokens = integer_member(usage, "completion_tokens"),
          .reasoning_tokens =
              integer_member(member(usage, "completion_tokens_details"), "reasoning_tokens"),
          .total_tokens = integer_member(usage, "total_tokens")};
}

// Text, or Mistral's list of {type: text | thinking}.
void read_content(const Json& content, ModelAnswer& answer) {
  answer.text(kText, as_text(content));
  if (!content.is_array()) return;
  for (const Json& part : content) {
    answer.text(kText, text_member(part, "text"));
    const Json& thinking = member(part, "thinking");
    answer.reasoning(kReasoning, as_text(thinking));
    if (!thinking.is_array()) continue;
    for (const Json& each : thinking) answer.reasoning(kReasoning, text_member(each, "text"));
  }
}

// Which call a delta belongs to. Servers leave out the index, or the id of later deltas; some give
// the index 0 to all calls, with different ids.
std::string call_key(const Json& delta, Json& notes) {
  const auto index = integer_member(delta, "index");
  const std::string_view id = text_member(delta, "id");
  Json& calls = notes["calls"];  // [{index, id}]: the key is the place
  const bool is_whole =
      !index && id.empty() && !text_member(member(delta, "function"), "name").empty();
  for (std::size_t i = calls.size(); i-- > 0 && !is_whole;) {
    const std::string_view known = text_member(calls[i], "id");
    if (index && integer_member(calls[i], "index") != index) continue;
    if (!index && !id.empty() && known != id) continue;
    if (!id.empty() && !known.empty() && known != id) continue;  // another call of this index
    if (known.empty() && !id.empty()) calls[i]["id"] = id;
    return std::to_string(i);
  }
  if (calls.size() < ModelAnswer::kMaxParts)
    calls.push_back({{"index", index ? Json(*index) : Json()}, {"id", id}});
  return std::to_string(calls.size() - 1);
}

void read_function(const std::string& key, std::string_view id, const Json& function,
                   ModelAnswer& answer) {
  answer.call(key, id, text_member(function, "name"));
  const Json& arguments = member(function, "arguments");
  answer.input(key, arguments.is_object() ? to_text(arguments) : std::string(as_text(arguments)));
}

void read_calls(const Json& delta, ModelAnswer& answer) {
  const Json& calls = member(delta, "tool_calls");
  for (std::size_t i = 0; calls.is_array() && i < calls.size(); ++i) {
    const std::string key = call_key(calls[i], answer.notes());
    read_function(key, text_member(calls[i], "id"), member(calls[i], "function"), answer);
  }
  // The form before tool_calls.
  const Json& function = member(delta, "function_call");
  if (function.is_object()) read_function("function", {}, function, answer);
}

void read_delta(const Json& delta, ModelAnswer& answer) {
  std::string_view thought = text_member(delta, "reasoning_content");
  if (thought.empty()) thought = text_member(delta, "reasoning");
  answer.reasoning(kReasoning, thought);
  read_content(member(delta, "content"), answer);
  const std::string_view refusal = text_member(delta, "refusal");
  if (!refusal.empty()) answer.notes()["refused"] = true;
  answer.text(kText, refusal);
  read_calls(delta, answer);
}

void read_finish(std::string_view word, ModelAnswer& answer) {
  if (word.empty()) return;
  if (word == "error")
    return answer.fail({FailureKind::kTransient, "the server has ended with an error"});
  std::string_view reason = "other";
  if (word == "stop" || word == "eos" || word == "end_turn") reason = "stop";
  if (word == "length" || word == "max_tokens") reason = "length";
  if (word == "tool_calls" || word == "function_call") reason = "tool-calls";
  if (word == "content_filter" || parts::is_true(answer.notes(), "refused"))
    reason = "content-filter";
  answer.finish(reason, true);
}

void read_chat(const Json& json, const char* content, ModelAnswer& answer) {
  const Json& error = member(json, "error");
  if (!error.is_null()) return answer.fail(classify(error));
  if (text_member(json, "object") == "error") return answer.fail(classify(json));
  if (const Json& usage = member(json, "usage"); usage.is_object())
    answer.usage(read_chat_usage(usage));
  const Json& choices = member(json, "choices");
  for (std::size_t i = 0; choices.is_array() && i < choices.size(); ++i) {
    if (integer_member(choices[i], "index").value_or(0) != 0) continue;
    read_delta(member(choices[i], content), answer);
    read_finish(text_member(choices[i], "finish_reason"), answer);
  }
}

}  // namespace

HttpCall ChatCompletions::request(const Prompt& prompt) const {
  const ModelOptions& options = prompt.options;
  Json messages = chat_messages(prompt);
  Json body{
      {"model", options.model}, {"stream", true}, {"stream_options", {{"include_usage", true}}}};
  if (!messages.empty() && messages.back()["role"] == "assistant") {
    if (dialect_.prefill) {
      body["add_generation_prompt"] = false;
      body["continue_final_message"] = true;
    } else {
      messages.push_back({{"role", "user"}, {"content", kGoOn}});
    }
  }
  body["messages"] = std::move(messages);
  if (options.max_output_tokens) {
    body[dialect_.max_completion_tokens ? "max_completion_tokens" : "max_tokens"] =
        *options.max_output_tokens;
  }
  if (!options.reasoning.empty()) body["reasoning_effort"] = options.reasoning;
  for (const ToolSpec& tool : prompt.tools) {
    body["tools"].push_back(
        {{"type", "function"},
         {"function",
          {{"name", tool.name}, {"description", tool.description}, {"parameters", tool.schema}}}});
  }
  add_extra(body, options);
  return {.path = "/chat/completions", .body = std::move(body)};
}

void ChatCompletions::read(const ServerSentEvent& event, ModelAnswer& answer) const {
  if (event.data == "[DONE]") return answer.end("[DONE] has come without a finish_reason");
  const auto json = event_object(event, answer);
  if (!json) return;
  if (const auto id = text_member(*json, "id"); !id.empty()) answer.notes()["id"] = id;
  read_chat(*json, "delta", answer);
}

void ChatCompletions::read_whole(const Json& body, ModelAnswer& answer) const {
  read_chat(body, "message", answer);
  answer.end("the answer has no finish_reason");
}

}  // namespace hearth::chat
