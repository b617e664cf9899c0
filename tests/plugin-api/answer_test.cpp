// Answers in parts, and answers that end before the work does, on the mock host.

#include "one_agent.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

using std::chrono::seconds;

namespace {

using hearth::Json;
using hearth::Task;
using hearth::testing::Call;
using hearth::testing::HttpAnswer;
using hearth::testing::HttpCall;

class Narrator : public hearth::Agent {
 public:
  static void methods(hearth::Methods<Narrator>& m) {
    m.stream("early", &Narrator::early);
    m.stream("ends_twice", &Narrator::ends_twice);
    m.stream("fails_late", &Narrator::fails_late);
    m.stream("at_their_pace", &Narrator::at_their_pace);
  }

  Task<void> early(hearth::Stream& out) {
    out.send("part");
    out.end("result");
    co_await sleep(seconds(90));
    heard = out.send("too late");
    went_on = true;
  }
  std::string ends_twice(hearth::Stream& out) {
    out.end();
    try {
      out.end(2);
    } catch (const hearth::Error& error) {
      log.info(error.what());
    }
    return "nobody gets this";
  }
  Task<void> fails_late(hearth::Stream& out) {
    out.end(1);
    co_await sleep(seconds(1));
    throw std::runtime_error("after all");
  }
  Task<int> at_their_pace(hearth::Stream& out) {
    int sent = 0;
    while (sent < 3) {
      out.send(sent++);
      if (!co_await out.drained()) break;
    }
    co_return sent;
  }

  Task<hearth::Response> on_request(const hearth::Request& request) override {
    const std::string path = request.path();
    if (path.ends_with("/events")) return events(request);
    if (path.ends_with("/fails")) return fails(request);
    if (path.ends_with("/twice")) return twice(request);
    return count(request);
  }

  static inline bool went_on = false;
  static inline std::optional<bool> heard;

 private:
  Task<hearth::Response> count(const hearth::Request& request) {
    hearth::Response head(201, "0");
    head.add_header("X-Count", "down");
    hearth::ResponseStream out = request.stream(head);
    for (const char* const piece : {" 1", " 2"}) {
      if (!co_await out.write(piece)) break;
      co_await sleep(seconds(1));
    }
    co_return out.end();
  }
  Task<hearth::Response> events(const hearth::Request& request) {
    hearth::EventStream out(request);
    co_await out.send("one\ntwo\r\nthree\rfour");
    hearth::ServerSentEvent named;
    named.data = "{}";
    named.event = "token";
    named.id = "7";
    co_await out.send(named);
    const Json numbers = {1, 2};
    co_await out.send(numbers);
    co_await out.send("");
    co_await out.keep_open();
    named.id = "7\n8";
    std::string refused;
    try {
      co_await out.send(named);
    } catch (const hearth::Error& error) {
      refused = error.what();
    }
    co_await out.send(refused);
    co_return out.end();
  }
  Task<hearth::Response> fails(const hearth::Request& request) {
    static_cast<void>(request.stream(hearth::Response::text("half")));
    co_await sleep(seconds(1));
    throw std::runtime_error("no more");
  }
  Task<hearth::Response> twice(const hearth::Request& request) {
    static_cast<void>(request.stream(hearth::Response::text("half")));
    co_await sleep(seconds(1));
    co_return hearth::Response::text("another head");
  }
};

class AnswerTest : public OneAgent<Narrator> {
 protected:
  AnswerTest() {
    Narrator::went_on = false;
    Narrator::heard.reset();
  }
};

// ---- parts over HTTP ----------------------------------------------------------------------------

TEST_F(AnswerTest, ABodyLeavesInPiecesWhileTheHandlerGoesOn) {
  const HttpCall call = agent_.start_request("GET");
  HttpAnswer answer = call.answer();
  EXPECT_FALSE(answer.done);
  EXPECT_EQ(answer.status, 201U);
  EXPECT_EQ(answer.header("x-count"), "down");
  EXPECT_EQ(answer.body, "0 1");
  host_.advance(seconds(2));
  answer = call.answer();
  EXPECT_TRUE(answer.done);
  EXPECT_FALSE(call.cut());
  EXPECT_EQ(answer.body, "0 1 2");
}

TEST_F(AnswerTest, EventsHaveTheFormatOfTheStandard) {
  const HttpAnswer answer = agent_.request("GET", "/events");
  ASSERT_TRUE(answer.done);
  EXPECT_EQ(answer.header("Content-Type"), "text/event-stream");
  EXPECT_EQ(answer.header("Cache-Control"), "no-cache");
  EXPECT_EQ(answer.body,
            "data: one\ndata: two\ndata: three\ndata: four\n\n"
            "event: token\nid: 7\ndata: {}\n\n"
            "data: [1,2]\n\n"
            "data: \n\n"
            ":\n\n"
            "data: the id of an event is one line\n\n");
}

TEST_F(AnswerTest, WhatFailsAfterTheHeadCutsTheAnswer) {
  for (const char* const path : {"/fails", "/twice"}) {
    const HttpCall call = agent_.start_request("GET", path);
    host_.advance(seconds(1));
    EXPECT_TRUE(call.cut()) << path;
    EXPECT_EQ(call.answer().body, "half") << path;
  }
}

// ---- calls --------------------------------------------------------------------------------------

TEST_F(AnswerTest, AStreamEndsBeforeItsMethodDoesAndKeepsTheAgentInMemory) {
  const Call call = agent_.start("early");
  EXPECT_TRUE(call.done());
  EXPECT_EQ(call.value(), "result");
  EXPECT_EQ(call.parts(), (std::vector<Json>{"part"}));
  EXPECT_EQ(agent_.keep_alive(), 1U);
  host_.advance(seconds(90));
  EXPECT_TRUE(Narrator::went_on);
  EXPECT_EQ(Narrator::heard, false);
  EXPECT_EQ(agent_.keep_alive(), 0U);
}

TEST_F(AnswerTest, ItEndsOnce) {
  const Call call = agent_.start("ends_twice");
  EXPECT_TRUE(call.done());
  EXPECT_FALSE(call.has_value());
  EXPECT_NE(host_.log().back().find("the answer has been ended before"), std::string::npos);
}

TEST_F(AnswerTest, AFailureAfterTheEndIsLogged) {
  const Call call = agent_.start("fails_late");
  EXPECT_EQ(call.value(), 1);
  host_.advance(seconds(1));
  EXPECT_NE(host_.log().back().find("fails_late failed after its answer: after all"),
            std::string::npos)
      << host_.log().back();
  EXPECT_EQ(agent_.keep_alive(), 0U);
}

TEST_F(AnswerTest, AMethodMayWaitForItsClient) {
  EXPECT_EQ(agent_.call("at_their_pace"), 3);
  auto client = agent_.connect();
  const auto call = client.start("at_their_pace");
  EXPECT_EQ(call.value(), 3);
}

}  // namespace
