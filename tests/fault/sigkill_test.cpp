// A server is killed while its agents work, and restarted on the same disk. No client asks for an
// agent, and each piece of work ends as it should. tests/process/fiber_kill_test.cpp does the same
// to an agent in plain C.

#include "fault/fault_fixture.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <memory>
#include <string>
#include <thread>
#include <vector>

namespace hearth::testing {
namespace {

using Lines = std::vector<std::string>;
using std::chrono::milliseconds;

class SigkillTest : public FaultTest {
 protected:
  // Reads the file of a running server again and again. A copy that was made in the middle of a
  // write may be unreadable.
  void wait_for_row(const std::string& agent, const std::string& query) const {
    const auto deadline = std::chrono::steady_clock::now() + ServerProcess::kPatience;
    const auto is_there = [&] {
      try {
        return !rows(agent, query).empty();
      } catch (const std::runtime_error&) {
        return false;
      }
    };
    while (!is_there()) {
      if (std::chrono::steady_clock::now() > deadline)
        throw std::runtime_error("waited in vain for " + query);
      std::this_thread::sleep_for(milliseconds(5));
    }
  }
  // Walks of eight steps of 100 ms, killed in the middle.
  void kill_in_the_middle(const Lines& walks) const {
    const auto server = serve_ledgers();
    for (const std::string& walk : walks) ask(*server, "a", walk + "&steps=8&ms=100");
    wait_for_row("a", "SELECT 1 FROM ledger WHERE step = 2");
    EXPECT_EQ(server->kill(), kKilled);
    EXPECT_EQ(rows("a", "SELECT 1 FROM finished"), Lines{});
  }
  void expect_all_eight_steps(const std::string& run) const {
    EXPECT_EQ(rows("a", "SELECT step FROM ledger WHERE run = '" + run + "' ORDER BY rowid"),
              (Lines{"1", "2", "3", "4", "5", "6", "7", "8"}))
        << run;
  }
  [[nodiscard]] Lines records() const {
    return rows("a", "SELECT idempotency_key, status, result FROM cf_agents_fibers ORDER BY seq");
  }
};

TEST_F(SigkillTest, R1_AFiberGoesOnFromItsCheckpointByThePersistedWake) {
  kill_in_the_middle({"?walk=r1"});
  EXPECT_EQ(wakes(), Lines{"a"});
  const auto server = serve_ledgers();
  server->wait_for_log("r1 is finished");
  EXPECT_EQ(server->stop(), kClean);
  const Lines hooks =
      rows("a", "SELECT attempt, json_extract(snapshot, '$.done') BETWEEN 1 AND 7 FROM hooks");
  EXPECT_EQ(hooks, Lines{"1|1"}) << "one hook, with a checkpoint in the middle";
  expect_all_eight_steps("r1");
  EXPECT_EQ(rows("a", "SELECT 1 FROM cf_agents_runs"), Lines{});
  EXPECT_EQ(wakes(), Lines{});
}

TEST_F(SigkillTest, AManagedFiberThatNobodyGoesOnWithIsInterruptedWithItsCheckpointAndKey) {
  kill_in_the_middle({"?managed=r1&hook=drop"});
  const auto server = serve_ledgers();
  server->wait_for_log("agent.evicted class=LedgerAgent agent=a ");
  EXPECT_EQ(server->stop(), kClean);
  EXPECT_EQ(records(), Lines{"r1|interrupted|NULL"});
  EXPECT_EQ(rows("a", "SELECT json_extract(snapshot, '$.done') >= 1 FROM cf_agents_fibers"),
            Lines{"1"});
  EXPECT_EQ(rows("a", "SELECT status FROM told"), Lines{"interrupted"});
  EXPECT_EQ(rows("a", "SELECT 1 FROM cf_agents_runs"), Lines{});
}

TEST_F(SigkillTest, WhatAHookSaysOfAManagedFiberIsItsOutcome) {
  kill_in_the_middle({"?managed=r1&hook=settle"});
  const auto server = serve_ledgers();
  server->wait_for_log("agent.evicted class=LedgerAgent agent=a ");
  EXPECT_EQ(server->stop(), kClean);
  EXPECT_EQ(records(), Lines{R"(r1|completed|"by the hook")"});
  EXPECT_EQ(rows("a", "SELECT status FROM told"), Lines{"completed"});
}

TEST_F(SigkillTest, WhoAsksForTheSameKeyRightAfterTheRestartWaitsForTheOneThereIs) {
  kill_in_the_middle({"?managed=r1"});
  const auto server = serve_ledgers();
  EXPECT_EQ(ask(*server, "a", "?managed=r1&steps=8&ms=100&wait=1"), "known completed 8");
  EXPECT_EQ(server->stop(), kClean);
  EXPECT_EQ(records(), Lines{"r1|completed|8"});
  EXPECT_EQ(rows("a", "SELECT count(*) FROM hooks"), Lines{"1"});
  expect_all_eight_steps("r1");
}

TEST_F(SigkillTest, ThreeFibersAndTwoManagedOnesAreEachRecoveredOnce) {
  kill_in_the_middle({"?walk=r1", "?walk=r2", "?walk=r3", "?managed=r4", "?managed=r5"});
  const auto server = serve_ledgers();
  for (const std::string run : {"r1", "r2", "r3", "r4", "r5"})
    server->wait_for_log(run + " is finished");
  EXPECT_EQ(server->stop(), kClean);
  EXPECT_EQ(rows("a", "SELECT run, count(*) FROM hooks GROUP BY run ORDER BY run"),
            (Lines{"r1|1", "r2|1", "r3|1", "r4|1", "r5|1"}));
  for (const std::string run : {"r1", "r2", "r3", "r4", "r5"}) expect_all_eight_steps(run);
  EXPECT_EQ(rows("a", "SELECT 1 FROM cf_agents_runs"), Lines{});
  EXPECT_EQ(records(), (Lines{"r4|completed|8", "r5|completed|8"}));
}

TEST_F(SigkillTest, AHookThatAlwaysFailsIsTriedAgainAndThenGivenUpAndNeverCalledAgain) {
  configure("  max_attempts: 3\n");
  kill_in_the_middle({"?walk=r1&hook=throw"});
  auto server = serve_ledgers();
  wait_for_row("a", "SELECT 1 FROM cf_agents_runs WHERE dead = 1");
  server->wait_for_log("agent.evicted class=LedgerAgent agent=a ");
  EXPECT_EQ(server->kill(), kKilled);
  const Lines attempts = {"1", "2", "3"};
  EXPECT_EQ(rows("a", "SELECT attempt FROM hooks ORDER BY rowid"), attempts);
  EXPECT_EQ(rows("a", "SELECT last_error FROM cf_agents_runs"), Lines{"the hook failed as asked"});
  EXPECT_EQ(wakes(), Lines{}) << "nothing that is given up wakes its agent";
  server = serve_ledgers();
  let_one_come_and_go(*server);
  EXPECT_EQ(server->stop(), kClean);
  EXPECT_EQ(count(server->log(), "agent=a "), 0U) << server->log();
  EXPECT_EQ(rows("a", "SELECT attempt FROM hooks ORDER BY rowid"), attempts);
}

TEST_F(SigkillTest, TheWaitsBetweenFailedHooksGrowAndSurviveAKill) {
  configure("  max_attempts: 100\n");
  kill_in_the_middle({"?walk=r1&hook=throw"});
  // The wait after attempt n is at least 10 ms * 2^(n-1), also across kills.
  for (const int attempt : {3, 5, 6}) {
    const auto server = serve_ledgers();
    wait_for_row("a", "SELECT 1 FROM hooks WHERE attempt >= " + std::to_string(attempt));
    EXPECT_EQ(server->kill(), kKilled);
  }
  EXPECT_EQ(
      rows("a",
           "SELECT 1 FROM hooks AS earlier JOIN hooks AS later ON later.rowid > earlier.rowid "
           "WHERE later.attempt < earlier.attempt"),
      Lines{})
      << "none was counted anew";
  const Lines attempts = rows("a", "SELECT DISTINCT attempt FROM hooks ORDER BY attempt");
  // A kill that comes between the claim of an attempt and its row leaves no row.
  EXPECT_GE(attempts.size() + 3, static_cast<std::size_t>(std::stoi(attempts.back())))
      << "no attempt was forgotten";
  EXPECT_GE(std::stoi(attempts.back()), 6);
  // Half of it: the wait begins when the attempt is claimed, some time before its row.
  EXPECT_EQ(rows("a",
                 "SELECT earlier.attempt, later.at - earlier.at FROM hooks AS earlier "
                 "JOIN hooks AS later ON later.attempt = earlier.attempt + 1 "
                 "WHERE later.at - earlier.at < (10 << (earlier.attempt - 1)) / 2"),
            Lines{});
  const Lines left = rows("a", "SELECT attempts, dead FROM cf_agents_runs");
  ASSERT_EQ(left.size(), 1U);
  EXPECT_GE(std::stoi(left[0]), 6);
  EXPECT_TRUE(left[0].ends_with("|0")) << left[0];
}

TEST_F(SigkillTest, TwentyFibersOfOneAgentAreAllRecoveredOnce) {
  Lines walks;
  for (int walk = 1; walk <= 20; ++walk) walks.push_back("?walk=r" + std::to_string(walk));
  kill_in_the_middle(walks);
  const auto server = serve_ledgers();
  for (int walk = 1; walk <= 20; ++walk)
    server->wait_for_log(" text=\"r" + std::to_string(walk) + " is finished\"");
  EXPECT_EQ(server->stop(), kClean);
  EXPECT_EQ(rows("a", "SELECT count(*), count(DISTINCT run), max(attempt) FROM hooks"),
            Lines{"20|20|1"});
  EXPECT_EQ(rows("a", "SELECT 1 FROM cf_agents_runs"), Lines{});
}

TEST_F(SigkillTest, RepeatedKillsRepeatOneStepAKillAtMost) {
  constexpr int kKills = 6;
  auto server = serve_ledgers();
  ask(*server, "a", "?walk=r1&steps=30&ms=60");
  for (int kill = 0; kill < kKills; ++kill) {
    wait_for_row("a", "SELECT 1 FROM ledger WHERE step = " + std::to_string(3 * kill + 2));
    EXPECT_EQ(server->kill(), kKilled);
    server = serve_ledgers();
  }
  server->wait_for_log("r1 is finished");
  EXPECT_EQ(server->stop(), kClean);
  EXPECT_EQ(rows("a", "SELECT count(*), count(DISTINCT step) FROM ledger"), Lines{"30|30"});
  EXPECT_LE(effects("a").size(), std::size_t{30 + kKills});
}

TEST_F(SigkillTest, ASchedulePastItsTimeRunsThoughNobodyAsksAndTheOthersWait) {
  {
    const auto server = serve_ledgers();
    ask(*server, "a", "?schedule=later&ms=300");
    ask(*server, "b", "?schedule=much-later&ms=3600000");
    EXPECT_EQ(server->kill(), kKilled);
  }
  EXPECT_EQ(wakes(), (Lines{"a", "b"}));
  const auto server = serve_ledgers();
  server->wait_for_log("later is finished");
  EXPECT_EQ(server->stop(), kClean);
  EXPECT_EQ(rows("a", "SELECT run FROM ledger"), Lines{"later"});
  EXPECT_EQ(rows("a", "SELECT 1 FROM cf_agents_schedules"), Lines{});
  EXPECT_EQ(rows("b", "SELECT count(*) FROM cf_agents_schedules"), Lines{"1"});
  EXPECT_EQ(wakes(), Lines{"b"});
}

// On the disk of a server that is gone.
void spoil(const std::filesystem::path& file, const char* statement) {
  sqlite3* database = nullptr;
  sqlite3_open(file.c_str(), &database);
  const int outcome = sqlite3_exec(database, statement, nullptr, nullptr, nullptr);
  EXPECT_EQ(outcome, SQLITE_OK) << sqlite3_errmsg(database);
  EXPECT_EQ(sqlite3_changes(database), 1);
  sqlite3_close(database);
}

TEST_F(SigkillTest, R12_AScheduleWhosePayloadCannotBeReadFailsAndSaysSoAndTheOthersRun) {
  {
    const auto server = serve_ledgers();
    ask(*server, "a", "?schedule=spoilt&ms=3600000");
    ask(*server, "a", "?schedule=whole&ms=300");
    EXPECT_EQ(server->kill(), kKilled);
  }
  spoil(database_of("a"),
        "UPDATE cf_agents_job_documents SET body = '{' WHERE body = '\"spoilt\"'");
  spoil(database_of("a"),
        "UPDATE cf_agents_jobs SET due_at = 1 WHERE seq = (SELECT job FROM "
        "cf_agents_job_documents WHERE body = '{')");
  const auto server = serve_ledgers();
  server->wait_for_log("whole is finished");
  server->wait_for_log("schedule:error class=LedgerAgent agent=a");
  EXPECT_EQ(server->stop(), kClean);
  EXPECT_EQ(rows("a", "SELECT run FROM ledger"), Lines{"whole"});
}

}  // namespace
}  // namespace hearth::testing
