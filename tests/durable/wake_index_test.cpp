#include "durable/wake_index.hpp"

#include "support/seeded_random.hpp"
#include "support/temp_directory.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
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
  std::optional<WakeIndex> index_{std::in_place, rows_};

  // The next start of the server.
  void restart(std::int64_t now_ms, bool (*mine)(const storage::AgentKey&) = all) {
    index_.emplace(rows_);
    index_->load(now_ms, mine, random_);
  }
};

TEST_F(WakeIndexTest, TheAgentThatIsDueLongestComesFirst) {
  index_->set(kA, {false, 200});
  index_->set(kB, {false, 100});
  EXPECT_EQ(index_->due(99), std::nullopt);
  EXPECT_EQ(index_->next_ms(), 100);
  EXPECT_EQ(index_->due(500), kB);
  index_->taken(kB);
  EXPECT_EQ(index_->due(500), kA);
}

TEST_F(WakeIndexTest, P2_WhoWasWorkingIsDueAtOnceAfterARestart) {
  index_->set(kA, {true, std::nullopt});
  EXPECT_EQ(index_->due(1'000'000), std::nullopt) << "its work is in memory";
  restart(5'000);
  EXPECT_EQ(index_->due(5'000), kA);
}

TEST_F(WakeIndexTest, P2_WhoWaitsForAnotherVersionIsDueWhenItsClassChangesAndAfterARestart) {
  index_->set(kA, {false, kNextVersion});
  index_->look_again(kA, kNextVersion);
  EXPECT_EQ(index_->due(5'000), std::nullopt);
  index_->hurry("Another", 5'000);
  EXPECT_EQ(index_->due(5'000), std::nullopt);
  index_->hurry("Worker", 5'000);
  EXPECT_EQ(index_->due(5'000), kA);
  restart(6'000);
  EXPECT_EQ(index_->due(6'000), kA);
}

TEST_F(WakeIndexTest, P2_WhatWaitsForAnotherVersionBehindAMomentIsDueWithItsClassToo) {
  const storage::AgentKey healthy{"Worker", "healthy"};
  const storage::AgentKey dead{"Worker", "dead"};
  index_->set(kA, {false, 9'000'000, {}, true});
  index_->set(healthy, {false, 9'000'000});
  index_->set(dead, {false, {}, {}, true});
  EXPECT_EQ(index_->due(5'000), std::nullopt);
  index_->hurry("Worker", 5'000);
  EXPECT_EQ(index_->due(5'000), kA);
  index_->taken(kA);
  EXPECT_EQ(index_->due(5'000), std::nullopt) << "code ends no other wait";
  restart(6'000);
  EXPECT_EQ(index_->due(6'000), kA);
  index_->taken(kA);
  EXPECT_EQ(index_->due(6'000), std::nullopt);
}

TEST_F(WakeIndexTest, P2_ManyWhoWereWorkingAreDueOneAfterTheOtherInNoOrder) {
  constexpr std::int64_t kAgents = 1'000;
  for (int i = 0; i < kAgents; ++i) index_->set({"Worker", std::to_string(i)}, {true, {}});
  restart(5'000);
  std::vector<std::string> order;
  std::int64_t most_at_once = 0;
  for (std::int64_t passed = 0; passed <= kAgents / 2; ++passed) {
    std::int64_t at_once = 0;
    while (const auto key = index_->due(5'000 + passed)) {
      order.push_back(key->name);
      index_->taken(*key);
      ++at_once;
    }
    most_at_once = std::max(most_at_once, at_once);
  }
  EXPECT_EQ(std::ssize(order), kAgents) << "within half a millisecond each";
  EXPECT_LE(most_at_once, 20);
  EXPECT_FALSE(std::ranges::is_sorted(order));
}

TEST_F(WakeIndexTest, WhatWasClearedIsGoneAfterARestart) {
  index_->set(kA, {false, 100});
  index_->set(kA, {});
  EXPECT_EQ(index_->size(), 0U);
  restart(5'000);
  EXPECT_EQ(index_->next_ms(), std::nullopt);
}

TEST_F(WakeIndexTest, EachShardLoadsItsOwnAgents) {
  index_->set(kA, {false, 100});
  index_->set(kB, {false, 200});
  restart(0, [](const storage::AgentKey& key) { return key.name == "b"; });
  EXPECT_EQ(index_->size(), 1U);
  EXPECT_EQ(index_->due(500), kB);
}

TEST_F(WakeIndexTest, LookingAgainChangesTheMomentAndNotTheRow) {
  index_->set(kA, {true, std::nullopt});
  index_->look_again(kA, 50);
  EXPECT_EQ(index_->due(50), kA);
  EXPECT_EQ(index_->find(kA), (Wake{true, std::nullopt}));
}

TEST_F(WakeIndexTest, ManyOfOneClassDoNotHoldUpTheOneOfAnother) {
  for (int i = 0; i < 10; ++i) index_->look_again({"Many", std::to_string(i)}, 10 + i);
  index_->look_again({"Few", "a"}, 400);
  index_->look_again({"Later", "a"}, 501);
  std::vector<std::string> order;
  while (const auto key = index_->due(500)) {
    order.push_back(key->agent_class + " " + key->name);
    index_->taken(*key);
  }
  ASSERT_EQ(order.size(), 11U);
  EXPECT_EQ(order[0], "Few a");
  EXPECT_EQ(order[1], "Many 0");
  index_->look_again({"Few", "a"}, 400);
  index_->look_again({"Many", "10"}, 1);
  EXPECT_EQ(index_->due(500)->agent_class, "Few")
      << "it is its turn, though Many has waited longer";
  EXPECT_EQ(index_->next_ms(), 1);
}

TEST_F(WakeIndexTest, WhileAnAgentWorksLaterMomentsOfItsRowsCostNoWrite) {
  index_->set(kA, {true, std::nullopt});
  index_->set(kA, {true, 100});
  EXPECT_EQ(rows_.wakes().at(0).at_ms, 100) << "after a crash its schedules wait for no client";
  index_->set(kA, {true, 200});
  EXPECT_EQ(index_->find(kA), (Wake{true, 200}));
  EXPECT_EQ(index_->due(100), std::nullopt);
  EXPECT_EQ(index_->due(200), kA) << "while the process lives this moment counts";
  EXPECT_EQ(rows_.wakes().at(0).at_ms, 100) << "the safe side, without a write";
  index_->set(kA, {true, 50});
  EXPECT_EQ(rows_.wakes().at(0).at_ms, 50);
  index_->set(kA, {true, 100});
  index_->set(kA, {false, 100});
  EXPECT_EQ(rows_.wakes().at(0).at_ms, 100);
  EXPECT_FALSE(rows_.wakes().at(0).working);
  index_->set(kA, {true, 100});
  index_.reset();
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
  index_->set(kA, {true, 100});
  index_->set(kB, {false, 200});
  index_->forget(kA);
  EXPECT_TRUE(index_->find(kA).none());
  EXPECT_EQ(index_->due(500), kB);
  EXPECT_EQ(index_->size(), 1U);
  index_->forget(kA);
  EXPECT_EQ(rows_.wakes().size(), 2U) << "in memory only";
}

TEST_F(WakeIndexTest, AClassIsHurriedAsFarAsItsAgentsMustBeAwake) {
  index_->set(kA, {true, std::nullopt});
  index_->set(kB, {false, 100});
  index_->set({"Worker", "later"}, {false, 900});
  index_->set({"Other", "a"}, {false, 100});
  for (const storage::AgentKey& key : {kA, kB, storage::AgentKey{"Other", "a"}})
    index_->look_again(key, 800);
  index_->hurry("Worker", 500);
  std::vector<storage::AgentKey> due;
  while (const auto key = index_->due(500)) {
    due.push_back(*key);
    index_->taken(*key);
  }
  EXPECT_EQ(due, (std::vector{kA, kB}));
  index_->hurry("Nobody", 500);
}

TEST_F(WakeIndexTest, P3_WhenTheClockWasSetBackAllAreDueAtOnceAndStayDueOverAKill) {
  const storage::AgentKey of_next_version{"Worker", "c"};
  index_->set(kA, {false, 2'000'000});
  index_->set(kB, {false, 5'000'000});
  index_->set(of_next_version, {false, kNextVersion});
  index_->note_time(1'500'000);
  index_->clock_was_set_back(1'000);
  EXPECT_EQ(index_->due(1'000), kA);
  index_->taken(kA);
  EXPECT_EQ(index_->due(1'000), kB);
  EXPECT_EQ(index_->find(kB).at_ms, 5'000'000) << "what is known of it stays";
  index_->taken(kB);
  EXPECT_EQ(index_->due(1'000), std::nullopt) << "the clock brings no version";
  index_->set(kA, {false, 3'000});
  restart(1'500);
  for (const auto& key : {kB, of_next_version}) {
    EXPECT_EQ(index_->due(1'500), key);
    index_->taken(key);
  }
  EXPECT_EQ(index_->next_ms(), 3'000) << "it was looked at since";
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
  index_->set(kA, {.at_ms = {}, .unknown_operations = 2});
  index_->set(kB, {.at_ms = 100, .unknown_operations = 1});
  EXPECT_EQ(index_->unknown_operations(), 3);
  EXPECT_EQ(index_->size(), 1U) << "those that must be awake";
  EXPECT_EQ(index_->next_ms(), 100);
  restart(1'000);
  EXPECT_EQ(index_->unknown_operations(), 3);
  EXPECT_EQ(index_->find(kA), (Wake{.at_ms = {}, .unknown_operations = 2}));
  EXPECT_EQ(index_->due(1'000), kB);
  index_->set(kA, {.working = true, .at_ms = {}, .unknown_operations = 2});
  index_->set(kA, {.working = true, .at_ms = {}, .unknown_operations = 0});
  EXPECT_EQ(rows_.with_operations("", {}, 10).size(), 2U);
  EXPECT_EQ(index_->unknown_operations(), 1);
  index_->set(kA, {});
  EXPECT_EQ(rows_.with_operations("", {}, 10).size(), 1U);
  index_->forget(kB);
  EXPECT_EQ(index_->unknown_operations(), 0);
  EXPECT_EQ(index_->size(), 0U);
}

TEST_F(WakeIndexTest, DeadWorkIsKnownAndWakesNobody) {
  index_->set(kA, {.at_ms = {}, .needs_person = true});
  index_->set(kB, {.working = true, .at_ms = {}});
  index_->set(kB, {.working = true, .at_ms = {}, .needs_person = true});
  EXPECT_EQ(index_->size(), 1U) << "those that must be awake";
  restart(1'000);
  EXPECT_EQ(index_->find(kA), (Wake{.at_ms = {}, .needs_person = true}));
  EXPECT_TRUE(index_->find(kB).needs_person);
  EXPECT_EQ(index_->due(1'000), kB);
  index_->set(kA, {});
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
