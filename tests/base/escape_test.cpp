#include "base/escape.hpp"

#include <gtest/gtest.h>

#include <string>

namespace hearth {
namespace {

std::string escaped(std::string_view text, EscapeStyle style) {
  std::string out;
  append_escaped(out, text, style);
  return out;
}

TEST(EscapeTest, OrdinaryTextStaysAsItIs) {
  EXPECT_EQ(escaped("a 'b' \xE2\x82\xAC", EscapeStyle::kHuman), "a 'b' \xE2\x82\xAC");
}

TEST(EscapeTest, StylesDifferOnlyInMalformedBytes) {
  EXPECT_EQ(escaped("\x1B\"\\\xFE", EscapeStyle::kHuman), R"(\u001b\"\\\xfe)");
  EXPECT_EQ(escaped("\x1B\"\\\xFE", EscapeStyle::kJson), "\\u001b\\\"\\\\\xEF\xBF\xBD");
}

TEST(EscapeTest, DirectionMarksAndSeparatorsNeedEscapes) {
  for (const char32_t c : {0x0U, 0x1FU, 0x7FU, 0x80U, 0x9FU, 0x61CU, 0x200EU, 0x200FU, 0x2028U,
                           0x2029U, 0x202AU, 0x202EU, 0x2066U, 0x2069U}) {
    EXPECT_TRUE(needs_escape(c)) << static_cast<unsigned>(c);
  }
  for (const char32_t c : {0x20U, 0x7EU, 0xA0U, 0x200DU, 0x202FU, 0x2065U, 0x206AU}) {
    EXPECT_FALSE(needs_escape(c)) << static_cast<unsigned>(c);
  }
}

TEST(EscapeTest, ANameIsQuotedOnlyWhereItMustBe) {
  EXPECT_EQ(show_name("/srv/plugins/a.so"), "/srv/plugins/a.so");
  EXPECT_EQ(show_name("/srv/my plugins"), R"("/srv/my plugins")");
  EXPECT_EQ(show_name("a\nb"), R"("a\nb")");
  EXPECT_EQ(show_name("a\"b"), R"("a\"b")");
  EXPECT_EQ(show_name(""), R"("")");
}

TEST(EscapeTest, QuotedCutsBetweenCharacters) {
  EXPECT_EQ(quote_text("abc", 3), "\"abc\"");
  EXPECT_EQ(quote_text("abcd", 3), "\"abc...\"");
  EXPECT_EQ(quote_text("ab\xE2\x82\xAC", 4), "\"ab...\"");
  EXPECT_EQ(quote_text("a\nb", 80), R"("a\nb")");
}

TEST(EscapeTest, AShellTakesAWordAsItIs) {
  EXPECT_EQ(shell_word("Counter/a%20b.x:1@h+=,-"), "Counter/a%20b.x:1@h+=,-");
  EXPECT_EQ(shell_word(""), "''");
  EXPECT_EQ(shell_word("x;$(id)"), "'x;$(id)'");
  EXPECT_EQ(shell_word("it's"), R"('it'\''s')");
  EXPECT_EQ(shell_word("~"), "'~'");
}

TEST(EscapeTest, CutTakesBytesThatAreNotUtf8AsTheyCome) {
  EXPECT_EQ(cut_text("\x80\x80\x80\x80\x80\x80", 5).size(), 2U);
  EXPECT_EQ(cut_text("\x80\x80", 1).size(), 0U);
}

}  // namespace
}  // namespace hearth
