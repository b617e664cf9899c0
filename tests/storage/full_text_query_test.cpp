#include "storage/full_text_query.hpp"

#include <gtest/gtest.h>

#include <string>

namespace hearth::storage {
namespace {

std::string repeated(std::size_t times, const std::string& text) {
  std::string all;
  for (std::size_t i = 0; i < times; ++i) all += text;
  return all;
}

TEST(FullTextQueryTest, WordsAndThePhrasesOfANearAreBounded) {
  struct Case {
    std::string text;
    const char* refused_for;  // null: it is not
  };
  const std::string near32 = repeated(32, "ab ");
  const Case cases[] = {
      {"", nullptr},
      {"one two", nullptr},
      {repeated(1000, "a "), nullptr},
      {repeated(1001, "a "), "words"},
      {repeated(1000, "ab OR "), "words"},
      {"\"" + repeated(1000, "a ") + "\"", nullptr},
      {"\"" + repeated(1001, "a ") + "\"", "words"},
      {"\"" + repeated(1001, "a ") + "and no end", "words"},
      {repeated(1001, "\"a\""), "words"},
      {repeated(1001, "\xC3\xA9 "), "words"},
      {repeated(1001, "a-"), "words"},
      {repeated(5000, "((\"\" "), nullptr},
      {"NEAR(" + near32 + ")", nullptr},
      {"NEAR(" + near32 + ", 10)", nullptr},
      {"NEAR(" + near32 + "a)", "phrases"},
      {"NEAR \n(" + near32 + "a, 5)", "phrases"},
      {"x NEAR(a b) AND NEAR(" + near32 + "a)", "phrases"},
      {"NEAR(" + repeated(33, "\"a\" "), "phrases"},
      {"NEAR(" + repeated(33, "\"a b\"") + ")", "phrases"},
      {"NEAR(" + near32 + ") NEAR(" + near32 + ")", nullptr},
      {"NEAR(\"" + repeated(200, "a ") + "\" b)", nullptr},
      {"NEAR(a b) " + repeated(100, "c "), nullptr},
      {"near(" + repeated(100, "a ") + ")", nullptr},  // no NEAR to FTS5
      {"NEARLY(" + repeated(100, "a ") + ")", nullptr},
      {"NEAR a (" + repeated(100, "a ") + ")", nullptr},
      {"\"NEAR\"(" + repeated(100, "a ") + ")", nullptr},
  };
  for (const Case& each : cases) {
    const Result<void> checked = check_full_text_query(each.text);
    const std::string shown = each.text.substr(0, 30);
    ASSERT_EQ(checked.has_error(), each.refused_for != nullptr) << shown;
    if (each.refused_for == nullptr) continue;
    EXPECT_EQ(checked.error().code, Errc::kLimitExceeded);
    EXPECT_NE(checked.error().message.find(each.refused_for), std::string::npos) << shown;
  }
}

TEST(FullTextQueryTest, ACallOfATableIsSeenInAnyQuotes) {
  for (const char* sql : {"SELECT x FROM notes(?)", "select x from NOTES (?)", "FROM \"notes\"(?)",
                          "FROM [notes] (?)", "FROM `notes`\n(?)", "FROM a, notes, notes(?)"})
    EXPECT_TRUE(calls_table(sql, "notes")) << sql;
  for (const char* sql : {"SELECT x FROM notes", "SELECT x FROM notes WHERE (x = ?)",
                          "SELECT f(?) FROM notes", "notes", "note(?)", ""})
    EXPECT_FALSE(calls_table(sql, "notes")) << sql;
}

}  // namespace
}  // namespace hearth::storage
