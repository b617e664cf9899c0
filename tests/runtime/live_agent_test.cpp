// Turns, answers, state, connections and operations of a live agent.
#include "runtime/live_agent.hpp"

#include "fakes.hpp"
#include "storage/plugin_sql.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <fstream>
#include <utility>

namespace hearth::runtime {
namespace {

using std::chrono::milliseconds;
using testing::ShardFixture;
using testing::Sight;

std::string_view bytes_of(const std::uint64_t& number) {
  return {reinterpret_cast<const char*>(&number), sizeof(number)};
}

class LiveAgentTest : public ::testing::Test {
 protected:
  using Handler = std::function<Result<void>(HostCalls&, const AgentEvent&)>;

  // `handler` gets calls and messages; everything else is completed at once.
  void on_call(Handler handler) {
    shard_.script.on_event = [handler = std::move(handler)](
                                 HostCalls& host, const AgentEvent& event) -> Result<void> {
      if (event.kind == EventKind::kCall || event.kind == EventKind::kMessage ||
          event.kind == EventKind::kRequest || event.kind == EventKind::kStateCheck) {
        return handler(host, event);
      }
      if (event.call != 0) return host.complete(event.call, std::string_view());
      return {};
    };
  }

  ShardFixture shard_;
};

TEST_F(LiveAgentTest, P2_ACallIsAnsweredOnceAndASecondAnswerIsAnError) {
  on_call([](HostCalls& host, const AgentEvent& event) -> Result<void> {
    EXPECT_EQ(event.name, "add");
    EXPECT_EQ(event.body, "[1,2]");
    EXPECT_TRUE(host.complete(event.call, std::string_view("3")));
    EXPECT_EQ(host.complete(event.call, std::string_view("4")).error().code, Errc::kNotFound);
    return {};
  });
  const auto client = shard_.connect();
  const auto answer = shard_.call(client, "add", "[1,2]");
  shard_.settle();
  EXPECT_EQ(answer->end, "ok 3");
}

TEST_F(LiveAgentTest, TheClaimsOfAClientStayWithItsEventsWhenItHasGone) {
  std::vector<extensions::CallId> waiting;
  std::vector<std::string> claims;
  on_call([&](HostCalls& host, const AgentEvent& event) -> Result<void> {
    if (event.name != "look") {
      waiting.push_back(event.call);
      return {};
    }
    for (const auto call : waiting) {
      const auto origin = host.origin(call).origin;
      claims.push_back(origin == nullptr ? "none" : origin->claims);
    }
    return host.complete(event.call, std::string_view());
  });
  testing::ShardFixture::Client leaves;
  ConnectRequest request;
  request.target = "/agents/counter/a";
  request.claims = R"({"sub":"ann"})";
  leaves.id = shard_.shard().connect({"Counter", "a"}, "counter", std::move(request),
                                     std::make_unique<testing::FakePort>(leaves.sight));
  shard_.settle();
  (void)shard_.call(leaves, "wait");
  shard_.shard().message(leaves.id, "wait", FrameKind::kText);
  shard_.settle();
  shard_.shard().disconnected(leaves.id, 1000, "", true);
  shard_.settle();
  ASSERT_EQ(shard_.shard().counts().connections, 0U);
  (void)shard_.call(shard_.connect(), "look");
  shard_.settle();
  EXPECT_EQ(claims, std::vector<std::string>(2, R"({"sub":"ann"})"));
}

TEST_F(LiveAgentTest, ARefusedEventIsAnsweredByTheHost) {
  on_call([](HostCalls&, const AgentEvent&) -> Result<void> {
    return Error{Errc::kNotFound, "Method x does not exist"};
  });
  const auto client = shard_.connect();
  const auto answer = shard_.call(client, "x");
  shard_.settle();
  EXPECT_EQ(answer->end, "error not_found: Method x does not exist");
}

TEST_F(LiveAgentTest, AnAnswerThatIsNotJsonIsTheAgentsError) {
  on_call([](HostCalls& host, const AgentEvent& event) -> Result<void> {
    EXPECT_EQ(host.complete(event.call, std::string_view("{oops")).error().code,
              Errc::kInvalidArgument);
    return {};
  });
  const auto client = shard_.connect();
  const auto answer = shard_.call(client, "x");
  shard_.settle();
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
  const std::string line = "warn agent.call_failed class=Counter agent=a event=";
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
  const auto client = shard_.connect();
  shard_.call(client, "a_method_with_a_long_name");
  shard_.loop.advance(milliseconds(500));
  shard_.settle();
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
  const auto client = shard_.connect();
  shard_.call(client, "sleepy");
  shard_.settle();
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
  const auto client = shard_.connect();
  const auto answer = shard_.call(client, "stream");
  shard_.settle();
  EXPECT_EQ(answer->parts, (std::vector<std::string>{"1", "2"}));
  EXPECT_EQ(answer->end, "ok 3");
}

TEST_F(LiveAgentTest, P3_AnAnswerToAWriteWaitsForTheCommitAndFollowsTheStateFrame) {
  on_call([](HostCalls& host, const AgentEvent& event) -> Result<void> {
    EXPECT_TRUE(host.set_state(0, R"({"n":1})"));
    return host.complete(event.call, std::string_view("1"));
  });
  const auto client = shard_.connect();
  shard_.settle();
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
  const auto client = shard_.connect();
  shard_.settle();
  std::vector<std::shared_ptr<testing::Answer>> answers;
  for (int i = 0; i < 16; ++i) answers.push_back(shard_.call(client, "increment"));
  shard_.settle();
  for (const auto& answer : answers) EXPECT_EQ(answer->end, "ok true");
  shard_.restart();
  const auto again = shard_.connect();
  shard_.settle();
  EXPECT_EQ(again.sight->front(), "handshake counter/a 16");
}

TEST_F(LiveAgentTest, StateAndTablesSurviveARestart) {
  on_call([](HostCalls& host, const AgentEvent& event) -> Result<void> {
    if (event.name == "write") {
      for (const char* text : {"CREATE TABLE t(x)", "INSERT INTO t VALUES(41)"}) {
        const auto statement = host.sql().prepare(text);
        EXPECT_TRUE(host.sql().step(statement.value()));
        EXPECT_TRUE(host.sql().finalize(statement.value()));
      }
      EXPECT_TRUE(host.set_state(0, "42"));
      return host.complete(event.call, std::string_view("true"));
    }
    const auto statement = host.sql().prepare("SELECT x + 1 FROM t");
    EXPECT_TRUE(host.sql().step(statement.value()));
    const std::string sum = std::to_string(host.sql().column_int64(statement.value(), 0).value());
    EXPECT_TRUE(host.sql().finalize(statement.value()));
    EXPECT_EQ(host.state(), sum);
    return host.complete(event.call, std::string_view(sum));
  });
  const auto client = shard_.connect();
  EXPECT_EQ(*client.sight, Sight{"handshake counter/a -"});
  shard_.call(client, "write");
  shard_.settle();
  shard_.restart();
  const auto again = shard_.connect();
  const auto answer = shard_.call(again, "read");
  shard_.settle();
  EXPECT_EQ(answer->end, "ok 42");
}

TEST_F(LiveAgentTest, AnAgentThatIsOnlyLookedAtLeavesNoFile) {
  const auto client = shard_.connect();
  shard_.settle();
  EXPECT_FALSE(std::filesystem::exists(shard_.data().agent_path({"Counter", "a"})));
}

TEST_F(LiveAgentTest, AClientsWriteReachesEveryOtherClientAndNotItself) {
  const auto writer = shard_.connect("a", "same id");
  const auto other = shard_.connect("a", "same id");  // excluded by socket, not by id
  shard_.settle();
  const auto answer = shard_.write_state(writer, R"({"n":2})");
  shard_.settle();
  EXPECT_EQ(answer->end, "ok ");
  EXPECT_EQ(writer.sight->size(), 1U);
  EXPECT_EQ(other.sight->back(), R"(text state {"n":2})");
}

TEST_F(LiveAgentTest, AReadonlyClientCannotChangeTheStateNorMakeTheAgentDoIt) {
  shard_.script.on_event = [](HostCalls& host, const AgentEvent& event) -> Result<void> {
    if (event.kind == EventKind::kConnecting) {
      EXPECT_TRUE(host.set_flags(event.connection, Connection::kReadonly));
    }
    if (event.kind == EventKind::kCall) {
      const auto outcome = host.set_state(event.connection, "1");
      EXPECT_EQ(outcome.error().code, Errc::kForbidden);
      return host.complete(event.call, outcome.error());
    }
    if (event.call != 0) return host.complete(event.call, std::string_view());
    return {};
  };
  const auto client = shard_.connect();
  EXPECT_EQ(shard_.write_state(client, "1")->end, "error forbidden: Connection is readonly");
  EXPECT_EQ(shard_.call(client, "set")->end, "error forbidden: Connection is readonly");
}

TEST_F(LiveAgentTest, AClientWhoseWriteIsRefusedIsToldTheTrueState) {
  shard_.script.checks_state = true;
  on_call([](HostCalls&, const AgentEvent& event) -> Result<void> {
    if (event.kind == EventKind::kStateCheck && event.body == "13")
      return Error{Errc::kPlugin, "unlucky"};
    return {};
  });
  const auto writer = shard_.connect();
  const auto other = shard_.connect("a", "other");
  EXPECT_EQ(shard_.write_state(writer, "13")->end, "error plugin_error: unlucky");
  EXPECT_EQ(writer.sight->back(), "text state ") << "there is none";
  shard_.write_state(writer, "12");
  shard_.settle();
  EXPECT_EQ(shard_.write_state(writer, "")->end, "error invalid_argument: the state is no JSON");
  EXPECT_EQ(writer.sight->back(), "text state 12");
  const std::size_t seen = other.sight->size();
  shard_.write_state(writer, "13");
  shard_.settle();
  EXPECT_EQ(writer.sight->back(), "text state 12");
  EXPECT_EQ(other.sight->size(), seen) << "the others know it";
}

TEST_F(LiveAgentTest, AClassMayRejectAStateAndWatchesTheOnesItAccepted) {
  shard_.script.checks_state = true;
  shard_.script.watches_state = true;
  on_call([](HostCalls&, const AgentEvent& event) -> Result<void> {
    if (event.kind == EventKind::kStateCheck && event.body == "13")
      return Error{Errc::kPlugin, "unlucky"};
    return {};
  });
  const auto client = shard_.connect();
  const auto other = shard_.connect("a", "other");
  shard_.settle();
  EXPECT_EQ(shard_.write_state(client, "13")->end, "error plugin_error: unlucky");
  shard_.write_state(client, "14");
  shard_.settle();
  EXPECT_EQ(shard_.script.history.back(), "state_changed |14");
  EXPECT_EQ(other.sight->back(), "text state 14");
  EXPECT_EQ(other.sight->size(), 2U) << "the rejected one was shown to nobody";
}

TEST_F(LiveAgentTest, ADefaultStateIsShownAndNotStored) {
  shard_.script.on_create = [](HostCalls& host) { return host.set_default_state(R"({"n":0})"); };
  const auto client = shard_.connect();
  shard_.settle();
  EXPECT_EQ(*client.sight, Sight{R"(handshake counter/a {"n":0})"});
  EXPECT_FALSE(std::filesystem::exists(shard_.data().agent_path({"Counter", "a"})));
}

TEST_F(LiveAgentTest, AClientWithoutProtocolGetsBroadcastsAndNoFramesOfTheProtocol) {
  shard_.script.on_event = [](HostCalls& host, const AgentEvent& event) -> Result<void> {
    if (event.kind == EventKind::kConnecting) {
      EXPECT_TRUE(host.set_flags(event.connection, Connection::kNoProtocol));
    }
    if (event.kind == EventKind::kMessage) {
      EXPECT_TRUE(host.set_state(0, "1"));
      EXPECT_TRUE(host.broadcast(FrameKind::kText, "all", "", {}));
    }
    if (event.call != 0) return host.complete(event.call, std::string_view());
    return {};
  };
  const auto client = shard_.connect();
  shard_.shard().message(client.id, "go", FrameKind::kText);
  shard_.settle();
  EXPECT_EQ(*client.sight, Sight{"text all"});
}

TEST_F(LiveAgentTest, BroadcastGoesToATagAndNotToTheExcepted) {
  shard_.script.on_event = [](HostCalls& host, const AgentEvent& event) -> Result<void> {
    if (event.kind == EventKind::kConnecting) {
      const bool red = host.find_connection(event.connection)->client_id != "blue";
      if (red) EXPECT_TRUE(host.add_tag(event.connection, "red"));
    }
    if (event.kind == EventKind::kMessage) {
      const ConnectionId except[] = {event.connection};
      EXPECT_TRUE(host.broadcast(FrameKind::kBinary, "x", "red", except));
    }
    if (event.call != 0) return host.complete(event.call, std::string_view());
    return {};
  };
  const auto red = shard_.connect("a", "red one");
  const auto other_red = shard_.connect("a", "red two");
  const auto blue = shard_.connect("a", "blue");
  shard_.settle();
  shard_.shard().message(red.id, "go", FrameKind::kText);
  shard_.settle();
  EXPECT_EQ(red.sight->size(), 1U);
  EXPECT_EQ(other_red.sight->back(), "binary x");
  EXPECT_EQ(blue.sight->size(), 1U);
}

TEST_F(LiveAgentTest, InvalidFramesAndCloseCodesAreRefused) {
  on_call([](HostCalls& host, const AgentEvent& event) -> Result<void> {
    const ConnectionId client = event.connection;
    EXPECT_EQ(host.send(client, FrameKind::kText, "\xff").error().code, Errc::kInvalidArgument);
    EXPECT_TRUE(host.send(client, FrameKind::kBinary, "\xff"));
    EXPECT_EQ(host.send(client + 1, FrameKind::kText, "x").error().code, Errc::kNotFound);
    for (const std::uint32_t code : {0U, 999U, 1004U, 1005U, 1006U, 1015U, 2999U, 5000U, 65536U}) {
      EXPECT_EQ(host.close(client, code, "").error().code, Errc::kInvalidArgument) << code;
    }
    EXPECT_FALSE(host.close(client, 4000, std::string(124, 'r')));
    EXPECT_TRUE(host.close(client, 4000, "enough"));
    EXPECT_EQ(host.send(client, FrameKind::kText, "late").error().code, Errc::kNotFound);
    return host.complete(event.call, std::string_view());
  });
  const auto client = shard_.connect();
  shard_.shard().message(client.id, "x", FrameKind::kText);
  shard_.settle();
  EXPECT_EQ(client.sight->back(), "close 4000 enough");
}

TEST_F(LiveAgentTest, FramesSentBeforeACloseLeaveBeforeItAlsoWhenTheTurnWrote) {
  on_call([](HostCalls& host, const AgentEvent& event) -> Result<void> {
    EXPECT_TRUE(host.set_state(0, "1"));
    EXPECT_TRUE(host.send(event.connection, FrameKind::kText, "bye"));
    EXPECT_TRUE(host.close(event.connection, 1000, "done"));
    return host.complete(event.call, std::string_view());
  });
  const auto client = shard_.connect();
  shard_.shard().message(client.id, "x", FrameKind::kText);
  shard_.settle();
  EXPECT_EQ(*client.sight,
            (Sight{"handshake counter/a -", "text state 1", "text bye", "close 1000 done"}));
}

TEST_F(LiveAgentTest, NothingIsSentToAClientBeforeItsHandshake) {
  shard_.script.on_event = [](HostCalls& host, const AgentEvent& event) -> Result<void> {
    if (event.kind == EventKind::kConnecting) {
      EXPECT_EQ(host.send(event.connection, FrameKind::kText, "early").error().code,
                Errc::kForbidden);
    }
    if (event.call != 0) return host.complete(event.call, std::string_view());
    return {};
  };
  const auto client = shard_.connect();
  shard_.settle();
  EXPECT_EQ(*client.sight, Sight{"handshake counter/a -"});
}

TEST_F(LiveAgentTest, AWalkThroughAllClientsSeesEachOnceInTheOrderOfArrival) {
  std::vector<ConnectionId> expected;
  for (int i = 0; i < 100; ++i) expected.push_back(shard_.connect("a", std::to_string(i)).id);
  std::vector<ConnectionId> seen;
  on_call([&](HostCalls& host, const AgentEvent& event) -> Result<void> {
    for (ConnectionId id = host.next_connection(0, ""); id != 0; id = host.next_connection(id, ""))
      seen.push_back(id);
    return host.complete(event.call, std::string_view());
  });
  shard_.shard().message(expected[5], "x", FrameKind::kText);
  shard_.settle();
  EXPECT_EQ(seen, expected);
}

TEST_F(LiveAgentTest, AnAgentSeesOnlyItsOwnConnections) {
  const auto a = shard_.connect("a");
  const auto b = shard_.connect("b");
  on_call([&](HostCalls& host, const AgentEvent& event) -> Result<void> {
    EXPECT_EQ(host.find_connection(b.id), nullptr);
    EXPECT_FALSE(host.send(b.id, FrameKind::kText, "spy"));
    return host.complete(event.call, std::string_view());
  });
  shard_.call(a, "x");
  shard_.settle();
  EXPECT_EQ(b.sight->size(), 1U);
}

TEST_F(LiveAgentTest, AnEventThatIsNeverAnsweredTimesOutAndTheLateAnswerIsRefused) {
  CallId kept = 0;
  on_call([&](HostCalls&, const AgentEvent& event) -> Result<void> {
    kept = event.call;
    return {};
  });
  const auto client = shard_.connect();
  const auto answer = shard_.call(client, "never");
  shard_.loop.advance(milliseconds(299'000));
  EXPECT_FALSE(answer->end);
  shard_.loop.advance(milliseconds(2'000));
  EXPECT_EQ(answer->end, "error timeout: the agent did not answer in time");
  EXPECT_EQ(shard_.script.history.back(), "cancel");
  EXPECT_EQ(shard_.script.host->complete(kept, std::string_view()).error().code, Errc::kNotFound);
}

TEST_F(LiveAgentTest, EachPartOfAStreamStartsTheTimeLimitAnew) {
  CallId kept = 0;
  on_call([&](HostCalls&, const AgentEvent& event) -> Result<void> {
    kept = event.call;
    return {};
  });
  const auto client = shard_.connect();
  const auto answer = shard_.call(client, "stream");
  shard_.settle();
  for (int i = 0; i < 3; ++i) {
    shard_.loop.advance(milliseconds(200'000));
    EXPECT_TRUE(shard_.script.host->emit(kept, "1"));
  }
  EXPECT_FALSE(answer->end);
  shard_.loop.advance(milliseconds(301'000));
  EXPECT_TRUE(answer->end);
}

TEST_F(LiveAgentTest, ACallerThatLeftIsNotAnsweredAndTheWorkGoesOn) {
  CallId kept = 0;
  on_call([&](HostCalls&, const AgentEvent& event) -> Result<void> {
    kept = event.call;
    return {};
  });
  const auto client = shard_.connect();
  const auto answer = shard_.call(client, "slow");
  shard_.settle();
  shard_.shard().disconnected(client.id, 1006, "", false);
  shard_.settle();
  EXPECT_FALSE(shard_.script.host->emit(kept, "1"));
  EXPECT_TRUE(shard_.script.host->complete(kept, std::string_view("1")));
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
    return host.complete(event.call, std::string_view());
  });
  const auto client = shard_.connect();
  shard_.call(client, "sleep");
  shard_.settle();
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
  shard_.shard().disconnected(client.id, 1006, "", false);
  shard_.settle();
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
    return host.complete(event.call, std::string_view());
  });
  const auto client = shard_.connect();
  EXPECT_EQ(shard_.call(client, "many")->end, "ok ");
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
  const auto answer = shard_.request("POST", "body");
  shard_.settle();
  EXPECT_EQ(answer->status, 201U);
  EXPECT_EQ(answer->parts, std::vector<std::string>{"part"});
  EXPECT_EQ(answer->end, "ok end");
  EXPECT_EQ(shard_.script.history.back(), "request POST|body");
}

TEST(LiveAgentStorageTest, P4_AFullDiskFailsTheCallBreaksTheAgentAndItComesBackFromDisk) {
  ClassSettings settings;
  settings.database.max_pages = 16;
  ShardFixture shard({}, settings);
  shard.script.on_event = [](HostCalls& host, const AgentEvent& event) -> Result<void> {
    if (event.kind != EventKind::kCall) {
      return event.call != 0 ? host.complete(event.call, std::string_view()) : Result<void>();
    }
    try {
      EXPECT_TRUE(
          host.set_state(0, event.name == "small" ? "1" : "\"" + std::string(200'000, 'x') + "\""));
    } catch (const StorageError& failure) {  // what the ABI's boundary does
      host.storage_failed(failure.what());
    }
    return host.complete(event.call, std::string_view("true"));
  };
  const auto client = shard.connect();
  const auto small = shard.call(client, "small");
  shard.settle();
  EXPECT_EQ(small->end, "ok true");
  const auto big = shard.call(client, "big");
  shard.settle();
  EXPECT_EQ(big->end,
            "error internal: the agent's storage failed; do not count on any of this being saved");
  EXPECT_EQ(shard.script.alive, 0) << "a broken agent is evicted";
  const auto again = shard.call(client, "small");
  const auto late = shard.connect("a", "late");
  shard.settle();
  EXPECT_EQ(again->end, "ok true");
  EXPECT_EQ(late.sight->front(), "handshake counter/a 1") << "what was not durable was never shown";
}

TEST(LiveAgentStorageTest, ATurnThatItsOwnSqlHasUndoneIsNoFailureOfTheStorage) {
  ShardFixture shard;
  shard.script.on_event = [](HostCalls& host, const AgentEvent& event) -> Result<void> {
    if (event.kind != EventKind::kCall)
      return event.call != 0 ? host.complete(event.call, std::string_view()) : Result<void>();
    Errc last = Errc::kInternal;
    for (const char* text :
         {"CREATE TABLE IF NOT EXISTS n(id INTEGER PRIMARY KEY AUTOINCREMENT, x)",
          "INSERT INTO n VALUES(9223372036854775807, 1)", "INSERT INTO n(x) VALUES(2)"}) {
      const auto statement = host.sql().prepare(text);
      EXPECT_TRUE(statement) << text;
      const auto outcome = host.sql().step(*statement);
      if (!outcome) last = outcome.error().code;
    }
    EXPECT_EQ(last, Errc::kLimitExceeded);
    return host.complete(event.call, std::string_view("true"));
  };
  const auto client = shard.connect();
  const auto call = shard.call(client, "insert");
  shard.settle();
  EXPECT_NE(call->end, "ok true") << "nothing of it is stored";
  EXPECT_EQ(shard.logger.count("warn agent.turn_lost"), 1U);
  EXPECT_EQ(shard.logger.count("agent.storage_failed"), 0U);
  EXPECT_EQ(shard.script.alive, 0) << "it comes back from what is stored";
}

TEST(LiveAgentStorageTest, ADamagedStatePageCostsItsAgentAndNotTheServer) {
  ShardFixture shard;
  shard.script.on_event = [](HostCalls& host, const AgentEvent& event) -> Result<void> {
    if (event.kind == EventKind::kRequest)
      EXPECT_TRUE(host.set_state(0, "\"" + std::string(3000, 'x') + "\""));
    if (event.call != 0) return host.complete(event.call, std::string_view());
    return {};
  };
  shard.request("POST");
  shard.settle();
  const auto path = shard.data().agent_path({"Counter", "a"});
  shard.restart();
  {
    std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
    const auto size = std::filesystem::file_size(path);
    for (std::uintmax_t page = 4096; page < size; page += 4096) {
      file.seekp(static_cast<std::streamoff>(page));
      file << std::string(64, '\xff');
    }
  }
  const auto client = shard.connect();
  const auto healthy = shard.connect("b");
  shard.settle();
  ASSERT_FALSE(client.sight->empty());
  EXPECT_EQ(client.sight->back().substr(0, 10), "close 1011");
  EXPECT_EQ(*healthy.sight, Sight{"handshake counter/b -"});
}

TEST(LiveAgentStorageTest, ADamagedFileIsAFailedStartAndOnlyOfItsAgent) {
  ShardFixture shard;
  const auto path = shard.data().agent_path({"Counter", "a"});
  std::filesystem::create_directories(path.parent_path());
  std::ofstream(path) << std::string(8192, '?');
  shard.script.on_create = [](HostCalls& host) -> Result<void> {
    try {
      (void)host.state();
    } catch (const StorageError& failure) {
      host.storage_failed(failure.what());
    }
    return {};
  };
  const auto broken = shard.request("GET");
  const auto healthy = shard.request("GET", "", "b");
  shard.settle();
  ASSERT_TRUE(broken->end);
  EXPECT_EQ(broken->end->substr(0, 18), "error unavailable:");
  EXPECT_EQ(broken->end->find("data/agents"), std::string::npos) << "no paths for clients";
  EXPECT_EQ(healthy->end, "ok ");
}

}  // namespace
}  // namespace hearth::runtime
