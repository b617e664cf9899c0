// Class files, edited as operators edit them.
#include "plugins/versions/class_configuration.hpp"

#include "config/class_file.hpp"
#include "config/parse.hpp"
#include "plugins/versions/version_ledger.hpp"
#include "support/temp_directory.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace hearth::plugins {
namespace {

using std::chrono::seconds;
using Keys = std::vector<std::string>;

class ClassConfigurationTest : public ::testing::Test {
 protected:
  ClassConfigurationTest() {
    std::filesystem::create_directory(classes());
    put("counter.yaml", "class: counter\nidle_timeout: 10s\n");
    start();
  }

  // As a server does. The ledger has what the last server knew of its classes.
  void start() {
    ledger_.emplace(directory_.path(), "1.0.0");
    configuration_.emplace(classes(), config::load_class_files(classes(), true).value(), *ledger_);
  }

  [[nodiscard]] std::filesystem::path classes() const { return directory_.path() / "classes"; }
  void put(const std::string& name, const std::string& text) const {
    std::ofstream(classes() / name) << text;
  }
  ClassConfiguration::Reading read(const std::string& segment = "", bool by_person = false) {
    return configuration_->read_again(segment, by_person);
  }
  ClassConfiguration::Reading put_and_read(const std::string& name, const std::string& text) {
    put(name, text);
    return read();
  }
  // Settings with another idle timeout and these rules come, and are taken back.
  void read_and_take_back(const std::string& rules) {
    const auto before = configuration_->of("counter");
    put("counter.yaml", "class: counter\nidle_timeout: 20s\n" + rules + "\n");
    read();
    configuration_->take_back("Counter", configuration_->of("counter"), before, "it failed");
    EXPECT_EQ(idle_timeout(), seconds(10));
  }
  void expect_taken_back() const {
    const auto list = configuration_->taken_back();
    ASSERT_EQ(list.size(), 1U);
    EXPECT_EQ(list[0].file, classes() / "counter.yaml");
    EXPECT_EQ(list[0].reason, "agents failed");
  }
  using Aliases = ClassConfiguration::Aliases;
  using Names = std::vector<std::string>;
  [[nodiscard]] seconds idle_timeout(const std::string& name = "counter") const {
    return std::chrono::duration_cast<seconds>(configuration_->of(name)->settings.idle_timeout);
  }

  hearth::testing::TempDirectory directory_;
  std::optional<VersionLedger> ledger_;
  std::optional<ClassConfiguration> configuration_;
};

TEST_F(ClassConfigurationTest, AClassWithoutAFileHasTheDefaults) {
  EXPECT_EQ(idle_timeout(), seconds(10));
  EXPECT_EQ(idle_timeout("other"), seconds(60));
  EXPECT_EQ(configuration_->of("other")->file, "");
}

TEST_F(ClassConfigurationTest, AllClassesAreObjectsIfTheServerSaysSo) {
  configuration_.emplace(classes(), config::ClassConfigs(), *ledger_, "",
                         config::ForClasses{.all_are_objects = true});
  EXPECT_TRUE(configuration_->of("other")->settings.is_object);
  EXPECT_EQ(idle_timeout("other"), seconds(300));
  put_and_read("counter.yaml", "class: counter\n");
  EXPECT_TRUE(configuration_->of("counter")->settings.is_object);
  put_and_read("counter.yaml", "class: counter\nobjects: false\n");
  EXPECT_FALSE(configuration_->of("counter")->settings.is_object);
  EXPECT_EQ(idle_timeout(), seconds(60));
}

TEST_F(ClassConfigurationTest, FilesMayNotTakeTheClaimsThatARouteNeeds) {
  put("counter.yaml", "class: counter\nauth: {type: jwt}\n");
  start();
  RouteRule route;
  route.path = "/user";
  route.agent_class = "counter";
  route.name = "{sub}";
  configuration_->keep_claims_for({route}, {});
  const auto type = [this] { return configuration_->entry_rules().at("counter")->auth.type; };
  put("counter.yaml", "class: counter\nidle_timeout: 5s\nauth: {type: none}\n");
  for (const std::string segment : {"", "counter", "other"}) {
    const auto refused = read(segment, true);
    ASSERT_EQ(refused.mistakes.size(), 1U) << segment;
    EXPECT_NE(refused.mistakes.front().message.find("the route \"/user\" has claims"),
              std::string::npos)
        << refused.mistakes.front().message;
    EXPECT_EQ(type(), ProofKind::kJwt) << segment;
    EXPECT_EQ(idle_timeout(), seconds(60)) << "all or none";
  }
  put("counter.yaml", "class: counter\nidle_timeout: 5s\nauth: {type: jwt}\n");
  EXPECT_TRUE(read().mistakes.empty());
  EXPECT_EQ(idle_timeout(), seconds(5));
}

TEST_F(ClassConfigurationTest, AFileMayNameItsClassAsUrlsSpellIt) {
  put("room.yaml", "class: chat-room\nidle_timeout: 5s\n");
  EXPECT_EQ(read().changes.size(), 1U);
  EXPECT_EQ(idle_timeout("ChatRoom"), seconds(5));
}

TEST_F(ClassConfigurationTest, WhatIsTheSameIsNoChange) {
  const auto before = configuration_->of("counter");
  const auto reading =
      put_and_read("counter.yaml", "# a comment\nidle_timeout: 10000ms\nclass: counter\n");
  EXPECT_TRUE(reading.mistakes.empty());
  EXPECT_TRUE(reading.changes.empty());
  EXPECT_EQ(configuration_->of("counter"), before);
}

TEST_F(ClassConfigurationTest, AChangeNamesItsKeysAndHolds) {
  const auto reading =
      put_and_read("counter.yaml", "class: counter\nidle_timeout: 20s\noptions: {start: 3}\n");
  ASSERT_EQ(reading.changes.size(), 1U);
  EXPECT_EQ(reading.changes[0].agent_class, "counter");
  EXPECT_EQ(reading.changes[0].file, classes() / "counter.yaml");
  EXPECT_EQ(reading.changes[0].keys, (Keys{"idle_timeout", "options.start"}));
  EXPECT_EQ(idle_timeout(), seconds(20));
}

TEST_F(ClassConfigurationTest, ANewFileIsAChangeForItsClassAlone) {
  const auto counter = configuration_->of("counter");
  const auto reading = put_and_read("room.yaml", "class: room\nevict_grace: 1s\n");
  ASSERT_EQ(reading.changes.size(), 1U);
  EXPECT_EQ(reading.changes[0].agent_class, "room");
  EXPECT_EQ(configuration_->of("counter"), counter);
}

TEST_F(ClassConfigurationTest, AFileThatIsRemovedLeavesTheDefaults) {
  put("room.yaml", "class: room\n");
  EXPECT_TRUE(read().changes.empty());
  std::filesystem::remove(classes() / "counter.yaml");
  const auto reading = read();
  ASSERT_EQ(reading.changes.size(), 1U);
  EXPECT_EQ(reading.changes[0].file, classes() / "counter.yaml");
  EXPECT_EQ(reading.changes[0].keys, Keys{"idle_timeout"});
  EXPECT_EQ(idle_timeout(), seconds(60));
}

TEST_F(ClassConfigurationTest, AMistakeInOneFileKeepsWhatHoldsForAll) {
  put("counter.yaml", "class: counter\nidle_timeout: 20s\n");
  const auto reading = put_and_read("room.yaml", "class: room\ndurability: disk\n");
  EXPECT_TRUE(reading.changes.empty());
  ASSERT_EQ(reading.mistakes.size(), 1U);
  EXPECT_EQ(to_string(reading.mistakes[0]),
            (classes() / "room.yaml").native() +
                ":2:13: durability: expected process or power, found \"disk\"");
  EXPECT_EQ(idle_timeout(), seconds(10));
  put("room.yaml", "class: room\ndurability: power\n");
  EXPECT_EQ(read().changes.size(), 2U);
  EXPECT_EQ(idle_timeout(), seconds(20));
}

TEST_F(ClassConfigurationTest, ADirectoryThatIsGoneIsAMistake) {
  std::filesystem::remove_all(classes());
  EXPECT_EQ(read().mistakes.size(), 1U);
  EXPECT_EQ(idle_timeout(), seconds(10));
}

TEST_F(ClassConfigurationTest, ADirectoryWithoutAnyFileIsAMistakeUntilAPersonAsks) {
  std::filesystem::remove(classes() / "counter.yaml");
  const auto reading = read();
  ASSERT_EQ(reading.mistakes.size(), 1U);
  EXPECT_EQ(to_string(reading.mistakes[0]),
            classes().native() +
                ": classes: there is no class file any more; `hearth reload` if that is meant");
  EXPECT_EQ(read("room").mistakes.size(), 1U);
  EXPECT_EQ(idle_timeout(), seconds(10));
  EXPECT_TRUE(read("room", true).changes.empty());
  EXPECT_EQ(read().mistakes.size(), 1U) << "that was of another class";
  EXPECT_EQ(read("", true).changes.size(), 1U);
  EXPECT_EQ(idle_timeout(), seconds(60));
  EXPECT_TRUE(read().mistakes.empty()) << "there are none to miss any more";
}

TEST_F(ClassConfigurationTest, AnotherSpellingOfAClassIsTheSameClass) {
  put("room.yaml", "class: ChatRoom\nidle_timeout: 5s\n");
  EXPECT_EQ(read().changes.size(), 1U);
  put("room.yaml", "class: chat-room\nidle_timeout: 5s\n");
  EXPECT_TRUE(read().changes.empty());
  put("room.yaml", "class: chat-room\nidle_timeout: 6s\n");
  EXPECT_EQ(read().changes.size(), 1U);
  for (const char* name : {"ChatRoom", "chat-room"}) EXPECT_EQ(idle_timeout(name), seconds(6));
  put("other.yaml", "class: ChatRoom\n");
  ASSERT_EQ(read().mistakes.size(), 1U);
  std::filesystem::remove(classes() / "other.yaml");
  const auto failed = configuration_->of("ChatRoom");
  configuration_->take_back("ChatRoom", failed, configuration_->of("other"), "agents failed");
  put("room.yaml", "class: ChatRoom\nidle_timeout: 6s\n");
  EXPECT_TRUE(read().changes.empty()) << "they were taken back, however they are spelled";
}

TEST_F(ClassConfigurationTest, ADirectoryThatNeverWasMayComeLater) {
  const std::filesystem::path later = directory_.path() / "later";
  ClassConfiguration configuration(later, {}, *ledger_);
  EXPECT_TRUE(configuration.read_again("", false).mistakes.empty());
  std::filesystem::create_directory(later);
  std::ofstream(later / "a.yaml") << "class: a\nidle_timeout: 1s\n";
  EXPECT_EQ(configuration.read_again("", false).changes.size(), 1U);
  std::filesystem::remove_all(later);
  EXPECT_EQ(configuration.read_again("", false).mistakes.size(), 1U);
}

TEST_F(ClassConfigurationTest, WithASegmentOnlyThatClassChanges) {
  put("counter.yaml", "class: counter\nidle_timeout: 20s\n");
  put("room.yaml", "class: ChatRoom\nidle_timeout: 5s\n");
  const auto reading = read("chat-room");
  ASSERT_EQ(reading.changes.size(), 1U);
  EXPECT_EQ(reading.changes[0].agent_class, "ChatRoom");
  EXPECT_EQ(idle_timeout(), seconds(10));
  EXPECT_EQ(read().changes.size(), 1U) << "and the other one with the next look";
}

class TakenBackTest : public ClassConfigurationTest {
 protected:
  TakenBackTest() {
    before_ = configuration_->of("counter");
    put("counter.yaml", "class: counter\noptions: {strat: 1}\nidle_timeout: 10s\n");
    read();
    failed_ = configuration_->of("counter");
    configuration_->take_back("counter", failed_, before_, "agents failed");
  }
  ClassConfiguration::Settings before_;
  ClassConfiguration::Settings failed_;
};

TEST_F(TakenBackTest, WhatWasBeforeHoldsAndTheFileIsNamed) {
  EXPECT_EQ(configuration_->of("counter"), before_);
  expect_taken_back();
  EXPECT_EQ(configuration_->taken_back()[0].agent_class, "counter");
}

TEST_F(TakenBackTest, AChangeOfAnotherClassDoesNotTryItAgain) {
  put("room.yaml", "class: room\nidle_timeout: 1s\n");
  EXPECT_EQ(read().changes.size(), 1U);
  EXPECT_EQ(configuration_->of("counter"), before_);
}

TEST_F(TakenBackTest, APersonTriesItAgain) {
  EXPECT_EQ(read("", true).changes.size(), 1U);
  EXPECT_NE(configuration_->of("counter"), before_);
  EXPECT_TRUE(configuration_->taken_back().empty());
}

TEST_F(TakenBackTest, OtherSettingsAreTried) {
  put("counter.yaml", "class: counter\noptions: {start: 1}\nidle_timeout: 10s\n");
  EXPECT_EQ(read().changes.size(), 1U);
  EXPECT_TRUE(configuration_->taken_back().empty());
}

TEST_F(TakenBackTest, AFileThatSaysWhatHoldsIsNoChange) {
  const auto reading = put_and_read("counter.yaml", "class: counter\nidle_timeout: 10s\n");
  EXPECT_TRUE(reading.changes.empty());
  EXPECT_EQ(reading.segments, std::set<std::string>{"counter"}) << "it is mended";
  EXPECT_TRUE(configuration_->taken_back().empty());
  EXPECT_TRUE(read().segments.empty());
}

TEST_F(TakenBackTest, NewCodeTriesItAgain) {
  EXPECT_TRUE(configuration_->try_again("counter"));
  EXPECT_EQ(configuration_->of("counter"), failed_);
  EXPECT_FALSE(configuration_->try_again("counter"));
  EXPECT_FALSE(configuration_->try_again("other"));
}

TEST_F(TakenBackTest, NewerSettingsAreNotTakenBackForOlderOnes) {
  put_and_read("counter.yaml", "class: counter\nidle_timeout: 30s\n");
  configuration_->take_back("counter", failed_, before_, "too late");
  EXPECT_EQ(idle_timeout(), seconds(30));
  EXPECT_TRUE(configuration_->taken_back().empty());
}

TEST_F(TakenBackTest, P3_WhatWasBeforeHoldsAfterARestartToo) {
  for (int i = 0; i < 2; ++i) {
    start();
    EXPECT_EQ(config::changed_keys(*configuration_->of("counter"), *before_), Keys{});
    expect_taken_back();
    EXPECT_TRUE(read().changes.empty());
  }
  EXPECT_EQ(read("", true).changes.size(), 1U) << "a person tries it again";
  EXPECT_EQ(config::changed_keys(*configuration_->of("counter"), *failed_), Keys{});
}

TEST_F(TakenBackTest, AfterARestartNewCodeTriesItAgain) {
  start();
  EXPECT_TRUE(configuration_->try_again("counter"));
  EXPECT_EQ(config::changed_keys(*configuration_->of("counter"), *failed_), Keys{});
}

TEST_F(TakenBackTest, OtherSettingsThatARestartFindsAreOnTrial) {
  put("counter.yaml", "class: counter\noptions: {start: 1}\n");
  start();
  EXPECT_TRUE(configuration_->taken_back().empty());
  EXPECT_TRUE(configuration_->is_on_trial("counter"));
  EXPECT_EQ(configuration_->of("counter")->settings.options, R"({"start":1})");
}

TEST_F(TakenBackTest, AFileThatARestartFindsMendedIsAllThereIs) {
  put("counter.yaml", "class: counter\nidle_timeout: 10s\n");
  start();
  EXPECT_TRUE(ledger_->settings().empty());
  EXPECT_EQ(idle_timeout(), seconds(10));
}

TEST_F(TakenBackTest, WhatCannotBeKeptIsNoWayBackAndThatIsSaid) {
  const std::string large(kMaxSettingsText, 'x');
  put_and_read("counter.yaml", "class: counter\noptions: {text: " + large + "}\n");
  const auto before = configuration_->of("counter");
  put_and_read("counter.yaml", "class: counter\noptions: {strat: 1}\n");
  configuration_->take_back("counter", configuration_->of("counter"), before, "agents failed");
  EXPECT_EQ(configuration_->of("counter"), before) << "this process has them";
  EXPECT_TRUE(configuration_->without_way_back().empty());
  start();
  EXPECT_EQ(configuration_->without_way_back().size(), 1U);
  EXPECT_EQ(configuration_->of("counter")->settings.options, R"({"strat":1})");
  EXPECT_TRUE(configuration_->taken_back().empty());
}

class OnTrialTest : public ClassConfigurationTest {
 protected:
  OnTrialTest() {
    before_ = configuration_->of("counter");
    put("counter.yaml", "class: counter\nidle_timeout: 20s\n");
    read();
    next_ = configuration_->of("counter");
    EXPECT_TRUE(configuration_->begin_trial("Counter", next_, before_));
  }
  // The next server counts the crash before it reads any class file.
  void restart_after_a_crash() {
    diagnosis::CrashRecord crash;
    crash.reason = "SIGSEGV";
    crash.call = "start";
    crash.agent_class = "Counter";
    crash.sha256 = "01";
    EXPECT_TRUE(ledger_->crashed(crash).written);
    start();
  }
  // The trial fails with a crash: the earlier idle timeout is back, and the rules are kept.
  void expect_kept_after_a_crash(const std::function<void()>& expect_rules) {
    expect_rules();
    restart_after_a_crash();
    EXPECT_EQ(idle_timeout(), seconds(10)) << "the settings before";
    EXPECT_EQ(configuration_->taken_back().size(), 1U);
    expect_rules();
  }
  ClassConfiguration::Settings before_;
  ClassConfiguration::Settings next_;
};

TEST_F(OnTrialTest, WhatEndsTheProcessDoesNotHoldInTheNextOne) {
  EXPECT_TRUE(configuration_->is_on_trial("Counter"));
  restart_after_a_crash();
  EXPECT_EQ(idle_timeout(), seconds(10));
  ASSERT_EQ(configuration_->taken_back().size(), 1U);
  EXPECT_EQ(configuration_->taken_back()[0].reason,
            "an agent ended the server (SIGSEGV in start) when they were tried");
}

TEST_F(OnTrialTest, ARestartWithoutACrashGoesOnWithTheTrial) {
  start();
  EXPECT_EQ(idle_timeout(), seconds(20));
  EXPECT_TRUE(configuration_->is_on_trial("Counter"));
}

TEST_F(OnTrialTest, WhatIsProvenStays) {
  EXPECT_TRUE(configuration_->prove("Counter", before_));
  EXPECT_TRUE(configuration_->is_on_trial("Counter")) << "those are not on trial";
  EXPECT_TRUE(configuration_->prove("Counter", next_));
  EXPECT_FALSE(configuration_->is_on_trial("Counter"));
  restart_after_a_crash();
  EXPECT_EQ(idle_timeout(), seconds(20));
}

TEST_F(OnTrialTest, AliasesHoldWhateverIsTakenBack) {
  put_and_read("counter.yaml", "class: counter\nidle_timeout: 20s\naliases: [tally]\n");
  restart_after_a_crash();
  EXPECT_EQ(idle_timeout(), seconds(10));
  EXPECT_EQ(configuration_->aliases(), (Aliases{{"tally", "counter"}}));
  put("counter.yaml", "class: counter\nidle_timeout: 20s\naliases: [adder]\n");
  EXPECT_TRUE(read().changes.empty()) << "the settings are the same";
  EXPECT_EQ(configuration_->aliases(), (Aliases{{"adder", "counter"}}));
}

TEST_F(OnTrialTest, TheCodeHoldsWhateverIsTakenBack) {
  put_and_read("counter.yaml", "class: counter\nidle_timeout: 20s\ncode: tally\n");
  restart_after_a_crash();
  EXPECT_EQ(idle_timeout(), seconds(10));
  EXPECT_EQ(configuration_->of("counter")->settings.code, "tally");
  EXPECT_EQ(configuration_->classes_of("Tally"), (Names{"Tally", "counter"}));
  put("counter.yaml", "class: counter\nidle_timeout: 20s\n");
  EXPECT_TRUE(read().other_codes);
  EXPECT_EQ(configuration_->classes_of("Tally"), Names{"Tally"});
}

TEST_F(OnTrialTest, WhoIsLockedOutStaysSoWhateverIsTakenBack) {
  const std::string closed =
      "auth: {type: jwt, name: '{sub}'}\ncors: {origins: ['https://app.example']}\n"
      "list_methods: true\n";
  put_and_read("counter.yaml", "class: counter\nidle_timeout: 20s\n" + closed);
  const auto expect_closed = [this] {
    const auto table = configuration_->entry_rules();
    const auto settings = configuration_->of("counter");
    for (const EntryRules& rules : {*table.at("counter"), settings->settings.entry_rules()}) {
      EXPECT_EQ(rules.auth.type, ProofKind::kJwt);
      EXPECT_EQ(rules.auth.name, "{sub}");
      EXPECT_EQ(rules.cors.origins, std::vector<std::string>{"https://app.example"});
      EXPECT_TRUE(rules.list_methods);
    }
  };
  expect_kept_after_a_crash(expect_closed);
  put("counter.yaml", "class: counter\nidle_timeout: 20s\n");
  EXPECT_TRUE(read().changes.empty()) << "no agent has others";
  EXPECT_EQ(configuration_->entry_rules().at("counter")->auth.type, std::nullopt);
}

// A crash must not open an address again that the operator has closed, or restore a credential.
TEST_F(OnTrialTest, WhereAgentsMayGoIsNeverTakenBack) {
  put("key", "s3cret\n");
  put("counter.yaml",
      "class: counter\nidle_timeout: 10s\negress: {allow: ['*'], secrets: {key: key}}\n");
  read();
  const auto wide = configuration_->of("counter");
  put("counter.yaml",
      "class: counter\nidle_timeout: 20s\negress: {allow: [a.example], deny: [b.example], "
      "proxy: 'http://proxy.example:3128', limits: {requests_per_minute: 5}}\n");
  read();
  EXPECT_TRUE(configuration_->begin_trial("Counter", configuration_->of("counter"), wide));
  const auto expect_tight = [this] {
    const auto settings = configuration_->of("counter");
    for (const extensions::EgressSettings& egress :
         {*configuration_->egress().at("counter"), settings->settings.egress}) {
      EXPECT_EQ(egress.allow, std::vector<std::string>{"a.example"});
      EXPECT_EQ(egress.deny, std::vector<std::string>{"b.example"});
      EXPECT_EQ(egress.proxy, "http://proxy.example:3128");
      EXPECT_EQ(egress.limits.requests_per_minute, 5U);
      EXPECT_TRUE(egress.secrets.empty());
    }
  };
  expect_kept_after_a_crash(expect_tight);
  put("counter.yaml", "class: counter\nidle_timeout: 20s\n");
  EXPECT_TRUE(read().changes.empty()) << "what was tried has not changed";
  EXPECT_TRUE(configuration_->egress().at("counter")->allow.empty());
}

TEST_F(ClassConfigurationTest, WhatIsTakenBackWhileTheServerRunsLetsNobodyOut) {
  read_and_take_back("egress: {deny: ['*']}");
  EXPECT_EQ(configuration_->egress().at("counter")->deny, std::vector<std::string>{"*"});
}

TEST_F(ClassConfigurationTest, WhatIsTakenBackWhileTheServerRunsLetsNobodyIn) {
  read_and_take_back("auth: {type: token}");
  EXPECT_EQ(configuration_->entry_rules().at("counter")->auth.type, ProofKind::kToken);
  std::filesystem::remove(classes() / "counter.yaml");
  read("", true);
  EXPECT_FALSE(configuration_->entry_rules().contains("counter"));
}

TEST_F(ClassConfigurationTest, DefaultsOnWhichAgentsFailAreTakenBackAsWell) {
  const auto before = configuration_->of("counter");
  put("room.yaml", "class: room\n");
  std::filesystem::remove(classes() / "counter.yaml");
  EXPECT_EQ(read().changes.size(), 1U);
  configuration_->take_back("counter", configuration_->of("counter"), before, "agents failed");
  EXPECT_EQ(idle_timeout(), seconds(10));
  EXPECT_TRUE(read().changes.empty());
  expect_taken_back();
}

TEST_F(ClassConfigurationTest, KnowsTheClassesThatRunTheCodeOfAClass) {
  EXPECT_EQ(configuration_->classes_of("Counter"), Names{"Counter"}) << "as the library spells it";
  put("one.yaml", "class: OneTally\ncode: counter\n");
  put("two.yaml", "class: two-tally\ncode: Counter\n");
  const ClassConfiguration::Reading reading = read();
  EXPECT_TRUE(reading.other_codes);
  EXPECT_EQ(reading.segments, (std::set<std::string>{"one-tally", "two-tally"}));
  EXPECT_EQ(configuration_->classes_of("Counter"), (Names{"Counter", "OneTally", "two-tally"}));
  EXPECT_EQ(configuration_->classes_of("TwoTally"), Names{}) << "it has other code";
  EXPECT_FALSE(read().other_codes);
  put("one.yaml", "class: one-tally\ncode: counter\n");
  EXPECT_TRUE(read().other_codes) << "its agents are stored under its name";
  EXPECT_EQ(configuration_->classes_of("Counter"), (Names{"Counter", "one-tally", "two-tally"}));
}

TEST_F(ClassConfigurationTest, AliasesComeAndGoWithTheFileThatHasThem) {
  const auto reading = put_and_read("counter.yaml", "class: Counter\naliases: [tally, adder]\n");
  ASSERT_EQ(reading.changes.size(), 1U);
  EXPECT_EQ(reading.changes[0].keys, (Keys{"aliases", "idle_timeout"}));
  EXPECT_EQ(configuration_->aliases(), (Aliases{{"adder", "counter"}, {"tally", "counter"}}));
  EXPECT_EQ(configuration_->paths("counter"), "/agents/counter, /agents/adder, /agents/tally");
  EXPECT_EQ(configuration_->paths("room"), "/agents/room");
  const ClassConfiguration again(classes(), config::load_class_files(classes(), true).value(),
                                 *ledger_);
  EXPECT_EQ(again.aliases(), configuration_->aliases()) << "as at a start";
  std::filesystem::remove(classes() / "counter.yaml");
  read("", true);
  EXPECT_TRUE(configuration_->aliases().empty());
}

TEST_F(ClassConfigurationTest, AnAliasMayMoveToAnotherClassInEitherDirection) {
  put("counter.yaml", "class: counter\naliases: [one]\n");
  put_and_read("room.yaml", "class: room\naliases: [two]\n");
  put("counter.yaml", "class: counter\naliases: [two]\n");
  put_and_read("room.yaml", "class: room\naliases: [one]\n");
  EXPECT_EQ(configuration_->aliases(), (Aliases{{"one", "room"}, {"two", "counter"}}));
}

TEST_F(ClassConfigurationTest, AReadingOfOneClassTakesItsAliasesAlone) {
  put_and_read("counter.yaml", "class: counter\naliases: [one]\n");
  put("counter.yaml", "class: counter\naliases: [two]\n");
  put("room.yaml", "class: room\naliases: [one, three]\n");
  read("room");
  EXPECT_EQ(configuration_->aliases(), (Aliases{{"one", "room"}, {"three", "room"}}))
      << "what the other file has given up is free";
}

TEST_F(ClassConfigurationTest, AnAliasThatIsTheSegmentOfAServedClassIsAMistake) {
  put("counter.yaml", "class: counter\nidle_timeout: 20s\naliases: [tally, chat-room]\n");
  const auto reading = configuration_->read_again("", true, {{"chat-room", "ChatRoom"}});
  EXPECT_TRUE(reading.changes.empty());
  ASSERT_EQ(reading.mistakes.size(), 1U);
  EXPECT_EQ(to_string(reading.mistakes[0]),
            (classes() / "counter.yaml").native() +
                ":3:18: aliases: \"chat-room\" already leads to the class \"ChatRoom\"");
  EXPECT_EQ(idle_timeout(), seconds(10)) << "nothing has changed";
  EXPECT_TRUE(configuration_->aliases().empty());
}

TEST_F(ClassConfigurationTest, AnAliasStaysWhenOtherSettingsAreTakenBack) {
  const auto before = configuration_->of("counter");
  put_and_read("counter.yaml", "class: counter\nidle_timeout: 20s\naliases: [tally]\n");
  configuration_->take_back("Counter", configuration_->of("counter"), before, "it failed");
  EXPECT_EQ(idle_timeout(), seconds(10));
  EXPECT_EQ(configuration_->aliases(), (Aliases{{"tally", "counter"}}));
}

TEST_F(ClassConfigurationTest, ClassesWithoutAFileAskForTheKeyOfObjectsIfAllAreObjects) {
  const config::ForClasses server{.all_are_objects = true, .objects_have_key = true};
  ClassConfiguration configuration(classes(), {}, *ledger_, {}, server);
  EXPECT_EQ(configuration.entry_rules().at("")->auth.type, ProofKind::kObjectsKey);
  (void)configuration.read_again("", true);
  EXPECT_EQ(configuration.entry_rules().at("counter")->auth.type, ProofKind::kObjectsKey);
  EXPECT_EQ(configuration.entry_rules().at("")->auth.type, ProofKind::kObjectsKey);
  EXPECT_EQ(configuration_->entry_rules().at("")->auth.type, std::nullopt);
}

}  // namespace
}  // namespace hearth::plugins
