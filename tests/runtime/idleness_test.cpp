#include "runtime/idleness.hpp"

#include <gtest/gtest.h>

namespace hearth::runtime {
namespace {

using std::chrono::milliseconds;

TEST(IdlenessTest, AnIdleAgentGivesBackItsCachesAndLeavesInTime) {
  struct Row {
    milliseconds unused;
    milliseconds timeout;
    bool is_busy;
    bool is_trimmed;
    IdleStep step;
  };
  const milliseconds short_timeout = kTrimAfter / 2;
  const milliseconds long_timeout = kTrimAfter * 5;
  for (const Row& row : {
           Row{kTrimAfter - milliseconds(1), long_timeout, false, false, IdleStep::kNothing},
           {kTrimAfter, long_timeout, false, false, IdleStep::kTrimAll},
           {kTrimAfter, long_timeout, false, true, IdleStep::kNothing},
           {long_timeout - milliseconds(1), long_timeout, false, true, IdleStep::kNothing},
           {long_timeout, long_timeout, false, true, IdleStep::kLeave},
           {long_timeout, long_timeout, false, false, IdleStep::kLeave},
           {short_timeout, short_timeout, false, false, IdleStep::kLeave},
           {kTrimAfter, kTrimAfter, false, false, IdleStep::kLeave},
           {long_timeout, long_timeout, true, false, IdleStep::kTrimUnused},
           {long_timeout, long_timeout, true, true, IdleStep::kTrimUnused},
           {kTrimAfter, kTrimAfter, true, false, IdleStep::kTrimUnused},
           {long_timeout, short_timeout, true, false, IdleStep::kNothing},
       })
    EXPECT_EQ(idle_step(row.unused, row.timeout, row.is_busy, row.is_trimmed), row.step)
        << row.unused.count() << " of " << row.timeout.count() << " ms, busy " << row.is_busy
        << ", trimmed " << row.is_trimmed;
}

TEST(IdlenessTest, TheTimerLooksWhenTheNextStepIsDue) {
  EXPECT_EQ(next_look(kTrimAfter * 5, false), kTrimAfter);
  EXPECT_EQ(next_look(kTrimAfter * 5, true), kTrimAfter * 5);
  EXPECT_EQ(next_look(kTrimAfter / 2, false), kTrimAfter / 2);
}

}  // namespace
}  // namespace hearth::runtime
