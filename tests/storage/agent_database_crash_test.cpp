// The database after a kill, or a full disk, in the middle of commits. The children are forked from
// a process that has one thread.

#include "storage/agent_database.hpp"
#include "storage/one_line_sql.hpp"
#include "storage/statement.hpp"
#include "support/temp_directory.hpp"

#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <gtest/gtest.h>

#include <array>
#include <csignal>
#include <cstdio>
#include <string>

namespace hearth::storage {
namespace {

class AgentDatabaseCrashTest : public ::testing::Test {
 protected:
  AgentDatabaseCrashTest() { EXPECT_EQ(::pipe(acknowledged_.data()), 0); }
  ~AgentDatabaseCrashTest() override {
    ::close(acknowledged_[0]);
    ::close(acknowledged_[1]);
  }

  // In the child: commits increasing numbers, into the state and a table, and tells each one.
  [[noreturn]] void commit_for_ever(std::int32_t from) {
    AgentDatabase database(path_, key_);
    for (std::int32_t n = from;; ++n) {
      database.begin_write();
      Statement(database.connection(), "CREATE TABLE IF NOT EXISTS log(n INTEGER, padding)")
          .execute();
      const std::array params{Param(std::int64_t{n})};
      Statement(database.connection(), "INSERT INTO log VALUES(?, zeroblob(500))").execute(params);
      commit_state(database, std::to_string(n));
      if (::write(acknowledged_[1], &n, sizeof n) != sizeof n) ::_exit(1);
    }
  }

  // The last number that the child told, after `at_least` more of them have come and it was killed.
  std::int32_t kill_after(pid_t child, int at_least) {
    std::int32_t last = 0;
    for (int n = 0; n < at_least; ++n) EXPECT_EQ(::read(acknowledged_[0], &last, sizeof last), 4);
    ::kill(child, SIGKILL);
    ::waitpid(child, nullptr, 0);
    // Its reports before it died.
    while (more_acknowledged()) EXPECT_EQ(::read(acknowledged_[0], &last, sizeof last), 4);
    return last;
  }

  bool more_acknowledged() const {
    timeval none{};
    fd_set set;
    FD_ZERO(&set);
    FD_SET(acknowledged_[0], &set);
    return ::select(acknowledged_[0] + 1, &set, nullptr, nullptr, &none) == 1;
  }

  const testing::TempDirectory temp_;
  const AgentKey key_{"Counter", "alice"};
  const std::filesystem::path path_ = temp_.path() / "a.db";
  std::array<int, 2> acknowledged_{};
};

constexpr std::string_view kIntegrity = "PRAGMA integrity_check";

TEST_F(AgentDatabaseCrashTest, P4_NoAcknowledgedCommitIsMissingAfterAKill) {
  std::int32_t next = 1;
  for (int round = 0; round < 20; ++round) {
    const pid_t child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0) commit_for_ever(next);
    const std::int32_t acknowledged = kill_after(child, 5 + round * 7);

    AgentDatabase database(path_, key_);
    ASSERT_EQ(ask_text(database.connection(), kIntegrity), "ok");
    const std::int32_t state = std::stoi(database.load_state().value_or("0"));
    // The child may have been killed between a commit and telling of it.
    ASSERT_GE(state, acknowledged) << "round " << round;
    ASSERT_LE(state, acknowledged + 1) << "round " << round;
    ASSERT_EQ(ask_integer(database.connection(), "SELECT max(n) FROM log"), state);
    ASSERT_EQ(ask_integer(database.connection(), "SELECT count(*) FROM log"), state);
    if (round % 2 == 0)
      database.close();  // otherwise the next child finds what the destructor leaves
    next = state + 1;
  }
}

TEST_F(AgentDatabaseCrashTest, P5_AFullDiskAtAnyMomentLosesNoCommit) {
  // RLIMIT_FSIZE stands for the full disk: writes beyond it fail with EFBIG.
  for (const rlim_t limit : {20'000U, 40'000U, 70'000U, 150'000U}) {
    std::filesystem::remove(path_);
    std::filesystem::remove(path_.string() + "-wal");
    const pid_t child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      std::signal(SIGXFSZ, SIG_IGN);
      const rlimit bound{limit, limit};
      ::setrlimit(RLIMIT_FSIZE, &bound);
      try {
        commit_for_ever(1);
      } catch (const StorageError&) {
        ::_exit(42);
      }
    }
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    ASSERT_TRUE(WIFEXITED(status));
    EXPECT_EQ(WEXITSTATUS(status), 42) << "the failure is a StorageError";
    std::int32_t acknowledged = 0;
    while (more_acknowledged())
      ASSERT_EQ(::read(acknowledged_[0], &acknowledged, sizeof acknowledged), 4);

    AgentDatabase database(path_, key_);
    EXPECT_EQ(ask_text(database.connection(), kIntegrity), "ok");
    EXPECT_GE(std::stoi(database.load_state().value_or("0")), acknowledged) << "limit " << limit;
    commit_state(database, "\"goes on\"");
    database.close();
  }
}

}  // namespace
}  // namespace hearth::storage
