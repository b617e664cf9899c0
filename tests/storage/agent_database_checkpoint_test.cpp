// When an agent's WAL is moved into its file, and what that waits for.
#include "storage/agent_database.hpp"
#include "storage/one_line_sql.hpp"
#include "support/temp_directory.hpp"
#include "support/watched_syncs.hpp"

#include <sqlite3.h>

#include <gtest/gtest.h>

#include <filesystem>
#include <functional>
#include <memory>
#include <string>

namespace hearth::storage {
namespace {

namespace fs = std::filesystem;
using hearth::testing::WatchedSyncs;

constexpr int kPages = 20;

class AgentDatabaseCheckpointTest : public ::testing::Test {
 protected:
  AgentDatabaseCheckpointTest() {
    initialize_sqlite();
    syncs_ = std::make_unique<WatchedSyncs>([this](bool is_database) {
      ++(is_database ? database_syncs_ : wal_syncs_);
      return answer_ ? answer_(is_database) : SQLITE_OK;
    });
  }
  [[nodiscard]] std::unique_ptr<AgentDatabase> open() const {
    return std::make_unique<AgentDatabase>(
        path_, AgentKey{"Counter", "alice"},
        AgentDatabaseOptions{.checkpoint_pages = kPages, .vfs = WatchedSyncs::kName});
  }
  void commit(AgentDatabase& database) { commit_state(database, std::to_string(++last_)); }
  int commit_until_due(AgentDatabase& database) {
    int commits = 0;
    for (; !database.checkpoint_due(); ++commits) commit(database);
    return commits;
  }
  [[nodiscard]] std::uintmax_t wal_bytes() const { return fs::file_size(path_.native() + "-wal"); }
  [[nodiscard]] int syncs() const { return database_syncs_ + wal_syncs_; }

  const testing::TempDirectory temp_;
  const fs::path path_ = temp_.path() / "agents/Counter/00/a.db";
  std::function<int(bool)> answer_;
  int database_syncs_ = 0;
  int wal_syncs_ = 0;
  int last_ = 0;
  std::unique_ptr<WatchedSyncs> syncs_;
};

TEST_F(AgentDatabaseCheckpointTest, P8_OnlyCheckpointsAndTheEndSync) {
  auto database = open();
  for (int round = 0; round < 3; ++round) {
    EXPECT_GT(commit_until_due(*database), 1);
    EXPECT_EQ(syncs(), 0) << "also of the first commit after a checkpoint";
    EXPECT_EQ(database->checkpoint(), "");
    EXPECT_EQ(database_syncs_, 1);
    EXPECT_EQ(wal_syncs_, 2) << "before its pages are moved, and when it is empty";
    database_syncs_ = wal_syncs_ = 0;
  }
  commit(*database);
  EXPECT_EQ(syncs(), 0);
  database->close();
  EXPECT_EQ(syncs(), 2);
  database_syncs_ = wal_syncs_ = 0;
  database = open();
  EXPECT_EQ(database->load_state(), std::to_string(last_));
  commit(*database);
  EXPECT_EQ(syncs(), 0);
}

// What a process that is killed leaves, at each commit around a checkpoint.
TEST_F(AgentDatabaseCheckpointTest, TheWalOfABusyAgentKeepsItsBlocksAndNoneOfItsContent) {
  const auto database = open();
  const fs::path left = temp_.path() / "left.db";
  const auto expect_left = [&] {
    fs::copy_file(path_, left, fs::copy_options::overwrite_existing);
    fs::copy_file(path_.native() + "-wal", left.native() + "-wal",
                  fs::copy_options::overwrite_existing);
    AgentDatabase next(left, AgentKey{"Counter", "alice"});
    EXPECT_EQ(next.load_state(), std::to_string(last_));
    next.close();
  };
  for (int round = 0; round < 3; ++round) {
    commit_until_due(*database);
    const std::uintmax_t before = wal_bytes();
    EXPECT_EQ(database->checkpoint(), "");
    EXPECT_EQ(wal_bytes(), before);
    expect_left();
    for (int i = 0; i < 3; ++i) {
      commit(*database);
      expect_left();
    }
    EXPECT_EQ(wal_bytes(), before) << "written over";
  }
}

TEST_F(AgentDatabaseCheckpointTest, TheWalOfAnIdleAgentAndALongOneGiveTheirBlocksBack) {
  const auto database = open();
  while (!database->checkpoint_due(true)) commit(*database);
  ASSERT_FALSE(database->checkpoint_due());
  EXPECT_EQ(database->checkpoint(), "");
  EXPECT_EQ(wal_bytes(), 0U);

  while (wal_bytes() <= std::uintmax_t{2} * kPages * 4200) commit(*database);
  EXPECT_EQ(database->checkpoint(), "");
  EXPECT_EQ(wal_bytes(), 0U);
}

TEST_F(AgentDatabaseCheckpointTest, NotWhileAnythingIsUncommittedOrRead) {
  const auto database = open();
  commit_until_due(*database);
  database->begin_write();
  EXPECT_FALSE(database->checkpoint_due());
  database->commit();
  sqlite3_stmt* read = nullptr;
  sqlite3_prepare_v2(&database->connection(), "SELECT * FROM cf_agents_meta", -1, &read, nullptr);
  ASSERT_EQ(sqlite3_step(read), SQLITE_ROW);
  EXPECT_FALSE(database->checkpoint_due());
  sqlite3_finalize(read);
  EXPECT_TRUE(database->checkpoint_due());
}

// The n-th sync fails: of the WAL, of the file, and of the empty WAL.
TEST_F(AgentDatabaseCheckpointTest, AFailureLosesNothing) {
  for (int failing = 1; failing <= 3; ++failing) {
    SCOPED_TRACE(failing);
    auto database = open();
    commit_until_due(*database);
    int seen = 0;
    answer_ = [&seen, failing](bool) { return ++seen == failing ? SQLITE_IOERR_FSYNC : SQLITE_OK; };
    EXPECT_NE(database->checkpoint(), "");
    answer_ = {};
    if (failing < 3) {
      EXPECT_FALSE(database->broken());
      EXPECT_FALSE(database->checkpoint_due()) << "not with every commit";
      EXPECT_GT(commit_until_due(*database), kPages / 4);
      EXPECT_EQ(database->checkpoint(), "");
    } else {
      EXPECT_TRUE(database->broken()) << "what the WAL holds after a loss of power is not known";
    }
    database->close();
    EXPECT_EQ(open()->load_state(), std::to_string(last_));
  }
}

}  // namespace
}  // namespace hearth::storage
