// The assistant on the mock host, with a model that says what a test has written for it.

#include "assistant/assistant.cpp"  // NOLINT(bugprone-suspicious-include): an agent class needs no header

#include "chat/chat_client.hpp"
#include "chat/scripted_model.hpp"
#include "chat/support_agent.hpp"

#include <hearth/testing/host.hpp>

#include <gtest/gtest.h>

#include <chrono>
#include <cstddef>
#include <string>
#include <vector>

using std::chrono::milliseconds;
using std::chrono::seconds;

namespace {

using hearth::Json;
using hearth::chat::ChatClient;
using hearth::chat::Scripted;
using hearth::chat::ScriptedModel;
using hearth::testing::FetchReply;
using hearth::testing::Host;
using hearth::testing::SentRequest;

// Keeps the notes that tools bring.
class Notebook : public hearth::Agent {
 public:
  static void methods(hearth::Methods<Notebook>& m) {
    m.add("add", &Notebook::add);
    m.add("notes", &Notebook::notes);
  }
  hearth::Task<Json> add(Json input) {
    if (input.value("note", "") == "rude")
      throw hearth::Error(HEARTH_E_FORBIDDEN, "this note is rude");
    if (input.value("note", "") == "bad") throw std::runtime_error("the paper is torn");
    if (input.value("note", "") == "long") co_await sleep(std::chrono::hours(1));
    Json all = notes();
    all.push_back(input);
    kv().put("notes", all);
    co_return Json{{"kept", all.size()}};
  }
  Json notes() { return kv().get<Json>("notes").value_or(Json::array()); }
};

Json schema_of(const std::vector<std::string>& properties) {
  Json schema{{"type", "object"}, {"properties", Json::object()}};
  for (const std::string& each : properties) schema["properties"][each] = {{"type", "string"}};
  return schema;
}

Json all_tools() {
  const Json post{{"method", "POST"}, {"url", "https://shop.example/orders/{number}/refunds"}};
  Json keyed = post;
  keyed["credential"] = "shop";
  keyed["effect"] = "keyed";
  const Json order = schema_of({"number", "why"});
  const Json notebook{{"class", "Notebook"}, {"name", "of-{customer}"}, {"method", "add"}};
  return {{{"name", "find"},
           {"description", "Finds an order."},
           {"schema", schema_of({"number"})},
           {"http", {{"url", "https://shop.example/orders/{number}"}}}},
          {{"name", "refund"}, {"schema", order}, {"approval", true}, {"http", keyed}},
          {{"name", "refund_at_once"}, {"schema", order}, {"http", post}},
          {{"name", "remember"}, {"schema", schema_of({"customer", "note"})}, {"agent", notebook}},
          {{"name", "locate"}, {"client", true}},
          {{"name", "ask"}, {"chat", {{"class", "Assistant"}, {"name", "other"}}}}};
}

class AssistantTest : public ::testing::TestWithParam<const char*> {
 protected:
  AssistantTest() {
    host_.create<Notebook>("of-7");
    host_.on_fetch([this](const SentRequest& request) {
      if (request.url.starts_with("http://127.0.0.1:1/")) return model_.reply(request);
      to_shop_.push_back(request);
      return shop_;
    });
  }
  // The options of a class with the model.
  Json with_model(Json more) const {
    Json options = model_.options();
    options.update(more);
    return options;
  }
  // What the model says next, a word every 10 ms.
  void then(const std::vector<std::string>& words) {
    Scripted answer{.between = milliseconds(10)};
    for (const std::string& word : words) answer.says.push_back({.text = word});
    model_.then(answer);
  }
  void then_call(const std::string& id, const std::string& tool, const Json& input) {
    model_.then({.says = {{.tool = tool, .input = input, .id = id}}});
  }
  // The model calls a tool, and has an answer for its result.
  void then_call(const std::string& tool, const Json& input) {
    then_call("c1", tool, input);
    then({"Done."});
  }
  void say(const std::string& text) {
    client_.say("r1", text);
    pass(seconds(1));
  }
  void pass(std::chrono::milliseconds time) {
    host_.advance(time);
    client_.read();
  }
  // The result of the tool that the model has got.
  Json result() const {
    if (asked().size() < 2) return "the model was asked once";
    const Json body = hearth::parse_json(asked().back().body);
    if (model_.dialect() == "openai-responses") return body.at("input").back().at("output");
    const Json content = body.at("messages").back().at("content");
    return model_.dialect() == "anthropic" ? content.at(0).at("content") : content;
  }
  // The first tool, in the form of the provider's request.
  Json find_tool() const {
    Json tool{{"name", "find"}, {"description", "Finds an order."}};
    const Json schema = schema_of({"number"});
    if (model_.dialect() == "anthropic") {
      tool["input_schema"] = schema;
      return tool;
    }
    tool["parameters"] = schema;
    if (model_.dialect() == "chat-completions") return {{"type", "function"}, {"function", tool}};
    tool["type"] = "function";
    tool["strict"] = false;
    return tool;
  }
  const std::vector<SentRequest>& asked() const { return model_.requests(); }
  // The chunks of this type that the client has got.
  std::vector<Json> chunks(const std::string& type) const {
    std::vector<Json> some;
    for (const Json& frame : client_.frames("cf_agent_use_chat_response")) {
      const std::string body = frame.at("body").get<std::string>();
      const Json chunk = Json::parse(body, nullptr, false);
      if (chunk.is_object() && chunk.value("type", "") == type) some.push_back(chunk);
    }
    return some;
  }
  Json last_text() { return hearth::chat::text_of(hearth::chat::transcript_of(agent_).back()); }

  Host host_;
  ScriptedModel model_{host_, GetParam()};
  std::vector<SentRequest> to_shop_;
  FetchReply shop_{.body = R"({"state":"paid"})"};
  hearth::testing::AgentHandle agent_ =
      host_.create<Assistant>("a", with_model({{"system", "You sell."}, {"tools", all_tools()}}));
  ChatClient client_{agent_};
};
INSTANTIATE_TEST_SUITE_P(Providers, AssistantTest, hearth::chat::each_dialect(),
                         hearth::chat::provider_name);

TEST_P(AssistantTest, AnAnswerStreamsToTheClient) {
  then({"Hel", "lo."});
  client_.say("r1", "Hi");
  pass(milliseconds(5));
  EXPECT_EQ(client_.shown("r1"), "Hel");
  pass(seconds(1));
  EXPECT_EQ(client_.shown("r1"), "Hello.");
  EXPECT_EQ(client_.done("r1").value("outcome", ""), "completed");
  EXPECT_EQ(last_text(), "Hello.");

  ASSERT_EQ(asked().size(), 1);
  EXPECT_EQ(asked()[0].credential, "");
  const Json body = hearth::parse_json(asked()[0].body);
  EXPECT_EQ(body.at("model"), "m");
  EXPECT_NE(asked()[0].body.find("\"You sell.\""), std::string::npos);
  EXPECT_EQ(body.at("tools").size(), all_tools().size());
  EXPECT_EQ(body.at("tools").at(0), find_tool());
}

TEST_P(AssistantTest, AnHttpToolRunsOnceItsUserHasApprovedIt) {
  then_call("refund", {{"number", "7/8"}, {"why", "broken"}});
  say("I want my money back.");
  ASSERT_EQ(chunks("tool-approval-request").size(), 1);
  EXPECT_TRUE(to_shop_.empty());

  client_.approve("c1", true);
  pass(seconds(1));
  ASSERT_EQ(to_shop_.size(), 1);
  EXPECT_EQ(to_shop_[0].method, "POST");
  EXPECT_EQ(to_shop_[0].url, "https://shop.example/orders/7%2F8/refunds");
  EXPECT_EQ(to_shop_[0].body, R"({"why":"broken"})");
  EXPECT_EQ(to_shop_[0].credential, "shop");
  EXPECT_NE(to_shop_[0].header("Idempotency-Key"), "");
  EXPECT_EQ(result(), R"({"state":"paid"})");
  EXPECT_EQ(last_text(), "Done.");
}

TEST_P(AssistantTest, AnHttpToolThatIsNotApprovedDoesNotRun) {
  then_call("refund", {{"number", "7"}});
  say("I want my money back.");
  client_.approve("c1", false);
  pass(seconds(1));
  EXPECT_TRUE(to_shop_.empty());
}

// What the model reads of a tool that has failed.
TEST_P(AssistantTest, TheModelReadsWhyAToolHasFailed) {
  struct Row {
    const char* tool;
    Json input;
    FetchReply shop;
    std::size_t requests;
    const char* result;
  };
  const FetchReply::Failure refused{.text = "connection refused"};
  const FetchReply::Failure cut{.phase = HEARTH_FETCH_PHASE_HEADERS, .sent = true, .text = "cut"};
  const char* const unknown = "This call may have been executed; verify before it is repeated.";
  const std::vector<Row> rows{
      {"find",
       {{"number", "7"}},
       {.status = 404, .body = "no such order"},
       1,
       "status 404: no such order"},
      {"find", {{"number", "7"}}, {.status = 500, .body = "oh"}, 1, "status 500: oh"},
      {"find", {{"number", ".."}}, {}, 0, "input.number: expected a name"},
      {"find", {{"number", "7"}}, {.status = 0, .failure = refused}, 1, "connection refused"},
      {"refund_at_once",
       {{"number", "7"}},
       {.status = 422, .body = "paid back"},
       1,
       "status 422: paid back"},
      {"refund_at_once", {{"number", ""}}, {}, 0, "input.number: expected a name"},
      {"refund_at_once",
       {{"number", "7"}},
       {.status = 0, .failure = refused},
       1,
       "connection refused"},
      {"refund_at_once", {{"number", "7"}}, {.status = 0, .failure = cut}, 1, unknown},
      {"refund_at_once", {{"number", "7"}}, {.status = 503, .body = "busy"}, 1, unknown},
      {"remember", {{"customer", "7"}, {"note", "rude"}}, {}, 0, "this note is rude"},
      {"remember", {{"customer", "7"}, {"note", "bad"}}, {}, 0, unknown},
  };
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const Row& row = rows[i];
    to_shop_.clear();
    shop_ = row.shop;
    then_call("c" + std::to_string(i), row.tool, row.input);
    then({"A pity."});
    client_.say("r" + std::to_string(i), "Go on.");
    pass(seconds(1));
    EXPECT_EQ(to_shop_.size(), row.requests) << i;
    EXPECT_NE(hearth::to_text(result()).find(row.result), std::string::npos)
        << i << " " << row.tool << ": " << hearth::to_text(result());
  }
}

TEST_P(AssistantTest, AStopReachesTheRequestOfATool) {
  shop_.after = std::chrono::hours(1);
  then_call("find", {{"number", "7"}});
  say("Where is my order?");
  ASSERT_EQ(to_shop_.size(), 1);
  EXPECT_TRUE(client_.done("r1").is_null());
  client_.stop("r1");
  pass(seconds(1));
  EXPECT_EQ(client_.done("r1").value("outcome", ""), "aborted");
  EXPECT_EQ(asked().size(), 1);
}

TEST_P(AssistantTest, AStopDoesNotWaitForAnotherAgent) {
  then_call("remember", {{"customer", "7"}, {"note", "long"}});
  say("Remember all.");
  EXPECT_TRUE(client_.done("r1").is_null());
  client_.stop("r1");
  pass(seconds(1));
  EXPECT_EQ(client_.done("r1").value("outcome", ""), "aborted");
  EXPECT_EQ(asked().size(), 1);
}

TEST_P(AssistantTest, AToolCallsAnotherAgent) {
  const Json input{{"customer", "7"}, {"note", "likes tea"}};
  then_call("remember", input);
  say("I like tea.");
  EXPECT_EQ(result(), R"({"kept":1})");
  EXPECT_EQ(host_.create<Notebook>("of-8").call("notes"), Json::array());
  EXPECT_EQ(last_text(), "Done.");
}

TEST_P(AssistantTest, AToolAsksAnotherChat) {
  auto other = host_.create<Assistant>("other", model_.options());
  then_call("c1", "ask", {{"text", "What is it?"}});
  then({"Tea."});
  then({"Done."});
  say("I wonder.");
  pass(seconds(5));
  EXPECT_EQ(result(), "Tea.");
  EXPECT_EQ(hearth::chat::transcript_of(other).size(), 2);
  EXPECT_EQ(last_text(), "Done.");
}

TEST_P(AssistantTest, AClientRunsItsTools) {
  then_call("locate", Json::object());
  say("Where am I?");
  EXPECT_EQ(client_.done("r1").value("outcome", ""), "completed");
  EXPECT_EQ(asked().size(), 1);
  client_.answer("c1", {{"city", "Bern"}});
  pass(seconds(1));
  EXPECT_EQ(result(), R"({"city":"Bern"})");
  EXPECT_EQ(last_text(), "Done.");
}

TEST_P(AssistantTest, AnInterruptedAnswerGoesOnUnlessItsClassSaysNo) {
  const auto answer = [this](const char* name, const Json& recovery) {
    auto agent = host_.create<Assistant>(name, with_model({{"recovery", recovery}}));
    ChatClient client(agent);
    client.say("r1", "Hi");
    host_.advance(milliseconds(5));
    agent.kill();
    host_.advance(seconds(60));
    return hearth::chat::text_of(hearth::chat::transcript_of(agent).back());
  };
  then({"Hel", "lo."});
  then({"p is near."});
  EXPECT_EQ(answer("b", {{"max_attempts", 3}}), "Help is near.");
  then({"Hel", "lo."});
  EXPECT_EQ(answer("c", false), "Hel");
  EXPECT_EQ(asked().size(), 3);
}

TEST_P(AssistantTest, AMistakeInTheOptionsKeepsItFromStarting) {
  const auto why = [this](const Json& options) -> std::string {
    try {
      host_.create<Assistant>("b", options);
    } catch (const std::exception& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_NE(why({{"tools", {{{"name", "t"}, {"http", Json::object()}}}}})
                .find("options.tools[0].http.url: missing, expected string"),
            std::string::npos);
  EXPECT_NE(why({{"provider", "acme"}}).find("options.provider: expected"), std::string::npos);
}

}  // namespace
