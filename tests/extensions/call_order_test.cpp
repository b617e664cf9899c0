#include "extensions/call_order.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace hearth::extensions {
namespace {

TEST(CallOrderTest, SaysWhatRunsAlone) {
  const std::vector<std::string> exclusive{"GET", "reset"};
  const CallOrder concurrent;
  const CallOrder serial{.serial = true, .exclusive = {}};
  const CallOrder some{.serial = false, .exclusive = exclusive};
  EXPECT_FALSE(concurrent.holds_calls());
  EXPECT_TRUE(serial.holds_calls());
  EXPECT_TRUE(some.holds_calls());
  EXPECT_FALSE(concurrent.runs_alone(EventKind::kCall, "reset"));
  EXPECT_TRUE(serial.runs_alone(EventKind::kCall, "any"));
  EXPECT_TRUE(serial.runs_alone(EventKind::kRequest, "GET"));
  EXPECT_TRUE(some.runs_alone(EventKind::kCall, "reset"));
  EXPECT_FALSE(some.runs_alone(EventKind::kCall, "rese"));
  EXPECT_FALSE(some.runs_alone(EventKind::kRequest, "GET")) << "its name is HTTP's, not a method's";
}

}  // namespace
}  // namespace hearth::extensions
