// How a plugin's SQL takes part in turns: the implicit transaction, cursors, savepoints.

#include "plugin_sql_fixture.hpp"
#include "storage/one_line_sql.hpp"
#include "storage/plugin_sql.hpp"
#include "storage/statement.hpp"

#include <fcntl.h>
#include <sqlite3.h>
#include <unistd.h>

#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace hearth::storage {
namespace {

class PluginSqlTurnsTest : public PluginSqlTest {};

// SQLite gives the same code for this and for a full disk, and undoes the turn for both.
TEST_F(PluginSqlTurnsTest, ATableWithoutRowidsLeftIsThePluginsErrorAndNoFullDisk) {
  constexpr std::string_view kNumbered = "CREATE TABLE n(id INTEGER PRIMARY KEY AUTOINCREMENT, x)";
  constexpr std::string_view kLast = "INSERT INTO n VALUES(9223372036854775807, 1)";
  constexpr std::string_view kNext = "INSERT INTO n(x) VALUES(2)";
  struct Case {
    std::vector<std::string_view> committed;
    std::vector<std::string_view> in_turn;
    std::string_view refused;
  };
  const std::vector<Case> cases = {
      {{kLast}, {}, kNext},
      {{}, {kLast}, kNext},
      {{}, {}, "INSERT INTO n VALUES(9223372036854775807, 1), (NULL, 2)"},
      {{"INSERT INTO n VALUES(9223372036854775807, 1), (7, 2)"}, {}, kNext},
      {{kNext}, {"INSERT INTO n VALUES(9223372036854775807, 1), (7, 2)"}, kNext},
      // Of these sqlite_sequence does not tell, ...
      {{kNext, "UPDATE n SET id = 9223372036854775807"}, {}, kNext},
      {{kNext}, {"UPDATE n SET id = 9223372036854775807"}, kNext},
      // ... and of these the table does not.
      {{kLast, "DELETE FROM n"}, {}, kNext},
      // The statement is in the cache before there is a trigger.
      {{kLast, "INSERT INTO t VALUES(1)",
        "CREATE TRIGGER g AFTER INSERT ON t BEGIN INSERT INTO n(x) VALUES(1); END"},
       {},
       "INSERT INTO t VALUES(1)"},
  };
  int number = 0;
  for (const Case& each : cases) {
    sql_.reset();
    AgentDatabase database(temp_.path() / (std::to_string(++number) + ".db"), {"Counter", "bob"});
    sql_.emplace(database, clock_);
    ASSERT_TRUE(run("CREATE TABLE t(x)"));
    ASSERT_TRUE(run(kNumbered));
    for (const std::string_view sql : each.committed) ASSERT_TRUE(run(sql)) << sql;
    database.commit();
    for (const std::string_view sql : each.in_turn) ASSERT_TRUE(run(sql)) << sql;
    const auto refused = run(each.refused);
    EXPECT_FALSE(refused) << number;
    EXPECT_EQ(refused.error().code, Errc::kLimitExceeded) << number << refused.error().message;
    sql_.reset();
  }
}

TEST_F(PluginSqlTurnsTest, RowsWithRowidsOfTheirOwnAreTakenAllTheSame) {
  run_all({"CREATE TABLE n(id INTEGER PRIMARY KEY AUTOINCREMENT, x)",
           "INSERT INTO n VALUES(9223372036854775807, 1)"});
  database_.commit();
  EXPECT_TRUE(run("INSERT INTO n VALUES(7, 2)"));
  EXPECT_TRUE(run("INSERT INTO n VALUES(7, 3) ON CONFLICT(id) DO UPDATE SET x = excluded.x"));
  database_.commit();
  EXPECT_EQ(ask_committed("SELECT x FROM n WHERE id = 7"), 3);
}

// While it lives, what SQLite writes goes to a device that is always full.
class FullDevice {
 public:
  FullDevice() {
    device_ = ::open("/dev/full", O_RDWR | O_CLOEXEC);
    for (std::size_t i = 0; i < kNames.size(); ++i) {
      before_[i] = vfs().xGetSystemCall(&vfs(), kNames[i]);
      vfs().xSetSystemCall(&vfs(), kNames[i],
                           i == 0 ? reinterpret_cast<sqlite3_syscall_ptr>(write)
                                  : reinterpret_cast<sqlite3_syscall_ptr>(write_at));
    }
  }
  ~FullDevice() {
    for (std::size_t i = 0; i < kNames.size(); ++i)
      vfs().xSetSystemCall(&vfs(), kNames[i], before_[i]);
    ::close(device_);
  }
  FullDevice(const FullDevice&) = delete;
  FullDevice& operator=(const FullDevice&) = delete;

 private:
  static constexpr std::array<const char*, 3> kNames = {"write", "pwrite", "pwrite64"};
  static sqlite3_vfs& vfs() { return *sqlite3_vfs_find(nullptr); }
  static ssize_t write(int, const void* from, std::size_t bytes) {
    return reinterpret_cast<decltype(&write)>(before_[0])(device_, from, bytes);
  }
  static ssize_t write_at(int, const void* from, std::size_t bytes, off_t at) {
    const sqlite3_syscall_ptr before = before_[1] != nullptr ? before_[1] : before_[2];
    return reinterpret_cast<decltype(&write_at)>(before)(device_, from, bytes, at);
  }
  static inline int device_ = -1;                              // NOLINT: SQLite knows no test
  static inline std::array<sqlite3_syscall_ptr, 3> before_{};  // NOLINT
};

TEST_F(PluginSqlTurnsTest, AFullDiskIsAStorageErrorAlsoBesideATableWithoutRowidsLeft) {
  const std::vector<std::vector<std::string_view>> all = {
      {"INSERT INTO t VALUES(zeroblob(1000000))"},
      {"INSERT INTO t VALUES(zeroblob(1000000))", "INSERT INTO n VALUES(9223372036854775807, 1)"},
      {"INSERT INTO n(x) VALUES(zeroblob(1000000))"},
  };
  int number = 0;
  for (const auto& each : all) {
    sql_.reset();
    AgentDatabase database(temp_.path() / (std::to_string(++number) + ".db"), {"Counter", "bob"});
    sql_.emplace(database, clock_);
    run_all({"CREATE TABLE t(x)", "CREATE TABLE n(id INTEGER PRIMARY KEY AUTOINCREMENT, x)"});
    for (std::size_t i = 1; i < each.size(); ++i) ASSERT_TRUE(run(each[i])) << each[i];
    database.commit();
    {
      const FullDevice full;
      EXPECT_THROW((void)run(each[0]), StorageError) << number;
    }
    EXPECT_TRUE(database.broken());
    sql_.reset();
  }
}

TEST_F(PluginSqlTurnsTest, P3_WritesJoinTheTurnAndReadsDoNotStartOne) {
  ASSERT_TRUE(run("SELECT 1"));
  EXPECT_FALSE(database_.dirty());
  ASSERT_TRUE(run("CREATE TABLE t(a)"));
  EXPECT_TRUE(database_.dirty());
  database_.commit();
  ASSERT_TRUE(run("SELECT * FROM t"));
  EXPECT_FALSE(database_.dirty());
  ASSERT_TRUE(run("INSERT INTO t VALUES(1)"));
  database_.store_state("1");  // the host's writes and the plugin's: one transaction
  EXPECT_EQ(count(), 1);
  constexpr std::string_view kHasState =
      "SELECT count(*) FROM sqlite_schema WHERE name = 'cf_agents_state'";
  EXPECT_EQ(ask_committed("SELECT count(*) FROM t"), 0);
  EXPECT_EQ(ask_committed(kHasState), 0);
  database_.commit();
  EXPECT_EQ(ask_committed("SELECT count(*) FROM t"), 1);
  EXPECT_EQ(ask_committed(kHasState), 1);
}

TEST_F(PluginSqlTurnsTest, P3_CreateIfNotExistsIsAlwaysPartOfATurn) {
  ASSERT_TRUE(run("CREATE TABLE t(a)"));
  database_.commit();
  const StatementHandle create =
      prepare("CREATE TABLE IF NOT EXISTS t(a)");  // compiled as nothing to do
  ASSERT_TRUE(run("DROP TABLE t"));
  database_.commit();
  ASSERT_EQ(*sql_->step(create), StepOutcome::kDone);  // ... and now it makes the table
  EXPECT_TRUE(database_.dirty());
  constexpr std::string_view kTables = "SELECT count(*) FROM sqlite_schema WHERE name = 't'";
  EXPECT_EQ(ask_committed(kTables), 0);
  database_.commit();
  EXPECT_EQ(ask_committed(kTables), 1);
}

TEST_F(PluginSqlTurnsTest, P3_DropIfExistsIsAlwaysPartOfATurn) {
  for (const char* kind : {"TABLE", "VIEW", "INDEX", "TRIGGER"}) {
    const StatementHandle drop = prepare("DROP " + std::string(kind) + " IF EXISTS x");
    ASSERT_TRUE(run("CREATE TABLE IF NOT EXISTS t(a)"));
    const std::string make = kind == std::string_view("TABLE")  ? "(a)"
                             : kind == std::string_view("VIEW") ? " AS SELECT 1"
                             : kind == std::string_view("INDEX")
                                 ? " ON t(a)"
                                 : " INSERT ON t BEGIN SELECT 1; END";
    ASSERT_TRUE(run("CREATE " + std::string(kind) + " x" + make));
    database_.commit();
    ASSERT_EQ(*sql_->step(drop), StepOutcome::kDone) << kind;
    EXPECT_TRUE(database_.dirty()) << kind;
    constexpr std::string_view kThings = "SELECT count(*) FROM sqlite_schema WHERE name = 'x'";
    EXPECT_EQ(ask_committed(kThings), 1) << kind;
    database_.commit();
    EXPECT_EQ(ask_committed(kThings), 0) << kind;
    ASSERT_TRUE(sql_->finalize(drop));
  }
}

TEST_F(PluginSqlTurnsTest, P3_AnAgentThatUsesNoSqlGetsNoFile) {
  sql_.reset();
  database_.close();
  EXPECT_FALSE(std::filesystem::exists(path_));
}

TEST_F(PluginSqlTurnsTest, ACursorGoesOnAfterACommitInTheSameTurn) {
  run_all({"CREATE TABLE t(a)", "INSERT INTO t VALUES(1), (2), (3)"});
  const StatementHandle cursor = prepare("SELECT a FROM t ORDER BY a");
  int seen = 0;
  while (*sql_->step(cursor) == StepOutcome::kRow) {
    EXPECT_EQ(*sql_->column_int64(cursor, 0), ++seen);
    commit_state(database_, std::to_string(seen));  // as stash() does
  }
  EXPECT_EQ(seen, 3);
}

TEST_F(PluginSqlTurnsTest, ACursorEndsWithItsTurn) {
  run_all({"CREATE TABLE t(a)", "INSERT INTO t VALUES(1), (2)"});
  const StatementHandle cursor = prepare("SELECT a FROM t");
  ASSERT_EQ(*sql_->step(cursor), StepOutcome::kRow);
  database_.commit();
  sql_->end_turn();
  EXPECT_EQ(sql_->column_int64(cursor, 0).error().code, Errc::kInvalidArgument);
  EXPECT_EQ(sql_->step(cursor).error().code, Errc::kCancelled);
  EXPECT_EQ(sql_->step(cursor).error().code, Errc::kCancelled);
  ASSERT_TRUE(sql_->reset(cursor));
  EXPECT_EQ(*sql_->step(cursor), StepOutcome::kRow);
}

TEST_F(PluginSqlTurnsTest, AHalfReadReturningEndsWithTheCommitAndKeepsItsWrites) {
  ASSERT_TRUE(run("CREATE TABLE t(a)"));
  const StatementHandle insert = prepare("INSERT INTO t VALUES(1), (2) RETURNING a");
  ASSERT_EQ(*sql_->step(insert), StepOutcome::kRow);
  database_.commit();
  EXPECT_EQ(sql_->step(insert).error().code, Errc::kCancelled);
  EXPECT_EQ(count(), 2);
}

TEST_F(PluginSqlTurnsTest, AConflictThatAsksForRollbackBreaksTheDatabase) {
  run_all({"CREATE TABLE t(a UNIQUE)", "INSERT INTO t VALUES(1)"});
  database_.commit();
  database_.store_state("1");
  EXPECT_EQ(run("INSERT OR ROLLBACK INTO t VALUES(1)").error().code, Errc::kConflict);
  EXPECT_TRUE(database_.broken());
  EXPECT_THROW(database_.commit(), StorageError);
}

TEST_F(PluginSqlTurnsTest, AFullDiskIsAStorageError) {
  sql_.reset();
  const std::filesystem::path path = temp_.path() / "small.db";
  AgentDatabase small(path, {"Counter", "bob"}, {.max_pages = 20});
  sql_.emplace(small, clock_);
  ASSERT_TRUE(run("CREATE TABLE t(a)"));
  EXPECT_THROW((void)run("INSERT INTO t VALUES(randomblob(200000))"), StorageError);
  EXPECT_TRUE(small.broken());
  sql_.reset();
}

TEST_F(PluginSqlTurnsTest, SavepointsNestAndUndoTheirPart) {
  ASSERT_TRUE(run("CREATE TABLE t(a)"));
  const SavepointHandle outer = *sql_->begin_savepoint();
  ASSERT_TRUE(run("INSERT INTO t VALUES(1)"));
  const SavepointHandle inner = *sql_->begin_savepoint();
  ASSERT_TRUE(run("INSERT INTO t VALUES(2)"));
  ASSERT_TRUE(sql_->rollback_to(inner));
  EXPECT_EQ(count(), 1);
  EXPECT_EQ(sql_->release(inner).error().code, Errc::kInvalidArgument);  // it has ended
  ASSERT_TRUE(sql_->release(outer));
  database_.commit();
  EXPECT_EQ(count(), 1);
}

TEST_F(PluginSqlTurnsTest, EndingASavepointEndsThoseInsideIt) {
  ASSERT_TRUE(run("CREATE TABLE t(a)"));
  const SavepointHandle outer = *sql_->begin_savepoint();
  const SavepointHandle inner = *sql_->begin_savepoint();
  ASSERT_TRUE(run("INSERT INTO t VALUES(1)"));
  ASSERT_TRUE(sql_->rollback_to(outer));
  EXPECT_EQ(sql_->release(inner).error().code, Errc::kInvalidArgument);
  EXPECT_EQ(count(), 0);
}

TEST_F(PluginSqlTurnsTest, ASavepointUndoesTheHostsWritesAsWell) {
  database_.store_state("1");
  const SavepointHandle savepoint = *sql_->begin_savepoint();
  database_.store_state("2");
  ASSERT_TRUE(sql_->rollback_to(savepoint));
  EXPECT_EQ(database_.load_state(), "1");
}

TEST_F(PluginSqlTurnsTest, ARollbackTellsWhichWriteOfTheStateCounts) {
  std::vector<std::uint64_t> told;
  const auto tell = [&told](std::uint64_t write) { told.push_back(write); };
  PluginSql& sql = sql_.emplace(database_, clock_, PluginSqlLimits(), tell);
  database_.store_state("1");
  ASSERT_TRUE(sql.rollback_to(*sql.begin_savepoint()));
  EXPECT_TRUE(told.empty()) << "nothing of the state was undone";
  const SavepointHandle outer = *sql.begin_savepoint();
  database_.store_state("2");
  ASSERT_TRUE(sql.release(*sql.begin_savepoint()));
  const SavepointHandle inner = *sql.begin_savepoint();
  database_.store_state("3");
  ASSERT_TRUE(sql.rollback_to(inner));
  EXPECT_EQ(database_.load_state(), "2");
  database_.store_state("4");
  ASSERT_TRUE(sql.rollback_to(outer));
  EXPECT_EQ(database_.load_state(), "1");
  EXPECT_EQ(told, (std::vector<std::uint64_t>{2, 1}));
  EXPECT_EQ(database_.state_writes(), 4U) << "no number comes twice";
}

TEST_F(PluginSqlTurnsTest, AStateTableMadeInsideAnUndoneSavepointIsMadeAgain) {
  const SavepointHandle savepoint = *sql_->begin_savepoint();
  database_.store_state("1");
  ASSERT_TRUE(sql_->rollback_to(savepoint));
  EXPECT_EQ(database_.load_state(), std::nullopt);
  commit_state(database_, "2");
  EXPECT_EQ(database_.load_state(), "2");
}

TEST_F(PluginSqlTurnsTest, TheCommitOfTheTurnKeepsAndEndsOpenSavepoints) {
  ASSERT_TRUE(run("CREATE TABLE t(a)"));
  const SavepointHandle savepoint = *sql_->begin_savepoint();
  ASSERT_TRUE(run("INSERT INTO t VALUES(1)"));
  database_.commit();
  EXPECT_EQ(sql_->rollback_to(savepoint).error().code, Errc::kInvalidArgument);
  const SavepointHandle next = *sql_->begin_savepoint();  // at the same depth
  EXPECT_EQ(sql_->rollback_to(savepoint).error().code, Errc::kInvalidArgument);
  EXPECT_TRUE(sql_->rollback_to(next));
  EXPECT_EQ(count(), 1);
}

TEST_F(PluginSqlTurnsTest, SavepointsEndBeneathAHalfReadReturning) {
  ASSERT_TRUE(run("CREATE TABLE t(a)"));
  const SavepointHandle savepoint = *sql_->begin_savepoint();
  const StatementHandle insert = prepare("INSERT INTO t VALUES(1), (2) RETURNING a");
  ASSERT_EQ(*sql_->step(insert), StepOutcome::kRow);
  ASSERT_TRUE(sql_->release(savepoint));
  EXPECT_EQ(count(), 2);
}

TEST_F(PluginSqlTurnsTest, TellsWhetherASavepointOfThisTransactionIsOpen) {
  EXPECT_FALSE(sql_->has_savepoints());
  const SavepointHandle savepoint = *sql_->begin_savepoint();
  EXPECT_TRUE(sql_->has_savepoints());
  ASSERT_TRUE(sql_->release(savepoint));
  EXPECT_FALSE(sql_->has_savepoints());
  ASSERT_TRUE(sql_->begin_savepoint());
  database_.commit();
  EXPECT_FALSE(sql_->has_savepoints());
  database_.store_state("1");  // another transaction
  EXPECT_FALSE(sql_->has_savepoints());
}

TEST_F(PluginSqlTurnsTest, BoundsOpenSavepoints) {
  for (std::size_t n = 0; n < PluginSql::kMaxSavepoints; ++n) ASSERT_TRUE(sql_->begin_savepoint());
  EXPECT_EQ(sql_->begin_savepoint().error().code, Errc::kLimitExceeded);
}

}  // namespace
}  // namespace hearth::storage
