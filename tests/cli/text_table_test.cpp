#include "cli/text_table.hpp"

#include <gtest/gtest.h>

namespace hearth::cli {
namespace {

TEST(TextTableTest, ColumnsAreAsWideAsTheirWidestCell) {
  TextTable table({"A", "LONG HEAD", "C"});
  table.add({"wide cell", "x", "1"});
  table.add({"y", "", "2"});
  EXPECT_EQ(table.text(),
            "A          LONG HEAD  C\n"
            "wide cell  x          1\n"
            "y                     2\n");
}

TEST(TextTableTest, AColumnWithoutTextIsLeftOut) {
  TextTable table({"A", "EMPTY", "C"});
  table.add({"a", "", "c"});
  EXPECT_EQ(table.text(), "A  C\na  c\n");
}

TEST(TextTableTest, ACellCannotBreakItsLine) {
  TextTable table({"A"});
  table.add({"a\n\x1b[31mred"});
  EXPECT_EQ(table.text(), "A\na\\n\\u001b[31mred\n");
}

TEST(TextTableTest, WidthsAreOfCharacters) {
  TextTable table({"A", "B"});
  table.add({"\xc3\xa4\xc3\xa4", "x"});
  table.add({"aa", "y"});
  EXPECT_EQ(table.text(), "A   B\n\xc3\xa4\xc3\xa4  x\naa  y\n");
}

TEST(TextTableTest, MomentsAreInUniversalTime) {
  EXPECT_EQ(moment_text(0), "1970-01-01T00:00:00Z");
  EXPECT_EQ(moment_text(1'767'355'200'999), "2026-01-02T12:00:00Z");
}

}  // namespace
}  // namespace hearth::cli
