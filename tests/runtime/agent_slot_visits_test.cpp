// Administrators read and change the data of agents, cold and live, without code of the class.
#include "durable/operations.hpp"
#include "extensions/durable_work.hpp"
#include "extensions/kv.hpp"
#include "runtime/fakes.hpp"
#include "storage/directory.hpp"
#include "storage/statement.hpp"
#include "support/fake_sync_calls.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <string>
#include <utility>

namespace hearth::runtime {
namespace {

using namespace testing;
using std::chrono::milliseconds;

using VisitWork = std::function<Result<std::string>(extensions::AgentContext&)>;

VisitWork put_under_k(const std::string& json) {
  return [json](extensions::AgentContext& agent) -> Result<std::string> {
    if (const auto done = agent.of<extensions::KvExtension>().put("k", json); done.has_error())
      return done.error();
    return std::string();
  };
}

class AgentSlotVisitsTest : public ::testing::Test {
 protected:
  std::shared_ptr<Answer> visit(VisitWork work) {
    auto answer = std::make_shared<Answer>();
    shard_.admin().visit(kUsualAgent, "counter",
                         {.work = std::move(work), .sink = std::make_shared<FakeSink>(answer)});
    return answer;
  }
  std::shared_ptr<Answer> put(const std::string& json) { return visit(put_under_k(json)); }
  // What a visit ends with, once all that is ready has run.
  std::string end_of(const std::shared_ptr<Answer>& answer) {
    shard_.settle();
    return answer->end.value_or("nothing");
  }
  std::shared_ptr<Answer> get() {
    return visit([](extensions::AgentContext& agent) {
      return agent.of<extensions::KvExtension>().get("k");
    });
  }

  ShardFixture shard_;
};

TEST_F(AgentSlotVisitsTest, AColdAgentIsOpenedAndNoCodeRuns) {
  EXPECT_EQ(end_of(put("5")), "ok ");
  EXPECT_EQ(end_of(get()), "ok 5");
  EXPECT_TRUE(shard_.script.history.empty()) << shard_.script.history.front();
  EXPECT_EQ(shard_.shard().counts().live, 0U);
  EXPECT_EQ(shard_.shard().counts().slots, 0U) << "nothing of it is left";
  shard_.restart();
  EXPECT_EQ(end_of(get()), "ok 5");
}

TEST_F(AgentSlotVisitsTest, ALiveAgentIsVisitedWhereItIs) {
  const auto client = shard_.join();
  EXPECT_EQ(end_of(put("6")), "ok ");
  EXPECT_EQ(end_of(get()), "ok 6");
  EXPECT_EQ(shard_.script.alive, 1);
}

TEST_F(AgentSlotVisitsTest, WhatComesMeanwhileMeetsTheAgentAfterwards) {
  const auto written = put("7");
  const auto answer = shard_.request("GET");
  const auto read = get();
  shard_.settle();
  EXPECT_EQ(written->end, "ok ");
  EXPECT_EQ(answer->end, "ok ");
  EXPECT_EQ(read->end, "ok 7");
  EXPECT_EQ(shard_.script.alive, 1);
}

Result<std::string> put_a_fiber_aside(extensions::AgentContext& agent) {
  durable::FiberRequest request;
  request.name = "later";
  request.keeping = durable::FiberKeeping::kKept;
  const auto started = agent.work().fibers().start(request);
  if (!started) return started.error();
  const auto waits = agent.work().recovery().wait_for_code(started->fiber, "it is not known");
  return waits ? Result<std::string>(std::string()) : waits.error();
}

TEST_F(AgentSlotVisitsTest, WhatWaitsForCodeBesideAnAlarmIsWokenByItsCode) {
  const auto put_aside = visit([](extensions::AgentContext& agent) -> Result<std::string> {
    const std::int64_t in_an_hour = unix_millis(agent.clock().wall_now()) + 3'600'000;
    const auto alarm =
        agent.work().alarms().set({.method = "ring", .arguments = "[]", .at_ms = in_an_hour});
    return alarm ? put_a_fiber_aside(agent) : alarm.error();
  });
  shard_.settle();
  EXPECT_EQ(put_aside->end, "ok ");
  EXPECT_TRUE(shard_.script.history.empty());
  shard_.versions().class_is_back("counter");
  shard_.settle();
  EXPECT_FALSE(shard_.script.history.empty()) << "the alarm is an hour away, its code is here";
}

TEST_F(AgentSlotVisitsTest, ALookAtWorkThatWaitsForCodeNeitherWakesItNorMissesItsCode) {
  EXPECT_EQ(end_of(visit(put_a_fiber_aside)), "ok ");
  const auto look = get();
  shard_.settle();
  EXPECT_TRUE(look->end);
  EXPECT_TRUE(shard_.script.history.empty()) << "no code ran for a look";
  (void)get();
  shard_.versions().class_is_back("counter");  // while it is open
  shard_.settle();
  EXPECT_FALSE(shard_.script.history.empty()) << "its code may know the fiber now";
}

TEST_F(AgentSlotVisitsTest, OneThatIsStartingIsVisitedOnceItIsLive) {
  shard_.script.on_event = on(EventKind::kStart, keep_open(shard_.script));
  (void)shard_.ask("GET");
  const auto written = put("8");
  shard_.settle();
  EXPECT_FALSE(written->end);
  shard_.act([this](HostCalls& host) {
    EXPECT_TRUE(host.complete(shard_.script.open_calls[0], std::string_view()));
  });
  EXPECT_EQ(written->end, "ok ");
  shard_.script.on_event = nullptr;
}

TEST(AgentSlotVisitsOnThreadsTest, WhoWaitsForColdWaitsForTheRemovalOfWhatIsDestroyedMeanwhile) {
  hearth::testing::FakeSyncCalls syncs;
  ShardFixture shard({}, {}, &syncs, 1);
  const storage::AgentKey other{"Counter", "b"};
  const auto visit = [&](const storage::AgentKey& key, VisitWork work) {
    auto answer = std::make_shared<Answer>();
    shard.admin().visit(key, "counter",
                        {.work = std::move(work), .sink = std::make_shared<FakeSink>(answer)});
    return answer;
  };
  (void)visit(kUsualAgent, put_under_k("5"));
  const auto written = visit(other, put_under_k("5"));
  ASSERT_TRUE(shard.loop.settle_until([&] { return shard.shard().counts().live == 0; }));
  ASSERT_EQ(written->end, "ok ");
  // The one thread that closes has the files of the other one to remove, and waits for the device.
  syncs.hold();
  ASSERT_TRUE(shard.admin().destroy(other));
  syncs.wait_until_somebody_waits();
  const auto visited = visit(kUsualAgent, put_under_k("5"));
  shard.settle();  // the database is on its way to that thread
  ASSERT_TRUE(shard.admin().destroy(kUsualAgent));
  const auto over = visit(kUsualAgent, {});
  shard.settle();
  EXPECT_FALSE(over->end);
  bool was_removed = false;
  syncs.let_go();
  EXPECT_TRUE(shard.loop.settle_until([&] {
    if (!over->end) return false;
    was_removed = !shard.admin().standing(kUsualAgent).condemned;
    return true;
  }));
  EXPECT_EQ(over->end, "ok ");
  EXPECT_TRUE(was_removed) << "files of it are still there";
}

TEST_F(AgentSlotVisitsTest, AVisitWithoutWorkWaitsUntilTheAgentIsCold) {
  EXPECT_EQ(visit(nullptr)->end, "ok ");
  const auto client = shard_.join();
  const auto waiting = visit(nullptr);
  shard_.settle();
  EXPECT_FALSE(waiting->end);
  shard_.evict();
  EXPECT_EQ(waiting->end, "ok ");
}

TEST_F(AgentSlotVisitsTest, AnErrorOfTheWorkIsTold) {
  EXPECT_EQ(end_of(get()), "error not_found: nothing is kept under this key");
}

TEST_F(AgentSlotVisitsTest, ALoadThatFailsLeavesTheIndexAsItIs) {
  (void)visit([](extensions::AgentContext& agent) -> Result<std::string> {
    durable::OperationRequest request;
    request.kind = "charge";
    request.effect = durable::Effect::kRead;  // it is interrupted afterwards, and wakes no agent
    request.key = "k";
    const auto begun = agent.work().operations().begin(request);
    if (!begun) return begun.error();
    return begun->id;
  });
  shard_.settle();
  const auto indexed = [&] {
    storage::Directory directory(shard_.data().directory_path());
    return directory.with_operations("", {}, 10).size();
  };
  EXPECT_EQ(indexed(), 1U);
  const auto rename = [&](const char* sql) {
    const auto done = visit([sql](extensions::AgentContext& agent) -> Result<std::string> {
      agent.database().begin_write();
      storage::Statement(agent.database().connection(), sql).execute();
      return std::string();
    });
    shard_.settle();
    return *done->end;
  };
  EXPECT_EQ(rename("ALTER TABLE cf_agents_operations RENAME COLUMN effect TO lost"), "ok ");
  EXPECT_EQ(end_of(get()),
            "error unavailable: the agent's file cannot be opened: agent.storage_failed in the log "
            "says why");
  EXPECT_EQ(indexed(), 1U) << "an administrator still finds it";
  const auto answer = shard_.ask("GET");
  EXPECT_TRUE(answer->end && answer->end->starts_with("error ")) << *answer->end;
  EXPECT_EQ(indexed(), 1U);
}

TEST_F(AgentSlotVisitsTest, WithoutItsClassAnAgentIsOpenedAllTheSame) {
  ClassSettings settings;
  settings.kv.max_value_bytes = 4;
  shard_.restart({}, settings);
  (void)end_of(put("5"));
  ClassRegistry& classes = shard_.runtime().classes();
  const auto served = classes.remove("counter");
  for (const bool is_awaited : {true, false}) {
    if (!is_awaited) classes.give_up("counter");
    const auto before = get();
    const auto written = put(is_awaited ? "6" : "5");
    const auto too_long = put("12345");
    const auto after = get();
    shard_.settle();
    EXPECT_EQ(before->end, "ok 5") << is_awaited;
    EXPECT_EQ(written->end, "ok ") << is_awaited;
    EXPECT_TRUE(too_long->end && too_long->end->starts_with("error too_large"))
        << "the settings that it was served with hold: " << *too_long->end;
    EXPECT_EQ(after->end, is_awaited ? "ok 6" : "ok 5");
    const auto answer = shard_.ask("GET");
    EXPECT_EQ(answer->end, "error unavailable: the class is not loaded");
    (void)end_of(put("5"));
    EXPECT_EQ(shard_.shard().counts().live, 0U);
  }
  classes.put(served);
  const auto answer = shard_.request("GET");
  const auto read = get();
  shard_.settle();
  EXPECT_EQ(answer->end, "ok ");
  EXPECT_EQ(read->end, "ok 5");
}

TEST_F(AgentSlotVisitsTest, AClassInQuarantineIsOpenedAndNotWoken) {
  ClassRegistry& classes = shard_.runtime().classes();
  ServedClass quarantined = *classes.find("counter");
  quarantined.refusal = "it ended the server";
  classes.put(std::make_shared<const ServedClass>(std::move(quarantined)));
  const auto written = put("5");
  const auto read = get();
  shard_.settle();
  EXPECT_EQ(written->end, "ok ");
  EXPECT_EQ(read->end, "ok 5");
  EXPECT_TRUE(shard_.script.history.empty()) << shard_.script.history.front();
}

TEST_F(AgentSlotVisitsTest, WhileItIsOnlyOpenItCountsAsColdAndCanBeDestroyed) {
  const auto written = put("5");
  EXPECT_EQ(shard_.shard().counts().live, 1U);
  EXPECT_FALSE(shard_.admin().standing(kUsualAgent).in_memory);
  EXPECT_EQ(shard_.admin().standing(kUsualAgent).state, AgentState::kCold);
  ASSERT_TRUE(shard_.admin().destroy(kUsualAgent));
  shard_.settle();
  EXPECT_TRUE(written->end);
  EXPECT_EQ(end_of(get()), "error not_found: nothing is kept under this key");
}

TEST_F(AgentSlotVisitsTest, ADestroyedAgentIsNotVisited) {
  const auto client = shard_.join();
  ASSERT_TRUE(shard_.admin().destroy(kUsualAgent));
  const auto written = put("5");
  shard_.settle();
  EXPECT_TRUE(written->end && written->end->starts_with("error ")) << *written->end;
}

TEST_F(AgentSlotVisitsTest, WhoeverWaitsForTheEndOfADestroyedAgentThenVisitsANewOne) {
  for (const bool is_live : {true, false}) {
    if (is_live) {
      (void)shard_.connect();
    } else {
      (void)put("5");
    }
    shard_.settle();
    ASSERT_TRUE(shard_.admin().destroy(kUsualAgent)) << is_live;
    const auto over = visit({});
    EXPECT_FALSE(over->end && is_live) << "its instance is still there";
    shard_.settle();
    EXPECT_EQ(over->end, "ok ") << is_live;
    EXPECT_EQ(end_of(get()), "error not_found: nothing is kept under this key") << is_live;
  }
}

TEST_F(AgentSlotVisitsTest, A2_AnAlarmThatAVisitSetsWakesTheAgentInTime) {
  const std::int64_t now = unix_millis(shard_.loop.clock().wall_now());
  const auto set = visit([now](extensions::AgentContext& agent) -> Result<std::string> {
    auto alarm = agent.work().alarms().set({"ring", "[1]", now + 5'000});
    if (!alarm) return alarm.error();
    return std::move(alarm->record);
  });
  shard_.settle();
  EXPECT_TRUE(set->end && set->end->starts_with("ok {\"id\":")) << *set->end;
  EXPECT_TRUE(shard_.script.history.empty());
  shard_.loop.advance(milliseconds(4'900));
  EXPECT_TRUE(shard_.script.history.empty());
  shard_.loop.advance(milliseconds(200));
  EXPECT_EQ(shard_.script.history, (std::vector<std::string>{"start |", "call ring|[1]"}));
  const auto left = visit([](extensions::AgentContext& agent) -> Result<std::string> {
    return agent.work().alarms().list();
  });
  shard_.settle();
  EXPECT_EQ(left->end, "ok []");
}

TEST_F(AgentSlotVisitsTest, A4_AnAlarmThatFailsIsTriedThreeTimesAndIsDead) {
  shard_.script.on_event = on(EventKind::kCall, fail_with(Errc::kPlugin, "no"));
  (void)visit([](extensions::AgentContext& agent) -> Result<std::string> {
    (void)agent.work().alarms().set({"ring", "[]", 1});
    return std::string();
  });
  const auto runs = [&] {
    shard_.settle();
    return std::ranges::count(shard_.script.history, "call ring|[]");
  };
  EXPECT_EQ(runs(), 1);
  shard_.loop.advance(milliseconds(1'100));
  EXPECT_EQ(runs(), 2);
  shard_.loop.advance(milliseconds(1'100));
  EXPECT_EQ(runs(), 2);
  shard_.loop.advance(milliseconds(1'000));
  EXPECT_EQ(runs(), 3);
  shard_.loop.advance(std::chrono::hours(1));
  EXPECT_EQ(runs(), 3);
  EXPECT_EQ(shard_.logger.count("alarm:dead"), 1U);
  shard_.script.on_event = nullptr;
}

}  // namespace
}  // namespace hearth::runtime
