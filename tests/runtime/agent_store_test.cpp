// The commit that turns share. The store itself: live_agent_storage_test, live_agent_power_test,
// live_agent_checkpoint_test.
#include "runtime/agent_store.hpp"

#include <gtest/gtest.h>

namespace hearth::runtime {
namespace {

TEST(SharedCommitTest, ItWaitsWhileEventsComeAndNoLongerThanTheLoopSays) {
  // t: a turn ends that has entered the code, w: one that has not.  s: it is scheduled, S: it was
  // already.  E: the end of a turn of the loop is its time, e: it is not.  l: the last such end
  // before the loop waits.
  const char* const cases[] = {"tsE",       "tswSE", "tstSwSeE", "tstSeE",
                               "tstSetSeE", "tstSl", "tsEtsE",   "tsEttstSeE"};
  for (const char* const each : cases) {
    SharedCommit commit;
    std::uint64_t entries = 0;
    for (const char* step = each; *step != '\0'; ++step) {
      switch (*step) {
        case 't': commit.turn_ended(++entries); break;
        case 'w': commit.turn_ended(entries); break;
        case 's':
        case 'S': EXPECT_EQ(commit.schedule(), *step == 's') << each; break;
        case 'l': EXPECT_TRUE(commit.is_time(true)) << each; break;
        default: EXPECT_EQ(commit.is_time(false), *step == 'E') << each;
      }
    }
  }
}

}  // namespace
}  // namespace hearth::runtime
