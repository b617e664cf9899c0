#include "extensions/durable_work_fixture.hpp"

namespace hearth::extensions {
namespace {

class WorkReportsTest : public DurableWorkFixture {
 protected:
  WorkKinds kinds_{*database_, clock_, random_, settings_};
  WorkReports reports_{agent_, kinds_, events_};
};

TEST_F(WorkReportsTest, AStepIsALineOfItsAgent) {
  reports_.add(DurableEvent::kQueueDead, "i", "no");
  EXPECT_EQ(logger_.count("warn queue:dead class=Counter agent=a item=i detail=no"), 1U);
  reports_.add(DurableEvent::kFiberRecoveryDead, {{"x", "why"}, {"y", "why"}});
  EXPECT_EQ(logger_.count("warn fiber:recovery:dead"), 2U);
}

TEST_F(WorkReportsTest, AWarningOfDuplicatesComesOnceACallback) {
  for (int i = 0; i < 3; ++i) {
    reports_.warn_of_duplicates("tick");
    reports_.warn_of_duplicates("tock");
  }
  EXPECT_EQ(logger_.count("warn schedule:duplicate_warning"), 2U);
}

TEST_F(WorkReportsTest, WhatTheKindsHaveNotedIsALineOnce) {
  durable::ScheduleRequest late;
  late.type = durable::ScheduleType::kAt;
  late.callback = "tick";
  late.when_ms = unix_millis(clock_.wall_now()) - 1;
  late.misfire = durable::Misfire::kSkip;
  auto& schedules = kinds_.get<durable::Schedules>();
  ASSERT_TRUE(schedules.create(late));
  clock_.advance(std::chrono::hours(1));
  EXPECT_FALSE(schedules.runs().begin_due());
  reports_.add_notes();
  reports_.add_notes();
  EXPECT_EQ(logger_.count("warn schedule:missed"), 1U);
}

TEST_F(WorkReportsTest, WhatCodeCannotReadIsTakenOnce) {
  EXPECT_FALSE(reports_.take_unreadable());
  reports_.note_unreadable();
  EXPECT_TRUE(reports_.take_unreadable());
  EXPECT_FALSE(reports_.take_unreadable());
}

}  // namespace
}  // namespace hearth::extensions
