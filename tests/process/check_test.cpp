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

constexpr Ending kNotPassed{.status = 1, .signal = 0};
constexpr Ending kNotTried{.status = 2, .signal = 0};

class CheckProcessTest : public ProcessTest {
 protected:
  // Runs `hearth check` to its end.
  [[nodiscard]] std::unique_ptr<ServerProcess> check(std::vector<std::string> arguments) const {
    arguments.insert(arguments.begin(), "check");
    return run(arguments);
  }
  static Json parsed(const std::string& text) {
    auto json = parse_json(text, 8);
    if (!json) throw std::runtime_error(json.error().message + " in " + text);
    return *std::move(json);
  }
};

TEST_F(CheckProcessTest, ALibraryThatKeepsTheContractPasses) {
  const auto checked = check({bundled("echo-c").native()});
  EXPECT_EQ(checked->wait(), kClean);
  const std::string& out = checked->out();
  EXPECT_NE(out.find("ok       T303"), std::string::npos) << out;
  EXPECT_NE(out.find("echo-c 1.0.0, classes EchoC"), std::string::npos) << out;
  EXPECT_NE(out.find("\npassed: "), std::string::npos) << out;
  EXPECT_EQ(checked->log(), "");
}

TEST_F(CheckProcessTest, OneThatBreaksItFailsAndSaysWhatToDo) {
  const auto checked = check({"--only-failed", made_for_tests("crash_in_init").native()});
  EXPECT_EQ(checked->wait(), kNotPassed);
  const std::string& out = checked->out();
  EXPECT_NE(out.find("CRASHED  P1"), std::string::npos) << out;
  EXPECT_NE(out.find("in init()"), std::string::npos) << out;
  EXPECT_EQ(out.find("  ok "), std::string::npos) << out;
  EXPECT_NE(out.find("NOT passed: 1 crashed"), std::string::npos) << out;
}

TEST_F(CheckProcessTest, TheReportIsAlsoJson) {
  const auto checked =
      check({"--json", "--seed", "42", "--only", "T101", bundled("echo-c").native()});
  EXPECT_EQ(checked->wait(), kClean);
  const Json report = parsed(checked->out());
  EXPECT_EQ(report["schema"], 1);
  EXPECT_EQ(report["plugin"], "echo-c");
  EXPECT_EQ(report["seed"], 42);
  EXPECT_EQ(report["passed"], true);
  EXPECT_EQ(report["counts"]["failed"], 0);
  bool found = false;
  for (const Json& each : report["results"])
    found = found || (each["id"] == "T101" && each["verdict"] == "passed");
  EXPECT_TRUE(found) << checked->out();

  const auto broken = check({"--json", made_for_tests("other_major").native()});
  EXPECT_EQ(broken->wait(), kNotPassed);
  EXPECT_EQ(parsed(broken->out())["passed"], false);
}

TEST_F(CheckProcessTest, WhatCannotBeTriedIsAnotherStatus) {
  for (const std::vector<std::string>& arguments : std::vector<std::vector<std::string>>{
           {"nobody.so"},
           {},
           {"--only", "T999", bundled("echo-c").native()},
           {"--time-limit", "soon", bundled("echo-c").native()}}) {
    const auto checked = check(arguments);
    EXPECT_EQ(checked->wait(), kNotTried);
    EXPECT_TRUE(checked->log().starts_with("hearth: ")) << checked->log();
    EXPECT_EQ(checked->out(), "");
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
    EXPECT_NE(log.find("rule=K1"), std::string::npos) << log;
    EXPECT_NE(log.find("hearth check --data"), std::string::npos) << log;
  }
  const auto checked = check({"--data", "data", (root_ / "plugins/counter.so").native()});
  ASSERT_EQ(checked->wait(), kClean) << checked->out();
  {
    const auto server = start();
    EXPECT_EQ(increment(*server, "a"), R"({"count":1})");
    EXPECT_EQ(server->stop(), kClean);
  }
}

TEST_F(CheckProcessTest, WhatHasNotPassedLeavesNoRecord) {
  const auto checked = check({"--data", "data", made_for_tests("fail_in_init").native()});
  EXPECT_EQ(checked->wait(), kNotPassed);
  EXPECT_FALSE(fs::exists(root_ / "data"));
  // Nor does what was tried in part.
  const auto part = check({"--data", "data", "--only", "T101", bundled("echo-c").native()});
  EXPECT_EQ(part->wait(), kClean);
  EXPECT_FALSE(fs::exists(root_ / "data"));
}

}  // namespace
}  // namespace hearth::testing
