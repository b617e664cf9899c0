#include "storage/plugin_sql.hpp"

#include "plugin_sql_fixture.hpp"
#include "storage/agent_schema.hpp"
#include "storage/one_line_sql.hpp"
#include "storage/statement.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace hearth::storage {
namespace {

constexpr StatementHandle kNoHandle{12345};

// ---- statements --------------------------------------------------------------------------------

TEST_F(PluginSqlTest, ReturnsWhatWasBoundInEveryType) {
  const StatementHandle handle = prepare("SELECT ?1 AS i, ?2, ?3, ?4, ?5");
  const std::array<std::byte, 3> blob{std::byte{0}, std::byte{255}, std::byte{7}};
  const std::string text("a\0\xC3\xA4", 4);
  ASSERT_TRUE(sql_->bind_int64(handle, 1, INT64_MIN));
  ASSERT_TRUE(sql_->bind_double(handle, 2, 0.1));
  ASSERT_TRUE(sql_->bind_text(handle, 3, text));
  ASSERT_TRUE(sql_->bind_blob(handle, 4, blob));
  ASSERT_TRUE(sql_->bind_null(handle, 5));
  ASSERT_EQ(*sql_->step(handle), StepOutcome::kRow);
  EXPECT_EQ(*sql_->column_count(handle), 5);
  EXPECT_EQ(*sql_->column_name(handle, 0), "i");
  const std::array types{ColumnType::kInteger, ColumnType::kDouble, ColumnType::kText,
                         ColumnType::kBlob, ColumnType::kNull};
  for (int column = 0; column < 5; ++column)
    EXPECT_EQ(*sql_->column_type(handle, column), types[static_cast<std::size_t>(column)]);
  EXPECT_EQ(*sql_->column_int64(handle, 0), INT64_MIN);
  EXPECT_EQ(*sql_->column_double(handle, 1), 0.1);
  EXPECT_EQ(*sql_->column_text(handle, 2), text);
  const auto bytes = *sql_->column_blob(handle, 3);
  ASSERT_EQ(bytes.size(), blob.size());
  EXPECT_EQ(std::memcmp(bytes.data(), blob.data(), blob.size()), 0);
  EXPECT_TRUE(sql_->column_text(handle, 4)->empty());
  EXPECT_TRUE(sql_->column_blob(handle, 4)->empty());
  EXPECT_EQ(*sql_->step(handle), StepOutcome::kDone);
}

TEST_F(PluginSqlTest, DurableWorkIsReadAsEmptyBeforeThereIsAny) {
  for (const std::string view : {"runs", "fibers", "schedules", "queues"}) {
    EXPECT_EQ(ask("SELECT count(*) FROM cf_agents_" + view), 0) << view;
    EXPECT_EQ(ask("SELECT count(*) FROM main.cf_agents_" + view), 0) << view;
  }
  EXPECT_FALSE(sql_->prepare("SELECT * FROM cf_agents_other"));
}

TEST_F(PluginSqlTest, DurableWorkIsReadAlsoAfterItsTablesWereUndone) {
  const auto savepoint = sql_->begin_savepoint().value();
  for (int time = 0; time < 2; ++time) EXPECT_EQ(ask("SELECT count(*) FROM cf_agents_queues"), 0);
  EXPECT_TRUE(sql_->rollback_to(savepoint));
  EXPECT_EQ(ask("SELECT count(*) FROM cf_agents_queues"), 0);
}

TEST_F(PluginSqlTest, AReaderThatMayCreateNothingSeesDurableWorkWithoutAViewInTheFile) {
  EXPECT_EQ(sql_->prepare("SELECT * FROM cf_agents_fibers", false).error().message,
            "no such table: cf_agents_fibers");
  EXPECT_EQ(ask("SELECT count(*) FROM sqlite_temp_schema"), 0);
  database_.begin_write();
  create_job_tables(database_.connection());
  const auto known = sql_->prepare("SELECT * FROM cf_agents_fibers", false).value();
  EXPECT_EQ(*sql_->step(known), StepOutcome::kDone);
  EXPECT_FALSE(sql_->prepare("SELECT cf_agents_fibers.x FROM cf_agents_runs", false));
  EXPECT_TRUE(sql_->finalize(known));
  EXPECT_FALSE(sql_->prepare("SELECT x FROM cf_agents_fibers", false)) << "no such column";
  for (const char* schema : {"sqlite_schema", "sqlite_temp_schema"})
    EXPECT_EQ(ask("SELECT count(*) FROM " + std::string(schema) + " WHERE type = 'view'"), 0);
  ASSERT_TRUE(run("CREATE TABLE mine(a, b)"));
  EXPECT_TRUE(run("ALTER TABLE mine DROP COLUMN b"));
}

TEST_F(PluginSqlTest, EmptyTextsAndBlobsAreNoNulls) {
  const StatementHandle handle = prepare("SELECT ?, ?");
  ASSERT_TRUE(sql_->bind_text(handle, 1, {}));
  ASSERT_TRUE(sql_->bind_blob(handle, 2, {}));
  ASSERT_EQ(*sql_->step(handle), StepOutcome::kRow);
  EXPECT_EQ(*sql_->column_type(handle, 0), ColumnType::kText);
  EXPECT_EQ(*sql_->column_type(handle, 1), ColumnType::kBlob);
}

TEST_F(PluginSqlTest, P2_BoundsWhatIsBoundToASearch) {
  run_all({"CREATE VIRTUAL TABLE f USING fts5(x)", "INSERT INTO f VALUES('a b c')"});
  const std::string most(kMostSearchBytes, 'a');
  const std::string more = most + "a";
  struct Row {
    const char* sql;
    bool is_search;
  };
  for (const auto& [sql, is_search] :
       {Row{"SELECT x FROM f WHERE f MATCH ?", true},
        Row{"SELECT x FROM f WHERE x MATCH ? || '*'", true},
        Row{"DELETE FROM f WHERE f MATCH ?", true}, Row{"INSERT INTO f VALUES(?)", false}}) {
    for (int from_cache = 0; from_cache < 2; ++from_cache) {
      const StatementHandle handle = prepare(sql);
      EXPECT_TRUE(sql_->bind_text(handle, 1, most)) << sql;
      const Result<void> longer = sql_->bind_text(handle, 1, more);
      ASSERT_EQ(longer.has_error(), is_search) << sql;
      if (is_search) EXPECT_EQ(longer.error().code, Errc::kLimitExceeded) << sql;
      EXPECT_EQ(sql_->bind_blob(handle, 1, std::as_bytes(std::span(more))).has_error(), is_search);
      ASSERT_TRUE(sql_->finalize(handle));
    }
  }
}

TEST_F(PluginSqlTest, BoundTextIsCopied) {
  const StatementHandle handle = prepare("SELECT ?");
  std::string text = "before";
  ASSERT_TRUE(sql_->bind_text(handle, 1, text));
  text = "after!";
  ASSERT_EQ(*sql_->step(handle), StepOutcome::kRow);
  EXPECT_EQ(*sql_->column_text(handle, 0), "before");
}

TEST_F(PluginSqlTest, RunsAgainWithTheSameBindingsAfterTheLastRow) {
  ASSERT_TRUE(run("CREATE TABLE t(a)"));
  const StatementHandle insert = prepare("INSERT INTO t VALUES(?)");
  ASSERT_TRUE(sql_->bind_int64(insert, 1, 3));
  ASSERT_EQ(*sql_->step(insert), StepOutcome::kDone);
  ASSERT_EQ(*sql_->step(insert), StepOutcome::kDone);
  ASSERT_TRUE(sql_->bind_int64(insert, 1, 5));
  ASSERT_EQ(*sql_->step(insert), StepOutcome::kDone);
  EXPECT_EQ(ask("SELECT sum(a) FROM t"), 11);
}

TEST_F(PluginSqlTest, ParametersAreCounted) {
  const StatementHandle handle = prepare("SELECT :a, @b, $c, ?7");
  EXPECT_EQ(*sql_->parameter_count(handle), 7);
}

TEST_F(PluginSqlTest, ToleratesWhatFollowsAStatement) {
  for (const char* text :
       {"SELECT 1;", "SELECT 1 ; ;\n", "SELECT 1 -- done", "SELECT 1; /* a */ -- b\n;",
        " /* first */ SELECT 1", "SELECT 1 /* open"})
    EXPECT_EQ(ask(text), 1) << text;
}

TEST_F(PluginSqlTest, RefusesWhatIsNotExactlyOneStatement) {
  using std::string_literals::operator""s;
  for (const std::string& text :
       {""s, " "s, ";"s, "-- nothing"s, "/* nothing */"s, "SELECT 1; SELECT 2"s, "SELECT 1;/**/x"s,
        "SELECT 1\0"s, "SELECT '\0'"s, "SELECT 1; BEGIN"s}) {
    EXPECT_EQ(sql_->prepare(text).error().code, Errc::kInvalidArgument) << text;
  }
}

TEST_F(PluginSqlTest, PassesOnSqlitesWordsForBadSql) {
  const auto handle = sql_->prepare("SELECT * FROM nowhere");
  EXPECT_EQ(handle.error().code, Errc::kInvalidArgument);
  EXPECT_EQ(handle.error().message, "no such table: nowhere");
}

TEST_F(PluginSqlTest, P4_AStaleHandleIsAnErrorInEveryCall) {
  const StatementHandle stale = prepare("SELECT ?");
  ASSERT_TRUE(sql_->finalize(stale));
  const StatementHandle fresh = prepare("SELECT ?");  // takes the same place
  EXPECT_NE(stale, fresh);
  for (const StatementHandle handle : {stale, kNoHandle, StatementHandle{}}) {
    const auto code = [](const auto& result) { return result.error().code; };
    const Errc errors[] = {code(sql_->bind_null(handle, 1)),
                           code(sql_->bind_int64(handle, 1, 1)),
                           code(sql_->bind_double(handle, 1, 1)),
                           code(sql_->bind_text(handle, 1, "")),
                           code(sql_->bind_blob(handle, 1, {})),
                           code(sql_->parameter_count(handle)),
                           code(sql_->step(handle)),
                           code(sql_->column_count(handle)),
                           code(sql_->column_name(handle, 0)),
                           code(sql_->column_type(handle, 0)),
                           code(sql_->column_int64(handle, 0)),
                           code(sql_->column_text(handle, 0)),
                           code(sql_->column_blob(handle, 0)),
                           code(sql_->reset(handle)),
                           code(sql_->finalize(handle))};
    for (const Errc error : errors) EXPECT_EQ(error, Errc::kInvalidArgument);
  }
}

TEST_F(PluginSqlTest, P4_WrongParametersAndColumnsAreErrors) {
  const StatementHandle handle = prepare("SELECT ?");
  for (const int index : {-1, 0, 2, 1'000'000})
    EXPECT_EQ(sql_->bind_int64(handle, index, 1).error().code, Errc::kInvalidArgument);
  EXPECT_EQ(sql_->column_int64(handle, 0).error().code, Errc::kInvalidArgument);  // not on a row
  ASSERT_EQ(*sql_->step(handle), StepOutcome::kRow);
  for (const int column : {-1, 1, 1'000'000}) {
    EXPECT_EQ(sql_->column_int64(handle, column).error().code, Errc::kInvalidArgument);
    EXPECT_EQ(sql_->column_name(handle, column).error().code, Errc::kInvalidArgument);
  }
  EXPECT_EQ(sql_->bind_int64(handle, 1, 1).error().code, Errc::kInvalidArgument);  // on a row
  ASSERT_EQ(*sql_->step(handle), StepOutcome::kDone);
  EXPECT_EQ(sql_->column_int64(handle, 0).error().code, Errc::kInvalidArgument);
  EXPECT_TRUE(sql_->bind_int64(handle, 1, 1));
}

TEST_F(PluginSqlTest, AConstraintIsAConflictAndTheTurnGoesOn) {
  run_all({"CREATE TABLE t(a UNIQUE NOT NULL)", "INSERT INTO t VALUES(1)"});
  const auto outcome = run("INSERT INTO t VALUES(2), (1)");
  EXPECT_EQ(outcome.error().code, Errc::kConflict);
  EXPECT_EQ(outcome.error().message, "UNIQUE constraint failed: t.a");
  EXPECT_EQ(count(), 1);  // the statement was undone, the transaction was not
  database_.commit();
  EXPECT_EQ(count(), 1);
}

TEST_F(PluginSqlTest, ATableUnderAnOpenCursorCannotBeDropped) {
  run_all({"CREATE TABLE t(a)", "INSERT INTO t VALUES(1), (2)"});
  const StatementHandle cursor = prepare("SELECT a FROM t");
  ASSERT_EQ(*sql_->step(cursor), StepOutcome::kRow);
  EXPECT_EQ(run("DROP TABLE t").error().code, Errc::kConflict);
  ASSERT_TRUE(sql_->reset(cursor));
  EXPECT_TRUE(run("DROP TABLE t"));
}

TEST_F(PluginSqlTest, TellsChangesAndTheLastRowid) {
  EXPECT_EQ(sql_->changes(), 0);
  run_all({"CREATE TABLE t(a INTEGER PRIMARY KEY, b)", "INSERT INTO t(a) VALUES(10), (11)"});
  EXPECT_EQ(sql_->changes(), 2);
  EXPECT_EQ(sql_->last_insert_rowid(), 11);
  ASSERT_TRUE(run("UPDATE t SET b = 1 WHERE a = 10"));
  EXPECT_EQ(sql_->changes(), 1);
  EXPECT_EQ(sql_->last_insert_rowid(), 11);
  ASSERT_TRUE(run("SELECT * FROM t"));
  EXPECT_EQ(sql_->changes(), 1);
  ASSERT_TRUE(run("INSERT INTO t(a) VALUES(20) RETURNING a"));
  EXPECT_EQ(sql_->changes(), 1);
  EXPECT_EQ(sql_->last_insert_rowid(), 20);
}

TEST_F(PluginSqlTest, TheHostsOwnInsertsDoNotShow) {
  run_all({"CREATE TABLE t(a INTEGER PRIMARY KEY)", "INSERT INTO t VALUES(7)"});
  Statement(database_.connection(), "CREATE TABLE cf_agents_log(a INTEGER PRIMARY KEY)").execute();
  Statement(database_.connection(), "INSERT INTO cf_agents_log VALUES(1000), (1001)").execute();
  EXPECT_EQ(sql_->changes(), 1);
  EXPECT_EQ(sql_->last_insert_rowid(), 7);
  EXPECT_EQ(ask("SELECT last_insert_rowid()"), 7);
}

TEST_F(PluginSqlTest, ForeignKeysAreEnforced) {
  run_all({"CREATE TABLE p(a PRIMARY KEY)", "CREATE TABLE t(a REFERENCES p(a))"});
  EXPECT_EQ(run("INSERT INTO t VALUES(1)").error().code, Errc::kConflict);
}

// ---- the cache ---------------------------------------------------------------------------------

TEST_F(PluginSqlTest, P5_TheSameTextIsTakenFromTheCacheWithoutItsBindings) {
  for (const char* text : {"SELECT ?", "SELECT ?;", "SELECT ? -- x"}) {
    const StatementHandle first = prepare(text);
    ASSERT_TRUE(sql_->bind_int64(first, 1, 5));
    ASSERT_EQ(*sql_->step(first), StepOutcome::kRow);
    ASSERT_TRUE(sql_->finalize(first));  // in the middle of its rows
    const StatementHandle second = prepare(text);
    ASSERT_EQ(*sql_->step(second), StepOutcome::kRow);
    EXPECT_EQ(*sql_->column_type(second, 0), ColumnType::kNull) << text;
    ASSERT_TRUE(sql_->finalize(second));
  }
}

TEST_F(PluginSqlTest, P5_ACachedTextIsNotTakenForALongerOne) {
  ASSERT_EQ(ask("SELECT 1"), 1);
  EXPECT_EQ(ask("SELECT 12"), 12);
  EXPECT_EQ(ask("SELECT 1 + 1"), 2);
  EXPECT_EQ(sql_->prepare("SELECT 1; SELECT 2").error().code, Errc::kInvalidArgument);
}

TEST_F(PluginSqlTest, P5_OneTextMayBeOpenTwice) {
  const StatementHandle a = prepare("SELECT ?");
  const StatementHandle b = prepare("SELECT ?");
  ASSERT_TRUE(sql_->bind_int64(a, 1, 1));
  ASSERT_TRUE(sql_->bind_int64(b, 1, 2));
  ASSERT_EQ(*sql_->step(a), StepOutcome::kRow);
  ASSERT_EQ(*sql_->step(b), StepOutcome::kRow);
  EXPECT_EQ(*sql_->column_int64(a, 0), 1);
  EXPECT_EQ(*sql_->column_int64(b, 0), 2);
}

TEST_F(PluginSqlTest, P5_ACachedStatementFollowsTheSchema) {
  run_all({"CREATE TABLE t(a)", "INSERT INTO t VALUES(1)"});
  ASSERT_EQ(count(), 1);
  ASSERT_TRUE(run("DROP TABLE t"));
  const StatementHandle gone = prepare("SELECT count(*) FROM t");  // from the cache
  EXPECT_EQ(sql_->step(gone).error().code, Errc::kInvalidArgument);
  ASSERT_TRUE(run("CREATE TABLE t(a, b)"));
  EXPECT_EQ(count(), 0);
}

TEST_F(PluginSqlTest, P5_TheCacheIsBounded) {
  start({.cached_statements = 2});
  for (int n = 0; n < 10; ++n) EXPECT_EQ(ask("SELECT " + std::to_string(n)), n);
  constexpr std::string_view kKept =
      "SELECT count(*) FROM sqlite_stmt WHERE sql GLOB 'SELECT [0-9]'";
  EXPECT_EQ(ask_integer(database_.connection(), kKept), 2);
  sql_->release_memory();
  EXPECT_EQ(ask_integer(database_.connection(), kKept), 0);
}

TEST_F(PluginSqlTest, P5_WhatWasNotUsedSinceTheLastCallIsGivenBack) {
  const auto kept = [this] {
    return ask_text(database_.connection(),
                    "SELECT group_concat(sql, ' ') FROM sqlite_stmt WHERE sql GLOB 'SELECT [0-9]'");
  };
  EXPECT_EQ(ask("SELECT 1"), 1);
  EXPECT_EQ(ask("SELECT 2"), 2);
  sql_->release_unused();
  EXPECT_NE(kept(), "") << "both were used since the beginning";
  EXPECT_EQ(ask("SELECT 2"), 2);
  sql_->release_unused();
  EXPECT_EQ(kept(), "SELECT 2");
  sql_->release_unused();
  EXPECT_EQ(kept(), "");
}

// ---- limits ------------------------------------------------------------------------------------

TEST_F(PluginSqlTest, P2_BoundsTheLengthOfSql) {
  start({.max_sql_bytes = 100});
  EXPECT_TRUE(run("SELECT 1" + std::string(92, ' ')));
  EXPECT_EQ(run("SELECT 1" + std::string(93, ' ')).error().code, Errc::kLimitExceeded);
}

TEST_F(PluginSqlTest, P2_BoundsTheNumberOfVariablesOfThePluginAlone) {
  start({.max_variables = 3});
  EXPECT_TRUE(run("SELECT ?1, ?2, ?3"));
  EXPECT_FALSE(run("SELECT ?1, ?2, ?3, ?4"));
  EXPECT_FALSE(run("SELECT ?4"));
  const Statement of_the_host(database_.connection(), "SELECT ?1, ?2, ?3, ?4");
}

TEST_F(PluginSqlTest, P2_BoundsValuesThatAreBoundAndThoseThatAreMade) {
  start({.max_value_bytes = 1000});
  const StatementHandle handle = prepare("SELECT ?");
  EXPECT_TRUE(sql_->bind_text(handle, 1, std::string(1000, 'x')));
  EXPECT_EQ(sql_->bind_text(handle, 1, std::string(1001, 'x')).error().code, Errc::kLimitExceeded);
  const std::vector<std::byte> big(1001);
  EXPECT_EQ(sql_->bind_blob(handle, 1, big).error().code, Errc::kLimitExceeded);
  EXPECT_EQ(run("SELECT hex(zeroblob(800))").error().code, Errc::kLimitExceeded);
  EXPECT_EQ(run("SELECT zeroblob(1000000000)").error().code, Errc::kLimitExceeded);
  ASSERT_TRUE(run("CREATE TABLE t(a, b)"));
  EXPECT_EQ(run("INSERT INTO t VALUES(zeroblob(600), randomblob(600))").error().code,
            Errc::kLimitExceeded);
  EXPECT_EQ(count(), 0);
  // The host's own values have other limits.
  commit_state(database_, std::string(5000, 'x'));
  EXPECT_EQ(database_.load_state()->size(), 5000U);
}

TEST_F(PluginSqlTest, P2_BoundsTheDepthOfExpressions) {
  start({.max_expression_depth = 20});
  std::string text = "SELECT 1";
  for (int n = 0; n < 30; ++n) text += "+1";
  EXPECT_EQ(run(text).error().code, Errc::kInvalidArgument);
}

TEST_F(PluginSqlTest, P2_BoundsThePatternsOfLikeAndGlob) {
  for (const char* sql : {"SELECT 'a' LIKE ?", "SELECT 'a' GLOB ?"}) {
    const StatementHandle handle = prepare(sql);
    ASSERT_TRUE(sql_->bind_text(handle, 1, std::string(200, 'a')));
    EXPECT_TRUE(sql_->step(handle)) << sql;
    ASSERT_TRUE(sql_->reset(handle));
    ASSERT_TRUE(sql_->bind_text(handle, 1, std::string(201, 'a')));
    const Result<StepOutcome> refused = sql_->step(handle);
    ASSERT_FALSE(refused) << sql;
    EXPECT_NE(refused.error().message.find("too complex"), std::string::npos);
    ASSERT_TRUE(sql_->finalize(handle));
  }
}

TEST_F(PluginSqlTest, P2_FunctionsRefuseArgumentsThatTakeLong) {
  const auto refused = run("SELECT trim(hex(zeroblob(10000)), hex(zeroblob(10000)))");
  EXPECT_EQ(refused.error().code, Errc::kLimitExceeded);
  EXPECT_EQ(refused.error().message, "trim: the arguments are too large");
  EXPECT_FALSE(database_.broken());
}

TEST_F(PluginSqlTest, P2_BoundsOpenHandles) {
  start({.max_open_handles = 3});
  for (int n = 0; n < 3; ++n) prepare("SELECT 1");
  EXPECT_EQ(sql_->prepare("SELECT 1").error().code, Errc::kLimitExceeded);
}

constexpr char kEndless[] =
    "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT max(i) FROM n";

TEST_F(PluginSqlTest, P2_AReadThatTakesTooLongTimesOutAndTheTurnGoesOn) {
  start({.sql_time = std::chrono::milliseconds(50)});
  ASSERT_TRUE(run("CREATE TABLE t(a)"));
  const auto outcome = run(kEndless);
  EXPECT_EQ(outcome.error().code, Errc::kTimeout);
  EXPECT_NE(outcome.error().message.find("50 ms"), std::string::npos);
  EXPECT_FALSE(database_.broken());
  database_.commit();
  EXPECT_EQ(count(), 0);
}

TEST_F(PluginSqlTest, P2_AWriteThatTakesTooLongTimesOutAndBreaksTheDatabase) {
  start({.sql_time = std::chrono::milliseconds(50)});
  ASSERT_TRUE(run("CREATE TABLE t(a)"));
  commit_state(database_, "1");
  database_.store_state("2");
  EXPECT_EQ(run("INSERT INTO t " + std::string(kEndless)).error().code, Errc::kTimeout);
  EXPECT_TRUE(database_.broken());
  EXPECT_THROW(database_.commit(), StorageError);
  EXPECT_THROW((void)sql_->prepare("SELECT 1"), StorageError);
  sql_.reset();
  database_.close();
  AgentDatabase reopened(path_, {"Counter", "alice"});
  EXPECT_EQ(reopened.load_state(), "1");
}

// With a look every 1,000 instructions a single one would come after 17 s of the worst pattern.
TEST_F(PluginSqlTest, P2_ThereIsALookForEachDozenOfRowsThatLikeReads) {
  ASSERT_TRUE(run("CREATE TABLE t(x)"));
  for (int i = 0; i < 110; ++i) ASSERT_TRUE(run("INSERT INTO t VALUES('a')"));
  start({.sql_time = std::chrono::milliseconds(5)});
  EXPECT_EQ(run("SELECT count(*) FROM t WHERE x LIKE '%b'").error().code, Errc::kTimeout);
}

TEST_F(PluginSqlTest, P2_TheTimeOfAStepDoesNotCountForTheHost) {
  start({.sql_time = std::chrono::milliseconds(5)});
  ASSERT_TRUE(run("SELECT 1"));
  Statement slow(database_.connection(),
                 "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 20000) "
                 "SELECT max(i) FROM n");
  Rows rows = slow.query();
  EXPECT_TRUE(rows.next());
}

TEST_F(PluginSqlTest, P2_BoundsTheSizeOfTheDatabaseButLetsItShrink) {
  start({.max_database_bytes = 64 * 1024});
  ASSERT_TRUE(run("CREATE TABLE t(a)"));
  std::optional<Errc> refused;
  for (int n = 0; n < 100 && !refused; ++n) {
    if (const auto outcome = run("INSERT INTO t VALUES(randomblob(3000))"); !outcome)
      refused = outcome.error().code;
  }
  EXPECT_EQ(refused, Errc::kLimitExceeded);
  EXPECT_FALSE(database_.broken());
  database_.commit();
  EXPECT_FALSE(run("CREATE TABLE more(a)"));
  EXPECT_TRUE(run("DELETE FROM t"));
  EXPECT_TRUE(run("INSERT INTO t VALUES(1)"));
  database_.commit();
}

TEST_F(PluginSqlTest, P2_APathologicalTailIsRefusedAtOnce) {
  // SQLite would compile each of these semicolons as a statement of its own, copying the rest.
  EXPECT_TRUE(run("SELECT 1" + std::string(99'000, ';')));
}

}  // namespace
}  // namespace hearth::storage
