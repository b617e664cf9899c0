// Agents of durability `power` on a shard that is driven by hand, with syncs that the test holds
// back or lets fail.
#include "runtime/fakes.hpp"
#include "storage/directory.hpp"
#include "support/fake_sync_calls.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string>

namespace hearth::runtime::testing {
namespace {

using std::chrono::milliseconds;

constexpr std::size_t kLarge = std::size_t{64} << 10;

int fail_syncs(const std::string& call) {
  return call.starts_with("data") ? EIO : 0;
}

class LiveAgentPowerTest : public ::testing::Test {
 protected:
  LiveAgentPowerTest() {
    fixture_.script.on_event =
        do_on(EventKind::kMessage,
              [this](HostCalls& host, const AgentEvent& event) { on_message(host, event); });
    client_ = fixture_.join();
    client_.sight->clear();
    (void)calls_.take_calls();
  }
  ~LiveAgentPowerTest() override { calls_.let_go(); }

  void on_message(HostCalls& host, const AgentEvent& event) {
    if (event.body == "write") (void)host.set_state(0, "1");
    if (event.body == "begin") fiber_ = host.start_fiber("work").value().handle;
    if (event.body == "end") (void)host.finish_fiber(fiber_);
    if (event.body == "stay") (void)host.acquire_keep_alive();
    if (event.body == "destroy") (void)host.destroy();
    if (event.body == "leave") {
      (void)host.set_state(0, "2");
      (void)host.evict();
    }
    if (event.body == "job") {
      (void)host.set_state(0, "3");
      const std::uint64_t job = 1;
      std::string request(sizeof job, '\0');
      std::memcpy(request.data(), &job, sizeof job);
      EXPECT_TRUE(host.submit(2, request, 7));
    }
    if (event.body == "large")
      (void)host.send(event.connection, FrameKind::kText, std::string(kLarge, 'x'));
    (void)host.send(event.connection, FrameKind::kText, "did " + std::string(event.body));
  }

  void say(const std::string& text) { fixture_.say(client_, text); }
  void say_and_see(const std::string& text) {
    say(text);
    EXPECT_TRUE(sees("text did " + text));
  }
  // What is said with syncs held back; they are under way when it returns.
  void say_while_held(const std::string& text) {
    calls_.hold();
    say(text);
    calls_.wait_until_somebody_waits();
    fixture_.settle();
  }
  bool is_gone() {
    return fixture_.loop.settle_until([this] { return fixture_.shard().counts().live == 0; });
  }
  // The agent's life ends with a commit in the WAL that was not synced.
  void leave_wal() {
    calls_.answer_with([](const std::string& call) {
      return call.ends_with(".db-wal") && !call.ends_with("host.db-wal") ? EIO : 0;
    });
    say("write");
    ASSERT_TRUE(is_gone());
    ASSERT_FALSE(saw("text did write"));
    calls_.answer_with(nullptr);
    (void)calls_.take_calls();
  }
  [[nodiscard]] bool saw(const std::string& what) const {
    return std::ranges::find(*client_.sight, what) != client_.sight->end();
  }
  bool sees(const std::string& what) {
    return fixture_.loop.settle_until([&] { return saw(what); });
  }
  bool synced(const std::string& file) {
    const auto calls = calls_.take_calls();
    return std::ranges::any_of(calls, [&file](const std::string& call) {
      return call.starts_with("data ") && call.ends_with(file);
    });
  }
  std::size_t wakes() {
    return storage::Directory(fixture_.data().directory_path()).wakes().size();
  }

  hearth::testing::FakeSyncCalls calls_;
  ShardFixture fixture_{{}, power(), &calls_};
  ShardFixture::Client client_;
  std::uint64_t fiber_ = 0;
};

TEST_F(LiveAgentPowerTest, NothingLeavesBeforeTheSync) {
  say_while_held("write");
  EXPECT_TRUE(client_.sight->empty());
  calls_.let_go();
  EXPECT_TRUE(sees("text did write"));
}

TEST_F(LiveAgentPowerTest, AnAgentIsRecordedDurablyBeforeItAnswers) {
  say_and_see("write");
  EXPECT_TRUE(synced("host.db-wal"));
  client_.sight->clear();
  say_and_see("write");
  EXPECT_FALSE(synced("host.db-wal")) << "the directory was not written for it";
}

TEST_F(LiveAgentPowerTest, ANearerWakeIsDurableBeforeAnythingLeaves) {
  say_and_see("write");
  (void)calls_.take_calls();
  say_and_see("begin");
  EXPECT_TRUE(synced("host.db-wal"));
  EXPECT_EQ(wakes(), 1U);
}

TEST_F(LiveAgentPowerTest, ALaterWakeIsWrittenOnlyWhenTheWorksEndIsDurable) {
  say_and_see("begin");
  say_while_held("end");
  EXPECT_EQ(wakes(), 1U) << "the row may come back, and nobody would wake the agent";
  calls_.let_go();
  EXPECT_TRUE(sees("text did end"));
  EXPECT_TRUE(fixture_.loop.settle_until([this] { return wakes() == 0; }));
}

TEST_F(LiveAgentPowerTest, AKeepAliveReferenceAloneIsDurableBeforeAnythingLeaves) {
  say_while_held("stay");
  EXPECT_TRUE(client_.sight->empty());
  calls_.let_go();
  EXPECT_TRUE(sees("text did stay"));
  EXPECT_EQ(wakes(), 1U);
}

TEST_F(LiveAgentPowerTest, WhoIsEvictedAtOnceStillAnswersWhatItHasCommitted) {
  say_and_see("leave");
  EXPECT_TRUE(is_gone());
}

// An eviction and a destruction with answers that wait for the device.
TEST_F(LiveAgentPowerTest, WhileAnAgentsLastAnswersWaitItsShardGoesOn) {
  for (const char* const end : {"leave", "destroy"}) {
    client_.sight->clear();
    say_while_held(end);
    EXPECT_TRUE(client_.sight->empty());
    const auto other = fixture_.join("other");
    fixture_.say(other, "read");
    EXPECT_EQ(std::ranges::count(*other.sight, "text did read"), 1) << end;
    fixture_.runtime().post(fixture_.script.host->handle(), 8);
    say("x");
    calls_.let_go();
    EXPECT_TRUE(sees(std::string("text did ") + end));
    ASSERT_TRUE(fixture_.loop.settle_until(
        [&] { return fixture_.logger.count(std::string("agent.evicted")) >= 1; }));
  }
}

TEST(LiveAgentPowerHungTest, ADeviceThatHangsKeepsALeavingAgentForTenSeconds) {
  hearth::testing::FakeSyncCalls calls;
  ShardFixture fixture({}, power(), &calls, 1);
  fixture.script.on_event =
      do_on(EventKind::kMessage, [](HostCalls& host, const AgentEvent& event) {
        EXPECT_TRUE(host.set_state(0, "2"));
        EXPECT_TRUE(host.evict());
        EXPECT_TRUE(host.send(event.connection, FrameKind::kText, "did leave"));
      });
  const auto client = fixture.join();
  calls.hold();
  fixture.say(client, "leave");
  calls.wait_until_somebody_waits();
  fixture.loop.advance(milliseconds(9'000));
  EXPECT_EQ(fixture.script.alive, 1);
  fixture.loop.advance(milliseconds(2'000));
  EXPECT_EQ(fixture.script.alive, 0);
  EXPECT_EQ(fixture.logger.count("error agent.storage_failed"), 1U);
  calls.let_go();
  ASSERT_TRUE(fixture.loop.settle_until([&] {
    return fixture.shard().admin().standing({"Counter", "a"}).state == AgentState::kCold;
  }));
  EXPECT_EQ(std::ranges::count(*client.sight, "text did leave"), 0) << "it was told that it failed";
}

TEST_F(LiveAgentPowerTest, LastAnswersThatCannotBeSyncedDoNotLeave) {
  calls_.answer_with(fail_syncs);
  say("leave");
  EXPECT_TRUE(is_gone());
  EXPECT_FALSE(saw("text did leave"));
  EXPECT_EQ(fixture_.logger.count("error agent.storage_failed"), 1U);
}

// Its WAL is in the system's memory, and the record in the directory as well.
TEST_F(LiveAgentPowerTest, WhatALifeThatWasCutOffHasLeftIsDurableBeforeItIsTold) {
  leave_wal();
  say_while_held("read");
  EXPECT_FALSE(saw("text did read"));
  calls_.let_go();
  EXPECT_TRUE(sees("text did read"));
  EXPECT_TRUE(synced("host.db-wal"));
  say("read");
  EXPECT_EQ(std::ranges::count(*client_.sight, "text did read"), 2) << "once is enough";
}

TEST_F(LiveAgentPowerTest, WhatALifeThatWasCutOffHasLeftIsNotToldIfItCannotBeSynced) {
  leave_wal();
  calls_.answer_with(fail_syncs);
  say("read");
  EXPECT_TRUE(is_gone());
  EXPECT_FALSE(saw("text did read"));
}

TEST_F(LiveAgentPowerTest, ADestructionIsDurableBeforeItIsTold) {
  say_and_see("write");
  (void)calls_.take_calls();
  say_and_see("destroy");
  EXPECT_TRUE(synced("host.db-wal"));
  EXPECT_TRUE(is_gone());
}

TEST_F(LiveAgentPowerTest, AFailedSyncBreaksTheAgentAndItComesBackFromTheDisk) {
  say_and_see("write");
  calls_.answer_with(fail_syncs);
  EXPECT_EQ(fixture_.ask(client_, "any")->end, "ok ") << "reading needs no sync";
  client_.sight->clear();
  say("write");
  EXPECT_TRUE(is_gone());
  EXPECT_FALSE(saw("text did write"));
  EXPECT_EQ(fixture_.logger.count("error agent.storage_failed"), 1U);
  calls_.answer_with(nullptr);
  say_and_see("write");
}

TEST_F(LiveAgentPowerTest, WhenTheDirectoryCannotBeSyncedNewWorkFailsUntilTheRestart) {
  const auto other = fixture_.connect("b", "other");
  fixture_.shard().message(other.id, "write", FrameKind::kText);
  const auto writes = [&other] { return std::ranges::count(*other.sight, "text did write"); };
  EXPECT_TRUE(fixture_.loop.settle_until([&] { return writes() == 1; }));
  calls_.answer_with(
      [](const std::string& call) { return call.ends_with("host.db-wal") ? EIO : 0; });
  say("begin");
  EXPECT_TRUE(fixture_.loop.settle_until([this] { return fixture_.shard().counts().live == 1; }));
  EXPECT_FALSE(saw("text did begin"));
  calls_.answer_with(nullptr);
  fixture_.shard().message(other.id, "write", FrameKind::kText);
  EXPECT_TRUE(fixture_.loop.settle_until([&] { return writes() == 2; }))
      << "it needs nothing of the directory";

  fixture_.restart({}, power());
  client_ = fixture_.connect();
  say_and_see("begin");
}

TEST_F(LiveAgentPowerTest, AJobIsBegunWhenWhatWasWrittenBeforeIsDurable) {
  bool ended = false;
  fixture_.script.on_result = [&ended](HostCalls&, const OperationResult& result) {
    ended = result.token == 7 && result.outcome.has_value();
  };
  say_while_held("job");
  EXPECT_FALSE(ended);
  calls_.let_go();
  EXPECT_TRUE(fixture_.loop.settle_until([&ended] { return ended; }));
}

TEST_F(LiveAgentPowerTest, AnAgentWhoseAnswersWaitIsNotIdle) {
  say_while_held("write");
  fixture_.loop.advance(milliseconds(200'000));
  EXPECT_EQ(fixture_.shard().counts().live, 1U);
  calls_.let_go();
  EXPECT_TRUE(sees("text did write"));
  fixture_.loop.advance(milliseconds(200'000));
  EXPECT_EQ(fixture_.shard().counts().live, 0U);
}

TEST_F(LiveAgentPowerTest, TooManyHeldAnswersStopTheEvents) {
  constexpr std::size_t kMessages = 5000;
  say_while_held("write");
  fixture_.script.history.clear();
  for (std::size_t i = 0; i < kMessages; ++i) say("x");
  EXPECT_LT(fixture_.script.history.size(), kMessages);
  EXPECT_TRUE(saw("pause")) << "the client is not read from";
  calls_.let_go();
  EXPECT_TRUE(fixture_.loop.settle_until(
      [this] { return std::ranges::count(*client_.sight, "text did x") == kMessages; }));
}

TEST_F(LiveAgentPowerTest, LargeHeldAnswersStopTheEvents) {
  constexpr std::size_t kMessages = 200;
  const std::size_t before = fixture_.runtime().client_memory().used();
  say_while_held("write");
  for (std::size_t i = 0; i < kMessages; ++i) say("large");
  const std::size_t held = fixture_.runtime().client_memory().used();
  EXPECT_GE(held, std::size_t{4} << 20);
  EXPECT_LE(held, (std::size_t{4} << 20) + 2 * kLarge);
  EXPECT_TRUE(saw("pause")) << "the client is not read from";
  calls_.let_go();
  EXPECT_TRUE(fixture_.loop.settle_until(
      [this] { return std::ranges::count(*client_.sight, "text did large") == kMessages; }));
  EXPECT_EQ(fixture_.runtime().client_memory().used(), before);
}

TEST(LiveAgentPowerClosingTest, AnAgentThatLeavesIsClosedByAnotherThreadThanItsShards) {
  ShardFixture fixture({}, power(), nullptr, 1);
  const storage::AgentKey key{"Counter", "a"};
  fixture.script.on_event = on(EventKind::kRequest, count_in_state);
  for (const char* wanted : {"ok 1", "ok 11", "ok 111"}) {
    const auto answer = fixture.request("POST");
    ASSERT_TRUE(fixture.loop.settle_until([&] { return answer->end.has_value(); }));
    EXPECT_EQ(answer->end, wanted) << "nothing that was told is lost";
    ASSERT_EQ(fixture.shard().admin().evict(key), AgentState::kLive);
    for (int step = 0; step < 100 && fixture.script.alive > 0; ++step) fixture.loop.step();
    ASSERT_EQ(fixture.script.alive, 0);
    // Closed here it would be cold by now. Its end comes as a task of the loop that has not run.
    EXPECT_EQ(fixture.shard().admin().standing(key).state, AgentState::kEnding);
    ASSERT_TRUE(fixture.loop.settle_until(
        [&] { return fixture.shard().admin().standing(key).state == AgentState::kCold; }));
  }
}

TEST_F(LiveAgentPowerTest, StoppingWaitsForTheAnswers) {
  say_while_held("write");
  bool stopped = false;
  fixture_.runtime().stop(std::chrono::hours(1), [&stopped] { stopped = true; });
  fixture_.settle();
  EXPECT_FALSE(stopped);
  calls_.let_go();
  EXPECT_TRUE(fixture_.loop.settle_until([&stopped] { return stopped; }));
  EXPECT_TRUE(saw("text did write"));
}

}  // namespace
}  // namespace hearth::runtime::testing
