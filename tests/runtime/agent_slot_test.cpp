// The life cycle of one agent: the start gate, order, eviction, and clients that outlive it.
#include "runtime/agent_slot.hpp"

#include "extensions/agent_context.hpp"
#include "fakes.hpp"
#include "storage/statement.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <cstddef>

namespace hearth::runtime {
namespace {

using std::chrono::milliseconds;
using testing::ShardFixture;
using testing::Sight;

class AgentSlotTest : public ::testing::Test {
 protected:
  // Events of this kind stay open.
  void keep(EventKind kind) {
    shard_.script.on_event = on(kind, testing::keep_open(shard_.script));
  }
  void complete_kept() {
    shard_.act([this](HostCalls& host) {
      (void)host.complete(shard_.script.open_calls[0], std::string_view());
    });
  }
  std::vector<std::string>& history() { return shard_.script.history; }
  void expect_history(const std::vector<std::string>& expected) { EXPECT_EQ(history(), expected); }

  ShardFixture shard_;
};

TEST_F(AgentSlotTest, AMessageWakesAColdAgentAndIsDeliveredAfterStartAndConnect) {
  const auto client = shard_.connect();
  shard_.say(client, "hi");
  expect_history(
      {"start |", "connecting /agents/counter/a|", "connect /agents/counter/a|", "message |hi"});
  EXPECT_EQ(*client.sight, Sight{"handshake counter/a -"});
}

TEST_F(AgentSlotTest, EventsWaitBehindTheStartGateInOrder) {
  keep(EventKind::kStart);
  const auto client = shard_.connect();
  shard_.shard().message(client.id, "1", FrameKind::kText);
  shard_.shard().message(client.id, "2", FrameKind::kText);
  shard_.settle();
  expect_history({"start |"});
  complete_kept();
  expect_history({"start |", "connecting /agents/counter/a|", "connect /agents/counter/a|",
                  "message |1", "message |2"});
}

TEST_F(AgentSlotTest, P2_MessagesWaitForTheirOwnConnectAndNotForAnothers) {
  keep(EventKind::kConnect);
  const auto slow = shard_.connect("a", "slow");
  shard_.say(slow, "from slow");
  shard_.script.on_event = nullptr;
  const auto quick = shard_.connect("a", "quick");
  shard_.say(quick, "from quick");
  EXPECT_EQ(history().back(), "message |from quick");
  complete_kept();
  EXPECT_EQ(history().back(), "message |from slow");
}

TEST_F(AgentSlotTest, P4_AFailedStartAnswersEverybodyAndTheNextEventTriesAgain) {
  int starts = 0;
  shard_.script.on_event = [&](HostCalls& host, const AgentEvent& event) -> Result<void> {
    if (event.kind == EventKind::kStart && ++starts == 1) return Error{Errc::kPlugin, "no luck"};
    return complete(host, event, "7");
  };
  const auto client = shard_.connect();
  EXPECT_EQ(shard_.ask("GET")->end, kFailedToStart);
  EXPECT_EQ(client.sight->back(), kClosedForFailedStart);
  EXPECT_EQ(shard_.script.alive, 0);

  EXPECT_EQ(shard_.ask("GET")->end, "ok 7");
  EXPECT_EQ(starts, 2);
}

TEST_F(AgentSlotTest, AFailedCreateIsAFailedStartAndItsTextIsForTheLogAlone) {
  shard_.script.on_create = [](HostCalls& host) -> Result<void> {
    EXPECT_TRUE(host.complete(0, Error{Errc::kPlugin, "option start: expected integer"}));
    return Error{Errc::kPlugin, "the agent failed"};
  };
  EXPECT_EQ(shard_.ask("GET")->end, kFailedToStart);
  EXPECT_TRUE(shard_.logger.contains("option start: expected integer"));
  EXPECT_EQ(shard_.shard().counts().live, 0U);
  EXPECT_EQ(shard_.shard().counts().slots, 0U) << "nothing is left of an agent that never lived";
}

TEST_F(AgentSlotTest, AClassWithoutInterestInAnEventIsTakenAsHavingHandledIt) {
  shard_.script.on_event = fail_with(Errc::kUnsupported, "");
  const auto client = shard_.connect();
  shard_.shard().message(client.id, "x", FrameKind::kText);
  const auto answer = shard_.call(client, "method");
  shard_.settle();
  EXPECT_EQ(*client.sight, Sight{"handshake counter/a -"});
  EXPECT_EQ(answer->end, "error unsupported: ");
}

TEST_F(AgentSlotTest, AStartThatHangsFailsAfterItsTimeLimit) {
  keep(EventKind::kStart);
  const auto answer = shard_.ask("GET");
  shard_.loop.advance(milliseconds(9'999));
  EXPECT_FALSE(answer->end);
  shard_.loop.advance(milliseconds(2));
  EXPECT_EQ(answer->end, kFailedToStart);
  EXPECT_EQ(shard_.script.alive, 0);
}

TEST_F(AgentSlotTest, AnIdleAgentIsEvictedAndItsClientStaysConnected) {
  const auto client = shard_.join();
  shard_.loop.advance(milliseconds(59'000));
  EXPECT_EQ(shard_.script.alive, 1);
  shard_.loop.advance(milliseconds(2'000));
  EXPECT_EQ(shard_.script.alive, 0);
  EXPECT_EQ(*client.sight, Sight{"handshake counter/a -"}) << "the client notices nothing";

  history().clear();
  shard_.say(client, "again");
  expect_history({"start |", "message |again"});  // on_connect is not called again
}

TEST_F(AgentSlotTest, TrafficPutsEvictionOff) {
  const auto client = shard_.join();
  for (int i = 0; i < 5; ++i) {
    shard_.loop.advance(milliseconds(40'000));
    shard_.say(client, "still here");
  }
  EXPECT_EQ(shard_.script.alive, 1);
}

TEST_F(AgentSlotTest, AnAgentWithAnEventInProgressIsNotIdle) {
  keep(EventKind::kMessage);
  const auto client = shard_.connect();
  shard_.shard().message(client.id, "long work", FrameKind::kText);
  shard_.loop.advance(milliseconds(120'000));
  EXPECT_EQ(shard_.script.alive, 1);
  complete_kept();
  shard_.loop.advance(milliseconds(62'000));
  EXPECT_EQ(shard_.script.alive, 0);
}

TEST_F(AgentSlotTest, AnAgentAtWorkGivesBackStatementsThatItDidNotUseForASecond) {
  const auto use = [this](std::string_view sql) {
    storage::PluginSql& statements = shard_.script.host->sql();
    EXPECT_TRUE(statements.finalize(*statements.prepare(sql)));
  };
  const auto kept = [this] {
    storage::Statement all(shard_.script.host->database().connection(),
                           "SELECT count(*) FROM sqlite_stmt WHERE sql GLOB 'SELECT [12]'");
    storage::Rows rows = all.query();
    EXPECT_TRUE(rows.next());
    return rows.integer(0);
  };
  keep(EventKind::kMessage);
  const auto client = shard_.connect();
  shard_.loop.advance(milliseconds(5'000));  // it was idle, too
  shard_.say(client, "long work");
  use("SELECT 1");
  use("SELECT 2");
  for (int second = 0; second < 3; ++second) {
    shard_.loop.advance(milliseconds(1'000));
    use("SELECT 2");
  }
  EXPECT_EQ(kept(), 1);
  shard_.loop.advance(milliseconds(2'100));
  EXPECT_EQ(kept(), 0);
  complete_kept();
}

TEST_F(AgentSlotTest, TagsFlagsAndAttachmentSurviveAnEviction) {
  shard_.script.on_event = [&](HostCalls& host, const AgentEvent& event) -> Result<void> {
    if (event.kind == EventKind::kConnecting) {
      EXPECT_TRUE(host.add_tag(event.connection, "vip"));
      EXPECT_TRUE(host.set_flags(event.connection, Connection::kReadonly));
      EXPECT_TRUE(host.set_attachment(event.connection, "mine"));
      EXPECT_EQ(*find_header(host.find_connection(event.connection)->headers, "x-test"), "1");
    }
    if (event.kind == EventKind::kMessage) {
      const extensions::Client* client = host.find_connection(event.connection);
      EXPECT_TRUE(client->has_tag("vip") && client->readonly());
      EXPECT_EQ(client->attachment, "mine");
      EXPECT_TRUE(client->headers.empty()) << "kept only until CONNECT is completed";
      EXPECT_EQ(host.next_connection(0, "vip"), event.connection);
      EXPECT_FALSE(host.add_tag(event.connection, "late"));
    }
    return complete(host, event);
  };
  const auto client = shard_.connect();
  shard_.loop.advance(milliseconds(70'000));
  ASSERT_EQ(shard_.script.alive, 0);
  shard_.say(client, "check");
  EXPECT_EQ(history().back(), "message |check");
}

TEST_F(AgentSlotTest, ARefusedClientIsClosedAndNeverConnected) {
  shard_.script.on_event = on(EventKind::kConnecting, fail_with(Errc::kForbidden, "members only"));
  const auto client = shard_.join();
  EXPECT_EQ(*client.sight, Sight{"close 4403 members only"});
  shard_.leave(client, 4403, "", true);
  expect_history({"start |", "connecting /agents/counter/a|"});
  EXPECT_EQ(shard_.shard().counts().connections, 0U);
}

TEST_F(AgentSlotTest, AConnectThatFailsClosesTheClientForARetry) {
  shard_.script.on_event = on(EventKind::kConnect, fail_with(Errc::kPlugin, "secret detail"));
  EXPECT_EQ(shard_.join().sight->back(), "close 1011 connection set-up failed");
}

TEST_F(AgentSlotTest, CloseFollowsTheMessagesBeforeItAndTheConnectionIsForgotten) {
  keep(EventKind::kConnect);
  const auto client = shard_.connect();
  shard_.shard().message(client.id, "last words", FrameKind::kText);
  shard_.leave(client, 1000, "bye", true);
  EXPECT_EQ(shard_.shard().counts().connections, 1U);
  complete_kept();
  ASSERT_GE(history().size(), 2U);
  EXPECT_EQ(history()[history().size() - 2], "message |last words");
  EXPECT_EQ(history().back(), "close bye|");
  EXPECT_EQ(shard_.shard().counts().connections, 0U);
}

TEST_F(AgentSlotTest, AClientThatLeavesBeforeTheStartIsNeverMentioned) {
  keep(EventKind::kStart);
  const auto client = shard_.connect();
  shard_.shard().message(client.id, "x", FrameKind::kText);
  shard_.shard().disconnected(client.id, 1006, "", false);
  complete_kept();
  expect_history({"start |"});
  EXPECT_EQ(shard_.shard().counts().connections, 0U);
}

TEST_F(AgentSlotTest, P3_AConnectionWithTooManyWaitingMessagesIsNotReadUntilTheyAreDelivered) {
  keep(EventKind::kStart);
  const auto client = shard_.connect();
  for (int i = 0; i < 20; ++i) shard_.shard().message(client.id, "m", FrameKind::kText);
  EXPECT_EQ(*client.sight, Sight{"pause"});
  complete_kept();
  EXPECT_EQ(client.sight->at(1), "handshake counter/a -");
  EXPECT_EQ(client.sight->back(), "resume");
}

TEST_F(AgentSlotTest, P3_RequestsBeyondTheBoundAreRefused) {
  keep(EventKind::kStart);
  std::vector<std::shared_ptr<testing::Answer>> answers;
  for (int i = 0; i < 1001; ++i) answers.push_back(shard_.request("GET"));
  EXPECT_FALSE(answers[999]->end);
  EXPECT_EQ(answers[1000]->end, "error unavailable: too many requests wait for this agent");
}

TEST_F(AgentSlotTest, P3_WhileClientMemoryIsOverdrawnLargeEventsDoNotWait) {
  keep(EventKind::kStart);
  ClientMemory& memory = shard_.runtime().client_memory();
  HeldBytes others(memory, memory.limit() + 1);
  const std::string large(ClientMemory::kFree + 1, 'x');
  const auto client = shard_.connect();
  shard_.shard().message(client.id, large, FrameKind::kText);
  EXPECT_EQ(*client.sight, Sight{"close 1013 the server is short of memory: try again later"});
  EXPECT_EQ(shard_.request("POST", large)->end,
            "error unavailable: the server is short of memory: try again later");
  const auto small = shard_.request("POST", "x");
  EXPECT_FALSE(small->end);
  others.set(0);
  const auto afterwards = shard_.request("POST", large);
  EXPECT_FALSE(afterwards->end);
  EXPECT_GT(memory.used(), large.size());
  complete_kept();
  EXPECT_TRUE(small->end && afterwards->end);
  shard_.shard().disconnected(client.id, 1013, "", true);
  EXPECT_EQ(memory.used(), 0U);
}

TEST_F(AgentSlotTest, P3_WaitingRequestsAreBoundedInBytesToo) {
  keep(EventKind::kStart);
  const std::string body(1 << 20, 'x');
  std::vector<std::shared_ptr<testing::Answer>> answers;
  for (int i = 0; i < 65; ++i) answers.push_back(shard_.request("POST", body));
  EXPECT_FALSE(answers[62]->end);
  EXPECT_EQ(answers[64]->end, "error unavailable: too many requests wait for this agent");
}

TEST_F(AgentSlotTest, AClientWhoseCallsWereRefusedIsReadAgain) {
  const auto client = shard_.join();
  shard_.loop.advance(milliseconds(70'000));  // asleep, the client stays
  keep(EventKind::kStart);
  std::vector<std::shared_ptr<testing::Answer>> answers;
  for (int i = 0; i < 20; ++i) answers.push_back(shard_.call(client, "x"));
  EXPECT_EQ(client.sight->back(), "pause");
  shard_.loop.advance(milliseconds(11'000));  // the start fails
  EXPECT_EQ(client.sight->back(), "resume");
  EXPECT_TRUE(answers.back()->end);
  shard_.script.on_event = nullptr;
  EXPECT_EQ(shard_.ask(client, "x")->end, "ok ");
}

TEST_F(AgentSlotTest, ACallThatWaitedWhenItsClientLeftRunsAndIsAnsweredToNobody) {
  keep(EventKind::kConnect);
  const auto client = shard_.connect();
  const auto answer = shard_.call(client, "stream");
  shard_.shard().disconnected(client.id, 1006, "", false);
  keep(EventKind::kCall);
  complete_kept();
  ASSERT_EQ(shard_.script.open_calls.size(), 2U);
  const CallId call = shard_.script.open_calls[1];
  EXPECT_EQ(shard_.shard().counts().connections, 0U) << "CLOSE was seen: port and socket are gone";
  EXPECT_FALSE(shard_.script.host->emit(call, "1"));
  EXPECT_TRUE(shard_.script.host->complete(call, std::string_view("1")));
  shard_.settle();
  EXPECT_TRUE(answer->parts.empty());
  EXPECT_FALSE(answer->end);
}

TEST_F(AgentSlotTest, ACloseThatIsInProgressWhenItsAgentIsEvictedDoesNotLeakItsConnection) {
  keep(EventKind::kClose);
  const auto client = shard_.join();
  shard_.leave(client, 1000, "", true);
  shard_.act([](HostCalls& host) { (void)host.evict(); });
  EXPECT_EQ(shard_.script.alive, 0);
  EXPECT_EQ(shard_.shard().counts().connections, 0U);
  EXPECT_EQ(shard_.shard().counts().slots, 0U);
}

TEST_F(AgentSlotTest, ARefusalDoesNotDependOnItsText) {
  const std::string long_text = std::string(122, 'a') + "\xC3\xA9 is banned";
  shard_.script.on_event = on(EventKind::kConnecting, fail_with(Errc::kForbidden, long_text));
  const auto client = shard_.connect();
  const auto answer = shard_.ask(client, "x");
  EXPECT_EQ(*client.sight, Sight{"close 4403 " + std::string(122, 'a')});
  EXPECT_FALSE(answer->end);
}

TEST_F(AgentSlotTest, APostDuringACreateThatFailsReachesNobody) {
  shard_.script.on_create = [&](HostCalls& host) -> Result<void> {
    EXPECT_TRUE(shard_.runtime().post(host.handle(), 1));
    const std::uint64_t number = 1;
    EXPECT_EQ(
        host.submit(1, {reinterpret_cast<const char*>(&number), sizeof(number)}, 1).error().code,
        Errc::kForbidden);
    return Error{Errc::kPlugin, "no"};
  };
  EXPECT_TRUE(shard_.ask("GET")->end);
}

TEST_F(AgentSlotTest, EvictFromInsideAnEventHappensAfterIt) {
  shard_.script.on_event = [&](HostCalls& host, const AgentEvent& event) -> Result<void> {
    if (event.kind == EventKind::kCall) {
      EXPECT_TRUE(host.evict());
      EXPECT_EQ(shard_.script.alive, 1);
      EXPECT_TRUE(host.set_state(0, "1"));
    }
    return complete(host, event, "true");
  };
  const auto client = shard_.connect();
  EXPECT_EQ(shard_.ask(client, "evict")->end, "ok true");
  EXPECT_EQ(shard_.script.alive, 0);
  EXPECT_EQ(client.sight->back(), "text state 1");
}

TEST_F(AgentSlotTest, P4_OneThatEvictsItselfWheneverItStartsIsNotMadeAgainAndAgain) {
  shard_.script.on_event = do_on(
      EventKind::kStart, [](HostCalls& host, const AgentEvent&) { EXPECT_TRUE(host.evict()); });
  const auto client = shard_.connect();
  const auto answer = shard_.request("read");
  for (int i = 0; i < 1'000; ++i) shard_.loop.step();
  expect_history({"start |", "destroyed"});
  EXPECT_EQ(answer->end, kFailedToStart);
  EXPECT_EQ(client.sight->back(), kClosedForFailedStart);
  EXPECT_TRUE(shard_.logger.contains("the agent evicted itself as it started"));
  EXPECT_EQ(shard_.runtime().classes().find("counter")->starts->failed, 1U);
  EXPECT_EQ(shard_.runtime().classes().find("counter")->starts->started, 0U);
}

TEST_F(AgentSlotTest, P4_NorIsOneWhoseStorageFailsWheneverItStarts) {
  shard_.script.on_event = do_on(EventKind::kStart, [](HostCalls& host, const AgentEvent&) {
    host.storage_failed("the disk is gone");
  });
  const auto answer = shard_.request("read");
  for (int i = 0; i < 1'000; ++i) shard_.loop.step();
  expect_history({"start |", "destroyed"});
  EXPECT_EQ(answer->end, kFailedToStart);
}

// ---- log lines of failures ----

TEST_F(AgentSlotTest, TheLineOfAStartThatFailedIsUnderTheTraceOfThatStart) {
  shard_.script.on_create = [](HostCalls& host) {
    host.log("made");
    return Result<void>();
  };
  shard_.script.on_event = [](HostCalls& host, const AgentEvent& event) -> Result<void> {
    host.log("starts");
    return host.complete(event.call, Error{Errc::kPlugin, "cannot"});
  };
  shard_.ask("read");
  std::vector<std::string> traces;
  for (const std::string& line : shard_.logger.events()) {
    if (line.find("agent.start_failed") != std::string::npos)
      EXPECT_NE(line.find("agent=a error=cannot call="), std::string::npos) << line;
    if (const auto at = line.find("trace=00-"); at != std::string::npos)
      traces.push_back(line.substr(at, std::string("trace=00-").size() + 32));
  }
  ASSERT_EQ(traces.size(), 3U) << "made, starts, agent.start_failed";
  EXPECT_EQ(traces[1], traces[0]);
  EXPECT_EQ(traces[2], traces[0]);
}

TEST_F(AgentSlotTest, LinesOfWhatFailedNameItsCallAndTrace) {
  shard_.script.on_event = [](HostCalls& host, const AgentEvent& event) -> Result<void> {
    if (event.kind == EventKind::kConnect)
      return host.complete(event.call, Error{Errc::kPlugin, "not you"});
    if (event.kind == EventKind::kRequest) host.storage_failed("gone");
    return complete(host, event);
  };
  shard_.join();
  shard_.ask("GET");
  const auto has_line = [this](const std::string& begin, const std::string& end) {
    for (const std::string& line : shard_.logger.events()) {
      const auto at = line.find(begin + " call=");
      if (at != std::string::npos) return line.find(end + " trace=00-", at) != std::string::npos;
    }
    return false;
  };
  EXPECT_TRUE(has_line("agent.connect_failed class=Counter agent=a error=\"not you\"", ""));
  EXPECT_TRUE(has_line("agent.storage_failed class=Counter agent=a error=gone", " method=GET"));
}

TEST_F(AgentSlotTest, EventsThatComeDuringTheEvictionWakeTheAgentAgain) {
  const auto client = shard_.join();
  shard_.begin_act([](HostCalls& host) { (void)host.evict(); });
  shard_.loop.step();  // eviction is under way, its end is posted
  shard_.shard().message(client.id, "in between", FrameKind::kText);
  history().clear();
  shard_.settle();
  expect_history({"destroyed", "start |", "message |in between"});
}

TEST(AgentSlotGraceTest, AClassWithAGraceIsAskedToLeaveAndMayTakeItsTime) {
  ClassSettings settings;
  settings.idle_timeout = milliseconds(1000);
  settings.evict_grace = milliseconds(500);
  ShardFixture shard({}, settings);
  shard.script.on_event = on(EventKind::kEvict, hang);
  const auto client = shard.connect();
  shard.loop.advance(milliseconds(1100));
  EXPECT_EQ(shard.script.history.back(), "evict |");
  EXPECT_EQ(shard.script.alive, 1);
  shard.loop.advance(milliseconds(600));
  EXPECT_EQ(shard.script.alive, 0) << "the grace is over";
}

// Clients wake objects as often as they like.
TEST(ObjectAuditTest, AnObjectThatComesAndGoesHasABoundedNumberOfEntries) {
  ShardFixture shard({}, settings_with(&ClassSettings::is_object, true));
  constexpr std::size_t kCycles = 300;
  const SteadyTime began = BootClock::now();
  for (std::size_t i = 0; i < kCycles; ++i) {
    ASSERT_EQ(shard.ask("GET")->end, "ok ");
    shard.evict();
  }
  const std::chrono::duration<double> took = BootClock::now() - began;
  const LogLimit limit = extensions::kAuditLimit;
  const double most = limit.burst + 1 + took.count() * limit.per_second;
  for (const char* const event : {"object.woken", "object.hibernated"}) {
    EXPECT_LE(static_cast<double>(shard.logger.count(event)), most) << event;
    EXPECT_GE(shard.logger.count(event), 100U) << event;
  }
}

}  // namespace
}  // namespace hearth::runtime
