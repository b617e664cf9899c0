#include "server/descriptor_budget.hpp"

#include "support/few_descriptors.hpp"
#include "support/recording_logger.hpp"

#include <sys/resource.h>

#include <gtest/gtest.h>

#include <cstdlib>

namespace hearth::server {
namespace {

config::Config with_limits(std::uint32_t agents, std::uint32_t connections,
                           std::size_t requests = 0) {
  config::Config config;
  config.server.shards = 2;
  config.server.runtime.max_live_agents = agents;
  config.server.net.max_connections = connections;
  config.server.egress.max_requests = requests;
  return config;
}

TEST(DescriptorBudgetTest, WhatFitsIsLeftAsItIs) {
  const DescriptorBudget budget = descriptor_budget(with_limits(100, 50), 2, 298);
  EXPECT_EQ(budget.wanted, 32U + 2U * 8 + 50 + 2U * 100);
  EXPECT_TRUE(budget.fits());
  EXPECT_EQ(budget.max_live_agents, 100U);
  EXPECT_FALSE(descriptor_budget(with_limits(100, 50), 2, 297).fits());
}

TEST(DescriptorBudgetTest, SocketsComeFirstButTakeNoMoreThanHalf) {
  EXPECT_EQ(descriptor_budget(with_limits(100, 50), 2, 248).max_live_agents, 75U);
  EXPECT_EQ(descriptor_budget(with_limits(10'000, 10'000), 2, 200).max_live_agents, 38U);
  EXPECT_EQ(descriptor_budget(with_limits(10'000, 10'000), 2, 200).max_connections, 76U);
  EXPECT_EQ(descriptor_budget(with_limits(100, 50), 2, 248).max_connections, 50U);
  EXPECT_EQ(descriptor_budget(with_limits(10'000, 10'000), 2, 10).max_live_agents, 1U);
  EXPECT_EQ(descriptor_budget(with_limits(10'000, 10'000), 2, 10).max_connections, 1U);
}

TEST(DescriptorBudgetTest, SocketsAlsoGetWhatAgentsLeave) {
  const DescriptorBudget budget = descriptor_budget(with_limits(10, 10'000), 2, 248);
  EXPECT_EQ(budget.max_live_agents, 10U);
  EXPECT_EQ(budget.max_connections, 180U);
}

TEST(DescriptorBudgetTest, RequestsGetAnEighthOfWhatAgentsHaveOrWhatTheyLeave) {
  struct Case {
    std::uint32_t agents, connections;
    std::uint64_t limit;  // 48 are the process's own and those of two shards
    std::size_t fitting_agents, fitting_requests;
  };
  for (const Case& each : {Case{100, 50, 4298, 100, 2000},  // all fits
                           Case{100, 50, 4297, 100, 1999},  // agents leave the rest
                           Case{100, 50, 298, 87, 12},      // 25 of 200
                           Case{10'000, 10'000, 20'000, 4364, 623}, Case{10, 10, 50, 1, 1}}) {
    const DescriptorBudget budget =
        descriptor_budget(with_limits(each.agents, each.connections, 2000), 2, each.limit);
    EXPECT_EQ(budget.max_live_agents, each.fitting_agents) << each.limit;
    EXPECT_EQ(budget.max_requests, each.fitting_requests) << each.limit;
    EXPECT_EQ(budget.wanted, 48U + each.connections + 2U * each.agents + 4000);
  }
}

// Returns 0 if all is right. Lowers the hard limit, which an ordinary user cannot raise again: so
// it runs in a child.
int claim_of_200() {
  rlimit limit{};
  limit.rlim_cur = limit.rlim_max = 200;
  if (::setrlimit(RLIMIT_NOFILE, &limit) != 0) return 2;
  hearth::testing::RecordingLogger logger;
  config::Config config = with_limits(10'000, 10'000, 2000);
  claim_descriptors(config, logger);
  if (!logger.contains("server.few_descriptors")) return 3;
  const config::ServerConfig& server = config.server;
  const bool fits = server.runtime.max_live_agents == 33 && server.net.max_connections == 76 &&
                    server.egress.max_requests == 4;
  return fits ? 0 : 1;
}

TEST(DescriptorBudgetTest, WhatDoesNotFitLowersBothLimits) {
  EXPECT_EXIT(std::_Exit(claim_of_200()), ::testing::ExitedWithCode(0), "");
}

TEST(DescriptorBudgetTest, AnAgentWhoseWritesAreSyncedNeedsOneMore) {
  config::Config config = with_limits(100, 50);
  config.classes["Safe"].settings.durability = runtime::Durability::kPower;
  EXPECT_EQ(descriptor_budget(config, 2, 1000).wanted, 32U + 2U * 8 + 50 + 3U * 100);
}

TEST(DescriptorBudgetTest, TheLimitIsRaisedAndWhatDoesNotFitIsSaidWithWhatToDo) {
  const hearth::testing::FewDescriptors few(100);  // the soft limit; the hard one is the system's
  rlimit limit{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &limit), 0);
  ASSERT_LT(limit.rlim_cur, limit.rlim_max);
  hearth::testing::RecordingLogger logger;
  config::Config modest = with_limits(10, 10);
  claim_descriptors(modest, logger);
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &limit), 0);
  EXPECT_EQ(limit.rlim_cur, limit.rlim_max);
  EXPECT_FALSE(logger.contains("server.few_descriptors"));
  EXPECT_EQ(modest.server.runtime.max_live_agents, 10U);
}

}  // namespace
}  // namespace hearth::server
