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

TEST(FullTextQueryTest, ThePhrasesOfAllNearGroupsTogetherAreBounded) {
  struct Case {
    std::string text;
    bool refused;
  };
  const std::string near32 = repeated(32, "ab ");
  const Case cases[] = {
      {"", false},
      {"\"", false},
      {"one two", false},
      {repeated(1000, "a "), false},
      {repeated(5000, "((\"\" "), false},
      {"NEAR(" + near32 + ")", false},
      {"NEAR(" + near32 + ", 10)", false},
      {"NEAR(" + near32 + "a)", true},
      {"NEAR \n(" + near32 + "a, 5)", true},
      {"x NEAR(a b) AND NEAR(" + near32 + "a)", true},
      {"NEAR(" + repeated(33, "\"a\" "), true},
      {"NEAR(" + repeated(33, "\"a b\"") + ")", true},
      {"NEAR(" + near32 + ") NEAR(" + near32 + ")", true},
      {repeated(16, "NEAR(a b) "), false},
      {repeated(17, "NEAR(a b) OR "), true},
      {"NEAR(\"" + repeated(200, "a ") + "\" b)", false},
      {"NEAR(a b) " + repeated(100, "c "), false},
      {"near(" + repeated(100, "a ") + ")", false},  // no NEAR to FTS5
      {"NEARLY(" + repeated(100, "a ") + ")", false},
      {"NEAR a (" + repeated(100, "a ") + ")", false},
      {"\"NEAR\"(" + repeated(100, "a ") + ")", false},
  };
  for (const Case& each : cases) {
    const Result<void> checked = check_full_text_query(each.text);
    const std::string shown = each.text.substr(0, 30);
    ASSERT_EQ(checked.has_error(), each.refused) << shown;
    if (each.refused) EXPECT_EQ(checked.error().code, Errc::kLimitExceeded);
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
