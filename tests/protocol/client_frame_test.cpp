#include "protocol/client_frame.hpp"

#include "json/json.hpp"

#include <gtest/gtest.h>

#include <string>
#include <string_view>

namespace hearth::protocol {
namespace {

using std::string_view_literals::operator""sv;

bool is_unknown(std::string_view text) {
  return std::holds_alternative<UnknownFrame>(classify_client_frame(text));
}

TEST(ClientFrameTest, RecognisesACall) {
  const auto frame =
      classify_client_frame(R"({"args":[1, {"a":2}],"id":"i-1","method":"add","type":"rpc"})");
  const auto* call = std::get_if<RpcCall>(&frame);
  ASSERT_TRUE(call);
  EXPECT_EQ(call->id, "i-1");
  EXPECT_EQ(call->method, "add");
  EXPECT_EQ(call->args_json, R"([1, {"a":2}])");
}

TEST(ClientFrameTest, RecognisesAStateWrite) {
  for (const std::string_view state :
       {"null", "1", R"("x")", "[]", "true", R"({"count":2,"deep":[[{}]]})"}) {
    const std::string text = R"({"state":)" + std::string(state) + R"(,"type":"cf_agent_state"})";
    const auto frame = classify_client_frame(text);
    const auto* write = std::get_if<StateWrite>(&frame);
    ASSERT_TRUE(write) << text;
    EXPECT_EQ(write->state_json, state);
  }
}

TEST(ClientFrameTest, GivesSlicesOfTheFrame) {
  const std::string text = R"({"type":"rpc","id":"","method":"","args":[ ]})";
  const auto frame = classify_client_frame(text);
  const auto* call = std::get_if<RpcCall>(&frame);
  ASSERT_TRUE(call);
  EXPECT_EQ(call->args_json.data(), text.data() + text.find("[ ]"));
}

TEST(ClientFrameTest, TakesMembersInAnyOrderWithSpaceAndMore) {
  EXPECT_FALSE(is_unknown(
      "\r\n\t { \"extra\" : {\"type\":\"x\"} , \"method\" : \"m\" ,\n\"type\" : \"rpc\",\"args\" : "
      "[] , \"id\" : \"1\" } \n"));
}

TEST(ClientFrameTest, ResolvesEscapes) {
  const auto frame = classify_client_frame(
      R"({"\u0074ype":"\u0072pc","id":"\ud83d\udd25\n\u00e9\u20ac\"\\\/","method":"a\u0000b","args":[]})");
  const auto* call = std::get_if<RpcCall>(&frame);
  ASSERT_TRUE(call);
  EXPECT_EQ(call->id, "🔥\né€\"\\/");
  EXPECT_EQ(call->method, "a\0b"sv);
  EXPECT_FALSE(is_unknown(R"({"type":"cf\u005fagent_state","state":1})"));
}

TEST(ClientFrameTest, TheLastOfTwoMembersCounts) {
  EXPECT_TRUE(is_unknown(R"({"type":"rpc","id":"1","method":"m","args":[],"type":"x"})"));
  EXPECT_TRUE(is_unknown(R"({"type":"rpc","id":"1","method":"m","args":[],"args":{}})"));
  const auto frame = classify_client_frame(
      R"({"type":"x","type":"rpc","id":2,"id":"1","method":"m","args":[1],"\u0061rgs":[2]})");
  const auto* call = std::get_if<RpcCall>(&frame);
  ASSERT_TRUE(call);
  EXPECT_EQ(call->args_json, "[2]");
}

TEST(ClientFrameTest, ACallThatFailsAGuardIsAMessage) {
  for (const std::string_view text : {
           R"({"type":"rpc","method":"m","args":[]})",
           R"({"type":"rpc","id":1,"method":"m","args":[]})",
           R"({"type":"rpc","id":"1","args":[]})",
           R"({"type":"rpc","id":"1","method":null,"args":[]})",
           R"({"type":"rpc","id":"1","method":"m"})",
           R"({"type":"rpc","id":"1","method":"m","args":{}})",
           R"({"type":"rpc","id":"1","method":"m","args":"[]"})",
           R"({"type":"RPC","id":"1","method":"m","args":[]})",
           R"({"type":["rpc"],"id":"1","method":"m","args":[]})",
           R"({"x":"rpc","id":"1","method":"m","args":[]})",
           R"([{"type":"rpc","id":"1","method":"m","args":[]}])",
       }) {
    EXPECT_TRUE(is_unknown(text)) << text;
  }
}

TEST(ClientFrameTest, AStateWriteWithoutStateIsAMessage) {
  EXPECT_TRUE(is_unknown(R"({"type":"cf_agent_state"})"));
  EXPECT_TRUE(is_unknown(R"({"type":"cf_agent_state","States":1})"));
  EXPECT_TRUE(is_unknown(R"({"type":"cf_agent_state_error","state":1})"));
}

TEST(ClientFrameTest, AnythingElseIsAMessage) {
  for (const std::string_view text :
       {""sv, " "sv, "hello"sv, "{}"sv, "[]"sv, "null"sv, "0"sv, "{"sv, "\"rpc\""sv, "{\"rpc\""sv,
        R"({"type":"chat"})"sv, "\0"sv, "\xFF\xFE"sv}) {
    EXPECT_TRUE(is_unknown(text)) << text;
  }
}

TEST(ClientFrameTest, AFrameThatIsBrokenAnywhereIsAMessage) {
  const std::string good = R"({"type":"rpc","id":"1","method":"m","args":[1]})";
  ASSERT_FALSE(is_unknown(good));
  for (const std::string_view tail : {","sv, "}"sv, "x"sv, "\0"sv, "{}"sv}) {
    EXPECT_TRUE(is_unknown(good + std::string(tail))) << tail;
  }
  for (std::size_t length = 0; length < good.size(); ++length) {
    EXPECT_TRUE(is_unknown(good.substr(0, length))) << length;
  }
  EXPECT_TRUE(is_unknown("\xEF\xBB\xBF" + good));
}

TEST(ClientFrameTest, BoundsTheDepth) {
  const auto call_with_depth = [](int depth) {
    const auto levels = static_cast<std::size_t>(depth);
    return R"({"type":"rpc","id":"1","method":"m","args":)" + std::string(levels, '[') +
           std::string(levels, ']') + "}";
  };
  EXPECT_FALSE(is_unknown(call_with_depth(kMaxJsonDepth - 1)));
  EXPECT_TRUE(is_unknown(call_with_depth(kMaxJsonDepth)));
  EXPECT_TRUE(is_unknown(call_with_depth(1'000'000)));
}

}  // namespace
}  // namespace hearth::protocol
