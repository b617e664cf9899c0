#include "runtime/shard_answers.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <thread>

namespace hearth::runtime {
namespace {

using std::chrono::milliseconds;
using std::chrono::minutes;

TEST(ShardAnswersTest, NamesThoseThatHaveNotAnswered) {
  ShardAnswers answers(3);
  answers.add(1);
  EXPECT_EQ(answers.missing(), (std::vector<unsigned>{0, 2}));
  EXPECT_FALSE(answers.complete());
}

TEST(ShardAnswersTest, IsCompleteWhenAllHaveAnswered) {
  ShardAnswers answers(2);
  answers.add(1);
  answers.add(0);
  EXPECT_TRUE(answers.complete());
  EXPECT_TRUE(answers.missing().empty());
  EXPECT_TRUE(answers.wait_for(milliseconds(0)));
}

TEST(ShardAnswersTest, WaitsNoLongerThanAsked) {
  const ShardAnswers answers(1);
  EXPECT_FALSE(answers.wait_for(milliseconds(1)));
}

TEST(ShardAnswersTest, WaitsUntilTheLastHasAnswered) {
  ShardAnswers answers(1);
  std::thread shard([&] { answers.add(0); });
  EXPECT_TRUE(answers.wait_for(minutes(1)));
  shard.join();
}

}  // namespace
}  // namespace hearth::runtime
