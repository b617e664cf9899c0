#include "runtime/permits.hpp"

#include <gtest/gtest.h>

namespace hearth::runtime {
namespace {

storage::AgentKey agent(const char* name) {
  return {"Counter", name};
}

TEST(PermitsTest, NoMoreThanTheLimitAreOut) {
  Permits permits(2);
  EXPECT_TRUE(permits.take());
  EXPECT_TRUE(permits.take());
  EXPECT_FALSE(permits.take());
  EXPECT_EQ(permits.out(), 2U);
  permits.give_back();
  EXPECT_TRUE(permits.take());
}

TEST(PermitsTest, ThoseThatWaitComeInTheirOrderOnceEach) {
  Permits permits(1);
  for (const char* name : {"a", "b", "a", "c"}) permits.wait(agent(name));
  EXPECT_EQ(permits.waiting(), 3U);
  EXPECT_EQ(permits.next(), agent("a"));
  permits.wait(agent("a"));
  EXPECT_EQ(permits.next(), agent("b"));
  EXPECT_EQ(permits.next(), agent("c"));
  EXPECT_EQ(permits.next(), agent("a")) << "it waits anew";
  EXPECT_FALSE(permits.next());
}

TEST(PermitsTest, ThousandsOfOneClassDoNotHoldUpTheOneOfAnother) {
  Permits permits(1);
  for (int i = 0; i < 5000; ++i) permits.wait({"Many", std::to_string(i)});
  EXPECT_EQ(permits.next(), (storage::AgentKey{"Many", "0"}));
  permits.wait({"Few", "a"});
  permits.wait({"Other", "a"});
  EXPECT_EQ(permits.next(), (storage::AgentKey{"Other", "a"}));
  EXPECT_EQ(permits.next(), (storage::AgentKey{"Few", "a"}));
  EXPECT_EQ(permits.next(), (storage::AgentKey{"Many", "1"}));
  EXPECT_EQ(permits.waiting(), 4998U);
}

TEST(PermitsTest, NobodyIsCalledWhileAllAreOut) {
  Permits permits(1);
  ASSERT_TRUE(permits.take());
  permits.wait(agent("a"));
  EXPECT_FALSE(permits.next());
  EXPECT_EQ(permits.waiting(), 1U);
  permits.give_back();
  EXPECT_EQ(permits.next(), agent("a"));
  EXPECT_EQ(permits.out(), 0U) << "to call somebody is not to take one";
}

}  // namespace
}  // namespace hearth::runtime
