#include "plugins/versions/class_claims.hpp"

#include <gtest/gtest.h>

namespace hearth::plugins {
namespace {

TEST(ClassClaimsTest, AClassIsServedByOneLibrary) {
  ClassClaims claims{{}};
  EXPECT_FALSE(claims.conflict({"A", "B"}, "/plugins/two.so"));
  claims.claim({"A", "B"}, "/plugins/one.so");
  EXPECT_FALSE(claims.conflict({"C"}, "/plugins/two.so"));
  const auto taken = claims.conflict({"C", "B"}, "/plugins/two.so").value();
  EXPECT_EQ(taken.rule, "C1");
  EXPECT_NE(taken.reason.find("class B,"), std::string::npos);
  EXPECT_NE(taken.reason.find("/plugins/one.so"), std::string::npos);
}

TEST(ClassClaimsTest, ClassesWithOneAddressConflictAcrossLibrariesAndWithinOne) {
  ClassClaims claims{{}};
  const auto within = claims.conflict({"MyAgent", "my-agent"}, "/plugins/two.so").value();
  EXPECT_NE(within.reason.find("/agents/my-agent/"), std::string::npos) << within.reason;
  claims.claim({"MyAgent"}, "/plugins/one.so");
  const auto across = claims.conflict({"my-agent"}, "/plugins/two.so").value();
  EXPECT_NE(across.reason.find("MyAgent"), std::string::npos) << across.reason;
  EXPECT_NE(across.reason.find("/plugins/one.so"), std::string::npos) << across.reason;
}

TEST(ClassClaimsTest, ANewVersionOfALibraryTakesThePlaceOfItsOldClaims) {
  ClassClaims claims{{}};
  claims.claim({"A", "B"}, "/plugins/one.so");
  EXPECT_FALSE(claims.conflict({"B", "C"}, "/plugins/one.so"));
  claims.claim({"B", "C"}, "/plugins/one.so");
  EXPECT_FALSE(claims.conflict({"A"}, "/plugins/two.so")) << "the new version has it no more";
  EXPECT_TRUE(claims.conflict({"C"}, "/plugins/two.so"));
}

TEST(ClassClaimsTest, WhatIsClaimedAgainIsOnlyWhatNobodyElseHasByThen) {
  ClassClaims claims{{}};
  claims.claim({"A"}, "/plugins/one.so");
  claims.claim({"B"}, "/plugins/two.so");
  claims.claim({"A", "B"}, "/plugins/one.so");
  EXPECT_TRUE(claims.conflict({"A"}, "/plugins/two.so"));
  EXPECT_FALSE(claims.conflict({"B"}, "/plugins/two.so"));
  EXPECT_TRUE(claims.conflict({"B"}, "/plugins/one.so"));
}

TEST(ClassClaimsTest, WhatARemovedFileHadIsFree) {
  ClassClaims claims{{}};
  claims.claim({"A"}, "/plugins/one.so");
  claims.release("/plugins/one.so");
  EXPECT_FALSE(claims.conflict({"A"}, "/plugins/two.so"));
}

TEST(ClassClaimsTest, ASegmentThatIsAnAliasIsTaken) {
  const ClassClaims claims(
      [](std::string_view segment) { return std::string(segment == "chat" ? "counter" : ""); });
  EXPECT_FALSE(claims.conflict({"Room"}, "/plugins/one.so"));
  const auto taken = claims.conflict({"Room", "Chat"}, "/plugins/one.so").value();
  EXPECT_EQ(taken.rule, "C1");
  EXPECT_EQ(taken.reason,
            "its class Chat is reached at /agents/chat/, which is an alias of the class counter: "
            "rename one");
}

}  // namespace
}  // namespace hearth::plugins
