#include "runtime/version_news.hpp"

#include "runtime/class_registry.hpp"
#include "runtime/shard_answers.hpp"
#include "runtime/version_trial.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <utility>

namespace hearth::runtime {
namespace {

class VersionNewsTest : public ::testing::Test {
 protected:
  VersionNewsTest() {
    news_->listen([this] { ++rings_; });
    news_->want(true);
  }
  // How often it has rung since it was asked last.
  int rings() { return std::exchange(rings_, 0); }

  int rings_ = 0;
  std::shared_ptr<VersionNews> news_ = std::make_shared<VersionNews>();
};

TEST_F(VersionNewsTest, RingsOnlyWhileNewsAreWantedAndThereIsAListener) {
  news_->ring();
  EXPECT_EQ(rings(), 1);
  news_->want(false);
  news_->ring();
  EXPECT_EQ(rings(), 0);
  news_->want(true);
  news_->listen(nullptr);
  news_->ring();
  EXPECT_EQ(rings(), 0);
}

TEST_F(VersionNewsTest, OfAgentsInMemoryTheLastThatLeavesIsTold) {
  StartCounts counts;
  counts.news = news_;
  ++counts.agents;
  ++counts.agents;
  counts.count_leave();
  EXPECT_EQ(rings(), 0);
  counts.count_leave();
  EXPECT_EQ(rings(), 1);
  EXPECT_EQ(counts.agents, 0U);
}

TEST_F(VersionNewsTest, StartsAreTold) {
  StartCounts counts;
  counts.news = news_;
  counts.count_start();
  counts.count_failure("b");
  counts.count_failure("b");
  EXPECT_EQ(rings(), 2) << "an agent that tries again counts once";
  EXPECT_EQ(counts.started, 1U);
  EXPECT_EQ(counts.failed, 1U);
}

TEST_F(VersionNewsTest, ACandidateForATrialThatIsNoneAnyMoreIsTold) {
  VersionTrial trial(1, true, news_);
  ++trial.candidates;
  trial.lose_candidate();
  EXPECT_EQ(rings(), 1);
}

TEST_F(VersionNewsTest, TheLastShardThatAnswersIsTold) {
  ShardAnswers answers(2, news_);
  answers.add(1);
  EXPECT_EQ(rings(), 0);
  answers.add(0);
  EXPECT_EQ(rings(), 1);
  EXPECT_TRUE(answers.complete());
}

TEST_F(VersionNewsTest, CountsWithoutNewsAreSilent) {
  StartCounts counts;
  ++counts.agents;
  counts.count_start();
  counts.count_leave();
  EXPECT_EQ(rings(), 0);
}

}  // namespace
}  // namespace hearth::runtime
