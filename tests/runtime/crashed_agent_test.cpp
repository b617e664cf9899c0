#include "runtime/crashed_agent.hpp"

#include <gtest/gtest.h>

#include <string>

namespace hearth::runtime {
namespace {

TEST(CrashedAgentTest, IsTakenOnceAndByNoOther) {
  CrashedAgent crashed("Counter", "a", {.fiber = 7});
  EXPECT_FALSE(crashed.take({"Counter", "b"}));
  EXPECT_FALSE(crashed.take({"Other", "a"}));
  const auto how = crashed.take({"Counter", "a"});
  ASSERT_TRUE(how);
  EXPECT_EQ(how->fiber, 7);
  EXPECT_FALSE(crashed.take({"Counter", "a"}));
}

TEST(CrashedAgentTest, ThereMayBeNone) {
  CrashedAgent nobody;
  EXPECT_FALSE(nobody.take({"", ""}));
  EXPECT_FALSE(nobody.take({"Counter", "a"}));
}

TEST(CrashedAgentTest, ARecordHoldsTheBeginningOfALongName) {
  const std::string kept(61, 'x');
  CrashedAgent crashed("Counter", kept, {});
  EXPECT_TRUE(crashed.take({"Counter", kept + "and more"}));
  CrashedAgent whole("Counter", "xx", {});
  EXPECT_FALSE(whole.take({"Counter", "xxx"})) << "a short name is the whole name";
}

}  // namespace
}  // namespace hearth::runtime
