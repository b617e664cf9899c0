// How all data of an agent is removed. What its clients see: destroy_test.cpp; kills at each step:
// tests/fault.
#include "runtime/condemned_agents.hpp"

#include "fakes.hpp"
#include "storage/copy_mark.hpp"
#include "support/fake_sync_calls.hpp"
#include "support/recording_logger.hpp"
#include "support/seeded_random.hpp"
#include "support/temp_directory.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace hearth::runtime {
namespace {

using std::chrono::minutes;
using std::chrono::seconds;

const storage::AgentKey kWorkerA{"Worker", "a"};
const storage::AgentKey kWorkerB{"Worker", "b"};

bool all(const storage::AgentKey&) {
  return true;
}
bool none(const storage::AgentKey&) {
  return false;
}

class CondemnedAgentsTest : public ::testing::Test {
 protected:
  CondemnedAgentsTest() { begin(); }
  ~CondemnedAgentsTest() override {
    calls_.let_go();
    pool_.stop();
    *alive_ = false;
  }

  // Another process on the same files.
  void begin() {
    condemned_.reset();
    alarms_.reset();
    wakes_.emplace(rows_);
    alarms_.emplace(AlarmClock::Parts{loop_, *wakes_, steps_, shard_metrics_, random_},
                    AlarmClock::Agents{}, 1, 1);
    condemned_.emplace(CondemnedAgents::Parts{
        rows_, data_, *wakes_, logger_, loop_, *alarms_, remover_, sync_, target_, alive_,
        [this](const storage::AgentKey& key) { return key == in_memory_; },
        [this](const storage::AgentKey& key) { over_.push_back(key.name); }});
  }
  // As one that lives and works.
  void make(const storage::AgentKey& key) {
    std::filesystem::create_directories(data_.agent_path(key).parent_path());
    for (const char* suffix : {"", "-wal"})
      std::ofstream{data_.agent_path(key).string() + suffix} << "x";
    rows_.record(key, 1);
    wakes_->set(key, {true, 100});
  }
  void make_condemned() {
    make(kWorkerA);
    condemned_->condemn(kWorkerA);
  }
  // A backup copies it.
  storage::CopyMark& hold_for_copy() {
    storage::CopyMark& mark = data_.copy_mark();
    mark.hold();
    mark.set();
    mark.wait_for({kWorkerA});
    return mark;
  }
  bool has_files(const storage::AgentKey& key) const {
    return std::filesystem::exists(data_.agent_path(key)) ||
           std::filesystem::exists(data_.agent_path(key).string() + "-wal");
  }
  // A directory in the place of a file: it cannot be removed as a file, not even by root.
  std::filesystem::path obstacle(const storage::AgentKey& key) const {
    return data_.agent_path(key).string() + "-journal";
  }
  void expect_nothing_left(const storage::AgentKey& key) {
    EXPECT_FALSE(has_files(key));
    EXPECT_FALSE(rows_.contains(key));
    EXPECT_TRUE(rows_.wakes().empty());
    EXPECT_TRUE(rows_.condemned().empty());
    EXPECT_TRUE(wakes_->find(key).none());
    EXPECT_EQ(wakes_->due(1'000'000), std::nullopt);
    EXPECT_FALSE(condemned_->contains(key));
  }

  hearth::testing::TempDirectory directory_;
  storage::DataDirectory data_ = storage::DataDirectory::open(directory_.path() / "data").value();
  storage::Directory rows_{data_.directory_path()};
  hearth::testing::RecordingLogger logger_;
  std::optional<durable::WakeIndex> wakes_;
  std::optional<storage::AgentKey> in_memory_;
  std::vector<std::string> over_;
  testing::ManualLoop loop_;
  hearth::testing::SeededRandom random_{7};
  Metrics metrics_;
  ShardMetrics shard_metrics_{metrics_};
  PacedSteps steps_{loop_, 20};
  std::optional<AlarmClock> alarms_;
  hearth::testing::FakeSyncCalls calls_;
  storage::SyncService sync_{calls_, data_.path(), storage::SyncService::Thread::kCallers};
  std::shared_ptr<storage::SyncTarget> target_ =
      sync_.open(data_.directory_path().string() + "-wal");
  BlockingPool pool_{1, 10};
  BlockingPool* remover_ = nullptr;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
  std::optional<CondemnedAgents> condemned_;
};

TEST_F(CondemnedAgentsTest, P2_NothingIsLeftOfAFinishedAgent) {
  make_condemned();
  EXPECT_TRUE(condemned_->contains(kWorkerA));
  EXPECT_TRUE(has_files(kWorkerA)) << "it may be in memory still";
  condemned_->finish(kWorkerA);
  expect_nothing_left(kWorkerA);
  EXPECT_TRUE(logger_.contains("info agent.condemned class=Worker agent=a"));
  EXPECT_TRUE(logger_.contains("info agent.destroyed class=Worker agent=a"));
}

TEST_F(CondemnedAgentsTest, P1_P3_TheNextProcessFinishesWhatWasCutShort) {
  struct Row {
    const char* after;
    std::function<void()> done;
  };
  for (const Row& row :
       {Row{"the marker", [] {}}, Row{"the files", [this] { data_.remove_agent(kWorkerA); }},
        Row{"one of the files",
            [this] { std::filesystem::remove(data_.agent_path(kWorkerA).string() + "-wal"); }}}) {
    SCOPED_TRACE(row.after);
    make_condemned();
    row.done();
    begin();
    condemned_->load(all);
    expect_nothing_left(kWorkerA);
  }
}

TEST_F(CondemnedAgentsTest, AnAgentThatNeverWroteAnythingCanBeDestroyed) {
  condemned_->condemn(kWorkerA);
  condemned_->finish(kWorkerA);
  expect_nothing_left(kWorkerA);
}

TEST_F(CondemnedAgentsTest, AgentsOfOtherShardsAreLeftToThem) {
  make_condemned();
  begin();
  condemned_->load(none);
  EXPECT_TRUE(has_files(kWorkerA));
  EXPECT_EQ(rows_.condemned().size(), 1U);
}

TEST_F(CondemnedAgentsTest, AMarkerThatNamesNoClassIsNotFollowedToAnyFile) {
  rows_.condemn(std::array{storage::AgentKey{"../../etc", "a"}});
  begin();
  condemned_->load(all);
  EXPECT_TRUE(condemned_->empty());
}

TEST_F(CondemnedAgentsTest, P4_AnAgentWhoseFilesStayIsCondemnedUntilTheyCanBeRemoved) {
  make(kWorkerA);
  make(kWorkerB);
  std::filesystem::create_directories(obstacle(kWorkerA));
  condemned_->condemn(kWorkerA);
  condemned_->condemn(kWorkerB);
  in_memory_ = kWorkerB;
  condemned_->finish(kWorkerA);
  EXPECT_TRUE(condemned_->contains(kWorkerA));
  EXPECT_TRUE(rows_.contains(kWorkerA));
  EXPECT_EQ(rows_.condemned().size(), 2U);
  EXPECT_TRUE(logger_.contains("error agent.destroy_failed class=Worker agent=a error=\"remove " +
                               obstacle(kWorkerA).string() + ": Is a directory\""))
      << logger_.events().back();
  EXPECT_EQ(over_, std::vector<std::string>{"a"}) << "this attempt is over";
  loop_.advance(seconds(59));
  EXPECT_EQ(over_.size(), 1U);
  loop_.advance(seconds(2));
  EXPECT_EQ(over_.size(), 2U);
  EXPECT_TRUE(condemned_->contains(kWorkerA));
  EXPECT_TRUE(has_files(kWorkerB)) << "it is in memory";

  std::filesystem::remove(obstacle(kWorkerA));
  in_memory_.reset();
  loop_.advance(minutes(1));
  EXPECT_TRUE(condemned_->empty());
  expect_nothing_left(kWorkerA);
  expect_nothing_left(kWorkerB);
  EXPECT_EQ(over_, (std::vector<std::string>{"a", "a", "a", "b"}));
  loop_.advance(minutes(5));
  EXPECT_EQ(over_.size(), 4U) << "nothing is left to do";
}

TEST_F(CondemnedAgentsTest, P4_TheNextProcessTriesAgain) {
  make(kWorkerA);
  std::filesystem::create_directories(obstacle(kWorkerA));
  condemned_->condemn(kWorkerA);
  begin();
  condemned_->load(all);
  EXPECT_TRUE(condemned_->contains(kWorkerA));
  std::filesystem::remove(obstacle(kWorkerA));
  begin();
  condemned_->load(all);
  expect_nothing_left(kWorkerA);
}

// ---- when the files go --------------------------------------------------------------------------

TEST_F(CondemnedAgentsTest, AnAgentWhoseEndIsUnderWayIsToldItself) {
  condemned_->condemn(kWorkerA);
  bool done = false;
  condemned_->finish(kWorkerA, [&] { done = true; });
  EXPECT_TRUE(done);
  EXPECT_TRUE(over_.empty());
}

TEST_F(CondemnedAgentsTest, ThePoolWaitsForTheDeviceAndTheShardDoesNot) {
  remover_ = &pool_;
  begin();
  make_condemned();
  calls_.hold();
  condemned_->finish(kWorkerA);
  condemned_->finish(kWorkerA);  // it is under way
  EXPECT_TRUE(condemned_->is_under_way(kWorkerA));
  calls_.wait_until_somebody_waits();
  EXPECT_TRUE(has_files(kWorkerA)) << "the marker is not on the device";
  calls_.let_go();
  EXPECT_TRUE(loop_.settle_until([&] { return !over_.empty(); }));
  EXPECT_FALSE(condemned_->is_under_way(kWorkerA));
  EXPECT_FALSE(has_files(kWorkerA));
  EXPECT_EQ(over_, std::vector<std::string>{"a"}) << "once";
}

TEST_F(CondemnedAgentsTest, P1_WithoutTheMarkerOnTheDeviceTheFilesStay) {
  calls_.answer_with([](const std::string& call) { return call.starts_with("data") ? EIO : 0; });
  make_condemned();
  condemned_->finish(kWorkerA);
  EXPECT_TRUE(has_files(kWorkerA));
  EXPECT_TRUE(condemned_->contains(kWorkerA));
  EXPECT_EQ(over_, std::vector<std::string>{"a"}) << "this attempt is over";
}

TEST_F(CondemnedAgentsTest, P4_NoThreadWaitsForTheCopyOfABackup) {
  remover_ = &pool_;
  begin();
  make_condemned();
  storage::CopyMark& mark = hold_for_copy();
  bool has_left = false;
  condemned_->finish(kWorkerA, [&] { has_left = true; });
  EXPECT_TRUE(has_left) << "its place in memory";
  EXPECT_TRUE(condemned_->is_under_way(kWorkerA)) << "what wants it waits";
  condemned_->finish(kWorkerA);
  EXPECT_TRUE(over_.empty());
  EXPECT_TRUE(has_files(kWorkerA));
  EXPECT_TRUE(condemned_->contains(kWorkerA));
  EXPECT_FALSE(logger_.contains("agent.destroy_failed"));
  EXPECT_EQ(mark.next(), kWorkerA);
  EXPECT_EQ(mark.next(), std::nullopt);
  loop_.advance(seconds(1));
  EXPECT_TRUE(loop_.settle_until([&] { return condemned_->empty(); }));
  EXPECT_FALSE(has_files(kWorkerA));
  EXPECT_FALSE(over_.empty());
}

TEST_F(CondemnedAgentsTest, WhatWantsAnAgentDoesNotWaitForALongCopy) {
  make_condemned();
  storage::CopyMark& mark = hold_for_copy();
  condemned_->finish_later();  // for another one, in a minute
  condemned_->finish(kWorkerA);
  loop_.advance(CondemnedAgents::kLongestCopy - seconds(1));
  EXPECT_TRUE(over_.empty());
  loop_.advance(seconds(2));
  EXPECT_FALSE(over_.empty()) << "its caller gets an answer";
  EXPECT_FALSE(condemned_->is_under_way(kWorkerA));
  EXPECT_TRUE(has_files(kWorkerA));
  mark.end();
  loop_.advance(seconds(2));
  EXPECT_TRUE(loop_.settle_until([&] { return condemned_->empty(); }));
}

TEST_F(CondemnedAgentsTest, NoAttemptBeginsAfterTheStop) {
  make_condemned();
  condemned_->finish_later();
  condemned_->stop();
  condemned_->finish_later();
  loop_.advance(minutes(5));
  EXPECT_TRUE(has_files(kWorkerA));
}

}  // namespace
}  // namespace hearth::runtime
