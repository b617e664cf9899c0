#include "storage/data_format.hpp"

#include "base/error.hpp"
#include "storage/connection.hpp"
#include "support/storage_error_of.hpp"
#include "support/temp_directory.hpp"

#include <gtest/gtest.h>

#include <string>

namespace hearth::storage {
namespace {

constexpr const char* kOneTable = "CREATE TABLE a(x); INSERT INTO a VALUES(1)";

class DataFormatTest : public ::testing::Test {
 protected:
  void set_format(std::int64_t format) {
    connection_.execute(("PRAGMA user_version=" + std::to_string(format)).c_str());
  }
  std::string refusal() {
    return hearth::testing::storage_error_of([&] { prepare_tables(connection_, kOneTable); });
  }

  const testing::TempDirectory temp_;
  Connection connection_{temp_.path() / "a.db", {.create = true}};
};

TEST_F(DataFormatTest, ANewFileGetsTheTablesOnceAndTheFormat) {
  check_format(connection_);
  prepare_tables(connection_, kOneTable);
  prepare_tables(connection_, kOneTable);
  EXPECT_EQ(connection_.query_integer("SELECT count(*) FROM a"), 1);
  EXPECT_EQ(connection_.query_integer("PRAGMA user_version"), kDataFormat);
}

TEST_F(DataFormatTest, WhatFailsLeavesNothing) {
  EXPECT_THROW(prepare_tables(connection_, "CREATE TABLE b(x); SELECT nonsense"), StorageError);
  EXPECT_EQ(connection_.query_integer("SELECT count(*) FROM sqlite_schema"), 0);
  prepare_tables(connection_, kOneTable);  // no transaction was left open
}

TEST_F(DataFormatTest, AnotherFormatIsRefusedAndLeftAsItIs) {
  connection_.execute("CREATE TABLE agents(x); INSERT INTO agents VALUES(7)");
  for (const std::int64_t format :
       {std::int64_t{0}, kDataFormat + 1, std::int64_t{14}, std::int64_t{-1}}) {
    set_format(format);
    EXPECT_EQ(refusal(), (temp_.path() / "a.db").string() + " has data format " +
                             std::to_string(format) + ", and this server reads only format " +
                             std::to_string(kDataFormat) +
                             ": a later version of Hearth wrote it, or one from before 1.0. "
                             "Nothing in it was changed. Serve this data directory with the "
                             "version that wrote it, restore an earlier backup, or begin with an "
                             "empty directory");
    EXPECT_THROW(check_format(connection_), StorageError);
    EXPECT_EQ(connection_.query_integer("SELECT x FROM agents"), 7);
    EXPECT_EQ(connection_.query_integer("SELECT count(*) FROM sqlite_schema"), 1);
    EXPECT_EQ(connection_.query_integer("PRAGMA user_version"), format);
  }
}

}  // namespace
}  // namespace hearth::storage
