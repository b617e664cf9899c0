// `hearth dev` on a project whose "compiler" copies a library of this build.
#include "process/versioned_fixture.hpp"

namespace hearth::testing {
namespace {

class DevTest : public ProcessTest {
 protected:
  DevTest() {
    put("CMakeLists.txt",
        "cmake_minimum_required(VERSION 3.25)\n"
        "project(dev_test LANGUAGES NONE)\n"
        "set(linked source)\n"
        "include(source.cmake)\n"
        "add_custom_command(OUTPUT plugins/versioned.so DEPENDS ${source} source.cmake\n"
        "  COMMAND sh -c \"cd ${CMAKE_SOURCE_DIR}; test ! -e next || mv next source.cmake\"\n"
        "  COMMAND ${CMAKE_COMMAND} -E make_directory plugins\n"
        "  COMMAND ${CMAKE_COMMAND} -E rm -f plugins/versioned.so\n"
        "  COMMAND ${CMAKE_COMMAND} -E copy ${${linked}} plugins/versioned.so VERBATIM)\n"
        "add_custom_target(hearth_dev DEPENDS plugins/versioned.so)\n");
  }
  // As an author saves another text.
  void save(const std::string& library) {
    put("source.cmake", "set(source " + built::agent(library).string() + ")\n");
  }
  // What compiles and does not link: the linker has removed its output by then.
  void save_what_does_not_link() {
    put("source.cmake",
        "set(source " + built::agent("versioned-2").string() + ")\nset(linked nothing)\n");
  }
  [[nodiscard]] std::unique_ptr<ServerProcess> develop() const {
    auto dev = run({"dev", "--listen", "127.0.0.1:0", "--log-format", "human"});
    dev->wait_until_ready();
    return dev;
  }
};

TEST_F(DevTest, ServesWhatItHasBuiltAndWhatIsSavedLaterToTheSameClient) {
  save("versioned-1");
  auto dev = develop();
  {
    VersionedClient client(*dev, "a", "1.0.0");
    save("versioned-2");
    dev->wait_for_log("hearth dev: source.cmake changed");
    dev->wait_for_log("hearth dev: built versioned.so in ", 2);
    dev->wait_for_log("reload.done");
    EXPECT_EQ(client.call("version"), "2.0.0");
  }
  EXPECT_EQ(dev->stop(), kClean);
}

TEST_F(DevTest, WhatIsSavedWhileABuildRunsIsBuiltToo) {
  put("next", "set(source " + built::agent("versioned-2").string() + ")\n");
  save("versioned-1");  // its build puts the other one into its place
  auto dev = develop();
  {
    dev->wait_for_log("hearth dev: built versioned.so in ", 2);
    dev->wait_for_log("reload.done");
    VersionedClient client(*dev, "a", "2.0.0");
  }
  EXPECT_EQ(dev->stop(), kClean);
}

TEST_F(DevTest, WhatDoesNotBuildIsToldAndTheVersionBeforeGoesOn) {
  save("versioned-1");
  auto dev = develop();
  {
    VersionedClient client(*dev, "a");
    save("no-such-library");
    dev->wait_for_log("hearth dev: not built");
    EXPECT_TRUE(contains(dev->log(), "no-such-library")) << "what the tool said";
    EXPECT_EQ(client.call("version"), "1.0.0");
    save("versioned-2");
    dev->wait_for_log("reload.done");
    EXPECT_EQ(client.call("version"), "2.0.0");
  }
  EXPECT_EQ(dev->stop(), kClean);
}

TEST_F(DevTest, WhatDoesNotLinkTakesNothingAway) {
  save("versioned-1");
  auto dev = develop();
  {
    VersionedClient client(*dev, "a", "1.0.0");
    save_what_does_not_link();
    dev->wait_for_log("hearth dev: not built");
    EXPECT_FALSE(std::filesystem::exists(root_ / "build/plugins/versioned.so"));
    EXPECT_TRUE(std::filesystem::exists(root_ / "build/served/versioned.so"));
    EXPECT_EQ(client.call("version"), "1.0.0");
    save("versioned-2");
    dev->wait_for_log("reload.done");
    EXPECT_EQ(client.call("version"), "2.0.0");
    EXPECT_TRUE(lacks(dev->log(), "reload.removed"));
  }
  EXPECT_EQ(dev->stop(), kClean);
}

// Each version of the library ends the process at `crash_later`.
TEST_F(DevTest, ACrashGoesBackToTheVersionBeforeAndNotToTheFirst) {
  save("fragile-1");
  auto dev = develop();
  for (const std::string version : {"2", "3"}) {
    save("fragile-" + version);
    dev->wait_for_log("reload.done class=Fragile version=" + version);
  }
  std::size_t starts = 1;
  for (const std::string goes_on : {"2.0.0", "1.0.0"}) {
    EXPECT_THROW(AgentClient(*dev, "/agents/fragile/a").call("crash_later"), std::runtime_error);
    dev->wait_until_ready(++starts);
    const std::string log = dev->log();
    const std::size_t last = log.rfind("class.served class=Fragile");
    ASSERT_NE(last, std::string::npos);
    EXPECT_EQ(log.rfind("class.served class=Fragile version=" + goes_on), last);
  }
  EXPECT_EQ(dev->stop(), kClean);
}

TEST_F(DevTest, AChangedPresetIsConfiguredAgain) {
  const auto preset = [](const std::string& version) {
    return R"({"version": 6, "configurePresets": [{"name": "dev", "cacheVariables": {"VERSION": ")" +
           version + R"("}}]})";
  };
  put("CMakePresets.json", preset("1"));
  std::string library = built::agent("versioned-1").string();
  put("source.cmake",
      "set(source " + library.replace(library.rfind("-1"), 2, "-${VERSION}") + ")\n");
  auto dev = develop();
  {
    VersionedClient client(*dev, "a", "1.0.0");
    put("CMakePresets.json", preset("2"));
    dev->wait_for_log("hearth dev: CMakePresets.json changed");
    dev->wait_for_log("reload.done");
    EXPECT_EQ(client.call("version"), "2.0.0");
  }
  EXPECT_EQ(dev->stop(), kClean);
}

TEST_F(DevTest, AProjectThatNeverBuiltIsServedOnceItDoes) {
  put("source.cmake", "this is no command\n");
  auto dev = develop();
  EXPECT_TRUE(contains(dev->log(), "source.cmake:1"));
  save("versioned-1");
  dev->wait_for_log("reload.done");
  EXPECT_EQ(VersionedClient(*dev, "a").call("version"), "1.0.0");
  EXPECT_EQ(dev->stop(), kClean);
}

TEST_F(DevTest, SourcesInNewDirectoriesAreSeen) {
  save("versioned-1");
  auto dev = develop();
  put("more/new.cmake", "");
  dev->wait_for_log("hearth dev: new.cmake changed");
  put("more/new.cmake", "# saved again\n");
  dev->wait_for_log("hearth dev: new.cmake changed", 2);
  dev->wait_for_log("hearth dev: nothing to build", 2);
  std::filesystem::remove_all(root_ / "more");
  dev->wait_for_log("hearth dev: new.cmake removed");
  EXPECT_EQ(dev->stop(), kClean);
}

TEST_F(DevTest, SourcesInADirectoryWhoseNameBeginsWithBuildAreSeen) {
  save("versioned-1");
  put("builders/tower.cmake", "");
  auto dev = develop();
  put("builders/tower.cmake", "# saved again\n");
  dev->wait_for_log("hearth dev: tower.cmake changed");
  EXPECT_EQ(dev->stop(), kClean);
}

TEST_F(DevTest, TheServerGoesWithIt) {
  save("versioned-1");
  auto dev = develop();
  VersionedClient client(*dev, "a");
  EXPECT_EQ(dev->kill(), kKilled);
  EXPECT_EQ(client.close_frame().close_code(), 1001);
}

TEST_F(DevTest, OutsideOfAProjectItSaysHowToBeginOne) {
  std::filesystem::remove(root_ / "CMakeLists.txt");
  EXPECT_TRUE(contains(refused({"dev"}, kBadUsage), "hearth new"));
}

}  // namespace
}  // namespace hearth::testing
