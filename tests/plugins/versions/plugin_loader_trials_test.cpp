// Later versions of a library that is served.
#include "plugins/versions/plugin_loader_fixture.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <thread>
#include <vector>

namespace hearth::plugins {
namespace {

using namespace testing;
using namespace std::chrono_literals;

class PluginVersionsTest : public PluginLoaderTest {
 protected:
  PluginVersionsTest() {
    install("plain", "plain.so");
    first_ = load();
    EXPECT_EQ(first_.plugins.size(), 1U);
  }
  [[nodiscard]] std::filesystem::path file() const { return plugins() / "plain.so"; }
  VersionReport install_version(std::string_view library) {
    install(library, "plain.so");
    return loader().load_version(file());
  }
  [[nodiscard]] std::string states() {
    std::string text;
    for (const GenerationInfo& each : loader().generations()) {
      text += each.version + " " + std::string(to_string(each.state)) + "; ";
    }
    return text;
  }

  LoadReport first_;
};

TEST_F(PluginVersionsTest, ANewVersionIsLoadedBesideTheOldOne) {
  const VersionReport report = install_version("plain_v2");
  ASSERT_TRUE(report.plugin);
  EXPECT_EQ(report.plugin->version, "2.0.0");
  EXPECT_EQ(report.plugin->generation, 2U);
  EXPECT_EQ(states(), "1.0.0 draining; 2.0.0 current; ");
  hearth::testing::TestAgent agent(1);
  EXPECT_TRUE(first_.plugins[0].classes[0]->create(agent, "x", "{}")) << "the old one still works";
  EXPECT_TRUE(report.plugin->classes[0]->create(agent, "x", "{}"));
}

TEST_F(PluginVersionsTest, TheSameBytesAreNoNewVersion) {
  const VersionReport report = install_version("plain");
  EXPECT_FALSE(report.refusal);
  EXPECT_FALSE(report.plugin);
  EXPECT_EQ(states(), "1.0.0 current; ");
}

TEST_F(PluginVersionsTest, ABadFileLeavesTheVersionThatIsServed) {
  const VersionReport report = install_version("crash_in_init");
  EXPECT_FALSE(report.plugin);
  ASSERT_TRUE(report.refusal);
  EXPECT_EQ(report.refusal->rule, "P1");
  EXPECT_EQ(states(), "1.0.0 current; ");
}

// versions.json cannot be replaced, and not for want of room.
TEST_F(PluginVersionsTest, S2_AVersionWithoutAWayBackIsNotRunWhateverTheReason) {
  std::filesystem::remove(directory_.path() / "versions.json");
  std::filesystem::create_directories(directory_.path() / "versions.json/in the way");
  const VersionReport report = install_version("plain_v2");
  EXPECT_FALSE(report.plugin);
  ASSERT_TRUE(report.refusal);
  EXPECT_EQ(report.refusal->rule, "S2");
  EXPECT_EQ(states(), "1.0.0 current; ");
  std::filesystem::remove_all(directory_.path() / "versions.json");
  EXPECT_TRUE(loader().load_version(file()).plugin) << "it was only put off";
}

TEST_F(PluginVersionsTest, AnOldVersionIsUnmappedOnceNoAgentOfItLives) {
  VersionReport report = install_version("plain_v2");
  EXPECT_EQ(loader().retire_unused(), 0U) << "the first report still holds its class";
  EXPECT_EQ(states(), "1.0.0 draining; 2.0.0 current; ");
  first_.plugins.clear();
  EXPECT_EQ(states(), "1.0.0 retired; 2.0.0 current; ");
  EXPECT_EQ(loader().retire_unused(), 1U);
  EXPECT_EQ(states(), "2.0.0 current; ");
  EXPECT_EQ(staged_files(), 1U);
}

TEST_F(PluginVersionsTest, AVersionThatWillNotGoIsPinnedWithTheReason) {
  install("busy", "busy.so");
  VersionReport busy = loader().load_version(plugins() / "busy.so");
  ASSERT_TRUE(busy.plugin);
  busy.plugin.reset();
  loader().forget_file(plugins() / "busy.so");
  EXPECT_EQ(loader().retire_unused(), 0U);
  EXPECT_NE(states().find("pinned"), std::string::npos) << states();
  EXPECT_EQ(logger_.count("plugin.pinned"), 1U);
  EXPECT_EQ(loader().retire_unused(), 0U);
  EXPECT_EQ(logger_.count("plugin.pinned"), 1U) << "one line for a library";
}

TEST_F(PluginVersionsTest, R3_WhatWouldStayInMemoryIsNotReplacedOnceTooManyStay) {
  options_.max_pinned = 2;
  loader_.reset();  // made with other options
  install("no_delete", "plain.so");
  first_ = load();
  const auto replace = [this](std::string_view library) {
    first_.plugins.clear();
    VersionReport report = install_version(library);
    const bool is_replaced = report.plugin.has_value();
    report.plugin.reset();
    loader().retire_unused();
    return is_replaced;
  };
  EXPECT_EQ(loader().pinned(), 0U);
  EXPECT_TRUE(replace("plain"));
  EXPECT_EQ(loader().pinned(), 1U);
  EXPECT_TRUE(replace("no_delete"));
  EXPECT_EQ(loader().pinned(), 1U) << "the version between them has gone";
  EXPECT_TRUE(replace("plain"));
  EXPECT_EQ(loader().pinned(), 2U);

  const VersionReport refused = install_version("no_delete");
  ASSERT_TRUE(refused.refusal);
  EXPECT_EQ(refused.refusal->rule, "R3");
  EXPECT_NE(refused.refusal->reason.find("restart"), std::string::npos) << refused.refusal->reason;
  EXPECT_EQ(loader().pinned(), 2U);
  // A library that was unloaded completely is replaced as usual, and the new one is served.
  install("busy", "busy.so");
  EXPECT_TRUE(loader().load_version(plugins() / "busy.so").plugin);
}

TEST_F(PluginVersionsTest, AVersionThatIsTakenBackGivesWayToTheOneBefore) {
  VersionReport report = install_version("plain_v2");
  ASSERT_TRUE(report.plugin);
  loader().take_back(file(), report.plugin->generation, "it failed to start");
  report.plugin.reset();
  EXPECT_EQ(states(), "1.0.0 current; 2.0.0 retired; ");
  const VersionReport again = loader().load_version(file());
  ASSERT_TRUE(again.refusal);
  EXPECT_EQ(again.refusal->rule, "R1");
  EXPECT_NE(again.refusal->reason.find("it failed to start"), std::string::npos);
}

TEST_F(PluginVersionsTest, WhatIsTakenBackLeavesClassesToWhoeverHasThemByThen) {
  VersionReport report = install_version("plain_v2");
  ASSERT_TRUE(report.plugin);
  loader().forget_file(file());
  install("plain_v2", "other.so");
  ASSERT_TRUE(loader().load_version(plugins() / "other.so").plugin);
  loader().take_back(file(), report.plugin->generation, "it failed to start");
  const VersionReport same = loader().load_version(plugins() / "other.so");
  EXPECT_FALSE(same.plugin || same.refusal);
}

TEST_F(PluginVersionsTest, TheClassesOfAFileThatIsGoneAreFreeForAnother) {
  install("plain_v2", "other.so");
  EXPECT_EQ(loader().load_version(plugins() / "other.so").refusal->rule, "C1");
  loader().forget_file(file());
  EXPECT_TRUE(loader().load_version(plugins() / "other.so").plugin);
}

TEST_F(PluginVersionsTest, AFileThatComesBackIsLoadedAnew) {
  loader().forget_file(file());
  const VersionReport report = loader().load_version(file());
  ASSERT_TRUE(report.plugin);
  EXPECT_EQ(report.plugin->generation, 2U);
}

TEST(LoaderThreadTest, RunsEverythingOnOneOtherThread) {
  LoaderThread thread;
  std::thread::id first;
  std::thread::id second;
  thread.run([&first] { first = std::this_thread::get_id(); });
  thread.run([&second] { second = std::this_thread::get_id(); });
  EXPECT_EQ(first, second);
  EXPECT_NE(first, std::this_thread::get_id());
}

TEST(LoaderThreadTest, AnExceptionComesOutOfRun) {
  LoaderThread thread;
  EXPECT_THROW(thread.run([] { throw StorageError("x"); }), StorageError);
  bool ran = false;
  thread.run([&ran] { ran = true; });
  EXPECT_TRUE(ran);
}

TEST(LoaderThreadTest, CallersTakeTurns) {
  LoaderThread thread;
  int count = 0;  // touched on the loader's thread only
  std::vector<std::thread> callers;
  for (int caller = 0; caller < 4; ++caller) {
    callers.emplace_back([&thread, &count] {
      for (int round = 0; round < 100; ++round) thread.run([&count] { ++count; });
    });
  }
  for (std::thread& caller : callers) caller.join();
  EXPECT_EQ(count, 400);
}

TEST_F(PluginVersionsTest, AVersionThatWasTakenBackIsNotTheOneBeforeTheNext) {
  const VersionReport second = install_version("plain_v2");
  ASSERT_TRUE(second.plugin);
  loader().take_back(file(), second.plugin->generation, "it failed to start");
  const VersionReport third =
      install_version("with_schema");  // an agent of the second still leaves
  ASSERT_TRUE(third.plugin);
  loader().take_back(file(), third.plugin->generation, "this one too");
  EXPECT_EQ(states(), "1.0.0 current; 2.0.0 draining; 1.0.0 draining; ");
  ASSERT_TRUE(ledger_.find(file()));
  EXPECT_EQ(ledger_.find(file())->on_trial, "") << "the first one is proven";
}

TEST_F(PluginVersionsTest, AWayBackThatCannotBeLoadedLeavesTheVersionOnTrial) {
  const VersionReport report = install_version("plain_v2");
  ASSERT_TRUE(report.plugin);
  std::filesystem::remove_all(directory_.path() / "trials");
  EXPECT_FALSE(loader().go_back(file(), "its agents fail").plugin);
  EXPECT_EQ(logger_.count("plugin.no_version_before"), 1U);
  EXPECT_EQ(states(), "1.0.0 draining; 2.0.0 current; ");
  ASSERT_TRUE(ledger_.find(file()));
  EXPECT_EQ(ledger_.find(file())->on_trial, report.plugin->sha256)
      << "the next start serves it too";
  EXPECT_FALSE(loader().refusal(file(), report.plugin->sha256));
}

}  // namespace
}  // namespace hearth::plugins
