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

// It was stored, and its client knows. Whatever fibers of the agent have ended: it begins.
TEST(NoFiberTest, AMessageThatWaitsIsAnsweredOnceThereIsRoom) {
  Stage own(ScriptedModel::kDialects[0]);
  own.model.then_all({says({"first"}, seconds(20)), says({"second"})});
  auto agent = own.make();
  ChatClient client(agent);
  own.say(client, "r1", "one", seconds(1));
  own.say(client, "r2", "two", seconds(1));
  own.host.fail_start_fiber(HEARTH_E_LIMIT);
  own.wait(seconds(300), client);
  EXPECT_EQ(client.outcome("r1"), "completed");
  EXPECT_LT(own.logged("turn r2 cannot begin yet"), 20U);
  own.host.fail_start_fiber(HEARTH_OK);
  own.wait(seconds(31), client);
  EXPECT_EQ(client.shown("r2"), "second");
}

TEST(NoFiberTest, AMessageThatIsRefusedChangesNothing) {
  Stage own(ScriptedModel::kDialects[0]);
  own.model.then_all({says({"first"}), says({"second"})});
  auto agent = own.make();
  ChatClient client(agent);
  own.say(client, "r1", "hi", seconds(1));
  const Json before = transcript_of(agent);
  own.host.fail_start_fiber(HEARTH_E_LIMIT);
  client.ask("r2", Json::array({user_message("u-r1", "hi")}), {{"trigger", "regenerate-message"}});
  own.wait(seconds(1), client);
  EXPECT_EQ(client.done("r2").value("error", false), true);
  EXPECT_EQ(transcript_of(agent), before);
  own.host.fail_start_fiber(HEARTH_OK);
  client.ask("r2", Json::array({user_message("u-r1", "hi")}), {{"trigger", "regenerate-message"}});
  own.wait(seconds(1), client);
  EXPECT_EQ(texts_of(agent), (std::vector<std::string>{"hi", "second"}));
}

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

// The frame is read on another thread meanwhile.
TEST(LeavingClientTest, AFrameCountsAlthoughItsSenderLeavesRightBehindIt) {
  for (const bool is_readonly : {false, true}) {
    for (const std::size_t size : {2U, 300'000U}) {
      SCOPED_TRACE(std::to_string(size) + (is_readonly ? " readonly" : ""));
      Stage own(ScriptedModel::kDialects[0]);
      own.model.then({"hello"});
      auto agent = own.make<Shut>();
      {
        ChatClient client(agent, "tab", is_readonly ? "guest=1" : "");
        own.wait(seconds(1));
        own.host.hold_offload(true);
        client.say("r1", std::string(size, 'x'));
        client.say("r2", "hi");
        client.close();
        own.wait(seconds(1));
      }
      own.host.hold_offload(false);
      own.wait(seconds(60));
      EXPECT_EQ(transcript_of(agent).size(), is_readonly ? 0U : 4U);
      EXPECT_EQ(own.logged("on_message failed"), 0U);
    }
  }
}

TEST(LeavingClientTest, AFrameCountsAlthoughItsSenderLeavesWhileTheAgentStarts) {
  Stage own(ScriptedModel::kDialects[0]);
  own.model.then({"hello"});
  auto agent = own.make({{"slow_start", true}});
  {
    ChatClient client(agent);
    own.wait(seconds(2));
    agent.evict();
    client.say("r1", "hi");
    client.close();
  }
  own.wait(seconds(60));
  EXPECT_EQ(transcript_of(agent).size(), 2U);
  EXPECT_EQ(own.logged("on_message failed"), 0U);
}

}  // namespace
}  // namespace hearth::chat
