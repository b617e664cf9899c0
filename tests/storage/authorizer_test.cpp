// Allowed and forbidden SQL of plugins: a table of texts, run through PluginSql.

#include "storage/authorizer.hpp"

#include "storage/agent_database.hpp"
#include "storage/one_line_sql.hpp"
#include "storage/plugin_sql.hpp"
#include "storage/statement.hpp"
#include "support/manual_clock.hpp"
#include "support/temp_directory.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

namespace hearth::storage {
namespace {

class AuthorizerTest : public ::testing::Test {
 protected:
  AuthorizerTest() {
    database_.store_state("\"untouched\"");
    // Tables that the plugin has made, and host tables with a row each.
    for (const char* sql :
         {"CREATE TABLE t(id INTEGER PRIMARY KEY AUTOINCREMENT, b TEXT)",
          "INSERT INTO t(b) VALUES('x')", "CREATE TABLE parent(id TEXT PRIMARY KEY)",
          "CREATE VIEW v AS SELECT * FROM cf_agents_state", "CREATE VIEW tv AS SELECT * FROM t",
          "CREATE INDEX i ON t(b)", "CREATE VIRTUAL TABLE f USING fts5(body)",
          "CREATE VIRTUAL TABLE r USING rtree(id, x0, x1)",
          // Their bodies are checked when they fire.
          "CREATE TABLE trap(a)",
          ("CREATE TRIGGER trapped AFTER INSERT ON trap BEGIN UPDATE cf_agents_state SET state = "
           "'1'; END"),
          "CREATE TRIGGER state_view INSTEAD OF INSERT ON v BEGIN DELETE FROM cf_agents_state; END",
          ("CREATE TRIGGER t_view INSTEAD OF INSERT ON tv BEGIN INSERT INTO t(b) VALUES(new.b); "
           "END")}) {
      const Result<void> made = run(sql);
      EXPECT_TRUE(made) << sql << ": " << made.error().message;
    }
    database_.commit();
  }

  Result<void> run(std::string_view sql) {
    const Result<StatementHandle> handle = sql_.prepare(sql);
    if (!handle) return handle.error();
    for (;;) {
      const Result<StepOutcome> outcome = sql_.step(*handle);
      if (outcome && *outcome == StepOutcome::kRow) continue;
      (void)sql_.finalize(*handle);
      if (!outcome) return outcome.error();
      return {};
    }
  }

  // Everything that belongs to the host, as one text.
  std::string host_tables() {
    std::string found;
    for (const char* sql :
         {"SELECT group_concat(name || coalesce(sql, ''), ' ') FROM (SELECT * FROM sqlite_schema "
          "WHERE tbl_name LIKE 'cf@_agent%' ESCAPE '@' OR name LIKE 'cf@_agent%' ESCAPE '@' ORDER "
          "BY name)",
          "SELECT group_concat(key || value, ' ') FROM cf_agents_meta",
          "SELECT group_concat(id || state, ' ') FROM cf_agents_state",
          "SELECT group_concat(name || seq, ' ') FROM sqlite_sequence"}) {
      found += ask_text(database_.connection(), sql) + "\n";
    }
    return found;
  }

  const testing::TempDirectory temp_;
  const testing::ManualClock clock_;
  AgentDatabase database_{temp_.path() / "a.db", {"Counter", "alice"}};
  PluginSql sql_{database_, clock_};
};

TEST_F(AuthorizerTest, RefusesEverythingThatTouchesTheHost) {
  const std::vector<const char*> refused = {
      // writing the host's tables, by every way there is
      "INSERT INTO cf_agents_state VALUES('a', 'b')",
      "UPDATE cf_agents_state SET state = '1'",
      "DELETE FROM cf_agents_state",
      "REPLACE INTO cf_agents_meta VALUES('name', 'bob')",
      "UPDATE OR ROLLBACK cf_agents_meta SET value = 'bob'",
      "INSERT INTO cf_agents_state VALUES('a', 'b') ON CONFLICT DO UPDATE SET state = 'x'",
      "INSERT INTO main.cf_agents_state VALUES('a', 'b')",
      "INSERT INTO \"cf_agents_state\" VALUES('a', 'b')",
      "INSERT INTO [cf_agents_state] VALUES('a', 'b')",
      "INSERT INTO `cf_agents_state` VALUES('a', 'b')",
      "INSERT INTO 'cf_agents_state' VALUES('a', 'b')",
      "INSERT INTO CF_AGENTS_State VALUES('a', 'b')",
      "INSERT/**/INTO/**/cf_agents_state/**/VALUES('a', 'b')",
      "WITH x AS (SELECT 'a', 'b') INSERT INTO cf_agents_state SELECT * FROM x",
      "WITH x AS (SELECT 1) DELETE FROM cf_agents_state WHERE 1 IN x",
      "UPDATE cf_agents_state SET state = b FROM t",
      "DELETE FROM cf_agents_state RETURNING state",
      "EXPLAIN DELETE FROM cf_agents_state",
      "INSERT INTO trap VALUES(1)",      // a trigger writes it
      "INSERT INTO v VALUES('a', 'b')",  // a view's trigger deletes from it
      // making, changing and dropping things of the host's names, or on its tables
      "CREATE TABLE cf_agents_mine(a)",
      "CREATE TABLE IF NOT EXISTS CF_Agents_Mine(a)",
      "CREATE TABLE \"cf_agents_mine\"(a)",
      "CREATE TABLE cf_agent_tools(a)",
      "CREATE TABLE cf_agents_copy AS SELECT * FROM t",
      "CREATE VIEW cf_agents_view AS SELECT 1",
      "CREATE INDEX mine ON cf_agents_state(state)",
      "CREATE INDEX cf_agents_index ON t(b)",
      "CREATE TRIGGER mine AFTER UPDATE ON cf_agents_state BEGIN SELECT 1; END",
      "CREATE TRIGGER cf_agents_mine AFTER UPDATE ON t BEGIN SELECT 1; END",
      "CREATE TABLE child(a TEXT REFERENCES cf_agents_state(id))",
      ("CREATE TABLE child(a TEXT, FOREIGN KEY(a) REFERENCES \"CF_AGENTS_state\"(id) ON DELETE "
       "CASCADE)"),
      "DROP TABLE cf_agents_state",
      "DROP TABLE IF EXISTS main.[cf_agents_meta]",
      "ALTER TABLE cf_agents_state RENAME TO mine",
      "ALTER TABLE cf_agents_state ADD COLUMN c",
      "ALTER TABLE cf_agents_state RENAME COLUMN state TO s",
      "ALTER TABLE cf_agents_state DROP COLUMN state",
      "ALTER TABLE t RENAME TO cf_agents_x",
      "ALTER TABLE t RENAME TO \"Cf_Agents_x\"",
      "ALTER TABLE t RENAME TO [cf_agents_x]",
      "ALTER TABLE f RENAME TO cf_agents",
      "ALTER TABLE t ADD COLUMN c TEXT REFERENCES cf_agents_state(id)",
      "CREATE VIRTUAL TABLE cf_agents USING fts5(a)",
      "CREATE VIRTUAL TABLE cf_agents_f USING fts5(a)",
      // SQLite's own tables
      "DELETE FROM sqlite_sequence",
      "UPDATE sqlite_sequence SET seq = 100",
      "INSERT INTO sqlite_sequence VALUES('t', 9)",
      "UPDATE sqlite_schema SET sql = ''",
      "DELETE FROM sqlite_master",
      "INSERT INTO sqlite_master VALUES('table', 'x', 'x', 2, 'CREATE TABLE x(a)')",
      "CREATE TABLE sqlite_mine(a)",
      "DROP TABLE sqlite_sequence",
      "DELETE FROM f_data",  // fts5's shadow tables
      "INSERT INTO f_config VALUES('a', 'b')",
      "UPDATE f_content SET c0 = 'x'",
      "DROP TABLE f_idx",
      "DELETE FROM r_node",
      // the host's transaction
      "BEGIN",
      "BEGIN IMMEDIATE",
      "COMMIT",
      "END",
      "ROLLBACK",
      "SAVEPOINT a",
      "RELEASE a",
      "ROLLBACK TO a",
      "/* x */ begin exclusive",
      // other files, code and settings
      "ATTACH 'other.db' AS other",
      "ATTACH ':memory:' AS other",
      "DETACH main",
      "VACUUM",
      "VACUUM main",
      "\xEF\xBB\xBFVACUUM",
      "/* DROP */ VACUUM",
      "-- CREATE\n vacuum",
      "VACUUM INTO '/tmp/hearth-stolen.db'",
      "SELECT load_extension('evil')",
      "SELECT fts3_tokenizer('simple')",
      "PRAGMA writable_schema = ON",
      "PRAGMA main.writable_schema(1)",
      "PRAGMA journal_mode = DELETE",
      "PRAGMA journal_mode",
      "PRAGMA synchronous = OFF",
      "PRAGMA locking_mode = NORMAL",
      "PRAGMA user_version = 5",
      "PRAGMA main.user_version(5)",
      "PRAGMA cache_size = 1000000",
      "PRAGMA foreign_keys = OFF",
      "PRAGMA temp_store_directory = '/'",
      "PRAGMA page_size = 512",
      "PRAGMA wal_checkpoint",
      "PRAGMA integrity_check",
      "PRAGMA defer_foreign_keys = ON",
      "PRAGMA recursive_triggers = ON",
      "PRAGMA max_page_count = 5",
      "PRAGMA optimize",
      "PRAGMA trusted_schema = ON",
      "PRAGMA encoding = 'UTF-16'",
      "PRAGMA no_such_pragma",
      "SELECT * FROM pragma_journal_mode",
      "SELECT * FROM pragma_database_list",
      "SELECT * FROM pragma_integrity_check()",
      "ANALYZE",
      "ANALYZE t",
      "REINDEX",
      "REINDEX t",
      "REINDEX cf_agents_state",
      // what would not last, and modules that do more than search
      "CREATE TEMP TABLE mine(a)",
      "CREATE TABLE temp.mine(a)",
      "CREATE TEMP VIEW mine AS SELECT 1",
      "CREATE TEMP TRIGGER mine AFTER INSERT ON t BEGIN SELECT 1; END",
      "CREATE TEMP TRIGGER mine AFTER UPDATE ON cf_agents_state BEGIN SELECT 1; END",
      "CREATE VIRTUAL TABLE mine USING fts4(a)",
      "CREATE VIRTUAL TABLE mine USING fts3(a)",
      "CREATE VIRTUAL TABLE mine USING dbstat",
      "CREATE VIRTUAL TABLE mine USING geopoly(a)",
  };
  EXPECT_GE(refused.size(), 40U);
  const std::string before = host_tables();
  for (const char* sql : refused) {
    const Result<void> outcome = run(sql);
    ASSERT_FALSE(database_.broken()) << sql;
    EXPECT_FALSE(outcome) << sql;
    if (!outcome) {
      // SQLite itself refuses a few of them, in its own words.
      EXPECT_TRUE(outcome.error().code == Errc::kForbidden ||
                  outcome.error().code == Errc::kInvalidArgument)
          << sql;
      EXPECT_FALSE(outcome.error().message.empty()) << sql;
      EXPECT_EQ(outcome.error().message.find(temp_.path().string()), std::string::npos) << sql;
    }
    ASSERT_EQ(host_tables(), before) << sql;
  }
  database_.commit();
  EXPECT_EQ(database_.load_state(), "\"untouched\"");
  EXPECT_FALSE(std::filesystem::exists("/tmp/hearth-stolen.db"));
}

TEST_F(AuthorizerTest, AllowsWhatAnAgentNeeds) {
  for (const char* sql : {
           "SELECT * FROM cf_agents_state",
           "SELECT * FROM v",
           "SELECT name FROM sqlite_schema",
           "SELECT seq FROM sqlite_sequence",
           "INSERT INTO t(b) SELECT state FROM cf_agents_state",
           "CREATE TABLE copied AS SELECT * FROM cf_agents_meta",
           "INSERT INTO t(b) VALUES('cf_agents_state') ON CONFLICT DO NOTHING",
           "INSERT INTO tv(b) VALUES('through a view')",
           "UPDATE t SET b = 'cf_agents' WHERE id = 1 RETURNING *",
           "DELETE FROM t WHERE id = 99",
           ("WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 5) SELECT * "
            "FROM n"),
           "CREATE TABLE child(a TEXT REFERENCES parent(id) ON DELETE CASCADE, UNIQUE(a))",
           "CREATE UNIQUE INDEX mine ON t(id, b)",
           "CREATE TABLE counted(id INTEGER PRIMARY KEY AUTOINCREMENT, g AS (id * 2) STORED)",
           "CREATE TRIGGER mine AFTER INSERT ON child BEGIN UPDATE t SET b = new.a; END",
           "ALTER TABLE t ADD COLUMN c",
           "ALTER TABLE t RENAME COLUMN c TO d",
           "ALTER TABLE t DROP COLUMN d",
           "ALTER TABLE t RENAME TO t2",
           "ALTER TABLE t2 RENAME TO t",
           "DROP TRIGGER mine",
           "DROP INDEX mine",
           "DROP VIEW v",
           "DROP TABLE counted",
           "INSERT INTO f VALUES('some words')",
           "SELECT * FROM f WHERE f MATCH 'words'",
           "SELECT highlight(f, 0, '<', '>') FROM f('words') ORDER BY rank",
           "INSERT INTO f(f) VALUES('optimize')",
           "INSERT INTO f(f, rank) VALUES('merge', 5)",
           "CREATE VIRTUAL TABLE words USING fts5vocab(f, row)",
           "SELECT * FROM words",
           "ALTER TABLE f RENAME TO g",
           "DROP TABLE words",
           "DROP TABLE g",
           "INSERT INTO r VALUES(1, 0, 5)",
           "SELECT id FROM r WHERE x0 < 3",
           "DROP TABLE r",
           "PRAGMA table_info(t)",
           "PRAGMA table_xinfo('cf_agents_state')",
           "PRAGMA table_list",
           "PRAGMA index_list(t)",
           "PRAGMA index_info(i)",
           "PRAGMA foreign_key_list(child)",
           "PRAGMA foreign_key_check",
           "PRAGMA user_version",
           "PRAGMA page_count",
           "SELECT name FROM pragma_table_info('t')",
           "SELECT * FROM json_each('[1, 2]')",
           "SELECT json_extract('{\"a\":1}', '$.a'), sqrt(2), soundex('x'), unixepoch()",
           "EXPLAIN QUERY PLAN SELECT * FROM t",
           "EXPLAIN INSERT INTO t(b) VALUES('x')",
           "VALUES(1), (2)",
           "CREATE TABLE IF NOT EXISTS t(a)",
       }) {
    const Result<void> outcome = run(sql);
    EXPECT_TRUE(outcome) << sql << ": " << outcome.error().message;
  }
  database_.commit();
  EXPECT_EQ(database_.load_state(), "\"untouched\"");
}

TEST_F(AuthorizerTest, AllowsMakingAndDroppingWhatIsThereOrNot) {
  for (const char* sql :
       {"CREATE TABLE IF NOT EXISTS t(a)", "CREATE INDEX IF NOT EXISTS i ON t(b)",
        "create unique index if not exists main.i ON t(b)",
        "CREATE VIEW IF NOT EXISTS tv AS SELECT 1",
        "CREATE TRIGGER IF NOT EXISTS trapped AFTER INSERT ON trap BEGIN SELECT 1; END",
        "CREATE VIRTUAL TABLE IF NOT EXISTS f USING fts5(body)", "DROP TABLE IF EXISTS absent",
        "drop table if exists main.absent", "-- first\n /* then */ DROP VIEW IF EXISTS absent",
        "DROP INDEX IF EXISTS absent", "DROP TRIGGER IF EXISTS absent"}) {
    const Result<void> outcome = run(sql);
    EXPECT_TRUE(outcome) << sql << ": " << outcome.error().message;
  }
}

TEST_F(AuthorizerTest, ChecksAgainWhenTheSchemaHasChangedUnderAStatement) {
  const auto harmless = sql_.prepare("INSERT INTO t(b) VALUES('x')").value();
  ASSERT_TRUE(sql_.step(harmless));
  // From now on the same text fires a trigger that it was not compiled with.
  ASSERT_TRUE(run("CREATE TRIGGER late AFTER INSERT ON t BEGIN DELETE FROM cf_agents_state; END"));
  const auto outcome = sql_.step(harmless);
  EXPECT_EQ(outcome.error().code, Errc::kForbidden);
  EXPECT_NE(outcome.error().message.find("cf_agents_state"), std::string::npos);
  EXPECT_EQ(database_.load_state(), "\"untouched\"");
}

TEST_F(AuthorizerTest, DoesNotStandInTheHostsWay) {
  database_.store_state("\"host\"");
  Statement(database_.connection(), "CREATE TABLE cf_agents_queue(id)").execute();
  Statement(database_.connection(), "DELETE FROM cf_agents_state").execute();
  database_.commit();
  EXPECT_EQ(database_.load_state(), std::nullopt);
}

TEST_F(AuthorizerTest, SaysWhatToUseInsteadOfATransaction) {
  for (const char* sql : {"BEGIN", "COMMIT", "SAVEPOINT a"}) {
    const auto refused = sql_.prepare(sql);
    EXPECT_EQ(refused.error().code, Errc::kForbidden);
    EXPECT_NE(refused.error().message.find("savepoint calls"), std::string::npos);
  }
}

TEST_F(AuthorizerTest, KnowsReservedNamesInAnyCase) {
  for (const char* name : {"cf_agents_state", "CF_AGENTS_X", "cf_agent_tool_runs", "cf_agents",
                           "sqlite_master", "SQLITE_sequence"})
    EXPECT_TRUE(is_reserved_table(name)) << name;
  for (const char* name : {"agents", "cf_", "my_cf_agents", "sqlite", "notes", ""})
    EXPECT_FALSE(is_reserved_table(name)) << name;
}

}  // namespace
}  // namespace hearth::storage
