// AgentDatabase with a sync service: what is synced when, and the behaviour after a failed sync.
#include "storage/agent_database.hpp"
#include "storage/one_line_sql.hpp"
#include "storage/statement.hpp"
#include "storage/sync_service.hpp"
#include "support/fake_sync_calls.hpp"
#include "support/temp_directory.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

namespace hearth::storage {
namespace {

namespace fs = std::filesystem;

class AgentDatabasePowerTest : public ::testing::Test {
 protected:
  std::unique_ptr<AgentDatabase> open(int checkpoint_pages = 1000) {
    return std::make_unique<AgentDatabase>(
        path_, AgentKey{"Counter", "alice"},
        AgentDatabaseOptions{
            .checkpoint_pages = checkpoint_pages, .sync = &sync_, .must_exist = must_exist_});
  }
  // With this state committed.
  std::unique_ptr<AgentDatabase> open_with(const std::string& state) {
    auto database = open();
    commit_state(*database, state);
    return database;
  }
  // Ends a life as a crash does.
  void crash(std::unique_ptr<AgentDatabase> database) {
    database->sync_target()->fail();
    database.reset();
    ASSERT_GT(fs::file_size(wal_), 0U) << "there is nothing to take up";
  }
  void fail_all(bool failing) {
    calls_.answer_with([failing](const std::string&) { return failing ? EIO : 0; });
  }

  using Calls = std::vector<std::string>;
  const testing::TempDirectory temp_;
  const fs::path path_ = temp_.path() / "agents/Counter/00/a.db";
  const fs::path wal_ = path_.native() + "-wal";
  hearth::testing::FakeSyncCalls calls_;
  SyncService sync_{calls_, temp_.path(), SyncService::Thread::kCallers};
  bool must_exist_ = false;
};

TEST_F(AgentDatabasePowerTest, P7_CommittingDoesNotWaitForTheDevice) {
  const auto database = open();
  EXPECT_EQ(database->sync_target(), nullptr);
  for (int i = 0; i < 10; ++i) commit_state(*database, std::to_string(i));
  EXPECT_TRUE(calls_.take_calls().empty());
  EXPECT_TRUE(sync_.wait({database->sync_target()}));
  EXPECT_EQ(calls_.take_calls().front(), "data " + wal_.native());
  database->close();
  EXPECT_FALSE(fs::exists(wal_)) << "P6";
}

TEST_F(AgentDatabasePowerTest, P7_NoCheckpointIsMadeBeforeTheNamesAreOnTheDevice) {
  const auto database = open(4);
  for (int i = 0; i < 3; ++i) commit_state(*database, std::to_string(i));
  EXPECT_TRUE(calls_.take_calls().empty()) << "P8";
  ASSERT_TRUE(database->checkpoint_due());
  EXPECT_EQ(database->checkpoint(), "");
  EXPECT_EQ(calls_.take_calls().size(), 6U) << "the WAL, the file, and four directories";
  for (int i = 0; !database->checkpoint_due(); ++i) commit_state(*database, std::to_string(i));
  EXPECT_EQ(database->checkpoint(), "");
  EXPECT_TRUE(calls_.take_calls().empty()) << "they are there now";
}

TEST_F(AgentDatabasePowerTest, P7_ClosingBringsTheNamesToTheDeviceFirst) {
  const auto database = open_with("1");
  database->close();
  EXPECT_EQ(calls_.take_calls().size(), 6U);
}

TEST_F(AgentDatabasePowerTest, P7_AfterAFailedSyncTheDatabaseIsBrokenAndItsWalStays) {
  auto database = open_with("1");
  fail_all(true);
  EXPECT_FALSE(sync_.wait({database->sync_target()}));
  EXPECT_THROW(database->store_state("2"), StorageError);
  EXPECT_TRUE(database->broken());
  const auto size = fs::file_size(wal_);
  database->close();
  EXPECT_EQ(fs::file_size(wal_), size);
  fail_all(false);
  database = open();
  EXPECT_EQ(database->load_state(), "1");
  commit_state(*database, "2");
  EXPECT_TRUE(sync_.wait({database->sync_target()}));
  database->close();
}

TEST_F(AgentDatabasePowerTest, P7_WhatIsWrittenWhileASyncFailsIsNotCommitted) {
  const auto database = open_with("1");
  database->store_state("2");
  fail_all(true);
  EXPECT_FALSE(sync_.wait({database->sync_target()}));
  EXPECT_THROW(database->commit(), StorageError);
  database->close();
  fail_all(false);
  EXPECT_EQ(open()->load_state(), "1");
}

TEST_F(AgentDatabasePowerTest, P7_ACheckpointThatMayNotBeMadeBreaksTheDatabase) {
  const auto database = open(4);
  commit_state(*database, "1");
  fail_all(true);
  for (int i = 0; !database->checkpoint_due(); ++i) commit_state(*database, std::to_string(i));
  EXPECT_NE(database->checkpoint(), "");
  EXPECT_TRUE(database->broken());
  database->close();
}

TEST_F(AgentDatabasePowerTest, P7_ANewFileIsSyncedWithItsFirstCommitAndNotAgain) {
  const auto database = open_with("1");
  EXPECT_TRUE(calls_.take_calls().empty()) << "P8";
  EXPECT_TRUE(sync_.wait({database->sync_target()}));
  const auto first = calls_.take_calls();
  EXPECT_EQ(std::ranges::count(first, "data " + path_.native()), 1);
  EXPECT_EQ(std::ranges::count(first, "names " + path_.parent_path().native()), 1);
  commit_state(*database, "2");
  EXPECT_TRUE(sync_.wait({database->sync_target()}));
  EXPECT_EQ(calls_.take_calls(), Calls{"data " + wal_.native()});
}

TEST_F(AgentDatabasePowerTest, P7_ANewFileWhoseFirstPageCannotBeSyncedFailsItsFirstCommit) {
  const auto database = open_with("1");
  calls_.answer_with(
      [this](const std::string& call) { return call == "data " + path_.native() ? EIO : 0; });
  EXPECT_FALSE(sync_.wait({database->sync_target()}));
}

TEST_F(AgentDatabasePowerTest, P7_ALeftWalIsToBeSyncedFromTheBeginning) {
  crash(open_with("1"));
  (void)calls_.take_calls();
  const auto database = open();
  EXPECT_TRUE(calls_.take_calls().empty()) << "P8";
  EXPECT_EQ(database->load_state(), "1");
  ASSERT_NE(database->sync_target(), nullptr);
  EXPECT_TRUE(sync_.wait({database->sync_target()}));
  const auto calls = calls_.take_calls();
  for (const std::string& call :
       {"data " + wal_.native(), "data " + path_.native(), "names " + path_.parent_path().native()})
    EXPECT_EQ(std::ranges::count(calls, call), 1) << call;
  commit_state(*database, "2");
  database->close();
  EXPECT_FALSE(fs::exists(wal_)) << "P6";
  EXPECT_EQ(open()->load_state(), "2");
}

TEST_F(AgentDatabasePowerTest, P7_ALeftWalThatCannotBeSyncedStaysAndNothingIsCommittedBehindIt) {
  crash(open_with("1"));
  const auto size = fs::file_size(wal_);
  fail_all(true);
  const auto database = open();
  EXPECT_FALSE(sync_.wait({database->sync_target()}));
  EXPECT_THROW(database->store_state("2"), StorageError);
  database->close();
  EXPECT_EQ(fs::file_size(wal_), size);
  fail_all(false);
  EXPECT_EQ(open()->load_state(), "1");
}

// A file after a loss of power: its first page is not on the device, though a part of its WAL is.
// Each row is one form of such a file, and what becomes of the agent.
struct WithoutAFirstPage {
  std::string name;
  bool is_listed = false;              // the system knows that something was on the device
  bool wal_is_whole = false;           // else it holds no commit
  std::optional<std::string> state{};  // what is found
  bool is_refused = false;
};

class WithoutAFirstPageTest : public AgentDatabasePowerTest,
                              public ::testing::WithParamInterface<WithoutAFirstPage> {};

TEST_P(WithoutAFirstPageTest, P7_WhatTheWalHasIsKept) {
  crash(open_with("1"));
  std::ofstream(path_, std::ios::binary) << std::string(4096, '\0');
  if (!GetParam().wal_is_whole) fs::resize_file(wal_, 100);
  must_exist_ = GetParam().is_listed;
  if (GetParam().is_refused) {
    EXPECT_THROW((void)open(), StorageError);
    EXPECT_TRUE(fs::exists(path_)) << "the operator may still know a way";
    return;
  }
  const auto database = open();
  EXPECT_EQ(database->load_state(), GetParam().state);
  EXPECT_EQ(fs::exists(path_), GetParam().state.has_value());
  commit_state(*database, "2");
  database->close();
  EXPECT_EQ(open()->load_state(), "2");
}

INSTANTIATE_TEST_SUITE_P(
    Files, WithoutAFirstPageTest,
    ::testing::Values(
        WithoutAFirstPage{.name = "ACommit", .wal_is_whole = true, .state = "1"},
        WithoutAFirstPage{.name = "NoCommit"},
        WithoutAFirstPage{
            .name = "ListedACommit", .is_listed = true, .wal_is_whole = true, .state = "1"},
        WithoutAFirstPage{.name = "ListedNoCommit", .is_listed = true, .is_refused = true}),
    [](const auto& param) { return param.param.name; });

TEST_F(AgentDatabasePowerTest, P7_AFileThatNobodyHasCommittedToIsMadeAnew) {
  fs::create_directories(path_.parent_path());
  {
    AgentDatabase other(path_, {"Counter", "alice"});  // of a server without this durability
    (void)other.connection();
    fs::copy_file(path_, temp_.path() / "copy");
  }
  fs::copy_file(temp_.path() / "copy", path_, fs::copy_options::overwrite_existing);
  const auto database = open();
  EXPECT_FALSE(fs::exists(path_));
  commit_state(*database, "1");
  database->close();
  EXPECT_EQ(open()->load_state(), "1");
}

TEST_F(AgentDatabasePowerTest, P1_AnAgentThatIsOnlyLookedAtLeavesNothing) {
  {
    const auto database = open();
    (void)database->connection();
    database->close();
  }
  EXPECT_TRUE(fs::is_empty(path_.parent_path()));
}

}  // namespace
}  // namespace hearth::storage
