// What turns and days may spend, on the mock host.
#include "support_agent.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <utility>
#include <vector>

namespace hearth::chat {
namespace {

using std::chrono::seconds;

class BudgetTest : public Conversation {};
INSTANTIATE_TEST_SUITE_P(Providers, BudgetTest, each_dialect(), provider_name);

TEST_P(BudgetTest, ALimitOfTokensEndsTheTurnBeforeTheCall) {
  auto agent = make({{"budget", {{"day", {{"tokens", 2'300}}}}}, {"max_output_tokens", 500}});
  Scripted answer = says({"ok"});
  answer.input_tokens = 900;
  answer.output_tokens = 300;
  model.then(answer);
  ChatClient client = talk(agent, "hi", seconds(1));
  agent.kill();  // what is spent is kept
  ChatClient back(agent);
  say(back, "r2", "hi", seconds(1));
  EXPECT_EQ(back.outcome("r2"), "completed");
  say(back, "r3", "hi", seconds(1));
  EXPECT_EQ(back.outcome("r3"), "error: This chat has reached its daily limit of tokens (2300).");
  EXPECT_EQ(model.requests().size(), 2U);
  wait(std::chrono::hours(25));
  say(back, "r4", "hi", seconds(1));
  EXPECT_EQ(back.outcome("r4"), "completed");
}

TEST_P(BudgetTest, C45_EachLimitEndsTheTurnBeforeItsSecondCall) {
  const Json price{{"input", 1000}, {"output", 2000}};
  const std::vector<std::pair<Json, std::string>> rows = {
      {{{"turn", {{"calls", 1}}}}, "This answer has reached its limit of calls to the model (1)."},
      {{{"turn", {{"tokens", 1'300}}}}, "This answer has reached its limit of tokens (1300)."},
      {{{"turn", {{"cost", 1.9}}}, {"price", price}},
       "This answer has reached its limit of cost (1.9)."},
      {{{"day", {{"calls", 1}}}},
       "This chat has reached its daily limit of calls to the model (1)."},
      {{{"day", {{"cost", 1.9}}}, {"price", price}},
       "This chat has reached its daily limit of cost (1.9)."},
  };
  for (const auto& [budget, refusal] : rows) {
    SCOPED_TRACE(refusal);
    Stage own(GetParam());
    auto agent = own.make({{"budget", budget}, {"max_output_tokens", 500}});
    Scripted call = asks("look", {{"id", "o1"}});
    call.input_tokens = 900;
    call.output_tokens = 300;
    own.model.then(call);
    ChatClient client = own.talk(agent, "hi", seconds(1));
    EXPECT_EQ(client.outcome("r1"), "error: " + refusal);
    EXPECT_EQ(own.model.requests().size(), 1U);
    EXPECT_EQ(agent.call("notes", "error"), Json::array({"budget"}));
  }
}

// Without a usage a call counts as it was reserved.
TEST_P(BudgetTest, C45_TheOutputOfACallWithoutABoundIsReservedToo) {
  auto agent = make({{"budget", {{"turn", {{"tokens", 10'000}}}}}});
  for (int i = 0; i < 5; ++i) model.then(cut(says({"one "})));
  ChatClient client = talk(agent, "hi", std::chrono::hours(1));
  EXPECT_EQ(client.done("r1").at("body"), "This answer has reached its limit of tokens (10000).");
  EXPECT_EQ(model.requests().size(), 2U);
}

TEST_P(BudgetTest, C45_TheNextMessageOfADayThatIsUsedUpIsRefusedUntilTomorrow) {
  auto agent = make({{"budget", {{"day", {{"calls", 1}}}}}});
  model.then({"A cat."});
  ChatClient client = talk(agent, "What is it?", seconds(1));
  say(client, "r2", "Are you sure?", seconds(1));
  EXPECT_EQ(client.done("r2").at("body"),
            "This chat has reached its daily limit of calls to the model (1).");
  wait(std::chrono::hours(24));
  model.then({"Yes."});
  say(client, "r3", "And now?", seconds(1));
  EXPECT_EQ(client.shown("r3"), "Yes.");
}

TEST_P(BudgetTest, APictureIsNoMegabyteOfText) {
  auto agent = make({{"context_tokens", 32'768}, {"budget", {{"day", {{"tokens", 50'000}}}}}});
  model.then({"A cat."});
  ChatClient client = talk(agent, "Look at this.", seconds(1));
  Json picture = user_message("u-2", "What is it?");
  picture["parts"].push_back({{"type", "file"},
                              {"mediaType", "image/png"},
                              {"url", "data:image/png;base64," + std::string(400'000, 'A')}});
  client.ask("r2", Json::array({picture}));
  wait(seconds(1));
  say(client, "r3", "Are you sure?", seconds(1));
  EXPECT_EQ(client.outcome("r3"), "completed");
  ASSERT_EQ(model.requests().size(), 3U);
  for (const char* const said : {"Look at this.", "What is it?", "AAAA", "Are you sure?"})
    EXPECT_TRUE(model.asked_with(2, said)) << said;
}

TEST_P(BudgetTest, ATurnHasAtMostSoManySteps) {
  auto agent = make({{"max_steps", 3}});
  model.then(asks("look", {{"id", "o1"}}));  // again and again
  ChatClient client = talk(agent, "hi", seconds(1));
  EXPECT_EQ(model.requests().size(), 3U);
  EXPECT_EQ(client.outcome("r1"), "completed");
}

}  // namespace
}  // namespace hearth::chat
