#include "json/json_text.hpp"

#include "json/json.hpp"

#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace hearth {
namespace {

using std::string_view_literals::operator""sv;

std::string as_json(std::string_view text) {
  std::string out;
  append_json_string(out, text);
  return out;
}

TEST(JsonTextTest, QuotesPlainTextUnchanged) {
  EXPECT_EQ(as_json(""), R"("")");
  EXPECT_EQ(as_json("a longer text, of more than eight bytes"),
            R"("a longer text, of more than eight bytes")");
  EXPECT_EQ(as_json("naïve 日本 🔥"), "\"naïve 日本 🔥\"");
}

TEST(JsonTextTest, AppendsToWhatIsThere) {
  std::string out = "{";
  append_json_string(out, "a");
  EXPECT_EQ(out, R"({"a")");
}

TEST(JsonTextTest, EscapesQuotesBackslashesAndControls) {
  EXPECT_EQ(as_json("say \"hi\" \\ \b\f\n\r\t"), R"("say \"hi\" \\ \b\f\n\r\t")");
  EXPECT_EQ(as_json("\0\x01\x1f"sv), R"("\u0000\u0001\u001f")");
}

TEST(JsonTextTest, ReplacesEachByteThatIsNoUtf8) {
  EXPECT_EQ(as_json("a\xFFz"), "\"a\xEF\xBF\xBDz\"");
  EXPECT_EQ(as_json("\xC3"), "\"\xEF\xBF\xBD\"");
  EXPECT_EQ(as_json("\xED\xA0\x80"), "\"\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD\"");
}

TEST(JsonTextTest, EveryByteAtEveryPlaceGivesWhatAParserReadsBack) {
  for (std::size_t place = 0; place < 20; ++place) {
    for (int byte = 0; byte < 128; ++byte) {
      std::string text(20, 'x');
      text[place] = static_cast<char>(byte);
      const auto parsed = parse_json(as_json(text));
      ASSERT_TRUE(parsed.has_value()) << "byte " << byte << " at " << place;
      EXPECT_EQ(parsed->get<std::string>(), text);
    }
  }
}

TEST(JsonTextTest, CountsPlainBytesExactly) {
  for (std::size_t place = 0; place < 20; ++place) {
    for (int byte = 0; byte < 256; ++byte) {
      std::string text(20, 'x');
      text[place] = static_cast<char>(byte);
      const bool plain = byte >= 0x20 && byte < 0x80 && byte != '"' && byte != '\\';
      ASSERT_EQ(plain_json_bytes(text), plain ? text.size() : place) << byte << " at " << place;
    }
  }
}

TEST(JsonTextTest, CountsPlainBytesBehindABorrow) {
  // Bytes that differ by one from a wanted byte: a careless test of words finds a match there.
  EXPECT_EQ(plain_json_bytes("!!!!####[[[[]]]]"), 16U);
  EXPECT_EQ(plain_json_bytes("#\"#\"#\"#\""), 1U);
}

TEST(LoneSurrogatesTest, BecomeTheReplacementCharacterAndNothingElseMoves) {
  const std::vector<std::pair<std::string_view, std::string_view>> texts = {
      {R"("\ud83d")", R"("\ufffd")"},
      {R"("\uD83D x \uDd25")", R"("\ufffd x \ufffd")"},
      {R"("\ud83d\ud83d\udd25\udd25")", R"("\ufffd\ud83d\udd25\ufffd")"},
      {R"(["\udc00\ud800"])", R"(["\ufffd\ufffd"])"},
      {R"("\\\ud83d\n")", R"("\\\ufffd\n")"},
      {R"("\ud83d)", R"("\ufffd)"},
  };
  for (const auto& [json, mended] : texts) {
    const auto replaced = without_lone_surrogates(json);
    ASSERT_TRUE(replaced) << json;
    EXPECT_EQ(*replaced, mended);
  }
}

TEST(LoneSurrogatesTest, LeaveAllOtherTextAlone) {
  for (const std::string_view json :
       {R"("")", R"("\ud83d\udd25")", R"("\\ud83d")", R"("\\\\ud83d")", R"("\ud7ff\ue000\u00e9")",
        R"("\ud83")", R"(\)", R"(\u)", R"("\ud8zz")", "\xED\xA0\xBD"}) {
    EXPECT_FALSE(without_lone_surrogates(json)) << json;
  }
}

}  // namespace
}  // namespace hearth
