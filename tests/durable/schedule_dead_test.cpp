// Dead schedules: they are told with their reason, and an idempotent request takes their place.
#include "durable/schedules_fixture.hpp"

namespace hearth::durable {
namespace {

using std::chrono::hours;
using What = ScheduleNote::What;

class ScheduleDeadTest : public SchedulesFixture {
 protected:
  ScheduleDeadTest() { allow_crashes(2); }
  // Makes it and lets its runs end the process until it is dead.
  std::string dead(const ScheduleRequest& request) {
    const std::string id = create(request).id;
    clock_.advance(std::chrono::milliseconds(request.when_ms));
    crash_in_runs(2);
    EXPECT_FALSE(begin());
    EXPECT_EQ(state(id), "dead");
    return id;
  }
};

TEST_F(ScheduleDeadTest, WhyOneDiedIsToldWithIt) {
  dead(delay(0));
  const auto notes = schedules_->runs().take_notes();
  ASSERT_EQ(notes.size(), 1U);
  EXPECT_EQ(notes[0].what, What::kDead);
  EXPECT_EQ(notes[0].reason,
            "its work has ended the process as often as fibers.max_crashes allows");
}

TEST_F(ScheduleDeadTest, AnIdempotentRequestTakesThePlaceOfADeadOneThatIsLikeIt) {
  const std::string old = dead(every(1'000));
  const auto created = create(every(1'000));
  EXPECT_TRUE(created.created);
  EXPECT_NE(created.id, old);
  EXPECT_EQ(state(created.id), "waiting");
  EXPECT_FALSE(schedules_->get(old));
  EXPECT_EQ(schedules_->size(), 1U) << "dead ones do not pile up";
  const ScheduleRun run = begin_in(std::chrono::seconds(1));
  EXPECT_EQ(run.id, created.id);
  end(run);
  EXPECT_FALSE(create(every(1'000)).created) << "now it is one that waits";
}

TEST_F(ScheduleDeadTest, TheExchangeIsOneTransaction) {
  const std::string old = dead(every(1'000));
  ASSERT_TRUE(schedules_->create(every(1'000)));
  crash();
  EXPECT_EQ(state(old), "dead");
  EXPECT_EQ(list().size(), 1U);
  EXPECT_TRUE(create(every(1'000)).created);
  crash();
  EXPECT_FALSE(schedules_->get(old));
  EXPECT_EQ(list().size(), 1U);
}

TEST_F(ScheduleDeadTest, AnIdempotentDelayTakesItsPlaceAndAnotherRequestDoesNot) {
  ScheduleRequest request = with(delay(0), Idempotent::kNo);
  const std::string old = dead(request);
  create(request);
  EXPECT_EQ(state(old), "dead") << "it asked for one more";
  EXPECT_EQ(run_all(), "tick ");
  request.idempotent = Idempotent::kYes;
  EXPECT_TRUE(create(request).created);
  EXPECT_FALSE(schedules_->get(old));
  EXPECT_EQ(run_all(), "tick ");
}

TEST_F(ScheduleDeadTest, OneThatWaitsBesideADeadOneIsTheOneThatIsGiven) {
  const std::string old = dead(every(1'000));
  const auto waiting = create(with(every(1'000), Idempotent::kNo));
  const auto found = create(every(1'000));
  EXPECT_FALSE(found.created);
  EXPECT_EQ(found.id, waiting.id);
  EXPECT_EQ(state(old), "dead");
}

TEST_F(ScheduleDeadTest, TheExchangeNeedsNoRoomForOneMore) {
  settings_.max_schedules = 1;
  crash();
  dead(every(1'000));
  EXPECT_TRUE(create(every(1'000)).created);
  EXPECT_FALSE(schedules_->create(every(2'000)));
}

TEST_F(ScheduleDeadTest, RunsOfADeadScheduleThatAreNotOverGoOnUnderTheNewOne) {
  const ScheduleRequest request = with(every_fixed(3'600'000), Overlap::kAllow);
  const std::string old = create(request).id;
  clock_.advance(hours(1));
  crash_in_runs(1);
  clock_.advance(hours(1));
  ASSERT_TRUE(begin() && begin()) << "the interrupted one, and the next";
  crash_in_its_work();
  const ScheduleRun other = begin().value();
  EXPECT_EQ(record(old)["last_error"],
            "its work has ended the process as often as fibers.max_crashes allows");
  const auto created = create(request);
  EXPECT_TRUE(created.created);
  EXPECT_FALSE(schedules_->get(old));
  EXPECT_EQ(state(created.id), "running");
  EXPECT_EQ(end(other).id, created.id);
  EXPECT_EQ(record(created.id)["runs"], 1);
  EXPECT_EQ(state(created.id), "waiting");
  clock_.advance(hours(1));
  EXPECT_EQ(run_all(), "tick ");
}

}  // namespace
}  // namespace hearth::durable
