// Which writes to a WAL reach the system. Reading on a full disk:
// tests/process/full_disk_start_test.cpp.
#include "storage/wal_file.hpp"

#include <sqlite3.h>

#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

namespace hearth::storage {
namespace {

// The system under the WAL. One at a time: SQLite's functions know no test.
struct FakeSystem {
  std::string content;
  std::vector<std::string> calls;
  bool is_full = false;
};
FakeSystem* present = nullptr;  // NOLINT(cppcoreguidelines-avoid-non-const-global-variables)

sqlite3_io_methods fake_methods() {
  sqlite3_io_methods methods{};
  methods.iVersion = 1;
  methods.xClose = [](sqlite3_file*) {
    present->calls.emplace_back("close");
    return SQLITE_OK;
  };
  methods.xRead = [](sqlite3_file*, void* to, int bytes, sqlite3_int64 offset) {
    present->calls.emplace_back("read");
    std::memcpy(to, present->content.data() + offset, static_cast<std::size_t>(bytes));
    return SQLITE_OK;
  };
  methods.xWrite = [](sqlite3_file*, const void* from, int bytes, sqlite3_int64 offset) {
    const auto count = static_cast<std::size_t>(bytes);
    const auto at = static_cast<std::size_t>(offset);
    present->calls.push_back(std::to_string(bytes) + " at " + std::to_string(offset));
    if (present->is_full) return SQLITE_FULL;
    if (present->content.size() < at + count) present->content.resize(at + count);
    std::memcpy(present->content.data() + at, from, count);
    return SQLITE_OK;
  };
  methods.xTruncate = [](sqlite3_file*, sqlite3_int64) {
    present->calls.emplace_back("truncate");
    return SQLITE_OK;
  };
  methods.xSync = [](sqlite3_file*, int) {
    present->calls.emplace_back("sync");
    return SQLITE_OK;
  };
  methods.xFileSize = [](sqlite3_file*, sqlite3_int64* size) {
    present->calls.emplace_back("size");
    *size = static_cast<sqlite3_int64>(present->content.size());
    return SQLITE_OK;
  };
  methods.xFileControl = [](sqlite3_file*, int, void*) { return SQLITE_NOTFOUND; };
  return methods;
}
const sqlite3_io_methods kFakeMethods = fake_methods();

using Calls = std::vector<std::string>;

class WalFileTest : public ::testing::Test {
 protected:
  WalFileTest() {
    present = &system_;
    vfs_.szOsFile = sizeof(sqlite3_file);
    vfs_.xOpen = [](sqlite3_vfs*, const char*, sqlite3_file* file, int, int*) {
      file->pMethods = &kFakeMethods;
      return SQLITE_OK;
    };
    EXPECT_EQ(open_wal(&vfs_, "a.db-wal", file(), SQLITE_OPEN_WAL, nullptr), SQLITE_OK);
  }
  ~WalFileTest() override { present = nullptr; }
  WalFileTest(const WalFileTest&) = delete;
  WalFileTest& operator=(const WalFileTest&) = delete;

  sqlite3_file* file() { return reinterpret_cast<sqlite3_file*>(memory_.data()); }
  // As SQLite does; `letter` fills it.
  int write(char letter, int bytes, sqlite3_int64 offset) {
    const std::string text(static_cast<std::size_t>(bytes), letter);
    return file()->pMethods->xWrite(file(), text.data(), bytes, offset);
  }
  void write_frame(char letter, int frame, int page = 4096) {
    const sqlite3_int64 at = 32 + sqlite3_int64{frame} * (24 + page);
    EXPECT_EQ(write(letter, 24, at), SQLITE_OK);
    EXPECT_EQ(write(letter, page, at + 24), SQLITE_OK);
  }

  FakeSystem system_;
  sqlite3_vfs vfs_{};
  alignas(std::max_align_t) std::array<std::byte, kWalFileBytes + sizeof(sqlite3_file)> memory_{};
};

TEST_F(WalFileTest, AFrameThatFollowsIsOneWrite) {
  write('h', 32, 0);
  write_frame('a', 0);
  write_frame('b', 1);
  EXPECT_EQ(system_.calls, (Calls{"32 at 0", "4120 at 32", "4120 at 4152"}));
  EXPECT_EQ(system_.content,
            std::string(32, 'h') + std::string(4120, 'a') + std::string(4120, 'b'));
}

TEST_F(WalFileTest, WhatDoesNotFollowIsWrittenAtOnce) {
  write_frame('a', 3);
  EXPECT_EQ(system_.calls, (Calls{"24 at 12392", "4096 at 12416"})) << "of a WAL that was opened";
  system_.calls.clear();
  write_frame('b', 0);
  write('c', 24, 32);
  EXPECT_EQ(system_.calls, (Calls{"24 at 32", "4096 at 56", "24 at 32"}))
      << "a header that is written anew";
}

TEST_F(WalFileTest, PagesOfAnotherSizeComeAsSqliteWritesThem) {
  write('h', 32, 0);
  write_frame('a', 0, 1024);
  EXPECT_EQ(system_.calls, (Calls{"32 at 0", "24 at 32", "1024 at 56"}));
}

TEST_F(WalFileTest, WhateverComesInsteadOfThePageComesAfterTheHeader) {
  std::array<char, 56> text{};
  sqlite3_int64 size = 0;
  const sqlite3_io_methods& methods = *file()->pMethods;
  struct Case {
    const char* name;
    std::function<int()> call;
  };
  const std::vector<Case> cases{
      {"read", [&] { return methods.xRead(file(), text.data(), 56, 0); }},
      {"size", [&] { return methods.xFileSize(file(), &size); }},
      {"sync", [&] { return methods.xSync(file(), 0); }},
      {"truncate", [&] { return methods.xTruncate(file(), 0); }},
      {"32 at 0", [&] { return write('h', 32, 0); }},
      {"close", [&] { return methods.xClose(file()); }},
  };
  for (const Case& each : cases) {
    write('h', 32, 0);
    write('a', 24, 32);
    system_.calls.clear();
    EXPECT_EQ(each.call(), SQLITE_OK);
    EXPECT_EQ(system_.calls, (Calls{"24 at 32", each.name}));
  }
  EXPECT_EQ(size, 56);
  EXPECT_EQ(text.back(), 'a');
}

TEST_F(WalFileTest, AFullDiskIsToldWithThePageAndNothingWaitsAfterwards) {
  write('h', 32, 0);
  write('a', 24, 32);
  system_.is_full = true;
  EXPECT_EQ(write('a', 4096, 56), SQLITE_FULL);
  system_.is_full = false;
  system_.calls.clear();
  write_frame('b', 0);
  EXPECT_EQ(system_.calls, (Calls{"24 at 32", "4096 at 56"}));
}

}  // namespace
}  // namespace hearth::storage
