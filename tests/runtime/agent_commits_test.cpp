#include "runtime/agent_commits.hpp"

#include "fakes.hpp"
#include "storage/connection.hpp"
#include "storage/data_directory.hpp"
#include "storage/directory.hpp"
#include "storage/statement.hpp"
#include "support/recording_logger.hpp"
#include "support/seeded_random.hpp"
#include "support/temp_directory.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <optional>

namespace hearth::runtime {
namespace {

using durable::Wake;
using testing::kUsualAgent;

// Counts what the gate hears.
class CountingGate final : public DurabilityGate {
 public:
  explicit CountingGate(int& heard) : heard_(heard) {}
  void request(std::function<void(bool)> done) override { done(true); }
  void directory_written() override { ++heard_; }

 private:
  int& heard_;
};

class AgentCommitsTest : public ::testing::TestWithParam<bool> {
 protected:
  AgentCommitsTest() { open(); }

  [[nodiscard]] bool has_gate() const { return GetParam(); }
  void open() {
    commits_.reset();
    database_.emplace(data_.agent_path(kUsualAgent), kUsualAgent);
    commits_.emplace(AgentCommits::Parts{files_, alarms_, logger_, kUsualAgent, *database_},
                     files_.kept(kUsualAgent),
                     has_gate() ? std::make_unique<CountingGate>(heard_) : nullptr);
  }
  void write() {
    database_->begin_write();
    storage::Statement(database_->connection(), "CREATE TABLE IF NOT EXISTS t(a)").execute();
  }
  [[nodiscard]] Wake stored() {
    const auto rows = directory_.wakes();
    return rows.empty() ? Wake{} : Wake{rows.front().working, rows.front().at_ms};
  }
  // Rows were written with this wake, and are as durable as the class asks.
  void commit(const Wake& wake) {
    write();
    commits_->commit(wake);
    commits_->all_durable(&wake);
  }
  void let_the_index_fail() {
    storage::Connection(data_.directory_path(), {})
        .execute("CREATE TRIGGER no BEFORE INSERT ON wakes BEGIN SELECT RAISE(ABORT, 'no'); END");
  }
  [[nodiscard]] bool dirty(const Wake& wake = {}) const {
    return commits_->dirty([&] { return wake; });
  }

  testing::ManualLoop loop_;
  hearth::testing::TempDirectory temporary_;
  storage::DataDirectory data_ = storage::DataDirectory::open(temporary_.path() / "data").value();
  storage::Directory directory_{data_.directory_path()};
  hearth::testing::RecordingLogger logger_;
  AgentFiles files_{data_, directory_, loop_.clock(), logger_};
  durable::WakeIndex wakes_{directory_};
  hearth::testing::SeededRandom random_{7};
  Metrics metrics_;
  ShardMetrics shard_metrics_{metrics_};
  PacedSteps steps_{loop_, 20};
  AlarmClock alarms_{{loop_, wakes_, steps_, shard_metrics_, random_}, {}, 1, 1};
  int heard_ = 0;
  std::optional<storage::AgentDatabase> database_;
  std::optional<AgentCommits> commits_;
};

TEST_P(AgentCommitsTest, P1_TheFirstCommitWithRowsListsTheAgent) {
  commits_->commit({});
  EXPECT_EQ(files_.kept(kUsualAgent), storage::Kept::kUnknown) << "it has written nothing";
  EXPECT_EQ(heard_, 0);
  write();
  EXPECT_TRUE(dirty());
  commits_->commit({});
  EXPECT_FALSE(dirty());
  EXPECT_EQ(files_.kept(kUsualAgent), storage::Kept::kInThisBoot);
  EXPECT_EQ(heard_, has_gate() ? 1 : 0) << "P3";
  write();
  commits_->commit({});
  EXPECT_EQ(heard_, has_gate() ? 1 : 0) << "it is listed once";
}

TEST_P(AgentCommitsTest, P2_ANearerWakeComesBeforeTheCommitAndALaterOneAfterIt) {
  write();
  commits_->commit({false, 1'000});
  EXPECT_EQ(stored(), (Wake{false, 1'000}));
  write();
  commits_->commit({true, 5'000});
  EXPECT_EQ(stored(), (Wake{true, 1'000})) << "without the commit the earlier row is due";
  const Wake later{false, 5'000};
  write();
  commits_->commit(later);
  EXPECT_EQ(stored(), has_gate() ? (Wake{true, 1'000}) : later) << "it waits for the device";
  commits_->all_durable(&later);
  EXPECT_EQ(stored(), later);
  EXPECT_EQ(files_.kept(kUsualAgent), storage::Kept::kOnDevice);
  commit({});
  EXPECT_TRUE(directory_.wakes().empty());
}

TEST_P(AgentCommitsTest, P2_WithoutANearerWakeInTheIndexNothingIsCommitted) {
  commits_->keep({false, 2'000});
  let_the_index_fail();
  write();
  EXPECT_THROW(commits_->commit({false, 1'000}), StorageError);
  EXPECT_TRUE(database_->dirty());
  EXPECT_EQ(stored(), (Wake{false, 2'000}));
  commits_->commit({false, 2'000});  // the index has it
  EXPECT_NO_THROW(commits_->keep({false, 2'000}));
  EXPECT_TRUE(logger_.events().empty());
  commit({false, 3'000});
  EXPECT_TRUE(logger_.contains("warn agent.wake_not_cleared class=Counter agent=a"));
  EXPECT_EQ(stored(), (Wake{false, 2'000}));
}

TEST_P(AgentCommitsTest, AtTheEndTheIndexHasTheMomentOfTheRows) {
  commits_->keep({true, 1'000});
  commits_->at_end({false, 2'000});
  EXPECT_EQ(alarms_.known(kUsualAgent), (Wake{true, 2'000})) << "what it worked on goes on";
  EXPECT_EQ(stored(), (Wake{true, 1'000})) << "on disk a nearer one may stay while it works";
  commits_->at_end({true, std::nullopt});
  EXPECT_EQ(alarms_.known(kUsualAgent), (Wake{true, 2'000})) << "something is due";
  commits_->keep({false, 1'000});
  commits_->at_end({});
  EXPECT_TRUE(directory_.wakes().empty());
}

TEST_P(AgentCommitsTest, BeginsWithWhatTheIndexHas) {
  wakes_.set(kUsualAgent, {false, 1'000});
  open();
  EXPECT_FALSE(dirty({false, 1'000}));
  EXPECT_EQ(dirty({false, 999}), has_gate());
}

TEST_P(AgentCommitsTest, P2_WithAGateANearerWakeAloneWaitsForACommit) {
  write();
  commits_->commit({false, 5'000});
  EXPECT_FALSE(dirty({false, 5'000}));
  EXPECT_EQ(dirty({false, 1'000}), has_gate());
}

TEST_P(AgentCommitsTest, P3_AWriteToTheDirectoryIsAwaitedUntilTheNextCommit) {
  commits_->directory_was_written(true);
  EXPECT_EQ(dirty(), has_gate());
  EXPECT_EQ(heard_, has_gate() ? 1 : 0);
  commits_->commit({});
  EXPECT_FALSE(dirty());
}

TEST_P(AgentCommitsTest, CloseSaysWhetherTheDirectoryIsToLearnOfTheFile) {
  write();
  commits_->commit({});
  EXPECT_EQ(commits_->close(), "");
  EXPECT_TRUE(commits_->kept_at_end());
  open();
  EXPECT_EQ(commits_->close(), "");
  EXPECT_EQ(database_->stored() && commits_->kept_at_end(), true) << "not on the device yet";
}

// As after a loss of host.db, in whose place an older one was put.
TEST_P(AgentCommitsTest, P1_AnAgentWithAFileAndNoEntryIsListedAgain) {
  commit({});
  ASSERT_TRUE(directory_.forget(kUsualAgent));
  open();
  ASSERT_TRUE(database_->stored());
  commits_->record();
  EXPECT_TRUE(directory_.contains(kUsualAgent)) << "before it writes anything";
  ASSERT_TRUE(directory_.forget(kUsualAgent));
  open();
  commit({});
  EXPECT_TRUE(directory_.contains(kUsualAgent));
}

TEST_P(AgentCommitsTest, WhatTheDirectoryIsKnownToListIsNeitherLookedUpNorWrittenAgain) {
  commit({});
  storage::Connection other(data_.directory_path(), {});
  const auto version = [&] { return other.query_integer("PRAGMA data_version"); };
  open();  // something of it is kept
  const std::int64_t before = version();
  ASSERT_TRUE(directory_.forget(kUsualAgent));
  const std::int64_t forgotten = version();
  ASSERT_NE(before, forgotten);
  commits_->record();
  EXPECT_FALSE(directory_.contains(kUsualAgent)) << "it was looked up";
  files_.record(kUsualAgent);  // whether anything is kept is unknown, as after a loss of power
  open();
  const std::int64_t listed = version();
  commits_->record();
  EXPECT_EQ(version(), listed) << "an entry that is there was written";
}

INSTANTIATE_TEST_SUITE_P(Gates, AgentCommitsTest, ::testing::Bool(),
                         [](const auto& of) { return of.param ? "Power" : "Process"; });

}  // namespace
}  // namespace hearth::runtime
