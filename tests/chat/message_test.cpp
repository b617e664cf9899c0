// Which JSON is a message, and what of it is stored.
#include "rows.hpp"

#include <hearth/chat/message.hpp>

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace hearth::chat {
namespace {

struct FaultRow {
  const char* message;
  const char* fault;
};

// clang-format off
const std::vector<FaultRow> kFaults = {
    {R"({"id":"m","role":"user","parts":[]})", ""},
    {R"({"id":"m","role":"system","parts":[{"type":"text","text":""}],"metadata":7,"more":[]})", ""},
    {R"({"id":"m","role":"assistant","parts":[{"type":"of-a-later-version"}]})", ""},
    {R"({"id":"m","role":"assistant","parts":[{"type":"dynamic-tool","toolName":"a","toolCallId":"c","state":"output-denied"}]})", ""},
    {R"([])", "A message is no object."},
    {R"("m")", "A message is no object."},
    {R"({"role":"user","parts":[]})", "A message has no id of 1 to 256 bytes."},
    {R"({"id":"","role":"user","parts":[]})", "A message has no id of 1 to 256 bytes."},
    {R"({"id":"m","parts":[]})", "A message has no known role."},
    {R"({"id":"m","role":"tool","parts":[]})", "A message has no known role."},
    {R"({"id":"m","role":"user"})", "A message has no parts."},
    {R"({"id":"m","role":"user","parts":{}})", "A message has no parts."},
    {R"({"id":"m","role":"user","parts":[7]})", "A part of a message has no type."},
    {R"({"id":"m","role":"user","parts":[{"type":""}]})", "A part of a message has no type."},
    {R"({"id":"m","role":"user","parts":[{"type":"text"}]})", "A text part of a message has no text."},
    {R"({"id":"m","role":"user","parts":[{"type":"reasoning","text":7}]})", "A text part of a message has no text."},
    {R"({"id":"m","role":"user","parts":[{"type":"tool-a","state":"input-available"}]})", "The call of a tool part has no id of 1 to 256 bytes."},
    {R"({"id":"m","role":"user","parts":[{"type":"tool-","toolCallId":"c","state":"input-available"}]})", "A tool part has no name of 1 to 256 bytes."},
    {R"({"id":"m","role":"user","parts":[{"type":"dynamic-tool","toolCallId":"c","state":"input-available"}]})", "A tool part has no name of 1 to 256 bytes."},
    {R"({"id":"m","role":"user","parts":[{"type":"tool-a","toolCallId":"c"}]})", "A tool part has an unknown state."},
    {R"({"id":"m","role":"user","parts":[{"type":"tool-a","toolCallId":"c","state":"result"}]})", "A tool part has an unknown state."},
};

struct SanitizeRow {
  std::string before;
  std::string after;
};

// A tool part of a provider, with this output as JSON.
std::string searched(const std::string& type, const std::string& output, const char* is_of_provider = "true") {
  return R"([{"type":")" + type + R"(","toolCallId":"c","state":"output-available","providerExecuted":)" + is_of_provider +
         R"(,"input":{},"output":)" + output + "}]";
}

const std::vector<SanitizeRow>& sanitized() {
  static const std::string whole = '"' + text_of('a', 501) + '"';
  static const std::string cut = '"' + text_of('a', 491) + "... (cut)\"";
  static const std::vector<SanitizeRow> all{
    {R"([{"type":"text","text":"a","providerMetadata":{"openai":{"itemId":"i"}}}])", R"([{"type":"text","text":"a"}])"},
    {R"([{"type":"text","text":"a","providerMetadata":{"openai":{"itemId":"i","b":1},"p":{}}}])", R"([{"type":"text","text":"a","providerMetadata":{"openai":{"b":1},"p":{}}}])"},
    {R"([{"type":"text","text":"a","providerMetadata":{"openai":{}}}])", R"([{"type":"text","text":"a","providerMetadata":{"openai":{}}}])"},
    {R"([{"type":"text","text":"a","providerMetadata":{"openai":7}}])", R"([{"type":"text","text":"a","providerMetadata":{"openai":7}}])"},
    {R"([{"type":"reasoning","text":"a","providerMetadata":{"openai":{"itemId":"i","reasoningEncryptedContent":"e"}}}])", R"([{"type":"reasoning","text":"a"}])"},
    {R"([{"type":"tool-a","toolCallId":"c","state":"input-available","callProviderMetadata":{"openai":{"itemId":"i"}},"resultProviderMetadata":{"openai":{"itemId":"i"}}}])",
     R"([{"type":"tool-a","toolCallId":"c","state":"input-available"}])"},

    {R"([{"type":"reasoning","text":" \n\t"},{"type":"text","text":""}])", R"([{"type":"text","text":""}])"},
    {R"([{"type":"reasoning","text":"","providerMetadata":{"openai":{"itemId":"i"}}}])", R"([])"},
    {R"([{"type":"reasoning","text":"","providerMetadata":{"anthropic":{"redactedData":"x"}}}])", R"([{"type":"reasoning","text":"","providerMetadata":{"anthropic":{"redactedData":"x"}}}])"},
    {R"([{"type":"reasoning","text":"a","providerMetadata":{"anthropic":{"signature":"s"}}}])", R"([{"type":"reasoning","text":"a","providerMetadata":{"anthropic":{"signature":"s"}}}])"},

    {searched("tool-code", whole), searched("tool-code", cut)},
    {searched("tool-code", '"' + text_of('a', 500) + '"'), searched("tool-code", '"' + text_of('a', 500) + '"')},
    {searched("tool-code", "[{\"a\":" + whole + ",\"encryptedContent\":" + whole + "}]"), searched("tool-code", "[{\"a\":" + cut + ",\"encryptedContent\":" + whole + "}]")},
    {searched("tool-web_search", whole), searched("tool-web_search", whole)},
    {searched("tool-web_fetch", whole), searched("tool-web_fetch", whole)},
    {searched("tool-code", whole, "false"), searched("tool-code", whole, "false")},

    {R"([{"type":"tool-a","toolCallId":"c","state":"input-streaming","inputText":"{"}])", R"([{"type":"tool-a","toolCallId":"c","state":"input-streaming"}])"},
    {R"([{"type":"data-a","data":{"inputText":"x"}},{"type":"step-start"}])", R"([{"type":"data-a","data":{"inputText":"x"}},{"type":"step-start"}])"},
  };
  return all;
}
// clang-format on

TEST(MessageTest, WhatIsNoMessageHasASentence) {
  for (const FaultRow& row : kFaults)
    EXPECT_EQ(message_fault(json(row.message)), row.fault) << row.message;
}

TEST(MessageTest, WhatIsNotStoredIsTakenOutOnce) {
  for (const SanitizeRow& row : sanitized()) {
    Json message = assistant(row.before);
    sanitize(message);
    EXPECT_EQ(message, assistant(row.after)) << row.before;
    sanitize(message);
    EXPECT_EQ(message, assistant(row.after)) << "the second time: " << row.before;
  }
}

// "ä" has two bytes: characters are counted, and none is cut in two.
TEST(MessageTest, TextsOfProvidersAreCutBetweenCharacters) {
  std::string text;
  for (int characters = 1; characters <= 501; ++characters) {
    text += "\xc3\xa4";
    if (characters < 500) continue;
    Json message = assistant(searched("tool-code", to_text(text)));
    sanitize(message);
    EXPECT_EQ(message["parts"][0]["output"],
              characters == 500 ? text : text.substr(0, 2 * 491) + "... (cut)");
  }
}

TEST(MessageTest, ATextOfTenMegabytesStaysAsItIs) {
  Json message = assistant("[]");
  message["parts"].push_back({{"type", "text"}, {"text", text_of('a', 10'000'000)}});
  message["parts"].push_back({{"type", "tool-a"},
                              {"toolCallId", "c"},
                              {"state", "output-available"},
                              {"output", text_of('b', 100'000)}});
  const Json before = message;
  sanitize(message);
  EXPECT_EQ(message, before);
}

TEST(MessageTest, AToolPartSaysItsTool) {
  const Json plain{{"type", "tool-geo"}, {"toolName", "other"}};
  const Json dynamic{{"type", "dynamic-tool"}, {"toolName", "geo"}};
  EXPECT_EQ(tool_of(plain), "geo");
  EXPECT_EQ(tool_of(dynamic), "geo");
  EXPECT_FALSE(is_tool_part({{"type", "text"}}));
  EXPECT_FALSE(is_tool_part(7));
}

}  // namespace
}  // namespace hearth::chat
