#include "storage/agent_schema.hpp"

#include "storage/agent_database.hpp"
#include "storage/statement.hpp"
#include "support/stored_work.hpp"
#include "support/temp_directory.hpp"

#include <sqlite3.h>
#include <sys/wait.h>
#include <unistd.h>

#include <gtest/gtest.h>

#include <csignal>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

namespace hearth::storage {
namespace {

using hearth::testing::make_stored_work;

constexpr const char* kViews[] = {"cf_agents_runs", "cf_agents_fibers", "cf_agents_schedules",
                                  "cf_agents_queues"};

// After how many instructions of SQLite this process kills itself; 0: never. The child of a test
// sets it for itself.
int g_kill_after = 0;

int kill_here(void*) {
  ::kill(::getpid(), SIGKILL);
  return 0;
}

int watch_new_connection(sqlite3* connection, char**, const void*) {
  sqlite3_progress_handler(connection, g_kill_after, &kill_here, nullptr);
  return SQLITE_OK;
}

class AgentSchemaTest : public ::testing::Test {
 protected:
  using Lines = std::vector<std::string>;

  [[nodiscard]] std::filesystem::path path() const { return directory_.path() / "a.db"; }
  void open() {
    database_.reset();
    database_ = std::make_unique<AgentDatabase>(path(), AgentKey{"Worker", "a"});
  }
  Lines rows(const std::string& sql, int columns = 1) {
    Lines lines;
    Statement select(database_->connection(), sql);
    for (Rows found = select.query(); found.next();) {
      std::string line;
      for (int column = 0; column < columns; ++column)
        line += (column > 0 ? "|" : "") + std::string(found.text(column));
      lines.push_back(line);
    }
    return lines;
  }
  Lines columns_of(const std::string& table) {
    return rows("SELECT name FROM pragma_table_xinfo('" + table + "')");
  }
  // Every view, as text.
  Lines everything() {
    Lines all;
    for (const char* view : kViews) {
      const auto columns = static_cast<int>(columns_of(view).size());
      for (std::string& line : rows("SELECT * FROM " + std::string(view) + " ORDER BY 1", columns))
        all.push_back(std::move(line));
    }
    return all;
  }

  hearth::testing::TempDirectory directory_;
  std::unique_ptr<AgentDatabase> database_;
};

TEST_F(AgentSchemaTest, TheViewsHaveTheColumnsOfTheTablesOfVersion1) {
  make_stored_work(path());
  std::vector<Lines> before;
  {
    const Connection connection(path(), {});
    for (const char* table : kViews) {
      Statement select(connection.handle(),
                       "SELECT name FROM pragma_table_xinfo('" + std::string(table) + "')");
      Lines& columns = before.emplace_back();
      for (Rows found = select.query(); found.next();) columns.emplace_back(found.text(0));
      EXPECT_GT(columns.size(), 8U);
    }
  }
  open();
  for (std::size_t i = 0; i < before.size(); ++i) EXPECT_EQ(columns_of(kViews[i]), before[i]);
  EXPECT_EQ(
      rows("SELECT name FROM sqlite_schema WHERE type = 'table' AND name LIKE 'cf_agent%' "
           "ORDER BY name"),
      (Lines{"cf_agents_job_documents", "cf_agents_jobs", "cf_agents_meta", "cf_agents_state"}));
  EXPECT_EQ(rows("SELECT value FROM cf_agents_meta WHERE key = 'schema'"), Lines{"2"})
      << "an older server refuses it";
}

TEST_F(AgentSchemaTest, WhatWasStoredReadsAsBefore) {
  make_stored_work(path());
  open();
  EXPECT_EQ(database_->load_state(), R"({"kept":true})");
  EXPECT_EQ(rows("SELECT name, snapshot, attempts, dead, last_error, recoveries "
                 "FROM cf_agents_runs WHERE id NOT LIKE 'm-%' ORDER BY created_at",
                 6),
            (Lines{R"(dead|{"a":1}|3|1|the hook failed|3)", "failed||1|0|not yet|1",
                   "running|[1,2]|0|0||0", "unstashed||0|0||0"}));
  EXPECT_EQ(rows("SELECT id, snapshot FROM cf_agents_runs WHERE id LIKE 'm-%' ORDER BY id", 2),
            (Lines{"m-plain|", "m-retry|7", R"(m-running|"half")"}));
  EXPECT_EQ(rows("SELECT fiber_id, idempotency_key, status, dead, told, keep, result, error "
                 "FROM cf_agents_fibers ORDER BY seq",
                 8),
            (Lines{"m-dead||error|1|1|||the hook failed", "m-interrupted||interrupted|0|1|||",
                   "m-running|key-m-running|running|0|1|||",
                   "m-retry|key-m-retry|pending|0|1|||try later",
                   R"(m-told|key-m-told|completed|0|1|completed|{"r":1}|)",
                   "m-not-heard|key-m-not-heard|aborted|0|0|||stopped",
                   "m-telling|key-m-telling|error|0|0|||no",
                   "m-untold|key-m-untold|completed|0|0||3|", "m-plain||running|0|1|||"}));
  EXPECT_EQ(rows("SELECT callback, type, running, paused, missing, attempts, last_error, payload "
                 "FROM cf_agents_schedules ORDER BY seq",
                 8),
            (Lines{R"(later|delay|0|0|0|0||{"p":1})", R"(claimed|delay|1|0|0|0||{"p":1})",
                   "at|at|0|0|0|0||null", "nightly|cron|0|0|0|0||null",
                   "every|interval|0|0|0|0||null", "paused|interval|0|1|0|0||null",
                   R"(missing|delay|0|0|1|0|the class has no such callback|{"p":1})",
                   R"(retrying|delay|0|0|0|1|once|{"p":1})", "beside|interval|1|0|0|0||null",
                   "beside|interval|1|0|0|0||null"}));
  EXPECT_EQ(rows("SELECT callback, dead, deliveries, failures, last_error, payload "
                 "FROM cf_agents_queues ORDER BY seq",
                 6),
            (Lines{"buried|1|1|1|it broke|[9]", "head|0|1|1|once more|[9]", "behind|0|0|0||[9]",
                   "last|0|0|0||"}));
}

TEST_F(AgentSchemaTest, OnlyWhatAloneIsAReasonToWakeIsDue) {
  make_stored_work(path());
  open();
  EXPECT_EQ(rows("SELECT name FROM cf_agents_jobs WHERE kind = 4 AND due_at IS NOT NULL"),
            Lines{"head"});
  EXPECT_EQ(rows("SELECT name FROM cf_agents_jobs WHERE kind = 3 AND due_at IS NULL"),
            Lines{"paused"});
  EXPECT_EQ(rows("SELECT id FROM cf_agents_jobs WHERE kind = 2 AND due_at IS NOT NULL ORDER BY id"),
            (Lines{"m-not-heard", "m-plain", "m-retry", "m-running", "m-telling", "m-untold"}));
  EXPECT_EQ(rows("SELECT name FROM cf_agents_jobs WHERE kind = 1 AND due_at IS NULL"),
            Lines{"dead"});
}

TEST_F(AgentSchemaTest, AFileThatWasOpenedOnceIsLeftAlone) {
  make_stored_work(path());
  open();
  const Lines first = everything();
  open();
  EXPECT_EQ(everything(), first);
  EXPECT_EQ(database_->transactions(), 0U);
}

TEST_F(AgentSchemaTest, AnAgentWithoutWorkGetsNoTables) {
  make_stored_work(path(),
                   "DROP TABLE cf_agents_runs; DROP TABLE cf_agents_fibers;"
                   "DROP TABLE cf_agents_schedules; DROP TABLE cf_agents_queues;");
  open();
  EXPECT_EQ(rows("SELECT count(*) FROM sqlite_schema WHERE name LIKE 'cf_agents_job%'"),
            Lines{"0"});
  EXPECT_EQ(rows("SELECT value FROM cf_agents_meta WHERE key = 'schema'"), Lines{"2"});
}

TEST_F(AgentSchemaTest, TablesWithoutTheColumnsThatCameLaterAreTakenOverToo) {
  make_stored_work(path(),
                   "DROP INDEX cf_agents_runs_dead;"
                   "ALTER TABLE cf_agents_runs DROP COLUMN recoveries;"
                   "ALTER TABLE cf_agents_fibers DROP COLUMN tell_interruptions;");
  open();
  EXPECT_EQ(rows("SELECT name, next_at FROM cf_agents_runs WHERE dead = 1", 2), Lines{"dead|-1"})
      << "it does not say when it died";
  EXPECT_EQ(rows("SELECT count(*) FROM cf_agents_runs WHERE recoveries <> 0"), Lines{"0"});
  EXPECT_EQ(rows("SELECT count(*) FROM cf_agents_fibers WHERE tell_interruptions <> 0"),
            Lines{"0"});
}

// What a foreign hand left: a managed fiber was two rows.
TEST_F(AgentSchemaTest, AnOpenRecordWithoutARowIsOneThatWaits) {
  make_stored_work(path(),
                   "DELETE FROM cf_agents_runs WHERE id IN ('m-plain', 'm-retry');"
                   "UPDATE cf_agents_fibers SET failures = 0 WHERE fiber_id = 'm-retry';");
  open();
  EXPECT_EQ(rows("SELECT id, state, next_at FROM cf_agents_jobs "
                 "WHERE id IN ('m-plain', 'm-retry') AND due_at IS NOT NULL ORDER BY id",
                 3),
            (Lines{"m-plain|0|0", "m-retry|0|0"}));
}

TEST_F(AgentSchemaTest, ARowOfASettledRecordGoes) {
  make_stored_work(path(),
                   "INSERT INTO cf_agents_runs(id, name, created_at, snapshot) "
                   "VALUES('m-told', 'report', 1, '\"stale\"');");
  open();
  EXPECT_EQ(rows("SELECT count(*) FROM cf_agents_runs WHERE id = 'm-told'"), Lines{"0"});
  EXPECT_EQ(rows("SELECT status, snapshot FROM cf_agents_fibers WHERE fiber_id = 'm-told'", 2),
            Lines{"completed|"});
}

TEST_F(AgentSchemaTest, AJobTakesItsDocumentsAlong) {
  make_stored_work(path());
  open();
  database_->begin_write();
  Statement(database_->connection(), "DELETE FROM cf_agents_jobs").execute();
  EXPECT_EQ(rows("SELECT count(*) FROM cf_agents_job_documents"), Lines{"0"});
}

// kill -9 in the middle, at one place after the other: the file has the old tables or the new ones.
TEST_F(AgentSchemaTest, AKillInTheMiddleLosesNothing) {
  make_stored_work(path());
  const std::filesystem::path stored = directory_.path() / "stored.db";
  std::filesystem::copy_file(path(), stored);
  open();
  const Lines expected = everything();
  database_.reset();

  int killed = 0;
  bool lived = false;
  for (int instructions = 40; !lived; instructions += 97) {
    std::filesystem::copy_file(stored, path(), std::filesystem::copy_options::overwrite_existing);
    const pid_t child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      g_kill_after = instructions;
      sqlite3_auto_extension(reinterpret_cast<void (*)()>(&watch_new_connection));  // NOLINT
      const AgentDatabase database(path(), AgentKey{"Worker", "a"});
      ::_exit(0);
    }
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    lived = WIFEXITED(status);
    killed += lived ? 0 : 1;
    open();
    ASSERT_EQ(everything(), expected) << "killed after " << instructions << " instructions";
    database_.reset();
  }
  EXPECT_GT(killed, 10);
}

}  // namespace
}  // namespace hearth::storage
