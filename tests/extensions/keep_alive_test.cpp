#include "extensions/keep_alive.hpp"

#include "extensions/abi_fixture.hpp"

#include <gtest/gtest.h>

namespace hearth::extensions {
namespace {

using namespace testing;

class AbiKeepAliveTest : public AbiHostTest {
 protected:
  const hearth_keep_alive_v1& keep_alive_ = extension<hearth_keep_alive_v1>(HEARTH_EXT_KEEP_ALIVE);
};

TEST_F(AbiKeepAliveTest, WantsALiveAgentOnItsThreadAndAHost) {
  for (const auto function : {keep_alive_.acquire, keep_alive_.release}) {
    EXPECT_EQ(function(host_, 1), HEARTH_E_GONE);
    EXPECT_EQ(function(host_, TestDirectory::kElsewhere), HEARTH_E_WRONG_THREAD);
    EXPECT_EQ(function(nullptr, kAgent), HEARTH_E_INVALID);
  }
}

TEST_F(AbiKeepAliveTest, AnAgentIsKeptWhileAReferenceIsHeld) {
  EXPECT_FALSE(agent_.extensions().keeps_alive());
  EXPECT_EQ(keep_alive_.acquire(host_, kAgent), HEARTH_OK);
  EXPECT_EQ(keep_alive_.acquire(host_, kAgent), HEARTH_OK);
  EXPECT_EQ(keep_alive_.release(host_, kAgent), HEARTH_OK);
  EXPECT_TRUE(agent_.extensions().keeps_alive());
  EXPECT_EQ(keep_alive_.release(host_, kAgent), HEARTH_OK);
  EXPECT_FALSE(agent_.extensions().keeps_alive());
  EXPECT_EQ(keep_alive_.release(host_, kAgent), HEARTH_E_INVALID) << "none is held";
  EXPECT_FALSE(agent_.has_stored());
}

TEST_F(AbiKeepAliveTest, NoneIsTakenWhileTheAgentGoesNorMoreThanAnybodyCanMean) {
  agent_.its_phase = AgentPhase::kClosing;
  EXPECT_EQ(keep_alive_.acquire(host_, kAgent), HEARTH_E_CLOSING);
  agent_.its_phase = AgentPhase::kRunning;
  for (int held = 0; held < 1'000'000; ++held)
    ASSERT_EQ(keep_alive_.acquire(host_, kAgent), HEARTH_OK);
  EXPECT_EQ(keep_alive_.acquire(host_, kAgent), HEARTH_E_LIMIT);
}

}  // namespace
}  // namespace hearth::extensions
