#include "storage/server_store.hpp"

#include "base/error.hpp"
#include "storage/connection.hpp"
#include "support/temp_directory.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <vector>

namespace hearth::storage {
namespace {

using Counts = std::vector<ClassCount>;

class ServerStoreTest : public ::testing::Test {
 protected:
  testing::TempDirectory directory_;
  const std::filesystem::path file_ = directory_.path() / "server.db";
};

TEST_F(ServerStoreTest, LookingMakesNoFile) {
  EXPECT_EQ(ServerStore(file_).class_counts(), Counts());
  EXPECT_FALSE(std::filesystem::exists(file_));
}

TEST_F(ServerStoreTest, WhatIsStoredIsReadByTheNextOne) {
  const ClassCount a{.agent_class = "A", .counter = "x", .window = 5, .used = 6};
  const ClassCount b{.agent_class = "B", .counter = "x", .window = -7, .used = 8};
  const ClassCount later{.agent_class = "A", .counter = "x", .window = 9, .used = 1};
  {
    ServerStore store(file_);
    store.store({b, a});
    EXPECT_EQ(store.class_counts(), (Counts{a, b}));
  }
  ServerStore store(file_);
  EXPECT_EQ(store.class_counts(), (Counts{a, b}));
  store.store({later});
  EXPECT_EQ(store.class_counts(), (Counts{later, b})) << "the last window alone is kept";
}

TEST_F(ServerStoreTest, NothingIsLeftBesideTheFile) {
  ServerStore store(file_);
  store.store({{.agent_class = "A", .counter = "x", .window = 1, .used = 1}});
  int files = 0;
  for (const auto& each : std::filesystem::directory_iterator(directory_.path()))
    files += each.path() == file_ ? 1 : 100;
  EXPECT_EQ(files, 1);
}

TEST_F(ServerStoreTest, AFileThatCannotBeMadeIsAFailureAndLaterWorks) {
  std::filesystem::create_directory(file_);
  ServerStore store(file_);
  EXPECT_THROW(store.store({}), StorageError);
  std::filesystem::remove(file_);
  const ClassCount a{.agent_class = "A", .counter = "x", .window = 5, .used = 6};
  store.store({a});
  EXPECT_EQ(store.class_counts(), Counts{a});
}

TEST_F(ServerStoreTest, AFileOfAnotherFormatIsRefused) {
  {
    Connection connection(file_, {.create = true});
    connection.execute("PRAGMA user_version = 99");
  }
  ServerStore store(file_);
  EXPECT_THROW(static_cast<void>(store.class_counts()), StorageError);
}

}  // namespace
}  // namespace hearth::storage
