#include "runtime/crashed_agent.hpp"

#include <gtest/gtest.h>

#include <optional>
#include <string>

namespace hearth::runtime {
namespace {

AgentCrash crash_of(const std::string& name) {
  return {.agent_class = "Counter",
          .agent_digest = sha256_prefix(name),
          .sender = 0,
          .how = {.row = 7}};
}

TEST(CrashedAgentTest, IsTakenOnceAndByNoOther) {
  CrashedAgent crashed(crash_of("a"));
  EXPECT_FALSE(crashed.take({"Counter", "b"}));
  EXPECT_FALSE(crashed.take({"Other", "a"}));
  const auto how = crashed.take({"Counter", "a"});
  ASSERT_TRUE(how);
  EXPECT_EQ(how->row, 7);
  EXPECT_FALSE(crashed.take({"Counter", "a"}));
}

TEST(CrashedAgentTest, TheWorkOfAnotherAgentIsTakenByThatAgentAlone) {
  AgentCrash crash = crash_of("a");
  const storage::AgentKey sender{"Sender", "s"};
  crash.sender = sender.digest();
  CrashedAgent crashed(crash);
  EXPECT_FALSE(crashed.take({"Counter", "a"}));
  EXPECT_FALSE(crashed.take({"Sender", "t"}));
  ASSERT_TRUE(crashed.take(sender));
  EXPECT_FALSE(crashed.take(sender));
}

TEST(CrashedAgentTest, ThereMayBeNone) {
  CrashedAgent nobody(std::nullopt);
  EXPECT_FALSE(nobody.take({"", ""}));
  EXPECT_FALSE(nobody.take({"Counter", "a"}));
  CrashedAgent unknown(
      AgentCrash{.agent_class = "Counter", .agent_digest = 0, .sender = 0, .how = {}});
  EXPECT_FALSE(unknown.take({"Counter", ""})) << "a record of an earlier version";
}

TEST(CrashedAgentTest, ALongNameIsNotTakenForOneThatBeginsAsItDoes) {
  const std::string long_name(200, 'x');
  CrashedAgent crashed(crash_of(long_name));
  for (const std::size_t size : {60U, 61U, 64U, 199U, 201U})
    EXPECT_FALSE(crashed.take({"Counter", std::string(size, 'x')})) << size;
  EXPECT_TRUE(crashed.take({"Counter", long_name}));
}

TEST(CrashedAgentTest, ANameThatARecordCannotShowIsKnownToo) {
  CrashedAgent crashed(crash_of("a\nb"));
  EXPECT_FALSE(crashed.take({"Counter", "a?b"}));
  EXPECT_TRUE(crashed.take({"Counter", "a\nb"}));
}

}  // namespace
}  // namespace hearth::runtime
