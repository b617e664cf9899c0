// That a process really stops, and where, is shown by tests/fault with the real binary.
#include "base/stop_point.hpp"

#include <gtest/gtest.h>

#include <set>
#include <string>

namespace hearth {
namespace {

TEST(StopPointTest, ANameAloneMeansTheFirstVisit) {
  const auto request = parse_stop_request("managed.start.committed");
  ASSERT_TRUE(request);
  EXPECT_EQ(request->name, "managed.start.committed");
  EXPECT_EQ(request->visit, 1U);
}

TEST(StopPointTest, ANumberAfterTheNameIsTheVisit) {
  const auto request = parse_stop_request("fiber.stash.written:12");
  ASSERT_TRUE(request);
  EXPECT_EQ(request->name, "fiber.stash.written");
  EXPECT_EQ(request->visit, 12U);
}

TEST(StopPointTest, AnUnknownNameIsRefusedWithTheListOfNames) {
  for (const char* text : {"", "fiber", "fiber.stash.comitted", "MANAGED.START.WRITTEN", ":1"}) {
    const auto request = parse_stop_request(text);
    ASSERT_TRUE(request.has_error()) << text;
    for (const std::string_view name : kStopPoints)
      EXPECT_NE(request.error().message.find(name), std::string::npos) << name;
  }
}

TEST(StopPointTest, AVisitThatIsNoNumberFromOneOnIsRefused) {
  for (const char* visit : {"", "0", "-1", "x", "1x", " 1", "99999999999999999999"}) {
    const auto request = parse_stop_request("managed.start.written:" + std::string(visit));
    EXPECT_TRUE(request.has_error()) << visit;
  }
}

TEST(StopPointTest, NamesAreDistinct) {
  EXPECT_EQ(std::set(kStopPoints.begin(), kStopPoints.end()).size(), kStopPoints.size());
}

TEST(StopPointTest, WithoutTheVariableNothingStopsAndNothingIsRefused) {
  stop_point("managed.start.written");
  EXPECT_TRUE(check_stop_request());
}

}  // namespace
}  // namespace hearth
