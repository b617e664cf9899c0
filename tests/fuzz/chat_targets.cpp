// What clients of a chat send, and what a provider's stream becomes. (As sdk_targets.cpp, for the
// chat stands on the SDK.)
#include "fuzz/targets.hpp"

#include <hearth/chat/chunk.hpp>
#include <hearth/chat/message.hpp>
#include <hearth/chat/wire.hpp>

#include <exception>
#include <set>
#include <string>
#include <variant>

namespace hearth::fuzz {
namespace {

// Null if the bytes are no JSON.
Json chat_json(std::string_view bytes) {
  try {
    return parse_json(bytes);
  } catch (const std::exception&) {
    return nullptr;
  }
}

// Those members of the list that are messages. `stored`: no two of them have one id.
Json chat_messages(const Json& value, const char* key, bool stored = false) {
  Json messages = Json::array();
  if (!value.is_object() || !value.contains(key) || !value[key].is_array()) return messages;
  std::set<std::string> ids;
  for (const Json& message : value[key])
    if (chat::message_fault(message).empty() && (ids.insert(message["id"]).second || !stored))
      messages.push_back(message);
  return messages;
}

void check_chat_messages(const Json& messages) {
  for (const Json& message : messages)
    require(chat::message_fault(message).empty(), "a message has no fault");
}

struct CheckFrame {
  void operator()(const chat::ChatRequest& frame) const {
    require(!frame.id.empty() && frame.id.size() <= chat::kMaxIdBytes, "a request has an id");
    require(!frame.messages.empty(), "a request has messages");
    check_chat_messages(frame.messages);
    require(frame.body.is_null() || !frame.body.contains("messages"), "the body is the rest");
  }
  void operator()(const chat::SetMessages& frame) const { check_chat_messages(frame.messages); }
  void operator()(const chat::Refusal& refusal) const {
    require(refusal.text.ends_with('.'), "a refusal is a sentence");
    require(chat_json(chat::refusal_frame(refusal))["id"] == refusal.id, "the answer has the id");
  }
  void operator()(const chat::ToolResult& result) const {
    require(!result.is_failure || result.output.is_null(), "a failure has no output");
  }
  template <class Frame>
  void operator()(const Frame&) const {}
};

}  // namespace

void chat_frame(std::string_view bytes) {
  if (const auto frame = chat::read_client_frame(bytes)) std::visit(CheckFrame{}, *frame);
  // The same bytes as the body of a request, which a fuzzer would hardly escape.
  const Json request{{"type", "cf_agent_use_chat_request"},
                     {"id", "r"},
                     {"init", {{"method", "POST"}, {"body", bytes}}}};
  if (const auto frame = chat::read_client_frame(to_text(request)))
    std::visit(CheckFrame{}, *frame);
}

void chat_reconcile(std::string_view bytes) {
  const Json lists = chat_json(bytes);
  const Json stored = chat_messages(lists, "stored", true);
  const Json once = chat::reconcile(chat_messages(lists, "incoming"), stored).messages;
  check_chat_messages(once);
  std::set<std::string> ids;
  for (const Json& message : once)
    require(ids.insert(message["id"]).second, "no two messages have one id");
  require(chat::reconcile(once, stored).messages == once, "what was reconciled stays");
}

// A list of chunks, which are applied to one message.
void chat_chunks(std::string_view bytes) {
  const Json chunks = chat_json(bytes);
  if (!chunks.is_array()) return;
  Json message{{"id", "m"}, {"role", "assistant"}, {"parts", Json::array()}};
  for (const Json& chunk : chunks) {
    const Json before = message;
    const auto applied = chat::apply_chunk(message, chunk);
    require(applied.use == chat::Use::kStored || message == before, "only kStored changes it");
    require(chat::message_fault(message).empty(), "a message stays one");
  }
  for (const Json& chunk : chat::closing_chunks(message, chat::Closing::kTurn))
    require(chat::apply_chunk(message, chunk).use == chat::Use::kStored, "open parts are closed");
  chat::repair(message, {});
  require(chat::message_fault(message).empty() && !chat::repair(message, {}), "repaired once");
  chat::sanitize(message);
  const Json stored = message;
  chat::sanitize(message);
  require(message == stored, "sanitized once");
}

}  // namespace hearth::fuzz
