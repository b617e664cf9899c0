#include "plugins/check/check.hpp"

#include "plugins/admission/file_rules.hpp"
#include "plugins/check/check_cases.hpp"
#include "plugins/test_libraries.hpp"
#include "support/built.hpp"
#include "support/temp_directory.hpp"

#include <unistd.h>

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <set>
#include <string>
#include <vector>

namespace hearth::plugins {
namespace {

using namespace testing;
using namespace std::chrono_literals;
using hearth::testing::TempDirectory;
namespace fs = std::filesystem;

CheckOptions quick() {
  CheckOptions options;
  options.program = hearth::testing::built::probe();
  options.time_limit = 10s;
  options.only = {"T101"};
  return options;
}

fs::path good() {
  return hearth::testing::built::zoo("good");
}

TEST(CheckTest, EachCaseHasItsOwnNameASentenceAndAdvice) {
  std::set<std::string_view> ids;
  for (const Rule& each : rules()) ids.insert(each.id);
  for (const CheckCase& each : check_cases()) {
    EXPECT_TRUE(ids.insert(each.id).second) << each.id;
    EXPECT_TRUE(each.sentence.ends_with('.')) << each.id;
    EXPECT_TRUE(each.advice.ends_with('.')) << each.id;
    EXPECT_EQ(find_check_case(each.id), &each);
    EXPECT_TRUE(is_check_id(each.id));
  }
  EXPECT_EQ(find_check_case("T999"), nullptr);
  EXPECT_TRUE(is_check_id("E9"));
  EXPECT_TRUE(is_check_id("P2"));
  EXPECT_FALSE(is_check_id("C1")) << "a rule of several libraries";
  EXPECT_FALSE(is_check_id("E99"));
}

TEST(CheckTest, TellsWhatTheLibraryIsAndEachRule) {
  std::vector<std::string> as_they_came;
  CheckOptions options = quick();
  options.on_result = [&](const CheckResult& each) { as_they_came.push_back(each.id); };
  options.seed = 5;
  const auto report = check_library(good(), options).value();
  EXPECT_EQ(report.plugin, "zoo");
  EXPECT_EQ(report.version, "1.0.0");
  EXPECT_EQ(report.classes, std::vector<std::string>{"Zoo"});
  EXPECT_EQ(report.sha256.size(), 64U);
  EXPECT_EQ(report.seed, 5U);
  EXPECT_TRUE(report.passed());
  std::vector<std::string> ids;
  for (const CheckResult& each : report.results) ids.push_back(each.id);
  EXPECT_EQ(ids, as_they_came);
  const std::set<std::string> set(ids.begin(), ids.end());
  EXPECT_EQ(set.size(), ids.size()) << "each once";
  for (const char* const id : {"F1", "E1", "E17", "N6", "P1", "L4", "T101"})
    EXPECT_TRUE(set.contains(id)) << id;
  EXPECT_FALSE(set.contains("T102")) << "only T101 was asked for";
}

TEST(CheckTest, ThereMustBeAFile) {
  EXPECT_EQ(check_library("/nobody/is/here.so", quick()).error().code, Errc::kNotFound);
  EXPECT_FALSE(check_library("/tmp", quick()));
}

TEST(CheckTest, WhatIsExcludedIsSkippedAndDoesNotFail) {
  CheckOptions options = quick();
  const fs::path library = hearth::testing::built::zoo("shares_a_variable");
  options.only = {"T106"};
  EXPECT_FALSE(check_library(library, options).value().passed());
  options.excluded = {"E8", "E9", "T106"};
  const auto report = check_library(library, options).value();
  EXPECT_TRUE(report.passed());
  EXPECT_EQ(report.find("E9")->verdict, CheckVerdict::kSkipped);
  EXPECT_EQ(report.find("T106")->verdict, CheckVerdict::kSkipped);
  EXPECT_EQ(report.find("T106")->reason, "it is excluded");
}

TEST(CheckTest, WhatCannotBeReadIsNotTriedAlsoIfTheRuleIsExcluded) {
  const TempDirectory directory;
  const fs::path file = directory.path() / "text.so";
  write_bytes(file, bytes_of_text("no library at all"));
  CheckOptions options = quick();
  for (const bool is_excluded : {false, true}) {
    if (is_excluded) options.excluded = {"E1", "E2"};
    const auto report = check_library(file, options).value();
    EXPECT_FALSE(report.passed());
    EXPECT_EQ(report.find("E1")->verdict, CheckVerdict::kFailed);
    if (!is_excluded) EXPECT_EQ(report.results.back().id, "E1") << "what rests on it is not told";
    EXPECT_GT(report.untried, 20U);
    EXPECT_TRUE(report.plugin.empty());
  }
}

TEST(CheckTest, WhatIsExcludedDoesNotKeepTheRestFromBeingTried) {
  CheckOptions options = quick();
  options.excluded = {"E4"};
  const auto report =
      check_library(hearth::testing::built::zoo("executable_stack"), options).value();
  ASSERT_NE(report.find("T101"), nullptr);
  EXPECT_EQ(report.find("T101")->verdict, CheckVerdict::kPassed);
}

TEST(CheckTest, ATrialThatCannotBeStartedIsTheChecksOwnFailure) {
  CheckOptions options = quick();
  options.program = "/no/such/program";
  const auto report = check_library(good(), options).value();
  EXPECT_FALSE(report.passed());
  EXPECT_EQ(report.find("P1")->verdict, CheckVerdict::kError);
  EXPECT_TRUE(report.find("P1")->reason.starts_with("the check itself failed: "));
}

TEST(CheckTest, WhoMayWriteThisCopyIsAWarningOnly) {
  const TempDirectory directory;
  const fs::path file = directory.path() / "good.so";
  fs::copy_file(good(), file);
  fs::permissions(file, fs::perms{0666});
  const fs::path link = directory.path() / "link.so";
  fs::create_symlink(file, link);
  const auto report = check_library(link, quick()).value();
  EXPECT_TRUE(report.passed());
  EXPECT_EQ(report.find("F1")->verdict, CheckVerdict::kWarning);
  EXPECT_EQ(report.find("F3")->verdict, CheckVerdict::kWarning);
}

TEST(CheckTest, WhoOwnsThisCopyIsAWarningOnly) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can give a file away";
  const TempDirectory directory;
  const fs::path file = directory.path() / "good.so";
  fs::copy_file(good(), file);
  ASSERT_EQ(::chown(file.c_str(), 12345, 12345), 0);
  const auto report = check_library(file, quick()).value();
  EXPECT_TRUE(report.passed());
  EXPECT_EQ(report.find("F2")->verdict, CheckVerdict::kWarning);
  EXPECT_NE(report.find("F2")->reason.find("12345"), std::string::npos);
}

TEST(CheckTest, LeavesNothingInTheTemporaryDirectory) {
  const TempDirectory directory;
  const char* const before = std::getenv("TMPDIR");
  const std::string old = before != nullptr ? before : "";
  ::setenv("TMPDIR", directory.path().c_str(), 1);
  CheckOptions options = quick();
  options.only = {"T205"};
  options.time_limit = 1s;
  for (const char* const name : {"good", "crashes_in_message", "hangs_in_message"}) {
    const auto report = check_library(hearth::testing::built::zoo(name), options);
    EXPECT_TRUE(report);
  }
  if (before != nullptr)
    ::setenv("TMPDIR", old.c_str(), 1);
  else
    ::unsetenv("TMPDIR");
  EXPECT_TRUE(fs::is_empty(directory.path()));
}

TEST(CheckTest, MethodsCanBeNamedOrLeftAlone) {
  CheckOptions options = quick();
  options.only = {"T307"};
  const fs::path library = hearth::testing::built::zoo("good");
  EXPECT_EQ(check_library(library, options).value().find("T307")->verdict, CheckVerdict::kPassed);
  options.may_call = false;
  EXPECT_EQ(check_library(library, options).value().find("T307")->verdict, CheckVerdict::kSkipped);
  options.may_call = true;
  options.methods = {"nobody has this"};
  EXPECT_EQ(check_library(library, options).value().find("T307")->verdict, CheckVerdict::kPassed);
}

}  // namespace
}  // namespace hearth::plugins
