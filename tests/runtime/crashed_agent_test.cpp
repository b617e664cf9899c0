#include "runtime/crashed_agent.hpp"

#include <gtest/gtest.h>

#include <string>

namespace hearth::runtime {
namespace {

TEST(CrashedAgentTest, IsTakenOnceAndByNoOther) {
  CrashedAgent crashed("Counter", "a");
  EXPECT_FALSE(crashed.take({"Counter", "b"}));
  EXPECT_FALSE(crashed.take({"Other", "a"}));
  EXPECT_TRUE(crashed.take({"Counter", "a"}));
  EXPECT_FALSE(crashed.take({"Counter", "a"}));
}

TEST(CrashedAgentTest, ThereMayBeNone) {
  CrashedAgent nobody;
  EXPECT_FALSE(nobody.take({"", ""}));
  EXPECT_FALSE(nobody.take({"Counter", "a"}));
}

TEST(CrashedAgentTest, ARecordHoldsTheBeginningOfALongName) {
  const std::string kept(61, 'x');
  CrashedAgent crashed("Counter", kept);
  EXPECT_TRUE(crashed.take({"Counter", kept + "and more"}));
  CrashedAgent whole("Counter", "xx");
  EXPECT_FALSE(whole.take({"Counter", "xxx"})) << "a short name is the whole name";
}

}  // namespace
}  // namespace hearth::runtime
