#include "durable/alarms.hpp"

#include "durable/database_fixture.hpp"
#include "durable/json_members.hpp"
#include "json/json.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <string>

namespace hearth::durable {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

class AlarmsTest : public DatabaseFixture {
 protected:
  AlarmsTest() : DatabaseFixture(3) { open(); }
  ~AlarmsTest() override { alarms_->close(); }

  void open() {
    alarms_.reset();
    open_database();
    alarms_ = std::make_unique<Alarms>(*database_, clock_, random_, AlarmSettings{.max_alarms = 3});
    alarms_->load();
  }
  // As after a crash: only committed data is left.
  void crash() {
    database_->commit();
    alarms_->close();
    open();
  }
  [[nodiscard]] std::int64_t in(milliseconds wait) const { return now() + wait.count(); }
  Alarms::Set set(const std::string& method, milliseconds wait, const std::string& args = "[]") {
    auto made = alarms_->set({method, args, in(wait)});
    EXPECT_TRUE(made);
    return made ? *made : Alarms::Set{};
  }
  // The method that begins, or "".
  std::string begin() {
    auto due = alarms_->begin_next();
    if (!due) return {};
    id_ = due->id;
    return due->name + due->input;
  }
  Json listed() { return parse_json(alarms_->list()).value(); }

  std::unique_ptr<Alarms> alarms_;
  std::string id_;  // of the one that began last
};

TEST_F(AlarmsTest, A1_AnAlarmRunsAtItsTimeWithItsArguments) {
  EXPECT_EQ(listed(), Json::array());
  EXPECT_FALSE(database_->exists()) << "looking writes nothing";
  EXPECT_FALSE(set("ring", seconds(5), "[1]").replaced);
  EXPECT_EQ(alarms_->wake().at_ms, in(seconds(5)));
  EXPECT_EQ(begin(), "");
  clock_.advance(seconds(5));
  EXPECT_TRUE(alarms_->due());
  EXPECT_EQ(begin(), "ring[1]");
  EXPECT_TRUE(alarms_->wake().working);
  EXPECT_EQ(listed()[0]["state"], "running");
  EXPECT_EQ(alarms_->ended(id_, TryOutcome::kDone).next, TryEnd::kDone);
  EXPECT_EQ(listed(), Json::array());
  EXPECT_TRUE(alarms_->wake().none());
}

TEST_F(AlarmsTest, APageIsBoundedInNumberAndInBytesAndLosesNoneThatStays) {
  const auto page = [this](const std::string& after, std::size_t limit) {
    const auto read = alarms_->page(after, limit);
    EXPECT_TRUE(read) << after;
    std::string methods;
    for (const Json& each : parse_json(read->records).value())
      methods += each["method"].get<std::string>();
    return std::pair(methods, read->next);
  };
  EXPECT_EQ(page("", 5), std::pair(std::string(), std::string()));
  EXPECT_FALSE(database_->exists()) << "looking writes nothing";
  set("b", seconds(2));
  set("a", seconds(1));
  const std::string large = "[\"" + std::string(Alarms::kMaxPageBytes, 'x') + "\"]";
  set("c", seconds(3), large);
  const auto [first, after_first] = page("", 1);
  EXPECT_EQ(first, "a");
  EXPECT_EQ(page(after_first, 1).first, "b");
  EXPECT_EQ(page("", 3), std::pair(std::string("abc"), std::string())) << "the last one is large";

  clock_.advance(seconds(1));
  EXPECT_EQ(begin(), "a[]");
  EXPECT_EQ(alarms_->ended(id_, TryOutcome::kDone).next, TryEnd::kDone);
  EXPECT_EQ(page(after_first, 9).first, "bc") << "where the page ends outlives its last alarm";
  set("b", seconds(9), large);
  const auto [large_one, after_large] = page("", 9);
  EXPECT_EQ(large_one, "c");
  EXPECT_EQ(page(after_large, 9), std::pair(std::string("b"), std::string()));
  for (const char* wrong : {"x", "0", "0.1", "0.1.", "0.1.2.3", "0.1.2 ", ".."})
    EXPECT_EQ(alarms_->page(wrong, 9).error().code, Errc::kInvalidArgument) << wrong;
}

TEST_F(AlarmsTest, A3_ASecondOneOfAMethodReplacesAndAnotherMethodCoexists) {
  set("ring", seconds(5));
  EXPECT_TRUE(set("ring", seconds(1), "[2]").replaced);
  EXPECT_FALSE(set("other", seconds(2)).replaced);
  EXPECT_EQ(listed().size(), 2U);
  clock_.advance(seconds(10));
  EXPECT_EQ(begin(), "ring[2]");
  EXPECT_FALSE(set("ring", seconds(1)).replaced) << "that one runs";
  EXPECT_EQ(alarms_->ended(id_, TryOutcome::kDone).next, TryEnd::kDone);
  EXPECT_EQ(begin(), "other[]");
  EXPECT_EQ(begin(), "");
  clock_.advance(seconds(1));
  EXPECT_EQ(begin(), "ring[]");
}

TEST_F(AlarmsTest, AFinalFailureIsTriedNoMore) {
  set("ring", seconds(0));
  EXPECT_EQ(begin(), "ring[]");
  EXPECT_EQ(alarms_->ended(id_, TryOutcome::kHopeless, "refused").next, TryEnd::kDead);
  EXPECT_TRUE(has(listed()[0], {{"attempts", 1}, {"last_error", "refused"}}));
}

TEST_F(AlarmsTest, A4_AFailureIsTriedAgainTwiceAndThenDead) {
  set("ring", seconds(0));
  EXPECT_EQ(begin(), "ring[]");
  EXPECT_EQ(alarms_->ended(id_, TryOutcome::kFailed, "first").next, TryEnd::kRetry);
  EXPECT_EQ(alarms_->wake().at_ms, in(seconds(1)));
  clock_.advance(seconds(1));
  EXPECT_EQ(begin(), "ring[]");
  EXPECT_EQ(alarms_->ended(id_, TryOutcome::kFailed, "second").next, TryEnd::kRetry);
  EXPECT_EQ(alarms_->wake().at_ms, in(seconds(2)));
  clock_.advance(seconds(2));
  EXPECT_EQ(begin(), "ring[]");
  EXPECT_EQ(alarms_->ended(id_, TryOutcome::kFailed, "third").next, TryEnd::kDead);
  EXPECT_TRUE(alarms_->wake().none());
  const Json dead = listed()[0];
  EXPECT_TRUE(has(dead, {{"state", "dead"}, {"attempts", 3}, {"last_error", "third"}}));
  EXPECT_FALSE(set("ring", seconds(0)).replaced) << "a dead one holds nothing back";
}

TEST_F(AlarmsTest, A5_A6_KillsOfTheServerRunItAgainAndAreNoFailures) {
  set("ring", seconds(0));
  for (int attempt = 1; attempt <= 9; ++attempt) {
    EXPECT_EQ(begin(), "ring[]") << attempt;
    crash();
    clock_.advance(milliseconds(1'250));
  }
  for (const TryEnd next : {TryEnd::kRetry, TryEnd::kRetry, TryEnd::kDead}) {
    EXPECT_EQ(begin(), "ring[]");
    EXPECT_EQ(alarms_->ended(id_, TryOutcome::kFailed, "failed").next, next);
    clock_.advance(seconds(2));
  }
}

TEST_F(AlarmsTest, A7_WhatIsDueWhileNothingRunsRunsAfterwards) {
  set("ring", seconds(5));
  clock_.advance(seconds(60));
  crash();
  EXPECT_EQ(begin(), "ring[]");
}

TEST_F(AlarmsTest, A8_OneTooManyIsRefusedAndAReplacementIsNot) {
  for (const char* method : {"a", "b", "c"}) set(method, seconds(5));
  EXPECT_EQ(alarms_->set({"d", "[]", 1}).error().code, Errc::kLimitExceeded);
  EXPECT_TRUE(set("b", seconds(9)).replaced);
  EXPECT_EQ(listed().size(), 3U);
}

TEST_F(AlarmsTest, A8_ATimeThatHasPassedIsNow) {
  EXPECT_TRUE(alarms_->set({"ring", "[]", 0}));
  EXPECT_EQ(begin(), "ring[]");
}

TEST_F(AlarmsTest, A10_AnAlarmIsRemoved) {
  set("ring", seconds(0));
  EXPECT_TRUE(alarms_->remove(listed()[0]["id"].get<std::string>()));
  EXPECT_EQ(begin(), "");
  EXPECT_EQ(alarms_->remove("nothing").error().code, Errc::kNotFound);
  set("ring", seconds(0));
  EXPECT_EQ(begin(), "ring[]");
  EXPECT_TRUE(alarms_->remove(id_)) << "one that runs, too";
  EXPECT_EQ(alarms_->ended(id_, TryOutcome::kFailed, "no").next, TryEnd::kRemoved);
}

TEST_F(AlarmsTest, OneThatWasInterruptedWaitsBesideANewOneAndBothRun) {
  set("ring", milliseconds(0), "[1]");
  EXPECT_EQ(begin(), "ring[1]");
  set("ring", milliseconds(0), "[2]");
  alarms_->interrupt_on_purpose();
  crash();
  EXPECT_EQ(listed().size(), 2U);
  EXPECT_EQ(begin(), "ring[1]");
  EXPECT_EQ(begin(), "ring[2]");
}

}  // namespace
}  // namespace hearth::durable
