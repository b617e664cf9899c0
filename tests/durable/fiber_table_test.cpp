#include "durable/fiber_table.hpp"

#include "storage/statement.hpp"
#include "support/counted_steps.hpp"
#include "support/temp_directory.hpp"

#include <gtest/gtest.h>

namespace hearth::durable {
namespace {

TEST(FiberTableTest, RowsComeBackWithEveryColumnOldestFirst) {
  const hearth::testing::TempDirectory directory;
  storage::AgentDatabase database(directory.path() / "a.db", {"Worker", "a"});
  FiberTable table(database);
  EXPECT_TRUE(table.load().empty());
  table.insert({"2", "young", R"({"a":1})", 20, 3, 99, false, false, 7});
  table.insert({"1", "old", std::nullopt, 10, 0, 0, false});
  table.note_failure("1", "went wrong", 77, true);
  database.commit();
  table.insert({"3", "oldest", std::nullopt, 5, 0, 0, false});
  database.commit();
  const auto rows = table.load();
  ASSERT_EQ(rows.size(), 2U) << "the dead one stays where it is";
  EXPECT_EQ(rows[0].name, "oldest");
  EXPECT_EQ(rows[1].attempts, 3);
  EXPECT_EQ(rows[1].recoveries, 7);
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
  table.note_attempt({"1", "old", std::nullopt, 10, 1, 0, false});
  database.commit();
  EXPECT_TRUE(has_index(database));
}

TEST(FiberTableTest, ATableOfAnEarlierVersionIsUpgradedOnce) {
  const hearth::testing::TempDirectory directory;
  {
    storage::AgentDatabase database(directory.path() / "a.db", {"Worker", "a"});
    database.begin_write();
    for (const char* sql :
         {"CREATE TABLE cf_agents_runs(id TEXT PRIMARY KEY NOT NULL, name TEXT NOT NULL, "
          "snapshot TEXT, created_at INTEGER NOT NULL, attempts INTEGER NOT NULL DEFAULT 0, "
          "next_at INTEGER NOT NULL DEFAULT 0, dead INTEGER NOT NULL DEFAULT 0, last_error TEXT) "
          "WITHOUT ROWID",
          "CREATE INDEX cf_agents_runs_order ON cf_agents_runs(dead, created_at, id)",
          "INSERT INTO cf_agents_runs VALUES('alive', 'work', '1', 10, 2, 30, 0, NULL)",
          "INSERT INTO cf_agents_runs VALUES('dead', 'work', '2', 10, 9, 0, 1, 'no')"})
      storage::Statement(database.connection(), sql).execute();
    database.commit();
    database.close();
  }
  {
    storage::AgentDatabase database(directory.path() / "a.db", {"Worker", "a"});
    FiberTable table(database);
    table.upgrade(5'000);
    database.commit();
    database.close();
  }
  storage::AgentDatabase database(directory.path() / "a.db", {"Worker", "a"});
  FiberTable table(database);
  table.upgrade(9'000);
  auto rows = table.load();
  ASSERT_EQ(rows.size(), 1U);
  EXPECT_EQ(rows[0].attempts, 2);
  EXPECT_EQ(rows[0].next_at_ms, 30);
  EXPECT_EQ(rows[0].recoveries, 0);
  EXPECT_EQ(table.snapshot("alive"), "1");
  EXPECT_EQ(table.last_error("dead"), "no");
  EXPECT_TRUE(table.dead_since(4'999, 10).empty()) << "nobody knows when it died";
  EXPECT_EQ(table.dead_since(5'000, 10), std::vector<std::string>{"dead"});
  rows[0].recoveries = 4;
  table.note_attempt(rows[0]);
  EXPECT_EQ(table.load()[0].recoveries, 4);
}

TEST(FiberTableTest, WhatDiedLongAgoIsFoundWithoutALookAtWhatDiedLately) {
  const hearth::testing::TempDirectory directory;
  storage::AgentDatabase database(directory.path() / "a.db", {"Worker", "a"});
  FiberTable table(database);
  EXPECT_FALSE(table.has_dead());
  EXPECT_TRUE(table.dead_since(INT64_MAX, 10).empty());
  table.insert({"alive", "work", std::nullopt, 1, 0, 0, false});
  EXPECT_FALSE(table.has_dead());
  storage::Statement(database.connection(),
                     "INSERT INTO cf_agents_runs(id, name, created_at, next_at, dead) "
                     "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT 20000) "
                     "SELECT 'dead ' || i, 'x', 1, 30000 - i, 1 FROM n")
      .execute();
  EXPECT_TRUE(table.has_dead());
  const hearth::testing::CountedSteps steps(database);
  EXPECT_EQ(table.dead_since(10'001, 10), (std::vector<std::string>{"dead 20000", "dead 19999"}));
  EXPECT_EQ(table.dead_since(10'001, 1), std::vector<std::string>{"dead 20000"});
  EXPECT_LT(steps.count(), 300U);
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
