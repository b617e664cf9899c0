#include "process/agent_client.hpp"
#include "process/process_fixture.hpp"

#include <string>

namespace hearth::testing {
namespace {

// The counter, and beside it one bad file. Its name sorts before the counter's, so the server reads
// it first.
class BadLibraryTest : public ProcessTest {
 protected:
  BadLibraryTest() { install(bundled("counter"), "counter.so"); }

  // Starts a server, and expects it to refuse `file` by `rule`, to log `reason`, and to serve the
  // counter.
  void expect_refused(const std::string& file, const std::string& rule, const std::string& reason) {
    const auto server = serve_ready();
    EXPECT_EQ(increment(*server, "a"), R"({"count":1})");
    EXPECT_EQ(server->stop(), kClean);
    const std::string refused = "plugin.refused file=" + (root_ / "plugins" / file).string();
    EXPECT_TRUE(contains(line_of(server->log(), refused), " rule=" + rule, reason));
  }
};

TEST_F(BadLibraryTest, ATextFile) {
  put("plugins/a.so", "this is no library\n");
  expect_refused("a.so", "E", "ELF");
}

TEST_F(BadLibraryTest, AnEmptyFile) {
  put("plugins/a.so", "");
  expect_refused("a.so", "", "empty");
}

TEST_F(BadLibraryTest, ATruncatedLibrary) {
  install(bundled("echo-c"), "a.so");
  std::filesystem::resize_file(root_ / "plugins/a.so",
                               std::filesystem::file_size(root_ / "plugins/a.so") / 2);
  expect_refused("a.so", "E", "");
}

TEST_F(BadLibraryTest, ALibraryForAnotherMajorVersionOfTheAbi) {
  install(made_for_tests("other_major"), "a.so");
  expect_refused("a.so", "", "ABI");
}

TEST_F(BadLibraryTest, ASecondLibraryWithTheSameClass) {
  install(bundled("counter"), "second.so");
  expect_refused("second.so", "C1", "counter.so");
}

TEST_F(BadLibraryTest, ALibraryThatCrashesWhenItIsLoaded) {
  install(made_for_tests("crash_in_init"), "a.so");
  expect_refused("a.so", "P1", "");
}

TEST_F(BadLibraryTest, ALibraryThatCallsExitWhenItIsLoaded) {
  install(made_for_tests("exit_in_init"), "a.so");
  expect_refused("a.so", "P1", "");
}

TEST_F(BadLibraryTest, ALibraryThatAnybodyMayWrite) {
  install(bundled("echo-c"), "a.so");
  std::filesystem::permissions(root_ / "plugins/a.so", std::filesystem::perms{0777});
  expect_refused("a.so", "F", "");
}

TEST_F(BadLibraryTest, AllOfThemAtOnce) {
  put("plugins/text.so", "this is no library\n");
  put("plugins/empty.so", "");
  install(made_for_tests("other_major"), "major.so");
  install(made_for_tests("crash_in_init"), "crash.so");
  install(bundled("echo-c"), "echo.so");
  const auto server = serve_ready();
  EXPECT_EQ(increment(*server, "a"), R"({"count":1})");
  AgentClient echo(server->port(), "/agents/echo-c/a");
  echo.close();
  EXPECT_EQ(server->stop(), kClean);
}

TEST_F(BadLibraryTest, NoLibraryAtAllIsAWarningAndTheServerRuns) {
  std::filesystem::remove(root_ / "plugins/counter.so");
  const auto server = serve_ready();
  server->wait_for_log("server.no_plugins");
  EXPECT_EQ(request(*server, "GET", "/healthz").status, 200);
}

}  // namespace
}  // namespace hearth::testing
