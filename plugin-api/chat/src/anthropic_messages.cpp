// AnthropicMessages: https://docs.claude.com/en/api/messages-streaming
#include "lenient.hpp"

#include <hearth/chat/provider.hpp>

#include <algorithm>

namespace hearth::chat {
namespace {

// ---- request

// A request must have max_tokens.
constexpr std::int64_t kMaxTokens = 8192;

Json file_block(const FilePart& file) {
  const bool is_pdf = file.media_type == "application/pdf";
  const Json by_url{{"type", "url"}, {"url", file.url}};
  const Json by_content{{"type", "base64"}, {"media_type", file.media_type}, {"data", file.base64}};
  if (file.is_image() || is_pdf) {
    Json block{{"type", is_pdf ? "document" : "image"},
               {"source", file.base64.empty() ? by_url : by_content}};
    if (is_pdf && !file.name.empty()) block["title"] = file.name;
    return block;
  }
  const auto text = file.text();
  if (!text || text->empty()) return {{"type", "text"}, {"text", file.note()}};
  Json block{{"type", "document"},
             {"source", {{"type", "text"}, {"media_type", "text/plain"}, {"data", *text}}}};
  if (!file.name.empty()) block["title"] = file.name;
  return block;
}

// Anthropic rejects texts of white space.
bool is_blank(std::string_view text) {
  return text.find_first_not_of(" \t\r\n") == std::string_view::npos;
}

// Neighbours of one role are one message: results of calls stand in front of the user's next text.
void add_blocks(Json& messages, const char* role, Json blocks) {
  if (blocks.empty()) return;
  if (messages.empty() || messages.back()["role"] != role)
    messages.push_back({{"role", role}, {"content", Json::array()}});
  Json& content = messages.back()["content"];
  for (Json& block : blocks) content.push_back(std::move(block));
}

void add_user(Json& messages, const ModelMessage& message) {
  Json blocks = Json::array();
  for (const Json* part : message.parts) {
    if (is_text(*part) && !is_blank(part_text(*part)))
      blocks.push_back({{"type", "text"}, {"text", part_text(*part)}});
    if (is_file(*part)) blocks.push_back(file_block(file_part(*part)));
  }
  add_blocks(messages, "user", std::move(blocks));
}

// Thoughts go back only with what Anthropic has signed.
void add_thought(Json& blocks, const Json& part) {
  const Json& metadata = part_metadata(part, "anthropic");
  const std::string_view signature = text_member(metadata, "signature");
  const std::string_view redacted = text_member(metadata, "redactedData");
  if (!redacted.empty()) {
    blocks.push_back({{"type", "redacted_thinking"}, {"data", redacted}});
  } else if (!signature.empty()) {
    blocks.push_back(
        {{"type", "thinking"}, {"thinking", part_text(part)}, {"signature", signature}});
  }
}

void add_hosted_call(Json& blocks, const SettledCall& call) {
  if (!call.output) return;  // a call without its result is rejected
  blocks.push_back(
      {{"type", "server_tool_use"}, {"id", call.id}, {"name", call.tool}, {"input", call.input}});
  blocks.push_back(
      {{"type", call.tool + "_tool_result"}, {"tool_use_id", call.id}, {"content", *call.output}});
}

void add_assistant(Json& messages, const ModelMessage& step) {
  Json blocks = Json::array();
  Json results = Json::array();
  for (const Json* part : step.parts) {
    if (is_reasoning(*part)) add_thought(blocks, *part);
    if (is_text(*part) && !is_blank(part_text(*part)))
      blocks.push_back({{"type", "text"}, {"text", part_text(*part)}});
    const auto call = find_call(*part);
    if (!call) continue;
    if (call->is_executed_by_provider) {
      add_hosted_call(blocks, *call);
      continue;
    }
    blocks.push_back(
        {{"type", "tool_use"}, {"id", call->id}, {"name", call->tool}, {"input", call->input}});
    Json result{{"type", "tool_result"}, {"tool_use_id", call->id}, {"content", call->result}};
    if (call->is_error) result["is_error"] = true;
    results.push_back(std::move(result));
  }
  add_blocks(messages, "assistant", std::move(blocks));
  add_blocks(messages, "user", std::move(results));
}

// Anthropic rejects a thinking model's request if its last answer asks for a tool without a thought
// in front.
bool may_think(const Json& messages) {
  for (std::size_t i = messages.size(); i-- > 0;) {
    const Json& content = messages[i]["content"];
    if (messages[i]["role"] == "user") {
      if (content[0]["type"] != "tool_result") return true;
      continue;
    }
    const Json& first = content[0]["type"];
    return first == "thinking" || first == "redacted_thinking";
  }
  return true;
}

// Thoughts are output as well: they count in max_tokens, which must be more.
void add_limits(Json& body, const ModelOptions& options, bool may_think) {
  constexpr std::int64_t kLeastThinking = 1024;  // Anthropic rejects less
  const bool is_low = options.reasoning == "low" || options.reasoning == "minimal";
  const std::int64_t wanted = is_low                          ? kLeastThinking
                              : options.reasoning == "medium" ? 4096
                                                              : 16384;
  const bool is_wanted = !options.reasoning.empty() && options.reasoning != "none" && may_think;
  const std::int64_t max =
      options.max_output_tokens.value_or(kMaxTokens + (is_wanted ? wanted : 0));
  const std::int64_t budget = std::min(wanted, max / 2);
  if (is_wanted && budget >= kLeastThinking)
    body["thinking"] = {{"type", "enabled"}, {"budget_tokens", budget}};
  body["max_tokens"] = max;
}

// ---- answer

std::string block_key(const Json& event) {
  return std::to_string(integer_member(event, "index").value_or(0));
}

// Later counts replace earlier ones: they are sums.
void read_message_usage(const Json& usage, ModelAnswer& answer) {
  if (!usage.is_object()) return;
  Usage sum = answer.usage();
  if (const auto fresh = integer_member(usage, "input_tokens")) {
    const auto cached = integer_member(usage, "cache_read_input_tokens");
    const auto made = integer_member(usage, "cache_creation_input_tokens");
    const auto limited = [](std::optional<std::int64_t> count) {
      return std::clamp<std::int64_t>(count.value_or(0), 0, INT64_MAX / 4);
    };
    sum.input_tokens = limited(fresh) + limited(cached) + limited(made);
    if (cached) sum.cached_tokens = cached;
  }
  if (const auto output = integer_member(usage, "output_tokens")) sum.output_tokens = output;
  answer.usage(sum);
}

Json thought_metadata(const char* name, std::string_view value) {
  return {{"anthropic", {{name, value}}}};
}

// The result of a call that Anthropic has executed names the call by its id; the answer by the
// block.
void read_hosted_result(const Json& block, ModelAnswer& answer) {
  const std::string_view id = text_member(block, "tool_use_id");
  const Json& keys = member(answer.notes(), "hosted");
  const std::string key(text_member(keys, id));
  answer.result(key, member(block, "content"));
}

void begin_block(const std::string& key, const Json& block, ModelAnswer& answer) {
  const std::string_view type = text_member(block, "type");
  const std::string_view id = text_member(block, "id");
  const bool is_hosted = type == "server_tool_use";
  if (type == "text") answer.text(key, text_member(block, "text"));
  if (type == "thinking") answer.reasoning(key, text_member(block, "thinking"), Json::object());
  if (type == "redacted_thinking")
    answer.reasoning(key, {}, thought_metadata("redactedData", text_member(block, "data")));
  if (type == "tool_use" || is_hosted) {
    answer.call(key, id, text_member(block, "name"), is_hosted);
    const Json& input = member(block, "input");
    if (input.is_object() && !input.empty()) answer.whole_input(key, to_text(input));
    if (is_hosted) answer.notes()["hosted"][std::string(id)] = key;
  }
  if (type.ends_with("_tool_result")) read_hosted_result(block, answer);
}

void read_citation(const std::string& key, const Json& citation, ModelAnswer& answer) {
  Json& count = answer.notes()["citations"];
  const std::int64_t number = as_integer(count).value_or(0);
  count = number + 1;
  const std::string id = key + "." + std::to_string(number);
  if (const std::string_view url = text_member(citation, "url"); !url.empty()) {
    answer.chunk({{"type", "source-url"},
                  {"sourceId", id},
                  {"url", url},
                  {"title", text_member(citation, "title")}});
  } else {
    answer.chunk({{"type", "source-document"},
                  {"sourceId", id},
                  {"mediaType", "text/plain"},
                  {"title", text_member(citation, "document_title")}});
  }
}

void read_block_delta(const std::string& key, const Json& delta, ModelAnswer& answer) {
  const std::string_view type = text_member(delta, "type");
  if (type == "text_delta") answer.text(key, text_member(delta, "text"));
  if (type == "thinking_delta") answer.reasoning(key, text_member(delta, "thinking"));
  if (type == "signature_delta")
    answer.reasoning(key, {}, thought_metadata("signature", text_member(delta, "signature")));
  if (type == "input_json_delta") answer.input(key, text_member(delta, "partial_json"));
  if (type == "citations_delta") read_citation(key, member(delta, "citation"), answer);
}

void end_block(const std::string& key, ModelAnswer& answer) {
  answer.end_text(key);
  answer.end_reasoning(key);
  answer.end_call(key);
}

void read_stop(const Json& delta, ModelAnswer& answer) {
  const std::string_view word = text_member(delta, "stop_reason");
  if (word.empty()) return;
  std::string_view reason = "other";
  if (word == "end_turn" || word == "stop_sequence" || word == "pause_turn") reason = "stop";
  if (word == "tool_use") reason = "tool-calls";
  if (word == "max_tokens" || word == "model_context_window_exceeded") reason = "length";
  if (word == "refusal") reason = "content-filter";
  if (word == "pause_turn") answer.pause();
  answer.finish(reason);
}

}  // namespace

HttpCall AnthropicMessages::request(const Prompt& prompt) const {
  const ModelOptions& options = prompt.options;
  Json messages = Json::array();
  std::string system = prompt.system;
  for (const ModelMessage& message : model_messages(prompt.messages)) {
    if (message.role == Role::kAssistant) add_assistant(messages, message);
    if (message.role == Role::kUser) add_user(messages, message);
    for (const Json* part : message.parts) {
      if (message.role != Role::kSystem || !is_text(*part)) continue;
      if (!system.empty()) system += "\n\n";
      system += part_text(*part);
    }
  }
  // Newer models reject a request that ends in an answer. One that was cut goes on without
  // thinking.
  const bool goes_on = !messages.empty() && messages.back()["role"] == "assistant";
  const bool thinks = !goes_on && may_think(messages);
  if (goes_on) add_blocks(messages, "user", Json::array({Json{{"type", "text"}, {"text", kGoOn}}}));

  Json body{{"model", options.model}, {"messages", std::move(messages)}, {"stream", true}};
  add_limits(body, options, thinks);
  if (!system.empty()) body["system"] = system;
  for (const ToolSpec& tool : prompt.tools) {
    body["tools"].push_back(
        {{"name", tool.name}, {"description", tool.description}, {"input_schema", tool.schema}});
  }
  add_extra(body, options);
  return {
      .path = "/messages", .headers = {{"anthropic-version", version_}}, .body = std::move(body)};
}

void AnthropicMessages::read(const ServerSentEvent& event, ModelAnswer& answer) const {
  const auto json = event_object(event, answer);
  if (!json) return;
  const std::string_view type = text_member(*json, "type");
  const std::string key = block_key(*json);
  if (type == "error") answer.fail(classify(member(*json, "error")));
  if (type == "message_start") {
    const Json& message = member(*json, "message");
    if (const auto id = text_member(message, "id"); !id.empty()) answer.notes()["id"] = id;
    read_message_usage(member(message, "usage"), answer);
  }
  if (type == "content_block_start") begin_block(key, member(*json, "content_block"), answer);
  if (type == "content_block_delta") read_block_delta(key, member(*json, "delta"), answer);
  if (type == "content_block_stop") end_block(key, answer);
  if (type == "message_delta") {
    read_message_usage(member(*json, "usage"), answer);
    read_stop(member(*json, "delta"), answer);
  }
  if (type == "message_stop") answer.complete();
}

void AnthropicMessages::read_whole(const Json& body, ModelAnswer& answer) const {
  if (text_member(body, "type") == "error") return answer.fail(classify(member(body, "error")));
  const Json& content = member(body, "content");
  for (std::size_t i = 0; content.is_array() && i < content.size(); ++i) {
    const std::string key = std::to_string(i);
    begin_block(key, content[i], answer);
    if (const auto signature = text_member(content[i], "signature"); !signature.empty())
      answer.reasoning(key, {}, thought_metadata("signature", signature));
    end_block(key, answer);
  }
  read_message_usage(member(body, "usage"), answer);
  if (text_member(body, "stop_reason").empty())
    return answer.fail({FailureKind::kTransient, "the answer has no stop_reason"});
  read_stop(body, answer);
  answer.complete();
}

}  // namespace hearth::chat
