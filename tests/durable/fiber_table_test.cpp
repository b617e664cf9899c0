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
  table.insert({"3", "oldest", std::nullopt, 5, 0, 0, false});
  database.commit();
  const auto rows = table.load();
  ASSERT_EQ(rows.size(), 2U) << "the dead one stays where it is";
  EXPECT_EQ(rows[0].name, "oldest");
  EXPECT_EQ(rows[1].attempts, 3);
  EXPECT_EQ(rows[1].next_at_ms, 99);
  const auto dead = table.find_dead("1");
  ASSERT_TRUE(dead);
  EXPECT_EQ(dead->name, "old");
  EXPECT_TRUE(dead->dead);
  EXPECT_TRUE(dead->has_failed);
  EXPECT_EQ(dead->next_at_ms, 77);
  EXPECT_FALSE(table.find_dead("2"));
  EXPECT_EQ(table.snapshot("2"), R"({"a":1})");
  EXPECT_EQ(table.snapshot("1"), std::nullopt);
  EXPECT_EQ(table.snapshot("absent"), std::nullopt);
}

TEST(FiberTableTest, DeadRowsComeInPagesOldestFirstAlsoThoseOfOneMoment) {
  const hearth::testing::TempDirectory directory;
  storage::AgentDatabase database(directory.path() / "a.db", {"Worker", "a"});
  FiberTable table(database);
  EXPECT_TRUE(table.dead_after(std::nullopt, 10).empty());
  EXPECT_EQ(table.count_dead(), 0U);
  for (const char* id : {"b", "a", "c", "alive"}) {
    table.insert({id, "work", std::nullopt, *id == 'c' ? 10 : 20, 0, 0, false});
    if (std::string_view(id) != "alive") table.note_failure(id, "no", 0, true);
  }
  database.commit();
  EXPECT_EQ(table.count_dead(), 3U);
  const auto first = table.dead_after(std::nullopt, 2);
  ASSERT_EQ(first.size(), 2U);
  EXPECT_EQ(first[0].id, "c");
  EXPECT_EQ(first[1].id, "a");
  const auto second = table.dead_after(first[1], 2);
  ASSERT_EQ(second.size(), 1U);
  EXPECT_EQ(second[0].id, "b");
  table.revive("b");
  EXPECT_EQ(table.count_dead(), 2U);
}

TEST(FiberTableTest, ATableWithoutItsIndexGetsItWithTheFirstWrite) {
  const hearth::testing::TempDirectory directory;
  const auto has_index = [](storage::AgentDatabase& database) {
    storage::Statement find(database.connection(),
                            "SELECT 1 FROM sqlite_schema WHERE name = 'cf_agents_runs_order'");
    return find.query().next();
  };
  {
    storage::AgentDatabase database(directory.path() / "a.db", {"Worker", "a"});
    FiberTable(database).insert({"1", "old", std::nullopt, 10, 0, 0, false});
    ASSERT_TRUE(has_index(database));
    storage::Statement(database.connection(), "DROP INDEX cf_agents_runs_order").execute();
    database.commit();
    database.close();
  }
  storage::AgentDatabase database(directory.path() / "a.db", {"Worker", "a"});
  FiberTable table(database);
  ASSERT_EQ(table.load().size(), 1U);
  EXPECT_FALSE(has_index(database)) << "who only reads changes nothing";
  table.note_attempt("1", 1, 0);
  database.commit();
  EXPECT_TRUE(has_index(database));
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
