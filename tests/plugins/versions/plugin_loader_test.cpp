#include "plugins/versions/plugin_loader.hpp"

#include "base/sha256.hpp"
#include "plugins/admission/required_check.hpp"
#include "plugins/check/check_record.hpp"
#include "plugins/versions/plugin_loader_fixture.hpp"

#include <sys/stat.h>

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

namespace hearth::plugins {
namespace {

using namespace testing;
using namespace std::chrono_literals;

TEST_F(PluginLoaderTest, K1_AServerThatAsksForACheckLoadsOnlyWhatHasPassed) {
  options_.checked_directory = directory_.path() / "data" / kCheckedDirectory;
  install("plain", "plain.so");
  const LoadReport before = load();
  EXPECT_TRUE(before.plugins.empty());
  ASSERT_NE(refusal_of(before, "plain.so"), nullptr);
  EXPECT_EQ(refusal_of(before, "plain.so")->rule, "K1");

  // A check while the server runs is enough.
  CheckReport passed;
  Sha256 hash;
  hash.update(library_bytes("plain"));
  passed.sha256 = to_hex(hash.finish());
  ASSERT_TRUE(write_check_record(directory_.path() / "data", passed, clock_));
  EXPECT_TRUE(loader().load_version(plugins() / "plain.so").plugin);

  // It was for those bytes alone.
  install("plain_v2", "plain.so");
  const VersionReport other = loader().load_version(plugins() / "plain.so");
  ASSERT_TRUE(other.refusal);
  EXPECT_EQ(other.refusal->rule, "K1");
}

TEST_F(PluginLoaderTest, ServesALibraryThatIsRight) {
  LoadReport report = load_plain();
  EXPECT_TRUE(report.refusals.empty());
  EXPECT_TRUE(report.faults.empty());
  const LoadedPlugin& plugin = report.plugins[0];
  EXPECT_EQ(plugin.file, plugins() / "plain.so");
  EXPECT_EQ(plugin.plugin, "plain");
  EXPECT_EQ(plugin.version, "1.0.0");
  EXPECT_EQ(plugin.generation, 1U);
  EXPECT_EQ(plugin.sha256.size(), 64U);
  EXPECT_TRUE(plugin.warnings.empty());
  ASSERT_EQ(plugin.classes.size(), 1U);
  EXPECT_EQ(plugin.classes[0]->name(), "Plain");
  EXPECT_EQ(plugin.classes[0]->origin(), (plugins() / "plain.so").native());
  EXPECT_TRUE(logger_.contains("info plugin.loaded"));
  EXPECT_EQ(staged_files(), 1U);
}

TEST_F(PluginLoaderTest, OneBadFileCostsOnlyItself) {
  install("plain", "z-good.so");
  write_bytes(plugins() / "a-text.so", bytes_of_text("this is no library"));
  write_bytes(plugins() / "b-empty.so", {});
  Bytes cut = library_bytes("plain");
  cut.resize(cut.size() * 3 / 4);
  write_bytes(plugins() / "c-cut.so", cut);
  install("crash_in_init", "e-crash.so");
  install("fail_in_init", "f-fail.so");
  install("exit_in_init", "g-exit.so");
  install("run_path", "h-path.so");
  std::filesystem::create_directory(plugins() / "i-directory.so");
  std::filesystem::create_symlink(built_library("plain"), plugins() / "j-link.so");
  install("plain", "k-writable.so");
  ASSERT_EQ(::chmod((plugins() / "k-writable.so").c_str(), 0666), 0);

  const LoadReport report = load();
  ASSERT_EQ(report.plugins.size(), 1U);
  EXPECT_EQ(report.plugins[0].file.filename(), "z-good.so");
  const std::pair<const char*, const char*> expected[] = {
      {"a-text.so", "E1"}, {"b-empty.so", "F5"},   {"c-cut.so", "E2"},  {"e-crash.so", "P1"},
      {"f-fail.so", "L4"}, {"g-exit.so", "P1"},    {"h-path.so", "E6"}, {"i-directory.so", "F1"},
      {"j-link.so", "F1"}, {"k-writable.so", "F3"}};
  EXPECT_EQ(report.refusals.size(), std::size(expected));
  for (const auto& [file, rule] : expected) {
    const Refusal* const refusal = refusal_of(report, file);
    ASSERT_NE(refusal, nullptr) << file;
    EXPECT_EQ(refusal->rule, rule) << refusal->text();
    EXPECT_NE(refusal->text().find(std::string(file) + " is refused by rule " + rule + ": it"),
              std::string::npos)
        << refusal->text();
    EXPECT_TRUE(logger_.contains("rule=" + std::string(rule)));
  }
  EXPECT_EQ(logger_.count("error plugin.refused"), std::size(expected));
  EXPECT_EQ(staged_files(), 1U) << "copies of what was refused are removed";
}

TEST_F(PluginLoaderTest, L5_ALibraryThatChangesTheProcessIsRefusedByItsTrial) {
  for (const char* const name :
       {"changes_the_umask", "changes_the_directory", "handles_a_signal", "changes_the_environment",
        "changes_the_locale", "sets_an_alarm", "lowers_a_limit"}) {
    const auto broken = probe_library(hearth::testing::built::zoo(name), options_.probe);
    ASSERT_TRUE(broken) << name;
    EXPECT_EQ(broken->rule, "L5") << name << ": " << broken->reason;
    EXPECT_TRUE(broken->reason.starts_with("after its init() ")) << broken->reason;
  }
}

TEST_F(PluginLoaderTest, WhatALibraryChangesInTheProcessIsPutBack) {
  const auto library = hearth::testing::built::zoo("changes_things_when_served");
  write_bytes(plugins() / "sly.so", read_bytes(library));
  const auto before = std::filesystem::current_path();
  const mode_t mask = ::umask(022);
  EXPECT_EQ(load().plugins.size(), 1U);
  EXPECT_EQ(::umask(mask), 022U);
  EXPECT_EQ(std::filesystem::current_path(), before);
  EXPECT_TRUE(logger_.contains("warn plugin.process_restored"));
  EXPECT_TRUE(
      logger_.contains("changed=\"the current directory is \\\"/\\\", the umask is another\"") ||
      logger_.contains("the current directory is \"/\", the umask is another"));
}

// A library that sets handlers, a locale and the umask when it creates an agent: loaded, and
// unloaded again.
class PluginLoaderHandlersTest : public PluginLoaderTest {
 protected:
  // What is different then, and in between.
  std::vector<std::string> changes_of(std::string_view library) {
    const ProcessSettings before = ProcessSettings::take();
    install(library, "handlers.so");
    {
      LoadReport report = load();
      EXPECT_EQ(report.plugins.size(), 1U);
      if (report.plugins.empty()) return {"it is not served"};
      hearth::testing::TestAgent agent(12);
      EXPECT_TRUE(report.plugins[0].classes.at(0)->create(agent, "a", "{}"));
      meanwhile_ = differences(before, ProcessSettings::take());
    }
    EXPECT_EQ(loader().unload_all(), 1U);
    return differences(before, ProcessSettings::take());
  }

  std::vector<std::string> meanwhile_;
  const std::vector<std::string> all_{
      "SIGUSR2 is handled differently", "std::set_terminate was called",
      "std::set_new_handler was called", "the umask is another", "std::locale::global was called"};
};

TEST_F(PluginLoaderHandlersTest, WhatALibraryHasTakenBackIsNotPutInAgain) {
  EXPECT_EQ(changes_of("handlers"), std::vector<std::string>{});
  EXPECT_EQ(meanwhile_, all_);
  EXPECT_FALSE(logger_.contains("plugin.process_restored"))
      << "it has done nothing wrong at the end";
}

TEST_F(PluginLoaderHandlersTest, HandlersOfALibraryGoWithIt) {
  const mode_t mask = ::umask(022);
  // A umask is no code, so its owner is unknown: the server does not restore it.
  EXPECT_EQ(changes_of("keeps_handlers"), std::vector<std::string>{"the umask is another"});
  EXPECT_EQ(meanwhile_, all_);
  EXPECT_TRUE(logger_.contains("warn plugin.process_restored"));
  EXPECT_TRUE(
      logger_.contains("SIGUSR2 is handled differently, std::set_terminate was called, "
                       "std::set_new_handler was called, std::locale::global was called"));
  ::umask(mask);
}

TEST_F(PluginLoaderHandlersTest, ALocaleOfALibraryThatIsRefusedIsReleasedBeforeItsCodeGoes) {
  install("fails_with_a_locale", "handlers.so");
  const ProcessSettings before = ProcessSettings::take();
  const LoadReport report = load();
  ASSERT_NE(refusal_of(report, "handlers.so"), nullptr);
  EXPECT_EQ(refusal_of(report, "handlers.so")->rule, "L4");
  EXPECT_EQ(differences(before, ProcessSettings::take()), std::vector<std::string>{});
  EXPECT_TRUE(logger_.contains("std::locale::global was called"));
}

TEST_F(PluginLoaderTest, OnlyVisibleNamesThatEndInSoAreLookedAt) {
  install("plain", "plain.so");
  install("plain", ".plain.so");
  install("plain", "plain.so.tmp");
  write_bytes(plugins() / "README", bytes_of_text("read me"));
  const LoadReport report = load();
  EXPECT_EQ(report.plugins.size(), 1U);
  EXPECT_TRUE(report.refusals.empty());
}

TEST_F(PluginLoaderTest, C1_TheSecondLibraryWithAClassIsRefusedWithBothNames) {
  install("plain", "a.so");
  install("plain", "b.so");
  const LoadReport report = load();
  ASSERT_EQ(report.plugins.size(), 1U);
  EXPECT_EQ(report.plugins[0].file.filename(), "a.so");
  ASSERT_EQ(report.refusals.size(), 1U);
  const std::string text = report.refusals[0].text();
  EXPECT_EQ(report.refusals[0].rule, "C1");
  EXPECT_NE(text.find("a.so"), std::string::npos) << text;
  EXPECT_NE(text.find("b.so"), std::string::npos) << text;
  EXPECT_NE(text.find("class Plain,"), std::string::npos) << text;
}

TEST_F(PluginLoaderTest, C1_TwoClassesThatShareAnAddressAreRefused) {
  install("plain", "a.so");
  install("same_segment", "b.so");
  const LoadReport report = load();
  EXPECT_EQ(report.plugins.size(), 1U);
  ASSERT_EQ(report.refusals.size(), 1U);
  EXPECT_EQ(report.refusals[0].rule, "C1");
  EXPECT_NE(report.refusals[0].reason.find("/agents/plain/"), std::string::npos)
      << report.refusals[0].reason;
}

TEST_F(PluginLoaderTest, WarningsAreToldAndTheLibraryIsServed) {
  install("second_export", "plain.so");
  const LoadReport report = load();
  ASSERT_EQ(report.plugins.size(), 1U);
  ASSERT_EQ(report.plugins[0].warnings.size(), 1U);
  EXPECT_EQ(report.plugins[0].warnings[0].rule, "E8");
  EXPECT_TRUE(logger_.contains("warn plugin.warning"));
}

TEST_F(PluginLoaderTest, AMissingDirectoryIsToldAndTheOthersAreServed) {
  install("plain", "plain.so");
  const auto report = loader().load_directories({directory_.path() / "none", plugins()}).value();
  ASSERT_EQ(report.faults.size(), 1U);
  EXPECT_EQ(report.faults[0].code, Errc::kNotFound);
  EXPECT_NE(report.faults[0].reason.find("none"), std::string::npos);
  EXPECT_EQ(report.plugins.size(), 1U);
  EXPECT_TRUE(logger_.contains("error plugin.directory"));
}

TEST_F(PluginLoaderTest, F4_NothingIsLoadedFromADirectoryThatOthersCanWrite) {
  install("plain", "plain.so");
  ASSERT_EQ(::chmod(plugins().c_str(), 0777), 0);
  const LoadReport report = load();
  EXPECT_TRUE(report.plugins.empty());
  ASSERT_EQ(report.faults.size(), 1U);
  EXPECT_EQ(report.faults[0].code, Errc::kForbidden);
}

TEST_F(PluginLoaderTest, ADirectoryThatIsNamedTwiceIsReadOnce) {
  install("plain", "plain.so");
  const auto report =
      loader().load_directories({plugins(), plugins() / "..", plugins() / "."}).value();
  EXPECT_EQ(report.plugins.size(), 1U);
  EXPECT_TRUE(report.refusals.empty());
}

TEST_F(PluginLoaderTest, TheUsersFileMayChangeAfterwards) {
  const LoadReport report = load_plain();
  write_bytes(plugins() / "plain.so", {});  // in place: would kill a process that had mapped it
  hearth::testing::TestAgent agent(1);
  EXPECT_EQ(report.plugins[0].classes[0]->create(agent, "refused", "{}").error().code,
            Errc::kForbidden);
}

TEST_F(PluginLoaderTest, S1_WithoutAPlaceForCopiesNothingIsLoaded) {
  install("plain", "plain.so");
  options_.staging_directory = directory_.path() / "none" / "staged";
  EXPECT_EQ(loader().load_directories({plugins()}).error().code, Errc::kUnavailable);
}

TEST_F(PluginLoaderTest, UnloadsEverythingThatNobodyUses) {
  install("plain", "plain.so");
  install("busy", "zbusy.so");
  LoadReport report = load();
  ASSERT_EQ(report.plugins.size(), 2U);
  report.plugins.clear();
  EXPECT_EQ(loader().unload_all(), 1U);
  EXPECT_TRUE(logger_.contains("warn plugin.pinned"));
  EXPECT_TRUE(logger_.contains("zbusy.so"));
  EXPECT_EQ(staged_files(), 0U);
}

TEST_F(PluginLoaderTest, ALibraryInUseStaysMappedEvenAfterTheLoader) {
  LoadReport report = load_plain();
  const auto kept = report.plugins[0].classes[0];
  report.plugins.clear();
  EXPECT_EQ(loader().unload_all(), 0U);
  EXPECT_TRUE(logger_.contains("an agent of it still lives"));
  loader_.reset();
  EXPECT_EQ(kept->name(), "Plain");
  hearth::testing::TestAgent agent(1);
  EXPECT_TRUE(kept->create(agent, "x", "{}"));
}

TEST_F(PluginLoaderTest, WhatCouldNotBeTriedIsTriedAgain) {
  options_.probe.program = directory_.path() / "probe";
  install("plain", "plain.so");
  const LoadReport untried = load();
  ASSERT_EQ(untried.refusals.size(), 1U);
  EXPECT_EQ(untried.refusals[0].rule, "P1");
  std::filesystem::create_symlink(hearth::testing::built::probe(), options_.probe.program);
  EXPECT_TRUE(loader().load_version(plugins() / "plain.so").plugin);
}

TEST_F(PluginLoaderTest, R2_WhatMayNotBeLoadedIsNotEvenTried) {
  install("crash_in_init", "bad.so");
  install("plain", "good.so");
  Sha256 hash;
  hash.update(library_bytes("crash_in_init"));
  const std::string held = to_hex(hash.finish());
  diagnosis::CrashRecord crash;
  crash.reason = diagnosis::kHung;
  crash.call = "init";
  crash.agent_class = "Held";
  crash.sha256 = held;
  EXPECT_TRUE(ledger_.crashed(crash).is_quarantined);
  const LoadReport report = load();
  ASSERT_EQ(report.plugins.size(), 1U);
  EXPECT_EQ(report.plugins[0].generation, 1U) << "no copy was made of the other";
  ASSERT_NE(refusal_of(report, "bad.so"), nullptr);
  EXPECT_EQ(refusal_of(report, "bad.so")->rule, "R2");
  EXPECT_TRUE(refusal_of(report, "bad.so")
                  ->reason.starts_with(
                      "it is in quarantine and not loaded: it ended the server (hung in init)"));
  EXPECT_EQ(refusal_of(report, "bad.so")->sha256, held);
}

TEST_F(PluginLoaderTest, OfBadFilesOnlyTheLastAreRemembered) {
  load();
  const Bytes bad = library_bytes("exit_in_init");
  const auto drop = [&](std::size_t number) {
    Bytes bytes = bad;
    // Another content each; nothing reads what stands behind the last section.
    for (const char digit : std::to_string(number)) bytes.push_back(static_cast<std::byte>(digit));
    write_bytes(plugins() / "bad.so", bytes);
    const VersionReport report = loader().load_version(plugins() / "bad.so");
    ASSERT_TRUE(report.refusal);
    ASSERT_EQ(report.refusal->rule, "P1") << report.refusal->reason;
  };
  // Each that is tried has a number, and so has the good one at the end.
  for (std::size_t i = 0; i <= kMaxContents; ++i) drop(i);
  drop(kMaxContents);  // known
  drop(1);             // known
  drop(0);             // forgotten
  install("plain", "good.so");
  const VersionReport good = loader().load_version(plugins() / "good.so");
  ASSERT_TRUE(good.plugin);
  EXPECT_EQ(good.plugin->generation, kMaxContents + 3);
}

TEST_F(PluginLoaderTest, WhatHasFailedItsTrialIsNotTriedByTheNextServerUnlessAPersonWantsIt) {
  install("crash_in_init", "bad.so");
  EXPECT_EQ(refusal_of(load(), "bad.so")->rule, "P1");
  const VersionLedger next(directory_.path(), "1.0.0");
  const std::string hash = ledger_.facts().contents.at(0).sha256;
  EXPECT_EQ(next.refusal(plugins() / "bad.so", hash)->rule, "P1");
  loader().forgive(hash);
  EXPECT_FALSE(VersionLedger(directory_.path(), "1.0.0").refusal(plugins() / "bad.so", hash));
}

TEST_F(PluginLoaderTest, CanLoadAgainAfterUnloading) {
  install("plain", "plain.so");
  for (std::uint64_t round = 1; round <= 3; ++round) {
    LoadReport report = load();
    ASSERT_EQ(report.plugins.size(), 1U) << round;
    EXPECT_EQ(report.plugins[0].generation, round);
    report.plugins.clear();
    EXPECT_EQ(loader().unload_all(), 1U);
  }
}

}  // namespace
}  // namespace hearth::plugins
