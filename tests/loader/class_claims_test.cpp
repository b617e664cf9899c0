#include "loader/class_claims.hpp"

#include <gtest/gtest.h>

namespace hearth::loader {
namespace {

// All names share one address.
std::string same(std::string_view) {
  return "x";
}

TEST(ClassClaimsTest, AClassIsServedByOneLibrary) {
  ClassClaims claims{ClassSegment()};
  EXPECT_FALSE(claims.conflict({"A", "B"}));
  claims.claim({"A", "B"}, "/plugins/one.so");
  EXPECT_FALSE(claims.conflict({"C"}));
  const auto taken = claims.conflict({"C", "B"});
  ASSERT_TRUE(taken);
  EXPECT_EQ(taken->rule, "C1");
  EXPECT_NE(taken->reason.find("\"B\""), std::string::npos);
  EXPECT_NE(taken->reason.find("/plugins/one.so"), std::string::npos);
}

TEST(ClassClaimsTest, WithoutASegmentNamesAreComparedAsTheyAre) {
  ClassClaims claims{ClassSegment()};
  claims.claim({"MyAgent"}, "/plugins/one.so");
  EXPECT_FALSE(claims.conflict({"myAgent"}));
}

TEST(ClassClaimsTest, ClassesWithOneAddressConflictAcrossLibrariesAndWithinOne) {
  ClassClaims claims(same);
  const auto within = claims.conflict({"MyAgent", "myAgent"});
  ASSERT_TRUE(within);
  EXPECT_NE(within->reason.find("/agents/x/"), std::string::npos) << within->reason;
  claims.claim({"MyAgent"}, "/plugins/one.so");
  const auto across = claims.conflict({"myAgent"});
  ASSERT_TRUE(across);
  EXPECT_NE(across->reason.find("MyAgent"), std::string::npos) << across->reason;
  EXPECT_NE(across->reason.find("/plugins/one.so"), std::string::npos) << across->reason;
}

}  // namespace
}  // namespace hearth::loader
