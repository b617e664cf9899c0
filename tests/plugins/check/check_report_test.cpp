#include "plugins/check/check_report.hpp"

#include "json/json.hpp"

#include <gtest/gtest.h>

#include <string>

namespace hearth::plugins {
namespace {

CheckReport a_report() {
  CheckReport report;
  report.file = "some where/it.so";
  report.sha256 = std::string(64, 'a');
  report.plugin = "it";
  report.version = "1.0.0";
  report.classes = {"It", "That"};
  report.seed = 7;
  const auto add = [&](std::string id, CheckVerdict verdict, std::string reason,
                       std::string advice) {
    CheckResult result;
    result.id = std::move(id);
    result.sentence = "It does.";
    result.verdict = verdict;
    result.reason = std::move(reason);
    result.advice = std::move(advice);
    report.results.push_back(std::move(result));
  };
  add("E1", CheckVerdict::kPassed, "", "");
  add("E13", CheckVerdict::kWarning, "it has no build id", "");
  add("T303", CheckVerdict::kFailed, "it completes twice", "Complete once.");
  add("T304", CheckVerdict::kCrashed, "it crashed (SIGSEGV)", "Look.");
  add("T401", CheckVerdict::kSkipped, "it submits nothing", "");
  return report;
}

TEST(CheckReportTest, PassesUnlessSomethingFailed) {
  CheckReport report = a_report();
  EXPECT_FALSE(report.passed());
  report.results.resize(2);
  EXPECT_TRUE(report.passed()) << "a warning is no failure";
  for (const CheckVerdict failure : {CheckVerdict::kTimedOut, CheckVerdict::kError}) {
    report.results.back().verdict = failure;
    EXPECT_FALSE(report.passed());
  }
  EXPECT_EQ(report_end(report), "NOT passed: 1 error, 1 passed\n");
  report.untried = 3;
  EXPECT_EQ(report_end(report),
            "NOT passed: 1 error, 1 passed; 3 not tried, since it cannot be loaded\n");
}

TEST(CheckReportTest, TextSaysWhatIsWrongAndWhatToDo) {
  const std::string text = report_text(a_report(), false);
  EXPECT_NE(text.find("it 1.0.0, classes It That"), std::string::npos) << text;
  EXPECT_NE(text.find("\nThe file\n"), std::string::npos) << text;
  EXPECT_NE(text.find("\nEvents and results\n"), std::string::npos) << text;
  EXPECT_NE(text.find("  FAILED   T303  It does.\n                  it completes twice\n"
                      "                  > Complete once.\n"),
            std::string::npos)
      << text;
  EXPECT_TRUE(text.ends_with("NOT passed: 1 failed, 1 crashed, 1 passed, 1 warning, 1 skipped\n"))
      << text;
}

TEST(CheckReportTest, OnlyFailedLeavesOutTheRest) {
  const std::string text = report_text(a_report(), true);
  EXPECT_EQ(text.find("E13"), std::string::npos);
  EXPECT_EQ(text.find("T401"), std::string::npos);
  EXPECT_NE(text.find("T303"), std::string::npos);
  EXPECT_NE(text.find("T304"), std::string::npos);
}

TEST(CheckReportTest, JsonHasAllOfIt) {
  const auto json = parse_json(report_json(a_report(), false), 8).value();
  EXPECT_EQ(json["schema"], 1);
  EXPECT_EQ(json["sha256"], std::string(64, 'a'));
  EXPECT_EQ(json["classes"], (Json{"It", "That"}));
  EXPECT_EQ(json["seed"], 7);
  EXPECT_EQ(json["passed"], false);
  EXPECT_EQ(json["counts"]["crashed"], 1);
  EXPECT_EQ(json["counts"]["timed_out"], 0);
  ASSERT_EQ(json["results"].size(), 5U);
  const Json failed = json["results"][2];
  EXPECT_EQ(failed["id"], "T303");
  EXPECT_EQ(failed["verdict"], "failed");
  EXPECT_EQ(failed["reason"], "it completes twice");
  EXPECT_EQ(failed["advice"], "Complete once.");
  EXPECT_EQ(failed["took_ms"], 0);
  EXPECT_EQ(parse_json(report_json(a_report(), true), 8).value()["results"].size(), 2U);
}

TEST(CheckReportTest, AFileNameCannotWriteLinesOfItsOwn) {
  CheckReport report = a_report();
  report.file = "x\npassed: all\n.so";
  EXPECT_EQ(report_head(report).find("\npassed: all"), std::string::npos);
  EXPECT_TRUE(parse_json(report_json(report, false), 8));
}

}  // namespace
}  // namespace hearth::plugins
