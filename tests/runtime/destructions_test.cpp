// When the files of condemned agents are removed, and what is retried. What is left of an agent:
// condemned_agents_test.cpp; what clients see: destroy_test.cpp.
#include "runtime/destructions.hpp"

#include "fakes.hpp"
#include "storage/copy_mark.hpp"
#include "support/fake_sync_calls.hpp"
#include "support/recording_logger.hpp"
#include "support/seeded_random.hpp"
#include "support/temp_directory.hpp"

#include <gtest/gtest.h>

#include <cerrno>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

namespace hearth::runtime {
namespace {

using std::chrono::minutes;
using std::chrono::seconds;
using testing::kUsualAgent;

class DestructionsTest : public ::testing::Test {
 protected:
  DestructionsTest() { begin(nullptr); }
  ~DestructionsTest() override {
    calls_.let_go();
    pool_.stop();
    *alive_ = false;
  }

  void begin(BlockingPool* remover) {
    destructions_ = std::make_unique<Destructions>(
        Destructions::Parts{loop_, condemned_, alarms_, remover, sync_, target_, alive_},
        [this](const storage::AgentKey&) { return in_memory_; },
        [this](const storage::AgentKey& key) { over_.push_back(key.name); });
  }
  void condemn() {
    std::filesystem::create_directories(file().parent_path());
    std::ofstream{file()} << "x";
    condemned_.condemn(kUsualAgent);
  }
  [[nodiscard]] std::filesystem::path file() const { return data_.agent_path(kUsualAgent); }
  [[nodiscard]] bool has_file() const { return std::filesystem::exists(file()); }
  // A directory in the place of a file cannot be removed as one.
  [[nodiscard]] std::filesystem::path obstacle() const { return file().string() + "-journal"; }

  bool in_memory_ = false;
  std::vector<std::string> over_;
  testing::ManualLoop loop_;
  hearth::testing::TempDirectory directory_;
  storage::DataDirectory data_ = storage::DataDirectory::open(directory_.path() / "data").value();
  storage::Directory rows_{data_.directory_path()};
  hearth::testing::RecordingLogger logger_;
  durable::WakeIndex wakes_{rows_};
  CondemnedAgents condemned_{rows_, data_, wakes_, logger_};
  hearth::testing::SeededRandom random_{7};
  Metrics metrics_;
  ShardMetrics shard_metrics_{metrics_};
  PacedSteps steps_{loop_, 20};
  AlarmClock alarms_{{loop_, wakes_, steps_, shard_metrics_, random_}, {}, 1, 1};
  hearth::testing::FakeSyncCalls calls_;
  storage::SyncService sync_{calls_, data_.path(), storage::SyncService::Thread::kCallers};
  std::shared_ptr<storage::SyncTarget> target_ =
      sync_.open(data_.directory_path().string() + "-wal");
  BlockingPool pool_{1, 10};
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
  std::unique_ptr<Destructions> destructions_;
};

TEST_F(DestructionsTest, WithoutAPoolTheFilesGoAtOnce) {
  condemn();
  destructions_->finish(kUsualAgent);
  EXPECT_FALSE(has_file());
  EXPECT_TRUE(condemned_.empty());
  EXPECT_EQ(over_, std::vector<std::string>{"a"});
}

TEST_F(DestructionsTest, AnAgentWhoseEndIsUnderWayIsToldItself) {
  condemn();
  bool done = false;
  destructions_->finish(kUsualAgent, [&] { done = true; });
  EXPECT_TRUE(done);
  EXPECT_TRUE(over_.empty());
}

TEST_F(DestructionsTest, ThePoolWaitsForTheDeviceAndTheShardDoesNot) {
  begin(&pool_);
  condemn();
  calls_.hold();
  destructions_->finish(kUsualAgent);
  destructions_->finish(kUsualAgent);  // it is under way
  EXPECT_TRUE(destructions_->under_way(kUsualAgent));
  calls_.wait_until_somebody_waits();
  EXPECT_TRUE(has_file()) << "the marker is not on the device";
  calls_.let_go();
  EXPECT_TRUE(loop_.settle_until([&] { return !over_.empty(); }));
  EXPECT_FALSE(destructions_->under_way(kUsualAgent));
  EXPECT_FALSE(has_file());
  EXPECT_EQ(over_, std::vector<std::string>{"a"}) << "once";
}

TEST_F(DestructionsTest, P1_WithoutTheMarkerOnTheDeviceTheFilesStay) {
  calls_.answer_with([](const std::string& call) { return call.starts_with("data") ? EIO : 0; });
  condemn();
  destructions_->finish(kUsualAgent);
  EXPECT_TRUE(has_file());
  EXPECT_TRUE(condemned_.contains(kUsualAgent));
  EXPECT_EQ(over_, std::vector<std::string>{"a"}) << "this attempt is over";
}

TEST_F(DestructionsTest, P2_WhatCouldNotBeRemovedIsTriedEveryMinute) {
  condemn();
  std::filesystem::create_directory(obstacle());
  destructions_->finish(kUsualAgent);
  loop_.advance(seconds(59));
  EXPECT_EQ(over_.size(), 1U);
  loop_.advance(seconds(2));
  EXPECT_EQ(over_.size(), 2U);
  EXPECT_TRUE(condemned_.contains(kUsualAgent));
  std::filesystem::remove(obstacle());
  loop_.advance(minutes(1));
  EXPECT_EQ(over_.size(), 3U);
  EXPECT_TRUE(condemned_.empty());
  loop_.advance(minutes(5));
  EXPECT_EQ(over_.size(), 3U) << "nothing is left to do";
}

TEST_F(DestructionsTest, P2_NoThreadWaitsForTheCopyOfABackup) {
  begin(&pool_);
  condemn();
  storage::CopyMark& mark = data_.copy_mark();
  mark.hold();
  mark.set();
  mark.wait_for({kUsualAgent});
  destructions_->finish(kUsualAgent);
  EXPECT_TRUE(loop_.settle_until([&] { return !over_.empty(); })) << "its place in memory";
  EXPECT_TRUE(has_file());
  EXPECT_TRUE(condemned_.contains(kUsualAgent));
  EXPECT_FALSE(logger_.contains("agent.destroy_failed"));
  EXPECT_EQ(mark.next(), kUsualAgent);
  EXPECT_EQ(mark.next(), std::nullopt);
  loop_.advance(seconds(1));
  EXPECT_TRUE(loop_.settle_until([&] { return condemned_.empty(); }));
  EXPECT_FALSE(has_file());
}

TEST_F(DestructionsTest, ARetryLeavesOutAnAgentInMemory) {
  condemn();
  in_memory_ = true;
  destructions_->finish_later();
  loop_.advance(minutes(1));
  EXPECT_TRUE(has_file());
  in_memory_ = false;
  loop_.advance(minutes(1));
  EXPECT_FALSE(has_file());
}

TEST_F(DestructionsTest, NoAttemptBeginsAfterTheStop) {
  condemn();
  destructions_->finish_later();
  destructions_->stop();
  destructions_->finish_later();
  loop_.advance(minutes(5));
  EXPECT_TRUE(has_file());
}

}  // namespace
}  // namespace hearth::runtime
