#pragma once
// An agent's durable work over a real database that can crash.

#include "extensions/durable_work.hpp"
#include "support/manual_clock.hpp"
#include "support/recording_logger.hpp"
#include "support/seeded_random.hpp"
#include "support/temp_directory.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>

namespace hearth::extensions {

class DurableWorkFixture : public ::testing::Test {
 protected:
  DurableWorkFixture() { open(); }

  void open(const std::optional<durable::EndedProcess>& ended = std::nullopt,
            bool needed_person = false, bool has_code = true) {
    database_ = std::make_unique<storage::AgentDatabase>(directory_.path() / "a.db", agent_);
    work_ = std::make_unique<DurableWork>(*database_, agent_, clock_, random_, settings_, events_,
                                          stops_);
    work_->load(ended, needed_person, has_code);
  }
  // As after a crash of the process: committed data stays.
  void crash(const std::optional<durable::EndedProcess>& ended = std::nullopt) {
    database_->commit();
    work_->close();
    work_.reset();
    database_.reset();
    open(ended);
  }
  DueWork take(bool may_recover = false) {
    auto work = work_->dispatch().next(may_recover);
    EXPECT_TRUE(work);
    return work ? std::move(*work) : DueWork{};
  }
  void schedule(const char* callback) {
    durable::ScheduleRequest request;
    request.type = durable::ScheduleType::kDelay;
    request.callback = callback;
    EXPECT_TRUE(work_->schedules().create(request));
  }
  void schedule_minutely() {
    durable::ScheduleRequest minutely;
    minutely.type = durable::ScheduleType::kCron;
    minutely.callback = "tick";
    minutely.cron = "* * * * *";
    minutely.time_zone = "Europe/Berlin";
    EXPECT_TRUE(work_->schedules().create(minutely));
  }
  void push(const char* callback) {
    durable::QueueRequest request{.callback = callback};
    EXPECT_TRUE(work_->queue().push(request));
  }
  // A fiber whose record goes with its end.
  void begin(const std::string& id) {
    durable::FiberRequest request{
        .name = "work", .id = id, .keeping = durable::FiberKeeping::kBrief};
    EXPECT_TRUE(work_->fibers().start(request));
  }
  // The first offer, after the plan, which says nothing.
  DueWork take_offer() {
    const DueWork plan = take(true);
    EXPECT_EQ(plan.kind, EventKind::kFibersRecovered);
    work_->dispatch().ended(plan, std::string_view());
    return take(true);
  }
  void settle_one(const char* id) {
    const auto started = work_->fibers().start({.name = "work", .id = id});
    ASSERT_TRUE(started);
    EXPECT_TRUE(work_->fibers().settle(started->fiber, durable::FiberStatus::kCompleted, ""));
  }

  hearth::testing::TempDirectory directory_;
  hearth::testing::ManualClock clock_;
  hearth::testing::SeededRandom random_{7};
  hearth::testing::RecordingLogger logger_;
  DurableLog events_{logger_};
  StopPointsAtCommit stops_;
  ClassSettings settings_;
  const storage::AgentKey agent_{"Counter", "a"};
  std::unique_ptr<storage::AgentDatabase> database_;
  std::unique_ptr<DurableWork> work_;
};

}  // namespace hearth::extensions
