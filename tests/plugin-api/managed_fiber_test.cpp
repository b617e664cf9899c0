// Managed fibers on the mock host: acceptance, results, retries, cancel, recovery, records.

#include <hearth/testing/host.hpp>

#include <gtest/gtest.h>

#include <chrono>
#include <coroutine>
#include <map>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::seconds;

namespace {

using hearth::FiberContext;
using hearth::FiberFilter;
using hearth::FiberOptions;
using hearth::FiberOutcome;
using hearth::FiberPolicy;
using hearth::FiberRecord;
using hearth::FiberStatus;
using hearth::InterruptedFiber;
using hearth::Json;
using hearth::RecoveredFiber;
using hearth::RecoveryPlan;
using hearth::StartedFiber;
using hearth::Task;
using hearth::testing::AgentHandle;
using hearth::testing::Host;

using Lines = std::vector<std::string>;

// What outlives an instance.
Lines done;                           // NOLINT
Lines told;                           // NOLINT
std::vector<RecoveredFiber> offered;  // NOLINT
std::string how;                      // NOLINT: what on_fiber_recovered does
int failures_left = 0;                // NOLINT: of the work
int hook_failures = 0;                // NOLINT
RecoveryPlan plan;                    // NOLINT

// A result that cannot be turned into JSON after all.
struct Unwritable {};
void to_json(Json&, const Unwritable&) {
  throw std::runtime_error("cannot be written");
}

class Manager : public hearth::Agent {
 public:
  static void methods(hearth::Methods<Manager>& m) {
    m.add("wait", &Manager::wait);
    m.add("wait_state", &Manager::wait_state);
    m.add("result", &Manager::result);
    m.add("cancel", &Manager::cancel);
    m.add("cancel_and_see", &Manager::cancel_and_see);
    m.add("records", &Manager::records);
    m.add("clear", &Manager::clear);
    m.add("replace", &Manager::replace);
    m.add("clear_behind_the_back", &Manager::clear_behind_the_back);
  }

  // Begins work that takes 3 steps of 10 ms and gives {"steps": 3}.
  StartedFiber begin(const FiberOptions& options = {}, const std::string& name = "work") {
    return start_fiber(name, [this](FiberContext& fiber) { return work(fiber, 0); }, options);
  }
  // Fails `failures_left` times.
  StartedFiber begin_flaky(int max_retries) {
    auto flaky = [](FiberContext&) {
      done.emplace_back("tried");
      if (failures_left-- > 0) throw std::runtime_error("broken");
      return "worked";
    };
    return start_fiber("flaky", flaky, {.max_retries = max_retries});
  }

  Task<Json> wait(std::string id) {
    const FiberRecord record = co_await wait_fiber(id);
    co_return Json(record);
  }
  Task<std::string> wait_state(std::string id) {
    const FiberRecord record = co_await wait_fiber(id);
    set_state("waited");  // the caller's context is back
    co_return caller() ? caller()->id() : "nobody";
  }
  Task<int> result(std::string id) {
    const FiberRecord record = co_await wait_fiber(id);
    co_return record.result_as<int>();
  }
  bool cancel(const std::string& id, const std::string& reason) { return cancel_fiber(id, reason); }
  // Whoever waits goes on after this event, not in the middle of it.
  std::size_t cancel_and_see(const std::string& id) {
    cancel_fiber(id);
    return done.size();
  }
  std::vector<FiberRecord> records() { return list_fibers(); }
  // At the moment at which a slow hook ends: before the event that tells of the end.
  Task<std::uint64_t> clear() {
    co_await sleep(milliseconds(50));
    co_return delete_fibers(interrupted_too());
  }
  Task<std::string> replace(std::string id) {
    co_await sleep(milliseconds(50));
    const FiberOptions options = {.id = id, .policy = FiberPolicy::kReplace};
    co_return begin(options).record.id;
  }
  // As code would that does not use this SDK.
  Task<std::uint64_t> clear_behind_the_back() {
    co_await sleep(milliseconds(50));
    std::uint64_t removed = 0;
    const auto filter = hearth::detail::to_fiber_filter(interrupted_too());
    const auto& live = activation();
    live.check(
        hearth::detail::managed_table(live).remove(live.host(), live.id(), &filter, &removed),
        "remove");
    co_return removed + delete_fibers();
  }

  Task<void> on_fiber_recovered(const RecoveredFiber& fiber) override {
    offered.push_back(fiber);
    if (hook_failures-- > 0) throw std::runtime_error("not now");
    if (how.starts_with("slow")) co_await sleep(milliseconds(50));
    if (how == "slow outcome") settle_fiber(fiber, FiberOutcome::completed({{"by", "the hook"}}));
    if (how == "completed") settle_fiber(fiber, FiberOutcome::completed({{"by", "the hook"}}));
    if (how == "failed") {
      FiberOutcome outcome = FiberOutcome::failed("lost");
      outcome.snapshot = "last words";
      outcome.metadata = "changed";
      settle_fiber(fiber, outcome);
    }
    if (how == "spawn") spawn_fiber(fiber.name, [](FiberContext&) {});
    if (how == "continue" || how == "slow")
      continue_fiber(fiber, [this](FiberContext& next) { return go_on(next); });
  }
  Task<RecoveryPlan> on_fibers_recovered(const std::vector<InterruptedFiber>& fibers) override {
    Lines names;
    for (const InterruptedFiber& fiber : fibers) names.push_back(fiber.name);
    done.push_back("asked for " + std::to_string(names.size()));
    RecoveryPlan answer = plan;
    for (std::string& name : answer.order) {
      for (const InterruptedFiber& fiber : fibers) {
        if (fiber.name == name) name = fiber.id;
      }
    }
    return answer;
  }
  Task<void> on_fiber_complete(const FiberRecord& fiber) override {
    told.push_back(fiber.name + " " + Json(fiber).at("status").get<std::string>());
    if (tell_failures-- > 0) throw std::runtime_error("deaf");
    co_await sleep(milliseconds(1));
  }

  int tell_failures = 0;

 private:
  static FiberFilter interrupted_too() {
    return {.statuses = {FiberStatus::kInterrupted, FiberStatus::kCompleted, FiberStatus::kError}};
  }
  Task<Json> work(FiberContext& fiber, int from) {
    for (int i = from + 1; i <= 3; ++i) {
      co_await sleep(milliseconds(10));
      done.push_back("step " + std::to_string(i));
      stash(i);
    }
    co_return Json{{"steps", 3}, {"id", fiber.id()}};
  }
  Task<Json> go_on(FiberContext& fiber) {
    return work(fiber, fiber.snapshot().is_null() ? 0 : fiber.snapshot().get<int>());
  }
};

class ManagedFiberTest : public ::testing::Test {
 protected:
  ManagedFiberTest() {
    done.clear();
    told.clear();
    offered.clear();
    how = "continue";
    failures_left = hook_failures = 0;
    plan = RecoveryPlan();
  }
  Manager& manager() { return agent_.as<Manager>(); }
  std::optional<FiberRecord> inspect(const std::string& id) { return manager().inspect_fiber(id); }
  // Begun, with a checkpoint of step 1, and interrupted.
  std::string interrupt(const FiberOptions& options = {}) {
    std::string id = manager().begin(options).record.id;
    host_.advance(milliseconds(10));
    agent_.kill();
    return id;
  }
  hearth_status status_of(const FiberOptions& options, const std::string& name = "work") {
    try {
      manager().begin(options, name);
    } catch (const hearth::Error& error) {
      return error.code();
    }
    return HEARTH_OK;
  }

  Host host_;
  AgentHandle agent_ = host_.create<Manager>("a");
};

// ---- acceptance -------------------------------------------------------------------------------------------

TEST_F(ManagedFiberTest, IsAcceptedAsPendingAndRunsToItsStoredResult) {
  const StartedFiber started =
      manager().begin({.idempotency_key = "k", .input = {{"n", 1}}, .metadata = "m"});
  EXPECT_TRUE(started.accepted);
  EXPECT_EQ(started.record.status, FiberStatus::kPending);
  EXPECT_EQ(started.record.id.size(), 36U);
  EXPECT_EQ(inspect(started.record.id)->status, FiberStatus::kRunning);
  host_.advance(milliseconds(20));
  EXPECT_EQ(inspect(started.record.id)->snapshot, 2);
  host_.advance(milliseconds(10));
  const auto record = inspect(started.record.id);
  EXPECT_EQ(record->status, FiberStatus::kCompleted);
  EXPECT_EQ(record->result, Json({{"steps", 3}, {"id", started.record.id}}));
  EXPECT_EQ(record->snapshot, 3);
  EXPECT_EQ(record->key, "k");
  EXPECT_EQ(record->input, Json({{"n", 1}}));
  EXPECT_EQ(record->metadata, "m");
  EXPECT_EQ(*record->completed_at - record->created_at, milliseconds(30));
  EXPECT_TRUE(agent_.fibers().empty());
}

TEST_F(ManagedFiberTest, TheSameKeyOrIdIsAcceptedOnce) {
  const StartedFiber first = manager().begin({.idempotency_key = "k"});
  const StartedFiber second = manager().begin({.idempotency_key = "k"});
  EXPECT_FALSE(second.accepted);
  EXPECT_EQ(second.record.id, first.record.id);
  EXPECT_EQ(second.record.status, FiberStatus::kRunning);
  EXPECT_TRUE(manager().begin({.id = "mine"}).accepted);
  EXPECT_FALSE(manager().begin({.id = "mine"}).accepted);
  host_.advance(milliseconds(30));
  EXPECT_FALSE(manager().begin({.idempotency_key = "k"}).accepted);
  EXPECT_EQ(done.size(), 6U);  // two fibers of three steps
}

TEST_F(ManagedFiberTest, TheSameKeyWithOtherWorkIsAConflict) {
  manager().begin({.idempotency_key = "k", .input = 1});
  EXPECT_EQ(status_of({.idempotency_key = "k", .input = 2}), HEARTH_E_CONFLICT);
  EXPECT_EQ(status_of({.idempotency_key = "k", .input = 1}, "other"), HEARTH_E_CONFLICT);
  EXPECT_EQ(status_of({.idempotency_key = "k", .input = 1, .metadata = "may differ"}), HEARTH_OK);
  manager().begin({.id = "mine"});
  EXPECT_EQ(status_of({.id = "mine", .idempotency_key = "k", .input = 1}), HEARTH_E_INVALID);
}

TEST_F(ManagedFiberTest, ASettledKeyIsJoinedRejectedOrReplaced) {
  const std::string id = manager().begin({.idempotency_key = "k"}).record.id;
  EXPECT_EQ(status_of({.idempotency_key = "k", .policy = FiberPolicy::kReject}), HEARTH_OK);
  host_.advance(milliseconds(30));
  EXPECT_EQ(status_of({.idempotency_key = "k", .policy = FiberPolicy::kReject}), HEARTH_E_CONFLICT);
  EXPECT_EQ(manager().begin({.idempotency_key = "k"}).record.id, id);
  const StartedFiber next =
      manager().begin({.idempotency_key = "k", .policy = FiberPolicy::kReplace});
  EXPECT_TRUE(next.accepted);
  EXPECT_NE(next.record.id, id);
  EXPECT_EQ(inspect(id), std::nullopt);
}

TEST_F(ManagedFiberTest, BlankIdsKeysAndBadOptionsAreRefused) {
  EXPECT_EQ(status_of({.id = ""}), HEARTH_E_INVALID);
  EXPECT_EQ(status_of({.id = "  "}), HEARTH_E_INVALID);
  EXPECT_EQ(status_of({.idempotency_key = ""}), HEARTH_E_INVALID);
  EXPECT_EQ(status_of({.idempotency_key = "\t"}), HEARTH_E_INVALID);
  EXPECT_EQ(status_of({.max_retries = -1}), HEARTH_E_INVALID);
  EXPECT_EQ(status_of({.retry_delay = milliseconds(0)}), HEARTH_E_INVALID);
  EXPECT_EQ(status_of({.retry_delay = seconds(2), .max_retry_delay = seconds(1)}),
            HEARTH_E_INVALID);
  EXPECT_EQ(status_of({}, ""), HEARTH_E_INVALID);
  EXPECT_EQ(agent_.managed_fibers(), Json::array());
}

TEST_F(ManagedFiberTest, WhatTheHostRefusesIsAnErrorOfTheCaller) {
  host_.fail_start_fiber(HEARTH_E_LIMIT);
  EXPECT_EQ(status_of({}), HEARTH_E_LIMIT);
  host_.fail_start_fiber(HEARTH_OK);
  auto transaction = manager().transaction();
  EXPECT_EQ(status_of({}), HEARTH_E_INVALID);
}

TEST_F(ManagedFiberTest, ResultsMayBeAnythingThatJsonHolds) {
  struct Special {
    int number;
  };
  const auto result = [&](auto function) {
    const std::string id = manager().start_fiber("plain", function).record.id;
    return inspect(id)->result;
  };
  EXPECT_EQ(result([](FiberContext&) { return std::string("text"); }), "text");
  EXPECT_EQ(result([](FiberContext&) { return std::vector<int>({1, 2}); }), Json({1, 2}));
  EXPECT_EQ(result([](FiberContext&) { return std::optional<int>(); }), nullptr);
  EXPECT_EQ(result([](FiberContext&) {}), nullptr);
  EXPECT_FALSE(hearth::detail::kIsResult<Special>);
  EXPECT_EQ(manager().start_fiber("odd", [](FiberContext&) { return Unwritable(); }).record.status,
            FiberStatus::kPending);
  EXPECT_EQ(manager().list_fibers({.name = "odd"}).at(0).error, "cannot be written");
  const std::string id =
      manager().start_fiber("bad", [](FiberContext&) { return std::string("\xff"); }).record.id;
  EXPECT_EQ(inspect(id)->status, FiberStatus::kError);
  EXPECT_EQ(inspect(id)->error, "the result is not JSON");
}

// ---- waiting ----------------------------------------------------------------------------------------------

TEST_F(ManagedFiberTest, AllWhoWaitGetTheRecordWhenItIsSettled) {
  const std::string id = manager().begin().record.id;
  auto first = agent_.start("wait", id);
  auto client = agent_.connect({}, "me");
  auto second = client.start("wait_state", id);
  host_.advance(milliseconds(20));
  EXPECT_FALSE(first.done());
  host_.advance(milliseconds(10));
  EXPECT_EQ(first.value().at("status"), "completed");
  EXPECT_EQ(second.value(), "me");
  EXPECT_EQ(agent_.call("wait", id).at("status"), "completed");  // at once
}

TEST_F(ManagedFiberTest, AWaitForNothingIsAnErrorAndACancelledWaitHurtsNobody) {
  EXPECT_EQ(agent_.start("wait", "no such id").status(), HEARTH_E_NOT_FOUND);
  const std::string id = manager().begin().record.id;
  auto first = agent_.start("wait", id);
  auto second = agent_.start("wait", id);
  first.cancel();
  host_.advance(milliseconds(30));
  EXPECT_EQ(second.value().at("status"), "completed");
}

TEST_F(ManagedFiberTest, AFailureIsAStatusForThoseWhoWait) {
  failures_left = 1;
  const std::string id = manager().begin_flaky(0).record.id;
  const Json record = agent_.call("wait", id);
  EXPECT_EQ(record.at("status"), "error");
  EXPECT_EQ(record.at("error"), "broken");
  EXPECT_EQ(record.at("failures"), 1);
  EXPECT_EQ(agent_.start("result", id).error(), "fiber flaky is error: broken");
  EXPECT_EQ(host_.log(), Lines({"error fiber flaky failed: broken"}));
}

TEST_F(ManagedFiberTest, WhoWaitsForRecoveredWorkIsReleasedByItsEnd) {
  const std::string id = interrupt();
  auto wait = agent_.start("wait", id);
  EXPECT_FALSE(wait.done());
  host_.advance(milliseconds(20));
  EXPECT_EQ(wait.value().at("status"), "completed");
  EXPECT_EQ(done, Lines({"step 1", "step 2", "step 3"}));
}

TEST_F(ManagedFiberTest, WhoWaitsIsReleasedByTheOutcomeOfAHook) {
  how = "completed";
  const std::string id = interrupt();
  agent_.wake();
  EXPECT_EQ(agent_.call("wait", id).at("result"), Json({{"by", "the hook"}}));
}

// Between the end of a hook and the event that tells of it, whoever comes first may remove the record.
TEST_F(ManagedFiberTest, ARecordThatIsDeletedBeforeItsEndWasToldReleasesWhoWaitsWithItsOutcome) {
  how = "slow and then nothing";
  const std::string id = interrupt();
  auto wait = agent_.start("wait", id);
  auto clear = agent_.start("clear");
  host_.advance(milliseconds(50));
  EXPECT_EQ(clear.value(), 1);
  EXPECT_EQ(told, Lines()) << "it came too late to be told";
  ASSERT_TRUE(wait.done());
  EXPECT_EQ(wait.value().at("status"), "interrupted");
  EXPECT_EQ(agent_.managed_fibers().size(), 0U);
}

TEST_F(ManagedFiberTest, ARecordThatIsReplacedBeforeItsEndWasToldReleasesWhoWaitsWithItsOutcome) {
  how = "slow outcome";
  const std::string id = interrupt({.id = "order"});
  auto wait = agent_.start("wait", id);
  auto replace = agent_.start("replace", id);
  host_.advance(milliseconds(50));
  EXPECT_EQ(replace.value(), "order");
  ASSERT_TRUE(wait.done()) << "not by the end of the new one";
  EXPECT_EQ(wait.value().at("result"), Json({{"by", "the hook"}}));
  auto second = agent_.start("wait", id);
  host_.advance(milliseconds(30));
  EXPECT_EQ(second.value().at("result").at("steps"), 3) << "and this is the new one";
}

TEST_F(ManagedFiberTest, ARecordThatWentByAnotherHandIsAnErrorForWhoWaits) {
  how = "slow and then nothing";
  const std::string id = interrupt();
  auto wait = agent_.start("wait", id);
  auto clear = agent_.start("clear_behind_the_back");
  host_.advance(milliseconds(50));
  EXPECT_EQ(clear.value(), 1);
  ASSERT_TRUE(wait.done());
  EXPECT_EQ(wait.error(), "the record of this managed fiber was removed");
}

TEST_F(ManagedFiberTest, ADeletionLeavesThoseWhoWaitForWorkThatRunsAlone) {
  how = "slow and then nothing";
  const std::string id = manager().begin().record.id;
  auto wait = agent_.start("wait", id);
  manager().delete_fibers();
  host_.advance(milliseconds(29));
  EXPECT_FALSE(wait.done());
  host_.advance(milliseconds(1));
  EXPECT_EQ(wait.value().at("status"), "completed");
}

// ---- cancel -----------------------------------------------------------------------------------------------

TEST_F(ManagedFiberTest, ACancelReleasesWhoWaitsAndALateEndChangesNothing) {
  const std::string id = manager().begin().record.id;
  auto wait = agent_.start("wait", id);
  EXPECT_EQ(agent_.call("cancel", id, "enough"), true);
  ASSERT_TRUE(wait.done());
  EXPECT_EQ(wait.value().at("status"), "aborted");
  EXPECT_EQ(wait.value().at("error"), "enough");
  EXPECT_EQ(agent_.call("cancel", id, "again"), false);
  host_.advance(seconds(1));
  EXPECT_EQ(inspect(id)->error, "enough");
  EXPECT_EQ(done, Lines({"step 1"}));  // its stash was GONE, which ended it
  EXPECT_TRUE(host_.log().empty());
}

TEST_F(ManagedFiberTest, WhoWaitsGoesOnAfterTheEventThatCancels) {
  const std::string id = manager().begin().record.id;
  auto wait = agent_.start("wait", id);
  EXPECT_EQ(agent_.call("cancel_and_see", id), 0);
  EXPECT_TRUE(wait.done());
}

TEST_F(ManagedFiberTest, ACancelledFiberIsAskedToStopAndMayDoSoInPeace) {
  auto patient = [this](FiberContext& fiber) -> Task<void> {
    while (!fiber.stop_token().stop_requested()) co_await manager().sleep(milliseconds(10));
    done.emplace_back("stopped");
  };
  const std::string id =
      manager().start_fiber("patient", patient, {.idempotency_key = "k"}).record.id;
  host_.advance(milliseconds(20));
  EXPECT_TRUE(manager().cancel_fiber_by_key("k"));
  EXPECT_FALSE(manager().cancel_fiber_by_key("k"));
  EXPECT_FALSE(manager().cancel_fiber_by_key("no such key"));
  host_.advance(milliseconds(10));
  EXPECT_EQ(done, Lines({"stopped"}));
  EXPECT_EQ(inspect(id)->status, FiberStatus::kAborted);
}

TEST_F(ManagedFiberTest, AnInterruptedFiberCanBeCancelled) {
  hook_failures = 1;
  const std::string id = interrupt();
  agent_.wake();
  EXPECT_EQ(inspect(id)->status, FiberStatus::kRecovering);
  EXPECT_TRUE(manager().cancel_fiber(id));
  host_.advance(minutes(10));
  EXPECT_EQ(offered.size(), 1U);
}

// ---- retries ----------------------------------------------------------------------------------------------

TEST_F(ManagedFiberTest, FailedWorkBeginsAgainWithTheSameFunction) {
  failures_left = 2;
  const std::string id = manager().begin_flaky(2).record.id;
  const auto record = inspect(id);
  EXPECT_EQ(record->status, FiberStatus::kPending);
  EXPECT_EQ(record->failures, 1);
  EXPECT_EQ(record->error, "broken");
  EXPECT_EQ(*record->next_at - manager().now(), seconds(1));
  host_.advance(seconds(1));
  EXPECT_EQ(done.size(), 2U);
  EXPECT_EQ(*inspect(id)->next_at - manager().now(), seconds(2));
  host_.advance(seconds(2));
  EXPECT_EQ(inspect(id)->result, "worked");
  EXPECT_TRUE(offered.empty());  // the hook was not needed
}

TEST_F(ManagedFiberTest, WorkThatFailsTooOftenIsAnError) {
  failures_left = 99;
  const std::string id = manager().begin_flaky(2).record.id;
  host_.advance(minutes(1));
  EXPECT_EQ(done.size(), 3U);
  EXPECT_EQ(inspect(id)->status, FiberStatus::kError);
  EXPECT_FALSE(inspect(id)->dead);
}

TEST_F(ManagedFiberTest, InALaterInstanceARetryIsOfferedToTheHook) {
  failures_left = 1;
  const std::string id = manager().begin_flaky(5).record.id;
  agent_.kill();
  host_.advance(seconds(1));
  ASSERT_EQ(offered.size(), 1U);
  EXPECT_EQ(offered[0].id, id);
  EXPECT_EQ(offered[0].reason, "retry");
  EXPECT_EQ(offered[0].managed->failures, 1);
}

TEST_F(ManagedFiberTest, ACancelEndsTheRetries) {
  failures_left = 99;
  const std::string id = manager().begin_flaky(5).record.id;
  EXPECT_TRUE(manager().cancel_fiber(id));
  host_.advance(minutes(10));
  EXPECT_EQ(done.size(), 1U);
}

// ---- recovery ---------------------------------------------------------------------------------------------

TEST_F(ManagedFiberTest, AnInterruptedFiberIsOfferedWithItsRecord) {
  const std::string id = interrupt({.idempotency_key = "k", .input = "in", .metadata = "meta"});
  agent_.wake();
  ASSERT_EQ(offered.size(), 1U);
  EXPECT_EQ(offered[0].id, id);
  EXPECT_EQ(offered[0].reason, "interrupted");
  EXPECT_EQ(offered[0].snapshot, 1);
  EXPECT_EQ(offered[0].managed->status, FiberStatus::kRecovering);
  EXPECT_EQ(offered[0].managed->key, "k");
  EXPECT_EQ(offered[0].managed->input, "in");
  EXPECT_EQ(offered[0].managed->metadata, "meta");
}

TEST_F(ManagedFiberTest, AContinuationKeepsTheIdAndTheCheckpoint) {
  const std::string id = interrupt();
  agent_.wake();
  EXPECT_EQ(inspect(id)->status, FiberStatus::kRunning);
  EXPECT_EQ(inspect(id)->snapshot, 1);
  host_.advance(milliseconds(20));
  EXPECT_EQ(inspect(id)->result.at("id"), id);
  EXPECT_EQ(done, Lines({"step 1", "step 2", "step 3"}));
}

TEST_F(ManagedFiberTest, AKillInsideTheHookOffersItAgain) {
  how = "slow";
  const std::string id = interrupt();
  agent_.wake();
  agent_.kill();
  EXPECT_EQ(inspect(id)->status, FiberStatus::kRecovering);
  host_.advance(minutes(1));
  EXPECT_EQ(offered.size(), 2U);
  EXPECT_EQ(offered[1].attempt, 2);
  EXPECT_EQ(inspect(id)->status, FiberStatus::kCompleted);
}

TEST_F(ManagedFiberTest, NobodyGoesOnMeansInterruptedUntilItIsResolved) {
  how = "nothing";
  const std::string id = interrupt();
  agent_.wake();
  EXPECT_EQ(inspect(id)->status, FiberStatus::kInterrupted);
  EXPECT_EQ(inspect(id)->snapshot, 1);
  EXPECT_EQ(manager().delete_fibers(), 0U);
  FiberOutcome outcome = FiberOutcome::completed(5);
  outcome.metadata = "by hand";
  EXPECT_TRUE(manager().resolve_fiber(id, outcome));
  EXPECT_FALSE(manager().resolve_fiber(id, outcome));
  EXPECT_EQ(inspect(id)->status, FiberStatus::kCompleted);
  EXPECT_EQ(inspect(id)->result, 5);
  EXPECT_EQ(inspect(id)->metadata, "by hand");
  EXPECT_EQ(manager().delete_fibers(), 1U);
}

TEST_F(ManagedFiberTest, TheHooksOutcomeIsTheRecords) {
  how = "failed";
  const std::string id = interrupt();
  agent_.wake();
  const auto record = inspect(id);
  EXPECT_EQ(record->status, FiberStatus::kError);
  EXPECT_EQ(record->error, "lost");
  EXPECT_EQ(record->snapshot, "last words");
  EXPECT_EQ(record->metadata, "changed");
  EXPECT_FALSE(record->dead);
}

TEST_F(ManagedFiberTest, OnlyContinueFiberContinuesAManagedOne) {
  how = "spawn";
  const std::string id = interrupt();
  agent_.wake();
  EXPECT_EQ(inspect(id)->status, FiberStatus::kInterrupted);
}

TEST_F(ManagedFiberTest, AHookThatFailsTooOftenLeavesADeadOneThatCanBeRetried) {
  hook_failures = 10;
  const std::string id = interrupt();
  host_.advance(minutes(60));
  EXPECT_EQ(offered.size(), 10U);
  const auto dead = manager().list_fibers({.dead = true});
  ASSERT_EQ(dead.size(), 1U);
  EXPECT_EQ(dead[0].status, FiberStatus::kError);
  EXPECT_EQ(dead[0].error, "not now");
  EXPECT_EQ(manager().list_dead_fibers().size(), 1U);
  EXPECT_TRUE(manager().retry_fiber(id));
  EXPECT_FALSE(manager().retry_fiber(id));
  host_.advance(milliseconds(20));
  EXPECT_EQ(offered.size(), 11U);
  EXPECT_EQ(offered.back().attempt, 1);
  EXPECT_EQ(inspect(id)->status, FiberStatus::kCompleted);
}

TEST_F(ManagedFiberTest, AllDeadFibersAreListedOfEitherKind) {
  hook_failures = 99'999;
  for (int i = 0; i < 101; ++i)
    manager().spawn_fiber("plain " + std::to_string(i),
                          [](FiberContext&) -> Task<void> { co_await std::suspend_always(); });
  const std::string id = interrupt();
  host_.advance(minutes(300));
  const auto dead = manager().list_dead_fibers();
  ASSERT_EQ(dead.size(), 102U);
  EXPECT_EQ(dead.front().name, "plain 0");
  EXPECT_EQ(dead.front().attempts, 10);
  EXPECT_EQ(dead.front().last_error, "not now");
  EXPECT_FALSE(dead.front().managed);
  EXPECT_EQ(dead.back().id, id);
  EXPECT_EQ(dead.back().snapshot, 1);
  EXPECT_EQ(dead.back().last_error, "not now");
  EXPECT_TRUE(dead.back().managed);
}

TEST_F(ManagedFiberTest, WithoutTheHookAnInterruptedOneIsKept) {
  class Plain : public hearth::Agent {};
  auto plain = host_.create<Plain>("p");
  auto forever = [](FiberContext&) -> Task<void> { co_await std::suspend_always(); };
  const std::string id = plain.as<Plain>().start_fiber("forever", forever).record.id;
  plain.kill();
  host_.advance(seconds(0));
  EXPECT_EQ(plain.as<Plain>().inspect_fiber(id)->status, FiberStatus::kInterrupted);
}

TEST_F(ManagedFiberTest, OutcomesAreForTheManagedFiberOfTheHook) {
  RecoveredFiber other;
  other.id = "other";
  EXPECT_THROW(manager().settle_fiber(other, FiberOutcome::completed()), hearth::Error);
  how = "completed";
  manager().spawn_fiber("plain",
                        [](FiberContext&) -> Task<void> { co_await std::suspend_always(); });
  agent_.kill();
  agent_.wake();
  EXPECT_EQ(agent_.fibers().at(0).last_error, "this fiber is not managed: it has no outcome");
}

// ---- several at once --------------------------------------------------------------------------------------

TEST_F(ManagedFiberTest, SeveralAreRecoveredInTheOrderOfTheClass) {
  for (const char* const name : {"one", "two", "three"}) manager().begin({}, name);
  agent_.kill();
  plan.order = {"three"};
  agent_.wake();
  EXPECT_EQ(done.front(), "asked for 3");
  ASSERT_EQ(offered.size(), 3U);
  EXPECT_EQ(offered[0].name, "three");
  EXPECT_EQ(offered[1].name, "one");
  EXPECT_EQ(offered[2].name, "two");
}

TEST_F(ManagedFiberTest, AsManyHooksRunAtOnceAsTheClassSays) {
  how = "slow";
  for (const char* const name : {"one", "two", "three"}) manager().begin({}, name);
  agent_.kill();
  plan.parallel = 2;
  agent_.wake();
  EXPECT_EQ(offered.size(), 2U);
  host_.advance(milliseconds(50));
  EXPECT_EQ(offered.size(), 3U);
}

// ---- on_fiber_complete ------------------------------------------------------------------------------------

TEST_F(ManagedFiberTest, EachEndIsTold) {
  manager().begin();
  failures_left = 1;
  manager().begin_flaky(0);
  const std::string id = manager().begin({}, "third").record.id;
  manager().cancel_fiber(id);
  host_.advance(milliseconds(30));
  EXPECT_EQ(told, Lines({"flaky error", "third aborted", "work completed"}));
}

TEST_F(ManagedFiberTest, AnEndThatWasNotHeardIsToldAgain) {
  manager().tell_failures = 1;
  manager().begin();
  host_.advance(seconds(2));
  EXPECT_EQ(told, Lines({"work completed", "work completed"}));
  EXPECT_EQ(host_.log(), Lines({"error on_fiber_complete failed: deaf"}));
}

TEST_F(ManagedFiberTest, AnEndThatAKillKeptFromBeingHeardIsToldByTheNextInstance) {
  manager().begin();
  host_.advance(milliseconds(30));  // it waits in the hook
  agent_.kill();
  host_.advance(seconds(2));
  EXPECT_EQ(told, Lines({"work completed", "work completed"}));
}

// ---- records ----------------------------------------------------------------------------------------------

TEST_F(ManagedFiberTest, RecordsAreFoundByKeyAndListedNewestFirst) {
  const std::string a = manager().begin({.idempotency_key = "a"}, "x").record.id;
  host_.advance(milliseconds(30));
  const auto later = manager().now();
  const std::string b = manager().begin({}, "y").record.id;
  EXPECT_EQ(manager().inspect_fiber_by_key("a")->id, a);
  EXPECT_EQ(manager().inspect_fiber_by_key("b"), std::nullopt);
  const auto ids = [&](const FiberFilter& filter) {
    Lines all;
    for (const FiberRecord& each : manager().list_fibers(filter)) all.push_back(each.id);
    return all;
  };
  EXPECT_EQ(ids({}), Lines({b, a}));
  EXPECT_EQ(ids({.statuses = {FiberStatus::kCompleted, FiberStatus::kError}}), Lines({a}));
  EXPECT_EQ(ids({.name = "y"}), Lines({b}));
  EXPECT_EQ(ids({.before = later}), Lines({a}));
  EXPECT_EQ(ids({.after = b}), Lines({a}));
  EXPECT_EQ(ids({.limit = 1}), Lines({b}));
  EXPECT_EQ(agent_.call("records"), Json({agent_.managed_fibers()[1], agent_.managed_fibers()[0]}));
}

TEST_F(ManagedFiberTest, OnlySettledRecordsAreDeleted) {
  manager().begin();
  host_.advance(milliseconds(30));
  manager().begin();
  EXPECT_EQ(manager().delete_fibers({.statuses = {FiberStatus::kRunning}}), 0U);
  EXPECT_EQ(manager().delete_fibers(), 1U);
  EXPECT_EQ(agent_.managed_fibers().size(), 1U);
}

TEST_F(ManagedFiberTest, TheEndOfTheAgentFreesFunctionsThatWaitForARetry) {
  const auto captured = std::make_shared<int>(1);
  auto failing = [captured](FiberContext&) { throw std::runtime_error("broken"); };
  manager().start_fiber("failing", failing, {.max_retries = 1});
  EXPECT_EQ(captured.use_count(), 3);  // here, in `failing`, and kept
  agent_.evict();
  EXPECT_EQ(captured.use_count(), 2);
}

}  // namespace
