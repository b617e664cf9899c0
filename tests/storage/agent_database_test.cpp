#include "storage/agent_database.hpp"

#include "base/files.hpp"
#include "storage/data_format.hpp"
#include "storage/one_line_sql.hpp"
#include "storage/statement.hpp"
#include "support/counted_steps.hpp"
#include "support/storage_error_of.hpp"
#include "support/temp_directory.hpp"

#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <cstdio>
#include <fstream>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace hearth::storage {
namespace {

using hearth::testing::storage_error_of;

class AgentDatabaseTest : public ::testing::Test {
 protected:
  std::unique_ptr<AgentDatabase> open(const AgentDatabaseOptions& options = {}) {
    return std::make_unique<AgentDatabase>(path_, key_, options);
  }
  // With this state committed.
  std::unique_ptr<AgentDatabase> open_with(const std::string& state) {
    auto database = open();
    commit_state(*database, state);
    return database;
  }
  [[nodiscard]] bool file_exists() const { return std::filesystem::exists(path_); }
  [[nodiscard]] bool wal_exists() const { return std::filesystem::exists(path_.string() + "-wal"); }

  // What a killed process would leave: the files as they are at this moment.
  AgentDatabase open_as_after_a_kill() {
    const std::filesystem::path copy = temp_.path() / "killed.db";
    std::filesystem::copy_file(path_, copy, std::filesystem::copy_options::overwrite_existing);
    const std::string wal = copy.string() + "-wal";
    std::filesystem::remove(wal);
    if (wal_exists()) std::filesystem::copy_file(path_.string() + "-wal", wal);
    return {copy, key_};
  }

  const testing::TempDirectory temp_;
  const AgentKey key_{"Counter", "alice"};
  const std::filesystem::path path_ = temp_.path() / "agents" / "Counter" / "2b" / "2bd8.db";
};

// ---- files -------------------------------------------------------------------------------------

TEST_F(AgentDatabaseTest, P1_LookingAtAnAgentLeavesNoFile) {
  const auto database = open();
  EXPECT_FALSE(database->exists());
  EXPECT_EQ(database->load_state(), std::nullopt);
  database->commit();
  database->close();
  EXPECT_FALSE(std::filesystem::exists(path_.parent_path()));
}

TEST_F(AgentDatabaseTest, P1_AFileThatWasOpenedButNotWrittenIsRemoved) {
  auto database = open();
  (void)database->connection();
  EXPECT_TRUE(file_exists());
  database->close();
  EXPECT_FALSE(file_exists());

  database = open();
  (void)database->connection();
  database.reset();  // without close()
  EXPECT_FALSE(file_exists());
}

TEST_F(AgentDatabaseTest, AFileThatMustBeThereIsNotMadeAnew) {
  const AgentDatabaseOptions kept{.must_exist = true};
  const auto refusal = [&] { return storage_error_of([&] { (void)open(kept); }); };
  EXPECT_NE(refusal().find("2bd8.db is missing"), std::string::npos) << refusal();
  EXPECT_NE(refusal().find("hearth repair --forget-missing"), std::string::npos) << refusal();
  EXPECT_FALSE(file_exists());

  std::filesystem::create_directories(path_.parent_path());
  struct {
    std::string content;
    const char* what;
  } const damages[] = {{"", "is empty"}, {std::string(4096, '\0'), "has lost what was in it"}};
  for (const auto& [content, what] : damages) {
    std::ofstream(path_, std::ios::binary) << content;
    EXPECT_NE(refusal().find(what), std::string::npos) << refusal();
    EXPECT_EQ(std::filesystem::file_size(path_), content.size()) << "what is left of it stays";
  }
  std::filesystem::remove(path_);
  auto database = open_with("1");
  EXPECT_TRUE(database->stored());
  database->close();
  EXPECT_EQ(open(kept)->load_state(), "1");
}

TEST_F(AgentDatabaseTest, P5a_NothingIsCommittedToAFileThatIsNotInItsPlaceAnyMore) {
  for (const bool is_replaced : {false, true}) {
    std::filesystem::remove(path_);
    auto database = open_with("1");
    const std::filesystem::path aside = path_.native() + ".aside";
    std::filesystem::rename(path_, aside);
    if (is_replaced) std::filesystem::copy_file(aside, path_);
    std::string refusal;
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(10);
    const auto late = std::chrono::steady_clock::now() + AgentDatabase::kPlaceInterval;
    bool was_late = false;
    for (; refusal.empty() && std::chrono::steady_clock::now() < deadline;) {
      EXPECT_FALSE(was_late) << "a commit that began so late is no longer taken";
      was_late = std::chrono::steady_clock::now() > late;
      refusal = storage_error_of([&] { commit_state(*database, "2"); });
    }
    EXPECT_NE(refusal.find("was removed or replaced"), std::string::npos) << refusal;
    EXPECT_TRUE(database->broken());
    (void)storage_error_of([&] { database->close(); });
    std::filesystem::remove(path_.native() + "-wal");
  }
}

TEST_F(AgentDatabaseTest, P1_AFirstTransactionThatIsNeverCommittedLeavesNoFile) {
  open()->store_state("1");
  EXPECT_FALSE(file_exists());
}

TEST_F(AgentDatabaseTest, AnEmptyFileIsANewAgent) {
  std::filesystem::create_directories(path_.parent_path());
  std::ofstream(path_).close();
  const auto database = open();
  EXPECT_FALSE(database->exists());
  commit_state(*database, "1");
  EXPECT_EQ(open_as_after_a_kill().load_state(), "1");
}

// As a loss of power leaves them: sectors of the first page are missing, or all of it is.
TEST_F(AgentDatabaseTest, AFileThatWasCutShortInTheMakingIsANewAgent) {
  std::filesystem::create_directories(path_.parent_path());
  for (const std::string& left :
       {std::string(4096, '\0'), std::string(512, '\0'), std::string(4096, 'x'),
        std::string("SQLite format 3\0", 16) + std::string(4080, '\0')}) {
    std::ofstream(path_, std::ios::binary) << left;
    std::ofstream(path_.string() + "-journal", std::ios::binary) << std::string(512, '\0');
    const auto database = open();
    EXPECT_FALSE(database->exists());
    EXPECT_FALSE(file_exists());
    EXPECT_FALSE(std::filesystem::exists(path_.string() + "-journal"));
    commit_state(*database, "1");
    database->close();
    EXPECT_EQ(open()->load_state(), "1");
    std::filesystem::remove(path_);
  }
}

TEST_F(AgentDatabaseTest, AFileThatHasLostAllButItsFirstPageIsRefusedAndKept) {
  const auto database = open_with("1");
  database->close();
  std::filesystem::resize_file(path_, 4096);
  EXPECT_NE(storage_error_of([&] { open(); }), "");
  EXPECT_EQ(std::filesystem::file_size(path_), 4096U);
}

TEST_F(AgentDatabaseTest, AFileWithoutAnyCommitIsANewAgent) {
  auto database = open();
  (void)database->connection();
  EXPECT_FALSE(open_as_after_a_kill().exists());
}

TEST_F(AgentDatabaseTest, P6_OnlyTheDatabaseRemainsAfterClose) {
  const auto database = open_with("1");
  EXPECT_TRUE(wal_exists());
  database->close();
  database->close();  // harmless
  EXPECT_TRUE(file_exists());
  EXPECT_FALSE(wal_exists());
  std::size_t files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(path_.parent_path())) {
    ++files;
    EXPECT_EQ(entry.path(), path_);
  }
  EXPECT_EQ(files, 1U);
}

TEST_F(AgentDatabaseTest, ACounterAtRestTakesLessThan32KiB) {
  const auto database = open();
  for (int n = 0; n < 100; ++n) {
    commit_state(*database, "{\"count\":" + std::to_string(n) + "}");
  }
  database->close();
  const auto bytes = std::filesystem::file_size(path_);
  std::printf("a counter agent at rest takes %zu bytes on disk\n", static_cast<std::size_t>(bytes));
  RecordProperty("bytes", std::to_string(bytes));
  EXPECT_LT(bytes, 32U * 1024U);
}

TEST_F(AgentDatabaseTest, ASecondOneOnTheSameFileIsRefused) {
  const auto first = open();
  commit_state(*first, "1");
  EXPECT_NE(storage_error_of([&] { open(); }).find("locked"), std::string::npos);
}

// ---- identity ----------------------------------------------------------------------------------

TEST_F(AgentDatabaseTest, P2_RefusesTheFileOfAnotherAgent) {
  auto database = open_with("1");
  database->close();
  for (const AgentKey& other : {AgentKey{"Counter", "bob"}, AgentKey{"Other", "alice"}}) {
    const std::string error = storage_error_of([&] { AgentDatabase(path_, other); });
    EXPECT_NE(error.find("belongs to agent \"alice\" of class \"Counter\""), std::string::npos)
        << error;
    EXPECT_NE(error.find(other.name), std::string::npos) << error;
  }
  EXPECT_EQ(open()->load_state(), "1");
}

TEST_F(AgentDatabaseTest, P2_KeepsAnyBytesOfAName) {
  const AgentKey key{"Counter", std::string("a\0\n\xff\"'", 6)};
  {
    AgentDatabase database(path_, key);
    commit_state(database, "1");
  }
  EXPECT_EQ(AgentDatabase(path_, key).load_state(), "1");
}

TEST_F(AgentDatabaseTest, P2_RefusesAFileOfAnotherFormatAndLeavesItAsItIs) {
  for (const std::int64_t format : {std::int64_t{0}, kDataFormat + 1}) {
    std::filesystem::remove(path_);
    {
      auto database = open();
      database->store_state("7");
      Statement(database->connection(), "UPDATE cf_agents_meta SET value = ? WHERE key = 'schema'")
          .execute(std::array{Param(format)});
      database->commit();
    }
    const std::string before = read_file(path_, 1 << 20).value();
    EXPECT_EQ(storage_error_of([&] { open(); }), wrong_format(path_.string(), format));
    EXPECT_EQ(read_file(path_, 1 << 20).value(), before);
  }
}

TEST_F(AgentDatabaseTest, P2_RefusesADatabaseThatIsNoAgents) {
  std::filesystem::create_directories(path_.parent_path());
  Connection(path_, {.create = true}).execute("CREATE TABLE t(a)");
  EXPECT_NE(storage_error_of([&] { open(); }).find("no agent's database"), std::string::npos);
}

TEST_F(AgentDatabaseTest, RefusesAFileThatIsNoDatabase) {
  std::filesystem::create_directories(path_.parent_path());
  std::ofstream(path_) << std::string(8192, 'x');
  EXPECT_NE(storage_error_of([&] { open(); }).find("not a database"), std::string::npos);
  EXPECT_TRUE(file_exists());
}

TEST_F(AgentDatabaseTest, RefusesADirectoryThatCannotBeMade) {
  std::ofstream(temp_.path() / "agents") << "a file";
  const auto database = open();
  const std::string error = storage_error_of([&] { database->store_state("1"); });
  EXPECT_NE(error.find("agents"), std::string::npos) << error;
  EXPECT_TRUE(database->broken());
  database->close();
}

TEST_F(AgentDatabaseTest, RefusesAPlaceThatCannotBeWritten) {
  AgentDatabase database("/proc/self/agents/a.db", key_);  // for root as well
  EXPECT_THROW(database.store_state("1"), StorageError);
}

// ---- the transaction ---------------------------------------------------------------------------

TEST_F(AgentDatabaseTest, AWriteMakesItDirtyUntilTheCommit) {
  const auto database = open();
  EXPECT_FALSE(database->dirty());
  database->store_state("1");
  EXPECT_TRUE(database->dirty());
  database->commit();
  EXPECT_FALSE(database->dirty());
  (void)database->load_state();
  EXPECT_FALSE(database->dirty());
}

TEST_F(AgentDatabaseTest, P3_HostAndOtherTablesCommitTogether) {
  const auto database = open();
  database->begin_write();
  Statement(database->connection(), "CREATE TABLE t(a)").execute();
  Statement(database->connection(), "INSERT INTO t VALUES(5)").execute();
  database->store_state("1");
  EXPECT_FALSE(open_as_after_a_kill().exists());
  database->commit();
  AgentDatabase killed = open_as_after_a_kill();
  EXPECT_EQ(killed.load_state(), "1");
  EXPECT_EQ(ask_integer(killed.connection(), "SELECT a FROM t"), 5);
}

TEST_F(AgentDatabaseTest, WhatIsRolledBackIsUndoneAndLaterWritesHold) {
  const auto database = open_with("1");
  database->store_state("2");
  database->roll_back();
  EXPECT_FALSE(database->dirty());
  EXPECT_EQ(database->load_state(), "1");
  database->roll_back();
  commit_state(*database, "3");
  EXPECT_EQ(database->load_state(), "3");
}

TEST_F(AgentDatabaseTest, ATableOfTheHostIsLookedForOnlyUntilItIsCommitted) {
  const auto database = open_with("1");
  const auto make = [&](const char* sql) {
    database->begin_write();
    Statement(database->connection(), sql).execute();
  };
  make("CREATE TABLE cf_agents_kv(key)");
  EXPECT_TRUE(database->has_table("cf_agents_kv"));
  database->roll_back();
  EXPECT_FALSE(database->has_table("cf_agents_kv"));
  make("CREATE TABLE cf_agents_kv(key)");
  make("CREATE TABLE plugins_own(key)");
  database->commit();
  EXPECT_TRUE(database->has_table("cf_agents_kv"));
  EXPECT_TRUE(database->has_table("plugins_own"));
  database->store_state("2");
  {
    const testing::CountedSteps looks(*database);
    EXPECT_TRUE(database->has_table("cf_agents_kv"));
    EXPECT_EQ(looks.count(), 0U);
  }
  make("DROP TABLE plugins_own");
  EXPECT_FALSE(database->has_table("plugins_own"));
}

TEST_F(AgentDatabaseTest, P4_ACommitSurvivesAKill) {
  const auto database = open();
  for (const char* state : {"1", "2", "3"}) {
    commit_state(*database, state);
    EXPECT_EQ(open_as_after_a_kill().load_state(), state);
  }
  database->store_state("4");
  EXPECT_EQ(open_as_after_a_kill().load_state(), "3");
}

TEST_F(AgentDatabaseTest, CloseDropsWhatIsNotCommitted) {
  auto database = open_with("1");
  database->store_state("2");
  database->close();
  EXPECT_EQ(open()->load_state(), "1");
}

TEST_F(AgentDatabaseTest, CommitsBeneathAHalfReadReturning) {
  const auto database = open();
  database->begin_write();
  Statement(database->connection(), "CREATE TABLE t(a)").execute();
  Statement insert(database->connection(), "INSERT INTO t VALUES(1), (2) RETURNING a");
  Rows rows = insert.query();
  ASSERT_TRUE(rows.next());
  database->commit();
  AgentDatabase killed = open_as_after_a_kill();
  EXPECT_EQ(ask_integer(killed.connection(), "SELECT count(*) FROM t"), 2);
}

// ---- state -------------------------------------------------------------------------------------

TEST_F(AgentDatabaseTest, StateIsKeptByteForByte) {
  const auto database = open();
  for (const std::string& state :
       {std::string("null"), std::string("\"\""), std::string("0"),
        std::string("\"\xF0\x9F\x94\xA5\""), "\"" + std::string(1 << 20, 'x') + "\""}) {
    database->store_state(state);
    EXPECT_EQ(database->load_state(), state);
    database->commit();
    EXPECT_EQ(open_as_after_a_kill().load_state(), state);
  }
}

TEST_F(AgentDatabaseTest, StateIsOneRowHoweverOftenItIsStored) {
  const auto database = open();
  for (int n = 0; n < 10; ++n) database->store_state(std::to_string(n));
  EXPECT_EQ(ask_integer(database->connection(), "SELECT count(*) FROM cf_agents_state"), 1);
}

TEST_F(AgentDatabaseTest, ReadsTheSameAfterMemoryWasReleased) {
  const auto database = open();
  database->release_memory();  // before there is anything
  database->store_state("1");
  database->release_memory();  // in the middle of a transaction
  database->commit();
  database->release_memory();
  EXPECT_EQ(database->load_state(), "1");
  commit_state(*database, "2");
  EXPECT_EQ(open_as_after_a_kill().load_state(), "2");
}

// ---- failure -----------------------------------------------------------------------------------

// Fills the file until its limit is met, in small steps, and commits what was acknowledged.
TEST_F(AgentDatabaseTest, P5_AFullDiskBreaksItAndLosesNoCommit) {
  auto database = open({.max_pages = 20});
  int committed = -1;
  std::string error;
  for (int n = 0; n < 100 && error.empty(); ++n) {
    error = storage_error_of([&] {
      commit_state(*database, "\"" + std::to_string(n) +
                                  std::string(static_cast<std::size_t>(n) * 2000, 'x') + "\"");
    });
    if (error.empty()) committed = n;
  }
  EXPECT_NE(error.find("full"), std::string::npos) << error;
  ASSERT_GT(committed, 5);
  EXPECT_TRUE(database->broken());
  for (const auto& call : std::vector<std::function<void()>>{
           [&] { database->store_state("1"); }, [&] { (void)database->load_state(); },
           [&] { database->commit(); }, [&] { database->begin_write(); },
           [&] { (void)database->connection(); }})
    EXPECT_THROW(call(), StorageError);
  database->close();

  database = open();
  EXPECT_FALSE(database->broken());
  const std::string expected = "\"" + std::to_string(committed) +
                               std::string(static_cast<std::size_t>(committed) * 2000, 'x') + "\"";
  EXPECT_EQ(database->load_state(), expected);
  commit_state(*database, "1");
}

TEST_F(AgentDatabaseTest, P5_ALostTransactionBreaksIt) {
  const auto database = open();
  database->store_state("1");
  EXPECT_FALSE(database->transaction_was_lost());
  Statement(database->connection(), "ROLLBACK").execute();  // as SQLite does by itself at times
  EXPECT_TRUE(database->transaction_was_lost());
  EXPECT_THROW(database->commit(), StorageError);
  EXPECT_THROW((void)database->has_table("cf_agents_state"), StorageError);
}

TEST_F(AgentDatabaseTest, AbortsOnUseAfterClose) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const auto database = open();
  database->close();
  EXPECT_DEATH((void)database->load_state(), "used after close");
}

TEST_F(AgentDatabaseTest, UsedBytesCountsWhatIsStored) {
  const auto database = open();
  EXPECT_EQ(database->used_bytes(), 0);
  database->store_state("\"" + std::string(100'000, 'x') + "\"");
  EXPECT_GT(database->used_bytes(), 100'000);
  database->commit();
  database->store_state("1");
  EXPECT_LT(database->used_bytes(), 20'000);
}

// ---- the version of the class's data ------------------------------------------------------------

TEST_F(AgentDatabaseTest, ANewAgentGetsTheSchemaVersionOfItsClassWithItsFirstWrite) {
  AgentDatabaseOptions options;
  options.class_schema = 3;
  auto database = open(options);
  EXPECT_EQ(database->class_schema(), 0U);
  database->store_state("1");
  EXPECT_EQ(database->class_schema(), 3U);
  database->commit();
  database->close();
  options.class_schema = 4;
  EXPECT_EQ(open(options)->class_schema(), 3U) << "only a new one";
}

TEST_F(AgentDatabaseTest, AClassWithoutVersionsStoresNone) {
  auto database = open_with("1");
  database->close();
  EXPECT_EQ(open()->class_schema(), 0U);
}

TEST_F(AgentDatabaseTest, TheSchemaVersionIsPartOfTheTransaction) {
  auto database = open();
  database->store_state("1");
  database->store_class_schema(1);
  database->commit();
  database->store_state("2");
  database->store_class_schema(2);
  EXPECT_EQ(database->class_schema(), 2U);
  database->close();
  database = open();
  EXPECT_EQ(database->class_schema(), 1U);
  EXPECT_EQ(database->load_state(), "1");
}

TEST_F(AgentDatabaseTest, ADamagedSchemaVersionIsAStorageError) {
  for (const char* const value : {"-1", "4294967296"}) {
    {
      auto database = open();
      database->store_class_schema(1);
      const std::string damage =
          std::string("UPDATE cf_agents_meta SET value = ") + value + " WHERE key = 'class_schema'";
      Statement(database->connection(), damage).execute();
      database->commit();
      database->close();
    }
    EXPECT_NE(storage_error_of([&] { open(); }).find("damaged"), std::string::npos) << value;
    std::filesystem::remove(path_);
  }
}

}  // namespace
}  // namespace hearth::storage
