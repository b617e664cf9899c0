// OpenAiResponses: https://platform.openai.com/docs/api-reference/responses-streaming
#include "lenient.hpp"

#include <hearth/chat/provider.hpp>

namespace hearth::chat {
namespace {

// ---- request

Json content_text(const char* type, std::string_view text) {
  return {{"type", type}, {"text", text}};
}

Json input_file(const FilePart& file) {
  if (file.is_image()) return {{"type", "input_image"}, {"image_url", file.data_url()}};
  if (const auto text = file.text()) return content_text("input_text", *text);
  if (file.base64.empty()) return {{"type", "input_file"}, {"file_url", file.url}};
  return {{"type", "input_file"},
          {"filename", file.name.empty() ? "file" : file.name},
          {"file_data", file.data_url()}};
}

Json input_message(const ModelMessage& message) {
  Json content = Json::array();
  for (const Json* part : message.parts) {
    if (is_text(*part)) content.push_back(content_text("input_text", part_text(*part)));
    if (is_file(*part)) content.push_back(input_file(file_part(*part)));
  }
  const char* role = message.role == Role::kSystem ? "system" : "user";
  return {{"role", role}, {"content", std::move(content)}};
}

// Reasoning goes back only with its encrypted content: the transcript keeps neither it nor ids.
void add_reasoning_item(Json& input, const Json& part) {
  const Json& metadata = part_metadata(part, "openai");
  const std::string_view encrypted = text_member(metadata, "reasoningEncryptedContent");
  if (encrypted.empty()) return;
  Json item{{"type", "reasoning"}, {"summary", Json::array()}, {"encrypted_content", encrypted}};
  if (const std::string_view id = text_member(metadata, "itemId"); !id.empty()) item["id"] = id;
  if (const std::string_view text = part_text(part); !text.empty())
    item["summary"].push_back({{"type", "summary_text"}, {"text", text}});
  input.push_back(std::move(item));
}

// The items keep their order; the results follow all calls of the step.
void add_items(Json& input, const ModelMessage& step) {
  Json results = Json::array();
  for (const Json* part : step.parts) {
    if (is_reasoning(*part)) add_reasoning_item(input, *part);
    if (is_text(*part)) {
      input.push_back({{"role", "assistant"},
                       {"content", Json::array({content_text("output_text", part_text(*part))})}});
    }
    const auto call = find_call(*part);
    if (!call || call->is_executed_by_provider) continue;
    input.push_back({{"type", "function_call"},
                     {"call_id", call->id},
                     {"name", call->tool},
                     {"arguments", to_text(call->input)}});
    results.push_back(
        {{"type", "function_call_output"}, {"call_id", call->id}, {"output", call->result}});
  }
  for (Json& result : results) input.push_back(std::move(result));
}

Json response_input(const Json& messages) {
  Json input = Json::array();
  for (const ModelMessage& message : model_messages(messages)) {
    if (message.role == Role::kAssistant) {
      add_items(input, message);
    } else if (Json item = input_message(message); !item["content"].empty()) {
      input.push_back(std::move(item));
    }
  }
  if (!input.empty() && text_member(input.back(), "role") == "assistant") {
    input.push_back(
        {{"role", "user"}, {"content", Json::array({content_text("input_text", kGoOn)})}});
  }
  return input;
}

// ---- answer

// An item is named by its place in the output, a text by that and its place in the item.
std::string item_key(const Json& event) {
  return std::to_string(integer_member(event, "output_index").value_or(0));
}
std::string content_key(const std::string& item, std::int64_t content) {
  return item + "." + std::to_string(content);
}
std::string text_key(const Json& event) {
  return content_key(item_key(event), integer_member(event, "content_index").value_or(0));
}

Usage read_response_usage(const Json& usage) {
  return {.input_tokens = integer_member(usage, "input_tokens"),
          .cached_tokens = integer_member(member(usage, "input_tokens_details"), "cached_tokens"),
          .output_tokens = integer_member(usage, "output_tokens"),
          .reasoning_tokens =
              integer_member(member(usage, "output_tokens_details"), "reasoning_tokens"),
          .total_tokens = integer_member(usage, "total_tokens")};
}

// "web_search_call" is a call that OpenAI executes.
std::string_view hosted_tool(const Json& item) {
  std::string_view type = text_member(item, "type");
  for (const std::string_view asked : {"function_call", "custom_tool_call", "computer_call",
                                       "local_shell_call", "shell_call", "apply_patch_call"})
    if (type == asked) return {};
  constexpr std::string_view kCall = "_call";
  if (!type.ends_with(kCall)) return {};
  type.remove_suffix(kCall.size());
  return type;
}

void begin_item(const std::string& key, const Json& item, ModelAnswer& answer) {
  if (text_member(item, "type") == "function_call")
    answer.call(key, text_member(item, "call_id"), text_member(item, "name"));
  if (const std::string_view tool = hosted_tool(item); !tool.empty())
    answer.call(key, text_member(item, "id"), tool, true);
}

void read_message_item(const std::string& key, const Json& item, bool has_ended,
                       ModelAnswer& answer) {
  const Json& contents = member(item, "content");
  for (std::size_t i = 0; contents.is_array() && i < contents.size(); ++i) {
    const std::string place = content_key(key, static_cast<std::int64_t>(i));
    if (text_member(contents[i], "type") == "refusal") answer.notes()["refused"] = true;
    answer.whole_text(place, text_member(contents[i], "text"));
    answer.whole_text(place, text_member(contents[i], "refusal"));
    if (has_ended) answer.end_text(place);
  }
}

void read_reasoning_item(const std::string& key, const Json& item, bool has_ended,
                         ModelAnswer& answer) {
  std::string whole;
  for (const char* list : {"summary", "content"}) {
    const Json& paragraphs = member(item, list);
    for (std::size_t i = 0; paragraphs.is_array() && i < paragraphs.size(); ++i) {
      if (!whole.empty()) whole += "\n\n";
      whole += text_member(paragraphs[i], "text");
    }
  }
  answer.whole_reasoning(key, whole);
  const std::string_view encrypted = text_member(item, "encrypted_content");
  if (!has_ended) return;
  Json& ended = answer.notes()["reasoned"];  // a part that has ended is not opened again
  if (!encrypted.empty() && !ended.contains(key)) {
    ended[key] = true;
    answer.reasoning(
        key, {},
        {{"openai",
          {{"itemId", text_member(item, "id")}, {"reasoningEncryptedContent", encrypted}}}});
  }
  answer.end_reasoning(key);
}

// An item as far as it is made. What the answer has of it already is not added again.
void read_item(const std::string& key, const Json& item, bool has_ended, ModelAnswer& answer) {
  const std::string_view type = text_member(item, "type");
  if (type == "message") read_message_item(key, item, has_ended, answer);
  if (type == "reasoning") read_reasoning_item(key, item, has_ended, answer);
  begin_item(key, item, answer);
  if (type == "function_call") {
    answer.whole_input(key, text_member(item, "arguments"));
    if (has_ended) answer.end_call(key);
  } else if (has_ended && !hosted_tool(item).empty()) {
    answer.result(key, item);
  }
}

void read_response(const Json& response, ModelAnswer& answer) {
  if (const std::string_view id = text_member(response, "id");
      !id.empty() && !answer.notes().contains("id"))
    answer.notes()["id"] = id;  // by which it is asked for, whatever a gateway calls it later
  const std::string_view status = text_member(response, "status");
  const bool has_ended = status != "queued" && status != "in_progress";
  if (const Json& usage = member(response, "usage"); usage.is_object())
    answer.usage(read_response_usage(usage));
  const Json& output = member(response, "output");
  for (std::size_t i = 0; output.is_array() && i < output.size(); ++i) {
    const bool is_whole = has_ended || text_member(output[i], "status") == "completed";
    read_item(std::to_string(i), output[i], is_whole, answer);
  }
  if (!has_ended) return;
  if (status == "failed") return answer.fail(classify(member(response, "error")));
  if (status == "cancelled")
    return answer.fail({FailureKind::kCut, "the provider has cancelled the answer"});
  const bool is_refused = parts::is_true(answer.notes(), "refused");
  const std::string_view why = text_member(member(response, "incomplete_details"), "reason");
  if (status == "incomplete") {
    answer.finish(why == "content_filter" ? "content-filter" : "length");
  } else {
    answer.finish(is_refused ? "content-filter" : "stop");
  }
  answer.complete();
}

// Reasoning of several paragraphs is one part.
void begin_paragraph(const Json& event, const char* index, ModelAnswer& answer) {
  if (integer_member(event, index).value_or(0) > 0) answer.reasoning(item_key(event), "\n\n");
}

void read_annotation(const Json& event, ModelAnswer& answer) {
  const Json& annotation = member(event, "annotation");
  const std::string id =
      text_key(event) + "." + std::to_string(integer_member(event, "annotation_index").value_or(0));
  if (text_member(annotation, "type") == "url_citation") {
    answer.chunk({{"type", "source-url"},
                  {"sourceId", id},
                  {"url", text_member(annotation, "url")},
                  {"title", text_member(annotation, "title")}});
  } else if (const std::string_view file = text_member(annotation, "filename"); !file.empty()) {
    answer.chunk({{"type", "source-document"},
                  {"sourceId", id},
                  {"mediaType", "text/plain"},
                  {"title", file},
                  {"filename", file}});
  }
}

void read_text_event(std::string_view type, const Json& event, ModelAnswer& answer) {
  if (type == "response.output_text.delta")
    answer.text(text_key(event), text_member(event, "delta"));
  if (type == "response.output_text.done")
    answer.whole_text(text_key(event), text_member(event, "text"));
  if (type == "response.output_text.annotation.added") read_annotation(event, answer);
  if (type == "response.refusal.delta") {
    answer.notes()["refused"] = true;
    answer.text(text_key(event), text_member(event, "delta"));
  }
}

void read_item_event(std::string_view type, const Json& event, ModelAnswer& answer) {
  const std::string key = item_key(event);
  if (type == "response.output_item.added") begin_item(key, member(event, "item"), answer);
  if (type == "response.output_item.done") read_item(key, member(event, "item"), true, answer);
  if (type == "response.function_call_arguments.delta")
    answer.input(key, text_member(event, "delta"));
  if (type == "response.function_call_arguments.done")
    answer.whole_input(key, text_member(event, "arguments"));
}

void read_reasoning_event(std::string_view type, const Json& event, ModelAnswer& answer) {
  if (type == "response.reasoning_summary_part.added")
    begin_paragraph(event, "summary_index", answer);
  if (type == "response.reasoning_summary_text.delta" || type == "response.reasoning_text.delta")
    answer.reasoning(item_key(event), text_member(event, "delta"));
}

// Whether a stream that was attached again repeats this event. Some servers give the number 0 to
// all.
bool is_repeated(const Json& event, ModelAnswer& answer) {
  Json& notes = answer.notes();
  const std::string_view id = text_member(member(event, "response"), "id");
  if (!id.empty()) notes["id"] = id;
  const auto number = integer_member(event, "sequence_number");
  if (!number) return false;
  const std::int64_t cursor = integer_member(notes, "cursor").value_or(-1);
  if (*number < cursor || (*number == cursor && *number > 0)) return true;
  notes["cursor"] = *number;
  return false;
}

}  // namespace

HttpCall OpenAiResponses::request(const Prompt& prompt) const {
  const ModelOptions& options = prompt.options;
  Json body{{"model", options.model},
            {"input", response_input(prompt.messages)},
            {"stream", true},
            {"store", options.is_resumable}};
  if (options.is_resumable) body["background"] = true;
  if (!prompt.system.empty()) body["instructions"] = prompt.system;
  if (options.max_output_tokens) body["max_output_tokens"] = *options.max_output_tokens;
  if (!options.reasoning.empty()) {
    body["reasoning"] = {{"effort", options.reasoning}, {"summary", "auto"}};
    body["include"] = Json::array({"reasoning.encrypted_content"});
  }
  for (const ToolSpec& tool : prompt.tools) {
    // OpenAI takes schemas of strict tools only in a narrow form.
    body["tools"].push_back({{"type", "function"},
                             {"name", tool.name},
                             {"description", tool.description},
                             {"parameters", tool.schema},
                             {"strict", false}});
  }
  add_extra(body, options);
  return {.path = "/responses", .body = std::move(body)};
}

void OpenAiResponses::read(const ServerSentEvent& event, ModelAnswer& answer) const {
  const auto json = event_object(event, answer);
  if (!json) return;
  const std::string_view type = text_member(*json, "type");
  if (type == "error") {
    const Json& error = member(*json, "error");  // or flat
    if (error.is_object()) return answer.fail(classify(error));
    Json flat = *json;
    flat.erase("type");
    return answer.fail(classify(flat));
  }
  if (is_repeated(*json, answer)) return;
  read_text_event(type, *json, answer);
  read_item_event(type, *json, answer);
  read_reasoning_event(type, *json, answer);
  for (const std::string_view last :
       {"response.completed", "response.incomplete", "response.failed", "response.cancelled"})
    if (type == last) read_response(member(*json, "response"), answer);
}

bool OpenAiResponses::is_answer(const Json& body) const {
  constexpr std::string_view kStates[] = {"queued",     "in_progress", "completed",
                                          "incomplete", "failed",      "cancelled"};
  const std::string_view status = text_member(body, "status");
  // Some servers have no status.
  return std::ranges::find(kStates, status) != std::end(kStates) ||
         (status.empty() && member(body, "output").is_array());
}

void OpenAiResponses::read_whole(const Json& body, ModelAnswer& answer) const {
  if (!is_answer(body)) {
    const Json& error = member(body, "error");
    return answer.fail(error.is_null()
                           ? Failure{FailureKind::kTransient, "the body is no answer of a model"}
                           : classify(error));
  }
  read_response(body, answer);
}

std::optional<HttpCall> OpenAiResponses::follow_up(FollowUp what, const ModelAnswer& answer) const {
  const std::string_view id = text_member(answer.notes(), "id");
  const bool is_plain = id.find_first_not_of(
                            "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
                            "0123456789_-") == std::string_view::npos;
  if (id.empty() || !is_plain) return std::nullopt;
  const std::string path = joined("/responses/", id);
  if (what == FollowUp::kStop) return HttpCall{.path = path + "/cancel"};
  if (what == FollowUp::kPoll) return HttpCall{.method = "GET", .path = path};
  const std::int64_t cursor = integer_member(answer.notes(), "cursor").value_or(-1);
  std::string query = "?stream=true";
  if (cursor >= 0) query += "&starting_after=" + std::to_string(cursor);
  return HttpCall{.method = "GET", .path = path + query};
}

}  // namespace hearth::chat
