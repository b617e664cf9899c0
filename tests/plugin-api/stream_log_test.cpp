// Streams in the agent's database, on the mock host.

#include "one_agent.hpp"

#include <hearth/stream_log.hpp>

#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <stop_token>
#include <string>
#include <vector>

namespace {

using hearth::Json;
using hearth::Task;
using std::chrono::seconds;
using Lines = std::vector<std::string>;

Lines lines_of(const Json& parts) {
  return parts.get<Lines>();
}

class Scroll : public hearth::Agent {
 public:
  static void methods(hearth::Methods<Scroll>& m) {
    m.add("append", &Scroll::append);
    m.add("end", &Scroll::end);
    m.add("drop", &Scroll::drop);
    m.add("page", &Scroll::page);
    m.add("undo", &Scroll::undo);
    m.add("replace", &Scroll::replace);
    m.add("append_and_note", &Scroll::append_and_note);
    m.add("notes", &Scroll::notes);
    m.add("begin", &Scroll::begin);
    m.add("cancel", &Scroll::cancel);
    m.add("stop", &Scroll::stop);
    m.stream("follow", &Scroll::follow);
    m.fiber("write", &Scroll::write);
    m.fiber("wait", &Scroll::wait);
  }

  std::uint64_t append(std::string stream, Json row) {
    return row.is_string() ? rows_.append(stream, row.get<std::string>())
                           : rows_.append(stream, row);
  }
  bool end(std::string stream, std::string last) { return rows_.end(stream, last); }
  bool drop(std::string stream) { return rows_.drop(stream); }
  Json page(std::string stream, std::uint64_t after, std::size_t bytes) {
    const hearth::StreamPage page = rows_.read(stream, after, bytes);
    Json rows = Json::array();
    for (const auto& row : page.rows) rows.push_back(std::to_string(row.seq) + row.text);
    Json told{{"rows", rows}, {"cursor", page.cursor}};
    if (page.end) told["end"] = *page.end;
    if (page.dropped) told["dropped"] = true;
    return told;
  }
  // What a transaction() that is not committed has done.
  void undo(std::string stream, std::string what) {
    const auto undone = transaction();
    if (what == "append") rows_.append(stream, "undone");
    if (what == "end") rows_.end(stream);
    if (what == "drop") rows_.drop(stream);
  }
  void replace(std::string stream) {
    rows_.drop(stream);
    rows_.append(stream, "new");
  }
  void append_and_note(std::string stream) {
    rows_.append(stream, "x");
    after_turn([this] { notes_.emplace_back("committed"); });
  }
  Lines notes() { return notes_; }

  Task<void> follow(hearth::Stream& out, std::string stream, std::uint64_t after) {
    hearth::StreamReader reader = rows_.reader(stream, after, stop_.get_token());
    try {
      while (auto page = co_await reader.next()) {
        EXPECT_FALSE(page->rows.empty());
        EXPECT_EQ(page->cursor, reader.cursor());
        notes_.emplace_back("told");
        for (const auto& row : page->rows) out.send(std::to_string(row.seq) + row.text);
      }
      EXPECT_FALSE(co_await reader.next()) << "the end is given again";
      out.send(reader.end() ? "end " + *reader.end() : "dropped");
    } catch (const hearth::Error& error) {
      EXPECT_EQ(error.code(), HEARTH_E_CANCELLED);
      EXPECT_TRUE(error.is_final());
      out.send("stopped");
    }
  }
  void stop() { stop_.request_stop(); }

  // A row a second; the row and the checkpoint are one commit.
  Task<void> write(std::string stream, hearth::FiberContext& fiber) {
    for (int line = fiber.snapshot<int>().value_or(1); line <= 4; ++line) {
      co_await sleep(seconds(1));
      rows_.append(stream, "line");
      fiber.stash(line + 1);
    }
    rows_.end(stream, "all");
  }
  Task<void> wait(std::string stream, hearth::FiberContext&) {
    hearth::StreamReader reader = rows_.reader(stream);
    try {
      static_cast<void>(co_await reader.next());
    } catch (const hearth::Error& error) {
      EXPECT_EQ(error.code(), HEARTH_E_CANCELLED);
      notes_.emplace_back("cancelled");
    }
  }
  std::string begin(std::string name, std::string stream) { return start_fiber(name, stream).id(); }
  bool cancel(std::string id) { return cancel_fiber(id); }

 private:
  hearth::StreamLog rows_{*this};
  std::stop_source stop_;
  Lines notes_;
};

class StreamLogTest : public OneAgent<Scroll> {};

TEST_F(StreamLogTest, EachStreamCountsItsRowsFromOne) {
  EXPECT_EQ(agent_.call("append", "a", "text"), 1);
  EXPECT_EQ(agent_.call("append", "a", Json{{"k", 1}}), 2);
  EXPECT_EQ(agent_.call("append", "b", ""), 1);
  EXPECT_EQ(agent_.call("page", "a", 0, 1000),
            Json({{"rows", {"1text", R"(2{"k":1})"}}, {"cursor", 2}}));
  EXPECT_EQ(agent_.call("page", "b", 0, 1000), Json({{"rows", {"1"}}, {"cursor", 1}}));
}

TEST_F(StreamLogTest, APageBeginsBehindItsCursorAndIsBounded) {
  for (const char* row : {"aaaa", "bbbb", "cccccccccc", "d"}) agent_.call("append", "s", row);
  struct Case {
    int after;
    int bytes;
    Json rows;
    int cursor;
  };
  for (const auto& [after, bytes, rows, cursor] :
       {Case{0, 1000, {"1aaaa", "2bbbb", "3cccccccccc", "4d"}, 4},
        Case{0, 8, {"1aaaa", "2bbbb"}, 2}, Case{0, 7, {"1aaaa"}, 1},
        Case{2, 8, Json::array({"3cccccccccc"}), 3}, Case{2, 0, Json::array({"3cccccccccc"}), 3},
        Case{3, 8, Json::array({"4d"}), 4}, Case{4, 8, Json::array(), 4}}) {
    EXPECT_EQ(agent_.call("page", "s", after, bytes), Json({{"rows", rows}, {"cursor", cursor}}))
        << after << " " << bytes;
  }
}

TEST_F(StreamLogTest, AnEndIsGivenWithTheLastPageAndTakesNoMoreRows) {
  agent_.call("append", "s", "x");
  EXPECT_EQ(agent_.call("end", "s", "why"), true);
  EXPECT_EQ(agent_.call("end", "s", "again"), false);
  EXPECT_TRUE(agent_.start("append", "s", "y").failed());
  EXPECT_EQ(agent_.call("page", "s", 0, 1000),
            Json({{"rows", {"1x"}}, {"cursor", 1}, {"end", "why"}}));
  for (const int cursor : {1, 2, 9}) {
    EXPECT_EQ(agent_.call("page", "s", cursor, 1000).at("end"), "why") << cursor;
  }
  EXPECT_EQ(agent_.call("end", "empty", ""), true) << "a stream without rows";
  EXPECT_EQ(agent_.call("page", "empty", 0, 1000).at("end"), "");
}

TEST_F(StreamLogTest, ADroppedStreamIsGone) {
  agent_.call("append", "s", "x");
  agent_.call("append", "t", "y");
  EXPECT_EQ(agent_.call("drop", "s"), true);
  EXPECT_EQ(agent_.call("drop", "s"), false);
  EXPECT_EQ(agent_.call("page", "s", 1, 1000).value("dropped", false), true);
  EXPECT_EQ(agent_.call("page", "s", 0, 1000), Json({{"rows", Json::array()}, {"cursor", 0}}));
  EXPECT_EQ(agent_.call("page", "t", 0, 1000).at("rows"), Json({"1y"}));
}

TEST_F(StreamLogTest, NamesAndRowsAreChecked) {
  for (const std::string& name : {std::string(), std::string(257, 'n')})
    EXPECT_TRUE(agent_.start("append", name, "x").failed()) << name.size();
  EXPECT_EQ(agent_.call("append", std::string(256, 'n'), "x"), 1);
}

TEST_F(StreamLogTest, AReaderGetsTheRowsBehindItsCursorAndThenWaits) {
  agent_.call("append", "s", "a");
  agent_.call("append", "s", "b");
  const auto all = agent_.start("follow", "s", 0);
  const auto rest = agent_.start("follow", "s", 1);
  const auto early = agent_.start("follow", "t", 0);
  EXPECT_EQ(all.parts(), (std::vector<Json>{"1a", "2b"}));
  agent_.call("append", "s", "c");
  EXPECT_EQ(all.parts(), (std::vector<Json>{"1a", "2b", "3c"}));
  EXPECT_EQ(rest.parts(), (std::vector<Json>{"2b", "3c"}));
  EXPECT_TRUE(early.parts().empty());
  agent_.call("append", "t", "x");
  agent_.call("end", "s", "why");
  EXPECT_EQ(all.parts().back(), "end why");
  EXPECT_EQ(rest.parts().back(), "end why");
  EXPECT_TRUE(rest.done());
  EXPECT_EQ(early.parts(), (std::vector<Json>{"1x"}));
  EXPECT_FALSE(early.done());
}

TEST_F(StreamLogTest, AReaderThatWaitsIsToldAfterTheCommit) {
  static_cast<void>(agent_.start("follow", "s", 0));
  agent_.call("append_and_note", "s");
  EXPECT_EQ(agent_.call("notes"), Json({"committed", "told"}));
}

TEST_F(StreamLogTest, ADropEndsThoseWhoWait) {
  agent_.call("append", "s", "a");
  const auto behind = agent_.start("follow", "s", 1);
  const auto early = agent_.start("follow", "t", 0);
  agent_.call("drop", "s");
  agent_.call("drop", "t");
  EXPECT_EQ(behind.parts(), (std::vector<Json>{"dropped"}));
  EXPECT_EQ(early.parts(), (std::vector<Json>{"dropped"}));
}

TEST_F(StreamLogTest, WhatIsUndoneTellsNothing) {
  agent_.call("append", "s", "a");
  const auto behind = agent_.start("follow", "s", 1);
  const auto early = agent_.start("follow", "t", 0);
  for (const char* what : {"append", "end", "drop"}) agent_.call("undo", "s", what);
  for (const char* what : {"append", "end"}) agent_.call("undo", "t", what);
  EXPECT_TRUE(behind.parts().empty() && !behind.done());
  EXPECT_TRUE(early.parts().empty() && !early.done());
  agent_.call("append", "s", "b");
  agent_.call("append", "t", "x");
  EXPECT_EQ(behind.parts(), (std::vector<Json>{"2b"}));
  EXPECT_EQ(early.parts(), (std::vector<Json>{"1x"}));
}

TEST_F(StreamLogTest, ACursorOfAnOldStreamReadsNothingOfANewOne) {
  agent_.call("append", "s", "a");
  agent_.call("append", "s", "b");
  const auto behind = agent_.start("follow", "s", 2);
  agent_.call("replace", "s");
  EXPECT_EQ(behind.parts(), (std::vector<Json>{"dropped"}));
}

TEST_F(StreamLogTest, AStopAndACancelEndAWait) {
  const auto reader = agent_.start("follow", "s", 0);
  const Json id = agent_.call("begin", "wait", "s");
  EXPECT_EQ(agent_.unfinished(), 1U);
  ASSERT_EQ(agent_.fibers().size(), 1U);
  agent_.call("stop");
  EXPECT_EQ(reader.parts(), (std::vector<Json>{"stopped"}));
  EXPECT_TRUE(agent_.call("notes").empty());
  agent_.call("cancel", id);
  EXPECT_EQ(agent_.call("notes"), Json::array({"cancelled"}));
  const auto late = agent_.start("follow", "s", 0);
  EXPECT_EQ(late.parts(), (std::vector<Json>{"stopped"})) << "it was stopped before";
  EXPECT_TRUE(host_.log().empty()) << host_.log().front();
}

// The reader is a client that is cut off again and again, and asks for what it has missed.
TEST_F(StreamLogTest, AClientGetsEachRowOnceHoweverOftenItIsCutOff) {
  agent_.call("begin", "write", "s");
  Lines got;
  for (int round = 0; round < 40 && (got.empty() || got.back() != "end all"); ++round) {
    auto client = agent_.connect();
    std::uint64_t seq = got.size();
    const auto call = client.start("follow", "s", seq);
    host_.advance(std::chrono::milliseconds(700));
    for (const Json& part : call.parts()) got.push_back(part.get<std::string>());
    if (round % 3 == 0) {
      agent_.kill();
    } else if (round % 3 == 1) {
      agent_.evict();
    } else {
      client.close();
    }
    host_.advance(seconds(1));  // no client is connected
  }
  EXPECT_EQ(got, (Lines{"1line", "2line", "3line", "4line", "end all"}));
  EXPECT_EQ(lines_of(agent_.call("page", "s", 0, 1000).at("rows")),
            (Lines{"1line", "2line", "3line", "4line"}));
}

}  // namespace
