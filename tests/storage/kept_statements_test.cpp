#include "storage/kept_statements.hpp"

#include "storage/connection.hpp"
#include "storage/one_line_sql.hpp"
#include "support/temp_directory.hpp"

#include <gtest/gtest.h>

#include <string>

namespace hearth::storage {
namespace {

class KeptStatementsTest : public ::testing::Test {
 protected:
  std::int64_t ask(std::string_view literal, std::string_view before = {}) {
    Rows rows = kept_.get(connection_.handle(), literal, before).query();
    return rows.next() ? rows.integer(0) : -1;
  }
  // The texts of all that are kept, but for this question.
  std::string texts() {
    return ask_text(connection_.handle(),
                    "SELECT group_concat(sql) FROM (SELECT sql FROM sqlite_stmt "
                    "WHERE sql NOT LIKE '%sqlite_stmt%' ORDER BY sql)");
  }

  const testing::TempDirectory temp_;
  Connection connection_{temp_.path() / "a.db", {.create = true}};
  KeptStatements kept_;
};

TEST_F(KeptStatementsTest, OneIsPreparedOnce) {
  constexpr std::string_view kOne = "SELECT 1";
  Statement& first = kept_.get(connection_.handle(), kOne);
  EXPECT_EQ(&first, &kept_.get(connection_.handle(), kOne));
  EXPECT_EQ(ask(kOne), 1);
  EXPECT_EQ(ask(" 7", "SELECT"), 7);
  EXPECT_EQ(texts(), "SELECT 1,SELECT 7");
}

TEST_F(KeptStatementsTest, OneEndOfTwoTextsIsTwoStatements) {
  constexpr std::string_view kEnd = " 7";
  EXPECT_EQ(ask(kEnd, "SELECT"), 7);
  EXPECT_EQ(ask(kEnd, "SELECT -"), -7);
  EXPECT_EQ(ask(kEnd, "SELECT"), 7);
}

TEST_F(KeptStatementsTest, WhatWasNotUsedSinceTheLastCallIsFinalised) {
  constexpr std::string_view kOne = "SELECT 1";
  constexpr std::string_view kTwo = "SELECT 2";
  EXPECT_EQ(ask(kOne), 1);
  EXPECT_EQ(ask(kTwo), 2);
  kept_.release_unused();
  EXPECT_EQ(texts(), "SELECT 1,SELECT 2");
  EXPECT_EQ(ask(kTwo), 2);
  kept_.release_unused();
  EXPECT_EQ(texts(), "SELECT 2");
  EXPECT_EQ(ask(kOne), 1) << "it is prepared again";
  kept_.clear();
  EXPECT_EQ(texts(), "");
}

}  // namespace
}  // namespace hearth::storage
