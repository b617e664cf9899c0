#include "runtime/wake_keeper.hpp"

#include "fakes.hpp"
#include "storage/connection.hpp"
#include "storage/directory.hpp"
#include "support/recording_logger.hpp"
#include "support/seeded_random.hpp"
#include "support/temp_directory.hpp"

#include <gtest/gtest.h>

#include <optional>

namespace hearth::runtime {
namespace {

using durable::Wake;
using testing::kUsualAgent;

class WakeKeeperTest : public ::testing::Test {
 protected:
  [[nodiscard]] Wake stored() {
    const auto rows = rows_.wakes();
    return rows.empty() ? Wake{} : Wake{rows.front().working, rows.front().at_ms};
  }
  void let_writing_fail() {
    storage::Connection(directory_.path() / "host.db", {})
        .execute("CREATE TRIGGER no BEFORE INSERT ON wakes BEGIN SELECT RAISE(ABORT, 'no'); END");
  }

  testing::ManualLoop loop_;
  hearth::testing::TempDirectory directory_;
  storage::Directory rows_{directory_.path() / "host.db"};
  durable::WakeIndex wakes_{rows_};
  hearth::testing::SeededRandom random_{7};
  hearth::testing::RecordingLogger logger_;
  Metrics metrics_;
  ShardMetrics shard_metrics_{metrics_};
  PacedSteps steps_{loop_, 20};
  AlarmClock alarms_{{loop_, wakes_, steps_, shard_metrics_, random_}, {}, 1, 1};
  WakeKeeper keeper_{alarms_, logger_, kUsualAgent};
};

TEST_F(WakeKeeperTest, P1_ANearerWakeIsThereBeforeTheCommit) {
  EXPECT_TRUE(keeper_.is_late_for({false, 2'000}));
  EXPECT_TRUE(keeper_.before_commit({false, 2'000}));
  EXPECT_EQ(stored(), (Wake{false, 2'000}));
  EXPECT_TRUE(keeper_.before_commit({false, 1'000}));
  EXPECT_EQ(stored(), (Wake{false, 1'000}));
}

TEST_F(WakeKeeperTest, P1_WhatTheFileStillHoldsStaysUntilTheCommit) {
  keeper_.keep({false, 1'000});
  EXPECT_TRUE(keeper_.before_commit({true, 5'000}));
  EXPECT_EQ(stored(), (Wake{true, 1'000})) << "without the commit the earlier row is due";
  keeper_.after_commit({false, 5'000});
  EXPECT_EQ(stored(), (Wake{false, 5'000}));
}

TEST_F(WakeKeeperTest, P2_ALaterWakeWaitsForTheCommit) {
  keeper_.keep({false, 1'000});
  EXPECT_FALSE(keeper_.is_late_for({false, 2'000}));
  EXPECT_FALSE(keeper_.before_commit({false, 2'000}));
  EXPECT_EQ(stored(), (Wake{false, 1'000}));
  keeper_.after_commit({false, 2'000});
  EXPECT_EQ(stored(), (Wake{false, 2'000}));
  keeper_.after_commit({});
  EXPECT_TRUE(rows_.wakes().empty());
}

TEST_F(WakeKeeperTest, P3_AnExactWakeIsNotWrittenAgain) {
  keeper_.keep({false, 1'000});
  let_writing_fail();
  EXPECT_FALSE(keeper_.before_commit({false, 1'000}));
  EXPECT_NO_THROW(keeper_.keep({false, 1'000}));
  keeper_.after_commit({false, 1'000});
  EXPECT_TRUE(logger_.events().empty());
}

TEST_F(WakeKeeperTest, AtTheEndTheIndexHasTheMomentOfTheRows) {
  keeper_.keep({true, 1'000});
  keeper_.at_end({false, 2'000});
  EXPECT_EQ(alarms_.known(kUsualAgent), (Wake{true, 2'000})) << "what it worked on goes on";
  EXPECT_EQ(stored(), (Wake{true, 1'000})) << "on disk a nearer one may stay while it works";
  keeper_.at_end({true, std::nullopt});
  EXPECT_EQ(alarms_.known(kUsualAgent), (Wake{true, 2'000})) << "something is due";
  keeper_.keep({false, 1'000});
  keeper_.at_end({});
  EXPECT_TRUE(rows_.wakes().empty());
}

TEST_F(WakeKeeperTest, BeginsWithWhatTheIndexHas) {
  wakes_.set(kUsualAgent, {false, 1'000});
  const WakeKeeper next(alarms_, logger_, kUsualAgent);
  EXPECT_FALSE(next.is_late_for({false, 1'000}));
  EXPECT_TRUE(next.is_late_for({false, 999}));
}

TEST_F(WakeKeeperTest, AFailureBeforeTheCommitIsTheCallersAndOneAfterItIsLogged) {
  keeper_.keep({false, 2'000});
  let_writing_fail();
  EXPECT_THROW((void)keeper_.before_commit({false, 1'000}), StorageError);
  EXPECT_TRUE(keeper_.is_late_for({false, 1'000})) << "it is tried again";
  keeper_.after_commit({false, 3'000});
  EXPECT_TRUE(logger_.contains("warn agent.wake_not_cleared class=Counter agent=a"));
  EXPECT_EQ(stored(), (Wake{false, 2'000}));
}

}  // namespace
}  // namespace hearth::runtime
