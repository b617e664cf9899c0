// The queue, and which agents are woken and kept alive, through the whole runtime. A restart is a
// new runtime on the same files. Schedules: live_agent_schedules_test.cpp.
#include "storage/connection.hpp"
#include "support/temp_directory.hpp"
#include "work_fixture.hpp"

#include <hearth/ext/offload.h>

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <future>
#include <optional>
#include <string>
#include <vector>

namespace hearth::runtime {
namespace {

using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::seconds;
using Strings = std::vector<std::string>;

class LiveAgentWorkTest : public testing::WorkTest {};

// ---- storage that fails in the turn in which work is first made ----

struct FirstUse {
  const char* name;
  std::function<void(HostCalls&)> make;
};

// A turn that is undone by its own SQL. The agent ends, and the server does not.
TEST_F(LiveAgentWorkTest, AFirstUseOfDurableWorkInATurnThatIsLostEndsTheAgentAlone) {
  const std::vector<FirstUse> uses = {
      {"queue", [](HostCalls& host) { (void)host.push_item(item("c")); }},
      {"alarm", [](HostCalls& host) { (void)host.work().alarms().set({"m", "[]", 1}); }},
      {"notice",
       [](HostCalls& host) { (void)host.work().notices().push({"Room", "a", "m", "[]", ""}); }},
      {"schedule", [](HostCalls& host) { (void)host.create_schedule(after(1'000, "c")); }},
      {"fiber", [](HostCalls& host) { (void)host.start_fiber("c"); }}};
  std::size_t lost = 0;
  for (const FirstUse& use : uses) {
    SCOPED_TRACE(use.name);
    visit(
        [&](HostCalls& host) {
          use.make(host);
          EXPECT_FALSE(lose_the_turn(host));
        },
        use.name);
    EXPECT_EQ(shard_.logger.count("warn agent.turn_lost"), ++lost);
    EXPECT_EQ(visit([](HostCalls&) {}, use.name)->status, 200U) << "the agent is woken again";
  }
}

// ---- operations ----

TEST_F(LiveAgentWorkTest, AKeyedOperationBehindItsHorizonIsToldThoughNobodyAsks) {
  shard_.script.operations = {{"charge", durable::Effect::kKeyed}};
  visit([](HostCalls& host) {
    durable::OperationRequest request;
    request.kind = "charge";
    request.key = "order 7";
    request.effect = durable::Effect::kKeyed;
    request.horizon_ms = 3'600'000;
    EXPECT_TRUE(host.begin_operation(request, 7));
  });
  shard_.restart_and_settle();
  ASSERT_TRUE(wake_of());
  EXPECT_TRUE(wake_of()->at_ms);
  EXPECT_FALSE(wake_of()->working);
  const Strings& unknown = seen[EventKind::kOperationUnknown];
  EXPECT_EQ(unknown.size(), 0U);
  shard_.loop.advance(minutes(59));
  EXPECT_EQ(unknown.size(), 0U);
  shard_.loop.advance(minutes(2));
  ASSERT_EQ(unknown.size(), 1U);
  EXPECT_NE(unknown[0].find(R"("state":"unknown")"), std::string::npos);
}

// ---- the queue ----

TEST_F(LiveAgentWorkTest, ATryCountsOnDiskBeforeItsCodeRuns) {
  std::int64_t on_disk = 0;
  on_work = [&](HostCalls& host, const AgentEvent& event) -> Result<void> {
    // What a kill would leave.
    const hearth::testing::TempDirectory copy;
    const std::string file = shard_.data().agent_path(testing::kUsualAgent);
    for (const char* suffix : {"", "-wal"})
      std::filesystem::copy_file(file + suffix, copy.path() / (std::string("a") + suffix));
    storage::Connection left(copy.path() / "a", {});
    on_disk += left.query_integer("SELECT sum(interruptions) FROM cf_agents_jobs WHERE state = 1");
    return complete(host, event);
  };
  visit([](HostCalls& host) {
    EXPECT_TRUE(host.push_item(item("item")));
    EXPECT_TRUE(host.create_schedule(after(0, "tick")));
  });
  ASSERT_EQ(order.size(), 2U);
  EXPECT_EQ(on_disk, 2);
}

TEST_F(LiveAgentWorkTest, ItemsAreDeliveredInOrderOneAtATime) {
  std::vector<CallId> open;
  on_work = [&](HostCalls&, const AgentEvent& event) -> Result<void> {
    open.push_back(event.call);
    return {};
  };
  visit([](HostCalls& host) {
    for (const char* name : {"one", "two", "three"}) EXPECT_TRUE(host.push_item(item(name, "[1]")));
  });
  for (std::size_t n = 1; n <= 3; ++n) {
    ASSERT_EQ(open.size(), n);
    act([&](HostCalls& host) { EXPECT_TRUE(host.complete(open.back(), std::string_view())); });
  }
  EXPECT_EQ(order, (Strings{"one", "two", "three"}));
  EXPECT_NE(items()[0].find(R"("payload":[1])"), std::string::npos);
  EXPECT_FALSE(wake_of());
}

TEST_F(LiveAgentWorkTest, AQueueDrainsAfterARestartThoughNobodyAsks) {
  on_work = hang;
  push({"one", "two", "three"});
  EXPECT_EQ(order, (Strings{"one"}));
  on_work = nullptr;
  order.clear();
  shard_.restart_and_settle();
  EXPECT_EQ(order, (Strings{"one", "two", "three"})) << "the one that was interrupted comes again";
  shard_.restart_and_settle();
  EXPECT_EQ(order.size(), 3U);
}

TEST_F(LiveAgentWorkTest, AnItemThatFailsOrHasNoCodeIsKeptAndTheOthersGoOn) {
  on_work = [](HostCalls& host, const AgentEvent& event) -> Result<void> {
    if (event.name == "bad") return Error{Errc::kPlugin, std::string(100, 'x')};
    if (event.name == "nobody") return host.complete(event.call, Error{Errc::kUnsupported, ""});
    return complete(host, event);
  };
  push({"bad", "nobody", "good"});
  shard_.loop.advance(seconds(10));
  EXPECT_EQ(order, (Strings{"bad", "bad", "bad", "nobody", "good"}));
  EXPECT_EQ(shard_.logger.count("warn queue:retry"), 2U);
  EXPECT_EQ(shard_.logger.count("warn queue:error"), 1U);
  EXPECT_EQ(shard_.logger.count("warn queue:dead"), 1U);
  EXPECT_EQ(shard_.logger.count("warn queue:missing_callback"), 1U);
  visit([](HostCalls& host) {
    durable::QueueFilter dead;
    dead.state = "dead";
    const auto list = host.list_items(dead);
    ASSERT_TRUE(list);
    EXPECT_NE(list->find("\"bad\""), std::string::npos);
    EXPECT_NE(list->find("\"last_error\":\"" + std::string(100, 'x') + "\""), std::string::npos)
        << *list;
    EXPECT_EQ(list->find("\"nobody\""), std::string::npos) << "it waits for code";
    EXPECT_EQ(list->find("\"good\""), std::string::npos);
  });
}

TEST_F(LiveAgentWorkTest, ADeliveryThatDoesNotAnswerIsGivenUpAfterItsLimit) {
  ClassSettings settings;
  settings.queue.timeout = seconds(20);
  shard_.restart({}, settings);
  on_work = hang;
  visit([](HostCalls& host) {
    durable::QueueRequest request = item("slow");
    request.max_attempts = 1;
    EXPECT_TRUE(host.push_item(request));
    EXPECT_TRUE(host.push_item(item("next")));
  });
  shard_.loop.advance(seconds(19));
  EXPECT_EQ(order, (Strings{"slow"}));
  shard_.loop.advance(seconds(2));
  EXPECT_EQ(order, (Strings{"slow", "next"}));
}

// ---- which agents are woken ----

TEST_F(LiveAgentWorkTest, AHookOfOneAgentDelaysNoScheduleOfAnother) {
  const RuntimeLimits limits{.max_recovering = 1};
  shard_.restart(limits);
  schedule({after(5'000, "cold")}, "cold");
  visit([](HostCalls& host) { EXPECT_TRUE(host.push_item(item("queued"))); }, "queued");
  start_fiber("work", "slow");
  order.clear();
  on_work = on(EventKind::kFiberRecovered, hang);
  shard_.restart_and_settle(limits);
  ASSERT_EQ(recovered().size(), 1U);
  schedule({after(5'000, "live")}, "live");
  shard_.loop.advance(seconds(6));
  EXPECT_EQ(std::ranges::count(order, "cold"), 1);
  EXPECT_EQ(std::ranges::count(order, "live"), 1);
  EXPECT_EQ(recovered().size(), 1U) << "the hook is still in progress";
}

TEST_F(LiveAgentWorkTest, AnAgentWhoseRecoveryWaitsRunsItsSchedulesMeanwhile) {
  for (const char* name : {"first", "second"}) {
    start_fiber("work", name);
    schedule({after(2'000, "tick")}, name);
  }
  on_work = on(EventKind::kFiberRecovered, hang);
  shard_.restart({.max_recovering = 1});
  visit([](HostCalls&) {}, "first");
  visit([](HostCalls&) {}, "second");
  EXPECT_EQ(recovered().size(), 1U);
  shard_.loop.advance(seconds(3));
  EXPECT_EQ(runs().size(), 2U);
  EXPECT_EQ(recovered().size(), 1U);
}

TEST_F(LiveAgentWorkTest, ManyColdAgentsThatAreDueTogetherAllComeThoughFewStartAtOnce) {
  for (int i = 0; i < 20; ++i) schedule({after(1'000, "tick")}, "agent" + std::to_string(i));
  Open starting;
  shard_.script.on_event = [&, scripted = shard_.script.on_event](
                               HostCalls& host, const AgentEvent& event) -> Result<void> {
    if (event.kind != EventKind::kStart) return scripted(host, event);
    starting.emplace_back(&host, event.call);
    return {};
  };
  shard_.loop.let_pass(seconds(2));
  shard_.restart_and_settle({.max_waking = 2});
  ASSERT_EQ(starting.size(), 2U);
  answer_each(starting, [&](std::size_t i) {
    EXPECT_LE(starting.size(), i + 3) << "one starts when another has";
  });
  EXPECT_EQ(runs().size(), 20U);
}

TEST_F(LiveAgentWorkTest, AStartThatFailsGivesItsPermitBackAndIsTriedAgain) {
  for (const char* name : {"bad", "good"}) schedule({after(1'000, "tick")}, name);
  int creations = 0;
  shard_.script.on_create = [&](HostCalls&) -> Result<void> {
    if (++creations == 1) return Error{Errc::kPlugin, "not yet"};
    return {};
  };
  shard_.loop.let_pass(seconds(2));
  shard_.restart_and_settle({.max_waking = 1});
  EXPECT_EQ(runs().size(), 1U);
  shard_.loop.advance(seconds(6));
  EXPECT_EQ(runs().size(), 2U);
}

// ---- keep-alive ----

TEST_F(LiveAgentWorkTest, ReleasingTheLastReferenceFallsBackToTheNextSchedule) {
  visit([](HostCalls& host) {
    EXPECT_TRUE(host.create_schedule(after(3'600'000, "tick")));
    EXPECT_TRUE(host.acquire_keep_alive());
    EXPECT_TRUE(host.acquire_keep_alive());
  });
  ASSERT_TRUE(wake_of());
  EXPECT_TRUE(wake_of()->working);
  visit([](HostCalls& host) { EXPECT_TRUE(host.release_keep_alive()); });
  EXPECT_TRUE(wake_of()->working) << "until the last of several";
  visit([](HostCalls& host) {
    EXPECT_TRUE(host.release_keep_alive());
    EXPECT_TRUE(host.acquire_keep_alive());
  });
  EXPECT_TRUE(wake_of()->working) << "released and taken again";
  visit([](HostCalls& host) { EXPECT_TRUE(host.release_keep_alive()); });
  ASSERT_TRUE(wake_of());
  EXPECT_FALSE(wake_of()->working);
  EXPECT_TRUE(wake_of()->at_ms);
}

TEST_F(LiveAgentWorkTest, AKeptAliveAgentWhoseStorageFailedIsBackWithinItsInterval) {
  for (const bool kept_alive : {true, false}) {
    shard_.restart({}, settings_with(&ClassSettings::keep_alive_interval, seconds(1)));
    visit([=](HostCalls& host) {
      EXPECT_TRUE(host.create_schedule(after(3'600'000, "tick")));
      if (kept_alive) EXPECT_TRUE(host.acquire_keep_alive());
    });
    visit([](HostCalls& host) { host.storage_failed("as a test says"); });
    EXPECT_EQ(shard_.script.alive, 0);
    shard_.loop.advance(milliseconds(900));
    EXPECT_EQ(shard_.script.alive, 0) << "not in a loop";
    shard_.loop.advance(milliseconds(200));
    EXPECT_EQ(shard_.script.alive, kept_alive ? 1 : 0);
  }
}

TEST_F(LiveAgentWorkTest, AKeptAliveAgentThatCannotStartIsTriedAgainOnceInEachInterval) {
  const auto tries_in_ten_minutes = [this](seconds interval) {
    const auto settings = settings_with(&ClassSettings::keep_alive_interval, interval);
    shard_.script.on_create = nullptr;
    shard_.restart({}, settings);
    visit([](HostCalls& host) { EXPECT_TRUE(host.acquire_keep_alive()); });
    int tries = 0;
    shard_.script.on_create = [&tries](HostCalls&) -> Result<void> {
      ++tries;
      return Error{Errc::kPlugin, "not yet"};
    };
    shard_.restart_and_advance(minutes(10), {}, settings);
    shard_.script.on_create = nullptr;
    return tries;
  };
  const int often = tries_in_ten_minutes(seconds(10));
  EXPECT_GE(often, 55);
  EXPECT_LE(often, 65);
  const int seldom = tries_in_ten_minutes(seconds(3600));
  EXPECT_GE(seldom, 6) << "as often as any agent whose start fails";
  EXPECT_LE(seldom, 9);
}

// ---- refused calls ----

TEST_F(LiveAgentWorkTest, InATransactionOfTheAgentsOwnNothingIsChanged) {
  visit([](HostCalls& host) {
    const std::string id = host.create_schedule(after(60'000, "tick"))->id;
    const auto savepoint = host.sql().begin_savepoint();
    ASSERT_TRUE(savepoint);
    EXPECT_EQ(host.create_schedule(after(0, "x")).error().code, Errc::kInvalidArgument);
    EXPECT_EQ(host.cancel_schedule(id).error().code, Errc::kInvalidArgument);
    EXPECT_EQ(host.push_item(item("x")).error().code, Errc::kInvalidArgument);
    EXPECT_EQ(host.start_managed(managed("x", "x")).error().code, Errc::kInvalidArgument);
    EXPECT_TRUE(host.get_schedule(id)) << "looking is free";
    EXPECT_TRUE(host.sql().rollback_to(savepoint.value()));
    EXPECT_TRUE(host.cancel_schedule(id));
    EXPECT_EQ(host.cancel_schedule(id).error().code, Errc::kNotFound);
  });
  EXPECT_EQ(shard_.logger.count("schedule:cancel"), 1U);
}

TEST_F(LiveAgentWorkTest, ThePluginsSqlCannotWriteTheTables) {
  visit([](HostCalls& host) {
    EXPECT_TRUE(host.create_schedule(after(60'000, "tick")));
    EXPECT_TRUE(host.push_item(item("x")));
    EXPECT_TRUE(host.start_managed(managed("x", "x")));
    for (const char* table : {"cf_agents_schedules", "cf_agents_queues", "cf_agents_fibers",
                              "cf_agents_runs", "cf_agents_jobs", "cf_agents_job_documents"}) {
      EXPECT_TRUE(host.sql().prepare("SELECT count(*) FROM " + std::string(table))) << table;
      EXPECT_FALSE(host.sql().prepare("DELETE FROM " + std::string(table))) << table;
      EXPECT_FALSE(host.sql().prepare("CREATE TRIGGER mine INSTEAD OF DELETE ON " +
                                      std::string(table) + " BEGIN SELECT 1; END"))
          << table;
    }
  });
}

// ---- the running work, for the record of a crash ----

class WhoseWorkTest : public testing::WorkTest {
 protected:
  using Works = std::vector<std::optional<WorkMark>>;

  WhoseWorkTest() {
    shard_.script.works = [this](std::optional<WorkMark> work) { works_.push_back(work); };
  }
  ~WhoseWorkTest() override { shard_.script.works = nullptr; }  // the agents outlive `works_`
  // Its handle.
  std::uint64_t begin(const char* id) {
    std::uint64_t fiber = 0;
    visit([&](HostCalls& host) {
      const auto started = host.start_managed(managed("work", id));
      ASSERT_TRUE(started);
      fiber = started->fiber;
    });
    return fiber;
  }

  // Restarts, and returns the event of this kind, which it leaves open.
  CallId open_after_restart(EventKind kind) {
    on_work = [this, kind](HostCalls& host, const AgentEvent& event) -> Result<void> {
      if (event.kind != kind) return complete(host, event);
      open_ = event.call;
      return {};
    };
    shard_.restart();
    works_.clear();
    shard_.settle();
    EXPECT_NE(open_, 0U);
    return open_;
  }
  // A plan is the work of `fiber` from its begin on, also after its first wait.
  void expect_plan_works_for(const std::optional<WorkMark>& fiber) {
    const CallId plan = open_after_restart(EventKind::kFibersRecovered);
    EXPECT_EQ(works_, Works{fiber});
    act([&](HostCalls& host) { host.works_for(0, plan); });
    EXPECT_EQ(works_, (Works{fiber, std::nullopt, fiber}));
  }

  Works works_;
  CallId open_ = 0;
};

TEST_F(WhoseWorkTest, IsKnownFromTheFirstTimeOnThatItIsTold) {
  const std::uint64_t fiber = begin("f");
  const std::uint64_t other = begin("g");
  EXPECT_TRUE(works_.empty()) << "an agent that never tells";
  visit([&](HostCalls& host) {
    host.works_for(fiber, 0);
    host.works_for(other, 0);
    host.works_for(0, 0);
    host.works_for(fiber, 0);
  });
  ASSERT_EQ(works_.size(), 4U);
  const auto row = works_[0];
  const auto other_row = works_[1];
  ASSERT_TRUE(row && other_row);
  EXPECT_NE(*row, WorkMark());
  EXPECT_NE(*row, *other_row);
  act([](HostCalls&) {});
  EXPECT_EQ(works_, (Works{row, other_row, WorkMark(), row, WorkMark()}))
      << "the next call begins as the work of none";
  works_.clear();
  visit([&](HostCalls& host) {
    host.works_for(other, 0);
    EXPECT_TRUE(host.settle_managed(fiber, durable::FiberStatus::kCompleted, ""));
    host.works_for(fiber, 0);
  });
  ASSERT_EQ(works_.size(), 3U);
  EXPECT_EQ(works_[0], other_row);
  EXPECT_EQ(works_[1], WorkMark()) << "one that has ended";
  EXPECT_TRUE(works_[2] && works_[2] != row && works_[2] != other_row) << "its telling";
}

TEST_F(WhoseWorkTest, ARecoveryBeginsAsTheWorkOfItsFiberAndItsHookGoesOnAsThat) {
  const std::uint64_t fiber = begin("f");
  visit([&](HostCalls& host) { host.works_for(fiber, 0); });
  const auto row = works_.at(0);
  const CallId hook = open_after_restart(EventKind::kFiberRecovered);
  EXPECT_EQ(works_, (Works{row, std::nullopt, row})) << "the plan for it alone, and the hook";
  act([&](HostCalls& host) {
    host.works_for(0, hook);
    EXPECT_TRUE(host.complete(hook, std::string_view()));
    host.works_for(0, hook);
  });
  ASSERT_EQ(works_.size(), 7U);
  const auto telling = works_.back();
  works_.pop_back();
  EXPECT_EQ(works_, (Works{row, std::nullopt, row, std::nullopt, row, WorkMark()}));
  EXPECT_TRUE(telling && telling != row) << "and then the telling of its end, which is a job";
}

TEST_F(WhoseWorkTest, APlanForSeveralIsTheWorkOfNoneThatIsKnown) {
  begin("f");
  begin("g");
  expect_plan_works_for(WorkMark{kSeveralRows});
}

TEST_F(WhoseWorkTest, APlanForOneIsTheWorkOfThatFiber) {
  visit([&](HostCalls& host) {
    durable::FiberRequest request = managed("work", "f");
    request.keeping = durable::FiberKeeping::kKept;
    const auto started = host.start_managed(request);
    ASSERT_TRUE(started);
    host.works_for(started->fiber, 0);
  });
  expect_plan_works_for(std::optional<WorkMark>(works_.at(0)));
}

TEST_F(WhoseWorkTest, AJobBelongsToTheFiberThatHasSubmittedIt) {
  const std::uint64_t fiber = begin("f");
  std::promise<OffloadOrigin> ran;
  shard_.script.on_job = [&ran](const OffloadOrigin& origin, bool) { ran.set_value(origin); };
  const hearth_offload_request job = {1};
  visit([&](HostCalls& host) {
    host.works_for(fiber, 0);
    EXPECT_TRUE(
        host.submit(HEARTH_OP_OFFLOAD, {reinterpret_cast<const char*>(&job), sizeof job}, 1));
    host.works_for(0, 0);
  });
  const OffloadOrigin origin = ran.get_future().get();
  EXPECT_EQ(origin.agent, "a");
  EXPECT_EQ(origin.work, works_.at(0));
}

}  // namespace
}  // namespace hearth::runtime
