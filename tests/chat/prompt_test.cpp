// requests.json: prompts, and what each provider is sent.
#include "recordings.hpp"
#include "rows.hpp"

#include <hearth/chat/prompt.hpp>

#include <gtest/gtest.h>

namespace hearth::chat {
namespace {

Prompt read_prompt(const Json& row) {
  const Json& given = row["prompt"];
  const Json& options = row["options"];
  Prompt prompt;
  prompt.system = given.value("system", "");
  prompt.messages = given["messages"];
  for (const Json& tool : given.value("tools", Json::array()))
    prompt.tools.push_back({tool["name"], tool["description"], tool["schema"]});
  prompt.options.model = options["model"];
  if (options.contains("max_output_tokens"))
    prompt.options.max_output_tokens = options["max_output_tokens"].get<std::int64_t>();
  prompt.options.reasoning = options.value("reasoning", "");
  prompt.options.is_resumable = options.value("is_resumable", false);
  prompt.options.extra = options.value("extra", Json::object());
  return prompt;
}

struct Asked {
  Json row;
};

// Read by gtest.
// NOLINTNEXTLINE(readability-identifier-naming): gtest's own hook
void PrintTo(const Asked& asked, std::ostream* out) {
  *out << to_text(asked.row["name"]);
}

std::vector<Asked> asked_prompts() {
  std::vector<Asked> all;
  for (const Json& row : read_table("requests")) all.push_back({row});
  return all;
}

class RequestTest : public ::testing::TestWithParam<Asked> {};

TEST_P(RequestTest, IsSentInTheFormOfEachProvider) {
  for (const char* name : kProviders) {
    const HttpCall call = make_provider(name)->request(read_prompt(GetParam().row));
    EXPECT_EQ(call.body, GetParam().row[name]) << name;
    EXPECT_EQ(call.method, "POST");
  }
}

INSTANTIATE_TEST_SUITE_P(Prompts, RequestTest, ::testing::ValuesIn(asked_prompts()),
                         [](const auto& info) {
                           return info.param.row["name"].template get<std::string>();
                         });

const Json kCutAnswer = json(R"([{"role":"user","parts":[{"type":"text","text":"Q"}]},
    {"role":"assistant","parts":[{"type":"text","text":"Half an"}]}])");

TEST(RequestTest, PathsAndHeaders) {
  const Prompt prompt{.messages = kCutAnswer};
  EXPECT_EQ(OpenAiResponses().request(prompt).path, "/responses");
  EXPECT_EQ(ChatCompletions().request(prompt).path, "/chat/completions");
  const HttpCall call = AnthropicMessages("2026-10-21").request(prompt);
  EXPECT_EQ(call.path, "/messages");
  EXPECT_EQ(call.headers, (HeaderList{{"anthropic-version", "2026-10-21"}}));
}

TEST(RequestTest, ADialectOfChatCompletionsNamesItsLimitAndPrefills) {
  const ChatCompletions provider({.max_completion_tokens = true, .prefill = true});
  const Json body =
      provider.request({.messages = kCutAnswer, .options = {.model = "m", .max_output_tokens = 7}})
          .body;
  EXPECT_EQ(body["max_completion_tokens"], 7);
  EXPECT_FALSE(body.contains("max_tokens"));
  EXPECT_EQ(body["messages"].back(), json(R"({"role":"assistant","content":"Half an"})"));
  EXPECT_EQ(body["continue_final_message"], true);
  EXPECT_EQ(body["add_generation_prompt"], false);
}

TEST(PromptTest, C46_EachCallHasAResultAndAnObjectAsInput) {
  for (const char* state :
       {"input-streaming", "input-available", "approval-requested", "approval-responded",
        "output-available", "output-error", "output-denied", "", "a new state"}) {
    for (const char* input : {"{}", "[]", "null", "\"x\"", "\"{\\\"a\\\":1}\"", "5"}) {
      const Json part{
          {"type", "tool-f"}, {"toolCallId", "c"}, {"state", state}, {"input", json(input)}};
      const auto call = find_call(part);
      ASSERT_TRUE(call);
      EXPECT_TRUE(call->input.is_object()) << input;
      EXPECT_FALSE(call->result.empty()) << state;
      EXPECT_EQ(call->is_error, std::string(state) != "output-available") << state;
    }
  }
}

TEST(PromptTest, ALongResultIsCutBetweenCharactersAndSaysSo) {
  std::string output(kMaxResult - 1, 'x');
  output += "ä and more";
  const auto call = find_call(Json{
      {"type", "tool-f"}, {"toolCallId", "c"}, {"state", "output-available"}, {"output", output}});
  EXPECT_EQ(call->result, std::string(kMaxResult - 1, 'x') + "\n[cut here: the whole result has " +
                              std::to_string(output.size()) + " bytes]");
}

TEST(PromptTest, ADataUrlMayHaveNoTypeOrNoContent) {
  const auto file = [](const char* url) {
    return file_part(Json{{"type", "file"}, {"url", url}}).data_url();
  };
  EXPECT_EQ(file("data:,hi"), "data:text/plain;base64,aGk=");
  EXPECT_EQ(file("data:;base64,aGk="), "data:text/plain;base64,aGk=");
  EXPECT_EQ(file("data:image/png;name=a;base64,AAAA"), "data:image/png;base64,AAAA");
  EXPECT_EQ(file("data:text/plain,%zz%4"), "data:text/plain;base64,JXp6JTQ=");
  EXPECT_EQ(file("data:"), "");
}

TEST(PromptTest, APictureCountsAsOneAndNotAsItsText) {
  const std::string base64(100'000, 'A');
  const std::size_t around = to_text(Json{{"url", ""}}).size();
  const auto url = [&](const std::string& type) {
    return model_bytes(Json{{"url", "data:" + type + ";base64," + base64}});
  };
  EXPECT_EQ(url("image/png"), around + kPictureBytes);
  EXPECT_LT(url("application/pdf"), around + base64.size() / 7);
  EXPECT_GT(url("text/plain"), base64.size());
  EXPECT_EQ(model_bytes("data:image/png;base64,AAAA"), 28U) << "a small one";
  EXPECT_EQ(model_bytes(Json{"text", 1, nullptr}), to_text(Json{"text", 1, nullptr}).size());
  const Json source = {{"type", "base64"}, {"media_type", "image/png"}, {"data", base64}};
  EXPECT_EQ(model_bytes(Json::array({source, source})),
            to_text(Json::array({source, source})).size() - 2 * (base64.size() - kPictureBytes));
}

}  // namespace
}  // namespace hearth::chat
