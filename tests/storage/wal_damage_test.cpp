#include "storage/wal_damage.hpp"

#include "storage/connection.hpp"
#include "support/temp_directory.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <ios>
#include <string>

namespace hearth::storage {
namespace {

namespace fs = std::filesystem;

constexpr std::uintmax_t kFrame = 24 + 4096;
constexpr std::uintmax_t kHeader = 32;

// A database whose WAL holds three commits of one frame each, as a killed process leaves it.
class WalDamageTest : public ::testing::Test {
 protected:
  WalDamageTest() {
    const fs::path running = temporary_.path() / "running.db";
    Connection connection(running, {.create = true});
    connection.execute("PRAGMA journal_mode=WAL; PRAGMA wal_autocheckpoint=0; CREATE TABLE t(n)");
    prepare(connection);
    for (int i = 0; i < 3; ++i) connection.execute("INSERT INTO t VALUES(1)");
    fs::copy_file(running, database_);
    fs::copy_file(running.native() + "-wal", wal_);
  }

  // Earlier frames leave the WAL, and some of them stay behind the end of the new ones.
  static void prepare(Connection& connection) {
    for (int i = 0; i < 8; ++i) connection.execute("INSERT INTO t VALUES(1)");
    connection.execute("PRAGMA wal_checkpoint(RESTART)");
  }
  // Byte `at` of the WAL gets another value. Of a frame: 0 is the first one.
  void damage(std::uintmax_t at) const {
    std::fstream file(wal_, std::ios::binary | std::ios::in | std::ios::out);
    file.seekg(static_cast<std::streamoff>(at));
    const int byte = file.get();
    file.seekp(static_cast<std::streamoff>(at));
    file.put(static_cast<char>(byte ^ 0x55));
  }
  void damage_frame(std::uintmax_t frame, std::uintmax_t at) const {
    damage(kHeader + frame * kFrame + at);
  }

  const testing::TempDirectory temporary_;
  const fs::path database_ = temporary_.path() / "a.db";
  const fs::path wal_ = database_.native() + "-wal";
};

TEST_F(WalDamageTest, AWholeOneHasNoneWhateverLiesBehindItsEnd) {
  ASSERT_GT(fs::file_size(wal_), kHeader + 3 * kFrame);
  EXPECT_EQ(damage_of_wal(database_), "");
  damage_frame(5, 100);
  EXPECT_EQ(damage_of_wal(database_), "");
}

TEST_F(WalDamageTest, OneThatIsAbsentEmptyOrZeroHasNone) {
  fs::resize_file(wal_, 0);
  EXPECT_EQ(damage_of_wal(database_), "");
  fs::resize_file(wal_, kHeader + kFrame);
  EXPECT_EQ(damage_of_wal(database_), "");
  fs::remove(wal_);
  EXPECT_EQ(damage_of_wal(database_), "");
}

TEST_F(WalDamageTest, AHeader) {
  for (const std::uintmax_t at : {0U, 9U, 17U, 30U}) {
    damage(at);
    EXPECT_EQ(damage_of_wal(database_), "its header is damaged, so all of it is ignored") << at;
    damage(at);
  }
}

TEST_F(WalDamageTest, AFrameThatLaterCommitsFollow) {
  for (const std::uintmax_t frame : {0U, 1U}) {
    for (const std::uintmax_t at : {5U, 9U, 20U, 2000U}) {
      damage_frame(frame, at);
      EXPECT_EQ(damage_of_wal(database_), "it is damaged at byte " +
                                              std::to_string(kHeader + frame * kFrame) +
                                              ", and what was written behind that is ignored")
          << at;
      damage_frame(frame, at);
    }
  }
}

TEST_F(WalDamageTest, ACommitThatWasCutOffIsNoDamage) {
  damage_frame(2, 2000);
  EXPECT_EQ(damage_of_wal(database_), "");
  fs::resize_file(wal_, kHeader + 2 * kFrame + 1000);
  EXPECT_EQ(damage_of_wal(database_), "");
}

}  // namespace
}  // namespace hearth::storage
