// What clients of a chat send, and what a provider's stream becomes. (As sdk_targets.cpp, for the
// chat stands on the SDK.)
#include "fuzz/targets.hpp"

#include <hearth/chat/chunk.hpp>
#include <hearth/chat/long_frame.hpp>
#include <hearth/chat/message.hpp>
#include <hearth/chat/wire.hpp>

#include <exception>
#include <set>
#include <string>
#include <unordered_set>
#include <utility>
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

// Null: the bytes are no frame with messages.
Json sent_list(std::string_view bytes) {
  const auto frame = chat::read_client_frame(bytes);
  if (!frame) return nullptr;
  if (const auto* const request = std::get_if<chat::ChatRequest>(&*frame)) return request->messages;
  if (const auto* const set = std::get_if<chat::SetMessages>(&*frame)) return set->messages;
  return nullptr;
}

void check_split(std::string_view bytes) {
  const auto split = chat::LongFrame::split(bytes);
  if (!split) return;
  const Json all = sent_list(bytes);
  if (all.is_null()) return;
  require(sent_list(split->without({})) == all, "a frame without none is the frame");
  std::unordered_set<std::string> ids;
  Json rest = Json::array();
  for (std::size_t i = 0; i < all.size(); ++i) {
    const bool is_earlier = i < split->earlier().size() && !split->earlier()[i].id.empty();
    if (!is_earlier) {
      rest.push_back(all[i]);
      continue;
    }
    require(split->earlier()[i].id == all[i].at("id").get<std::string>(),
            "the id is that of the message");
    require(ids.insert(split->earlier()[i].id).second, "no two messages have one id");
  }
  require(sent_list(split->without(ids)) == rest, "a frame without some has the others");
  for (const auto& [id, hash] : split->hashes_without(ids))
    require(!ids.contains(id), "what is left out has no hash");
}

// The bytes as the body of a request, which a fuzzer would hardly escape.
std::string as_request(std::string_view bytes) {
  return to_text(Json{{"type", "cf_agent_use_chat_request"},
                      {"id", "r"},
                      {"init", {{"method", "POST"}, {"body", bytes}}}});
}

}  // namespace

void chat_long_frame(std::string_view bytes) {
  check_split(bytes);
  check_split(as_request(bytes));
}

void chat_frame(std::string_view bytes) {
  if (const auto frame = chat::read_client_frame(bytes)) std::visit(CheckFrame{}, *frame);
  if (const auto frame = chat::read_client_frame(as_request(bytes)))
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
