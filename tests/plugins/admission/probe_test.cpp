#include "plugins/admission/probe.hpp"

#include "plugins/test_libraries.hpp"
#include "support/built.hpp"
#include "support/temp_directory.hpp"

#include <sys/wait.h>
#include <unistd.h>

#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <filesystem>
#include <ostream>
#include <random>
#include <string>
#include <string_view>
#include <vector>

namespace hearth::plugins {
namespace {

using namespace testing;
using namespace std::chrono_literals;
using hearth::testing::TempDirectory;

ProbeOptions probe_options() {
  // Long enough for a machine that is busy with other tests.
  return {.program = hearth::testing::built::probe(), .time_limit = 30s};
}

struct ExpectedFinding {
  const char* library;
  const char* rule;    // "" for accepted
  const char* reason;  // a part of it
};

void PrintTo(const ExpectedFinding& expected, std::ostream* out) {
  *out << expected.library;
}

class ProbeVerdictTest : public ::testing::TestWithParam<ExpectedFinding> {};

TEST_P(ProbeVerdictTest, SaysWhatIsWrong) {
  const ExpectedFinding expected = GetParam();
  const auto found = probe_library(built_library(expected.library), probe_options());
  EXPECT_EQ(found ? found->rule : "", expected.rule) << (found ? found->reason : "accepted");
  if (found) {
    EXPECT_EQ(found->severity, Severity::kRefusal);
    EXPECT_NE(found->reason.find(expected.reason), std::string::npos) << found->reason;
  }
}

INSTANTIATE_TEST_SUITE_P(
    Libraries, ProbeVerdictTest,
    ::testing::Values(
        ExpectedFinding{"plain", "", ""}, ExpectedFinding{"larger_entry", "", ""},
        ExpectedFinding{"busy", "", ""}, ExpectedFinding{"noisy", "", ""},
        ExpectedFinding{"throwing", "", ""}, ExpectedFinding{"no_delete", "", ""},
        ExpectedFinding{"undefined_symbol", "L1", "no_such_function"},
        ExpectedFinding{"wrong_magic", "L2", "magic"},
        ExpectedFinding{"other_major", "L2", "of the ABI, and this server has"},
        ExpectedFinding{"smaller_entry", "L2", "struct_size"},
        ExpectedFinding{"no_deinit", "L2", "deinit"},
        ExpectedFinding{"no_on_result", "L2", "lacks a function"},
        ExpectedFinding{"null_class", "L2", "null"},
        ExpectedFinding{"endless_classes", "L2", "does not exist"},
        ExpectedFinding{"two_announced", "L3", "2 classes"},
        ExpectedFinding{"other_class", "L3", "Other"},
        ExpectedFinding{"fail_in_init", "L4", "my licence has run out"},
        ExpectedFinding{"crash_in_constructor", "P1", "crashed (SIGSEGV) while it was loaded"},
        ExpectedFinding{"crash_in_init", "P1",
                        "crashed (SIGABRT) in init(); it said: \"about to fall over\""},
        ExpectedFinding{"crash_in_destructor", "P1",
                        "crashed (SIGBUS) in deinit() or its destructors"},
        ExpectedFinding{"exit_in_init", "P1", "ended the process (status 0) in init()"},
        ExpectedFinding{"no_note", "N1", "no Hearth note"},
        ExpectedFinding{"hidden_entry", "E7", "hearth_plugin_v1"}),
    [](const auto& each) { return std::string(each.param.library); });

TEST(ProbeTest, WhatIsNotTriedToTheEndIsAFindingThatSaysSo) {
  struct Row {
    const char* name;
    std::filesystem::path library;
    std::filesystem::path program;
    const char* rule;
    const char* reason;  // a part of it
    bool is_untried = false;
  };
  const std::filesystem::path probe = hearth::testing::built::probe();
  const Row rows[] = {
      {"P2_ALibraryThatHangsIsEndedInTime", built_library("hang_in_init"), probe, "P2",
       "in init()"},
      // The grandchild holds the pipes open. The probe must not wait for it, or leave it behind.
      {"P2_WhatALibraryStartedIsEndedWithIt", built_library("hang_with_child"), probe, "P2", ""},
      {"P1_AProgramThatCannotBeStarted", built_library("plain"), "/nowhere/hearth", "P1",
       "No such file", true},
      {"P1_AProgramThatGivesNoVerdictIsNoAcceptance", built_library("plain"), "/bin/true", "P1",
       ""},
      {"AMissingFileIsAFinding", "/nowhere/a.so", probe, "F7", ""},
  };
  for (const Row& row : rows) {
    SCOPED_TRACE(row.name);
    const bool hangs = row.rule == std::string_view("P2");
    const auto before = std::chrono::steady_clock::now();
    const auto found = probe_library(
        row.library,
        {.program = row.program, .time_limit = hangs ? 500ms : probe_options().time_limit});
    if (!found) {
      ADD_FAILURE() << "accepted";
      continue;
    }
    EXPECT_EQ(found->rule, row.rule);
    EXPECT_NE(found->reason.find(row.reason), std::string::npos) << found->reason;
    if (hangs) EXPECT_GE(std::chrono::steady_clock::now() - before, 500ms);
    if (row.is_untried) EXPECT_TRUE(is_untried(*found));
  }
}

TEST(ProbeTest, LeavesNoDescriptorAndNoChildBehind) {
  const auto open_descriptors = [] {
    int count = 0;
    for ([[maybe_unused]] const auto& each : std::filesystem::directory_iterator("/proc/self/fd"))
      ++count;
    return count;
  };
  const int before = open_descriptors();
  for (const char* name : {"plain", "crash_in_init", "exit_in_init"}) {
    static_cast<void>(probe_library(built_library(name), probe_options()));
  }
  EXPECT_EQ(open_descriptors(), before);
  EXPECT_EQ(::waitpid(-1, nullptr, WNOHANG), -1);
  EXPECT_EQ(errno, ECHILD);
}

TEST(ProbeTest, WorksWhenStandardDescriptorsAreClosed) {
  const int saved = ::dup(STDIN_FILENO);
  ::close(STDIN_FILENO);
  const auto found = probe_library(built_library("plain"), probe_options());
  ::dup2(saved, STDIN_FILENO);
  ::close(saved);
  EXPECT_FALSE(found) << found->reason;
}

// The dynamic loader may do anything with a damaged library; the trial must end in a verdict.
TEST(ProbeTest, DamagedLibrariesEndInAVerdict) {
  const TempDirectory directory;
  const unsigned seed = 20260102;
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  const Bytes plain = library_bytes("plain");
  ProbeOptions impatient = probe_options();
  impatient.time_limit = 5s;
  int tried = 0;
  for (int mutation = 0; mutation < 4000 && tried < 40; ++mutation) {
    Bytes bytes = plain;
    // Where the dynamic loader looks: dynamic section, hash tables, relocations, code.
    const std::size_t limit = std::min<std::size_t>(plain.size(), 0x4000);
    for (int change = 0; change < 4; ++change) {
      bytes[64 + random() % (limit - 64)] = static_cast<std::byte>(random());
    }
    if (inspect_library(bytes).refusal() != nullptr) continue;
    ++tried;
    const auto path = directory.path() / ("damaged" + std::to_string(tried) + ".so");
    write_bytes(path, bytes);
    const auto found = probe_library(path, impatient);
    if (found) {
      EXPECT_FALSE(found->reason.empty());
    }
  }
  EXPECT_EQ(tried, 40);
}

}  // namespace
}  // namespace hearth::plugins
