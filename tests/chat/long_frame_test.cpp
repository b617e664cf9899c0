// LongFrame leaves the messages that the transcript has out of a long frame.
#include "rows.hpp"

#include <hearth/chat/long_frame.hpp>
#include <hearth/chat/wire.hpp>

#include <gtest/gtest.h>

#include <random>
#include <string>
#include <unordered_set>
#include <variant>
#include <vector>

namespace hearth::chat {
namespace {

using SentIds = std::vector<std::string>;

std::string long_request(std::string_view body) {
  return R"({"type":"cf_agent_use_chat_request","id":"r1","init":{"method":"POST","body":)" +
         to_text(body) + R"(,"x":1},"y":[{}]})";
}

std::string sent_text(const std::string& id, const std::string& role,
                      const std::string& text = "hi") {
  return R"({"role":")" + role + R"(", "id" : ")" + id + R"(","parts":[{"type":"text","text":)" +
         to_text(text) + "}]}";
}

SentIds earlier_of(std::string_view frame) {
  const auto split = LongFrame::split(frame);
  SentIds ids;
  if (!split) return {"no list"};
  for (const SentMessage& each : split->earlier()) ids.push_back(each.id);
  return ids;
}

Json list_in(const std::string& frame) {
  const auto read = read_client_frame(frame);
  if (!read) return "no frame";
  if (const auto* const chat = std::get_if<ChatRequest>(&*read)) return chat->messages;
  if (const auto* const set = std::get_if<SetMessages>(&*read)) return set->messages;
  return "refused";
}

struct SplitRow {
  const char* name;
  std::string list;
  SentIds earlier;
};

TEST(LongFrameTest, MessagesThatMayBeLeftOutAreFound) {
  const std::string a = sent_text("a", "assistant"), b = sent_text("b", "user");
  const std::string c = sent_text("c", "assistant"), d = sent_text("d", "user");
  const std::vector<SplitRow> rows = {
      {"the last one belongs to the turn", "[" + a + "]", {}},
      {"and the users at the end, with the one before",
       "[" + a + "," + c + "," + b + "," + d + "]",
       {"a"}},
      {"a list with an answer at its end", "[" + b + "," + a + " ,\n " + c + " ]", {"b", "a"}},
      {"nothing but users", "[" + b + "," + d + "]", {}},
      {"an id again", "[" + a + "," + a + "," + b + "," + c + "]", {"a", "", "b"}},
      {"an id with an escape",
       "[" + sent_text(R"(\u0061)", "user") + "," + a + "," + c + "]",
       {"", "a"}},
      {"two ids, one of a name with an escape",
       R"([{"id":"x","\u0069d":"y","parts":[]},)" + a + "," + c + "]",
       {"", "a"}},
      {"brackets and quotes in texts",
       "[" + sent_text("a", "user", R"(]},{"id":"x"}\)") + "," +
           sent_text("b", "user", R"(\\"[{)") + "," + a + "," + c + "]",
       {"a", "b", ""}},
      {"a message without an id", R"([{"parts":{"id":"x"}},)" + a + "," + c + "]", {"", "a"}},
      {"an empty list", "[]", {"no list"}},
      {"no message", "[" + a + ",1," + c + "]", {"no list"}},
      {"no comma", "[" + a + c + "]", {"no list"}},
      {"no end", "[" + a + "," + c, {"no list"}},
      {"no list", R"({"a":1})", {"no list"}},
  };
  for (const SplitRow& row : rows) {
    SCOPED_TRACE(row.name);
    EXPECT_EQ(earlier_of(R"({"type":"cf_agent_chat_messages","messages":)" + row.list + "}"),
              row.earlier);
    EXPECT_EQ(
        earlier_of(long_request(R"({"a":[1,-2.5e3,true],"messages":)" + row.list + R"(,"b":{}})")),
        row.earlier);
  }
}

TEST(LongFrameTest, OtherFramesHaveNoList) {
  const std::string list = "[" + sent_text("a", "user") + "," + sent_text("b", "assistant") + "]";
  const std::vector<std::string> frames = {
      "",
      "[",
      "{}",
      "{",
      R"({"messages)",
      R"({"messages":)",
      R"({"messages":)" + list + R"(,"messages":[]})",                   // which of them counts?
      R"({"messages":)" + list + R"(,"m\u0065ssages":[]})",              // the same, with an escape
      R"({"messages":)" + list + R"(,"init":{"body":"{}"}})",            // or this
      R"({"init":{"body":"{\"messages\":[]}","body":"{}"}})",            // and here
      R"({"init":{"body":{"messages":)" + list + "}}}",                  // no text
      R"({"init":{"body":"{\u0022messages\u0022:[{\"id\":\"a\"}]}"}})",  // other escapes
      R"({"init":{"body":"{\"messages\":[{}]}\"}})",
      long_request(R"({"messages":{}})"),
      long_request(R"({"messages":)" + list + R"(,"messages":[]})")};
  for (const std::string& frame : frames) EXPECT_EQ(earlier_of(frame), SentIds{"no list"}) << frame;
}

TEST(LongFrameTest, AFrameThatIsCutOffAnywhereIsNoHarm) {
  const std::string frame = long_request(R"({"messages":[)" + sent_text("a", "assistant") + "," +
                                         sent_text("b", "user") + "]}");
  for (std::size_t size = 0; size < frame.size(); ++size)
    EXPECT_EQ(earlier_of(frame.substr(0, size)), SentIds{"no list"}) << size;
}

// Whatever is left out, the others are read as they are in the whole frame.
TEST(LongFrameTest, TheRestIsReadAsBefore) {
  std::mt19937 random(5);
  const auto below = [&](std::size_t bound) { return random() % bound; };
  const SentIds texts = {"hi", "\"", "\\\"", "\u00e9\U0001F600", "\n\t\b\f\r", "[{]},", "/\\"};
  for (int round = 0; round < 200; ++round) {
    std::string list;
    std::unordered_set<std::string> left_out;
    const std::size_t count = 1 + below(6);
    for (std::size_t i = 0; i < count; ++i) {
      const std::string id = "m" + std::to_string(i);
      list += std::string(i == 0 ? "" : ",") +
              sent_text(id, below(2) == 0 ? "user" : "assistant", texts.at(below(texts.size())));
      if (below(2) == 0) left_out.insert(id);
    }
    const std::string body = R"({"messages":[)" + list + R"(],"trigger":"submit-message","z":[2]})";
    for (const std::string& frame :
         {long_request(body), R"({"type":"cf_agent_chat_messages","messages":[)" + list + "]}"}) {
      SCOPED_TRACE(frame);
      const auto split = LongFrame::split(frame);
      ASSERT_TRUE(split);
      EXPECT_EQ(list_in(split->without({})), list_in(frame));
      std::unordered_set<std::string> ids;
      for (const SentMessage& each : split->earlier())
        if (left_out.contains(each.id)) ids.insert(each.id);
      Json rest = Json::array();
      for (const Json& each : list_in(frame))
        if (!ids.contains(each.at("id").get<std::string>())) rest.push_back(each);
      EXPECT_EQ(list_in(split->without(ids)), rest);
      EXPECT_EQ(split->hashes_without(ids).size(), rest.size());
    }
  }
}

}  // namespace
}  // namespace hearth::chat
