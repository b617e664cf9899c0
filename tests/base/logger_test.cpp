#include "base/logger.hpp"

#include "support/recording_logger.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace hearth {
namespace {

TEST(LimitedLinesTest, AKindIsItsLevelItsEventAndWhatTheCallerTells) {
  testing::RecordingLogger logger;
  const LogLimit few{.burst = 2, .per_second = 0.000'001};
  for (int i = 0; i < 5; ++i) {
    logger.write_limited(LogLevel::kInfo, "x", {"Room", "invalid"}, {{"i", i}}, few);
  }
  for (const char* const other : {"Other", "Room"})
    logger.write_limited(LogLevel::kInfo, "x", {other}, {}, few);
  logger.write_limited(LogLevel::kWarn, "x", {"Room", "invalid"}, {}, few);
  EXPECT_EQ(logger.events(),
            (std::vector<std::string>{"info x i=0", "info x i=1", "info x", "info x", "warn x"}));
}

TEST(LimitedLinesTest, TheNextLineOfTheKindSaysHowManyWereSuppressed) {
  testing::RecordingLogger logger;
  const LogLimit often{.burst = 1, .per_second = 1e9};
  const LogLimit never{.burst = 1, .per_second = 0};
  for (const LogLimit& limit : {never, never, never, often})
    logger.write_limited(LogLevel::kInfo, "x", {}, {{"k", "v"}}, limit);
  EXPECT_EQ(logger.events(), (std::vector<std::string>{"info x k=v", "info x k=v suppressed=2"}));
}

// Keeps what it records, and has no lines.
class KeepingLogger final : public Logger {
 public:
  using Logger::write;
  [[nodiscard]] bool enabled(LogLevel) const override { return false; }
  void write(LogLevel, std::string_view, std::span<const LogField>) override {}
  testing::RecordingLogger kept;

 protected:
  void keep(std::string_view event, std::span<const LogField> fields) override {
    kept.write(LogLevel::kInfo, event, fields);
  }
};

TEST(LimitedRecordsTest, TheNextEntryOfTheKindSaysHowManyWereSuppressed) {
  KeepingLogger logger;
  const LogLimit often{.burst = 1, .per_second = 1e9};
  const LogLimit never{.burst = 1, .per_second = 0};
  std::vector<bool> recorded;
  for (const LogLimit& limit : {never, never, never, often, often})
    recorded.push_back(logger.record_limited(LogLevel::kInfo, "x", {}, {{"k", "v"}}, limit));
  EXPECT_EQ(recorded, (std::vector<bool>{true, false, false, true, true}));
  EXPECT_EQ(logger.kept.events(),
            (std::vector<std::string>{"info x k=v", "info x k=v suppressed=2", "info x k=v"}));
}

TEST(NullLoggerTest, IsNeverEnabled) {
  EXPECT_FALSE(make_null_logger()->enabled(LogLevel::kError));
}

TEST(RecordingLoggerTest, KeepsEventsInOrderWithTheirFields) {
  testing::RecordingLogger logger;
  logger.write(LogLevel::kWarn, "plugin.refused", {{"file", "x.so"}, {"reason", "not ELF"}});
  logger.write(LogLevel::kInfo, "plugin.loaded");
  EXPECT_EQ(logger.events(), (std::vector<std::string>{
                                 "warn plugin.refused file=x.so reason=\"not ELF\"",
                                 "info plugin.loaded",
                             }));
  EXPECT_EQ(logger.count("plugin."), 2U);
  EXPECT_FALSE(logger.contains("agent."));
  logger.clear();
  EXPECT_TRUE(logger.events().empty());
}

}  // namespace
}  // namespace hearth
