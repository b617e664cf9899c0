#pragma once
// Syncs that tests hold back, let fail, and count. They write nothing to any device.

#include "storage/sync_calls.hpp"

#include <cerrno>
#include <condition_variable>
#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

namespace hearth::testing {

// Threads   All members may be called from any thread.
class FakeSyncCalls final : public storage::SyncCalls {
 public:
  // From now on every call waits, until let_go().
  void hold() {
    const std::scoped_lock lock(mutex_);
    held_ = true;
  }
  void let_go() {
    {
      const std::scoped_lock lock(mutex_);
      held_ = false;
    }
    changed_.notify_all();
  }
  // Returns when a call waits because of hold().
  void wait_until_somebody_waits() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return waiting_ > 0; });
  }

  // What each call returns, by its name as in calls(). Absent: 0.
  void answer_with(std::function<int(const std::string& call)> answer) {
    const std::scoped_lock lock(mutex_);
    answer_ = std::move(answer);
  }
  // Whether sync_everything() covers files that are opened from now on.
  void cover(bool covered) {
    const std::scoped_lock lock(mutex_);
    covered_ = covered;
  }

  // The calls: "data <file>", "names <directory>", "everything".
  [[nodiscard]] std::vector<std::string> take_calls() {
    const std::scoped_lock lock(mutex_);
    return std::exchange(calls_, {});
  }

  std::unique_ptr<storage::SyncedFile> open(const std::filesystem::path& path) override {
    const std::scoped_lock lock(mutex_);
    return std::make_unique<File>(*this, path, covered_);
  }
  std::unique_ptr<storage::SyncedFile> open_first_page(const std::filesystem::path& path) override {
    const std::ofstream made(path, std::ios::app);
    return open(path);
  }
  int sync_directory(const std::filesystem::path& path) override {
    return call("names " + path.native());
  }
  int sync_everything() override { return call("everything"); }

 private:
  class File final : public storage::SyncedFile {
   public:
    File(FakeSyncCalls& calls, std::filesystem::path path, bool covered)
        : calls_(calls), path_(std::move(path)), covered_(covered) {}
    int sync_data() override { return calls_.call("data " + path_.native()); }
    [[nodiscard]] bool covered_by_sync_everything() const override { return covered_; }

   private:
    FakeSyncCalls& calls_;
    const std::filesystem::path path_;
    const bool covered_;
  };

  int call(const std::string& name) {
    std::unique_lock lock(mutex_);
    calls_.push_back(name);
    ++waiting_;
    if (held_) changed_.notify_all();
    changed_.wait(lock, [this] { return !held_; });
    --waiting_;
    return answer_ ? answer_(name) : 0;
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::string> calls_;
  std::function<int(const std::string&)> answer_;
  int waiting_ = 0;
  bool held_ = false;
  bool covered_ = false;
};

}  // namespace hearth::testing
