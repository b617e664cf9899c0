#include "durable/fiber_table.hpp"

#include "storage/statement.hpp"
#include "support/temp_directory.hpp"

#include <gtest/gtest.h>

namespace hearth::durable {
namespace {

TEST(FiberTableTest, RowsComeBackWithEveryColumnOldestFirst) {
  const hearth::testing::TempDirectory directory;
  storage::AgentDatabase database(directory.path() / "a.db", {"Worker", "a"});
  FiberTable table(database);
  EXPECT_TRUE(table.load().empty());
  table.insert({"2", "young", R"({"a":1})", 20, 3, 99, false});
  table.insert({"1", "old", std::nullopt, 10, 0, 0, false});
  table.note_failure("1", "went wrong", 77, true);
  database.commit();
  const auto rows = table.load();
  ASSERT_EQ(rows.size(), 2U);
  EXPECT_EQ(rows[0].name, "old");
  EXPECT_TRUE(rows[0].dead);
  EXPECT_EQ(rows[0].next_at_ms, 77);
  EXPECT_EQ(rows[1].attempts, 3);
  EXPECT_EQ(rows[1].next_at_ms, 99);
  EXPECT_EQ(table.snapshot("2"), R"({"a":1})");
  EXPECT_EQ(table.snapshot("1"), std::nullopt);
  EXPECT_EQ(table.snapshot("absent"), std::nullopt);
}

TEST(FiberTableTest, ATableThatWasRolledBackIsMadeAgain) {
  const hearth::testing::TempDirectory directory;
  storage::AgentDatabase database(directory.path() / "a.db", {"Worker", "a"});
  FiberTable table(database);
  database.begin_write();
  storage::Statement(database.connection(), "SAVEPOINT plugin").execute();
  table.insert({"1", "lost", std::nullopt, 10, 0, 0, false});
  storage::Statement(database.connection(), "ROLLBACK TO plugin").execute();
  storage::Statement(database.connection(), "RELEASE plugin").execute();
  table.insert({"2", "kept", std::nullopt, 10, 0, 0, false});
  database.commit();
  ASSERT_EQ(table.load().size(), 1U);
  EXPECT_EQ(table.load()[0].name, "kept");
}

}  // namespace
}  // namespace hearth::durable
