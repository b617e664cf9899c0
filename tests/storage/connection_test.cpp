#include "storage/connection.hpp"

#include "base/error.hpp"
#include "storage/one_line_sql.hpp"
#include "storage/single_owner_vfs.hpp"
#include "storage/statement.hpp"
#include "support/storage_error_of.hpp"
#include "support/temp_directory.hpp"

#include <sqlite3.h>

#include <gtest/gtest.h>

#include <fstream>
#include <optional>
#include <string>

namespace hearth::storage {
namespace {

using hearth::testing::storage_error_of;

class ConnectionTest : public ::testing::Test {
 protected:
  const testing::TempDirectory temp_;
  const std::filesystem::path path_ = temp_.path() / "a.db";
};

TEST_F(ConnectionTest, OpensAnAbsentFileOnlyToCreateIt) {
  EXPECT_THROW(Connection(path_, {}), StorageError);
  EXPECT_FALSE(std::filesystem::exists(path_));
  EXPECT_NO_THROW(Connection(path_, {.create = true}));
}

TEST_F(ConnectionTest, ErrorsNameTheFileAndSqlitesReason) {
  std::ofstream(path_) << std::string(8192, 'x');
  const std::string text = storage_error_of([&] { Connection(path_, {}); });
  EXPECT_NE(text.find(path_.string()), std::string::npos) << text;
  EXPECT_NE(text.find("file is not a database"), std::string::npos) << text;
}

TEST_F(ConnectionTest, P1_TheCatalogueCannotBeWritten) {
  Connection connection(path_, {.create = true});
  connection.execute("CREATE TABLE t(a)");
  EXPECT_THROW(connection.execute("PRAGMA writable_schema=1; DELETE FROM sqlite_schema"),
               StorageError);
}

TEST_F(ConnectionTest, P1_ExtensionsCannotBeLoaded) {
  Connection connection(path_, {.create = true});
  EXPECT_THROW(connection.execute("SELECT load_extension('x')"), StorageError);
}

TEST_F(ConnectionTest, P3_ForeignKeysAreEnforced) {
  Connection connection(path_, {.create = true});
  connection.execute("CREATE TABLE p(a PRIMARY KEY); CREATE TABLE c(a REFERENCES p(a))");
  EXPECT_THROW(connection.execute("INSERT INTO c VALUES(1)"), StorageError);
}

TEST_F(ConnectionTest, ATransactionThatIsNotCommittedLeavesNothing) {
  Connection connection(path_, {.create = true});
  connection.execute("CREATE TABLE t(a)");
  for (const bool commits : {false, true}) {
    Transaction both(connection);
    connection.execute("INSERT INTO t VALUES(1); INSERT INTO t VALUES(2)");
    if (commits) both.commit();
  }
  EXPECT_EQ(connection.query_integer("SELECT count(*) FROM t"), 2);
}

TEST_F(ConnectionTest, AFileNameIsNeverTakenForAUri) {
  const std::filesystem::path before = std::filesystem::current_path();
  std::filesystem::current_path(temp_.path());
  Connection("file:a?mode=memory", {.create = true}).execute("CREATE TABLE t(a)");
  std::filesystem::current_path(before);
  EXPECT_TRUE(std::filesystem::exists(temp_.path() / "file:a?mode=memory"));
}

TEST_F(ConnectionTest, AbortsWhenAStatementOutlivesIt) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_DEATH(
      {
        std::optional<Connection> connection;
        connection.emplace(path_, ConnectionOptions{.create = true});
        Statement statement(connection->handle(), "SELECT 1");
        connection.reset();
      },
      "outlives its connection");
}

class SingleOwnerVfsTest : public ConnectionTest {
 protected:
  SingleOwnerVfsTest() { initialize_sqlite(); }
  static ConnectionOptions options() { return {.create = true, .vfs = kSingleOwnerVfs}; }
};

TEST_F(SingleOwnerVfsTest, P1_ASecondConnectionIsLockedOut) {
  Connection first(path_, options());
  first.execute("PRAGMA journal_mode=WAL; CREATE TABLE t(a)");
  const auto open = [this](const ConnectionOptions& second) {
    return storage_error_of([&] { Connection(path_, second); });
  };
  EXPECT_NE(open(options()).find("locked"), std::string::npos);
  EXPECT_NE(open({}).find("locked"), std::string::npos);
}

TEST_F(SingleOwnerVfsTest, P1_TheLockGoesWithTheConnection) {
  Connection(path_, options()).execute("PRAGMA journal_mode=WAL; CREATE TABLE t(a)");
  EXPECT_EQ(Connection(path_, {}).query_integer("SELECT count(*) FROM t"), 0);
}

TEST_F(SingleOwnerVfsTest, P2_MakesNoSharedMemoryFile) {
  Connection connection(path_, options());
  connection.execute("PRAGMA journal_mode=WAL; CREATE TABLE t(a)");
  EXPECT_TRUE(std::filesystem::exists(path_.string() + "-wal"));
  EXPECT_FALSE(std::filesystem::exists(path_.string() + "-shm"));
}

TEST_F(SingleOwnerVfsTest, ReadsTheSameAfterIndexMemoryWasReleased) {
  Connection connection(path_, options());
  connection.execute("PRAGMA journal_mode=WAL; CREATE TABLE t(a INTEGER PRIMARY KEY, b)");
  for (int round = 0; round < 50; ++round) {
    connection.execute("INSERT INTO t(b) VALUES(randomblob(3000))");
    release_index_memory(connection.handle());
    sqlite3_db_release_memory(&connection.handle());
    ASSERT_EQ(connection.query_integer("SELECT count(*) FROM t"), round + 1);
  }
  EXPECT_EQ(ask_text(connection.handle(), "PRAGMA integrity_check"), "ok");
}

TEST_F(SingleOwnerVfsTest, IndexesAWalOfManyRegions) {
  Connection connection(path_, options());
  connection.execute("PRAGMA journal_mode=WAL; CREATE TABLE t(b)");
  // One transaction of about 10,000 pages: three regions of the index.
  connection.execute(
      "PRAGMA cache_size=10; BEGIN; WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n "
      "WHERE i < 10000) INSERT INTO t SELECT zeroblob(3500) FROM n; COMMIT");
  release_index_memory(connection.handle());
  EXPECT_EQ(connection.query_integer("SELECT count(*) FROM t WHERE length(b) = 3500"), 10'000);
}

TEST_F(SingleOwnerVfsTest, TakesUpTheWalOfAKilledProcess) {
  {
    Connection connection(path_, options());
    connection.execute("PRAGMA journal_mode=WAL; CREATE TABLE t(a); INSERT INTO t VALUES(7)");
    // The files at this moment are the files that a killed process leaves.
    std::filesystem::copy_file(path_, temp_.path() / "b.db");
    std::filesystem::copy_file(path_.string() + "-wal", temp_.path() / "b.db-wal");
  }
  Connection recovered(temp_.path() / "b.db", options());
  EXPECT_EQ(recovered.query_integer("SELECT a FROM t"), 7);
}

}  // namespace
}  // namespace hearth::storage
