// A chat whose tool is another chat, on the mock host.
#include "support_agent.hpp"

#include <hearth/chat/ask_chat.hpp>

#include <gtest/gtest.h>

#include <chrono>
#include <functional>
#include <string>
#include <vector>

namespace hearth::chat {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

class Desk : public ChatAgent {
 public:
  static void methods(Methods<Desk>& m) { chat_methods(m); }
  static inline seconds start_takes{0};
  Task<void> on_other_start() override {
    if (start_takes.count() > 0) co_await sleep(start_takes);
  }
  Task<void> on_turn(Turn& turn) override {
    turn.chat_tool("expert", "Knows all.", "Support", "b");
    auto generating = turn.generate();
    co_await std::move(generating);
  }
};

// In any dialect.
bool has_result(std::string_view body) {
  for (const char* const mark : {"\"tool\"", "function_call_output", "tool_result"})
    if (has(body, mark)) return true;
  return false;
}

Scripted desk_or_expert(std::string_view body) {
  if (has(body, "customers of Acme")) return says({"It ", "is ", "forty-two."}, seconds(1));
  if (has(body, "forty-two.")) return says({"So it is."});
  return asks("expert", {{"text", "What is it?"}});
}

// One of a call that has not ended.
std::vector<std::string> preliminary(const ChatClient& client) {
  std::vector<std::string> outputs;
  for (const Json& frame : client.frames("cf_agent_use_chat_response")) {
    const Json chunk = Json::parse(frame.at("body").get<std::string>(), nullptr, false);
    if (chunk.is_object() && chunk.value("preliminary", false))
      outputs.push_back(chunk.at("output").get<std::string>());
  }
  return outputs;
}

class AskChatTest : public Conversation {
 protected:
  AskChatTest() { model.by_request(desk_or_expert); }
  testing::AgentHandle expert = host.create<Support>("b", model.options());
  testing::AgentHandle desk = host.create<Desk>("a", model.options());
};
INSTANTIATE_TEST_SUITE_P(Providers, AskChatTest, each_dialect(), provider_name);

TEST_P(AskChatTest, TheOtherChatAnswersAndIsSeenToGrow) {
  ChatClient client = talk(desk, "What?", seconds(10));
  EXPECT_EQ(client.shown("r1"), "So it is.");
  EXPECT_EQ(preliminary(client), (std::vector<std::string>{"It ", "It is ", "It is forty-two."}));
  EXPECT_EQ(text_of(transcript_of(expert)[1]), "It is forty-two.");
  EXPECT_EQ(model.requests().size(), 3U);
}

TEST_P(AskChatTest, AKillOfEitherLosesNothingAndAsksOnce) {
  for (int moment = 0; moment < 10; ++moment) {
    SCOPED_TRACE(moment);
    Stage own(GetParam());
    own.model.by_request(desk_or_expert);
    auto other = own.host.create<Support>("b", own.model.options());
    auto asking = own.make<Desk>();
    {
      ChatClient client = own.talk(asking, "What?", milliseconds(100 + moment / 2 * 1'000));
      (moment % 2 == 0 ? asking : other).kill();
    }
    own.wait(seconds(120));
    const Json stored = transcript_of(asking);
    ASSERT_EQ(stored.size(), 2U);
    EXPECT_EQ(text_of(stored[1]), "So it is.");
    EXPECT_EQ(transcript_of(other).size(), 2U);
    EXPECT_EQ(other.call("notes", "end"), Json::array({"completed"}));
  }
}

// The desk is away while the other chat ends its answer and begins another one, for which the log
// of the first is dropped; and the message, if it keeps one only.
TEST_P(AskChatTest, TheWholeAnswerIsTheResultAlthoughItsLogIsGone) {
  for (const bool is_removed : {false, true}) {
    SCOPED_TRACE(is_removed);
    Stage own(GetParam());
    own.model.by_request([&](std::string_view body) {
      if (has(body, "another question"))
        return says({"Later."}, is_removed ? milliseconds(0) : std::chrono::hours(1));
      if (has(body, "customers of Acme"))
        return says({"It is ", "forty-two."}, is_removed ? seconds(1) : seconds(5));
      return has_result(body) ? says({"So it is."}) : desk_or_expert(body);
    });
    Json options = own.model.options();
    if (is_removed) options["max_persisted_messages"] = 1;
    auto other = own.host.create<Support>("b", options);
    auto asking = own.make<Desk>();
    ChatClient client = own.talk(asking, "What?", seconds(1));
    if (!is_removed) other.call("start", "another question", "k");
    own.wait(is_removed ? milliseconds(500) : seconds(10));
    Desk::start_takes = seconds(9);
    asking.kill();
    own.wait(seconds(7));
    if (is_removed) other.call("start", "another question", "k");
    own.wait(seconds(100));
    Desk::start_takes = seconds(0);
    const Json stored = transcript_of(asking)[1];
    EXPECT_EQ(text_of(stored), "So it is.");
    const Json& call = stored.at("parts")[1];
    if (is_removed)
      EXPECT_EQ(call.value("errorText", ""), "The other chat has dropped the question.");
    else
      EXPECT_EQ(call.value("output", ""), "It is forty-two.");
  }
}

TEST_P(AskChatTest, AStopReachesTheOtherChat) {
  ChatClient client = talk(desk, "What?", milliseconds(1'500));
  stop(client, "r1", seconds(5));
  EXPECT_EQ(client.outcome("r1"), "aborted");
  EXPECT_EQ(expert.call("notes", "end"), Json::array({"aborted"}));
}

TEST_P(AskChatTest, ItsFailureIsTheResultOfTheTool) {
  model.by_request([](std::string_view body) {
    return has(body, "customers of Acme") ? refuses(400, "no")
           : has_result(body)             ? says({"A pity."})
                                          : asks("expert", {{"text", "What?"}});
  });
  ChatClient client = talk(desk, "What?", seconds(5));
  EXPECT_EQ(client.shown("r1"), "A pity.");
  EXPECT_TRUE(has(model.requests().back().body, client_text(FailureKind::kInvalid)));
}

// Each of the two asks the other.
class Twin : public ChatAgent {
 public:
  static void methods(Methods<Twin>& m) { chat_methods(m); }
  Task<void> on_turn(Turn& turn) override {
    turn.chat_tool("other", "Knows the rest.", "Twin", name() == "a" ? "b" : "a");
    auto generating = turn.generate();
    co_await std::move(generating);
  }
};

class TwinTest : public Conversation {};
INSTANTIATE_TEST_SUITE_P(Providers, TwinTest, each_dialect(), provider_name);

TEST_P(TwinTest, ChatsThatAskEachOtherAreToldInsteadOfWaiting) {
  model.by_request([](std::string_view body) {
    return !has_result(body) ? asks("other", {{"text", "And you?"}}) : says({"I know no more."});
  });
  auto first = host.create<Twin>("a", model.options());
  auto second = host.create<Twin>("b", model.options());
  ChatClient client = talk(first, "What?", seconds(30));
  EXPECT_EQ(client.shown("r1"), "I know no more.");
  const Json refused = transcript_of(second)[1].at("parts")[1];
  EXPECT_EQ(refused.at("errorText"), "this chat waits for the answer of the one that asks it");
  EXPECT_EQ(model.requests().size(), 4U);
}

TEST_P(AskChatTest, AChatThatSaysNothingIsWaitedForAnHour) {
  model.by_request([](std::string_view body) {
    if (has(body, "customers of Acme")) return says({"never"}, std::chrono::hours(100));
    return has_result(body) ? says({"A pity."}) : asks("expert", {{"text", "What?"}});
  });
  ChatClient client = talk(desk, "What?", std::chrono::minutes(59));
  EXPECT_EQ(client.shown("r1"), "");
  wait(std::chrono::minutes(5), client);
  EXPECT_EQ(client.shown("r1"), "A pity.");
}

std::string refusal(const std::function<void()>& call) {
  try {
    call();
  } catch (const std::exception& error) {
    return error.what();
  }
  return "";
}

TEST_P(AskChatTest, OnlyAgentsCallItsMethods) {
  for (const std::string& said : {refusal([&] { desk.call("chat.start", "hi", "key"); }),
                                  refusal([&] { desk.call("chat.cancel", "r1"); })})
    EXPECT_NE(said.find("only agents call this method"), std::string::npos) << said;
  EXPECT_EQ(transcript_of(desk), Json::array());
}

// Users write to both at once: neither question is in the chain of the other.
TEST_P(TwinTest, ChatsThatAskEachOtherAtOnceDoNotWaitForEachOther) {
  for (int moment = -1; moment < 12; ++moment) {
    SCOPED_TRACE(moment);
    Stage own(GetParam());
    own.model.by_request([](std::string_view body) {
      if (has_result(body)) return says({"I know no more."});
      Scripted asking = asks("other", {{"text", "And you?"}});
      asking.between = milliseconds(500);
      return asking;
    });
    auto first = own.host.create<Twin>("a", own.model.options());
    auto second = own.host.create<Twin>("b", own.model.options());
    ChatClient of_first(first);
    ChatClient of_second(second);
    of_first.say("r1", "What?");
    of_second.say("r2", "What?");
    if (moment >= 0) {  // either or both are killed on the way
      own.wait(milliseconds(250) * (1 + moment / 3));
      if (moment % 3 != 1) first.kill();
      if (moment % 3 != 0) second.kill();
    }
    own.wait(seconds(120));
    bool is_refused = false;
    for (auto* const chat : {&first, &second}) {
      const Json stored = transcript_of(*chat);
      std::ptrdiff_t answers = 0;
      for (const Json& message : stored)
        answers += message.at("role") == "assistant" && text_of(message) == "I know no more.";
      EXPECT_EQ(answers * 2, std::ssize(stored)) << to_text(stored);
      is_refused |= has(to_text(stored), "this chat waits for the answer of the one that asks it");
    }
    EXPECT_TRUE(is_refused);
  }
}

// As URLs spell the class.
class UrlTwin : public ChatAgent {
 public:
  static void methods(Methods<UrlTwin>& m) { chat_methods(m); }
  Task<void> on_turn(Turn& turn) override {
    turn.chat_tool("other", "Knows the rest.", "url-twin", name() == "a" ? "b" : "a");
    auto generating = turn.generate();
    co_await std::move(generating);
  }
};

TEST_P(TwinTest, AClassIsTheSameHoweverItIsSpelled) {
  model.by_request([](std::string_view body) {
    if (has_result(body)) return says({"I know no more."});
    Scripted asking = asks("other", {{"text", "And you?"}});
    asking.between = milliseconds(500);
    return asking;
  });
  auto first = host.create<UrlTwin>("a", model.options());
  auto second = host.create<UrlTwin>("b", model.options());
  ChatClient of_first(first);
  ChatClient of_second(second);
  of_first.say("r1", "What?");
  of_second.say("r2", "What?");
  wait(seconds(120), of_first, of_second);
  EXPECT_EQ(of_first.shown("r1"), "I know no more.");
  EXPECT_EQ(of_second.shown("r2"), "I know no more.");
}

}  // namespace
}  // namespace hearth::chat
