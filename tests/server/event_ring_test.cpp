#include "server/event_ring.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <functional>
#include <string>
#include <vector>

namespace hearth::server {
namespace {

using Fields = std::vector<LogField>;

void put(EventRing& ring, std::int64_t at_ms, LogLevel level, std::string_view name,
         const Fields& fields = {}) {
  ring.put({.time = WallTime(std::chrono::milliseconds(at_ms)),
            .level = level,
            .name = name,
            .fields = fields});
}

// The names of the events in a text, and "gap(missed)".
std::string names_in(const std::string& text) {
  std::string names;
  for (std::size_t at = 0; (at = text.find("data: ", at)) != std::string::npos; ++at) {
    const std::string line = text.substr(at, text.find('\n', at) - at);
    for (const char* const key : {R"("event":")", R"("missed":)"}) {
      const std::size_t begin = line.find(key);
      if (begin == std::string::npos) continue;
      const std::string value = line.substr(begin + std::string_view(key).size());
      names += (names.empty() ? "" : " ") + value.substr(0, value.find_first_of("\",}"));
    }
  }
  return names;
}

EventFilter made(const std::function<void(EventFilter&)>& change) {
  EventFilter filter;
  change(filter);
  return filter;
}
EventFilter since(std::int64_t ms) {
  return made([ms](EventFilter& filter) { filter.since_ms = ms; });
}

TEST(EventRingTest, AReaderGetsWhatItsFilterLetsThrough) {
  EventRing ring("r");
  put(ring, 10, LogLevel::kDebug, "a", {{"class", "ChatRoom"}, {"agent", "x"}});
  put(ring, 20, LogLevel::kInfo, "b", {{"class", "ChatRoom"}, {"agent", "x"}, {"trace", "00-t1"}});
  put(ring, 30, LogLevel::kWarn, "c", {{"class", "Counter"}, {"agent", "x"}, {"n", 1}});
  put(ring, 40, LogLevel::kError, "d");
  struct Row {
    EventFilter filter;
    const char* names;
  };
  for (const Row& row : std::vector<Row>{
           {{}, "b c d"},
           {made([](EventFilter& f) { f.level = LogLevel::kTrace; }), "a b c d"},
           {made([](EventFilter& f) { f.level = LogLevel::kError; }), "d"},
           {made([](EventFilter& f) {
              f.level = LogLevel::kTrace;
              f.segment = "chat-room";
            }),
            "a b"},
           {made([](EventFilter& f) {
              f.segment = "counter";
              f.agent = "x";
            }),
            "c"},
           {made([](EventFilter& f) { f.agent = "y"; }), ""},
           {made([](EventFilter& f) { f.trace = "t1"; }), "b"},
           {made([](EventFilter& f) { f.since_ms = 30; }), "c d"},
       }) {
    EventRing::Cursor from = ring.behind("r-0").value();
    EXPECT_EQ(names_in(ring.read(from, row.filter, 1 << 20)), row.names);
    EXPECT_TRUE(ring.is_at_end(from));
  }
}

TEST(EventRingTest, AnEventIsALineOfTheLogAndItsIdComesFirst) {
  EventRing ring("r");
  put(ring, 0, LogLevel::kInfo, "x", {{"text", "two\nlines"}});
  EventRing::Cursor from = ring.behind("r-0").value();
  EXPECT_EQ(
      ring.read(from, {}, 1000),
      "id: r-1\ndata: {\"time\":\"1970-01-01T00:00:00.000Z\",\"level\":\"info\",\"event\":\"x\","
      "\"text\":\"two\\nlines\"}\n\n");
}

TEST(EventRingTest, PartsAreBoundedAndFollowEachOther) {
  EventRing ring("r");
  for (const char* const name : {"a", "b", "c"}) put(ring, 0, LogLevel::kInfo, name);
  EventRing::Cursor from = ring.behind("r-0").value();
  EXPECT_EQ(names_in(ring.read(from, {}, 1)), "a");
  EXPECT_EQ(names_in(ring.read(from, {}, 100)), "b c");
}

TEST(EventRingTest, WhoComesBackMissesNothingOrIsTold) {
  EventRing ring("r", 1500);
  put(ring, 1, LogLevel::kInfo, "first");
  EventRing::Cursor slow = ring.behind("r-1").value();
  for (int i = 2; i <= 100; ++i) put(ring, i, LogLevel::kInfo, "e" + std::to_string(i));
  struct Row {
    const char* id;
    std::string begins;
  };
  EventRing::Cursor all = ring.behind("old-5").value();
  const std::string held = names_in(ring.read(all, {}, 1 << 20));
  const std::size_t space = held.find(' ', held.find('e'));
  const std::string oldest = held.substr(held.find('e'), space - held.find('e'));
  const std::string missed = std::to_string(std::stoi(oldest.substr(1)) - 2);
  EXPECT_TRUE(held.starts_with("null ")) << held;
  EXPECT_TRUE(held.ends_with("e99 e100"));
  EXPECT_LT(held.size(), 100) << "old ones go";
  for (const Row& row : std::vector<Row>{{"r-100", ""},
                                         {"r-99", "e100"},
                                         {"r-1", missed + " " + oldest + " "},
                                         {"r-101", "null " + oldest + " "}}) {
    EventRing::Cursor from = ring.behind(row.id).value();
    const std::string names = names_in(ring.read(from, {}, 1 << 20));
    EXPECT_EQ(names.substr(0, row.begins.size()), row.begins) << row.id;
    EXPECT_EQ(names.empty(), row.begins.empty());
    EXPECT_EQ(names_in(ring.read(from, {}, 1 << 20)), "") << "a gap is told once";
  }
  EXPECT_TRUE(names_in(ring.read(slow, {}, 1 << 20)).starts_with(missed + " " + oldest));
  EventRing::Cursor early = ring.begin(since(50));
  EXPECT_TRUE(names_in(ring.read(early, since(50), 1 << 20)).starts_with("null "));
  EventRing::Cursor late = ring.begin(since(100));
  EXPECT_EQ(names_in(ring.read(late, since(100), 1 << 20)), "e100");
  EventRing::Cursor fresh = ring.begin({});
  EXPECT_EQ(ring.read(fresh, {}, 1 << 20), "");
}

TEST(EventRingTest, WhatIsNoIdIsRefused) {
  const EventRing ring("r");
  for (const char* const id : {"", "5", "r-", "r-x", "r-1x", "r--1"})
    EXPECT_EQ(ring.behind(id).error().code, Errc::kInvalidArgument) << id;
}

}  // namespace
}  // namespace hearth::server
