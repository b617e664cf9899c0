#pragma once
// A watched directory of real files, and what the watcher has reported.

#include "plugins/versions/directory_watcher.hpp"
#include "support/recording_logger.hpp"
#include "support/temp_directory.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

namespace hearth::plugins::testing {

class DirectoryWatcherTest : public ::testing::Test {
 protected:
  using Names = std::vector<std::string>;

  DirectoryWatcherTest() {
    options_.directories = {{.path = path("plugins")}};
    options_.quiet_time = std::chrono::milliseconds(20);
    options_.poll_time = std::chrono::seconds(10);  // only events of the directory count
    std::filesystem::create_directory(path("plugins"));
  }
  ~DirectoryWatcherTest() override { watcher_.reset(); }

  [[nodiscard]] std::filesystem::path path(std::string_view name) const {
    return directory_.path() / name;
  }
  [[nodiscard]] std::filesystem::path plugin(std::string_view name) const {
    return path("plugins") / name;
  }
  static void write(const std::filesystem::path& file, std::string_view text) {
    std::ofstream(file, std::ios::binary) << text;
  }
  // Empty if it cannot be read.
  static std::string read(const std::filesystem::path& file) {
    std::ifstream in(file, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
  }
  [[nodiscard]] DirectoryImage image() const { return look_at(options_.directories); }
  void watch() { watch_since(image()); }
  void watch_since(const DirectoryImage& known) {
    watcher_ = std::make_unique<DirectoryWatcher>(
        options_, known,
        [this](const FileChanges& changes) {
          if (when_told_) when_told_(changes);
          const std::scoped_lock lock(mutex_);
          for (const auto& file : changes.changed) changed_.push_back(file.filename());
          for (const auto& file : changes.gone) gone_.push_back(file.filename());
          ++calls_;
          told_.notify_all();
        },
        logger_);
  }
  // Keeps the content of plugin(name) at each reported change.
  void keep_contents_of(const std::string& name) {
    when_told_ = [this, file = plugin(name)](const FileChanges& changes) {
      if (std::ranges::find(changes.changed, file) == changes.changed.end()) return;
      std::string contents = read(file);
      const std::scoped_lock lock(mutex_);
      contents_.push_back(std::move(contents));
    };
  }

  template <class Condition>
  bool wait_until(Condition condition) {
    std::unique_lock lock(mutex_);
    return told_.wait_for(lock, std::chrono::seconds(10), condition);
  }
  bool wait_for_change(const std::string& name) {
    return wait_until([&] { return std::ranges::find(changed_, name) != changed_.end(); });
  }
  bool wait_for_gone(const std::string& name) {
    return wait_until([&] { return std::ranges::find(gone_, name) != gone_.end(); });
  }
  bool wait_for_contents(const std::string& contents) {
    return wait_until([&] { return !contents_.empty() && contents_.back() == contents; });
  }

  hearth::testing::TempDirectory directory_;
  hearth::testing::RecordingLogger logger_;
  WatchOptions options_;
  std::function<void(const FileChanges&)> when_told_;  // on the watcher's thread, before it counts
  std::mutex mutex_;
  std::condition_variable told_;
  Names changed_;
  Names gone_;
  Names contents_;  // of the files that keep_contents_of() names
  int calls_ = 0;
  std::unique_ptr<DirectoryWatcher> watcher_;
};

}  // namespace hearth::plugins::testing
