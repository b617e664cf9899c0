#include "server/watched_files.hpp"

#include "support/temp_directory.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <condition_variable>
#include <filesystem>
#include <fstream>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

namespace hearth::server {
namespace {

class WatchedFilesTest : public ::testing::Test {
 protected:
  WatchedFilesTest() {
    for (const char* name : {"tokens", "keys.json", "c.pem"}) write(name, "first");
    config_.auth.token_file = path("tokens");
    config_.auth.keys_file = path("keys.json");
    config_.net.tls = {.certificate = path("c.pem"), .key = path("c.pem")};
    config_.reload.quiet_time = std::chrono::milliseconds(10);
    known_ = WatchedFiles::image(config_);
  }

  [[nodiscard]] std::filesystem::path path(const std::string& name) const {
    return directory_.path() / name;
  }
  // In one step, as an operator should.
  void write(const std::string& name, const std::string& text) const {
    std::ofstream(path("." + name)) << text;
    std::filesystem::rename(path("." + name), path(name));
  }
  void watch() {
    std::vector<FileGroup> groups{
        {.files = {config_.auth.token_file, config_.auth.keys_file, {}},
         .read_again = [this] { note("proofs"); }},
        {.files = {config_.net.tls.certificate}, .read_again = [this] { note("certificate"); }}};
    watched_ = std::make_unique<WatchedFiles>(std::move(groups), known_, config_.reload, *logger_);
  }
  void note(const std::string& group) {
    const std::lock_guard lock(mutex_);
    read_.push_back(group);
    changed_.notify_all();
  }
  // What was read again so far, once it is so much.
  std::vector<std::string> after(std::size_t count) {
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, std::chrono::seconds(10), [&] { return read_.size() >= count; });
    return read_;
  }

  testing::TempDirectory directory_;
  config::ServerConfig config_;
  plugins::DirectoryImage known_;
  std::unique_ptr<Logger> logger_ = make_null_logger();
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::string> read_;
  std::unique_ptr<WatchedFiles> watched_;  // last: its thread uses the rest
};

TEST_F(WatchedFilesTest, AGroupIsReadAgainWhenOneOfItsFilesChanges) {
  using Read = std::vector<std::string>;
  watch();
  write("keys.json", "second");
  EXPECT_EQ(after(1), Read({"proofs"}));
  write("another.json", "of no interest");
  write("c.pem", "second");
  EXPECT_EQ(after(2), Read({"proofs", "certificate"}));
  std::filesystem::remove(path("tokens"));
  write("keys.json", "third");
  EXPECT_EQ(after(3), Read({"proofs", "certificate", "proofs"}));
  write("tokens", "third");
  EXPECT_EQ(after(4).back(), "proofs");
}

TEST_F(WatchedFilesTest, WhatChangedSinceItWasReadCounts) {
  write("tokens", "second");
  watch();
  EXPECT_EQ(after(1), std::vector<std::string>({"proofs"}));
}

TEST_F(WatchedFilesTest, AHiddenFileAmongAnyNumberOfOthersIsSeen) {
  for (int i = 0; i < 1'100; ++i) std::ofstream(path("other" + std::to_string(i))) << "x";
  config_.auth.token_file = path(".tokens");
  write(".tokens", "first");
  known_ = WatchedFiles::image(config_);
  watch();
  write(".tokens", "second");
  EXPECT_EQ(after(1), std::vector<std::string>({"proofs"}));
}

TEST_F(WatchedFilesTest, OnCommandAllAreReadAndWithoutAWatchNothingElseIs) {
  config_.reload.watch = false;
  watch();
  write("tokens", "second");
  watched_->reload();
  EXPECT_EQ(after(2), std::vector<std::string>({"proofs", "certificate"}));
}

}  // namespace
}  // namespace hearth::server
