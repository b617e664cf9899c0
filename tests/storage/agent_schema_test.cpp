#include "storage/agent_schema.hpp"

#include "storage/agent_database.hpp"
#include "storage/one_line_sql.hpp"
#include "storage/statement.hpp"
#include "support/temp_directory.hpp"

#include <gtest/gtest.h>

#include <string>

namespace hearth::storage {
namespace {

class AgentSchemaTest : public ::testing::Test {
 protected:
  AgentSchemaTest() {
    database_.begin_write();
    create_job_tables(database_.connection());
    create_job_views(database_.connection(), ViewsIn::kFile);
  }
  std::string text(const std::string& sql) { return ask_text(database_.connection(), sql); }

  hearth::testing::TempDirectory directory_;
  AgentDatabase database_{directory_.path() / "a.db", AgentKey{"Worker", "a"}};
};

TEST_F(AgentSchemaTest, TheViewsHaveTheColumnsThatAuthorsRead) {
  struct View {
    const char* name;
    const char* columns;
  };
  for (const View& view : {
           View{"cf_agents_runs",
                "id name snapshot created_at attempts next_at dead last_error recoveries"},
           View{"cf_agents_fibers",
                "seq fiber_id idempotency_key name status dead created_at started_at completed_at "
                "attempts failures max_retries retry_base retry_cap next_at told tell_at "
                "tell_failures keep input metadata snapshot result error tell_interruptions"},
           View{"cf_agents_schedules",
                "seq id parent callback type time delay_ms interval_ms cron time_zone fixed_rate "
                "likeness retry_max_attempts retry_base_ms retry_max_ms misfire misfire_limit "
                "overlap paused dead missing running scheduled_for owed missed attempts "
                "interruptions begun_at catch_up_until set_at created_at runs failures last_run "
                "last_error payload"},
           View{"cf_agents_queues",
                "seq id callback created_at dead deliveries failures interruptions next_at "
                "max_attempts retry_base retry_cap last_error payload"},
       }) {
    EXPECT_EQ(text("SELECT group_concat(name, ' ') FROM pragma_table_xinfo('" +
                   std::string(view.name) + "')"),
              view.columns);
  }
}

TEST_F(AgentSchemaTest, AJobTakesItsDocumentsAlong) {
  Statement(database_.connection(),
            "INSERT INTO cf_agents_jobs(seq, kind, id, name, created_at) VALUES(1, 2, 'x', 'n', 1)")
      .execute();
  Statement(database_.connection(),
            "INSERT INTO cf_agents_job_documents(job, part, body) VALUES(1, 3, '7')")
      .execute();
  EXPECT_EQ(text("SELECT snapshot FROM cf_agents_runs"), "7");
  Statement(database_.connection(), "DELETE FROM cf_agents_jobs").execute();
  EXPECT_EQ(text("SELECT count(*) FROM cf_agents_job_documents"), "0");
}

TEST_F(AgentSchemaTest, WhatExistsIsLeftAsItIs) {
  create_job_tables(database_.connection());
  create_job_views(database_.connection(), ViewsIn::kFile);
  EXPECT_EQ(text("SELECT count(*) FROM sqlite_schema WHERE type = 'view'"), "4");
}

TEST_F(AgentSchemaTest, ViewsOfAConnectionAreNotInTheFile) {
  Statement(database_.connection(), "DROP VIEW cf_agents_runs").execute();
  create_job_views(database_.connection(), ViewsIn::kConnection);
  EXPECT_EQ(text("SELECT count(*) FROM cf_agents_runs"), "0");
  EXPECT_EQ(text("SELECT count(*) FROM sqlite_schema WHERE type = 'view'"), "3");
}

}  // namespace
}  // namespace hearth::storage
