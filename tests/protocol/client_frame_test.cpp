#include "protocol/client_frame.hpp"

#include "json/json.hpp"

#include <gtest/gtest.h>

#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace hearth::protocol {
namespace {

using std::string_view_literals::operator""sv;

// Of text that lives as long as the test needs it, in which nothing is replaced.
ClientFrame classified(std::string_view text) {
  std::string mended;
  ClientFrame frame = classify_client_frame(text, mended);
  EXPECT_EQ(mended, "");
  return frame;
}

bool is_unknown(std::string_view text) {
  return std::holds_alternative<UnknownFrame>(classified(text));
}

TEST(ClientFrameTest, RecognisesACall) {
  const auto frame = classified(R"({"args":[1, {"a":2}],"id":"i-1","method":"add","type":"rpc"})");
  const auto* call = std::get_if<RpcCall>(&frame);
  ASSERT_TRUE(call);
  EXPECT_EQ(call->id_json, R"("i-1")");
  EXPECT_EQ(call->method, "add");
  EXPECT_EQ(call->args_json, R"([1, {"a":2}])");
}

TEST(ClientFrameTest, RecognisesAStateWrite) {
  for (const std::string_view state :
       {"null", "1", R"("x")", "[]", "true", R"({"count":2,"deep":[[{}]]})"}) {
    const std::string text = R"({"state":)" + std::string(state) + R"(,"type":"cf_agent_state"})";
    const auto frame = classified(text);
    const auto* write = std::get_if<StateWrite>(&frame);
    ASSERT_TRUE(write) << text;
    EXPECT_EQ(write->state_json, state);
  }
}

TEST(ClientFrameTest, GivesSlicesOfTheFrame) {
  const std::string text = R"({"type":"rpc","id":"","method":"","args":[ ]})";
  const auto frame = classified(text);
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
  const auto frame = classified(
      R"({"\u0074ype":"\u0072pc","id":"\ud83d\udd25\n\u00e9\u20ac\"\\\/","method":"a\u0000b","args":[]})");
  const auto* call = std::get_if<RpcCall>(&frame);
  ASSERT_TRUE(call);
  EXPECT_EQ(call->id_json, R"("\ud83d\udd25\n\u00e9\u20ac\"\\\/")") << "as it came";
  EXPECT_EQ(call->method, "a\0b"sv);
  EXPECT_FALSE(is_unknown(R"({"type":"cf\u005fagent_state","state":1})"));
}

TEST(ClientFrameTest, TheLastOfTwoMembersCounts) {
  EXPECT_TRUE(is_unknown(R"({"type":"rpc","id":"1","method":"m","args":[],"type":"x"})"));
  EXPECT_TRUE(is_unknown(R"({"type":"rpc","id":"1","method":"m","args":[],"args":{}})"));
  const auto frame = classified(
      R"({"type":"x","type":"rpc","id":2,"id":"1","method":"m","args":[1],"\u0061rgs":[2]})");
  const auto* call = std::get_if<RpcCall>(&frame);
  ASSERT_TRUE(call);
  EXPECT_EQ(call->args_json, "[2]");
}

TEST(ClientFrameTest, InALongFrameTheTypeThatComesFirstDecides) {
  const std::string last = R"(,"method":"m","id":"1","args":[],"type":"rpc"})";
  const std::string text(kLongFrame, 'x');
  const auto frame_that_begins = [&](std::string_view begin) {
    return std::string(begin) + R"(,"text":")" + text + '"' + last;
  };
  EXPECT_TRUE(is_unknown(frame_that_begins(R"({"type":"cf_agent_use_chat_request")")));
  EXPECT_TRUE(is_unknown(frame_that_begins(R"( { "type" : "rpcs")")));
  for (const std::string_view begin :
       {R"({"type":"rpc")", R"({"type":"\u0072pc")", R"({"type":1)", R"({"id":"x")"})
    EXPECT_FALSE(is_unknown(frame_that_begins(begin))) << begin;
  EXPECT_FALSE(is_unknown(R"({"type":"x","text":"")" + last)) << "a short one";
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

std::string nested(std::size_t depth) {
  return std::string(depth, '[') + std::string(depth, ']');
}

TEST(ClientFrameTest, SaysWhyWhatItRecognisesCannotBeTaken) {
  const std::string deepest = nested(kMaxJsonDepth);
  const std::vector<std::pair<std::string, bool>> values = {{deepest, true},
                                                            {"[" + deepest + "]", false},
                                                            {nested(1'000'000), false},
                                                            {"[1e999]", false},
                                                            {"[-0.0,1e308]", true}};
  for (const auto& [value, is_taken] : values) {
    const std::string call = R"({"type":"rpc","id":"1","method":"m","args":)" + value + "}";
    const auto frame = classified(call);
    const auto* rpc = std::get_if<RpcCall>(&frame);
    ASSERT_TRUE(rpc) << value.size();
    EXPECT_EQ(rpc->id_json, R"("1")");
    EXPECT_EQ(rpc->method, "m");
    EXPECT_EQ(rpc->problem.empty(), is_taken) << rpc->problem;
    EXPECT_EQ(parse_json(rpc->args_json).has_value(), is_taken);
    const std::string write = R"({"state":)" + value + R"(,"type":"cf_agent_state"})";
    const auto state = classified(write);
    ASSERT_TRUE(std::holds_alternative<StateWrite>(state)) << value.size();
    EXPECT_EQ(std::get<StateWrite>(state).problem.empty(), is_taken);
  }
}

TEST(ClientFrameTest, AnIdThatWouldBeKeptIsShort) {
  for (const auto& [size, problem] : std::map<std::size_t, std::string>{
           {kMostIdBytes, ""}, {kMostIdBytes + 1, "its id is longer than 1024 bytes"}}) {
    const auto frame = classified(R"({"type":"rpc","id":")" + std::string(size - 2, 'x') +
                                  R"(","method":"m","args":[]})");
    const auto* call = std::get_if<RpcCall>(&frame);
    ASSERT_TRUE(call);
    EXPECT_EQ(call->id_json.size(), size) << "the refusal names it";
    EXPECT_EQ(call->problem, problem);
  }
}

TEST(ClientFrameTest, WhatIsIgnoredMayHoldAnything) {
  const auto frame = classified(R"({"type":"rpc","id":"1","method":"m","args":[],"more":[1e999,)" +
                                nested(1'000) + "]}");
  const auto* call = std::get_if<RpcCall>(&frame);
  ASSERT_TRUE(call);
  EXPECT_EQ(call->problem, "");
}

TEST(ClientFrameTest, HalfACharacterIsReplacedWhereItIsHandedOn) {
  const std::string text =
      R"({"type":"rpc","id":"\ud83d","method":"a\uDD25","args":["\ud83d\ud83d\udd25","\\ud83d"]})";
  std::string mended;
  const auto frame = classify_client_frame(text, mended);
  const auto* call = std::get_if<RpcCall>(&frame);
  ASSERT_TRUE(call);
  EXPECT_EQ(call->id_json, R"("\ud83d")") << "as it came: the client looks for it";
  EXPECT_EQ(call->method, "a\xEF\xBF\xBD");
  EXPECT_EQ(call->args_json, R"(["\ufffd\ud83d\udd25","\\ud83d"])");
  EXPECT_EQ(call->problem, "");
}

}  // namespace
}  // namespace hearth::protocol
