#include "runtime/keyed_calls.hpp"

#include "runtime/fakes.hpp"

#include <gtest/gtest.h>

#include <memory>

namespace hearth::runtime {
namespace {

using testing::Answer;
using testing::FakeSink;
using testing::kUsualAgent;

TEST(KeyedCallsTest, AKeyIsTakenUntilItsCallEnds) {
  auto calls = std::make_unique<KeyedCalls>();
  const auto enter = [&](const extensions::CallKey& call, const storage::AgentKey& agent,
                         std::shared_ptr<Answer> answer) {
    return calls->enter(agent, call, std::make_unique<FakeSink>(std::move(answer)));
  };
  const auto answer = std::make_shared<Answer>();
  auto first = enter({"k", "f"}, kUsualAgent, answer);
  ASSERT_NE(first, nullptr);

  const auto again = std::make_shared<Answer>();
  EXPECT_EQ(enter({"k", "f"}, kUsualAgent, again), nullptr);
  EXPECT_EQ(again->end, "error conflict: a call with this key is under way");
  EXPECT_EQ(again->status, 423U);
  const auto other = std::make_shared<Answer>();
  EXPECT_EQ(enter({"k", "g"}, kUsualAgent, other), nullptr);
  EXPECT_EQ(other->status, 422U);
  EXPECT_NE(enter({"l", "f"}, kUsualAgent, std::make_shared<Answer>()), nullptr);
  EXPECT_NE(enter({"k", "f"}, {"Counter", "b"}, std::make_shared<Answer>()), nullptr);

  first->finish({}, std::string_view("5"));
  EXPECT_EQ(answer->end, "ok 5");
  auto second = enter({"k", "f"}, kUsualAgent, std::make_shared<Answer>());
  ASSERT_NE(second, nullptr) << "the first one has ended";
  first.reset();
  EXPECT_EQ(enter({"k", "f"}, kUsualAgent, std::make_shared<Answer>()), nullptr);
  second.reset();  // dropped without an answer
  second = enter({"k", "f"}, kUsualAgent, std::make_shared<Answer>());
  ASSERT_NE(second, nullptr);
  calls.reset();  // the sink outlives it
}

}  // namespace
}  // namespace hearth::runtime
