// From the bytes of an answer to the chunks that the log does not have.
#include <hearth/chat/answer_reader.hpp>

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace hearth::chat {
namespace {

// Says the data of each event; "end" ends the answer.
class WordByWord : public Provider {
 public:
  [[nodiscard]] HttpCall request(const Prompt& /*prompt*/) const override { return {}; }
  void read(const ServerSentEvent& event, ModelAnswer& answer) const override {
    if (event.data == "end") return answer.complete();
    answer.text("0", event.data);
  }
  void read_whole(const Json& body, ModelAnswer& answer) const override {
    answer.text("0", body.at("text").get<std::string>());
    if (body.value("done", false)) answer.complete();
  }
};

struct Reading {
  explicit Reading(std::uint64_t used = 0) : reader(provider, ModelAnswer("t_0"), used, take) {}
  [[nodiscard]] std::string text() const {
    std::string all;
    for (const Json& chunk : chunks)
      if (chunk.at("type") == "text-delta") all += chunk.at("delta").get<std::string>();
    return all;
  }
  WordByWord provider;
  std::vector<Json> chunks;
  std::vector<std::uint64_t> events;
  TakeChunks take = [this](std::vector<Json> some, std::uint64_t used) {
    for (Json& chunk : some) chunks.push_back(std::move(chunk));
    events.push_back(used);
  };
  AnswerReader reader;
};

constexpr std::string_view kAnswer = "data: one\n\ndata: two\n\ndata: end\n\n";

TEST(AnswerReaderTest, EachReadIsHandedOnOnceWithItsEvents) {
  Reading reading;
  EXPECT_FALSE(reading.reader.feed(kAnswer.substr(0, 5)));
  EXPECT_TRUE(reading.events.empty());
  EXPECT_TRUE(reading.reader.feed(kAnswer.substr(5, 20)));
  EXPECT_TRUE(reading.reader.feed(kAnswer.substr(25)));
  EXPECT_EQ(reading.text(), "onetwo");
  EXPECT_EQ(reading.events, std::vector<std::uint64_t>({2, 3}));
  EXPECT_TRUE(reading.reader.is_over());
  EXPECT_EQ(reading.reader.outcome().failure, "");
  EXPECT_TRUE(reading.reader.outcome().has_content);
}

TEST(AnswerReaderTest, WhatTheLogHasIsNotMadeAgainAndIdsAreTheSame) {
  Reading first;
  first.reader.feed(kAnswer);
  for (std::uint64_t used = 0; used <= 3; ++used) {
    SCOPED_TRACE(used);
    Reading again(used);
    EXPECT_TRUE(again.reader.feed(kAnswer)) << "also if the log has them";
    const std::string text = used == 0 ? "onetwo" : used == 1 ? "two" : "";
    EXPECT_EQ(again.text(), text);
    for (const Json& chunk : again.chunks)
      if (chunk.contains("id")) EXPECT_EQ(chunk.at("id"), first.chunks.at(1).at("id"));
  }
}

TEST(AnswerReaderTest, AnAnswerThatEndsEarlyIsCut) {
  Reading reading;
  reading.reader.feed(kAnswer.substr(0, 12));
  EXPECT_FALSE(reading.reader.is_over());
  reading.reader.end("the connection broke");
  EXPECT_EQ(reading.reader.outcome().as_failure().kind, FailureKind::kCut);
  EXPECT_EQ(reading.reader.outcome().text, "the connection broke");
  EXPECT_TRUE(reading.reader.outcome(true).is_stalled);
}

TEST(AnswerReaderTest, AnEventOverTheLimitFailsForGood) {
  Reading reading;
  reading.reader.feed("data: " + std::string(std::size_t{2} << 20, 'x'));
  EXPECT_TRUE(reading.reader.is_over());
  EXPECT_EQ(reading.reader.outcome().as_failure().kind, FailureKind::kInvalid);
}

TEST(AnswerReaderTest, ABodyOfAnUnfinishedAnswerHandsOnNothing) {
  Reading reading;
  reading.reader.feed_whole(R"({"text":"one"})");
  EXPECT_TRUE(reading.chunks.empty());
  reading.reader.feed_whole(R"({"text":" two","done":true})");
  EXPECT_EQ(reading.text(), "one two");
  Reading broken;
  broken.reader.feed_whole("<html>");
  EXPECT_EQ(broken.reader.outcome().as_failure().kind, FailureKind::kTransient);
}

TEST(AnswerReaderTest, WhatTheLedgerHasIsReadAsItWasSent) {
  struct Row {
    const char* type;
    std::string body;
    const char* text;
    bool is_over;
  };
  const std::string whole = R"({"text":"one","done":true})";
  const std::vector<Row> rows = {
      {"text/event-stream", std::string(kAnswer), "onetwo", true},
      {"text/event-stream", std::string(kAnswer.substr(0, 15)), "one", false},
      {"application/json", whole, "one", true},
      {"Application/JSON; charset=utf-8", whole, "one", true},
      {"application/json", whole.substr(0, 10), "", false},
      {"application/json", "", "", false},
  };
  for (const Row& row : rows) {
    SCOPED_TRACE(row.type + (" " + row.body));
    PartialAnswer stored;
    stored.headers = {{"Date", "today"}, {"content-type", row.type}};
    stored.body = row.body;
    Reading reading;
    reading.reader.feed_stored(stored);
    EXPECT_EQ(reading.text(), row.text);
    EXPECT_EQ(reading.reader.is_over(), row.is_over);
    EXPECT_FALSE(reading.reader.answer().failure());
  }
}

TEST(AnswerReaderTest, WhatNoMessageCanHoldFailsForGood) {
  struct Row {
    std::string name;
    bool is_whole;
    std::uint64_t used;
    std::string shown;
    bool fails;
  };
  const std::vector<Row> rows = {{"a stream", false, 0, "onetwo", true},
                                 {"what the log has is in its message", false, 2, "", false},
                                 {"one body", true, 0, "", true}};
  for (const Row& row : rows) {
    SCOPED_TRACE(row.name);
    const WordByWord provider;
    std::string shown;
    const auto take = [&](const std::vector<Json>& chunks, std::uint64_t /*events*/) {
      for (const Json& chunk : chunks)
        if (chunk.at("type") == "text-delta") shown += chunk.at("delta").get<std::string>();
    };
    AnswerReader reader(provider, ModelAnswer("t_0"), row.used, take, 80);
    const std::string large(row.used == 0 ? 100 : 1, '"');
    if (row.is_whole)
      reader.feed_whole(to_text({{"text", large}, {"done", true}}));
    else
      reader.feed("data: one\n\ndata: two\n\ndata: " + large + "\n\n");
    EXPECT_EQ(shown, row.used == 0 ? row.shown : large);
    EXPECT_EQ(reader.is_over(), row.fails);
    reader.end("the end");
    EXPECT_EQ(reader.outcome().failure, row.fails ? "invalid" : "cut");
  }
}

}  // namespace
}  // namespace hearth::chat
