#include "protocol/rfc3339.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <string_view>
#include <utility>

namespace hearth::protocol {
namespace {

TEST(Rfc3339Test, ATimeIsReadAndWritten) {
  constexpr std::pair<std::string_view, std::int64_t> kTimes[] = {
      {"1970-01-01T00:00:00Z", 0},
      {"2026-02-16T00:00:00Z", 1'771'200'000'000},
      {"2026-02-16T00:00:00.000Z", 1'771'200'000'000},
      {"2026-02-16t01:30:00.5+01:30", 1'771'200'000'500},
      {"2026-02-15 22:00:00-02:00", 1'771'200'000'000},
      {"2026-02-16T00:00:00.123456789Z", 1'771'200'000'123},
      {"2024-02-29T23:59:60z", 1'709'251'200'000},
      {"9999-12-31T23:59:59.999Z", 253'402'300'799'999},
  };
  for (const auto& [text, ms] : kTimes) {
    EXPECT_EQ(parse_rfc3339(text), ms) << text;
    EXPECT_EQ(parse_rfc3339(rfc3339(ms)), ms) << text;
  }
  EXPECT_EQ(rfc3339(1'771'200'000'007), "2026-02-16T00:00:00.007Z");
}

TEST(Rfc3339Test, A8_WhatIsNoTimeIsRefused) {
  for (const std::string_view wrong :
       {"", "now", "2026-02-16", "2026-02-16T00:00Z", "2026-02-16T00:00:00", "2026-02-30T00:00:00Z",
        "2026-13-01T00:00:00Z", "2026-02-16T24:00:00Z", "2026-02-16T00:60:00Z",
        "2026-02-16T00:00:00.Z", "2026-02-16T00:00:00+1:00", "2026-02-16T00:00:00Zz",
        "1969-12-31T23:59:59Z", "1970-01-01T00:00:00+01:00", "+026-02-16T00:00:00Z",
        "-026-02-16T00:00:00Z", "2026-02-16T00:00:00 Z", "9999-12-31T23:59:60Z",
        "9999-12-31T23:59:59-00:01"})
    EXPECT_EQ(parse_rfc3339(wrong), std::nullopt) << wrong;
}

}  // namespace
}  // namespace hearth::protocol
