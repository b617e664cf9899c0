// Turns, answers, time limits and operations of a live agent. Its clients:
// live_agent_clients_test.cpp; its storage: live_agent_storage_test.cpp.
#include "runtime/live_agent.hpp"

#include "work_fixture.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace hearth::runtime {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::LiveAgentTest;

TEST_F(LiveAgentTest, P2_ACallIsAnsweredOnceAndASecondAnswerIsAnError) {
  on_call([](HostCalls& host, const AgentEvent& event) -> Result<void> {
    EXPECT_EQ(event.name, "add");
    EXPECT_EQ(event.body, "[1,2]");
    EXPECT_TRUE(host.complete(event.call, std::string_view("3")));
    EXPECT_EQ(host.complete(event.call, std::string_view("4")).error().code, Errc::kNotFound);
    return {};
  });
  EXPECT_EQ(shard_.ask(shard_.connect(), "add", "[1,2]")->end, "ok 3");
}

TEST_F(LiveAgentTest, ARefusedEventIsAnsweredByTheHost) {
  on_call(fail_with(Errc::kNotFound, "Method x does not exist"));
  EXPECT_EQ(shard_.ask(shard_.connect(), "x")->end, "error not_found: Method x does not exist");
}

TEST_F(LiveAgentTest, AnAnswerThatIsNotJsonIsTheAgentsError) {
  on_call([](HostCalls& host, const AgentEvent& event) -> Result<void> {
    EXPECT_EQ(host.complete(event.call, std::string_view("{oops")).error().code,
              Errc::kInvalidArgument);
    return {};
  });
  const auto answer = shard_.ask(shard_.connect(), "x");
  EXPECT_EQ(answer->end, "error plugin_error: the agent's answer is not JSON");
}

TEST_F(LiveAgentTest, AFailureInAMethodIsLoggedOnceWithTheMethodAndTheErrorsOfAnAuthorAreNot) {
  const std::string endless(1000, 'm');
  on_call([](HostCalls& host, const AgentEvent& event) -> Result<void> {
    if (event.name == "refuses") return Error{Errc::kPlugin, "cannot begin"};
    const Errc code = event.name == "no-such-room" ? Errc::kNotFound : Errc::kPlugin;
    return host.complete(event.call, Error{code, "went wrong"});
  });
  const auto client = shard_.connect();
  for (const std::string& method : {std::string("fail"), std::string("no-such-room"), endless})
    shard_.call(client, method);
  shard_.call(client, "refuses");
  shard_.request("POST");
  shard_.settle();
  const std::string line = "warn agent.call_failed class=Counter agent=a event_kind=";
  EXPECT_EQ(shard_.logger.count(line + "call error=\"went wrong\" call="), 2U);
  EXPECT_EQ(shard_.logger.count(line + "call error=\"cannot begin\" call="), 1U);
  EXPECT_EQ(shard_.logger.count(line + "request error=\"went wrong\" call="), 1U);
  for (const std::string& method :
       {std::string("fail"), std::string("refuses"), std::string("POST"), endless.substr(0, 64)})
    EXPECT_EQ(shard_.logger.count(" method=" + method + " trace=00-"), 1U) << method;
  EXPECT_FALSE(shard_.logger.contains("no-such-room"));
  EXPECT_EQ(shard_.logger.count("cannot begin"), 1U);
}

// The SDK answers first and logs afterwards. Work that a method has begun goes on after the answer.
TEST_F(LiveAgentTest, WhatIsLoggedBehindAnAnswerIsStillOfItsCallAndMethod) {
  on_call([](HostCalls& host, const AgentEvent& event) -> Result<void> {
    host.log("before");
    const std::uint64_t half_a_second = 500;
    EXPECT_TRUE(host.submit(1, bytes_of(half_a_second), 7));
    EXPECT_TRUE(host.complete(event.call, Error{Errc::kPlugin, "no such table"}));
    host.log("behind");
    return {};
  });
  shard_.script.on_result = [](HostCalls& host, const OperationResult&) { host.log("later"); };
  shard_.call(shard_.connect(), "a_method_with_a_long_name");
  shard_.loop.advance(milliseconds(500));
  const auto rest_of = [this](const std::string& text) {
    for (const std::string& line : shard_.logger.events()) {
      const auto at = line.find("text=" + text + " ");
      if (at != std::string::npos) return line.substr(line.find(' ', at));
    }
    return "no line " + text;
  };
  const std::string whose = rest_of("before");
  EXPECT_TRUE(whose.starts_with(" call=")) << whose;
  EXPECT_NE(whose.find(" method=a_method_with_a_long_name trace=00-"), std::string::npos) << whose;
  EXPECT_EQ(rest_of("behind"), whose);
  EXPECT_EQ(rest_of("later"), whose);
}

TEST_F(LiveAgentTest, WhatIsLoggedWhenACallHasTimedOutIsOfThatCall) {
  on_call([](HostCalls& host, const AgentEvent&) -> Result<void> {
    host.log("begun");
    return {};
  });
  shard_.script.on_cancel = [](HostCalls& host) { host.log("cancelled"); };
  shard_.ask(shard_.connect(), "sleepy");
  shard_.loop.advance(std::chrono::hours(1));
  std::vector<std::string> whose;
  for (const std::string& line : shard_.logger.events()) {
    if (const auto at = line.find(" call="); at != std::string::npos)
      whose.push_back(line.substr(at));
  }
  ASSERT_EQ(whose.size(), 3U) << "begun, agent.event_timed_out, cancelled";
  EXPECT_NE(whose[0].find(" method=sleepy trace=00-"), std::string::npos) << whose[0];
  EXPECT_EQ(whose[1], whose[0]);
  EXPECT_EQ(whose[2], whose[0]);
}

TEST_F(LiveAgentTest, ALogIsNotFilledWithTheFailuresThatClientsAskFor) {
  on_call([](HostCalls& host, const AgentEvent& event) -> Result<void> {
    return host.complete(event.call, Error{Errc::kPlugin, "went wrong"});
  });
  const auto client = shard_.connect();
  for (int i = 0; i < 1000; ++i) shard_.call(client, "fail");
  shard_.settle();
  EXPECT_GE(shard_.logger.count("agent.call_failed"), 10U);
  EXPECT_LT(shard_.logger.count("agent.call_failed"), 100U);
}

TEST_F(LiveAgentTest, PartsComeBeforeTheEnd) {
  on_call([](HostCalls& host, const AgentEvent& event) -> Result<void> {
    EXPECT_TRUE(host.emit(event.call, "1"));
    EXPECT_TRUE(host.set_state(0, "5"));  // from here on answers wait for the commit
    EXPECT_TRUE(host.emit(event.call, "2"));
    EXPECT_FALSE(host.emit(event.call, "not json"));
    return host.complete(event.call, std::string_view("3"));
  });
  const auto answer = shard_.ask(shard_.connect(), "stream");
  EXPECT_EQ(answer->parts, (std::vector<std::string>{"1", "2"}));
  EXPECT_EQ(answer->end, "ok 3");
}

TEST_F(LiveAgentTest, P3_AnAnswerToAWriteWaitsForTheCommitAndFollowsTheStateFrame) {
  on_call([](HostCalls& host, const AgentEvent& event) -> Result<void> {
    EXPECT_TRUE(host.set_state(0, R"({"n":1})"));
    return host.complete(event.call, std::string_view("1"));
  });
  const auto client = shard_.join();
  const auto answer = shard_.call(client, "increment");
  EXPECT_FALSE(answer->end) << "the commit comes when the turn has ended";
  EXPECT_EQ(client.sight->size(), 1U);
  shard_.settle();
  EXPECT_EQ(answer->end, "ok 1");
  EXPECT_EQ(client.sight->back(), R"(text state {"n":1})");
}

TEST_F(LiveAgentTest, P3_ABurstOfTurnsSharesACommitAndEveryAnswerComes) {
  int n = 0;
  on_call([&](HostCalls& host, const AgentEvent& event) -> Result<void> {
    EXPECT_TRUE(host.set_state(0, std::to_string(++n)));
    return host.complete(event.call, std::string_view("true"));
  });
  const auto client = shard_.join();
  std::vector<std::shared_ptr<testing::Answer>> answers;
  for (int i = 0; i < 16; ++i) answers.push_back(shard_.call(client, "increment"));
  shard_.settle();
  for (const auto& answer : answers) EXPECT_EQ(answer->end, "ok true");
  shard_.restart();
  EXPECT_EQ(shard_.join().sight->front(), "handshake counter/a 16");
}

TEST_F(LiveAgentTest, AnEventThatIsNeverAnsweredTimesOutAndTheLateAnswerIsRefused) {
  on_call(testing::keep_open(shard_.script));
  const auto answer = shard_.call(shard_.connect(), "never");
  shard_.loop.advance(milliseconds(299'000));
  EXPECT_FALSE(answer->end);
  shard_.loop.advance(milliseconds(2'000));
  EXPECT_EQ(answer->end, "error timeout: the agent did not answer in time");
  EXPECT_EQ(shard_.script.history.back(), "cancel");
  EXPECT_EQ(shard_.script.host->complete(kept(), std::string_view()).error().code, Errc::kNotFound);
}

TEST_F(LiveAgentTest, EachPartOfAStreamStartsTheTimeLimitAnew) {
  on_call(testing::keep_open(shard_.script));
  const auto answer = shard_.ask(shard_.connect(), "stream");
  for (int i = 0; i < 3; ++i) {
    shard_.loop.advance(milliseconds(200'000));
    EXPECT_TRUE(shard_.script.host->emit(kept(), "1"));
  }
  EXPECT_FALSE(answer->end);
  shard_.loop.advance(milliseconds(301'000));
  EXPECT_TRUE(answer->end);
}

TEST_F(LiveAgentTest, ACallerThatLeftIsNotAnsweredAndTheWorkGoesOn) {
  on_call(testing::keep_open(shard_.script));
  const auto client = shard_.connect();
  const auto answer = shard_.ask(client, "slow");
  shard_.leave(client, 1006, "", false);
  EXPECT_FALSE(shard_.script.host->emit(kept(), "1"));
  EXPECT_TRUE(shard_.script.host->complete(kept(), std::string_view("1")));
  shard_.settle();
  EXPECT_FALSE(answer->end);
}

TEST_F(LiveAgentTest, SleepEndsAfterItsTimeUnlessItIsCancelled) {
  std::vector<std::uint64_t> ended;
  shard_.script.on_result = [&](HostCalls&, const OperationResult& result) {
    EXPECT_EQ(result.operation, 1U);
    ended.push_back(result.token);
  };
  on_call([](HostCalls& host, const AgentEvent& event) -> Result<void> {
    const std::uint64_t half_a_second = 500;
    EXPECT_TRUE(host.submit(1, bytes_of(half_a_second), 7));
    const auto second = host.submit(1, bytes_of(half_a_second), 8);
    EXPECT_TRUE(host.cancel(second.value()));
    EXPECT_EQ(host.cancel(second.value()).error().code, Errc::kNotFound);
    const std::uint64_t too_long = ~std::uint64_t{0};
    EXPECT_EQ(host.submit(1, bytes_of(too_long), 9).error().code, Errc::kInvalidArgument);
    EXPECT_EQ(host.submit(1, "short", 9).error().code, Errc::kInvalidArgument);
    EXPECT_EQ(host.submit(99, "", 9).error().code, Errc::kUnsupported);
    return complete(host, event);
  });
  shard_.ask(shard_.connect(), "sleep");
  shard_.loop.advance(milliseconds(499));
  EXPECT_TRUE(ended.empty());
  shard_.loop.advance(milliseconds(1));
  EXPECT_EQ(ended, std::vector<std::uint64_t>{7});
}

TEST_F(LiveAgentTest, DrainEndsWhenTheClientHasTakenTheParts) {
  CallId call = 0;
  std::vector<std::string> ended;
  shard_.script.on_result = [&](HostCalls&, const OperationResult& result) {
    EXPECT_EQ(result.operation, 3U);
    ended.push_back(std::to_string(result.token) + (result.outcome ? " ok" : " gone"));
  };
  on_call([&](HostCalls& host, const AgentEvent& event) -> Result<void> {
    call = event.call;
    EXPECT_TRUE(host.set_state(0, "1")) << "so that the part has to wait for the commit";
    EXPECT_TRUE(host.emit(call, "1"));
    EXPECT_TRUE(host.submit(3, bytes_of(call), 7));
    const std::uint64_t nobody = call + 1;
    EXPECT_EQ(host.submit(3, bytes_of(nobody), 8).error().code, Errc::kNotFound);
    return {};
  });
  const auto client = shard_.connect();
  const auto answer = shard_.call(client, "stream");
  answer->is_slow = true;
  shard_.settle();
  EXPECT_EQ(answer->parts_before_drain, 1U);
  EXPECT_TRUE(ended.empty());
  answer->drained();
  EXPECT_TRUE(ended.empty()) << "not inside the sink's call";
  shard_.settle();
  EXPECT_EQ(ended, std::vector<std::string>{"7 ok"});

  EXPECT_TRUE(shard_.script.host->submit(3, bytes_of(call), 9));
  const auto last_of_nine = std::exchange(answer->drained, nullptr);
  const auto cancelled = shard_.script.host->submit(3, bytes_of(call), 10);
  EXPECT_TRUE(shard_.script.host->cancel(cancelled.value()));
  answer->drained();
  shard_.leave(client, 1006, "", false);
  last_of_nine();
  shard_.settle();
  EXPECT_EQ(ended, (std::vector<std::string>{"7 ok", "9 gone"}));
  EXPECT_EQ(shard_.script.host->submit(3, bytes_of(call), 11).error().code, Errc::kNotFound);
}

TEST_F(LiveAgentTest, OperationsInFlightAreBounded) {
  on_call([](HostCalls& host, const AgentEvent& event) -> Result<void> {
    const std::uint64_t long_time = 100'000;
    for (int i = 0; i < 1000; ++i) EXPECT_TRUE(host.submit(1, bytes_of(long_time), 1));
    EXPECT_EQ(host.submit(1, bytes_of(long_time), 1).error().code, Errc::kLimitExceeded);
    return complete(host, event);
  });
  EXPECT_EQ(shard_.call(shard_.connect(), "many")->end, "ok ");
}

TEST_F(LiveAgentTest, ARequestShowsItsHeadAndTheAnswersHeadCanBeSetUntilTheFirstPart) {
  on_call([](HostCalls& host, const AgentEvent& event) -> Result<void> {
    const extensions::RequestView view = host.request(event.call).value();
    EXPECT_EQ(view.target, "/agents/counter/a");
    EXPECT_EQ(*find_header(*view.headers, "ACCEPT"), "x");
    view.response->status = 201;
    EXPECT_TRUE(host.emit(event.call, "part"));
    EXPECT_EQ(host.request(event.call).value().response, nullptr);
    return host.complete(event.call, std::string_view("end"));
  });
  const auto answer = shard_.ask("POST", "body");
  EXPECT_EQ(answer->status, 201U);
  EXPECT_EQ(answer->parts, std::vector<std::string>{"part"});
  EXPECT_EQ(answer->end, "ok end");
  EXPECT_EQ(shard_.script.history.back(), "request POST|body");
}

// ---- requests whose body has not arrived ----

class UnreadBodyTest : public LiveAgentTest {
 protected:
  UnreadBodyTest() {
    shard_.restart({.call_timeout = seconds(30)});
    on_call([this](HostCalls&, const AgentEvent& event) {
      flags_ = event.flags;
      call_ = event.call;
      return Result<void>();
    });
  }
  std::shared_ptr<testing::Answer> request() {
    auto answer = std::make_shared<testing::Answer>();
    auto head = std::make_unique<RequestHead>();
    head->body = [](std::uint64_t) { return nullptr; };
    shard_.shard().request(testing::kUsualAgent, "counter", "POST", "", std::move(head),
                           std::make_unique<testing::FakeSink>(answer));
    shard_.settle();
    return answer;
  }

  std::uint32_t flags_ = 0;
  CallId call_ = 0;
};

TEST_F(UnreadBodyTest, OnlyAClassThatReadsBodiesGetsTheRequest) {
  EXPECT_EQ(request()->end, "error unavailable: the class has just changed");
  EXPECT_EQ(call_, 0U);
  shard_.script.reads_bodies = true;
  EXPECT_FALSE(request()->end);
  EXPECT_EQ(flags_, extensions::kUnreadBody);
}

TEST_F(UnreadBodyTest, EachPieceBeginsTheDeadlineAgain) {
  shard_.script.reads_bodies = true;
  const auto answer = request();
  for (int piece = 0; piece < 3; ++piece) {
    shard_.loop.advance(seconds(29));
    EXPECT_FALSE(answer->end);
    shard_.script.host->body_came(call_);
  }
  shard_.loop.advance(seconds(30));
  EXPECT_EQ(answer->end, "error timeout: the agent did not answer in time");
}

}  // namespace
}  // namespace hearth::runtime
