#pragma once
// A client of a chat on the mock host: what it sends, and what it makes of the frames, as
// useAgentChat does.
#include <hearth/chat/chunk.hpp>
#include <hearth/testing/host.hpp>

#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace hearth::chat {

inline Json user_message(const std::string& id, const std::string& text) {
  return {
      {"id", id}, {"role", "user"}, {"parts", Json::array({{{"type", "text"}, {"text", text}}})}};
}

inline std::string text_of(const Json& message) {
  std::string text;
  for (const Json& part : message.at("parts"))
    if (part.at("type") == "text") text += part.at("text").get<std::string>();
  return text;
}

// The parts of a message that are calls of tools.
inline std::vector<Json> calls_of(const Json& message) {
  std::vector<Json> calls;
  for (const Json& part : message.at("parts"))
    if (part.contains("toolCallId")) calls.push_back(part);
  return calls;
}

// The stored messages.
inline Json transcript_of(testing::AgentHandle& agent) {
  return agent.request("GET", "/agents/chat/a/get-messages").json();
}

inline std::vector<std::string> texts_of(testing::AgentHandle& agent) {
  std::vector<std::string> texts;
  for (const Json& message : transcript_of(agent)) texts.push_back(text_of(message));
  return texts;
}

class ChatClient {
 public:
  explicit ChatClient(testing::AgentHandle& agent, std::string id = {}, std::string query = {})
      : client_(agent.connect(std::move(query), std::move(id))) {}

  void send(const Json& frame) { client_.send(to_text(frame)); }
  void ask(const std::string& id, const Json& messages, const Json& more = Json::object()) {
    Json body = more;
    body["messages"] = messages;
    send({{"type", "cf_agent_use_chat_request"},
          {"id", id},
          {"init", {{"method", "POST"}, {"body", to_text(body)}}}});
  }
  void say(const std::string& id, const std::string& text) {
    ask(id, Json::array({user_message("u-" + id, text)}));
  }
  // With a tool of the client, "where".
  void ask_where(const std::string& id, const std::string& text) {
    ask(id, Json::array({user_message("u-" + id, text)}),
        {{"clientTools", Json::array({{{"name", "where"}}})}});
  }
  void stop(const std::string& id) { send({{"type", "cf_agent_chat_request_cancel"}, {"id", id}}); }
  void clear() { send({{"type", "cf_agent_chat_clear"}}); }
  void resume() { send({{"type", "cf_agent_stream_resume_request"}}); }
  void acknowledge(const std::string& id) {
    send({{"type", "cf_agent_stream_resume_ack"}, {"id", id}});
  }
  void approve(const std::string& call, bool is_approved) {
    send({{"type", "cf_agent_tool_approval"},
          {"toolCallId", call},
          {"approved", is_approved},
          {"autoContinue", true}});
  }
  void answer(const std::string& call, const Json& output) {
    send({{"type", "cf_agent_tool_result"},
          {"toolCallId", call},
          {"toolName", "t"},
          {"output", output},
          {"autoContinue", true}});
  }

  // Takes the frames that have come. A client that is offered a stream takes it.
  void read() {
    for (const auto& received : client_.take_received()) take(parse_json(received.payload));
  }
  // The frames of this type so far.
  [[nodiscard]] std::vector<Json> frames(std::string_view type) const {
    std::vector<Json> some;
    for (const Json& frame : frames_)
      if (frame.value("type", "") == type) some.push_back(frame);
    return some;
  }
  // Those with the transcript, without the one of the connect.
  [[nodiscard]] std::size_t snapshots() const {
    std::size_t count = 0;
    for (const Json& frame : frames("cf_agent_chat_messages"))
      if (!frame.value("connect", false)) ++count;
    return count;
  }
  // The last frame of this request; null: it has not come.
  [[nodiscard]] Json done(const std::string& id) const {
    for (const Json& frame : frames("cf_agent_use_chat_response"))
      if (frame.value("id", "") == id && frame.value("done", false)) return frame;
    return nullptr;
  }
  // How this request has ended, and behind a colon why it has failed. "none": it has not ended.
  [[nodiscard]] std::string outcome(const std::string& id) const {
    const Json frame = done(id);
    if (!frame.is_object()) return "none";
    const std::string why = frame.value("body", "");
    return frame.at("outcome").get<std::string>() + (why.empty() ? "" : ": " + why);
  }
  // The text of the message that the frames of this request make, from its first chunk. Fails the
  // test if a chunk is missing or comes twice.
  [[nodiscard]] std::string shown(const std::string& id) const {
    Json message{{"id", ""}, {"role", "assistant"}, {"parts", Json::array()}};
    std::uint64_t next = 0;
    for (const Json& frame : frames("cf_agent_use_chat_response")) {
      if (frame.value("id", "") != id || !frame.contains("seq")) continue;
      const auto seq = frame.at("seq").get<std::uint64_t>();
      if (frame.value("replay", false) && seq == 0) {  // from the beginning
        message["parts"] = Json::array();
        next = 0;
      }
      EXPECT_EQ(seq, next++) << id;
      const Json chunk = parse_json(frame.at("body").get<std::string>());
      EXPECT_NE(apply_chunk(message, chunk).use, Use::kBad) << to_text(chunk);
    }
    return text_of(message);
  }
  void close() { client_.close(); }
  [[nodiscard]] testing::Client& socket() { return client_; }
  bool takes_offers = true;

 private:
  void take(Json frame) {
    if (takes_offers && frame.value("type", "") == "cf_agent_stream_resuming")
      acknowledge(frame.at("id").get<std::string>());
    frames_.push_back(std::move(frame));
  }

  testing::Client client_;
  std::vector<Json> frames_;
};

}  // namespace hearth::chat
