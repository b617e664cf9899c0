// What the model gets of the transcript, on the mock host.
#include "support_agent.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <string>

namespace hearth::chat {
namespace {

using std::chrono::seconds;

class HistoryTest : public Conversation {};
INSTANTIATE_TEST_SUITE_P(Providers, HistoryTest, each_dialect(), provider_name);

TEST_P(HistoryTest, IsReadOnceForEachCallOfTheModel) {
  model.then(says({"one"}));
  ChatClient client = talk(support, "go", seconds(1));
  EXPECT_EQ(client.outcome("r1"), "completed");
  EXPECT_EQ(model.requests().size(), 1U);
  EXPECT_EQ(support.call("notes", "history").size(), 1U);
}

// The own message comes last, although others have come between.
TEST_P(HistoryTest, HasNoMessageThatWaitsForItsTurn) {
  model.then_all({says({"first"}, seconds(10)), says({"second"})});
  ChatClient client(support);
  client.say("r1", "count");
  client.say("r2", "again");
  say(client, "r3", "later", seconds(60));
  ASSERT_EQ(model.requests().size(), 3U);
  EXPECT_FALSE(model.asked_with(0, "again"));
  EXPECT_TRUE(model.asked_with(1, "count") && model.asked_with(1, "first") &&
              model.asked_with(1, "again"));
  EXPECT_FALSE(model.asked_with(1, "later"));
  const std::string& last = model.requests()[2].body;
  EXPECT_LT(last.find("second"), last.find("later"));
}

// A client sends its whole list, which has no answer yet.
TEST_P(HistoryTest, AMessageIsNotAskedAgainBehindItsAnswer) {
  model.then(says({"first"}, seconds(10)));
  for (const char* const text : {"second", "third", "fourth"}) model.then({text});
  ChatClient client(support);
  client.say("r1", "count");
  client.ask("r2", Json::array({user_message("u-r1", "count"), user_message("u-r2", "again")}));
  client.ask("r3", Json::array({user_message("u-r1", "count"), user_message("u-r2", "again"),
                                user_message("u-r3", "later")}));
  wait(seconds(60));
  // This one has come when the others were over, and may have been sent before.
  client.ask("r4", Json::array({user_message("u-r3", "later"), user_message("u-r4", "at last")}));
  wait(seconds(60));
  ASSERT_EQ(model.requests().size(), 4U);
  const auto expect_order = [&](std::size_t request, const std::vector<std::string>& texts) {
    const std::string& body = model.requests()[request].body;
    std::size_t at = 0;
    for (const std::string& text : texts) {
      EXPECT_EQ(body.find(text), body.rfind(text)) << text << " in " << body;
      EXPECT_LT(at, body.find(text)) << text << " in " << body;
      at = body.find(text);
    }
  };
  expect_order(1, {"count", "first", "again"});
  EXPECT_FALSE(model.asked_with(1, "later"));
  expect_order(2, {"count", "first", "second", "later"});
  expect_order(3, {"count", "first", "second", "third", "at last"});
  client.read();
  EXPECT_EQ(client.done("r2").at("messageIds"), Json::array({"u-r1", "u-r2"}));
}

// Writes nothing of its own into an answer.
class PlainSupport : public Support {
 public:
  static void methods(Methods<PlainSupport>& m) { chat_methods(m); }
  Task<void> on_turn(Turn& turn) override {
    auto generating = turn.generate();
    co_await std::move(generating);
  }
};

// A turn without an answer leaves its message to the next one.
TEST_P(HistoryTest, AMessageWhoseTurnHasFailedIsAskedBehindTheAnswersBefore) {
  auto agent = host.create<PlainSupport>("a", model.options());
  model.then(says({"first"}, seconds(10)));
  model.then_all({refuses(401, "no"), says({"second"})});
  ChatClient client(agent);
  client.say("r1", "count");
  say(client, "r2", "again", seconds(60));
  client.ask("r3", Json::array({user_message("u-r2", "again"), user_message("u-r3", "later")}));
  wait(seconds(60));
  ASSERT_EQ(model.requests().size(), 3U);
  const std::string& body = model.requests()[2].body;
  EXPECT_LT(body.find("count"), body.find("first"));
  EXPECT_LT(body.find("first"), body.find("again"));
  EXPECT_LT(body.find("again"), body.find("later"));
}

}  // namespace
}  // namespace hearth::chat
