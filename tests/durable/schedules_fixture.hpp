#pragma once
// One agent's schedules over a real database, with a clock that the test drives.

#include "durable/database_fixture.hpp"
#include "durable/json_members.hpp"
#include "durable/schedules.hpp"
#include "json/json.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace hearth::durable {

class SchedulesFixture : public DatabaseFixture {
 protected:
  SchedulesFixture() : DatabaseFixture(42) { open(); }

  void open() {
    open_database();
    schedules_.emplace(*database_, clock_, random_, settings_, max_crashes_);
    schedules_->load();
  }
  void drop() {
    schedules_.reset();
    database_.reset();
  }
  // As after a kill of the process: only committed data is left.
  void crash() {
    drop();
    open();
  }
  // An eviction, a shutdown or an update of the code.
  void leave() {
    schedules_->interrupt_on_purpose();
    database_->commit();
    schedules_->close();
    drop();
    open();
  }

  Schedules::Created create(const ScheduleRequest& request) {
    auto created = schedules_->create(request);
    EXPECT_TRUE(created.has_value()) << created.error().message;
    database_->commit();
    return created ? *created : Schedules::Created{};
  }
  std::optional<ScheduleRun> begin() {
    auto run = schedules_->runs().begin_due();
    database_->commit();
    return run;
  }
  // The run that is due after so long.
  ScheduleRun begin_in(std::chrono::milliseconds time) {
    clock_.advance(time);
    return begin().value();
  }
  ScheduleEnd end(const ScheduleRun& run, TryOutcome outcome = TryOutcome::kDone,
                  std::string_view error = "it broke") {
    const ScheduleEnd ended = schedules_->runs().ended(run.run, outcome, error);
    database_->commit();
    return ended;
  }
  // Runs all due work successfully, until nothing is due. Returns the callbacks in order.
  std::string run_all() {
    std::string callbacks;
    while (const auto run = begin()) {
      callbacks += run->callback + " ";
      end(*run);
      if (callbacks.size() <= 5'000) continue;
      ADD_FAILURE() << "it never ends";
      break;
    }
    return callbacks;
  }

  // As crash(), and the runs in progress are to blame.
  void crash_in_its_work() {
    drop();
    open_database();
    Jobs(*database_).count_crash({});
    database_->commit();
    open();
  }
  void allow_crashes(int most) {
    max_crashes_ = most;
    crash();
  }
  // Crashes in runs, `times` times in a row.
  void crash_in_runs(int times) {
    for (int i = 0; i < times; ++i) {
      const auto at = schedules_->wake().at_ms;
      if (at && *at > now()) clock_.advance(std::chrono::milliseconds(*at - now()));
      ASSERT_TRUE(begin()) << i;
      crash_in_its_work();
    }
  }

  Json record(std::string_view id) {
    const auto found = schedules_->get(id);
    return found ? *parse_json(*found) : Json();
  }
  std::string state(std::string_view id) { return record(id).value("state", "none"); }
  Json list(const ScheduleFilter& filter = {}) { return *parse_json(schedules_->list(filter)); }
  static Json body(const ScheduleRun& run) { return *parse_json(run.body); }

  void set_wall_by(std::chrono::milliseconds by) { clock_.set_wall(clock_.wall_now() + by); }
  std::size_t notes(ScheduleNote::What what) {
    std::size_t count = 0;
    for (const auto& note : schedules_->runs().take_notes())
      count += note.what == what ? note.count : 0;
    return count;
  }

  static ScheduleRequest delay(std::int64_t ms, std::string_view callback = "tick") {
    ScheduleRequest request;
    request.type = ScheduleType::kDelay;
    request.callback = callback;
    request.when_ms = ms;
    return request;
  }
  static ScheduleRequest at(std::int64_t ms, std::string_view callback = "tick") {
    ScheduleRequest request = delay(ms, callback);
    request.type = ScheduleType::kAt;
    return request;
  }
  static ScheduleRequest every(std::int64_t ms, std::string_view callback = "tick") {
    ScheduleRequest request = delay(ms, callback);
    request.type = ScheduleType::kInterval;
    return request;
  }
  static ScheduleRequest every_fixed(std::int64_t ms, std::string_view callback = "tick") {
    ScheduleRequest request = every(ms, callback);
    request.fixed_rate = true;
    return request;
  }
  static ScheduleRequest with(ScheduleRequest request, Misfire misfire, std::uint32_t limit = 0) {
    request.misfire = misfire;
    request.misfire_limit = limit;
    return request;
  }
  static ScheduleRequest with(ScheduleRequest request, Overlap overlap) {
    request.overlap = overlap;
    return request;
  }
  static ScheduleRequest with(ScheduleRequest request, Idempotent idempotent) {
    request.idempotent = idempotent;
    return request;
  }
  static ScheduleRequest with_attempts(ScheduleRequest request, std::uint32_t most) {
    request.max_attempts = most;
    return request;
  }
  static ScheduleRequest cron(std::string_view expression, std::string_view zone = "",
                              std::string_view callback = "tick") {
    ScheduleRequest request = delay(0, callback);
    request.type = ScheduleType::kCron;
    request.cron = expression;
    request.time_zone = zone;
    return request;
  }

  ScheduleSettings settings_;
  int max_crashes_ = kMostCrashes;
  std::optional<Schedules> schedules_;
};

}  // namespace hearth::durable
