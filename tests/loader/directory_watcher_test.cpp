// What people do to files in a plugin directory, done to real ones.
#include "loader/directory_watcher.hpp"

#include "support/recording_logger.hpp"
#include "support/temp_directory.hpp"

#include <sys/resource.h>
#include <sys/stat.h>

#include <gtest/gtest.h>

#include <algorithm>
#include <condition_variable>
#include <fstream>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

namespace hearth::loader {
namespace {

using namespace std::chrono_literals;
using Names = std::vector<std::string>;

class DirectoryWatcherTest : public ::testing::Test {
 protected:
  DirectoryWatcherTest() {
    options_.directories = {{.path = path("plugins")}};
    options_.quiet_time = 20ms;
    options_.poll_time = 10s;  // only news count
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
  [[nodiscard]] DirectoryImage image() const { return look_at(options_.directories); }
  void watch() {
    watcher_ = std::make_unique<DirectoryWatcher>(
        options_, image(),
        [this](const FileChanges& changes) {
          const std::scoped_lock lock(mutex_);
          for (const auto& file : changes.changed) changed_.push_back(file.filename());
          for (const auto& file : changes.gone) gone_.push_back(file.filename());
          ++calls_;
          told_.notify_all();
        },
        logger_);
  }
  template <class Condition>
  bool wait_until(Condition condition) {
    std::unique_lock lock(mutex_);
    return told_.wait_for(lock, 10s, condition);
  }
  bool wait_for_change(const std::string& name) {
    return wait_until([&] { return std::ranges::find(changed_, name) != changed_.end(); });
  }
  bool wait_for_gone(const std::string& name) {
    return wait_until([&] { return std::ranges::find(gone_, name) != gone_.end(); });
  }

  hearth::testing::TempDirectory directory_;
  hearth::testing::RecordingLogger logger_;
  WatchOptions options_;
  std::mutex mutex_;
  std::condition_variable told_;
  Names changed_;
  Names gone_;
  int calls_ = 0;
  std::unique_ptr<DirectoryWatcher> watcher_;
};

TEST_F(DirectoryWatcherTest, TellsOfANewFile) {
  watch();
  write(plugin("a.so"), "1");
  EXPECT_TRUE(wait_for_change("a.so"));
}

TEST_F(DirectoryWatcherTest, TellsOfAFileWrittenInPlace) {
  write(plugin("a.so"), "1");
  watch();
  write(plugin("a.so"), "22");
  EXPECT_TRUE(wait_for_change("a.so"));
}

TEST_F(DirectoryWatcherTest, TellsOfAFileMovedOverAnotherAsOneChange) {
  write(plugin("a.so"), "1");
  write(path("new"), "2");
  watch();
  std::filesystem::rename(path("new"), plugin("a.so"));
  ASSERT_TRUE(wait_for_change("a.so"));
  EXPECT_EQ(gone_, Names{});
}

TEST_F(DirectoryWatcherTest, TellsOfARemovedFile) {
  write(plugin("a.so"), "1");
  watch();
  std::filesystem::remove(plugin("a.so"));
  EXPECT_TRUE(wait_for_gone("a.so"));
}

TEST_F(DirectoryWatcherTest, TellsOfAChangedMode) {
  write(plugin("a.so"), "1");
  watch();
  ASSERT_EQ(::chmod(plugin("a.so").c_str(), 0600), 0);
  EXPECT_TRUE(wait_for_change("a.so")) << "a refused file may have become acceptable";
}

TEST_F(DirectoryWatcherTest, ACopyInManyStepsIsOneChange) {
  options_.quiet_time = 500ms;
  watch();
  {
    std::ofstream copy(plugin("a.so"), std::ios::binary);
    for (int part = 0; part < 1000; ++part) copy << std::string(1000, 'x') << std::flush;
  }
  ASSERT_TRUE(wait_for_change("a.so"));
  EXPECT_EQ(calls_, 1);
}

TEST_F(DirectoryWatcherTest, WhatALinkLeadsToIsToldOnceItIsQuietThoughItMakesNoNews) {
  options_.directories.front().follows_links = true;
  options_.quiet_time = 500ms;
  options_.longest_wait = 1h;
  options_.poll_time = 1ms;
  write(path("target"), "1");
  std::filesystem::create_symlink("../target", plugin("a.so"));
  watch();
  {
    // For many times the time between two looks, and never quiet.
    std::ofstream slow(path("target"), std::ios::binary);
    const auto end = std::chrono::steady_clock::now() + 100ms;
    while (std::chrono::steady_clock::now() < end) slow << 'x' << std::flush;
  }
  ASSERT_TRUE(wait_for_change("a.so"));
  EXPECT_EQ(calls_, 1);
}

TEST_F(DirectoryWatcherTest, TellsAtLastOfADirectoryThatIsNeverQuiet) {
  options_.quiet_time = 5s;
  options_.longest_wait = 50ms;
  watch();
  write(plugin("a.so"), "1");
  const auto deadline = std::chrono::steady_clock::now() + 10s;
  bool told = false;
  for (int part = 0; !told && std::chrono::steady_clock::now() < deadline; ++part) {
    write(plugin("noise.txt"), std::to_string(part));
    const std::scoped_lock lock(mutex_);
    told = !changed_.empty();
  }
  EXPECT_TRUE(told);
}

TEST_F(DirectoryWatcherTest, LeavesOtherFilesAndHiddenOnesAlone) {
  watch();
  write(plugin("readme.txt"), "1");
  write(plugin(".a.so.swp.so"), "1");
  write(plugin("b.so"), "1");
  ASSERT_TRUE(wait_for_change("b.so"));
  EXPECT_EQ(changed_, Names{"b.so"});
}

TEST_F(DirectoryWatcherTest, FindsADirectoryThatIsMadeLater) {
  options_.directories.push_back({.path = path("later")});
  options_.poll_time = 20ms;
  watch();
  std::filesystem::create_directory(path("later"));
  write(path("later") / "a.so", "1");
  EXPECT_TRUE(wait_for_change("a.so"));
}

TEST_F(DirectoryWatcherTest, FollowsTheNameWhenADirectoryIsReplaced) {
  write(plugin("a.so"), "1");
  options_.poll_time = 20ms;
  watch();
  std::filesystem::rename(path("plugins"), path("old"));
  ASSERT_TRUE(wait_for_gone("a.so"));
  std::filesystem::create_directory(path("plugins"));
  write(plugin("b.so"), "1");
  EXPECT_TRUE(wait_for_change("b.so"));
}

TEST_F(DirectoryWatcherTest, TellsWhatChangedBeforeItBeganSinceTheImageItWasGiven) {
  const DirectoryImage before = image();
  write(plugin("a.so"), "1");
  options_.poll_time = 20ms;
  watcher_ = std::make_unique<DirectoryWatcher>(
      options_, before,
      [this](const FileChanges& changes) {
        const std::scoped_lock lock(mutex_);
        for (const auto& file : changes.changed) changed_.push_back(file.filename());
        told_.notify_all();
      },
      logger_);
  EXPECT_TRUE(wait_for_change("a.so"));
}

TEST_F(DirectoryWatcherTest, LooksAtOnceWhenAsked) {
  options_.quiet_time = 1h;
  options_.longest_wait = 1h;
  watch();
  write(plugin("a.so"), "1");
  watcher_->look_now();
  EXPECT_TRUE(wait_for_change("a.so"));
}

TEST(DifferenceTest, IsEmptyForTheSameImage) {
  const DirectoryImage image{{"a.so", FileStamp{.inode = 1}}};
  EXPECT_TRUE(difference(image, image).none());
}

TEST(DifferenceTest, NamesNewChangedAndGoneFiles) {
  const DirectoryImage before{{"a.so", FileStamp{.inode = 1}}, {"b.so", FileStamp{.inode = 2}}};
  const DirectoryImage after{{"b.so", FileStamp{.inode = 3}}, {"c.so", FileStamp{.inode = 4}}};
  const FileChanges changes = difference(before, after);
  EXPECT_EQ(changes.changed, (std::vector<std::filesystem::path>{"b.so", "c.so"}));
  EXPECT_EQ(changes.gone, (std::vector<std::filesystem::path>{"a.so"}));
}

TEST(MergedTest, OfEachFileTheLastStateCounts) {
  const FileChanges first{.changed = {"a.so", "b.so"}, .gone = {"c.so"}};
  const FileChanges then{.changed = {"c.so", "d.so"}, .gone = {"a.so"}};
  const FileChanges all = merged(first, then);
  EXPECT_EQ(all.changed, (std::vector<std::filesystem::path>{"b.so", "c.so", "d.so"}));
  EXPECT_EQ(all.gone, (std::vector<std::filesystem::path>{"a.so"}));
}

TEST(LookAtTest, EachDirectoryHasItsExtensions) {
  const hearth::testing::TempDirectory directory;
  const std::filesystem::path plugins = directory.path() / "plugins";
  const std::filesystem::path classes = directory.path() / "classes";
  for (const auto& each : {plugins, classes}) {
    std::filesystem::create_directory(each);
    for (const char* name : {"a.so", "b.yaml", "c.yml"}) std::ofstream(each / name) << "1";
  }
  const DirectoryImage image =
      look_at({{.path = plugins}, {.path = classes, .extensions = {".yaml", ".yml"}}});
  EXPECT_EQ(image.size(), 3U);
  for (const auto& file : {plugins / "a.so", classes / "b.yaml", classes / "c.yml"})
    EXPECT_TRUE(image.contains(file)) << file;
}

TEST(LookAtTest, ALinkIsFollowedOnlyWhereThatIsAskedFor) {
  const hearth::testing::TempDirectory directory;
  std::ofstream(directory.path() / "one") << "1";
  std::ofstream(directory.path() / "other") << "two";
  std::filesystem::create_directory(directory.path() / "links");
  const std::filesystem::path link = directory.path() / "links" / "a.so";
  std::filesystem::create_symlink("../current", link);
  std::filesystem::create_symlink("one", directory.path() / "current");
  WatchedDirectory links{.path = link.parent_path()};
  const DirectoryImage as_link = look_at({links});
  links.follows_links = true;
  const DirectoryImage as_file = look_at({links});
  std::filesystem::remove(directory.path() / "current");
  EXPECT_EQ(look_at({links}), as_link) << "one that leads nowhere is there";
  std::filesystem::create_symlink("other", directory.path() / "current");
  EXPECT_FALSE(difference(as_file, look_at({links})).none());
  links.follows_links = false;
  EXPECT_TRUE(difference(as_link, look_at({links})).none());
}

TEST(LookAtTest, IsBoundedByTheNumberOfFiles) {
  const hearth::testing::TempDirectory directory;
  for (const char* name : {"a.so", "b.so", "c.so"}) std::ofstream(directory.path() / name) << "1";
  EXPECT_EQ(look_at({{.path = directory.path(), .max_files = 2}}).size(), 2U);
}

// Opening anything fails while an object lives, as in a process whose clients use up all descriptors.
class NoDescriptors {
 public:
  NoDescriptors() {
    ::getrlimit(RLIMIT_NOFILE, &before_);
    const rlimit none{.rlim_cur = 0, .rlim_max = before_.rlim_max};
    ::setrlimit(RLIMIT_NOFILE, &none);
  }
  ~NoDescriptors() { ::setrlimit(RLIMIT_NOFILE, &before_); }
  NoDescriptors(const NoDescriptors&) = delete;
  NoDescriptors& operator=(const NoDescriptors&) = delete;

 private:
  rlimit before_{};
};

TEST(LookAtTest, WhatCannotBeListedIsNotGone) {
  const hearth::testing::TempDirectory directory;
  std::ofstream(directory.path() / "a.so") << "1";
  const std::vector<WatchedDirectory> directories{{.path = directory.path()}};
  DirectoryImage known = look_at(directories);
  known["/elsewhere/b.so"] = FileStamp{.inode = 2};
  DirectoryImage now;
  {
    const NoDescriptors none;
    now = look_at(directories, known);
  }
  EXPECT_TRUE(now.contains(directory.path() / "a.so"));
  EXPECT_FALSE(now.contains("/elsewhere/b.so")) << "of another directory";
  std::filesystem::remove_all(directory.path());
  EXPECT_TRUE(look_at(directories, known).empty()) << "a directory that is gone is";
}

}  // namespace
}  // namespace hearth::loader
