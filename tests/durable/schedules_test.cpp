// Schedules as their author sees them: making, finding, ending, pausing, over restarts.
//
// The behaviours that a user of a comparable platform expects, and the test of each. "runs":
// schedule_runs_test.cpp; "misfire": schedule_misfire_test.cpp; "runtime": the tests of that layer.
// "ours" is a rule that differs on purpose.
//
//   66, 68                CancelOfAnUnknownIdIsNotFound
//   67, 72                CancelTakesTheRow
//   69                    GetGivesTheRecordThatCreateGave
//   70, 122               ARecordHasExactlyThePublicMembers (ours has more)
//   71                    AnIntervalKeepsItsTypeLengthAndCallback
//   73                    ListFiltersByTypeCallbackStateAndTime
//   74                    runs: AThrowingIntervalSurvives
//   75                    runs: AfterARunNothingSaysRunning
//   76                    runs: ARunOfThisInstanceIsNotBegunASecondTime (ours: known in memory)
//   77, 78                runs: ARunOfADeadInstanceIsDueAtOnce (ours: no time limit, no age)
//   79, 80, 100, 118      runtime
//   81, 98                RepeatedCreationInEachStartMakesOneRow
//   82 to 86              ACronScheduleIsFoundAgainByItsContent
//   87 to 90              ADelayIsFoundAgainOnlyIfThatIsAskedFor
//   91                    ADatedScheduleIsFoundAgainWhateverItsDate
//   92, 93                misfire: ManyDueOneShotRowsOfOneCallbackAreTold
//   94, 97                AnIntervalIsFoundAgainByItsLengthCallbackAndPayload
//   95, 96                AHitStaysArmedAndAnOverdueOneStaysDue
//   99                    runs: APersistedIntervalRunsInANewInstance
//   101, 102, 116         runs: AnEndOnPurposeKeepsTheRowAndCountsForNothing
//   103, 104, 115         runs: AnyErrorIsTriedAgainAndThenTheOneShotRowGoes (ours: no text counts)
//   105, 106, 110 to 112  runs: AHostFailureNeverTakesARow (ours: the host knows by itself)
//   107                   runs: P1_ARunThatKillsTheProcessAgainAndAgainIsDeadAndKept (ours: kept)
//   108                   runs: ARunThatComesToAnEndForgetsTheInterruptions
//   109                   runs: FailuresAreNoInterruptions
//   113, 114, 123         runs: ARunIsTriedAgainUntilItSucceeds
//   117                   none: there are no error texts to tell apart
//   124, G14              schedule_rules_test.cpp, retry_policy_test.cpp
//   G8                    ACallbackMayScheduleItselfAnew
//   G10                   cron_dst_test.cpp; misfire: Misfire*;
//                         PauseHoldsBackAndWhatWasMissedIsAMisfire
//   G11                   runs: AFixedRateKeepsItsBeat
//   G12                   runs: TheRecordTellsOfTheLastRun
//   G13                   runs: P5_ASlowRunHoldsUpNobody
//   G15                   runs: R12_AMissingCallbackIsKeptAndTriedAgain
#include "durable/schedules.hpp"

#include "durable/schedules_fixture.hpp"

#include <algorithm>
#include <set>

namespace hearth::durable {
namespace {

using namespace std::chrono_literals;
using std::chrono::milliseconds;

class SchedulesTest : public SchedulesFixture {};

TEST_F(SchedulesTest, AnAgentWithoutSchedulesHasNoTableAndNeedsNoWake) {
  EXPECT_TRUE(schedules_->wake().none());
  EXPECT_FALSE(schedules_->due());
  EXPECT_FALSE(begin());
  EXPECT_EQ(schedules_->list({}), "[]");
  EXPECT_EQ(schedules_->get("x").error().code, Errc::kNotFound);
  EXPECT_EQ(schedules_->cancel("x").error().code, Errc::kNotFound);
  set_wall_by(-5h);
  EXPECT_TRUE(schedules_->wake().none());
  EXPECT_FALSE(begin());
  EXPECT_FALSE(database_->exists());
}

TEST_F(SchedulesTest, ScheduleAndWakeAreOneTransaction) {
  ASSERT_TRUE(schedules_->create(delay(10)).has_value());
  EXPECT_TRUE(database_->dirty()) << "it is the caller who commits";
  crash();
  EXPECT_EQ(schedules_->size(), 0U);
  EXPECT_TRUE(schedules_->wake().none());
  create(delay(10));
  crash();
  EXPECT_EQ(schedules_->wake().at_ms, now() + 10);
}

TEST_F(SchedulesTest, EachTypeIsDueAtItsTime) {
  create(delay(2'500));
  EXPECT_EQ(schedules_->wake().at_ms, now() + 2'500);
  create(at(now() + 1'234));
  EXPECT_EQ(schedules_->wake().at_ms, now() + 1'234) << "to the millisecond";
  create(every(70));
  EXPECT_EQ(schedules_->wake().at_ms, now() + 70);
  const auto daily = create(cron("0 9 * * *", "Europe/Berlin"));
  EXPECT_EQ(record(daily.id)["time"], now() + milliseconds(8h).count());
  const auto past = create(at(1));
  EXPECT_TRUE(schedules_->due()) << "a date that is past is due at once";
  EXPECT_EQ(body(*begin())["id"], past.id);
}

TEST_F(SchedulesTest, CancelOfAnUnknownIdIsNotFound) {
  create(delay(10));
  EXPECT_EQ(schedules_->get("unknown").error().code, Errc::kNotFound);
  EXPECT_EQ(schedules_->cancel("unknown").error().code, Errc::kNotFound);
  EXPECT_EQ(schedules_->pause("unknown", true).error().code, Errc::kNotFound);
  EXPECT_EQ(schedules_->retry("unknown").error().code, Errc::kNotFound);
}

TEST_F(SchedulesTest, CancelTakesTheRow) {
  for (const ScheduleRequest& request : {delay(10), every(1'000)}) {
    const auto created = create(request);
    ASSERT_TRUE(schedules_->cancel(created.id));
    database_->commit();
    EXPECT_EQ(schedules_->get(created.id).error().code, Errc::kNotFound);
    EXPECT_EQ(schedules_->cancel(created.id).error().code, Errc::kNotFound);
    EXPECT_TRUE(schedules_->wake().none());
    clock_.advance(5s);
    EXPECT_FALSE(begin());
    crash();
    EXPECT_EQ(list().size(), 0U);
  }
}

TEST_F(SchedulesTest, GetGivesTheRecordThatCreateGave) {
  ScheduleRequest request = delay(10);
  request.payload = R"({"b":1,"a":[true]})";
  const auto created = create(request);
  EXPECT_TRUE(created.created);
  EXPECT_EQ(*schedules_->get(created.id), created.record);
  crash();
  EXPECT_EQ(*schedules_->get(created.id), created.record);
  EXPECT_NE(created.record.find(request.payload), std::string::npos) << "the payload as it came";
}

TEST_F(SchedulesTest, ARecordHasExactlyThePublicMembers) {
  ScheduleRequest request = with_attempts(cron("0 9 * * mon-fri", "Europe/Berlin", "report"), 5);
  request.retry_base_ms = 50;
  request.retry_max_ms = 500;
  request.misfire = Misfire::kAll;
  request.misfire_limit = 7;
  request.overlap = Overlap::kQueue;
  Json expected = *parse_json(R"({"callback":"report","payload":null,"type":"cron",
    "cron":"0 9 * * mon-fri","time_zone":"Europe/Berlin","fixed_rate":false,
    "retry":{"max_attempts":5,"base_delay_ms":50,"max_delay_ms":500},
    "misfire":"all","misfire_limit":7,"overlap":"queue","state":"waiting","runs":0,"failures":0,
    "last_run":null,"last_error":null})");
  const auto weekdays = create(request);
  expected["id"] = weekdays.id;
  expected["created_at"] = now();
  expected["time"] = now() + milliseconds(8h).count();
  EXPECT_EQ(record(weekdays.id), expected);

  const Json delayed = record(create(delay(40)).id);
  std::set<std::string> names;
  for (const auto& item : delayed.items()) names.insert(item.key());
  EXPECT_EQ(names, (std::set<std::string>{"id", "callback", "payload", "type", "time", "delay_ms",
                                          "fixed_rate", "retry", "misfire", "misfire_limit",
                                          "overlap", "state", "created_at", "runs", "failures",
                                          "last_run", "last_error"}));
  EXPECT_EQ(delayed["delay_ms"], 40);
  EXPECT_EQ(delayed["retry"]["max_attempts"], 3);
  EXPECT_EQ(delayed["misfire_limit"], 10);
}

TEST_F(SchedulesTest, AnIntervalKeepsItsTypeLengthAndCallback) {
  const Json interval = record(create(every_fixed(1'500, "beat")).id);
  EXPECT_TRUE(has(interval, R"({"type":"interval","interval_ms":1500,"callback":"beat",)"
                            R"("fixed_rate":true})"));
}

// ---- lists --------------------------------------------------------------------------------------

TEST_F(SchedulesTest, ListFiltersByTypeCallbackStateAndTime) {
  create(delay(300, "a"));
  create(every(200, "b"));
  const auto paused = create(at(now() + 100, "a"));
  ASSERT_TRUE(schedules_->pause(paused.id, true));
  create(cron("@daily", "", "b"));
  const auto types = [this](const ScheduleFilter& filter) {
    std::string found;
    for (const Json& each : list(filter)) found += each["type"].get<std::string>() + " ";
    return found;
  };
  EXPECT_EQ(types({}), "at interval delay cron ") << "next due first";
  EXPECT_EQ(types({.type = ScheduleType::kInterval}), "interval ");
  EXPECT_EQ(types({.callback = "a"}), "at delay ");
  EXPECT_EQ(types({.callback = "a", .state = "paused"}), "at ");
  EXPECT_EQ(types({.from_ms = now() + 200}), "interval delay cron ");
  EXPECT_EQ(types({.from_ms = now() + 200, .until_ms = now() + 300}), "interval ");
  EXPECT_EQ(types({.limit = 2}), "at interval ");
  EXPECT_EQ(types({.state = "no such state"}), "");
}

TEST_F(SchedulesTest, AListIsReadInPagesAlsoThroughEqualTimesAndDeadRows) {
  allow_crashes(1);
  create(delay(0, "dies"));
  crash_in_runs(1);
  EXPECT_FALSE(begin());
  for (const char* name : {"a", "b", "c", "d"}) create(delay(100, name));
  std::string all;
  std::string last;
  for (int page = 0; page < 10; ++page) {
    const Json records = list({.after = last, .limit = 2});
    if (records.empty()) break;
    for (const Json& each : records) all += each["callback"].get<std::string>() + " ";
    last = records.back()["id"].get<std::string>();
  }
  EXPECT_EQ(all, "a b c d dies ") << "by time, then by age; what is never due comes last";
  EXPECT_EQ(list({.after = "no such id"}).size(), 0U);
}

TEST_F(SchedulesTest, AListOfLargePayloadsIsBoundedInBytes) {
  const std::string large = "\"" + std::string(std::size_t{1} << 19, 'x') + "\"";
  for (int i = 0; i < 20; ++i) {
    ScheduleRequest request = delay(10 + i);
    request.payload = large;
    create(request);
  }
  const std::string page = schedules_->list({});
  EXPECT_LE(page.size(), (std::size_t{8} << 20) + 2);
  EXPECT_GE(parse_json(page)->size(), 10U);
}

// ---- the same again -----------------------------------------------------------------------------

TEST_F(SchedulesTest, ACronScheduleIsFoundAgainByItsContent) {
  ScheduleRequest request = cron("*/5 * * * *");
  request.payload = R"({"a":1,"b":[2]})";
  const auto first = create(request);
  request.payload = R"( { "b" : [2], "a" : 1 } )";
  request.cron = " */5  * * * * ";
  request.time_zone = "UTC";
  for (int i = 0; i < 5; ++i) {
    const auto again = create(request);
    EXPECT_EQ(again.id, first.id) << "82, 83: however its JSON is written";
    EXPECT_FALSE(again.created);
    EXPECT_EQ(again.record, first.record);
  }
  EXPECT_EQ(schedules_->size(), 1U);
  request.cron = "*/6 * * * *";
  EXPECT_TRUE(create(request).created) << "84: another expression";
  request.cron = "*/5 * * * *";
  request.payload = R"({"a":2,"b":[2]})";
  EXPECT_TRUE(create(request).created) << "85: another payload";
  request.payload = R"({"a":1,"b":[2]})";
  request.time_zone = "Europe/Berlin";
  EXPECT_TRUE(create(request).created) << "another zone";
  request.time_zone = "";
  request.callback = "tock";
  EXPECT_TRUE(create(request).created) << "another callback";
  request.callback = "tick";
  request.idempotent = Idempotent::kNo;
  EXPECT_TRUE(create(request).created) << "86: asked for a second one";
  EXPECT_EQ(schedules_->size(), 6U);
}

TEST_F(SchedulesTest, ADelayIsFoundAgainOnlyIfThatIsAskedFor) {
  ScheduleRequest request = delay(1'000);
  EXPECT_NE(create(request).id, create(request).id) << "90";
  request.callback = "once";
  request.idempotent = Idempotent::kYes;
  const auto first = create(request);
  request.when_ms = 77;
  for (int i = 0; i < 10; ++i) {
    EXPECT_EQ(create(request).id, first.id) << "87, 88: whatever its length";
    crash();
  }
  EXPECT_EQ(record(first.id)["delay_ms"], 1'000);
  request.payload = "1";
  EXPECT_TRUE(create(request).created) << "89";
  request = at(now() + 5'000, "once");
  request.idempotent = Idempotent::kYes;
  EXPECT_TRUE(create(request).created) << "another type";
}

TEST_F(SchedulesTest, ADatedScheduleIsFoundAgainWhateverItsDate) {
  ScheduleRequest request = with(at(now() + 1'000), Idempotent::kYes);
  const auto first = create(request);
  request.when_ms = now() + 9'000;
  EXPECT_EQ(create(request).id, first.id);
  EXPECT_EQ(record(first.id)["time"], now() + 1'000);
}

TEST_F(SchedulesTest, AnIntervalIsFoundAgainByItsLengthCallbackAndPayload) {
  const auto first = create(every(1'000));
  EXPECT_EQ(create(every(1'000)).id, first.id);
  EXPECT_TRUE(create(every(2'000)).created);
  EXPECT_TRUE(create(every(1'000, "tock")).created);
  ScheduleRequest other = every(1'000);
  other.payload = "7";
  EXPECT_EQ(record(create(other).id)["payload"], 7);
  EXPECT_EQ(schedules_->size(), 4U);
}

TEST_F(SchedulesTest, RepeatedCreationInEachStartMakesOneRow) {
  for (int start = 0; start < 5; ++start) {
    create(every(60'000));
    crash();
  }
  EXPECT_EQ(schedules_->size(), 1U);
}

TEST_F(SchedulesTest, AHitStaysArmedAndAnOverdueOneStaysDue) {
  const auto first = create(every(1'000));
  crash();
  EXPECT_FALSE(create(every(1'000)).created);
  EXPECT_EQ(schedules_->wake().at_ms, now() + 1'000) << "95";
  clock_.advance(30s);
  crash();
  EXPECT_EQ(create(every(1'000)).id, first.id);
  EXPECT_TRUE(schedules_->due()) << "96: the hit did not move its time";
  EXPECT_EQ(body(*begin())["id"], first.id);
}

TEST_F(SchedulesTest, AHitGivesWhatIsPausedMissingOrDeadToo) {
  const auto interval = create(every(1'000));
  ASSERT_TRUE(schedules_->pause(interval.id, true));
  EXPECT_EQ(create(every(1'000)).id, interval.id);
  EXPECT_EQ(state(interval.id), "paused");
  ASSERT_TRUE(schedules_->pause(interval.id, false));
  end(begin_in(1s), TryOutcome::kNeedsCode);
  EXPECT_EQ(create(every(1'000)).id, interval.id);
  EXPECT_EQ(state(interval.id), "missing");
}

TEST_F(SchedulesTest, ACallbackMayScheduleItselfAnew) {
  const ScheduleRequest request = with(delay(100), Idempotent::kYes);
  std::string last = create(request).id;
  for (int round = 0; round < 3; ++round) {
    clock_.advance(100ms);
    const auto run = begin();
    ASSERT_TRUE(run) << round;
    const auto next = create(request);
    EXPECT_TRUE(next.created) << "the row that runs will be gone";
    EXPECT_NE(next.id, last);
    EXPECT_EQ(create(request).id, next.id) << "but a second one is the same again";
    end(*run);
    EXPECT_EQ(schedules_->size(), 1U);
    last = next.id;
  }
}

TEST_F(SchedulesTest, ARecurringScheduleMatchesWhileItRuns) {
  const auto interval = create(every(100));
  clock_.advance(100ms);
  ASSERT_TRUE(begin());
  EXPECT_EQ(create(every(100)).id, interval.id);
}

// ---- limits, pause, retry -----------------------------------------------------------------------

TEST_F(SchedulesTest, TooManyAreRefusedAndAHitIsNoneMore) {
  settings_.max_schedules = 3;
  crash();
  create(every(1'000));
  create(delay(1));
  create(delay(1));
  EXPECT_EQ(schedules_->create(delay(1)).error().code, Errc::kLimitExceeded);
  EXPECT_TRUE(schedules_->create(every(1'000)).has_value());
  EXPECT_EQ(schedules_->size(), 3U);
}

TEST_F(SchedulesTest, PauseHoldsBackAndWhatWasMissedIsAMisfire) {
  const auto interval = create(every(1'000));
  const auto once = create(delay(1'000, "once"));
  for (const std::string& id : {interval.id, once.id}) ASSERT_TRUE(schedules_->pause(id, true));
  database_->commit();
  EXPECT_TRUE(schedules_->wake().none());
  crash();
  EXPECT_EQ(state(once.id), "paused");
  clock_.advance(4'500ms);
  EXPECT_FALSE(schedules_->due());
  EXPECT_FALSE(begin());
  for (const std::string& id : {interval.id, once.id}) ASSERT_TRUE(schedules_->pause(id, false));
  const ScheduleRun run = begin().value();
  EXPECT_EQ(run.callback, "tick");
  EXPECT_EQ(run.missed, 3U);
  EXPECT_EQ(run.late_ms, 3'500);
  EXPECT_EQ(begin()->callback, "once");
}

TEST_F(SchedulesTest, PauseLetsARunInProgressGoOnToItsEnd) {
  const auto interval = create(every(100));
  const ScheduleRun run = begin_in(100ms);
  ASSERT_TRUE(schedules_->pause(interval.id, true));
  EXPECT_EQ(state(interval.id), "running");
  EXPECT_EQ(end(run).next, ScheduleEnd::Next::kWaiting);
  EXPECT_EQ(state(interval.id), "paused");
  clock_.advance(1s);
  EXPECT_FALSE(begin());
}

TEST_F(SchedulesTest, RetryIsForTheMissingAndTheDead) {
  const auto waiting = create(delay(0));
  EXPECT_EQ(schedules_->retry(waiting.id).error().code, Errc::kNotFound);
  end(*begin(), TryOutcome::kNeedsCode);
  EXPECT_FALSE(begin());
  ASSERT_TRUE(schedules_->retry(waiting.id));
  EXPECT_EQ(state(waiting.id), "waiting");
  EXPECT_TRUE(record(waiting.id)["last_error"].is_null());
  const ScheduleRun run = begin().value();
  EXPECT_EQ(end(run).next, ScheduleEnd::Next::kGone);
}

TEST_F(SchedulesTest, ManyRowsMakeNoCallSlower) {
  // The quickest of three rounds of making, finding again, running and ending.
  const auto cost = [this] {
    auto best = std::chrono::steady_clock::duration::max();
    for (int round = 0; round < 3; ++round) {
      const auto start = std::chrono::steady_clock::now();
      for (int i = 0; i < 30; ++i) {
        ScheduleRequest request = with(delay(0), Idempotent::kYes);
        const std::string id = create(request).id;
        EXPECT_EQ(create(request).id, id);
        end(*begin());
        request.when_ms = 1'000;
        EXPECT_TRUE(schedules_->cancel(create(request).id));
      }
      best = std::min(best, std::chrono::steady_clock::now() - start);
    }
    return best;
  };
  const auto alone = cost();
  const std::string payload = "\"" + std::string(400, 'x') + "\"";
  for (int i = 0; i < 9'000; ++i) {
    ScheduleRequest request = delay(3'600'000 + i);
    request.payload = payload;
    ASSERT_TRUE(schedules_->create(request).has_value());
  }
  database_->commit();
  EXPECT_EQ(schedules_->size(), 9'000U);
  // One look at every row, 9,000 of them, would make it slower by much more.
  EXPECT_LT(cost(), alone * 10);
}

}  // namespace
}  // namespace hearth::durable
