// How all data of an agent is removed. What its clients see: destroy_test.cpp; kills at each step:
// tests/fault.
#include "runtime/condemned_agents.hpp"

#include "support/recording_logger.hpp"
#include "support/temp_directory.hpp"

#include <gtest/gtest.h>

#include <array>
#include <filesystem>
#include <fstream>
#include <optional>

namespace hearth::runtime {
namespace {

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

  // Another process on the same files.
  void begin() {
    condemned_.reset();
    wakes_.emplace(rows_);
    condemned_.emplace(rows_, data_, *wakes_, logger_);
  }
  // As one that lives and works.
  void make(const storage::AgentKey& key) {
    std::filesystem::create_directories(data_.agent_path(key).parent_path());
    for (const char* suffix : {"", "-wal"})
      std::ofstream{data_.agent_path(key).string() + suffix} << "x";
    rows_.record(key, 1);
    wakes_->set(key, {true, 100});
  }
  void retry(const std::function<bool(const storage::AgentKey&)>& in_memory) {
    for (const storage::AgentKey& key : condemned_->unfinished(in_memory))
      (void)condemned_->finish(key, condemned_->remove_files(key));
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
  std::optional<CondemnedAgents> condemned_;
};

TEST_F(CondemnedAgentsTest, P2_NothingIsLeftOfAFinishedAgent) {
  make(kWorkerA);
  condemned_->condemn(kWorkerA);
  EXPECT_TRUE(condemned_->contains(kWorkerA));
  EXPECT_TRUE(has_files(kWorkerA)) << "it may be in memory still";
  EXPECT_TRUE(condemned_->finish(kWorkerA, condemned_->remove_files(kWorkerA)));
  expect_nothing_left(kWorkerA);
  EXPECT_TRUE(logger_.contains("info agent.condemned class=Worker agent=a"));
  EXPECT_TRUE(logger_.contains("info agent.destroyed class=Worker agent=a"));
}

TEST_F(CondemnedAgentsTest, P1_TheNextProcessFinishesWhatWasCutShortAfterTheMarker) {
  make(kWorkerA);
  condemned_->condemn(kWorkerA);
  begin();
  condemned_->load(all);
  expect_nothing_left(kWorkerA);
}

TEST_F(CondemnedAgentsTest, P3_TheNextProcessFinishesWhatWasCutShortAfterTheFiles) {
  make(kWorkerA);
  condemned_->condemn(kWorkerA);
  data_.remove_agent(kWorkerA);
  begin();
  condemned_->load(all);
  expect_nothing_left(kWorkerA);
}

TEST_F(CondemnedAgentsTest, P3_TheNextProcessFinishesWhatWasCutShortBetweenTwoFiles) {
  make(kWorkerA);
  condemned_->condemn(kWorkerA);
  std::filesystem::remove(data_.agent_path(kWorkerA).string() + "-wal");
  begin();
  condemned_->load(all);
  expect_nothing_left(kWorkerA);
}

TEST_F(CondemnedAgentsTest, AnAgentThatNeverWroteAnythingCanBeDestroyed) {
  condemned_->condemn(kWorkerA);
  EXPECT_TRUE(condemned_->finish(kWorkerA, condemned_->remove_files(kWorkerA)));
  expect_nothing_left(kWorkerA);
}

TEST_F(CondemnedAgentsTest, AgentsOfOtherShardsAreLeftToThem) {
  make(kWorkerA);
  condemned_->condemn(kWorkerA);
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
  EXPECT_FALSE(condemned_->finish(kWorkerA, condemned_->remove_files(kWorkerA)));
  EXPECT_TRUE(condemned_->contains(kWorkerA));
  EXPECT_TRUE(rows_.contains(kWorkerA));
  EXPECT_EQ(rows_.condemned().size(), 2U);
  EXPECT_TRUE(logger_.contains("error agent.destroy_failed class=Worker agent=a error=\"remove " +
                               obstacle(kWorkerA).string() + ": Is a directory\""))
      << logger_.events().back();
  retry([](const storage::AgentKey& key) { return key == kWorkerB; });
  EXPECT_TRUE(condemned_->contains(kWorkerA));
  EXPECT_TRUE(has_files(kWorkerB)) << "it is in memory";

  std::filesystem::remove(obstacle(kWorkerA));
  retry(none);
  EXPECT_TRUE(condemned_->empty());
  expect_nothing_left(kWorkerA);
  expect_nothing_left(kWorkerB);
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

}  // namespace
}  // namespace hearth::runtime
