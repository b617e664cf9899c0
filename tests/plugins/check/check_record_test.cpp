#include "plugins/check/check_record.hpp"

#include "base/files.hpp"
#include "json/json.hpp"
#include "plugins/admission/required_check.hpp"
#include "support/manual_clock.hpp"
#include "support/temp_directory.hpp"

#include <hearth/abi.h>

#include <sys/stat.h>
#include <unistd.h>

#include <gtest/gtest.h>

#include <filesystem>
#include <string>

namespace hearth::plugins {
namespace {

namespace fs = std::filesystem;
using hearth::testing::ManualClock;
using hearth::testing::TempDirectory;

class CheckRecordTest : public ::testing::Test {
 protected:
  CheckRecordTest() {
    report_.sha256 = std::string(64, 'b');
    report_.plugin = "it";
    CheckResult result;
    result.id = "E9";
    result.verdict = CheckVerdict::kSkipped;
    result.reason = "it is excluded";
    report_.results.push_back(result);
  }
  void write() {
    const auto written = write_check_record(data_, report_, clock_);
    ASSERT_TRUE(written) << written.error().message;
  }
  std::string refusal(const std::string& sha256) {
    const auto found = require_check_record(data_ / kCheckedDirectory, sha256, ::geteuid());
    if (!found) return "";
    EXPECT_EQ(found->rule, "K1");
    EXPECT_EQ(found->severity, Severity::kRefusal);
    EXPECT_NE(found->reason.find("hearth check --data " + data_.native()), std::string::npos)
        << found->reason;
    return found->reason;
  }
  [[nodiscard]] fs::path file() const {
    return data_ / kCheckedDirectory / (report_.sha256 + ".ok.json");
  }

  TempDirectory directory_;
  fs::path data_ = directory_.path() / "new" / "data";
  ManualClock clock_;
  CheckReport report_;
};

TEST_F(CheckRecordTest, WhatHasPassedIsKnownByItsContent) {
  write();
  EXPECT_EQ(refusal(report_.sha256), "");
  EXPECT_NE(refusal(std::string(64, 'c')).find("have passed"), std::string::npos);
}

TEST_F(CheckRecordTest, SaysWhatWasLeftOut) {
  write();
  const auto record = parse_json(read_file(file(), 10'000).value(), 8).value();
  EXPECT_EQ(record["not_passed"][0]["id"], "E9");
  EXPECT_EQ(record["abi_major"], HEARTH_ABI_MAJOR);
}

TEST_F(CheckRecordTest, IsItsOwnersAlone) {
  write();
  struct stat status{};
  ASSERT_EQ(::stat(file().c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777U, 0600U);
  ASSERT_EQ(::stat(file().parent_path().c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777U, 0700U);
}

TEST_F(CheckRecordTest, WhatOthersCouldHaveWrittenDoesNotCount) {
  write();
  fs::permissions(file(), fs::perms{0666});
  EXPECT_NE(refusal(report_.sha256).find("other users could"), std::string::npos);
  fs::permissions(file(), fs::perms{0600});
  EXPECT_EQ(refusal(report_.sha256), "");
  fs::permissions(file().parent_path(), fs::perms{0777});
  EXPECT_NE(refusal(report_.sha256).find("other users could"), std::string::npos);
}

TEST_F(CheckRecordTest, ADamagedRecordAndOneForOtherBytesDoNotCount) {
  write();
  const fs::path other = file().parent_path() / (std::string(64, 'd') + ".ok.json");
  fs::copy_file(file(), other);
  EXPECT_NE(refusal(std::string(64, 'd')).find("damaged"), std::string::npos);
  for (const char* const text : {"", "{", "[]", "null", "{\"sha256\":1}"}) {
    ASSERT_TRUE(write_file_atomically(file(), text, fs::perms{0600}));
    EXPECT_NE(refusal(report_.sha256).find("damaged"), std::string::npos) << text;
  }
}

TEST_F(CheckRecordTest, APlaceThatCannotBeMadeIsAnError) {
  ASSERT_TRUE(write_file_atomically(directory_.path() / "new", "a file"));
  EXPECT_FALSE(write_check_record(data_, report_, clock_));
}

}  // namespace
}  // namespace hearth::plugins
