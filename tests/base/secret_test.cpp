#include "base/secret.hpp"

#include "support/seeded_random.hpp"

#include <gtest/gtest.h>

namespace hearth {
namespace {

TEST(SecretTest, OnlyTheSameTextIsTheSame) {
  EXPECT_TRUE(is_same_secret("abc", "abc"));
  EXPECT_TRUE(is_same_secret("", ""));
  EXPECT_FALSE(is_same_secret("abc", "abd"));
  EXPECT_FALSE(is_same_secret("abc", "ab"));
  EXPECT_FALSE(is_same_secret("", "a"));
}

TEST(SecretTest, ANewOneIsSixtyFourHexadecimalDigitsAndNeverTheLastOne) {
  testing::SeededRandom random(1);
  const std::string first = make_secret(random);
  EXPECT_EQ(first.size(), 64U);
  EXPECT_EQ(first.find_first_not_of("0123456789abcdef"), std::string::npos);
  EXPECT_NE(make_secret(random), first);
}

}  // namespace
}  // namespace hearth
