// Which checkpoints wait for a backup, and in which order agents are copied.
#include "storage/copy_mark.hpp"

#include "storage/agent_database.hpp"
#include "storage/one_line_sql.hpp"
#include "support/simulated_disk.hpp"
#include "support/temp_directory.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <future>
#include <optional>
#include <string>

namespace hearth::storage {
namespace {

const AgentKey kA{"Counter", "a"};
const AgentKey kB{"Counter", "b"};
const AgentKey kNew{"Counter", "new"};

bool may_checkpoint(CopyMark& mark, const AgentKey& key) {
  return CopyMark::Checkpoint(&mark, key).is_allowed();
}

void commit(CopyMark& mark, const AgentKey& key, int pages, std::uint32_t& seen) {
  mark.committing(key, [pages] { return pages; }, seen);
}

TEST(CopyMarkTest, CheckpointsOfAgentsThatAreNotCopiedYetWaitAndBringThemForward) {
  CopyMark mark;
  EXPECT_TRUE(may_checkpoint(mark, kA));
  mark.hold();
  EXPECT_FALSE(may_checkpoint(mark, kNew));
  mark.set();
  mark.wait_for({kA, kB});
  EXPECT_TRUE(may_checkpoint(mark, kNew)) << "it did not exist at the mark";
  EXPECT_FALSE(may_checkpoint(mark, kB));
  EXPECT_EQ(mark.next(), kB);
  EXPECT_FALSE(may_checkpoint(mark, kB)) << "while it is copied";
  EXPECT_EQ(mark.next(), kA);
  EXPECT_TRUE(may_checkpoint(mark, kB));
  EXPECT_EQ(mark.next(), std::nullopt);
  EXPECT_TRUE(may_checkpoint(mark, kA));
}

TEST(CopyMarkTest, AMarkWaitsForCheckpointsInProgress) {
  CopyMark mark;
  std::optional<CopyMark::Checkpoint> checkpoint(std::in_place, &mark, kA);
  auto held = std::async(std::launch::async, [&mark] { mark.hold(); });
  EXPECT_EQ(held.wait_for(std::chrono::milliseconds(30)), std::future_status::timeout);
  checkpoint.reset();
  held.get();
  mark.end();
  EXPECT_TRUE(may_checkpoint(mark, kA));
}

TEST(CopyMarkTest, TheFirstCommitAfterTheMarkSaysHowLongTheWalWas) {
  CopyMark mark;
  std::uint32_t seen = 0;
  commit(mark, kA, 3, seen);
  mark.hold();
  mark.set();
  mark.wait_for({kA});
  EXPECT_EQ(mark.next(), kA);
  EXPECT_EQ(mark.pages(), std::nullopt);
  for (const int pages : {5, 6}) commit(mark, kA, pages, seen);
  std::uint32_t seen_by_the_next_database = 0;
  commit(mark, kA, 7, seen_by_the_next_database);
  EXPECT_EQ(mark.pages(), 5);
  mark.end();
  // A database that has not seen the mark before commits while the next one is not set yet.
  std::uint32_t seen_by_a_later_one = 0;
  mark.hold();
  commit(mark, kA, 8, seen_by_a_later_one);
  mark.set();
  commit(mark, kA, 9, seen_by_a_later_one);
  mark.wait_for({kA});
  EXPECT_EQ(mark.next(), kA);
  EXPECT_EQ(mark.pages(), 9);
}

TEST(CopyMarkTest, FilesAreRemovedAfterTheirCopyWhichComesEarly) {
  CopyMark mark;
  EXPECT_TRUE(mark.may_remove(kA)) << "no backup";
  mark.hold();
  EXPECT_FALSE(mark.may_remove(kB)) << "the agents to copy are not known yet";
  mark.set();
  mark.wait_for({kA, kB});
  EXPECT_TRUE(mark.may_remove(kNew));
  EXPECT_EQ(mark.next(), kB);
  EXPECT_FALSE(mark.may_remove(kB)) << "while it is copied";
  EXPECT_EQ(mark.next(), kA);
  EXPECT_TRUE(mark.may_remove(kB));
  mark.end();  // the backup has failed
  EXPECT_TRUE(mark.may_remove(kA));
}

// What the disk has for this agent: its state, with the first pages of the WAL.
std::string state_with(const std::filesystem::path& file, int pages) {
  const hearth::testing::TempDirectory copies;
  const auto copy = copies.path() / "copy.db";
  std::filesystem::copy_file(file, copy);
  if (pages > 0) {
    std::filesystem::copy_file(file.native() + "-wal", copy.native() + "-wal");
    std::filesystem::resize_file(copy.native() + "-wal",
                                 32 + static_cast<std::uintmax_t>(pages) * (24 + 4096));
  }
  return AgentDatabase(copy, kA, {}).load_state().value_or("none");
}

TEST(CopyMarkTest, TheFileAndTheFirstPagesOfTheWalHaveTheStateAtTheMark) {
  const hearth::testing::TempDirectory directory;
  const auto file = directory.path() / "a.db";
  CopyMark mark;
  AgentDatabase database(file, kA, {.checkpoint_pages = 8, .copy_mark = &mark});
  const auto store = [&](const std::string& state) {
    commit_state(database, state);
    if (database.checkpoint_due()) EXPECT_EQ(database.checkpoint(), "");
  };
  for (int i = 0; i < 20; ++i) store(std::to_string(i));
  mark.hold();
  mark.set();
  mark.wait_for({kA});
  EXPECT_EQ(mark.next(), kA);
  for (int i = 20; i < 60; ++i) store(std::to_string(i));
  ASSERT_TRUE(mark.pages());
  EXPECT_EQ(state_with(file, *mark.pages()), "19");
  database.close();  // leaves the WAL
  EXPECT_EQ(state_with(file, *mark.pages()), "19");
  AgentDatabase next(file, kA, {.copy_mark = &mark});
  commit_state(next, "last");
  EXPECT_EQ(state_with(file, *mark.pages()), "19");
  EXPECT_EQ(mark.next(), std::nullopt);
  mark.end();
  next.close();
  EXPECT_EQ(state_with(file, 0), "last");
}

// A WAL that is restarted keeps its length, and a database that finds one has no commit to ask.
TEST(CopyMarkTest, WhatAnEarlierUseOfTheWalHasLeftDoesNotCount) {
  const hearth::testing::TempDirectory directory;
  const auto file = directory.path() / "a.db";
  CopyMark mark;
  {
    AgentDatabase database(file, kA, {.checkpoint_pages = 20, .copy_mark = &mark});
    const auto store = [&](const std::string& state) { commit_state(database, state); };
    for (int i = 0; !database.checkpoint_due(); ++i) store(std::to_string(i));
    EXPECT_EQ(database.checkpoint(), "");
    store("before");
    mark.hold();
    database.close();  // after an earlier, or a failed one
  }
  ASSERT_GT(std::filesystem::file_size(file.native() + "-wal"), 20U * 4096);
  mark.set();
  mark.wait_for({kA});
  EXPECT_EQ(mark.next(), kA);
  AgentDatabase database(file, kA, {.copy_mark = &mark});
  commit_state(database, "after");
  EXPECT_EQ(state_with(file, mark.pages().value()), "before");
}

// A file of an agent that had no checkpoint before: its first page is only in the WAL's company.
TEST(CopyMarkTest, WhatIsClosedDuringABackupSurvivesALossOfPower) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    const hearth::testing::TempDirectory directory;
    hearth::testing::SimulatedDisk disk(directory.path(), "simulated-disk");
    hearth::testing::SimulatedDisk::Random random(seed);
    const auto file = directory.path() / "a.db";
    CopyMark mark;
    AgentDatabase database(file, kA, {.copy_mark = &mark, .vfs = disk.vfs()});
    commit_state(database, "acknowledged");
    mark.hold();
    database.close();
    EXPECT_EQ(disk.sync_directory(directory.path()), 0);
    disk.cut();
    disk.restore(random);
    AgentDatabase later(file, kA, {.must_exist = true, .vfs = disk.vfs()});
    EXPECT_EQ(later.load_state(), "acknowledged") << "seed " << seed;
  }
}

}  // namespace
}  // namespace hearth::storage
