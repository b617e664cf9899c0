// Agents that start while few file descriptors are left.
#include "base/error.hpp"
#include "runtime/work_fixture.hpp"
#include "support/few_descriptors.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace hearth::runtime {
namespace {

using hearth::testing::FewDescriptors;
using std::chrono::milliseconds;
using testing::Answer;
using testing::ShardFixture;

TEST(AgentSlotRoomTest, IdleAgentsLeaveForThoseThatFindNoDescriptorsAndAllAreServed) {
  ShardFixture fixture;
  fixture.script.on_event = on(EventKind::kRequest, count_in_state);
  const FewDescriptors few(21);  // ten agents and a bit
  for (const char* wanted : {"ok 1", "ok 11", "ok 111"}) {
    for (int i = 0; i < 40; ++i) {
      const auto answer = fixture.request("POST", "", "agent " + std::to_string(i));
      fixture.loop.advance(milliseconds(50));
      ASSERT_EQ(answer->end, wanted) << i;
    }
  }
  EXPECT_GE(fixture.shard().counts().live, 5U) << "no more left than had to";
  EXPECT_FALSE(fixture.logger.contains("agent.no_descriptors"));
  EXPECT_FALSE(fixture.logger.contains("storage_failed"));
}

TEST(AgentSlotRoomTest, ThoseWhoComeTogetherWaitForOneAnother) {
  ShardFixture fixture;
  fixture.script.on_event = on(EventKind::kRequest, count_in_state);
  const FewDescriptors few(21);
  std::vector<std::shared_ptr<Answer>> answers;
  for (int i = 0; i < 40; ++i) {
    answers.push_back(fixture.request("POST", "", "agent " + std::to_string(i)));
    if (i < 10) fixture.settle();  // these are idle when the others come
  }
  EXPECT_FALSE(answers.back()->end) << "it waits, and is not refused";
  fixture.loop.advance(milliseconds(2'000));
  for (const auto& answer : answers) EXPECT_EQ(answer->end, "ok 1");
}

TEST(AgentSlotRoomTest, WhenNobodyIsIdleAWakeIsRefusedAndLaterServed) {
  ShardFixture fixture;
  fixture.script.on_event = on(EventKind::kRequest, count_in_state);
  (void)fixture.ask("POST", "", "busy");
  ASSERT_TRUE(fixture.script.host->acquire_keep_alive());
  {
    const FewDescriptors few(3);
    const auto refused = fixture.ask("POST", "", "other");
    EXPECT_EQ(refused->end, "error unavailable: too many files are open; try again later");
    EXPECT_EQ(refused->status, 503U);
    EXPECT_TRUE(fixture.logger.contains("warn agent.no_descriptors"));
  }
  EXPECT_EQ(fixture.ask("POST", "", "other")->end, "ok 1");
}

// An agent that is evicted, and uses all of its grace.
void evict_slowly(ShardFixture& fixture) {
  fixture.script.on_event = on(EventKind::kEvict, hang);
  (void)fixture.ask("POST", "", "slow");
  fixture.shard().admin().evict({"Counter", "slow"});
}

TEST(AgentSlotRoomTest, WhoFindsOnlyAgentsThatAreLeavingWaitsForThemInsteadOfBeingRefused) {
  ShardFixture fixture({.max_live_agents = 1},
                       settings_with(&ClassSettings::evict_grace, milliseconds(2'000)));
  evict_slowly(fixture);
  const auto waits = fixture.request("POST", "", "other");
  const auto another = fixture.request("POST", "", "other");
  fixture.loop.advance(milliseconds(1'900));
  EXPECT_FALSE(waits->end);
  const auto shown = fixture.shard().admin().waits({"Counter", "other"});
  ASSERT_EQ(shown.size(), 1U);
  EXPECT_EQ(shown[0].kind, extensions::WaitKind::kRoom);
  EXPECT_EQ(shown[0].since_ms, unix_millis(fixture.loop.clock().wall_now()) - 1'900);
  fixture.loop.advance(milliseconds(200));
  EXPECT_EQ(waits->end, "ok ");
  EXPECT_EQ(another->end, "ok ");
}

TEST(AgentSlotRoomTest, AnAgentWhoseTimeHasComeIsWokenOnceThereAreDescriptors) {
  ShardFixture fixture;
  fixture.script.on_event = do_on(EventKind::kRequest, [](HostCalls& host, const AgentEvent&) {
    EXPECT_TRUE(host.acquire_keep_alive());
  });
  (void)fixture.ask("POST", "", "a");
  fixture.restart();
  {
    const FewDescriptors few(3);
    fixture.script.history.clear();
    fixture.loop.advance(milliseconds(3'000));
    EXPECT_TRUE(fixture.script.history.empty());
  }
  fixture.loop.advance(milliseconds(3'000));
  EXPECT_FALSE(fixture.script.history.empty()) << "it was not forgotten";
}

// ---- the line of waiting agents -----------------------------------------------------------------

// Agents that do not complete EVICT, so an agent that is asked to leave does not leave.
class RoomLineTest : public ::testing::Test {
 protected:
  RoomLineTest() {
    script().on_event = [this](HostCalls& host, const AgentEvent& event) -> Result<void> {
      if (event.kind == EventKind::kEvict || event.call == 0) return {};
      if (event.kind != EventKind::kRequest) return complete(host, event);
      served.emplace_back(event.body);
      if (auto stored = host.set_state(0, "1"); stored.has_error()) return stored;
      return complete(host, event);
    };
  }
  static ClassSettings patient() {
    ClassSettings settings;
    settings.evict_grace = std::chrono::minutes(1);
    settings.idle_timeout = std::chrono::hours(1);
    return settings;
  }
  testing::Script& script() { return fixture.script; }
  std::shared_ptr<Answer> ask(const std::string& name) { return fixture.ask("POST", name, name); }
  // An agent that is leaving, and needs a minute for that.
  void leave_slowly(const std::string& name) {
    (void)ask(name);
    fixture.evict(name);
    served.clear();
  }

  ShardFixture fixture{{}, patient()};
  std::vector<std::string> served;
};

TEST_F(RoomLineTest, WhoComesLaterStandsBehindThoseWhoWait) {
  leave_slowly("slow");
  std::optional<FewDescriptors> few(3);
  const auto first = ask("first");
  const auto second = ask("second");
  few.reset();
  const auto newcomer = ask("newcomer");
  EXPECT_FALSE(newcomer->end) << "there is room, but it is others' turn";
  fixture.loop.advance(milliseconds(10));
  EXPECT_EQ(served, (std::vector<std::string>{"first", "second", "newcomer"}));
}

TEST_F(RoomLineTest, HoweverManyWaitOnlyTheFirstIsLookedAt) {
  leave_slowly("slow");
  std::optional<FewDescriptors> few(3);
  for (int i = 0; i < 50; ++i) (void)ask("agent " + std::to_string(i));
  const std::size_t before = fixture.loop.timers_set();
  fixture.loop.advance(milliseconds(1'000));
  EXPECT_GE(fixture.loop.timers_set() - before, 90U);
  EXPECT_LE(fixture.loop.timers_set() - before, 110U) << "one timer, every 10 ms";
  EXPECT_TRUE(served.empty());
  few.reset();
  fixture.loop.advance(milliseconds(10));
  EXPECT_EQ(served.size(), 50U);
}

TEST_F(RoomLineTest, AgentsWhoseEvictHandlersRunGiveNothingBackSoOthersLeave) {
  for (int i = 0; i < 5; ++i) (void)ask("idle " + std::to_string(i));
  for (int i = 0; i < 5; ++i) leave_slowly("slow " + std::to_string(i));
  const FewDescriptors few(1);
  const auto answer = ask("other");
  fixture.loop.advance(milliseconds(100));
  EXPECT_EQ(answer->end, "ok ");
}

TEST_F(RoomLineTest, AClientThatGoesWhileItWaitsLeavesNothingBehind) {
  leave_slowly("slow");
  const FewDescriptors few(3);
  const auto client = fixture.join("other");
  ASSERT_EQ(fixture.shard().counts().slots, 2U);
  fixture.shard().disconnected(client.id, 1001, "", true);
  fixture.loop.advance(milliseconds(20));
  EXPECT_EQ(fixture.shard().counts().slots, 1U);
}

TEST_F(RoomLineTest, TheTimeOfALaterWaitIsItsOwn) {
  leave_slowly("slow");
  std::optional<FewDescriptors> few(3);
  const auto unserved = ask("other");
  fixture.loop.advance(milliseconds(3'000));
  few.reset();
  const auto served_class = fixture.runtime().classes().remove("counter");
  fixture.loop.advance(milliseconds(20));
  ASSERT_EQ(unserved->end, "error unavailable: the class is not loaded");
  fixture.runtime().classes().put(served_class);
  fixture.loop.advance(milliseconds(6'000));
  few.emplace(3);
  const auto waits = ask("other");
  fixture.loop.advance(milliseconds(4'900));
  EXPECT_FALSE(waits->end);
  fixture.loop.advance(milliseconds(200));
  EXPECT_EQ(waits->end, "error unavailable: too many files are open; try again later");
}

TEST_F(RoomLineTest, AServerThatStopsTellsThoseWhoWait) {
  leave_slowly("slow");
  const FewDescriptors few(3);
  const auto waits = ask("other");
  ASSERT_FALSE(waits->end);
  fixture.restart();
  EXPECT_EQ(waits->end, "error closing: the server is shutting down");
}

// ---- another thread takes the descriptors first -------------------------------------------------

TEST_F(RoomLineTest, WhoLosesTheDescriptorsAtTheOpenWaitsAndHasNotFailed) {
  int losses = 2;
  script().on_create = [&](HostCalls&) -> Result<void> {
    if (losses-- > 0) throw OutOfDescriptors("taken");
    return {};
  };
  const auto client = fixture.connect("other");
  const auto answer = ask("other");
  EXPECT_FALSE(answer->end);
  fixture.loop.advance(milliseconds(50));
  EXPECT_EQ(answer->end, "ok ");
  const auto closed = [](const std::string& sight) { return sight.starts_with("close"); };
  EXPECT_TRUE(std::ranges::none_of(*client.sight, closed));
  EXPECT_EQ(fixture.runtime().classes().find("counter")->starts->failed, 0U);
  EXPECT_FALSE(fixture.logger.contains("agent.start_failed"));
}

TEST_F(RoomLineTest, WhoLosesThemAgainAndAgainIsToldAfterAWhile) {
  script().on_create = [](HostCalls&) -> Result<void> { throw OutOfDescriptors("taken"); };
  const auto answer = ask("other");
  fixture.loop.advance(milliseconds(4'900));
  EXPECT_FALSE(answer->end);
  fixture.loop.advance(milliseconds(200));
  EXPECT_EQ(answer->end, "error unavailable: too many files are open; try again later");
  EXPECT_EQ(answer->status, 503U);
}

// ---- those whose time has come ------------------------------------------------------------------

class RoomForAlarmsTest : public testing::WorkTest {};

TEST_F(RoomForAlarmsTest, ThoseThatAreDueComeAsFastAsIdleOnesLeave) {
  for (int i = 0; i < 40; ++i) schedule({after(1'000, "tick")}, "agent" + std::to_string(i));
  shard_.restart();
  const FewDescriptors few(21);
  shard_.loop.advance(milliseconds(2'000));
  EXPECT_EQ(runs().size(), 40U);
}

TEST_F(RoomForAlarmsTest, WhoLosesTheDescriptorsAtTheOpenIsNotLeftAlone) {
  schedule({after(1'000, "tick")});
  shard_.restart();
  int losses = 1;
  shard_.script.on_create = [&](HostCalls&) -> Result<void> {
    if (losses-- > 0) throw OutOfDescriptors("taken");
    return {};
  };
  shard_.loop.advance(milliseconds(1'100));
  EXPECT_EQ(runs().size(), 1U);
}

TEST_F(RoomForAlarmsTest, OneThatBecomesIdleMakesRoomAtOnceAlsoAfterAFruitlessLook) {
  shard_.restart({.max_live_agents = 1});
  visit([](HostCalls& host) { EXPECT_TRUE(host.acquire_keep_alive()); }, "busy");
  const auto refused = visit([](HostCalls&) {}, "other");
  EXPECT_EQ(refused->end, "error unavailable: too many agents are busy; try again later");
  visit([](HostCalls& host) { EXPECT_TRUE(host.release_keep_alive()); }, "busy");
  EXPECT_EQ(visit([](HostCalls&) {}, "other")->end, "ok ");
}

}  // namespace
}  // namespace hearth::runtime
