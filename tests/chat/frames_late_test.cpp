// Frames that come when the agent has no room for a fiber, when its turn does not go on yet, or
// right before their client leaves, on the mock host.
#include "support_agent.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <vector>

namespace hearth::chat {
namespace {

using std::chrono::seconds;

// Its tab has sent it before the fiber of the turn goes on.
TEST(RestartTest, C30_AResultThatComesBeforeTheTurnGoesOnIsUsed) {
  Stage own("anthropic");
  auto agent = own.make({{"slow_start", true}});
  const Scripted asking =
      both(both(says({"I look. "}, seconds(10)), asks("where", {{"a", 1}})), says({"x ", "y "}));
  own.model.then_all({asking, says({"In Rome."})});
  ChatClient client(agent);
  client.ask_where("r1", "where am I?");
  own.wait(seconds(35));
  agent.kill();
  ChatClient back(agent);
  back.answer("call_1_1", "Rome");
  own.wait(seconds(120));
  const Json stored = transcript_of(agent)[1];
  EXPECT_EQ(calls_of(stored).at(0).value("output", ""), "Rome");
  EXPECT_TRUE(text_of(stored).ends_with("In Rome.")) << text_of(stored);
  EXPECT_EQ(own.model.requests().size(), 2U);
}

}  // namespace
}  // namespace hearth::chat
