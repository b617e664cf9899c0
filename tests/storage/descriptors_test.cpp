#include "storage/descriptors.hpp"

#include "base/error.hpp"
#include "storage/agent_database.hpp"
#include "storage/one_line_sql.hpp"
#include "storage/sync_calls.hpp"
#include "support/few_descriptors.hpp"
#include "support/temp_directory.hpp"

#include <gtest/gtest.h>

namespace hearth::storage {
namespace {

using hearth::testing::FewDescriptors;

TEST(DescriptorsTest, TellsHowManyMoreFilesMayBeOpenedAndKeepsNone) {
  const FewDescriptors five(5);
  for (int i = 0; i < 3; ++i) {
    EXPECT_TRUE(can_open_files(5));
    EXPECT_FALSE(can_open_files(6));
  }
}

TEST(DescriptorsTest, ADatabaseThatFindsNoneSaysSoAndOpensOnceThereAreSome) {
  const hearth::testing::TempDirectory directory;
  const std::filesystem::path path = directory.path() / "a.db";
  {
    AgentDatabase database(path, {"C", "a"});
    commit_state(database, "1");
    database.close();
  }
  for (const unsigned left : {0U, 1U}) {  // for the file; for its WAL
    const FewDescriptors few(left);
    EXPECT_THROW(AgentDatabase(path, {"C", "a"}), OutOfDescriptors) << left;
  }
  EXPECT_EQ(AgentDatabase(path, {"C", "a"}).load_state(), "1");
}

TEST(DescriptorsTest, AFileThatCannotBeOpenedForAnotherReasonIsAnotherError) {
  const hearth::testing::TempDirectory directory;
  std::filesystem::create_directories(directory.path() / "a.db" / "in the way");
  try {
    AgentDatabase database(directory.path() / "a.db", {"C", "a"});
    database.store_state("1");
    FAIL() << "a directory is no database";
  } catch (const OutOfDescriptors&) {
    FAIL() << "there are enough";
  } catch (const StorageError& failure) {
    EXPECT_STRNE(failure.what(), "");
  }
}

TEST(DescriptorsTest, WhatIsToBeSyncedNeedsOneToo) {
  const hearth::testing::TempDirectory directory;
  SystemSyncCalls calls(directory.path());
  const FewDescriptors none(0);
  EXPECT_THROW((void)calls.open(directory.path()), OutOfDescriptors);
}

}  // namespace
}  // namespace hearth::storage
