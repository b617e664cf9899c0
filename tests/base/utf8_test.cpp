#include "base/utf8.hpp"

#include <gtest/gtest.h>

#include <string>

namespace hearth {
namespace {

TEST(Utf8Test, AcceptsOneToFourByteCharactersAtTheirEnds) {
  for (const std::string_view text :
       {"", "a", "\x7F", "\xC2\x80", "\xDF\xBF", "\xE0\xA0\x80", "\xED\x9F\xBF", "\xEE\x80\x80",
        "\xEF\xBF\xBF", "\xF0\x90\x80\x80", "\xF4\x8F\xBF\xBF"}) {
    EXPECT_TRUE(is_valid_utf8(text)) << ::testing::PrintToString(std::string(text));
  }
}

TEST(Utf8Test, RefusesWhatRfc3629Excludes) {
  const std::string_view bad[] = {
      "\x80",              // a continuation alone
      "\xBF",              //
      "\xC0\x80",          // overlong NUL
      "\xC1\xBF",          // overlong DEL
      "\xE0\x9F\xBF",      // overlong in three bytes
      "\xF0\x8F\xBF\xBF",  // overlong in four bytes
      "\xED\xA0\x80",      // the first surrogate
      "\xED\xBF\xBF",      // the last surrogate
      "\xF4\x90\x80\x80",  // past U+10FFFF
      "\xF5\x80\x80\x80",  //
      "\xFE",              //
      "\xFF",              //
      "\xC2",              // cut short
      "\xE2\x82",          //
      "\xF0\x9F\x98",      //
      "\xC2\x41",          // followed by something else
  };
  for (const std::string_view text : bad) {
    EXPECT_FALSE(is_valid_utf8(text)) << ::testing::PrintToString(std::string(text));
  }
}

TEST(Utf8Test, NulIsACharacterLikeAnyOther) {
  EXPECT_TRUE(is_valid_utf8(std::string_view("a\0b", 3)));
}

TEST(Utf8Test, FindsABadByteAtEveryDistanceFromTheStart) {
  // The fast path takes eight bytes at a time: no position may slip through it.
  for (std::size_t at = 0; at < 40; ++at) {
    std::string text(40, 'x');
    text[at] = '\xFF';
    EXPECT_EQ(valid_utf8_prefix(text), at);
    EXPECT_FALSE(is_valid_utf8(text));
  }
}

TEST(Utf8Test, PrefixEndsBeforeTheBrokenCharacterNotInsideIt) {
  EXPECT_EQ(valid_utf8_prefix("ab\xE2\x82"), 2U);
  EXPECT_EQ(valid_utf8_prefix("ab\xE2\x82\xAC"), 5U);
}

TEST(Utf8Test, DecodesTheFirstCharacter) {
  EXPECT_EQ(first_utf8_character("\xE2\x82\xAC!").code_point, U'\u20AC');
  EXPECT_EQ(first_utf8_character("\xE2\x82\xAC!").length, 3U);
  EXPECT_EQ(first_utf8_character("\xF0\x9F\x98\x80").code_point, U'\U0001F600');
  EXPECT_EQ(first_utf8_character("").length, 0U);
}

}  // namespace
}  // namespace hearth
