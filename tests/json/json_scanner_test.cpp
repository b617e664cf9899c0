#include "json/json_scanner.hpp"

#include "json/json.hpp"

#include <gtest/gtest.h>

#include <array>
#include <random>
#include <string>
#include <string_view>
#include <vector>

namespace hearth {
namespace {

using std::string_view_literals::operator""sv;

// The scanner must agree with this parser. The only promised difference is the byte order mark.
bool parser_takes_object(std::string_view text) {
  const auto parsed = parse_json(text);
  return parsed.has_value() && parsed->is_object() && !text.starts_with("\xEF\xBB\xBF");
}

// Both verdicts are the same, and when they are "yes" each wanted member is the same value.
void expect_agreement(std::string_view text) {
  std::array<WantedMember, 3> wanted{{{"a", {}}, {"type", {}}, {"", {}}}};
  const bool accepted = scan_json_object(text, wanted);
  ASSERT_EQ(accepted, parser_takes_object(text)) << testing::PrintToString(std::string(text));
  if (!accepted) return;
  const Json whole = parse_json(text).value();
  for (const WantedMember& member : wanted) {
    const auto found = whole.find(std::string(member.name));
    ASSERT_EQ(found != whole.end(), !member.json.empty()) << text;
    if (found == whole.end()) continue;
    const auto value = parse_json(member.json);
    ASSERT_TRUE(value.has_value()) << member.json;
    ASSERT_EQ(*value, *found) << text;
    if (found->is_string()) {
      ASSERT_EQ(decode_json_string(member.json), found->get<std::string>());
    }
  }
}

std::string nested(std::size_t depth, std::string_view open, std::string_view close) {
  std::string text;
  for (std::size_t i = 0; i < depth; ++i) text += open;
  for (std::size_t i = 0; i < depth; ++i) text += close;
  return text;
}

std::vector<std::string> seeds() {
  return {
      "{}",
      " \t\r\n{ } \n",
      R"({"a":1})",
      R"({"a":null,"type":"rpc","":[true,false,null]})",
      R"({"args":[1,2.5e3,-0.0,"x"],"id":"0f8f","method":"add","type":"rpc"})",
      R"({"state":{"count":0,"list":[[],{},[{}]]},"type":"cf_agent_state"})",
      R"({"a":"\"\\\/\b\f\n\r\t\u0041\ud83d\udd25"})",
      "{\"a\":\"caf\xC3\xA9 \xE2\x82\xAC \xF0\x9F\x94\xA5\"}",
      R"({"a":1,"a":2,"\u0061":3})",
      R"({"a":-1.25E+10,"type":1e-400,"":123456789012345678901234567890})",
      R"({"a":1e308,"b":0e999,"c":-9.9e-9})",
  };
}

TEST(JsonScannerTest, AgreesWithTheParserOnSmallTexts) {
  const std::vector<std::string_view> values{
      "0",
      "-0",
      "00",
      "01",
      "-01",
      "-",
      "+1",
      "1.",
      ".5",
      "1.5",
      "1.e1",
      "1e",
      "1e+",
      "1e5",
      "1E-5",
      "1e5.5",
      "0x10",
      "Infinity",
      "NaN",
      "true",
      "tru",
      "True",
      "truex",
      "null",
      "nul",
      "false",
      "''",
      "\"",
      "\"\"",
      "\"\\\"",
      "\"\\x\"",
      R"("\u")",
      R"("\u12")",
      R"("\u123g")",
      R"("\u0000")",
      R"("\ud800")",
      R"("\udc00")",
      R"("\ud800\ud800")",
      R"("\ud800x")",
      R"("\ud83d\udd25")",
      R"("\ud800\u0041")",
      R"("\uD83D\uDD2")",
      "\"\t\"",
      "\"\x1f\"",
      "\"\x7f\"",
      "\"\0\""sv,
      "[]",
      "[",
      "]",
      "[,]",
      "[1,]",
      "[,1]",
      "[1 2]",
      "[1,,2]",
      "[1}",
      "{}",
      "{]",
      "{\"x\"}",
      "{\"x\":}",
      "{\"x\":1,}",
      "{,}",
      "{1:2}",
      "{x:1}",
      "[[]]]",
      "1//c",
      "/**/1",
      "\"a\" \"b\"",
      "\f1",
      "1\v",
      "\0"sv,
      "1\0"sv,
      "",
      " ",
      "\xC2\xA0",
      "1e308",
      "1e309",
      "-1e309",
      "1e-309",
      "1e-99999",
      "0e99999999999999999999",
      "1e99999999999999999999",
      "1e-99999999999999999999",
      "0.0000000001e310",
      "0.00000000001e320",
      "1.7976931348623157e308",
      "1.7976931348623159e308",
      "17976931348623159e292",
      "123456789012345678901234567890e290",
  };
  for (const std::string_view value : values) {
    expect_agreement("{\"a\":" + std::string(value) + "}");
    expect_agreement("{\"b\":[" + std::string(value) + "],\"a\":{\"c\":" + std::string(value) +
                     "}}");
    expect_agreement(value);
    expect_agreement("{" + std::string(value) + ":1}");
    expect_agreement("{}" + std::string(value));
    expect_agreement(std::string(value) + "{}");
  }
}

TEST(JsonScannerTest, AgreesWithTheParserOnLongNumbers) {
  for (const std::size_t digits : {299U, 300U, 308U, 309U, 310U, 1000U}) {
    const std::string nines(digits, '9');
    const std::string zeros(digits, '0');
    for (const std::string& number :
         {nines, "-" + nines, nines + ".5", "0." + zeros + "1",
          "1" + zeros + "e-" + std::to_string(digits), "0." + zeros + "1e" + std::to_string(digits),
          nines + "e-1", "0." + nines + "e308", zeros}) {
      expect_agreement("{\"a\":" + number + "}");
    }
  }
}

TEST(JsonScannerTest, AgreesWithTheParserOnDepth) {
  for (std::size_t depth = kMaxJsonDepth - 3; depth < kMaxJsonDepth + 3; ++depth) {
    expect_agreement("{\"a\":" + nested(depth, "[", "]") + "}");
    expect_agreement(nested(depth, "{\"a\":", "}"));
    expect_agreement(nested(depth, "{\"a\":", ",\"b\":{}}"));
    expect_agreement("{\"a\":" + nested(depth, "[{\"x\":", "}]") + "}");
    expect_agreement("{\"a\":" + nested(depth, "[[],", "[]]") + "}");
  }
  std::array<WantedMember, 1> none{{{"a", {}}}};
  EXPECT_FALSE(scan_json_object("{\"a\":" + std::string(10'000'000, '['), none));
}

TEST(JsonScannerTest, WithoutBoundsItFindsWhatTheParserRefuses) {
  for (const std::string& value :
       {nested(kMaxJsonDepth, "[", "]"), nested(kMaxJsonDepth + 1, "{\"x\":", "}"),
        nested(100'000, "[{\"x\":[", ",{}]}]"), std::string("[1e999,-1e999]"),
        std::string(400, '9')}) {
    // As in "{"x":}": an object needs a value in its middle.
    std::string whole = value;
    if (const auto middle = whole.find(":}"); middle != std::string::npos)
      whole.insert(middle + 1, "0");
    if (const auto middle = whole.find("[,"); middle != std::string::npos)
      whole.insert(middle + 1, "0");
    std::array<WantedMember, 2> wanted{{{"a", {}}, {"b", {}}}};
    ASSERT_TRUE(scan_unbounded_json_object("{\"a\":" + whole + ",\"b\":1}", wanted))
        << value.size();
    EXPECT_EQ(wanted[0].json.size(), whole.size());
    EXPECT_EQ(wanted[1].json.size(), 1U);
    EXPECT_FALSE(scan_unbounded_json_object("{\"a\":" + whole + "]}", wanted));
  }
  std::array<WantedMember, 1> none{{{"a", {}}}};
  EXPECT_FALSE(scan_unbounded_json_object("{\"a\":" + std::string(1'000'000, '['), none));
  EXPECT_FALSE(scan_unbounded_json_object("{\"a\":01}", none));
  EXPECT_FALSE(scan_unbounded_json_object("{\"a\":\"\xFF\"}", none));
}

TEST(JsonScannerTest, AgreesWithTheParserOnEverySingleByteChange) {
  for (const std::string& seed : seeds()) {
    expect_agreement(seed);
    for (std::size_t place = 0; place < seed.size(); ++place) {
      expect_agreement(seed.substr(0, place));
      expect_agreement(seed.substr(place));
      for (int byte = 0; byte < 256; ++byte) {
        std::string changed = seed;
        changed[place] = static_cast<char>(byte);
        expect_agreement(changed);
      }
      if (HasFatalFailure()) return;
    }
  }
}

TEST(JsonScannerTest, AgreesWithTheParserOnEveryTwoAndThreeByteString) {
  // All leading bytes with the continuation bytes at the edges of the table of well-formed UTF-8.
  const std::string edges = "\x20\x7F\x80\x8F\x90\x9F\xA0\xBF\xC0\xFF";
  for (int lead = 0x80; lead < 0x100; ++lead) {
    for (const char second : edges) {
      for (const char third : edges) {
        const std::string sequence{static_cast<char>(lead), second, third, '\x80'};
        for (std::size_t length = 1; length <= 4; ++length) {
          expect_agreement("{\"a\":\"" + sequence.substr(0, length) + "\"}");
        }
        if (HasFatalFailure()) return;
      }
    }
  }
}

TEST(JsonScannerTest, AgreesWithTheParserOnRandomMutations) {
  const auto seed = std::random_device{}();
  RecordProperty("seed", std::to_string(seed));
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  const auto below = [&random](std::size_t bound) { return bound == 0 ? 0 : random() % bound; };

  const std::vector<std::string_view> pieces{
      "{",       "}",      "[",         "]",  ",",        ":",    "\"",   "\\", "\\u", "\\ud83d",
      "\\udd25", "\"a\":", "\"type\":", "1",  "-",        "0",    "e",    ".",  "E+",  "9e307",
      "true",    "null",   " ",         "\n", "\xC3\xA9", "\xFF", "\x01", "{}", "[]"};
  const auto corpus = seeds();
  for (int round = 0; round < 20'000; ++round) {
    std::string text = corpus[below(corpus.size())];
    for (std::size_t edits = 1 + below(4); edits > 0; --edits) {
      const std::size_t place = below(text.size() + 1);
      switch (below(3)) {
        case 0: text.insert(place, pieces[below(pieces.size())]); break;
        case 1: text.erase(place, 1 + below(3)); break;
        default: {
          const std::string& other = corpus[below(corpus.size())];
          text = text.substr(0, place) + other.substr(below(other.size()));
          break;
        }
      }
    }
    expect_agreement(text);
    if (HasFatalFailure()) return;
  }
}

TEST(JsonScannerTest, ForgetsWhatAnEarlierScanFound) {
  std::array<WantedMember, 1> wanted{{{"a", "stale"}}};
  EXPECT_TRUE(scan_json_object("{}", wanted));
  EXPECT_EQ(wanted[0].json, "");
}

TEST(JsonScannerTest, RefusesAByteOrderMark) {
  EXPECT_FALSE(scan_json_object("\xEF\xBB\xBF{}", {}));
}

TEST(JsonScannerTest, TheSliceHasNoSpaceAround) {
  std::array<WantedMember, 1> wanted{{{"a", {}}}};
  ASSERT_TRUE(scan_json_object("{ \"a\" : \t[ 1 ] \n}", wanted));
  EXPECT_EQ(wanted[0].json, "[ 1 ]");
}

TEST(IsJsonTest, AgreesWithParseJsonOnValuesOfEveryKind) {
  const std::string deepest = std::string(kMaxJsonDepth, '[') + std::string(kMaxJsonDepth, ']');
  for (const std::string& text :
       {std::string("1"), std::string(" null "), std::string("\"a\""),
        std::string("[1,2,{\"a\":[]}]"), std::string("{}"), std::string(""), std::string(" "),
        std::string("1 2"), std::string("[1,]"), std::string("{\"a\"}"), std::string("nul"),
        std::string("\"\xff\""), std::string("01"), deepest, "[" + deepest + "]"}) {
    EXPECT_EQ(is_json(text), parse_json(text).has_value()) << text;
  }
}

TEST(JsonScannerTest, OneSpellingKeepsValuesAndTheirOrder) {
  EXPECT_EQ(json_in_one_spelling(" [ 1 , { \"b\" : \"x y\" , \"a\" :\r\n\t-1.0e5 } ] "),
            R"([1,{"b":"x y","a":-1.0e5}])");
  EXPECT_EQ(json_in_one_spelling(R"(["\u0061\/\"\\", "\ud83d\ude00"])"),
            "[\"a/\\\"\\\\\",\"\xF0\x9F\x98\x80\"]");
  EXPECT_EQ(json_in_one_spelling("true"), "true");
}

TEST(ReadableTextTest, IsUtf8AndNotLong) {
  EXPECT_EQ(readable_text("timeout", 1024), "timeout");
  EXPECT_EQ(readable_text("a\xff"
                          "b",
                          1024),
            "a\xEF\xBF\xBD"
            "b");
  EXPECT_LE(readable_text(std::string(5000, 'x'), 1024).size(), 1024U);
}

}  // namespace
}  // namespace hearth
