// Text of clients: one row for each form of each frame, and for each limit.
#include "rows.hpp"

#include <hearth/chat/wire.hpp>

#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace hearth::chat {
namespace {

// A frame as JSON, to be compared. Fields that have their default are left out.
struct Shown {
  Json operator()(const ChatRequest& frame) const {
    Json shown{{"request", frame.id}, {"messages", frame.messages}};
    if (frame.is_regenerate) shown["regenerate"] = true;
    if (!frame.client_tools.is_null()) shown["tools"] = frame.client_tools;
    if (!frame.body.is_null()) shown["body"] = frame.body;
    return shown;
  }
  Json operator()(const SetMessages& frame) const { return {{"set", frame.messages}}; }
  Json operator()(const ClearChat&) const { return "clear"; }
  Json operator()(const CancelRequest& frame) const { return {{"cancel", frame.id}}; }
  Json operator()(const ResumeRequest& frame) const { return {{"resume", frame.probe_id}}; }
  Json operator()(const ResumeAck& frame) const { return {{"ack", frame.id}}; }
  Json operator()(const ToolResult& frame) const {
    Json shown{{"result", frame.call}, {"tool", frame.tool}, {"output", frame.output}};
    if (frame.is_failure) shown["error"] = frame.error_text;
    if (frame.auto_continue) shown["continue"] = true;
    if (!frame.client_tools.is_null()) shown["tools"] = frame.client_tools;
    return shown;
  }
  Json operator()(const ToolApproval& frame) const {
    return {{"approval", frame.call}, {"is", frame.is_approved}, {"continue", frame.auto_continue}};
  }
  Json operator()(const Refusal& frame) const {
    return {{"refused", frame.id}, {"why", frame.text}};
  }
};

Json shown(std::string_view text) {
  const auto frame = read_client_frame(text);
  return frame ? std::visit(Shown{}, *frame) : Json();
}

// The text of a request with this body.
std::string request_text(const std::string& body, const Json& id = "r1") {
  return to_text({{"type", "cf_agent_use_chat_request"},
                  {"id", id},
                  {"init", {{"method", "POST"}, {"body", body}}}});
}

const char* const kMessage = R"({"id":"m1","role":"user","parts":[{"type":"text","text":"hi"}]})";

std::string body_text(std::string_view more = {}) {
  return std::string(R"({"messages":[)") + kMessage + "]" + std::string(more) + "}";
}

struct ReadRow {
  std::string text;
  const char* frame;  // null: no frame of the chat
};

// clang-format off
const std::vector<ReadRow>& frames() {
  static const std::vector<ReadRow> all{
    {R"({"type":"cf_agent_chat_messages"})", R"({"set":[]})"},
    {R"({"type":"cf_agent_chat_messages","messages":[]})", R"({"set":[]})"},
    {R"({"type":"cf_agent_chat_messages","messages":[{"id":"m1","role":"system","parts":[],"x":1}]})", R"({"set":[{"id":"m1","role":"system","parts":[],"x":1}]})"},
    {R"({"type":"cf_agent_chat_messages","messages":{}})", R"({"refused":"","why":"The messages are no array."})"},
    {R"({"type":"cf_agent_chat_messages","messages":[{"id":"m1"}]})", R"({"refused":"","why":"A message has no known role."})"},
    {R"({"type":"cf_agent_chat_clear"})", R"("clear")"},
    {R"({"type":"cf_agent_chat_clear","id":7,"more":[]})", R"("clear")"},
    {R"({"type":"cf_agent_chat_request_cancel","id":"r1"})", R"({"cancel":"r1"})"},
    {R"({"type":"cf_agent_chat_request_cancel"})", R"({"refused":"","why":"The cancelled request has no id of 1 to 256 bytes."})"},
    {R"({"type":"cf_agent_chat_request_cancel","id":""})", R"({"refused":"","why":"The cancelled request has no id of 1 to 256 bytes."})"},
    {R"({"type":"cf_agent_stream_resume_request"})", R"({"resume":""})"},
    {R"({"type":"cf_agent_stream_resume_request","probeId":null})", R"({"resume":""})"},
    {R"({"type":"cf_agent_stream_resume_request","probeId":"p1"})", R"({"resume":"p1"})"},
    {R"({"type":"cf_agent_stream_resume_request","probeId":7})", R"({"refused":"","why":"The probe has no id of 1 to 256 bytes."})"},
    {R"({"type":"cf_agent_stream_resume_ack","id":"r1"})", R"({"ack":"r1"})"},
    {R"({"type":"cf_agent_stream_resume_ack","id":null})", R"({"refused":"","why":"The resumed request has no id of 1 to 256 bytes."})"},

    {R"({"type":"cf_agent_tool_result","toolCallId":"c1","toolName":"geo","output":{"lat":1},"autoContinue":true,"clientTools":[{"name":"geo"}]})",
     R"({"result":"c1","tool":"geo","output":{"lat":1},"continue":true,"tools":[{"name":"geo"}]})"},
    {R"({"type":"cf_agent_tool_result","toolCallId":"c1"})", R"({"result":"c1","tool":"","output":null})"},
    {R"({"type":"cf_agent_tool_result","toolCallId":"c1","output":false,"state":"done","autoContinue":1})", R"({"result":"c1","tool":"","output":false})"},
    {R"({"type":"cf_agent_tool_result","toolCallId":"c1","output":1,"state":"output-error","errorText":"no signal"})", R"({"result":"c1","tool":"","output":null,"error":"no signal"})"},
    {R"({"type":"cf_agent_tool_result","toolCallId":"c1","state":"output-error"})", R"({"result":"c1","tool":"","output":null,"error":""})"},
    {R"({"type":"cf_agent_tool_result","output":1})", R"({"refused":"","why":"The call has no id of 1 to 256 bytes."})"},
    {R"({"type":"cf_agent_tool_result","toolCallId":"c1","clientTools":[{}]})", R"({"refused":"","why":"A tool of the client has no name of 1 to 256 bytes, or parameters that are no object."})"},

    {R"({"type":"cf_agent_tool_approval","toolCallId":"c1","approved":true,"autoContinue":true})", R"({"approval":"c1","is":true,"continue":true})"},
    {R"({"type":"cf_agent_tool_approval","toolCallId":"c1","approved":false})", R"({"approval":"c1","is":false,"continue":false})"},
    {R"({"type":"cf_agent_tool_approval","toolCallId":"c1","approved":"yes"})", R"({"refused":"","why":"The answer about a call says neither true nor false."})"},
    {R"({"type":"cf_agent_tool_approval","approved":true})", R"({"refused":"","why":"The call has no id of 1 to 256 bytes."})"},

    // ---- of another part of the agent
    {R"({"type":"cf_agent_state","state":{}})", nullptr},
    {R"({"type":"rpc","id":"1"})", nullptr},
    {R"({"type":"cf_agent_use_chat_response","id":"r1","body":"","done":true})", nullptr},
    {R"({"type":"cf_agent_message_updated","message":{}})", nullptr},
    {R"({"type":"cf_agent_stream_resuming","id":"r1"})", nullptr},
    {R"({"type":"cf_agent_stream_resume_none"})", nullptr},
    {R"({"type":"cf_agent_stream_pending"})", nullptr},
    {R"({"type":"cf_agent_chat_recovering","recovering":true})", nullptr},
    {R"({"type":"CF_AGENT_CHAT_CLEAR"})", nullptr},
    {R"({"type":["cf_agent_chat_clear"]})", nullptr},
    {R"({"kind":"cf_agent_chat_clear"})", nullptr},
    {R"(["cf_agent_chat_clear"])", nullptr},
    {R"("cf_agent_chat_clear")", nullptr},
    {"null", nullptr},
    {"hello", nullptr},
    {"", nullptr},
    {"{\"type\":\"cf_agent_chat_clear\",\"x\":\"\xff\"}", nullptr},  // no UTF-8
    {R"({"type":"cf_agent_chat_clear","x":1e999})", nullptr},
    {R"({"type":"cf_agent_chat_clear"} more)", nullptr},
    {to_text({{"type", "cf_agent_chat_clear"}, {"x", nested(300)}}), nullptr},
  };
  return all;
}

const std::vector<ReadRow>& requests() {
  static const std::vector<ReadRow> all{
    {request_text(body_text()), R"({"request":"r1","messages":[{"id":"m1","role":"user","parts":[{"type":"text","text":"hi"}]}]})"},
    {request_text(body_text(R"(,"trigger":"submit-message","clientTools":[],"model":"x","n":{"a":[1]})")),
     R"({"request":"r1","messages":[{"id":"m1","role":"user","parts":[{"type":"text","text":"hi"}]}],"body":{"model":"x","n":{"a":[1]}}})"},
    {request_text(body_text(R"(,"trigger":"regenerate-message","clientTools":[{"name":"geo","description":"where","parameters":{"type":"object"}}])")),
     R"({"request":"r1","messages":[{"id":"m1","role":"user","parts":[{"type":"text","text":"hi"}]}],"regenerate":true,"tools":[{"name":"geo","description":"where","parameters":{"type":"object"}}]})"},
    {request_text(body_text(R"(,"trigger":7,"clientTools":null)")), R"({"request":"r1","messages":[{"id":"m1","role":"user","parts":[{"type":"text","text":"hi"}]}]})"},
    // Half a character, as JavaScript writes it.
    {request_text(R"({"messages":[{"id":"m1","role":"user","parts":[{"type":"text","text":"\ud83d"}]}]})"),
     "{\"request\":\"r1\",\"messages\":[{\"id\":\"m1\",\"role\":\"user\",\"parts\":[{\"type\":\"text\",\"text\":\"\xef\xbf\xbd\"}]}]}"},

    // ---- refused, with the id
    {request_text(""), R"({"refused":"r1","why":"The body of the request is no JSON object."})"},
    {request_text("[]"), R"({"refused":"r1","why":"The body of the request is no JSON object."})"},
    {request_text("{\"messages\":[}"), R"({"refused":"r1","why":"The body of the request is no JSON object."})"},
    {request_text(body_text(",\"x\":1e999")), R"({"refused":"r1","why":"The body of the request is no JSON object."})"},
    {R"({"type":"cf_agent_use_chat_request","id":"r1","init":{"method":"POST"}})", R"({"refused":"r1","why":"The body of the request is no JSON object."})"},
    {R"({"type":"cf_agent_use_chat_request","id":"r1","init":{"method":"POST","body":{"messages":[]}}})", R"({"refused":"r1","why":"The body of the request is no JSON object."})"},
    {request_text("{}"), R"({"refused":"r1","why":"The request has no messages."})"},
    {request_text(R"({"messages":[]})"), R"({"refused":"r1","why":"The request has no messages."})"},
    {request_text(R"({"messages":{"a":1}})"), R"({"refused":"r1","why":"The messages are no array."})"},
    {request_text(R"({"messages":[7]})"), R"({"refused":"r1","why":"A message is no object."})"},
    {request_text(body_text(R"(,"clientTools":{})")), R"({"refused":"r1","why":"The client's tools are no array."})"},
    {request_text(body_text(R"(,"clientTools":[{"name":""}])")), R"({"refused":"r1","why":"A tool of the client has no name of 1 to 256 bytes, or parameters that are no object."})"},
    {request_text(body_text(R"(,"clientTools":[{"name":"a","parameters":[]}])")), R"({"refused":"r1","why":"A tool of the client has no name of 1 to 256 bytes, or parameters that are no object."})"},
    {request_text(body_text(R"(,"clientTools":[{"name":"a","description":1}])")), R"({"refused":"r1","why":"A tool of the client has no name of 1 to 256 bytes, or parameters that are no object."})"},

    // ---- refused, and there is no id to answer
    {request_text(body_text(), 7), R"({"refused":"","why":"The request has no id of 1 to 256 bytes."})"},
    {request_text(body_text(), ""), R"({"refused":"","why":"The request has no id of 1 to 256 bytes."})"},
    {request_text(body_text(), text_of('i', kMaxIdBytes + 1)), R"({"refused":"","why":"The request has no id of 1 to 256 bytes."})"},

    // ---- for another part of the agent
    {R"({"type":"cf_agent_use_chat_request","id":"r1","init":{"method":"GET","body":"{}"}})", nullptr},
    {R"({"type":"cf_agent_use_chat_request","id":"r1","init":{"body":"{}"}})", nullptr},
    {R"({"type":"cf_agent_use_chat_request","id":"r1"})", nullptr},
  };
  return all;
}
// clang-format on

void check_rows(const std::vector<ReadRow>& rows) {
  for (const ReadRow& row : rows)
    EXPECT_EQ(shown(row.text), row.frame == nullptr ? Json() : json(row.frame))
        << row.text.substr(0, 300);
}

TEST(WireReadTest, EachFrameIsReadAsItsRowSays) {
  check_rows(frames());
}

TEST(WireReadTest, EachRequestIsReadAsItsRowSays) {
  check_rows(requests());
}

TEST(WireReadTest, ThePiecesOfAFrameAreNoFrame) {
  for (const std::vector<ReadRow>* const rows : {&frames(), &requests()})
    for (const ReadRow& row : *rows)
      for (std::size_t size = 0; size < std::min<std::size_t>(row.text.size(), 500); ++size)
        if (row.frame != nullptr)
          ASSERT_EQ(shown(std::string_view(row.text).substr(0, size)), Json()) << row.text;
}

// ---- limits -------------------------------------------------------------------------------------

const std::string kSetMessages = R"({"type":"cf_agent_chat_messages","messages":[)";

Json message_with(Json part) {
  return {{"id", "m1"}, {"role", "user"}, {"parts", {std::move(part)}}};
}

std::string request_of(const Json& messages, const char* key = nullptr, const Json& value = {}) {
  Json body{{"messages", messages}};
  if (key != nullptr) body[key] = value;
  return request_text(to_text(body));
}

std::string tool_result_of(const Json& output) {
  return to_text({{"type", "cf_agent_tool_result"}, {"toolCallId", "c1"}, {"output", output}});
}

// Far above what the rows of other limits need.
constexpr FrameLimits kSmall{
    .messages = 100, .message_bytes = std::size_t{1} << 20, .tool_output_bytes = 100'000};

// What is at the limit is taken, what is one beyond it is not.
struct LimitRow {
  std::size_t limit;
  std::function<std::string(std::size_t)> text;
  const char* why;
};

const std::vector<LimitRow>& limits() {
  static const Json hi = json(kMessage);
  static const std::vector<LimitRow> all{
      {kMaxIdBytes, [](std::size_t n) { return request_text(body_text(), text_of('i', n)); },
       "The request has no id of 1 to 256 bytes."},
      {kMaxIdBytes,
       [](std::size_t n) {
         Json message = hi;
         message["id"] = text_of('i', n);
         return request_of(Json::array({message}));
       },
       "A message has no id of 1 to 256 bytes."},
      {kMaxIdBytes,
       [](std::size_t n) {
         return request_of(Json::array({message_with({{"type", "tool-geo"},
                                                      {"toolCallId", text_of('c', n)},
                                                      {"state", "input-available"}})}));
       },
       "The call of a tool part has no id of 1 to 256 bytes."},
      {kSmall.messages,
       [](std::size_t n) {
         std::string text = kSetMessages;
         for (std::size_t i = 0; i < n; ++i)
           (text += R"({"id":"m","role":"user","parts":[]})") += i + 1 < n ? "," : "]}";
         return text;
       },
       "There are more than 100000 messages."},
      {kMaxParts,
       [](std::size_t n) {
         Json message = hi;
         message["parts"] = Json(n, {{"type", "step-start"}});
         return request_of(Json::array({message}));
       },
       "A message has more than 10000 parts."},
      {kMaxValueDepth,
       [](std::size_t n) {
         return request_of(Json::array(
             {message_with({{"type", "data-a"}, {"data", nested(static_cast<int>(n))}})}));
       },
       "A message is nested deeper than 64 levels."},
      {kSmall.message_bytes,
       [](std::size_t n) {
         const std::string begin = R"({"id":"m","parts":[{"text":")";
         const std::string end = R"(","type":"text"}],"role":"user"})";
         return kSetMessages + begin + text_of('a', n - begin.size() - end.size()) + end + "]}";
       },
       "A message is larger than 16 MiB."},
      {kMaxClientTools,
       [](std::size_t n) {
         return request_of(Json::array({hi}), "clientTools", Json(n, {{"name", "a"}}));
       },
       "There are more than 128 tools of the client."},
      {kMaxClientToolsBytes,
       [](std::size_t n) {
         const std::size_t rest = n - std::string(R"([{"description":"","name":"a"}])").size();
         return request_of(Json::array({hi}), "clientTools",
                           {{{"name", "a"}, {"description", text_of('a', rest)}}});
       },
       "The client's tools are larger than 256 KiB."},
      {kMaxDepth - 2,
       [](std::size_t n) {
         const Json parameters{{"a", nested(static_cast<int>(n) - 1)}};
         return request_of(Json::array({hi}), "clientTools",
                           {{{"name", "a"}, {"parameters", parameters}}});
       },
       "The client's tools are nested deeper than 64 levels."},
      {kMaxCustomBodyBytes,
       [](std::size_t n) {
         return request_of(Json::array({hi}), "x",
                           text_of('a', n - std::string(R"({"x":""})").size()));
       },
       "The fields beside the messages are larger than 64 KiB."},
      {kMaxDepth - 1,
       [](std::size_t n) {
         return request_of(Json::array({hi}), "x", nested(static_cast<int>(n)));
       },
       "The fields beside the messages are nested deeper than 64 levels."},
      {kSmall.tool_output_bytes,
       [](std::size_t n) {
         return R"({"type":"cf_agent_tool_result","toolCallId":"c1","output":")" +
                text_of('a', n - 2) + "\"}";
       },
       "The result is larger than 8 MiB."},
      {kMaxValueDepth, [](std::size_t n) { return tool_result_of(nested(static_cast<int>(n))); },
       "The result is nested too deeply."},
  };
  return all;
}

// Why a frame was not taken as it is. Empty: it was.
std::string reason(const std::string& text) {
  const auto frame = read_client_frame(text, kSmall);
  if (!frame) return "no frame";
  if (const auto* const refusal = std::get_if<Refusal>(&*frame)) return refusal->text;
  const auto* const result = std::get_if<ToolResult>(&*frame);
  return result == nullptr ? std::string() : result->error_text;
}

TEST(WireReadTest, WhatIsBeyondALimitIsRefusedWithItsSentence) {
  for (const LimitRow& row : limits()) {
    EXPECT_EQ(reason(row.text(row.limit)), "") << row.why;
    EXPECT_EQ(reason(row.text(row.limit + 1)), row.why);
  }
}

TEST(WireReadTest, TheLimitsAreThoseOfTheirSentences) {
  constexpr FrameLimits kUsual;
  EXPECT_EQ(kUsual.messages, 100'000U);
  EXPECT_EQ(kUsual.message_bytes, std::size_t{16} << 20);
  EXPECT_EQ(kUsual.tool_output_bytes, std::size_t{8} << 20);
}

TEST(WireReadTest, ABadToolResultBecomesAFailureSoThatItsTurnGoesOn) {
  const auto frame = read_client_frame(tool_result_of(nested(kMaxValueDepth + 1)));
  const auto* const result = frame ? std::get_if<ToolResult>(&*frame) : nullptr;
  ASSERT_NE(result, nullptr);
  EXPECT_EQ(result->call, "c1");
  EXPECT_EQ(result->output, Json());
}

}  // namespace
}  // namespace hearth::chat
