#include "durable/wake_index.hpp"

#include "support/temp_directory.hpp"

#include <gtest/gtest.h>

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
  index.load(5'000, all);
  EXPECT_EQ(index.due(5'000), kA);
}

TEST_F(WakeIndexTest, WhatWasClearedIsGoneAfterARestart) {
  {
    WakeIndex index(rows_);
    index.set(kA, {false, 100});
    index.set(kA, {});
    EXPECT_EQ(index.size(), 0U);
  }
  WakeIndex index(rows_);
  index.load(5'000, all);
  EXPECT_EQ(index.next_ms(), std::nullopt);
}

TEST_F(WakeIndexTest, EachShardLoadsItsOwnAgents) {
  {
    WakeIndex index(rows_);
    index.set(kA, {false, 100});
    index.set(kB, {false, 200});
  }
  WakeIndex index(rows_);
  index.load(0, [](const storage::AgentKey& key) { return key.name == "b"; });
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

TEST(WakeTest, EarlierMeansThatTheIndexMustKnowFirst) {
  EXPECT_TRUE((Wake{true, {}}).earlier_than({}));
  EXPECT_TRUE((Wake{false, 5}).earlier_than({}));
  EXPECT_TRUE((Wake{false, 5}).earlier_than({false, 6}));
  EXPECT_FALSE((Wake{false, 7}).earlier_than({false, 6}));
  EXPECT_FALSE((Wake{}).earlier_than({true, 6}));
  EXPECT_FALSE((Wake{true, 6}).earlier_than({true, 6}));
}

}  // namespace
}  // namespace hearth::durable
