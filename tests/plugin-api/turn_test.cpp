// Turns on the mock host: what clients hear of their recoveries, and what is sent once.

#include "one_agent.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <vector>

namespace {

using hearth::Json;
using hearth::Task;
using hearth::testing::CallError;
using std::chrono::hours;
using std::chrono::minutes;

class Talker : public hearth::Agent {
 public:
  static void methods(hearth::Methods<Talker>& m) {
    m.add("begin", &Talker::begin);
    m.add("say", &Talker::say);
    m.add("nest", &Talker::nest);
    m.add("leave", &Talker::leave);
    m.callback("answer", &Talker::answer);
    m.fiber("turn", &Talker::turn);
    m.fiber("outer", &Talker::outer);
  }
  std::string begin() { return start_fiber("turn", nullptr, {.turn = true}).record.id; }
  // A frame of its own for each run, and one for all of them.
  void say() {
    broadcast_once(*running_, "hello", "hello");
    broadcast("run " + std::to_string(run_));
  }
  Task<void> nest() { return run_fiber<void>("outer"); }
  void leave(const std::string& message) { queue("answer", message); }
  void answer(const std::string& message) { broadcast("answer to " + message); }

 private:
  Task<void> turn(hearth::FiberContext& fiber) {
    running_ = &fiber;
    run_ = fiber.snapshot<int>().value_or(0) + 1;
    fiber.stash(run_);
    co_await sleep(hours(1000));
  }
  Task<void> outer(hearth::FiberContext&) {
    hearth::FiberOptions options{.turn = true};
    co_await run_fiber<void>("turn", nullptr, std::move(options));
  }

  hearth::FiberContext* running_ = nullptr;  // as long as its function runs
  int run_ = 0;
};

class TurnTest : public OneAgent<Talker> {
 protected:
  // The frames with `text` that a client has received.
  static std::vector<std::string> frames_with(const hearth::testing::Client& client,
                                              std::string_view text) {
    std::vector<std::string> found;
    for (const auto& frame : client.received()) {
      if (frame.payload.find(text) != std::string::npos) found.push_back(frame.payload);
    }
    return found;
  }

  // What a client hears of the turn when it is recovered after a kill.
  std::vector<std::string> recover() {
    agent_.kill();
    auto client = agent_.connect();
    host_.advance(minutes(10));
    return frames_with(client, "session.");
  }
  static Json rescheduled(const Json& id, int recovery) {
    return {{"type", "session.status_rescheduled"},
            {"turn", id},
            {"reason", "recovery " + std::to_string(recovery) + " of 5"}};
  }
};

TEST_F(TurnTest, R5_TheTurnIsIdleBeforeLaterMessagesAreWorkedOn) {
  agent_.call("begin");
  agent_.kill();
  auto during = agent_.connect();
  host_.advance(minutes(10));
  agent_.call("leave", "a");
  EXPECT_EQ(frames_with(during, "answer to a").size(), 1U) << "a recovered turn holds up nothing";
  for (int recovery = 2; recovery <= 5; ++recovery) recover();
  agent_.kill();
  auto after = agent_.connect();
  host_.advance(minutes(10));
  agent_.call("leave", "b");
  const auto frames = frames_with(after, "");
  ASSERT_GE(frames.size(), 3U);
  EXPECT_NE(frames[frames.size() - 3].find("session.error"), std::string::npos);
  EXPECT_NE(frames[frames.size() - 2].find("session.status_idle"), std::string::npos);
  EXPECT_EQ(frames.back(), "answer to b");
}

TEST_F(TurnTest, R6_FiveRecoveriesAreHeardAndTheSixthEndsTheTurn) {
  const Json id = agent_.call("begin");
  for (int recovery = 1; recovery <= 5; ++recovery) {
    const auto frames = recover();
    ASSERT_EQ(frames.size(), recovery == 1 ? 1U : 2U) << recovery;
    EXPECT_EQ(Json::parse(frames.back()), rescheduled(id, recovery));
    if (recovery > 1) {
      EXPECT_EQ(Json::parse(frames[0]), rescheduled(id, recovery - 1));
    }
  }
  agent_.kill();
  auto client = agent_.connect();
  host_.advance(minutes(10));
  const auto frames = frames_with(client, "session.");
  ASSERT_EQ(frames.size(), 3U);
  EXPECT_EQ(Json::parse(frames[0]), rescheduled(id, 5)) << "the last one before it came";
  const Json error = Json::parse(frames[1]);
  EXPECT_EQ(error.at("type"), "session.error");
  EXPECT_EQ(error.at("turn"), id);
  EXPECT_EQ(error.at("error").at("retry_status"), "exhausted");
  EXPECT_NE(error.at("error").at("message").get<std::string>().find("max_turn_recoveries"),
            std::string::npos);
  const Json idle{{"type", "session.status_idle"},
                  {"turn", id},
                  {"stop_reason", {{"type", "retries_exhausted"}}}};
  EXPECT_EQ(Json::parse(frames[2]), idle);
  host_.advance(hours(10));
  EXPECT_EQ(frames_with(client, "session.").size(), 3U) << "it is over";
  auto late = agent_.connect();
  const auto missed = frames_with(late, "session.");
  ASSERT_EQ(missed.size(), 2U);
  EXPECT_EQ(Json::parse(missed[0]), error);
  EXPECT_EQ(Json::parse(missed[1]), idle);

  const Json next = agent_.call("begin");
  const auto heard = recover();
  ASSERT_EQ(heard.size(), 1U) << "nothing of the turn that was given up before";
  EXPECT_EQ(Json::parse(heard[0]), rescheduled(next, 1)) << "the next one begins to count anew";
}

TEST_F(TurnTest, AFrameWithAnIdIsSentOnceOverRecoveries) {
  agent_.call("begin");
  auto before = agent_.connect();
  agent_.call("say");
  agent_.call("say");
  EXPECT_EQ(frames_with(before, "hello").size(), 1U);
  agent_.kill();
  auto after = agent_.connect();
  host_.advance(minutes(10));
  agent_.call("say");
  EXPECT_EQ(frames_with(after, "run 2").size(), 1U);
  EXPECT_TRUE(frames_with(after, "hello").empty());
}

TEST_F(TurnTest, OnlyTheOutermostFiberIsATurn) {
  EXPECT_THROW(agent_.call("nest"), CallError);
}

}  // namespace
