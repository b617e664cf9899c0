// hearth check, as people and CI run it.

#include "json/json.hpp"
#include "process/process_fixture.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

namespace hearth::testing {
namespace {

namespace fs = std::filesystem;

class CheckProcessTest : public ProcessTest {
 protected:
  // Runs `hearth check` to its end.
  [[nodiscard]] Said check(std::vector<std::string> arguments) const {
    arguments.insert(arguments.begin(), "check");
    return say(arguments);
  }
  static Json parsed(const std::string& text) {
    auto json = parse_json(text, 8);
    if (!json) throw std::runtime_error(json.error().message + " in " + text);
    return *std::move(json);
  }
};

TEST_F(CheckProcessTest, ALibraryThatKeepsTheContractPasses) {
  const Said checked = check({bundled("echo-c").native()});
  EXPECT_EQ(checked.ending, kClean);
  EXPECT_TRUE(contains(checked.out, "ok       T303", "echo-c 1.0.0, classes EchoC", "\npassed: "));
  EXPECT_EQ(checked.err, "");
}

TEST_F(CheckProcessTest, OneThatBreaksItFailsAndSaysWhatToDo) {
  const Said checked = check({"--only-failed", made_for_tests("crash_in_init").native()});
  EXPECT_EQ(checked.ending, kFailed);
  EXPECT_TRUE(contains(checked.out, "CRASHED  P1", "in init()", "NOT passed: 1 crashed"));
  EXPECT_TRUE(lacks(checked.out, "  ok "));
}

TEST_F(CheckProcessTest, TheReportIsAlsoJson) {
  const Said checked =
      check({"--json", "--seed", "42", "--only", "T101", bundled("echo-c").native()});
  EXPECT_EQ(checked.ending, kClean);
  const Json report = parsed(checked.out);
  EXPECT_EQ(report["schema"], 1);
  EXPECT_EQ(report["plugin"], "echo-c");
  EXPECT_EQ(report["seed"], 42);
  EXPECT_EQ(report["passed"], true);
  EXPECT_EQ(report["counts"]["failed"], 0);
  bool found = false;
  for (const Json& each : report["results"])
    found = found || (each["id"] == "T101" && each["verdict"] == "passed");
  EXPECT_TRUE(found) << checked.out;

  const Said broken = check({"--json", made_for_tests("other_major").native()});
  EXPECT_EQ(broken.ending, kFailed);
  EXPECT_EQ(parsed(broken.out)["passed"], false);
}

TEST_F(CheckProcessTest, WhatCannotBeTriedIsAnotherStatus) {
  for (const std::vector<std::string>& arguments : std::vector<std::vector<std::string>>{
           {"nobody.so"},
           {},
           {"--only", "T999", bundled("echo-c").native()},
           {"--time-limit", "soon", bundled("echo-c").native()}}) {
    const Said checked = check(arguments);
    EXPECT_EQ(checked.ending, kBadUsage);
    EXPECT_TRUE(checked.err.starts_with("hearth: ")) << checked.err;
    EXPECT_EQ(checked.out, "");
  }
}

TEST_F(CheckProcessTest, AServerThatAsksForItServesOnlyWhatHasPassed) {
  install(bundled("counter"), "counter.so");
  put("hearth.yaml", "require_checked: true\n");
  const auto start = [this] { return serve_ready({"--config", "hearth.yaml"}); };
  {
    const auto server = start();
    EXPECT_EQ(request(*server, "POST", "/agents/counter/a").status, 400) << "no such class";
    EXPECT_EQ(server->stop(), kClean);
    const std::string& log = server->log();
    EXPECT_TRUE(contains(log, "rule=K1", "hearth check --data"));
  }
  const Said checked = check({"--data", "data", (root_ / "plugins/counter.so").native()});
  ASSERT_EQ(checked.ending, kClean) << checked.out;
  {
    const auto server = start();
    EXPECT_EQ(increment(*server, "a"), R"({"count":1})");
    EXPECT_EQ(server->stop(), kClean);
  }
}

TEST_F(CheckProcessTest, WhatHasNotPassedLeavesNoRecord) {
  const Said checked = check({"--data", "data", made_for_tests("fail_in_init").native()});
  EXPECT_EQ(checked.ending, kFailed);
  EXPECT_FALSE(fs::exists(root_ / "data"));
  // Nor does what was tried in part.
  const Said part = check({"--data", "data", "--only", "T101", bundled("echo-c").native()});
  EXPECT_EQ(part.ending, kClean);
  EXPECT_FALSE(fs::exists(root_ / "data"));
}

}  // namespace
}  // namespace hearth::testing
