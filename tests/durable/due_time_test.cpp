#include "durable/due_time.hpp"

#include "support/manual_clock.hpp"

#include <gtest/gtest.h>

namespace hearth::durable {
namespace {

using std::chrono::hours;
using std::chrono::seconds;

class DueTimeTest : public ::testing::Test {
 protected:
  [[nodiscard]] std::int64_t now() const { return unix_millis(clock_.wall_now()); }
  hearth::testing::ManualClock clock_;
};

TEST_F(DueTimeTest, WithoutAMomentItIsReached) {
  EXPECT_TRUE(DueTime().reached(Now(clock_)));
  EXPECT_TRUE(DueTime(clock_, 0).reached(Now(clock_)));
  EXPECT_EQ(DueTime(clock_, 5).wall_ms(Now(clock_)), 5);
}

TEST_F(DueTimeTest, ItIsReachedAtItsMoment) {
  const DueTime due(clock_, now() + 10'000);
  clock_.advance(seconds(9));
  EXPECT_FALSE(due.reached(Now(clock_)));
  EXPECT_EQ(due.wall_ms(Now(clock_)), now() + 1'000);
  clock_.advance(seconds(1));
  EXPECT_TRUE(due.reached(Now(clock_)));
}

TEST_F(DueTimeTest, AClockThatIsSetBackMakesTheWaitNoLonger) {
  const DueTime due(clock_, now() + 10'000);
  clock_.set_wall(clock_.wall_now() - hours(1));
  EXPECT_FALSE(due.reached(Now(clock_)));
  clock_.advance(std::chrono::milliseconds(1'234));
  const std::int64_t moment = due.wall_ms(Now(clock_));
  EXPECT_LE(moment, now() + 8'766 + 2'000);
  clock_.advance(std::chrono::milliseconds(moment - now()));
  EXPECT_TRUE(due.reached(Now(clock_))) << "whoever wakes then does not have to wait again";
  EXPECT_TRUE(due.reached(Now(clock_)));
}

TEST_F(DueTimeTest, AClockThatIsSetAheadEndsTheWait) {
  const DueTime due(clock_, now() + 10'000);
  clock_.set_wall(clock_.wall_now() + hours(1));
  EXPECT_TRUE(due.reached(Now(clock_)));
}

TEST_F(DueTimeTest, AMomentThatIsFarOffOverflowsNothing) {
  const DueTime due(clock_, INT64_MAX);
  EXPECT_FALSE(due.reached(Now(clock_)));
  EXPECT_LT(due.wall_ms(Now(clock_)), INT64_MAX);
}

}  // namespace
}  // namespace hearth::durable
