#include "net/drop_counts.hpp"

#include <gtest/gtest.h>

#include <string>

namespace hearth::net {
namespace {

TEST(DropCountsTest, EachReasonIsASeriesFromTheStartOn) {
  Metrics metrics;
  DropCounts one_loop(metrics);
  DropCounts other_loop(metrics);
  one_loop.add(DropReason::kReadsSlowly);
  other_loop.add(DropReason::kReadsSlowly);
  other_loop.add(DropReason::kConnections);
  const std::string text = metrics.text();
  const auto has = [&text](const std::string& line) {
    return text.find("hearth_clients_dropped_total{reason=" + line + "\n") != std::string::npos;
  };
  EXPECT_TRUE(has("\"send_queue\"} 0")) << text;
  EXPECT_TRUE(has("\"reads_slowly\"} 2")) << text;
  EXPECT_TRUE(has("\"sends_slowly\"} 0")) << text;
  EXPECT_TRUE(has("\"silent\"} 0")) << text;
  EXPECT_TRUE(has("\"memory\"} 0")) << text;
  EXPECT_TRUE(has("\"connections\"} 1")) << text;
}

}  // namespace
}  // namespace hearth::net
