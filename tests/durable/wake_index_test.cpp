#include "durable/wake_index.hpp"

#include "support/seeded_random.hpp"
#include "support/temp_directory.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

namespace hearth::durable {
namespace {

const storage::AgentKey kA{"Worker", "a"};
const storage::AgentKey kB{"Worker", "b"};

bool all(const storage::AgentKey&) {
  return true;
}

class WakeIndexTest : public ::testing::Test {
 protected:
  hearth::testing::TempDirectory directory_;
  storage::Directory rows_{directory_.path() / "host.db"};
  hearth::testing::SeededRandom random_{42};
};

TEST_F(WakeIndexTest, TheAgentThatIsDueLongestComesFirst) {
  WakeIndex index(rows_);
  index.set(kA, {false, 200});
  index.set(kB, {false, 100});
  EXPECT_EQ(index.due(99), std::nullopt);
  EXPECT_EQ(index.next_ms(), 100);
  EXPECT_EQ(index.due(500), kB);
  index.taken(kB);
  EXPECT_EQ(index.due(500), kA);
}

TEST_F(WakeIndexTest, P2_WhoWasWorkingIsDueAtOnceAfterARestart) {
  {
    WakeIndex index(rows_);
    index.set(kA, {true, std::nullopt});
    EXPECT_EQ(index.due(1'000'000), std::nullopt) << "its work is in memory";
  }
  WakeIndex index(rows_);
  index.load(5'000, all, random_);
  EXPECT_EQ(index.due(5'000), kA);
}

TEST_F(WakeIndexTest, P2_WhoWaitsForAnotherVersionIsDueWhenItsClassChangesAndAfterARestart) {
  {
    WakeIndex index(rows_);
    index.set(kA, {false, kNextVersion});
    index.look_again(kA, kNextVersion);
    EXPECT_EQ(index.due(5'000), std::nullopt);
    index.hurry("Another", 5'000);
    EXPECT_EQ(index.due(5'000), std::nullopt);
    index.hurry("Worker", 5'000);
    EXPECT_EQ(index.due(5'000), kA);
  }
  WakeIndex index(rows_);
  index.load(6'000, all, random_);
  EXPECT_EQ(index.due(6'000), kA);
}

TEST_F(WakeIndexTest, P2_WhatWaitsForAnotherVersionBehindAMomentIsDueWithItsClassToo) {
  const storage::AgentKey healthy{"Worker", "healthy"};
  const storage::AgentKey dead{"Worker", "dead"};
  {
    WakeIndex index(rows_);
    index.set(kA, {false, 9'000'000, {}, true});
    index.set(healthy, {false, 9'000'000});
    index.set(dead, {false, {}, {}, true});
    EXPECT_EQ(index.due(5'000), std::nullopt);
    index.hurry("Worker", 5'000);
    EXPECT_EQ(index.due(5'000), kA);
    index.taken(kA);
    EXPECT_EQ(index.due(5'000), std::nullopt) << "code ends no other wait";
  }
  WakeIndex index(rows_);
  index.load(6'000, all, random_);
  EXPECT_EQ(index.due(6'000), kA);
  index.taken(kA);
  EXPECT_EQ(index.due(6'000), std::nullopt);
}

TEST_F(WakeIndexTest, P2_ManyWhoWereWorkingAreDueOneAfterTheOtherInNoOrder) {
  constexpr std::int64_t kAgents = 1'000;
  {
    WakeIndex index(rows_);
    for (int i = 0; i < kAgents; ++i) index.set({"Worker", std::to_string(i)}, {true, {}});
  }
  WakeIndex index(rows_);
  index.load(5'000, all, random_);
  std::vector<std::string> order;
  std::int64_t most_at_once = 0;
  for (std::int64_t passed = 0; passed <= kAgents; ++passed) {
    std::int64_t at_once = 0;
    while (const auto key = index.due(5'000 + passed)) {
      order.push_back(key->name);
      index.taken(*key);
      ++at_once;
    }
    most_at_once = std::max(most_at_once, at_once);
  }
  EXPECT_EQ(std::ssize(order), kAgents) << "within a millisecond each";
  EXPECT_LE(most_at_once, 20);
  EXPECT_FALSE(std::ranges::is_sorted(order));
}

TEST_F(WakeIndexTest, WhatWasClearedIsGoneAfterARestart) {
  {
    WakeIndex index(rows_);
    index.set(kA, {false, 100});
    index.set(kA, {});
    EXPECT_EQ(index.size(), 0U);
  }
  WakeIndex index(rows_);
  index.load(5'000, all, random_);
  EXPECT_EQ(index.next_ms(), std::nullopt);
}

TEST_F(WakeIndexTest, EachShardLoadsItsOwnAgents) {
  {
    WakeIndex index(rows_);
    index.set(kA, {false, 100});
    index.set(kB, {false, 200});
  }
  WakeIndex index(rows_);
  index.load(0, [](const storage::AgentKey& key) { return key.name == "b"; }, random_);
  EXPECT_EQ(index.size(), 1U);
  EXPECT_EQ(index.due(500), kB);
}

TEST_F(WakeIndexTest, LookingAgainChangesTheMomentAndNotTheRow) {
  WakeIndex index(rows_);
  index.set(kA, {true, std::nullopt});
  index.look_again(kA, 50);
  EXPECT_EQ(index.due(50), kA);
  EXPECT_EQ(index.find(kA), (Wake{true, std::nullopt}));
}

TEST_F(WakeIndexTest, ManyOfOneClassDoNotHoldUpTheOneOfAnother) {
  WakeIndex index(rows_);
  for (int i = 0; i < 10; ++i) index.look_again({"Many", std::to_string(i)}, 10 + i);
  index.look_again({"Few", "a"}, 400);
  index.look_again({"Later", "a"}, 501);
  std::vector<std::string> order;
  while (const auto key = index.due(500)) {
    order.push_back(key->agent_class + " " + key->name);
    index.taken(*key);
  }
  ASSERT_EQ(order.size(), 11U);
  EXPECT_EQ(order[0], "Few a");
  EXPECT_EQ(order[1], "Many 0");
  index.look_again({"Few", "a"}, 400);
  index.look_again({"Many", "10"}, 1);
  EXPECT_EQ(index.due(500)->agent_class, "Few") << "it is its turn, though Many has waited longer";
  EXPECT_EQ(index.next_ms(), 1);
}

TEST_F(WakeIndexTest, WhileAnAgentWorksLaterMomentsOfItsRowsCostNoWrite) {
  {
    WakeIndex index(rows_);
    index.set(kA, {true, std::nullopt});
    index.set(kA, {true, 100});
    EXPECT_EQ(rows_.wakes().at(0).at_ms, 100) << "after a crash its schedules wait for nobody";
    index.set(kA, {true, 200});
    EXPECT_EQ(index.find(kA), (Wake{true, 200}));
    EXPECT_EQ(index.due(100), std::nullopt);
    EXPECT_EQ(index.due(200), kA) << "while the process lives this moment counts";
    EXPECT_EQ(rows_.wakes().at(0).at_ms, 100) << "the safe side, without a write";
    index.set(kA, {true, 50});
    EXPECT_EQ(rows_.wakes().at(0).at_ms, 50);
    index.set(kA, {true, 100});
    index.set(kA, {false, 100});
    EXPECT_EQ(rows_.wakes().at(0).at_ms, 100);
    EXPECT_FALSE(rows_.wakes().at(0).working);
    index.set(kA, {true, 100});
  }
  EXPECT_TRUE(rows_.wakes().at(0).working);
}

TEST(WakeTest, EarlierMeansThatTheIndexMustKnowFirst) {
  EXPECT_TRUE((Wake{true, {}}).earlier_than({}));
  EXPECT_TRUE((Wake{false, 5}).earlier_than({}));
  EXPECT_TRUE((Wake{false, 5}).earlier_than({false, 6}));
  EXPECT_FALSE((Wake{false, 7}).earlier_than({false, 6}));
  EXPECT_FALSE((Wake{}).earlier_than({true, 6}));
  EXPECT_FALSE((Wake{true, 6}).earlier_than({true, 6}));
}

TEST_F(WakeIndexTest, WhomItForgetsIsNeitherDueNorKnown) {
  WakeIndex index(rows_);
  index.set(kA, {true, 100});
  index.set(kB, {false, 200});
  index.forget(kA);
  EXPECT_TRUE(index.find(kA).none());
  EXPECT_EQ(index.due(500), kB);
  EXPECT_EQ(index.size(), 1U);
  index.forget(kA);
  EXPECT_EQ(rows_.wakes().size(), 2U) << "in memory only";
}

TEST_F(WakeIndexTest, AClassIsHurriedAsFarAsItsAgentsMustBeAwake) {
  WakeIndex index(rows_);
  index.set(kA, {true, std::nullopt});
  index.set(kB, {false, 100});
  index.set({"Worker", "later"}, {false, 900});
  index.set({"Other", "a"}, {false, 100});
  for (const storage::AgentKey& key : {kA, kB, storage::AgentKey{"Other", "a"}})
    index.look_again(key, 800);
  index.hurry("Worker", 500);
  std::vector<storage::AgentKey> due;
  while (const auto key = index.due(500)) {
    due.push_back(*key);
    index.taken(*key);
  }
  EXPECT_EQ(due, (std::vector{kA, kB}));
  index.hurry("Nobody", 500);
}

TEST_F(WakeIndexTest, P3_WhenTheClockWasSetBackAllAreDueAtOnceAndStayDueOverAKill) {
  const storage::AgentKey of_next_version{"Worker", "c"};
  {
    WakeIndex index(rows_);
    index.set(kA, {false, 2'000'000});
    index.set(kB, {false, 5'000'000});
    index.set(of_next_version, {false, kNextVersion});
    index.note_time(1'500'000);
    index.clock_was_set_back(1'000);
    EXPECT_EQ(index.due(1'000), kA);
    index.taken(kA);
    EXPECT_EQ(index.due(1'000), kB);
    EXPECT_EQ(index.find(kB).at_ms, 5'000'000) << "what is known of it stays";
    index.taken(kB);
    EXPECT_EQ(index.due(1'000), std::nullopt) << "the clock brings no version";
    index.set(kA, {false, 3'000});
  }
  WakeIndex index(rows_);
  index.load(1'500, all, random_);
  for (const auto& key : {kB, of_next_version}) {
    EXPECT_EQ(index.due(1'500), key);
    index.taken(key);
  }
  EXPECT_EQ(index.next_ms(), 3'000) << "it was looked at since";
}

struct NotedTime {
  std::optional<std::int64_t> noted;
  std::int64_t now;
  bool is_due;
};

TEST_F(WakeIndexTest, P3_AClockThatWasSetBackWhileTheServerWasDownIsNoticed) {
  WakeIndex(rows_).set(kA, {false, 9'000'000});
  for (const NotedTime& each :
       {NotedTime{{}, 1'000, false}, NotedTime{5'000'000, 5'000'000, false},
        NotedTime{5'000'000, 6'000'000, false}, NotedTime{6'000'000, 2'000'000, true}}) {
    if (each.noted) rows_.note_time(*each.noted);
    WakeIndex index(rows_);
    index.load(each.now, all, random_);
    EXPECT_EQ(index.due(each.now).has_value(), each.is_due) << each.now;
  }
}

TEST_F(WakeIndexTest, OperationsThatAreNotSettledAreKnownAndWakeNobody) {
  {
    WakeIndex index(rows_);
    index.set(kA, {.at_ms = {}, .unknown_operations = 2});
    index.set(kB, {.at_ms = 100, .unknown_operations = 1});
    EXPECT_EQ(index.unknown_operations(), 3);
    EXPECT_EQ(index.size(), 1U) << "those that must be awake";
    EXPECT_EQ(index.next_ms(), 100);
  }
  WakeIndex index(rows_);
  index.load(1'000, all, random_);
  EXPECT_EQ(index.unknown_operations(), 3);
  EXPECT_EQ(index.find(kA), (Wake{.at_ms = {}, .unknown_operations = 2}));
  EXPECT_EQ(index.due(1'000), kB);
  index.set(kA, {.working = true, .at_ms = {}, .unknown_operations = 2});
  index.set(kA, {.working = true, .at_ms = {}, .unknown_operations = 0});
  EXPECT_EQ(rows_.with_operations("", {}, 10).size(), 2U);
  EXPECT_EQ(index.unknown_operations(), 1);
  index.set(kA, {});
  EXPECT_EQ(rows_.with_operations("", {}, 10).size(), 1U);
  index.forget(kB);
  EXPECT_EQ(index.unknown_operations(), 0);
  EXPECT_EQ(index.size(), 0U);
}

TEST_F(WakeIndexTest, DeadWorkIsKnownAndWakesNobody) {
  {
    WakeIndex index(rows_);
    index.set(kA, {.at_ms = {}, .needs_person = true});
    index.set(kB, {.working = true, .at_ms = {}});
    index.set(kB, {.working = true, .at_ms = {}, .needs_person = true});
    EXPECT_EQ(index.size(), 1U) << "those that must be awake";
  }
  WakeIndex index(rows_);
  index.load(1'000, all, random_);
  EXPECT_EQ(index.find(kA), (Wake{.at_ms = {}, .needs_person = true}));
  EXPECT_TRUE(index.find(kB).needs_person);
  EXPECT_EQ(index.due(1'000), kB);
  index.set(kA, {});
  EXPECT_EQ(rows_.wakes().size(), 1U);
}

TEST(WakeTest, DeadWorkIsWrittenBeforeTheCommit) {
  const Wake dead{.at_ms = {}, .needs_person = true};
  EXPECT_TRUE(dead.earlier_than({}));
  EXPECT_FALSE(dead.earlier_than(dead));
  EXPECT_FALSE(Wake{}.earlier_than(dead));
  EXPECT_TRUE(either(dead, {}).needs_person);
}

TEST(WakeTest, MoreUnknownOperationsAreWrittenBeforeTheCommit) {
  EXPECT_TRUE((Wake{.at_ms = {}, .unknown_operations = 0}).earlier_than({}));
  EXPECT_TRUE((Wake{.at_ms = {}, .unknown_operations = 1})
                  .earlier_than({.at_ms = {}, .unknown_operations = 0}));
  EXPECT_FALSE((Wake{.at_ms = {}, .unknown_operations = 0})
                   .earlier_than({.at_ms = {}, .unknown_operations = 1}));
  EXPECT_FALSE(Wake{}.earlier_than({.at_ms = {}, .unknown_operations = 1}));
  EXPECT_EQ(either({.at_ms = {}, .unknown_operations = 1}, {.working = true, .at_ms = {}})
                .unknown_operations,
            1);
}

}  // namespace
}  // namespace hearth::durable
