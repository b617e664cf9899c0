#include "json/json.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <string>

namespace hearth {
namespace {

std::string reason(std::string_view text, int max_depth = kMaxJsonDepth) {
  const auto result = parse_json(text, max_depth);
  if (result) return "parsed as " + dump_json(*result);
  EXPECT_EQ(result.error().code, Errc::kInvalidArgument);
  return result.error().message;
}

std::string nested(int depth, std::string_view inside = "") {
  const auto count = static_cast<std::size_t>(depth);
  return (std::string(count, '[') += inside) += std::string(count, ']');
}

TEST(JsonTest, ParsesWhatItDumps) {
  for (const std::string_view text :
       {"null", "true", "false", "0", "-1", "18446744073709551615", "-9223372036854775808", "0.5",
        "\"\"", R"("a\"\\\n\u0000")", "\"\xE2\x82\xAC\"", "[]", "{}", "[1,[2,[]],{}]",
        R"({"a":{"b":[null]},"c":[{"d":1},{"e":"f"}]})"}) {
    const auto value = parse_json(text);
    ASSERT_TRUE(value) << text << ": " << value.error().message;
    EXPECT_EQ(dump_json(*value), text);
  }
}

TEST(JsonTest, KeepsTheTypesOfNumbersApart) {
  EXPECT_TRUE(parse_json("1").value().is_number_unsigned());
  EXPECT_TRUE(parse_json("-1").value().is_number_integer());
  EXPECT_TRUE(parse_json("1.0").value().is_number_float());
  EXPECT_TRUE(parse_json("18446744073709551616").value().is_number_float());
}

TEST(JsonTest, ADuplicateKeyKeepsItsLastValue) {
  EXPECT_EQ(dump_json(parse_json(R"({"a":[1,2],"b":0,"a":{"c":3}})").value()),
            R"({"a":{"c":3},"b":0})");
}

TEST(JsonTest, SpaceAroundTheValueIsAllowed) {
  EXPECT_EQ(dump_json(parse_json(" \t\r\n{ \"a\" : 1 } \n").value()), R"({"a":1})");
}

TEST(JsonTest, ErrorsNameTheOffset) {
  EXPECT_EQ(reason("[1,x]"),
            "invalid JSON at byte 3: syntax error while parsing value - invalid literal");
  EXPECT_TRUE(reason("{\"a\":1").starts_with("invalid JSON at byte 6: "));
  EXPECT_TRUE(reason("").starts_with("invalid JSON at byte 0: "));
  EXPECT_TRUE(reason("[1] 2").starts_with("invalid JSON at byte 4: "));
}

TEST(JsonTest, RefusesWhatIsNotJson) {
  for (const std::string_view text :
       {"",      " ",          "nul",     "01",       "1.",   ".5",     "+1",      "0x1",
        "NaN",   "Infinity",   "'a'",     "\"a",      "[1,]", "[",      "]",       "{\"a\"}",
        "{a:1}", "{\"a\":1,}", "// c\n1", "/* c */1", "1 1",  "\"\n\"", "\"\\x\"", "\"\\ud800\""}) {
    EXPECT_FALSE(parse_json(text)) << text;
  }
}

TEST(JsonTest, HalfASurrogatePairOfAClientIsReplaced) {
  EXPECT_EQ(parse_client_json(R"({"\udc00":["a\ud83d","\ud83d\ude00"]})").value(),
            parse_json("{\"\xEF\xBF\xBD\":[\"a\xEF\xBF\xBD\",\"\xF0\x9F\x98\x80\"]}").value());
  EXPECT_FALSE(parse_client_json("\"\xED\xA0\x80\""));
  EXPECT_FALSE(parse_client_json("\"\\ud8\""));
  EXPECT_FALSE(parse_client_json("[[1]]", 1));
}

TEST(JsonTest, RefusesInvalidUtf8InStringsAndKeys) {
  EXPECT_FALSE(parse_json("\"\xFF\""));
  EXPECT_FALSE(parse_json("\"\xED\xA0\x80\""));
  EXPECT_FALSE(parse_json("{\"\xC0\x80\":1}"));
}

TEST(JsonTest, RefusesANulAndWhatFollowsIt) {
  EXPECT_EQ(reason(std::string_view("1\0", 2)), "invalid JSON at byte 1: a NUL byte");
  EXPECT_EQ(reason(std::string_view("{}\0garbage", 10)), "invalid JSON at byte 2: a NUL byte");
}

TEST(JsonTest, RefusesNumbersPastTheRangeOfADouble) {
  EXPECT_EQ(reason("[1e999]"), "invalid JSON at byte 5: number overflow");
}

TEST(JsonTest, DepthIsBoundedAndTheOffsetIsThatOfTheBracket) {
  EXPECT_TRUE(parse_json(nested(kMaxJsonDepth)));
  EXPECT_EQ(reason(nested(kMaxJsonDepth + 1)),
            "invalid JSON at byte 256: nested deeper than 256 levels");
  EXPECT_TRUE(parse_json(R"({"a":[]})", 2));
  EXPECT_EQ(reason(R"({"a[[":[],"b":[ {} ]})", 2),
            "invalid JSON at byte 16: nested deeper than 2 levels");
  EXPECT_EQ(reason("[]", 0), "invalid JSON at byte 0: nested deeper than 0 levels");
  EXPECT_TRUE(parse_json("1", 0));
}

TEST(JsonTest, ADocumentOfTheHostHasAFewLevelsAroundADeepValue) {
  const std::string deepest = nested(kMaxJsonDepth);
  EXPECT_TRUE(parse_host_json(R"({"data":{"alarms":[{"args":)" + deepest + "}]}}"));
  for (const std::string& wrong : {nested(kMaxJsonDepth + 9), std::string("["), std::string()})
    EXPECT_EQ(parse_host_json(wrong).error().code, Errc::kInternal);
}

TEST(JsonTest, ADeepBombNeitherOverflowsTheStackNorCostsMuch) {
  EXPECT_FALSE(parse_json(std::string(4 << 20, '[')));
  std::string objects;
  for (int i = 0; i < 500'000; ++i) objects += "{\"a\":";
  EXPECT_FALSE(parse_json(objects));
}

TEST(JsonTest, BracketsInStringsAreNoDepth) {
  EXPECT_TRUE(parse_json("\"" + std::string(1000, '[') + "\""));
  EXPECT_TRUE(parse_json(R"(["\"[[[["])", 1));
}

TEST(JsonTest, TheErrorQuotesNothingOfTheText) {
  const std::string secret = "hunter2";
  for (const std::string& text :
       {"[\"" + secret + "\n\"]", "\"" + secret, secret, "{\"" + secret + "\" 1}",
        "[1" + std::string(400, '0') + "]", "[\"" + secret + "\xFF\"]"}) {
    EXPECT_EQ(reason(text).find(secret), std::string::npos) << reason(text);
    EXPECT_LT(reason(text).size(), 200U);
  }
}

TEST(JsonTest, DumpReplacesInvalidUtf8AndNumbersThatJsonLacks) {
  EXPECT_EQ(dump_json("a\xFF"), "\"a\xEF\xBF\xBD\"");
  EXPECT_EQ(dump_json(std::numeric_limits<double>::infinity()), "null");
}

TEST(JsonTest, WideContainersKeepTheirOrderAndValues) {
  std::string text = "[";
  for (int i = 0; i < 10'000; ++i) text += "{\"k\":[" + std::to_string(i) + "]},";
  text += "0]";
  const Json value = parse_json(text).value();
  ASSERT_EQ(value.size(), 10'001U);
  for (std::size_t i = 0; i < 10'000; ++i) EXPECT_EQ(value[i]["k"][0].get<std::size_t>(), i);
}

}  // namespace
}  // namespace hearth
