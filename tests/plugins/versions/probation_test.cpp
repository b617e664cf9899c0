#include "plugins/versions/probation.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>

namespace hearth::plugins {
namespace {

using std::chrono::seconds;

constexpr SteadyTime kStart{seconds(100)};

TEST(ProbationTest, SaysWhenTheNextOneIsOver) {
  Probation<std::filesystem::path> probation;
  EXPECT_EQ(probation.next(), std::nullopt);
  probation.begin("b.so", kStart + seconds(2));
  probation.begin("a.so", kStart + seconds(3));
  EXPECT_EQ(probation.next(), kStart + seconds(2));
}

TEST(ProbationTest, EndsEachOnce) {
  Probation<std::filesystem::path> probation;
  probation.begin("b.so", kStart + seconds(2));
  probation.begin("a.so", kStart + seconds(3));
  EXPECT_TRUE(probation.over(kStart + seconds(1)).empty());
  EXPECT_EQ(probation.over(kStart + seconds(2)), std::vector<std::filesystem::path>{"b.so"});
  EXPECT_EQ(probation.over(kStart + seconds(9)), std::vector<std::filesystem::path>{"a.so"});
  EXPECT_EQ(probation.next(), std::nullopt);
}

TEST(ProbationTest, WhoBeginsAgainHasAllOfItsTime) {
  Probation<std::filesystem::path> probation;
  probation.begin("a.so", kStart);
  probation.begin("a.so", kStart + seconds(1));
  EXPECT_TRUE(probation.over(kStart).empty());
  EXPECT_EQ(probation.next(), kStart + seconds(1));
}

TEST(ProbationTest, OneThatEndsEarlyIsNotToldOf) {
  Probation<std::filesystem::path> probation;
  probation.begin("a.so", kStart);
  probation.end("a.so");
  EXPECT_TRUE(probation.over(kStart + seconds(1)).empty());
}

}  // namespace
}  // namespace hearth::plugins
