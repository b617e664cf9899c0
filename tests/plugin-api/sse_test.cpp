// Server-sent events, from bytes.

#include <hearth/agent.hpp>

#include <gtest/gtest.h>

#include <chrono>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace {

using hearth::SseParser;

// "type|id|data" of each event, with the text fed in the pieces that `cuts` makes of it.
std::vector<std::string> events_of(std::string_view text, const std::vector<std::size_t>& cuts) {
  SseParser parser;
  std::vector<std::string> events;
  std::size_t begin = 0;
  const auto feed = [&](std::size_t end) {
    parser.feed(text.substr(begin, end - begin));
    begin = end;
    while (const auto event = parser.take())
      events.push_back(event->event + "|" + event->id + "|" + event->data);
  };
  for (const std::size_t cut : cuts) feed(cut);
  feed(text.size());
  return events;
}

using Events = std::vector<std::string>;

struct Case {
  std::string_view text;
  Events events;
};

// Each has an odd form of the standard.
const std::vector<Case>& cases() {
  static const std::vector<Case> all{
      {"data: a\n\n", {"message||a"}},
      {"data: a\r\n\r\n", {"message||a"}},
      {"data: a\r\r", {"message||a"}},
      {"\xef\xbb\xbf"
       "data: a\n\n",
       {"message||a"}},
      {"\xef\xbb\xbf\xef\xbb\xbf"
       "data: a\n\n",
       {}},
      {"data: a\ndata: b\r\ndata\rdata:\n\n", {"message||a\nb\n\n"}},
      {"data:a\n\ndata:  b\n\n", {"message||a", "message|| b"}},
      {"event: add\ndata: 1\n\ndata: 2\n\n", {"add||1", "message||2"}},
      {"event: add\n\ndata: 2\n\n", {"message||2"}},
      {"id: 7\ndata: a\n\ndata: b\n\nid\ndata: c\n\n",
       {"message|7|a", "message|7|b", "message||c"}},
      {"id: 7\n\ndata: a\n\n", {"message|7|a"}},
      {std::string_view("id: 7\nid: 8\0\ndata: a\n\n", 22), {"message|7|a"}},
      {": comment\n\ndata: a\n:\n\n", {"message||a"}},
      {"data\n\n", {"message||"}},
      {"unknown: x\nDATA: x\n data: x\ndata: a:b\n\n", {"message||a:b"}},
      {"data: a\n\n\n\ndata: b\n", {"message||a"}},
      {"data: a", {}},
      {"data: \xc3\xa4\n\n", {"message||\xc3\xa4"}},
      {"data: a\n\r\n\rdata: b\r\n\n", {"message||a", "message||b"}},
  };
  return all;
}

TEST(SseParserTest, EachFormIsReadAsTheStandardSays) {
  for (const Case& each : cases()) EXPECT_EQ(events_of(each.text, {}), each.events) << each.text;
}

TEST(SseParserTest, WhereTheTextIsCutDoesNotMatter) {
  for (const auto& [text, events] : cases()) {
    for (std::size_t first = 0; first <= text.size(); ++first) {
      for (std::size_t second = first; second <= text.size(); ++second)
        ASSERT_EQ(events_of(text, {first, second}), events) << text << first << " " << second;
    }
  }
}

TEST(SseParserTest, TheWholeEventsOfAPartAreReadAtOnce) {
  for (const Case& each : cases()) {
    Events events;
    for (const auto& event : hearth::read_events(each.text))
      events.push_back(event.event + "|" + event.id + "|" + event.data);
    EXPECT_EQ(events, each.events) << each.text;
  }
  const std::string part = "id: 1\ndata: one\n\nid: 2\ndata: tw";
  const auto whole = hearth::whole_events(part);
  ASSERT_EQ(hearth::read_events(part).size(), 1U);
  EXPECT_EQ(hearth::read_events(part.substr(0, whole.bytes)).back().id, whole.last_id);
  EXPECT_EQ(hearth::read_events("data: " + std::string(SseParser::kMaxBytes, 'x') + "\n\n").size(),
            1U)
      << "a part is bounded by what holds it";
}

TEST(SseParserTest, RetryIsDigitsAlone) {
  SseParser parser;
  EXPECT_FALSE(parser.retry());
  for (const char* text :
       {"retry: 1x\n", "retry: -1\n", "retry:\n", "retry: 1 \n", "retry: 99999999999999999999\n"}) {
    parser.feed(text);
    EXPECT_FALSE(parser.retry()) << text;
  }
  parser.feed("retry: 2500\n");
  EXPECT_EQ(parser.retry(), std::chrono::milliseconds(2500));
}

TEST(SseParserTest, LinesAndDataAreBounded) {
  SseParser line(10);
  line.feed("data: 6789\n\n");
  EXPECT_EQ(line.take()->data, "6789");
  EXPECT_THROW(line.feed("data: 6789x"), hearth::Error);
  SseParser data(10);
  data.feed("data:12345\n");
  EXPECT_THROW(data.feed("data:1234\n"), hearth::Error);
}

}  // namespace
