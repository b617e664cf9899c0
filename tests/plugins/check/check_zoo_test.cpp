// The results of a check for libraries that each break one rule, and for the bundled libraries.

#include "fault/gcc_libraries.hpp"
#include "plugins/check/check.hpp"
#include "plugins/check/check_cases.hpp"
#include "plugins/check/check_report.hpp"
#include "plugins/test_libraries.hpp"
#include "support/built.hpp"
#include "support/environment.hpp"
#include "support/temp_directory.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <ostream>
#include <sstream>
#include <string>
#include <vector>

namespace hearth::plugins {
namespace {

using namespace testing;
using namespace std::chrono_literals;
using hearth::testing::from_environment;
using hearth::testing::is_continuous_integration;
using hearth::testing::kNoGcc12;
using hearth::testing::kSanitized;
using hearth::testing::TempDirectory;

// Long enough for a machine that is busy with other tests, short enough for the cases that use half
// of this time.
CheckOptions check_options() {
  CheckOptions options;
  options.program = hearth::testing::built::probe();
  options.time_limit = 6s;
  return options;
}

std::filesystem::path zoo(const std::string& name) {
  return hearth::testing::built::zoo(name);
}

CheckReport check(const std::filesystem::path& library, const CheckOptions& options) {
  auto report = check_library(library, options);
  if (!report) throw std::runtime_error(report.error().message);
  return *std::move(report);
}

struct Expected {
  const char* library;
  const char* id;  // of the rule or case that it breaks; other cases are left out
  CheckVerdict verdict;
  const char* reason;  // a part of it
  std::chrono::milliseconds time_limit{6000};
};

void PrintTo(const Expected& expected, std::ostream* out) {
  *out << expected.library << " " << expected.id;
}

void expect(const std::filesystem::path& library, const Expected& expected) {
  CheckOptions chosen = check_options();
  chosen.time_limit = expected.time_limit;
  const bool is_case = find_check_case(expected.id) != nullptr;
  chosen.only = {is_case ? expected.id : "T101"};
  const CheckReport report = check(library, chosen);
  const CheckResult* const result = report.find(expected.id);
  ASSERT_NE(result, nullptr);
  EXPECT_EQ(to_string(result->verdict), to_string(expected.verdict)) << report_text(report, false);
  EXPECT_NE(result->reason.find(expected.reason), std::string::npos) << result->reason;
  if (is_failure(expected.verdict)) EXPECT_FALSE(report.passed());
}

class CheckZooTest : public ::testing::TestWithParam<Expected> {};

TEST_P(CheckZooTest, IsFoundOut) {
  expect(zoo(GetParam().library), GetParam());
}

constexpr auto kFailed = CheckVerdict::kFailed;
constexpr auto kCrashed = CheckVerdict::kCrashed;
constexpr auto kTimedOut = CheckVerdict::kTimedOut;
constexpr auto kWarning = CheckVerdict::kWarning;

std::string name_of(const ::testing::TestParamInfo<Expected>& each) {
  return std::string(each.param.library) + "_" + each.param.id;
}

INSTANTIATE_TEST_SUITE_P(
    File, CheckZooTest,
    ::testing::Values(Expected{"executable_stack", "E4", kFailed, "executable stack"},
                      Expected{"lazily_bound", "E15", kWarning, "-z,now"},
                      Expected{"no_build_id", "E13", kWarning, "build id"},
                      Expected{"odd_dependency", "E10", kWarning, "libz.so.1"},
                      Expected{"handles_a_signal", "E11", kFailed, "signal"},
                      Expected{"changes_the_locale", "E11", kFailed, "setlocale"},
                      Expected{"exits_in_message", "E11", kFailed, "exit"},
                      Expected{"leaves_a_thread", "E17", kWarning, "pthread_create"},
                      Expected{"thread_local_destructor", "E17", kWarning, "__cxa_thread_atexit"},
                      Expected{"shares_a_variable", "E9", kFailed, "zoo_shared_host"}),
    name_of);

INSTANTIATE_TEST_SUITE_P(
    Loading, CheckZooTest,
    ::testing::Values(
        Expected{"slow_constructor", "T101", kFailed, "ms"},
        Expected{"handles_a_signal", "T102", kFailed, "SIGUSR1 is handled differently"},
        Expected{"leaves_a_thread", "T102", kFailed, "1 more threads run"},
        Expected{"changes_the_locale", "T102", kFailed, "the locale is"},
        Expected{"changes_the_environment", "T102", kFailed, "environment"},
        Expected{"changes_the_directory", "T102", kFailed, "current directory is \"/\""},
        Expected{"changes_the_umask", "T102", kFailed, "umask"},
        Expected{"changes_the_umask", "L5", kFailed, "the umask is another"},
        Expected{"changes_the_directory", "L5", kFailed, "current directory is \"/\""},
        Expected{"handles_a_signal", "L5", kFailed, "SIGUSR1 is handled differently"},
        Expected{"changes_the_locale", "L5", kFailed, "the locale is"},
        Expected{"changes_the_environment", "L5", kFailed, "environment"},
        Expected{"sets_an_alarm", "L5", kFailed, "an alarm or an interval timer"},
        Expected{"lowers_a_limit", "L5", kFailed, "a limit of the process's resources"},
        Expected{"changes_things_when_served", "L5", CheckVerdict::kPassed, ""},
        Expected{"leaves_a_descriptor", "T102", kFailed, "/dev/null"},
        Expected{"leaves_a_descriptor", "T105", kFailed, "/dev/null"},
        Expected{"leaves_a_key", "T102", kFailed, "pthread_key_create"},
        Expected{"trusts_the_table", "T103", kCrashed, "behind its end"},
        Expected{"lacks_an_answer", "L2", kFailed, "what does recovery do"},
        Expected{"trusts_extensions", "T104", kCrashed, "SIGSEGV"},
        Expected{"crashes_in_deinit", "P1", kCrashed, "deinit()"},
        Expected{"hangs_in_deinit", "P2", kTimedOut, "deinit()", 1000ms},
        Expected{"crashes_in_get_class", "P1", kCrashed, "classes"},
        Expected{"hangs_in_get_class", "P2", kTimedOut, "classes", 1000ms},
        Expected{"hangs_in_get_extension", "P2", kTimedOut, "classes", 1000ms},
        Expected{"thread_local_destructor", "T106", kFailed, "stays mapped"},
        Expected{"shares_a_variable", "T106", kFailed, "unique symbol"},
        Expected{"shares_a_variable", "T107", kFailed, "copies"},
        Expected{"leaks_loads", "T108", kFailed, "KiB more are allocated"}),
    name_of);

INSTANTIATE_TEST_SUITE_P(
    Agents, CheckZooTest,
    ::testing::Values(
        Expected{"large_index", "T201", kFailed, "for the index 2147483647"},
        Expected{"crashes_in_create", "T202", kCrashed, "in create() of Zoo"},
        Expected{"crashes_in_destroy", "T202", kCrashed, "in destroy() of Zoo"},
        Expected{"crashes_in_start", "T202", kCrashed, "START"},
        Expected{"hangs_in_start", "T202", kTimedOut, "START", 1000ms},
        Expected{"crashes_in_get_extension", "P1", kCrashed, "classes"},
        Expected{"hangs_in_create", "T202", kTimedOut, "in create()", 1000ms},
        Expected{"hangs_in_destroy", "T202", kTimedOut, "in destroy()", 1000ms},
        Expected{"leaks_agents", "T202", kFailed, "leaves"},
        Expected{"trusts_options", "T203", kCrashed, "in create()"},
        Expected{"one_agent_for_all", "T204", kFailed, "whose code is not running"},
        Expected{"remembers_its_thread", "T207", kFailed, "not complete"},
        Expected{"no_second_life", "T205", kFailed, "lived before"},
        Expected{"forgets", "T209", kWarning, R"(count(["a"]) answers 2 instead of 5)"},
        Expected{"migrates", "T208", CheckVerdict::kPassed, ""},
        Expected{"refuses_to_migrate", "T208", kWarning, "--older"},
        Expected{"migrates_once", "T208", kFailed, "tried again"},
        Expected{"never_migrates", "T208", kFailed, "does not complete it"},
        Expected{"cannot_migrate", "T208", kFailed, "UNSUPPORTED"},
        Expected{"good", "T208", CheckVerdict::kSkipped, "no class"},
        Expected{"needs_options", "T210", kFailed, R"(INVALID to the options "{}")"},
        Expected{"crashes_in_second_class", "T205", kCrashed, "on_event() of Zebra, EVICT"},
        Expected{"crashes_in_second_class", "T402", kCrashed, "on_event() of Zebra, EVICT"},
        Expected{"calls_for_the_dead", "T206", kFailed, "emit for an agent that is destroyed"}),
    name_of);

INSTANTIATE_TEST_SUITE_P(
    Events, CheckZooTest,
    ::testing::Values(
        Expected{"accepts_everything", "T301", kFailed, "the unknown kind"},
        Expected{"odd_status", "T301", kFailed, "12345"},
        Expected{"crashes_in_message", "T301", kCrashed, "MESSAGE"},
        Expected{"hangs_in_message", "T301", kTimedOut, "MESSAGE", 1000ms},
        Expected{"crashes_on_its_thread", "T301", kCrashed, "in a thread of its own"},
        Expected{"aborts_on_its_thread", "T301", kCrashed, "SIGABRT"},
        Expected{"crashes_in_a_job", "T306", kCrashed, "SIGSEGV"},
        Expected{"exits_in_message", "T301", kCrashed, "ended the process (status 3)"},
        Expected{"overflows_its_stack", "T301", kCrashed, "SIGSEGV"},
        Expected{"throws_in_event", "T303", kFailed, "an exception came out of it in on_event()"},
        Expected{"completes_twice", "T303", kFailed, "twice"},
        Expected{"answers_each_piece", "T303", kFailed, "(request) twice"},
        Expected{"never_completes", "T303", kFailed, "does not complete it"},
        Expected{"never_starts", "T303", kFailed, "START"},
        Expected{"refuses_and_completes", "T303", kFailed, "and then refuses it"},
        Expected{"calls_from_a_thread", "T303", kFailed, "from a thread of its own"},
        Expected{"trusts_deadlines", "T304", kCrashed, "on_result()"},
        Expected{"crashes_in_cancel", "T304", kCrashed, "on_cancel()"},
        Expected{"hangs_in_cancel", "T304", kTimedOut, "on_cancel()", 1000ms},
        Expected{"crashes_in_cancel", "T305", kCrashed, "on_cancel()"},
        Expected{"crashes_in_result", "T306", kCrashed, "on_result()"},
        Expected{"hangs_in_result", "T306", kTimedOut, "on_result()", 1000ms},
        Expected{"trusts_tokens", "T306", kCrashed, "on_result()"},
        Expected{"trusts_results", "T306", kCrashed, "on_result()"},
        Expected{"trusts_arguments", "T307", kCrashed, "CALL"},
        Expected{"is_slow", "T309", kWarning, "MESSAGE"},
        Expected{"hangs_in_a_job", "T310", kTimedOut, "1000 ms in offload's run()", 1000ms},
        Expected{"crashes_in_a_job", "T310", kCrashed, "in offload's run()"},
        Expected{"good", "T310", CheckVerdict::kSkipped, "no job"},
        Expected{"trusts_arguments", "T308", kCrashed, "CALL"}),
    name_of);

INSTANTIATE_TEST_SUITE_P(
    Host, CheckZooTest,
    ::testing::Values(Expected{"ignores_failed_submits", "T401", kCrashed, "CALL"},
                      Expected{"trusts_the_database", "T402", kCrashed, "SIGABRT"},
                      Expected{"keeps_a_slice", "T501", kCrashed,
                               "create()'s name when that was not lent"}),
    name_of);

// The same rules, broken in libraries of another compiler.
class CheckGccTest : public ::testing::TestWithParam<Expected> {};

TEST_P(CheckGccTest, IsFoundOut) {
  const auto library = zoo("gcc_" + std::string(GetParam().library));
  if (!std::filesystem::exists(library)) {
    ASSERT_FALSE(is_continuous_integration()) << kNoGcc12;
    GTEST_SKIP() << kNoGcc12;
  }
  expect(library, GetParam());
}

INSTANTIATE_TEST_SUITE_P(
    Libraries, CheckGccTest,
    ::testing::Values(Expected{"completes_twice", "T303", kFailed, "twice"},
                      Expected{"keeps_a_slice", "T501", kCrashed, "create()'s name"},
                      Expected{"crashes_in_result", "T306", kCrashed, "on_result()"},
                      Expected{"throws_in_event", "T303", kFailed, "an exception came out"},
                      Expected{"thread_local_destructor", "T106", kFailed, "stays mapped"}),
    name_of);

TEST(CheckGccFileTest, LibrariesThatKeepTheContractPass) {
  for (const char* const name : {"gcc_good", "gcc_good_cpp"}) {
    if (!std::filesystem::exists(zoo(name))) {
      ASSERT_FALSE(is_continuous_integration()) << kNoGcc12;
      GTEST_SKIP() << kNoGcc12;
    }
    const CheckReport report = check(zoo(name), check_options());
    EXPECT_TRUE(report.passed()) << report_text(report, true);
  }
}

// ---- the libraries of the loader's tests ----

class CheckLibraryTest : public ::testing::TestWithParam<Expected> {};

TEST_P(CheckLibraryTest, IsFoundOut) {
  expect(built_library(GetParam().library), GetParam());
}

INSTANTIATE_TEST_SUITE_P(
    Libraries, CheckLibraryTest,
    ::testing::Values(Expected{"wrong_magic", "L2", kFailed, "magic"},
                      Expected{"other_major", "L2", kFailed, "of the ABI, and this server has"},
                      Expected{"smaller_entry", "L2", kFailed, "struct_size"},
                      Expected{"larger_entry", "L2", CheckVerdict::kPassed, ""},
                      Expected{"no_deinit", "L2", kFailed, "deinit"},
                      Expected{"null_class", "L2", kFailed, "null"},
                      Expected{"endless_classes", "L2", kFailed, "does not exist"},
                      Expected{"two_announced", "L3", kFailed, "2 classes"},
                      Expected{"fail_in_init", "L4", kFailed, "my licence has run out"},
                      Expected{"undefined_symbol", "L1", kFailed, "no_such_function"},
                      Expected{"hidden_entry", "E7", kFailed, "hearth_plugin_v1"},
                      Expected{"second_export", "E8", kFailed, "second_export"},
                      Expected{"unique_symbol", "E9", kFailed, "only_one"},
                      Expected{"no_delete", "E9", kFailed, "nodelete"},
                      Expected{"no_delete", "T106", kFailed, "stays mapped"},
                      Expected{"run_path", "E6", kFailed, "/usr/lib/elsewhere"},
                      Expected{"no_note", "N1", kFailed, "no Hearth note"},
                      Expected{"bad_manifest", "N4", kFailed, ""},
                      Expected{"needs_more", "N6", kFailed, "hearth.moon/9"},
                      Expected{"crash_in_constructor", "P1", kCrashed, "SIGSEGV"},
                      Expected{"crash_in_destructor", "P1", kCrashed, "SIGBUS"},
                      Expected{"crash_in_init", "P1", kCrashed, "about to fall over"},
                      Expected{"exit_in_init", "P1", kCrashed, "ended the process"},
                      Expected{"hang_in_init", "P2", kTimedOut, "in init()", 1000ms},
                      Expected{"hang_with_child", "P2", kTimedOut, "in init()", 1000ms}),
    name_of);

TEST(CheckZooFileTest, AThreadThatIsJoinedInTimeIsAllowed) {
  const CheckReport report = check(zoo("joins_its_thread"), check_options());
  EXPECT_TRUE(report.passed()) << report_text(report, true);
  EXPECT_EQ(report.find("E17")->verdict, kWarning) << "and told";
}

TEST(CheckZooFileTest, ATruncatedLibraryFailsWhereverItEnds) {
  const TempDirectory directory;
  const Bytes whole = read_bytes(zoo("good"));
  for (const unsigned percent : {1U, 10U, 50U, 90U, 99U}) {
    Bytes bytes = whole;
    bytes.resize(whole.size() * percent / 100);
    const auto file = directory.path() / "cut.so";
    write_bytes(file, bytes);
    const CheckReport report = check(file, check_options());
    ASSERT_NE(report.find("E2"), nullptr);
    EXPECT_EQ(report.find("E2")->verdict, kFailed) << percent;
    EXPECT_EQ(report.find("T101"), nullptr) << percent;
    EXPECT_GT(report.untried, 30U) << percent;
  }
}

TEST(CheckZooFileTest, DataOfTheVersionBeforeMustBeMigrated) {
  CheckOptions chosen = check_options();
  chosen.only = {"T208"};
  chosen.older = zoo("good");
  const auto verdict = [&chosen](const std::string& library) {
    return check(zoo(library), chosen).find("T208")->verdict;
  };
  EXPECT_EQ(verdict("migrates"), CheckVerdict::kPassed);
  EXPECT_EQ(verdict("refuses_to_migrate"), kFailed);
  EXPECT_EQ(verdict("cannot_migrate"), CheckVerdict::kPassed) << "data without a version need none";
  chosen.older = zoo("migrates");
  EXPECT_EQ(verdict("refuses_to_migrate"), CheckVerdict::kSkipped) << "the same version";
  chosen.older = built_library("fail_in_init");
  EXPECT_EQ(verdict("migrates"), CheckVerdict::kError) << "an older one that cannot be loaded";
  chosen.older = zoo("no_such_library");
  EXPECT_EQ(check_library(zoo("good"), chosen).error().code, Errc::kNotFound);
}

TEST(CheckZooFileTest, AClassThatNeedsOptionsIsTriedWithThem) {
  CheckOptions chosen = check_options();
  chosen.only = {"T205", "T210"};
  CheckReport report = check(zoo("needs_options"), chosen);
  EXPECT_FALSE(report.passed());
  EXPECT_EQ(report.find("T205")->verdict, CheckVerdict::kSkipped) << "T210 says why";
  chosen.options = R"({"rounds":3})";
  report = check(zoo("needs_options"), chosen);
  EXPECT_TRUE(report.passed()) << report_text(report, true);
  EXPECT_EQ(report.find("T205")->verdict, CheckVerdict::kPassed);
}

// ---- libraries that must pass ----

class CheckGoodTest : public ::testing::TestWithParam<std::filesystem::path> {};

TEST_P(CheckGoodTest, Passes) {
  const CheckReport report = check(GetParam(), check_options());
  EXPECT_TRUE(report.passed()) << report_text(report, true);
  EXPECT_EQ(report.count(CheckVerdict::kWarning), 0U) << report_text(report, false);
}

// Every folder of plugins/ is a library.
std::vector<std::filesystem::path> shipped() {
  std::vector<std::filesystem::path> files;
  std::istringstream names(HEARTH_SHIPPED);
  for (std::string name; names >> name;) files.push_back(hearth::testing::built::bundled(name));
  return files;
}

std::string stem_of(const ::testing::TestParamInfo<std::filesystem::path>& each) {
  std::string stem = each.param.stem().native();
  std::ranges::replace(stem, '-', '_');
  return stem;
}

INSTANTIATE_TEST_SUITE_P(Zoo, CheckGoodTest,
                         ::testing::Values(hearth::testing::built::zoo("good"),
                                           hearth::testing::built::zoo("good_cpp"),
                                           hearth::testing::built::zoo("two_classes"),
                                           hearth::testing::built::zoo("reads_bodies")),
                         stem_of);
INSTANTIATE_TEST_SUITE_P(Shipped, CheckGoodTest, ::testing::ValuesIn(shipped()), stem_of);

// ---- seeds ----

std::uint64_t wanted_seeds() {
  return from_environment("HEARTH_CHECK_SEEDS", 2);
}

// The documents' own. The last has a dozen classes, and all cases of it take most of a minute: only
// in the long form. With a sanitizer one library: a check takes several times as long.
std::vector<std::filesystem::path> printed() {
  using hearth::testing::built::printed;
  std::vector<std::filesystem::path> files{printed("counter")};
  if (!kSanitized) files.push_back(printed("night-watch"));
  if (wanted_seeds() > 2) files.push_back(printed("guide-agents"));
  return files;
}

std::vector<std::filesystem::path> examples() {
  using hearth::testing::built::printed;
  if (kSanitized) return {printed("counter")};
  std::vector<std::filesystem::path> files = shipped();
  for (const char* const name : {"counter", "night-watch", "guide-agents"})
    files.push_back(printed(name));
  files.push_back(hearth::testing::built::agent("sower-agent"));
  // tests/rust/rust_agent_test.cpp tries its other cases.
  const auto watcher = hearth::testing::built::rust("watcher");
  if (std::filesystem::exists(watcher)) files.push_back(watcher);
  return files;
}

class CheckPrintedTest : public ::testing::TestWithParam<std::filesystem::path> {};

TEST_P(CheckPrintedTest, Passes) {
  CheckOptions options = check_options();
  options.time_limit = 60s;             // for many classes
  options.excluded = {"T401", "T402"};  // take half of it: CheckSeedsTest
  const CheckReport report = check(GetParam(), options);
  EXPECT_TRUE(report.passed()) << report_text(report, true);
}

INSTANTIATE_TEST_SUITE_P(Documents, CheckPrintedTest, ::testing::ValuesIn(printed()), stem_of);

// Three cases depend on the seed: it makes ids, whose sizes in memory differ (T202), damages bodies
// (T308), and says which calls fail first (T402). The short form leaves out the cases of hosts that
// fail, which take half of their time limit.
class CheckSeedsTest : public ::testing::TestWithParam<std::filesystem::path> {};

TEST_P(CheckSeedsTest, PassesWithEachSeed) {
  const std::uint64_t seeds = wanted_seeds();
  const bool is_long = seeds > 2;
  CheckOptions options = check_options();
  for (options.seed = 1; options.seed <= seeds; ++options.seed) {
    options.time_limit = 60s;
    options.only = {"T202", "T308"};
    CheckReport report = check(GetParam(), options);
    EXPECT_TRUE(report.passed()) << report_text(report, true);
    if (!is_long) continue;
    options.time_limit = 3s;
    options.only = {"T401", "T402"};
    report = check(GetParam(), options);
    EXPECT_TRUE(report.passed()) << report_text(report, true);
  }
}

INSTANTIATE_TEST_SUITE_P(Examples, CheckSeedsTest, ::testing::ValuesIn(examples()),
                         [](const ::testing::TestParamInfo<std::filesystem::path>& each) {
                           return std::to_string(each.index) + "_" + stem_of(each);
                         });

}  // namespace
}  // namespace hearth::plugins
