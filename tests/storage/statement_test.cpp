#include "storage/statement.hpp"

#include "base/error.hpp"
#include "storage/connection.hpp"
#include "support/storage_error_of.hpp"

#include <gtest/gtest.h>

#include <array>
#include <string>

namespace hearth::storage {
namespace {

class StatementTest : public ::testing::Test {
 protected:
  StatementTest() { connection_.execute("CREATE TABLE t(a INTEGER PRIMARY KEY, b)"); }

  Connection connection_{":memory:", {.create = true}};
};

TEST_F(StatementTest, ReturnsWhatWasBound) {
  const std::array<std::byte, 3> blob{std::byte{0}, std::byte{255}, std::byte{7}};
  const std::string text("a\0b", 3);
  Statement echo(connection_.handle(), "SELECT ?, ?, ?, ?, ?");
  const std::array params{Param(std::int64_t{-5}), Param(2.5), Param(std::string_view(text)),
                          Param(Bytes(blob)), Param(nullptr)};
  Rows rows = echo.query(params);
  ASSERT_TRUE(rows.next());
  EXPECT_EQ(rows.integer(0), -5);
  EXPECT_EQ(rows.real(1), 2.5);
  EXPECT_EQ(rows.text(2), text);
  EXPECT_TRUE(std::equal(blob.begin(), blob.end(), rows.bytes(3).begin(), rows.bytes(3).end()));
  EXPECT_TRUE(rows.is_null(4));
  EXPECT_FALSE(rows.is_null(0));
  EXPECT_FALSE(rows.next());
}

TEST_F(StatementTest, TakesValuesInTheirOrder) {
  enum class Kind : std::uint8_t { kSecond = 2 };
  const std::string text("a\0b", 3);
  Statement echo(connection_.handle(), "SELECT ?, ?, ?, ?, ?");
  Rows rows = echo.query(std::size_t{5}, text, true, Kind::kSecond,
                         nullable(std::optional<std::int64_t>()));
  ASSERT_TRUE(rows.next());
  EXPECT_EQ(rows.integer(0), 5);
  EXPECT_EQ(rows.text(1), text);
  EXPECT_EQ(rows.integer(2), 1);
  EXPECT_EQ(rows.integer(3), 2);
  EXPECT_TRUE(rows.is_null(4));
}

TEST_F(StatementTest, AnEmptyTextIsNoNull) {
  Statement echo(connection_.handle(), "SELECT ?, ?");
  Rows rows = echo.query(std::string_view(), Bytes());
  ASSERT_TRUE(rows.next());
  EXPECT_FALSE(rows.is_null(0));
  EXPECT_FALSE(rows.is_null(1));
}

TEST_F(StatementTest, ExecuteTellsHowManyRowsChanged) {
  Statement insert(connection_.handle(), "INSERT INTO t(b) VALUES(1), (2), (3)");
  EXPECT_EQ(insert.execute(), 3);
  EXPECT_EQ(Statement(connection_.handle(), "UPDATE t SET b = 0 WHERE a > 1").execute(), 2);
  EXPECT_EQ(Statement(connection_.handle(), "DELETE FROM t WHERE a > 99").execute(), 0);
}

TEST_F(StatementTest, RunsAgainAfterItsRowsAreGone) {
  Statement insert(connection_.handle(), "INSERT INTO t(a) VALUES(?)");
  for (const int a : {1, 2}) insert.execute(a);
  Statement all(connection_.handle(), "SELECT a FROM t");
  for (int round = 0; round < 2; ++round) {
    Rows rows = all.query();
    ASSERT_TRUE(rows.next());
    EXPECT_EQ(rows.integer(0), 1);  // left in the middle on purpose
  }
}

TEST_F(StatementTest, RefusesBadSqlWithSqlitesWordsAndTheStatement) {
  const std::string text = hearth::testing::storage_error_of(
      [&] { const Statement bad(connection_.handle(), "SELECT a FROM nowhere"); });
  EXPECT_NE(text.find("no such table: nowhere"), std::string::npos) << text;
  EXPECT_NE(text.find("SELECT a FROM"), std::string::npos) << text;
}

TEST_F(StatementTest, AFailedRunThrowsAndTheStatementStaysUsable) {
  Statement insert(connection_.handle(), "INSERT INTO t(a) VALUES(?)");
  const std::array one{Param(std::int64_t{1})};
  const std::array two{Param(std::int64_t{2})};
  insert.execute(one);
  EXPECT_THROW(insert.execute(one), StorageError);
  EXPECT_EQ(insert.execute(two), 1);
}

TEST_F(StatementTest, AbortsOnWrongUse) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  Statement one(connection_.handle(), "SELECT ?");
  EXPECT_DEATH((void)one.query(), "wrong number of parameters");
  EXPECT_DEATH(Statement(connection_.handle(), "SELECT 1; SELECT 2"), "more than one statement");
  const std::array params{Param(std::int64_t{1})};
  Rows rows = one.query(params);
  EXPECT_DEATH((void)one.query(params), "re-run");
  EXPECT_DEATH((void)rows.integer(0), "without a row");
}

}  // namespace
}  // namespace hearth::storage
