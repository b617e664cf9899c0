#include "storage/migrations.hpp"

#include "base/error.hpp"
#include "storage/connection.hpp"
#include "support/temp_directory.hpp"

#include <gtest/gtest.h>

#include <array>
#include <string>

namespace hearth::storage {
namespace {

constexpr std::array<const char*, 2> kSteps = {
    "CREATE TABLE a(x); INSERT INTO a VALUES(1)",
    "ALTER TABLE a ADD COLUMN y DEFAULT 2",
};

class MigrationsTest : public ::testing::Test {
 protected:
  const testing::TempDirectory temp_;
  Connection connection_{temp_.path() / "a.db", {.create = true}};
};

TEST_F(MigrationsTest, RunsAllStepsOnANewFile) {
  migrate(connection_, kSteps);
  EXPECT_EQ(connection_.query_integer("SELECT x + y FROM a"), 3);
  EXPECT_EQ(connection_.query_integer("PRAGMA user_version"), 2);
}

TEST_F(MigrationsTest, RunsOnlyTheStepsThatAreMissing) {
  migrate(connection_, std::span(kSteps).first(1));
  connection_.execute("UPDATE a SET x = 10");
  migrate(connection_, kSteps);
  EXPECT_EQ(connection_.query_integer("SELECT x + y FROM a"), 12);
  migrate(connection_, kSteps);
  EXPECT_EQ(connection_.query_integer("SELECT count(*) FROM a"), 1);
}

TEST_F(MigrationsTest, AFailedStepLeavesTheOldVersionAndNothingElse) {
  constexpr std::array<const char*, 3> kBroken = {kSteps[0], kSteps[1],
                                                  "CREATE TABLE b(x); SELECT nonsense"};
  migrate(connection_, std::span(kSteps).first(1));
  EXPECT_THROW(migrate(connection_, kBroken), StorageError);
  EXPECT_EQ(connection_.query_integer("PRAGMA user_version"), 1);
  EXPECT_EQ(connection_.query_integer("SELECT count(*) FROM sqlite_schema WHERE name = 'b'"), 0);
  migrate(connection_, kSteps);  // no transaction was left open
  EXPECT_EQ(connection_.query_integer("PRAGMA user_version"), 2);
}

TEST_F(MigrationsTest, RefusesANewerFileAndSaysSo) {
  migrate(connection_, kSteps);
  try {
    migrate(connection_, std::span(kSteps).first(1));
    FAIL() << "no error";
  } catch (const StorageError& error) {
    EXPECT_NE(std::string(error.what()).find("newer server"), std::string::npos) << error.what();
    EXPECT_NE(std::string(error.what()).find("a.db"), std::string::npos) << error.what();
  }
}

}  // namespace
}  // namespace hearth::storage
