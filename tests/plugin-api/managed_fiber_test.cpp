// Managed fibers on the mock host: acceptance, results, cancel, retries, records. Recovery:
// managed_fiber_recovery_test.cpp.

#include "managed_fiber_fixture.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

namespace managed_fiber_tests {
namespace {

using std::chrono::minutes;
using std::chrono::seconds;

class ManagedFiberTest : public ManagedFiberFixture {};

// ---- acceptance ---------------------------------------------------------------------------------

TEST_F(ManagedFiberTest, IsAcceptedAsPendingAndRunsToItsStoredResult) {
  const StartedFiber started = manager().begin({.key = "k", .input = {{"n", 1}}, .metadata = "m"});
  EXPECT_TRUE(started.accepted);
  EXPECT_EQ(started.record.status, FiberStatus::kPending);
  EXPECT_EQ(started.record.id.size(), 36U);
  EXPECT_EQ(inspect(started.record.id)->status, FiberStatus::kRunning);
  host_.advance(milliseconds(20));
  EXPECT_EQ(inspect(started.record.id)->snapshot, 2);
  host_.advance(milliseconds(10));
  const Json result = {{"steps", 3}, {"id", started.record.id}};
  EXPECT_EQ(record(started.record.id, {"status", "result", "snapshot", "key", "input", "metadata"}),
            Json({"completed", result, 3, "k", {{"n", 1}}, "m"}));
  const auto ended = inspect(started.record.id);
  EXPECT_EQ(*ended->completed_at - ended->created_at, milliseconds(30));
  EXPECT_TRUE(agent_.fibers().empty());
}

TEST_F(ManagedFiberTest, TheSameKeyOrIdIsAcceptedOnce) {
  const StartedFiber first = manager().begin({.key = "k"});
  const StartedFiber second = manager().begin({.key = "k"});
  EXPECT_FALSE(second.accepted);
  EXPECT_EQ(second.record.id, first.record.id);
  EXPECT_EQ(second.record.status, FiberStatus::kRunning);
  EXPECT_TRUE(manager().begin({.id = "mine"}).accepted);
  EXPECT_FALSE(manager().begin({.id = "mine"}).accepted);
  host_.advance(milliseconds(30));
  EXPECT_FALSE(manager().begin({.key = "k"}).accepted);
  EXPECT_EQ(done.size(), 6U);  // two fibers of three steps
}

TEST_F(ManagedFiberTest, TheSameKeyWithOtherWorkIsAConflict) {
  manager().begin({.key = "k", .input = 1});
  EXPECT_EQ(status_of({.key = "k", .input = 2}), HEARTH_E_CONFLICT);
  EXPECT_EQ(status_of({.key = "k", .input = 1}, "other"), HEARTH_E_CONFLICT);
  EXPECT_EQ(status_of({.key = "k", .input = 1, .metadata = "may differ"}), HEARTH_OK);
  manager().begin({.id = "mine"});
  EXPECT_EQ(status_of({.id = "mine", .key = "k", .input = 1}), HEARTH_E_INVALID);
}

TEST_F(ManagedFiberTest, ASettledKeyIsJoinedRejectedOrReplaced) {
  const std::string id = manager().begin({.key = "k"}).record.id;
  EXPECT_EQ(status_of({.key = "k", .policy = FiberPolicy::kReject}), HEARTH_OK);
  host_.advance(milliseconds(30));
  EXPECT_EQ(status_of({.key = "k", .policy = FiberPolicy::kReject}), HEARTH_E_CONFLICT);
  EXPECT_EQ(manager().begin({.key = "k"}).record.id, id);
  const StartedFiber next = manager().begin({.key = "k", .policy = FiberPolicy::kReplace});
  EXPECT_TRUE(next.accepted);
  EXPECT_NE(next.record.id, id);
  EXPECT_EQ(inspect(id), std::nullopt);
}

TEST_F(ManagedFiberTest, BlankIdsKeysAndBadOptionsAreRefused) {
  EXPECT_EQ(status_of({.id = ""}), HEARTH_E_INVALID);
  EXPECT_EQ(status_of({.id = "  "}), HEARTH_E_INVALID);
  EXPECT_EQ(status_of({.key = ""}), HEARTH_E_INVALID);
  EXPECT_EQ(status_of({.key = "\t"}), HEARTH_E_INVALID);
  EXPECT_EQ(status_of({.max_retries = -1}), HEARTH_E_INVALID);
  EXPECT_EQ(status_of({.retry_delay = milliseconds(0)}), HEARTH_E_INVALID);
  EXPECT_EQ(status_of({.retry_delay = seconds(2), .max_retry_delay = seconds(1)}),
            HEARTH_E_INVALID);
  EXPECT_EQ(status_of({}, ""), HEARTH_E_INVALID);
  EXPECT_EQ(agent_.fiber_records(), Json::array());
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
    const std::string id =
        manager().start_fiber("plain", function, {.keep_record = true}).record.id;
    return inspect(id)->result;
  };
  EXPECT_EQ(result([](FiberContext&) { return std::string("text"); }), "text");
  EXPECT_EQ(result([](FiberContext&) { return std::vector<int>({1, 2}); }), Json({1, 2}));
  EXPECT_EQ(result([](FiberContext&) { return std::optional<int>(); }), nullptr);
  EXPECT_EQ(result([](FiberContext&) {}), nullptr);
  EXPECT_FALSE(hearth::detail::kIsResult<Special>);
  EXPECT_EQ(
      manager()
          .start_fiber("odd", [](FiberContext&) { return Unwritable(); }, {.keep_record = true})
          .record.status,
      FiberStatus::kPending);
  EXPECT_EQ(manager().list_fibers({.name = "odd"}).at(0).error, "cannot be written");
  const std::string id = manager()
                             .start_fiber("bad", [](FiberContext&) { return std::string("\xff"); },
                                          {.keep_record = true})
                             .record.id;
  EXPECT_EQ(inspect(id)->status, FiberStatus::kError);
  EXPECT_EQ(inspect(id)->error, "a slice has a length but no bytes, or a text is not UTF-8");
}

// ---- waiting ------------------------------------------------------------------------------------

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
  EXPECT_EQ(fields(agent_.call("wait", id), {"status", "error", "failures"}),
            Json({"error", "broken", 1}));
  EXPECT_EQ(agent_.start("result", id).error(), "fiber flaky is error: broken");
  EXPECT_EQ(host_.log(), Lines({"error fiber flaky failed: broken"}));
}

TEST_F(ManagedFiberTest, WhoWaitsForRecoveredWorkIsReleasedByItsEnd) {
  const std::string id = interrupt();
  auto wait = agent_.start("wait", id);
  EXPECT_FALSE(wait.done());
  host_.advance(milliseconds(20));
  EXPECT_EQ(wait.value().at("status"), "completed");
  EXPECT_EQ(done, Lines({"step 1", "asked for 1", "step 2", "step 3"}));
}

TEST_F(ManagedFiberTest, WhoWaitsIsReleasedByTheOutcomeOfAHook) {
  how = "completed";
  const std::string id = interrupt_and_wake();
  EXPECT_EQ(agent_.call("wait", id).at("result"), Json({{"by", "the hook"}}));
}

// Between the end of a hook and the event that tells of it, another call may remove the record.
TEST_F(ManagedFiberTest, ARecordThatIsDeletedBeforeItsEndWasToldReleasesWhoWaitsWithItsOutcome) {
  how = "slow, and let go";
  const std::string id = interrupt();
  auto wait = agent_.start("wait", id);
  auto clear = agent_.start("clear");
  host_.advance(milliseconds(50));
  EXPECT_EQ(clear.value(), 1);
  EXPECT_EQ(told, Lines()) << "it came too late to be told";
  ASSERT_TRUE(wait.done());
  EXPECT_EQ(wait.value().at("status"), "interrupted");
  EXPECT_EQ(agent_.fiber_records().size(), 0U);
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
  how = "slow, and let go";
  const std::string id = interrupt();
  auto wait = agent_.start("wait", id);
  auto clear = agent_.start("clear_behind_the_back");
  host_.advance(milliseconds(50));
  EXPECT_EQ(clear.value(), 1);
  ASSERT_TRUE(wait.done());
  EXPECT_EQ(wait.error(), "the record of this fiber was removed");
}

TEST_F(ManagedFiberTest, ADeletionLeavesThoseWhoWaitForWorkThatRunsAlone) {
  how = "slow, and let go";
  const std::string id = manager().begin().record.id;
  auto wait = agent_.start("wait", id);
  manager().delete_fibers();
  host_.advance(milliseconds(29));
  EXPECT_FALSE(wait.done());
  host_.advance(milliseconds(1));
  EXPECT_EQ(wait.value().at("status"), "completed");
}

// ---- cancel -------------------------------------------------------------------------------------

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
      manager().start_fiber("patient", patient, {.key = "k", .keep_record = true}).record.id;
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
  const std::string id = interrupt_and_wake();
  EXPECT_EQ(inspect(id)->status, FiberStatus::kRecovering);
  EXPECT_TRUE(manager().cancel_fiber(id));
  host_.advance(minutes(10));
  EXPECT_EQ(offered.size(), 1U);
}

// ---- retries ------------------------------------------------------------------------------------

TEST_F(ManagedFiberTest, FailedWorkBeginsAgainWithTheSameFunction) {
  failures_left = 2;
  const std::string id = manager().begin_flaky(2).record.id;
  EXPECT_EQ(record(id, {"status", "failures", "error"}), Json({"pending", 1, "broken"}));
  // The wait doubles, and up to a quarter of it is added.
  const auto first = *inspect(id)->next_at - manager().now();
  EXPECT_TRUE(first >= seconds(1) && first <= milliseconds(1250)) << first.count();
  host_.advance(first);
  EXPECT_EQ(done.size(), 2U);
  const auto second = *inspect(id)->next_at - manager().now();
  EXPECT_TRUE(second >= seconds(2) && second <= milliseconds(2500)) << second.count();
  host_.advance(second);
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
  host_.advance(milliseconds(1250));
  ASSERT_EQ(offered.size(), 1U);
  EXPECT_EQ(offered[0].id, id);
  EXPECT_EQ(offered[0].reason, "retry");
  EXPECT_EQ(offered[0].record->failures, 1);
}

TEST_F(ManagedFiberTest, ACancelEndsTheRetries) {
  failures_left = 99;
  const std::string id = manager().begin_flaky(5).record.id;
  EXPECT_TRUE(manager().cancel_fiber(id));
  host_.advance(minutes(10));
  EXPECT_EQ(done.size(), 1U);
}

// ---- on_fiber_complete --------------------------------------------------------------------------

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

// ---- records ------------------------------------------------------------------------------------

TEST_F(ManagedFiberTest, RecordsAreFoundByKeyAndListedNewestFirst) {
  const std::string a = manager().begin({.key = "a"}, "x").record.id;
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
  EXPECT_EQ(agent_.call("records"), Json({agent_.fiber_records()[1], agent_.fiber_records()[0]}));
}

TEST_F(ManagedFiberTest, OnlySettledRecordsAreDeleted) {
  manager().begin();
  host_.advance(milliseconds(30));
  manager().begin();
  EXPECT_EQ(manager().delete_fibers({.statuses = {FiberStatus::kRunning}}), 0U);
  EXPECT_EQ(manager().delete_fibers(), 1U);
  EXPECT_EQ(agent_.fiber_records().size(), 1U);
}

TEST_F(ManagedFiberTest, TheEndOfTheAgentFreesFunctionsThatWaitForARetry) {
  const auto captured = std::make_shared<int>(1);
  auto failing = [captured](FiberContext&) { throw std::runtime_error("broken"); };
  manager().start_fiber("failing", failing, {.keep_record = true, .max_retries = 1});
  EXPECT_EQ(captured.use_count(), 3);  // here, in `failing`, and kept
  agent_.evict();
  EXPECT_EQ(captured.use_count(), 2);
}

}  // namespace
}  // namespace managed_fiber_tests
