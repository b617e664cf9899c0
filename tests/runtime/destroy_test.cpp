// The end of an agent that destroys itself: what its callers, its clients and later requests are
// told, and that nothing can delay the end.
#include "storage/directory.hpp"
#include "support/fake_sync_calls.hpp"
#include "work_fixture.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cerrno>
#include <filesystem>

namespace hearth::runtime {
namespace {

using std::chrono::milliseconds;
using std::chrono::minutes;
using testing::kUsualAgent;
using testing::ShardFixture;
using testing::Sight;

const std::string kClosed = "close 4410 the agent was destroyed";

class DestroyTest : public testing::WorkTest {
 protected:
  // Requests and calls do what their name says, and all but "stay" and "read" are answered "done".
  // All other events are completed. So visit() of WorkTest, and what stands on it, does nothing.
  DestroyTest() {
    shard_.script.on_event = [this](HostCalls& host, const AgentEvent& event) -> Result<void> {
      const bool work = event.kind == EventKind::kRequest || event.kind == EventKind::kCall;
      if (event.kind == EventKind::kFiberRecovered && on_recovered) on_recovered(host);
      if (event.kind == EventKind::kStart && on_start) on_start(host);
      if (work && event.name == "stay") {
        shard_.script.open_calls.push_back(event.call);
        return {};
      }
      if (work && event.name == "write") EXPECT_TRUE(host.set_state(0, "1"));
      if (work && event.name == "read")
        return host.complete(event.call, host.state().value_or("\"nothing\""));
      if (work && event.name == "destroy") {
        if (before_end) before_end(host);
        EXPECT_TRUE(host.destroy());
        if (after_end) after_end(host);
      }
      return complete(host, event, work ? "\"done\"" : "");
    };
  }

  [[nodiscard]] bool has_file() {
    return std::filesystem::exists(shard_.data().agent_path(kUsualAgent));
  }
  void expect_nothing_left() {
    for (const auto& file :
         std::filesystem::recursive_directory_iterator(shard_.data().path() / "agents"))
      EXPECT_TRUE(file.is_directory()) << file.path();
    EXPECT_EQ(rows().count(), 0);
    EXPECT_TRUE(rows().wakes().empty());
    EXPECT_TRUE(rows().condemned().empty());
    EXPECT_EQ(shard_.script.alive, 0);
  }
  storage::Directory rows() { return storage::Directory(shard_.data().directory_path()); }

  std::function<void(HostCalls&)> before_end;
  std::function<void(HostCalls&)> after_end;
  std::function<void(HostCalls&)> on_recovered;
};

TEST_F(DestroyTest, B133_ADirectDestroyLeavesNothing) {
  shard_.ask("write");
  ASSERT_TRUE(has_file());
  EXPECT_EQ(shard_.ask("destroy")->end, "ok \"done\"");
  EXPECT_EQ(shard_.script.alive, 0);
  EXPECT_EQ(shard_.shard().counts().slots, 0U);
  expect_nothing_left();
}

TEST_F(DestroyTest, ItIsCertainWhenTheCallReturns) {
  after_end = [this](HostCalls& host) {
    EXPECT_EQ(rows().condemned(), std::vector{kUsualAgent});
    EXPECT_EQ(shard_.script.alive, 1) << "it goes when the running call has returned";
    EXPECT_TRUE(host.destroy()) << "once more changes nothing";
    EXPECT_TRUE(host.set_state(0, "2")) << "the turn goes on";
  };
  shard_.ask("destroy");
  expect_nothing_left();
}

TEST_F(DestroyTest, TheNextEventMeetsANewEmptyAgentOfTheSameName) {
  shard_.request("write");
  shard_.request("destroy");
  const auto answer = shard_.request("read");
  shard_.settle();
  EXPECT_EQ(answer->end, "ok \"nothing\"");
  EXPECT_EQ(shard_.ask("write")->end, "ok \"done\"");
  EXPECT_TRUE(has_file());
  EXPECT_EQ(rows().count(), 1);
}

TEST_F(DestroyTest, B134_TheAnswerLeavesBeforeItsSocketIsClosed) {
  const auto client = shard_.join();
  const auto answer = shard_.call(client, "destroy");
  bool answered_first = false;
  while (client.sight->back() != kClosed) {
    answered_first = answer->end.has_value();
    shard_.loop.step();
  }
  EXPECT_TRUE(answered_first);
  EXPECT_EQ(answer->end, "ok \"done\"");
}

TEST_F(DestroyTest, UnderDurabilityPowerTheAnswerLeavesFirstToo) {
  shard_.restart({}, power());
  const auto client = shard_.join();
  before_end = [](HostCalls& host) { EXPECT_TRUE(host.set_state(0, "1")); };
  const auto answer = shard_.call(client, "destroy");
  EXPECT_TRUE(shard_.loop.settle_until([&] { return client.sight->back() == kClosed; }));
  EXPECT_EQ(answer->end, "ok \"done\"");
  expect_nothing_left();
}

TEST_F(DestroyTest, ClientsAreClosedAndNobodyIsToldOfTheirEnd) {
  const auto caller = shard_.connect("a", "caller");
  const auto other = shard_.connect("a", "other");
  const auto elsewhere = shard_.join("b", "elsewhere");
  shard_.call(caller, "destroy");
  shard_.shard().message(other.id, "too late", FrameKind::kText);
  const auto called = shard_.call(other, "read");
  shard_.settle();
  EXPECT_EQ(caller.sight->back(), kClosed);
  EXPECT_EQ(other.sight->back(), kClosed);
  EXPECT_EQ(elsewhere.sight->size(), 1U);
  EXPECT_EQ(called->end, "error not_found: the agent was destroyed");

  shard_.script.history.clear();
  shard_.shard().message(other.id, "later still", FrameKind::kText);
  shard_.shard().disconnected(other.id, 4410, "", true);
  shard_.leave(caller, 4410, "", true);
  EXPECT_TRUE(shard_.script.history.empty()) << shard_.script.history.back();
  EXPECT_EQ(shard_.shard().counts().connections, 1U);
}

TEST_F(DestroyTest, ClientsThatTheAgentClosedItselfKeepTheirCode) {
  const auto client = shard_.join();
  before_end = [&](HostCalls& host) { EXPECT_TRUE(host.close(client.id, 1012, "come back")); };
  shard_.ask("destroy");
  EXPECT_EQ(client.sight->back(), "close 1012 come back");
  EXPECT_EQ(std::ranges::count(*client.sight, kClosed), 0);
}

TEST_F(DestroyTest, AClientThatLeftAndWhoseCloseWasNotToldYetIsForgotten) {
  const auto client = shard_.join();
  shard_.request("destroy");  // its end is posted
  shard_.leave(client, 1000, "", true);
  EXPECT_EQ(shard_.shard().counts().connections, 0U);
  EXPECT_EQ(shard_.shard().counts().slots, 0U);
}

TEST_F(DestroyTest, AClientThatComesMeanwhileMeetsTheNewAgent) {
  shard_.ask("write");
  shard_.request("destroy");  // its end is posted
  const ShardFixture::Client late = shard_.connect();
  shard_.say(late, "hello");
  EXPECT_EQ(*late.sight, Sight{"handshake counter/a -"}) << "the state is gone, the client is not";
  EXPECT_EQ(shard_.script.history.back(), "message |hello");
  EXPECT_FALSE(has_file());
}

TEST_F(DestroyTest, CallsInProgressGetAClearError) {
  const auto client = shard_.join();
  const auto call = shard_.call(client, "stay");
  const auto request = shard_.request("stay");
  shard_.settle();
  shard_.ask("destroy");
  EXPECT_EQ(call->end, "error not_found: the agent was destroyed");
  EXPECT_EQ(request->end, "error not_found: the agent was destroyed");
  EXPECT_EQ(client.sight->back(), kClosed);
}

TEST_F(DestroyTest, NoEventReachesItAfterwards) {
  shard_.request("destroy");
  for (int i = 0; i < 3; ++i) shard_.request("read");
  shard_.settle();
  EXPECT_EQ(shard_.script.history,
            (std::vector<std::string>{"start |", "request destroy|", "destroyed", "start |",
                                      "request read|", "request read|", "request read|"}));
}

TEST_F(DestroyTest, B131_WorkThatIsBegunInTheSameTurnDoesNotCancelIt) {
  after_end = [](HostCalls& host) {
    EXPECT_TRUE(host.acquire_keep_alive());
    EXPECT_TRUE(host.stash(host.start_fiber("work").value().handle, "1"));
  };
  shard_.ask("destroy");
  expect_nothing_left();
}

TEST_F(DestroyTest, B132_WhatKeepsItAliveDoesNotDelayIt) {
  before_end = [](HostCalls& host) {
    EXPECT_TRUE(host.acquire_keep_alive());
    EXPECT_TRUE(host.start_fiber("work"));
  };
  shard_.ask("destroy");  // time stands still
  expect_nothing_left();
  shard_.loop.advance(minutes(10));
  shard_.restart_and_advance(minutes(10));
  EXPECT_EQ(std::ranges::count(shard_.script.history, "start |"), 1) << "nobody wakes it again";
}

TEST_F(DestroyTest, AGraceForEvictionsDoesNotDelayIt) {
  shard_.restart({}, settings_with(&ClassSettings::evict_grace, milliseconds(60'000)));
  shard_.ask("destroy");
  EXPECT_EQ(shard_.script.alive, 0);
  EXPECT_EQ(std::ranges::count(shard_.script.history, "evict |"), 0);
}

TEST_F(DestroyTest, B129_OneThatWasCutShortIsFinishedAtTheNextStartThoughNobodyAsks) {
  shard_.ask("write");
  rows().condemn(std::array{kUsualAgent});
  shard_.restart();
  expect_nothing_left();
  EXPECT_EQ(shard_.ask("read")->end, "ok \"nothing\"");
}

TEST_F(DestroyTest, B130_OneThatWasCutShortIsFinishedBeforeAnyWorkThatIsDue) {
  on_recovered = [](HostCalls&) { ADD_FAILURE() << "a fiber of a condemned agent was offered"; };
  shard_.ask("write");
  shard_.act([](HostCalls& host) { EXPECT_TRUE(host.start_fiber("work")); });
  rows().condemn(std::array{kUsualAgent});
  shard_.script.history.clear();
  shard_.restart_and_advance(minutes(10));
  EXPECT_EQ(shard_.script.history, std::vector<std::string>{"destroyed"}) << "by the restart";
  expect_nothing_left();
}

TEST_F(DestroyTest, B135_AScheduledCallbackThatDestroysItsAgentFailsNothing) {
  // Every two seconds; the second time it ends itself.
  int runs = 0;
  shard_.script.on_event = [&](HostCalls& host, const AgentEvent& event) -> Result<void> {
    if (event.kind == EventKind::kRequest) {
      EXPECT_TRUE(host.create_schedule(every(2'000, "tick")));
      EXPECT_TRUE(host.push_item(item("tock")));
    }
    if (event.kind == EventKind::kSchedule && ++runs == 2) EXPECT_TRUE(host.destroy());
    return complete(host, event);
  };
  shard_.request("work");
  shard_.loop.advance(milliseconds(10'000));
  EXPECT_EQ(runs, 2);
  expect_nothing_left();
  shard_.restart_and_advance(minutes(10));
  EXPECT_EQ(runs, 2) << "it is not tried again";
  for (const std::string& event : shard_.logger.events())
    EXPECT_FALSE(event.starts_with("warn ") || event.starts_with("error ")) << event;
}

TEST_F(DestroyTest, B130_WorkThatIsDueDoesNotRunAfterIt) {
  std::vector<std::string> ran;
  shard_.script.on_event = [&](HostCalls& host, const AgentEvent& event) -> Result<void> {
    if (event.kind == EventKind::kRequest) {
      for (const char* callback : {"first", "second", "third"})
        EXPECT_TRUE(host.push_item(item(callback)));
    }
    if (event.kind == EventKind::kQueueItem) {
      ran.emplace_back(event.name);
      if (ran.size() == 2) EXPECT_TRUE(host.destroy());
    }
    return complete(host, event);
  };
  shard_.request("work");
  shard_.loop.advance(minutes(10));
  EXPECT_EQ(ran, (std::vector<std::string>{"first", "second"}));
  expect_nothing_left();
}

TEST_F(DestroyTest, AHookThatDestroysItsAgentFailsNothing) {
  shard_.ask("read");
  shard_.act([](HostCalls& host) { EXPECT_TRUE(host.start_fiber("work")); });
  on_recovered = [](HostCalls& host) { EXPECT_TRUE(host.destroy()); };
  shard_.restart_and_settle();
  expect_nothing_left();
  shard_.loop.advance(minutes(10));
  EXPECT_EQ(shard_.script.alive, 0) << "it is not tried again";
  EXPECT_FALSE(shard_.logger.contains("warn "));
  EXPECT_FALSE(shard_.logger.contains("error "));
}

TEST_F(DestroyTest, OneThatDestroysItselfWheneverItStartsIsNotMadeAgainAndAgain) {
  on_start = [](HostCalls& host) { EXPECT_TRUE(host.destroy()); };
  const auto client = shard_.connect();
  EXPECT_EQ(shard_.ask("read")->end, kFailedToStart);
  EXPECT_EQ(client.sight->back(), kClosedForFailedStart);
  EXPECT_EQ(std::ranges::count(shard_.script.history, "start |"), 1);
  EXPECT_TRUE(shard_.logger.contains("the agent destroyed itself"));
  EXPECT_TRUE(rows().condemned().empty());
}

TEST_F(DestroyTest, OneThatDestroysItselfWhenItIsMadeIsNotStarted) {
  shard_.script.on_create = [](HostCalls& host) -> Result<void> { return host.destroy(); };
  EXPECT_EQ(shard_.ask("read")->end, kFailedToStart);
  EXPECT_EQ(shard_.script.history, std::vector<std::string>{"destroyed"});
  EXPECT_TRUE(rows().condemned().empty());
}

TEST_F(DestroyTest, OneThatDestroysItselfWhenAClientAsksClosesThatClientToo) {
  shard_.ask("write");
  shard_.script.on_event = do_on(EventKind::kConnecting, [](HostCalls& host, const AgentEvent&) {
    EXPECT_TRUE(host.destroy());
  });
  EXPECT_EQ(*shard_.join().sight, Sight{kClosed});
  EXPECT_EQ(std::ranges::count(shard_.script.history, "connect /agents/counter/a|"), 0);
  expect_nothing_left();
}

TEST_F(DestroyTest, AnAgentThatBreaksAfterwardsIsDestroyedAllTheSame) {
  shard_.ask("write");
  after_end = [](HostCalls& host) { host.storage_failed("the disk is gone"); };
  const auto answer = shard_.ask("destroy");
  EXPECT_TRUE(answer->end->starts_with("error internal")) << *answer->end;
  expect_nothing_left();
}

TEST_F(DestroyTest, AStopOfTheServerFinishesIt) {
  shard_.ask("write");
  after_end = [](HostCalls& host) { EXPECT_TRUE(host.acquire_keep_alive()); };
  shard_.request("destroy");
  ASSERT_TRUE(has_file()) << "the end is posted";
  shard_.restart();
  expect_nothing_left();
}

TEST_F(DestroyTest, FilesThatCannotBeRemovedAreNotServedAndTriedAgain) {
  shard_.ask("write");
  const std::filesystem::path obstacle =
      shard_.data().agent_path(kUsualAgent).string() + "-journal";
  before_end = [&](HostCalls&) { std::filesystem::create_directory(obstacle); };
  const auto known = shard_.join();
  const auto answer = shard_.request("destroy");
  const auto waiting = shard_.request("read");
  shard_.settle();
  EXPECT_EQ(answer->end, "ok \"done\"");
  EXPECT_EQ(known.sight->back(), kClosed);
  const std::string refused = "error unavailable: the agent is being destroyed; try again later";
  EXPECT_EQ(waiting->end, refused);
  EXPECT_TRUE(shard_.logger.contains("error agent.destroy_failed class=Counter agent=a"));

  const auto client = shard_.connect();
  const auto later = shard_.ask("read");
  EXPECT_EQ(later->end, refused);
  EXPECT_EQ(client.sight->back(), "close 1013 the agent is being destroyed; try again later");
  EXPECT_EQ(shard_.script.alive, 0);

  shard_.restart();
  EXPECT_EQ(shard_.ask("read")->end, refused) << "tried again, in vain";

  std::filesystem::remove(obstacle);
  shard_.loop.advance(milliseconds(60'001));
  expect_nothing_left();
  EXPECT_EQ(shard_.ask("read")->end, "ok \"nothing\"");
}

// Otherwise a loss of power could leave an agent that is listed and has no file.
TEST(DestroyOnABadDeviceTest, TheFilesStayUntilTheMarkerIsOnTheDevice) {
  hearth::testing::FakeSyncCalls calls;
  ShardFixture shard({}, {}, &calls);
  shard.script.on_event = do_on(EventKind::kRequest, [](HostCalls& host, const AgentEvent& event) {
    if (event.name == "write") EXPECT_TRUE(host.set_state(0, "1"));
    if (event.name == "destroy") EXPECT_TRUE(host.destroy());
  });
  const auto has_file = [&] {
    return std::filesystem::exists(shard.data().agent_path(kUsualAgent));
  };
  shard.ask("write");
  calls.answer_with([](const std::string& call) { return call.starts_with("names") ? 0 : EIO; });
  shard.ask("destroy");
  EXPECT_TRUE(has_file());
  EXPECT_TRUE(shard.logger.contains("error agent.destroy_failed class=Counter agent=a"));
  calls.answer_with({});
  shard.restart_and_settle();
  EXPECT_FALSE(has_file());
}

TEST_F(DestroyTest, AWakeOfAnAgentWhoseFilesCannotBeRemovedRunsNothing) {
  before_end = [&](HostCalls& host) {
    EXPECT_TRUE(host.start_fiber("work"));
    std::filesystem::create_directory(shard_.data().agent_path(kUsualAgent).string() + "-journal");
  };
  on_recovered = [](HostCalls&) { ADD_FAILURE() << "a fiber of a condemned agent was offered"; };
  shard_.ask("destroy");
  shard_.restart_and_advance(minutes(10));
  EXPECT_EQ(std::ranges::count(shard_.script.history, "start |"), 1);
}

}  // namespace
}  // namespace hearth::runtime
