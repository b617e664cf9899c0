#include "net/http_date.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <utility>
#include <vector>

namespace hearth::net {
namespace {

TEST(HttpDateTest, IsTheFormThatHttpWants) {
  const std::vector<std::pair<long, std::string>> cases = {
      {0, "Thu, 01 Jan 1970 00:00:00 GMT"},          {784111777, "Sun, 06 Nov 1994 08:49:37 GMT"},
      {1709251199, "Thu, 29 Feb 2024 23:59:59 GMT"}, {1767225600, "Thu, 01 Jan 2026 00:00:00 GMT"},
      {4102444800, "Fri, 01 Jan 2100 00:00:00 GMT"},
  };
  for (const auto& [seconds, expected] : cases) {
    EXPECT_EQ(http_date(std::chrono::sys_seconds(std::chrono::seconds(seconds))), expected);
  }
}

TEST(HttpDateTest, NowIsNow) {
  HttpDate date;
  const auto second = [] {
    return std::chrono::floor<std::chrono::seconds>(std::chrono::system_clock::now());
  };
  const auto before = second();
  const std::string now = date.now();
  const auto after = second();
  EXPECT_TRUE(now == http_date(before) || now == http_date(after)) << now;
  EXPECT_EQ(date.now().size(), now.size());
}

}  // namespace
}  // namespace hearth::net
