#include <hearth/chat/wire.hpp>

#include <string>
#include <string_view>

namespace hearth::chat {

namespace {

// One JSON object. Its fields stand in the order in which they are added.
class FrameText {
 public:
  explicit FrameText(std::string_view type, std::size_t more_bytes = 0) {
    text_.reserve(128 + more_bytes);
    begin("type");
    append_json(text_, Json(type));
  }

  FrameText& add(std::string_view key, const Json& value) {
    begin(key);
    append_json(text_, value);
    return *this;
  }
  FrameText& add_if(std::string_view key, std::string_view value) {
    return value.empty() ? *this : add(key, Json(value));
  }
  FrameText& add_true(std::string_view key, bool is_true) {
    return is_true ? add(key, Json(true)) : *this;
  }
  // `json` is JSON text.
  FrameText& add_text(std::string_view key, std::string_view json) {
    begin(key);
    text_ += json;
    return *this;
  }

  [[nodiscard]] std::string end() { return std::move(text_ += '}'); }

 private:
  void begin(std::string_view key) {
    text_ += text_.empty() ? "{\"" : ",\"";
    text_ += key;
    text_ += "\":";
  }

  std::string text_;
};

}  // namespace

std::string response_frame(const ResponseFrame& frame) {
  FrameText text("cf_agent_use_chat_response", frame.body.size() + frame.body.size() / 4);
  text.add("id", Json(frame.id)).add("body", Json(frame.body)).add("done", Json(frame.is_done));
  text.add_true("error", frame.is_error);
  text.add_true("continuation", frame.is_continuation);
  text.add_true("replay", frame.is_replay);
  text.add_true("replayComplete", frame.is_replay_complete);
  if (frame.seq) text.add("seq", Json(*frame.seq));
  if (!frame.message_ids.empty()) {
    Json ids = Json::array();
    for (const std::string& id : frame.message_ids) ids.push_back(id);
    text.add("messageIds", ids);
  }
  return text.add_if("outcome", frame.outcome).end();
}

std::string refusal_frame(const Refusal& refusal) {
  return response_frame(
      {.id = refusal.id, .body = refusal.text, .is_done = true, .is_error = true});
}

std::string messages_frame(std::string_view messages, bool is_connect) {
  FrameText text("cf_agent_chat_messages", messages.size());
  return text.add_text("messages", messages).add_true("connect", is_connect).end();
}

std::string message_updated_frame(std::string_view message) {
  return FrameText("cf_agent_message_updated", message.size()).add_text("message", message).end();
}

std::string clear_frame() {
  return FrameText("cf_agent_chat_clear").end();
}

std::string resuming_frame(std::string_view id, std::string_view probe_id) {
  FrameText text("cf_agent_stream_resuming");
  return text.add("id", Json(id)).add_if("probeId", probe_id).end();
}

std::string pending_frame(std::string_view id, std::string_view probe_id) {
  FrameText text("cf_agent_stream_pending");
  return text.add_if("id", id).add_if("probeId", probe_id).end();
}

std::string resume_none_frame(std::string_view reason, std::string_view probe_id) {
  FrameText text("cf_agent_stream_resume_none");
  return text.add_if("reason", reason).add_if("probeId", probe_id).end();
}

std::string recovering_frame(bool is_recovering, std::string_view id) {
  FrameText text("cf_agent_chat_recovering");
  return text.add("recovering", Json(is_recovering)).add_if("id", id).end();
}

}  // namespace hearth::chat
