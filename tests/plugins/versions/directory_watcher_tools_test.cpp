// The tools with which people install libraries, each really run.

#include "plugins/test_libraries.hpp"
#include "plugins/versions/directory_watcher_fixture.hpp"
#include "support/server_process.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <mutex>
#include <ostream>
#include <string>
#include <vector>

namespace hearth::plugins {
namespace {

using namespace std::chrono_literals;
using Command = std::vector<std::string>;

// What is run in the directory that holds new.so, object.o and plugins/a.so.
struct Tool {
  std::string name;
  Command command;
  Command reference;  // makes expected.so, what plugins/a.so is to be

  friend std::ostream& operator<<(std::ostream& out, const Tool& tool) { return out << tool.name; }
};

class DirectoryWatcherToolsTest : public testing::DirectoryWatcherTest,
                                  public ::testing::WithParamInterface<Tool> {
 protected:
  DirectoryWatcherToolsTest() {
    // No tool stands still for so long between two of its steps, on a busy machine either.
    options_.quiet_time = 1s;
    options_.longest_wait = 1h;
    std::filesystem::copy_file(testing::built_library("plain"), path("new.so"));
    std::filesystem::copy_file(testing::built_library("plain"), plugin("a.so"));
    write(path("text"), "what the object holds");
    run({"ld", "-r", "-b", "binary", "-o", "object.o", "text"});
  }

  void run(const Command& command) const {
    hearth::testing::ServerProcess process(command, directory_.path());
    const hearth::testing::Ending ending = process.wait();
    ASSERT_EQ(ending, hearth::testing::Ending{.status = 0}) << command.front() << process.log();
  }
  // Returns once changed_ has all reports, and none is left.
  void tell_all() {
    write(plugin("last.so"), "1");
    ASSERT_TRUE(wait_for_change("last.so"));
  }
};

TEST_P(DirectoryWatcherToolsTest, PutsALibraryInPlaceAsOneChangeThatIsWhole) {
  run(GetParam().reference);
  const std::string expected = read(path("expected.so"));
  ASSERT_FALSE(expected.empty());
  keep_contents_of("a.so");
  watch();
  run(GetParam().command);
  ASSERT_TRUE(wait_for_change("a.so"));
  tell_all();
  EXPECT_EQ(changed_, (Names{"a.so", "last.so"})) << "told once, and nothing else";
  EXPECT_EQ(gone_, Names{});
  ASSERT_EQ(contents_.size(), 1U);
  EXPECT_TRUE(contents_.front() == expected)
      << contents_.front().size() << " bytes instead of " << expected.size();
}

const Command kCopy{"cp", "new.so", "expected.so"};

INSTANTIATE_TEST_SUITE_P(
    Tools, DirectoryWatcherToolsTest,
    ::testing::Values(
        Tool{"Cp", {"cp", "new.so", "plugins/a.so"}, kCopy},
        Tool{"CpThatKeepsTimes", {"cp", "-p", "new.so", "plugins/a.so"}, kCopy},
        Tool{"CpThatRemovesFirst", {"cp", "--remove-destination", "new.so", "plugins/a.so"}, kCopy},
        Tool{"Mv", {"mv", "new.so", "plugins/a.so"}, kCopy},
        Tool{"Install", {"install", "-m", "644", "new.so", "plugins/a.so"}, kCopy},
        Tool{"Strip", {"strip", "plugins/a.so"}, {"strip", "-o", "expected.so", "new.so"}},
        Tool{"Ld",
             {"ld", "-shared", "-o", "plugins/a.so", "object.o"},
             {"ld", "-shared", "-o", "expected.so", "object.o"}}),
    [](const auto& tool) { return tool.param.name; });

using DirectoryWatcherLinkTest = DirectoryWatcherToolsTest;

// Where links are not followed. Loading then refuses it (rule F1).
TEST_F(DirectoryWatcherLinkTest, LnPutsALinkThereThatIsToldAndItsTargetIsNot) {
  options_.quiet_time = 100ms;
  watch();
  run({"ln", "-sf", "../new.so", "plugins/a.so"});
  ASSERT_TRUE(wait_for_change("a.so"));
  EXPECT_TRUE(std::filesystem::is_symlink(plugin("a.so")));
  write(path("new.so"), "something else");
  tell_all();
  EXPECT_EQ(changed_, (Names{"a.so", "last.so"}));
}

}  // namespace
}  // namespace hearth::plugins
