#include "server/server_metrics.hpp"

#include "support/exposition.hpp"
#include "support/manual_clock.hpp"

#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <gtest/gtest.h>

#include <chrono>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace hearth::server {
namespace {

using testing::Exposition;

class LossyLogger final : public Logger {
 public:
  [[nodiscard]] bool enabled(LogLevel) const override { return false; }
  void write(LogLevel, std::string_view, std::span<const LogField>) override {}
  [[nodiscard]] DroppedLines dropped() const override { return lost; }
  DroppedLines lost;
};

class ServerMetricsTest : public ::testing::Test {
 protected:
  std::optional<double> figure(std::string_view name) {
    const Exposition seen(metrics_.text());
    EXPECT_EQ(seen.mistake(), "") << metrics_.text();
    return seen.value(name);
  }

  testing::ManualClock clock_;
  LossyLogger logger_;
  Metrics metrics_;
  ServerMetrics server_{metrics_, logger_, clock_};
};

TEST_F(ServerMetricsTest, SaysWhatTheServerIs) {
  const Exposition seen(metrics_.text());
  const auto& samples = seen.families().at("hearth_build_info").samples;
  ASSERT_EQ(samples.size(), 1U);
  EXPECT_EQ(samples[0].value, 1);
  EXPECT_NE(samples[0].labels.at("version"), "");
  EXPECT_NE(samples[0].labels.at("abi"), "");
}

TEST_F(ServerMetricsTest, SaysHowLongItRuns) {
  EXPECT_EQ(figure("hearth_uptime_seconds"), 0);
  clock_.advance(std::chrono::milliseconds(90'500));
  EXPECT_EQ(figure("hearth_uptime_seconds"), 90.5);
}

TEST_F(ServerMetricsTest, CountsTheDescriptorsThatAreOpen) {
  const double before = *figure("hearth_process_open_descriptors");
  EXPECT_GE(before, 3);
  const int one = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
  const int two = ::dup(one);
  EXPECT_EQ(figure("hearth_process_open_descriptors"), before + 2);
  ::close(one);
  ::close(two);
  EXPECT_EQ(figure("hearth_process_open_descriptors"), before);
  rlimit limit{};
  ::getrlimit(RLIMIT_NOFILE, &limit);
  EXPECT_EQ(figure("hearth_process_max_descriptors"), static_cast<double>(limit.rlim_cur));
}

TEST_F(ServerMetricsTest, SeesTheMemoryAndTheProcessorTimeOfTheProcess) {
  EXPECT_GT(*figure("hearth_process_resident_memory_bytes"), 1e6);
  EXPECT_LT(*figure("hearth_process_resident_memory_bytes"), 1e12);
  // More than it was, once it has worked; looking is work too.
  const double before = *figure("hearth_process_cpu_seconds_total");
  double after = before;
  for (int round = 0; round < 1'000'000 && after == before; ++round) {
    after = *figure("hearth_process_cpu_seconds_total");
  }
  EXPECT_GT(after, before);
}

TEST_F(ServerMetricsTest, TellsWhatTheLogHasLost) {
  EXPECT_EQ(figure("hearth_log_lost_bytes_total"), 0);
  EXPECT_EQ(figure("hearth_log_lines_dropped_total"), 0);
  logger_.lost = {.lines = 2, .bytes = 17};
  EXPECT_EQ(figure("hearth_log_lost_bytes_total"), 17);
  EXPECT_EQ(figure("hearth_log_lines_dropped_total"), 2);
}

}  // namespace
}  // namespace hearth::server
