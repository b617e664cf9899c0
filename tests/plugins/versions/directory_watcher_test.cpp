// Changes that people make to files in a plugin directory, made to real files.
#include "plugins/versions/directory_watcher.hpp"

#include "base/file_descriptor.hpp"
#include "plugins/versions/directory_watcher_fixture.hpp"
#include "support/few_descriptors.hpp"
#include "support/temp_directory.hpp"

#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <future>
#include <mutex>
#include <set>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace hearth::plugins {
namespace {

using namespace std::chrono_literals;
using testing::DirectoryWatcherTest;

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
  watch_since(before);
  EXPECT_TRUE(wait_for_change("a.so"));
}

TEST_F(DirectoryWatcherTest, ACopyThatStallsIsToldWhileItStallsAndAgainWhenItIsWhole) {
  keep_contents_of("a.so");
  write(plugin("a.so"), "the version before");
  watch();
  const std::string half(70'000, 'x');
  std::ofstream copy(plugin("a.so"), std::ios::binary | std::ios::trunc);
  copy << half << std::flush;
  ASSERT_TRUE(wait_for_contents(half)) << "nobody can know that more is to come";
  copy << half << std::flush;
  copy.close();
  EXPECT_TRUE(wait_for_contents(half + half));
}

TEST_F(DirectoryWatcherTest, ACopyThatIsNeverQuietIsToldInBetweenAndAgainWhenItIsWhole) {
  options_.quiet_time = 200ms;
  options_.longest_wait = 50ms;
  keep_contents_of("a.so");
  watch();
  std::ofstream copy(plugin("a.so"), std::ios::binary);
  std::string whole;
  const auto deadline = std::chrono::steady_clock::now() + 10s;
  for (bool told = false; !told && std::chrono::steady_clock::now() < deadline;) {
    copy << 'x' << std::flush;
    whole += 'x';
    const std::scoped_lock lock(mutex_);
    told = calls_ > 0;
  }
  ASSERT_GT(calls_, 0);
  copy << "end" << std::flush;
  copy.close();
  EXPECT_TRUE(wait_for_contents(whole + "end"));
}

// Events of the directory, in a queue of its own that is not read meanwhile.
class Witness {
 public:
  explicit Witness(const std::filesystem::path& directory) {
    if (::inotify_add_watch(queue_.get(), directory.c_str(), IN_ALL_EVENTS) < 0)
      throw std::runtime_error("the directory cannot be watched");
  }
  struct News {
    std::set<std::string> names;
    bool overflow = false;
  };
  [[nodiscard]] News read_all() const {
    News news;
    alignas(inotify_event) std::array<char, 65'536> bytes{};
    for (ssize_t got = 0; (got = ::read(queue_.get(), bytes.data(), bytes.size())) > 0;) {
      for (std::size_t at = 0; std::cmp_less(at, got);) {
        const auto* const event = reinterpret_cast<const inotify_event*>(bytes.data() + at);
        if (event->len > 0) news.names.emplace(event->name);
        news.overflow = news.overflow || (event->mask & IN_Q_OVERFLOW) != 0;
        at += sizeof(inotify_event) + event->len;
      }
    }
    return news;
  }

 private:
  FileDescriptor queue_{::inotify_init1(IN_NONBLOCK | IN_CLOEXEC)};
};

// More events than the kernel keeps in an unread queue.
void fill_queues(const std::filesystem::path& one, const std::filesystem::path& other) {
  std::size_t limit = 0;
  std::ifstream("/proc/sys/fs/inotify/max_queued_events") >> limit;
  ASSERT_GT(limit, 0U);
  // Alternately: the kernel merges two equal events in a row.
  for (std::size_t i = 0; i <= limit; ++i)
    ASSERT_EQ(::chmod((i % 2 == 0 ? one : other).c_str(), 0600), 0);
}

TEST_F(DirectoryWatcherTest, AQueueThatOverflowsLosesNoChange) {
  for (const char* name : {"changed.so", "removed.so", "one.txt", "other.txt"})
    write(plugin(name), "1");
  std::promise<void> entered;
  std::promise<void> go_on;
  when_told_ = [&, first = true](const FileChanges&) mutable {
    if (!std::exchange(first, false)) return;
    entered.set_value();
    go_on.get_future().wait();
  };
  watch();
  write(plugin("first.so"), "1");
  entered.get_future().wait();  // the watcher reads nothing now
  const Witness witness(path("plugins"));
  fill_queues(plugin("one.txt"), plugin("other.txt"));
  write(plugin("new.so"), "1");
  write(plugin("changed.so"), "22");
  std::filesystem::remove(plugin("removed.so"));
  const Witness::News news = witness.read_all();
  go_on.set_value();

  EXPECT_TRUE(news.overflow);
  EXPECT_EQ(news.names, (std::set<std::string>{"one.txt", "other.txt"})) << "the others are lost";
  ASSERT_TRUE(wait_until([&] { return calls_ == 2; }));
  EXPECT_EQ(changed_, (Names{"first.so", "changed.so", "new.so"}));
  EXPECT_EQ(gone_, Names{"removed.so"});
  write(plugin("later.so"), "1");
  EXPECT_TRUE(wait_for_change("later.so")) << "and the watch goes on";
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

TEST(LookAtTest, WhatCannotBeListedIsNotGone) {
  const hearth::testing::TempDirectory directory;
  std::ofstream(directory.path() / "a.so") << "1";
  const std::vector<WatchedDirectory> directories{{.path = directory.path()}};
  DirectoryImage known = look_at(directories);
  known["/elsewhere/b.so"] = FileStamp{.inode = 2};
  DirectoryImage now;
  {
    const hearth::testing::FewDescriptors none(0);
    now = look_at(directories, known);
  }
  EXPECT_TRUE(now.contains(directory.path() / "a.so"));
  EXPECT_FALSE(now.contains("/elsewhere/b.so")) << "of another directory";
  std::filesystem::remove_all(directory.path());
  EXPECT_TRUE(look_at(directories, known).empty()) << "a directory that is gone is";
}

TEST(LookAtTest, ADirectoryThatIsNamedTwiceIsLookedAtOnce) {
  const hearth::testing::TempDirectory directory;
  const WatchedDirectory first{.path = directory.path() / "plugins"};
  WatchedDirectory again{.path = directory.path() / "linked"};
  std::filesystem::create_directory(first.path);
  std::filesystem::create_directory_symlink("plugins", again.path);
  for (const char* name : {"a.so", "b.yaml"}) std::ofstream(first.path / name) << "1";
  EXPECT_EQ(look_at({first, again}), look_at({first}));
  again.extensions = {".yaml"};
  EXPECT_EQ(look_at({first, again}).size(), 2U) << "for other files";
}

}  // namespace
}  // namespace hearth::plugins
