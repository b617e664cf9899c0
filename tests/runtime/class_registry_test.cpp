#include "runtime/class_registry.hpp"

#include "fakes.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <string>
#include <vector>

namespace hearth::runtime {
namespace {

class ClassRegistryTest : public ::testing::Test {
 protected:
  ServedClass made(const std::string& segment, const ClassSettings& settings = {}) {
    return {segment, std::make_shared<testing::ScriptedClass>(script_), settings};
  }
  bool add(const std::string& segment, const ClassSettings& settings = {}) {
    return classes_.add(made(segment, settings));
  }
  void serve(const std::string& segment, const ClassSettings& settings = {}) {
    classes_.put(std::make_shared<const ServedClass>(made(segment, settings)));
  }

  testing::Script script_;
  ClassRegistry classes_;
};

TEST_F(ClassRegistryTest, ASegmentBelongsToTheFirstWhoAddsIt) {
  const ServedClass first = made("counter");
  EXPECT_TRUE(classes_.add(first));
  EXPECT_FALSE(add("counter"));
  EXPECT_EQ(classes_.find("counter")->agent_class, first.agent_class);
  EXPECT_EQ(classes_.find("other"), nullptr);
}

TEST_F(ClassRegistryTest, AClassHasASegmentItsAliasesAndItsOwnName) {
  add("counter");
  classes_.set_aliases({{"tally", "counter"}});
  for (const char* name : {"counter", "tally", "Counter"})
    EXPECT_NE(find_by_any_name(classes_, name), nullptr) << name;
  for (const char* name : {"COUNTER", "counter_", "Tally", ""})
    EXPECT_EQ(find_by_any_name(classes_, name), nullptr) << name;
}

TEST_F(ClassRegistryTest, WhoeverUsesAClassKeepsItAfterItWasCleared) {
  add("counter");
  const auto held = classes_.find("counter");
  classes_.clear();
  EXPECT_EQ(classes_.find("counter"), nullptr);
  EXPECT_EQ(held->agent_class->name(), "Counter");
  EXPECT_TRUE(classes_.all().empty());
}

TEST_F(ClassRegistryTest, AClassThatWasServedIsExpectedForEver) {
  EXPECT_FALSE(classes_.is_expected("counter"));
  add("counter");
  EXPECT_TRUE(classes_.is_expected("counter"));
  classes_.remove("counter");
  EXPECT_TRUE(classes_.is_expected("counter")) << "while it is awaited";
  classes_.give_up("counter");
  EXPECT_EQ(classes_.find("counter"), nullptr);
  EXPECT_TRUE(classes_.is_expected("counter")) << "when nobody waits any more";
  EXPECT_FALSE(classes_.is_expected("other"));
}

TEST_F(ClassRegistryTest, TheSettingsOfAClassOutliveIt) {
  const auto keys = [this] { return classes_.last_settings("counter").kv.max_keys; };
  const auto with_keys = [](std::size_t count) {
    ClassSettings settings;
    settings.kv.max_keys = count;
    return settings;
  };
  EXPECT_EQ(keys(), ClassSettings{}.kv.max_keys) << "nothing is known";
  classes_.expect("counter", with_keys(1));
  EXPECT_EQ(keys(), 1U);
  add("counter", with_keys(2));
  EXPECT_EQ(keys(), 2U);
  serve("counter", with_keys(3));
  classes_.remove("counter");
  EXPECT_EQ(keys(), 3U);
  classes_.give_up("counter");
  EXPECT_EQ(keys(), 3U);
  classes_.expect_no_more("counter");
  EXPECT_EQ(keys(), ClassSettings{}.kv.max_keys);
}

TEST_F(ClassRegistryTest, AClassThatWasPutIsExpectedAsOneThatWasAdded) {
  serve("counter");
  classes_.remove("counter");
  EXPECT_TRUE(classes_.is_expected("counter"));
}

TEST_F(ClassRegistryTest, ExpectingAClassServesNothingAndAwaitsNothing) {
  classes_.expect("counter");
  EXPECT_TRUE(classes_.is_expected("counter"));
  EXPECT_EQ(classes_.find("counter"), nullptr);
  EXPECT_FALSE(classes_.is_awaited("counter"));
  EXPECT_TRUE(classes_.all().empty());
  EXPECT_TRUE(add("counter")) << "its segment is free";
}

TEST_F(ClassRegistryTest, AClassIsMissingSinceItWentUntilOneThatIsServedComes) {
  const auto serve = [&](const char* refusal) {
    ServedClass next = made("counter");
    next.refusal = refusal;
    classes_.put(std::make_shared<const ServedClass>(next));
  };
  EXPECT_EQ(classes_.missing_since("counter"), std::nullopt);
  serve("");
  EXPECT_EQ(classes_.missing_since("counter"), std::nullopt);
  const WallTime before = std::chrono::system_clock::now();
  classes_.remove("counter");
  const auto since = classes_.missing_since("counter");
  ASSERT_TRUE(since);
  EXPECT_GE(*since, before);
  serve("its settings are wrong");
  EXPECT_EQ(classes_.missing_since("counter"), since) << "it is still missing";
  serve("");
  EXPECT_EQ(classes_.missing_since("counter"), std::nullopt);
}

class AliasTest : public ClassRegistryTest {};

TEST_F(AliasTest, ClientsFindAClassByItAndNobodyElseDoes) {
  serve("counter");
  classes_.set_aliases({{"tally", "counter"}, {"adder", "counter"}});
  EXPECT_EQ(classes_.find_for_client("tally"), classes_.find("counter"));
  EXPECT_EQ(classes_.find_for_client("counter"), classes_.find("counter"));
  EXPECT_EQ(classes_.find("tally"), nullptr) << "an agent's class is known by its own segment";
  EXPECT_EQ(classes_.aliased("tally"), "counter");
  EXPECT_EQ(classes_.aliased("counter"), "");
  EXPECT_EQ(classes_.aliases_of("counter"), (std::vector<std::string>{"adder", "tally"}));
  EXPECT_EQ(classes_.all().size(), 1U);
}

TEST_F(AliasTest, ThoseThatAreSetLaterTakeThePlaceOfAll) {
  serve("counter");
  classes_.set_aliases({{"tally", "counter"}});
  classes_.set_aliases({{"adder", "counter"}});
  EXPECT_EQ(classes_.find_for_client("tally"), nullptr);
  EXPECT_FALSE(classes_.is_expected("tally")) << "clients of it are to stop";
  EXPECT_NE(classes_.find_for_client("adder"), nullptr);
}

TEST_F(AliasTest, OfAnExpectedClassIsExpected) {
  classes_.set_aliases({{"tally", "counter"}});
  EXPECT_FALSE(classes_.is_expected("tally"));
  serve("counter");
  classes_.remove("counter");
  EXPECT_EQ(classes_.find_for_client("tally"), nullptr);
  EXPECT_TRUE(classes_.is_expected("tally"));
}

TEST_F(AliasTest, AClassUnderItsOwnSegmentComesBeforeIt) {
  serve("counter");
  serve("tally");
  classes_.set_aliases({{"tally", "counter"}});
  EXPECT_EQ(classes_.find_for_client("tally"), classes_.find("tally"));
  classes_.remove("tally");
  EXPECT_EQ(classes_.find_for_client("tally"), classes_.find("counter"));
}

TEST_F(AliasTest, AccessHasChangedWhenAnyAuthHas) {
  const auto rules = [](std::optional<ProofKind> type, bool list_methods) {
    EntryRules made;
    made.auth.type = type;
    made.list_methods = list_methods;
    return std::make_shared<const EntryRules>(made);
  };
  struct Step {
    ClassRegistry::EntryTable table;
    bool changes;
  };
  const Step steps[] = {
      {{}, false},
      {{{"counter", rules(std::nullopt, false)}}, false},
      {{{"counter", rules(ProofKind::kToken, false)}}, true},
      {{{"counter", rules(ProofKind::kToken, true)}}, false},
      {{{"counter", rules(ProofKind::kToken, true)}, {"room", rules(std::nullopt, true)}}, false},
      {{{"counter", rules(ProofKind::kJwt, true)}, {"room", rules(std::nullopt, true)}}, true},
      {{{"room", rules(std::nullopt, true)}}, true},
  };
  for (const Step& step : steps) {
    const std::uint64_t before = classes_.access_generation();
    classes_.set_entry_rules(step.table);
    EXPECT_EQ(classes_.access_generation() != before, step.changes) << &step - steps;
  }
  const std::uint64_t before = classes_.access_generation();
  classes_.access_changed();
  EXPECT_NE(classes_.access_generation(), before);
}

TEST_F(AliasTest, EntryRulesAreOfATableAndNotOfTheVersionThatIsServed) {
  const ClassSettings open = settings_with(&ClassSettings::list_methods, true);
  EXPECT_TRUE(add("counter", open));
  EXPECT_TRUE(classes_.entry_rules("counter")->list_methods) << "nothing else is known of it";
  EntryRules closed;
  closed.auth.type = ProofKind::kJwt;
  const auto before =
      classes_.set_entry_rules({{"counter", std::make_shared<const EntryRules>(closed)},
                                {"room", std::make_shared<const EntryRules>(closed)}});
  EXPECT_EQ(before.size(), 1U);
  EXPECT_TRUE(add("room", open));
  serve("counter", open);
  for (const char* segment : {"counter", "room"}) {
    EXPECT_EQ(classes_.entry_rules(segment)->auth.type, ProofKind::kJwt) << segment;
    EXPECT_FALSE(classes_.entry_rules(segment)->list_methods) << segment;
  }
  EXPECT_EQ(classes_.set_entry_rules({}).size(), 2U);
  EXPECT_EQ(classes_.entry_rules("counter")->auth.type, std::nullopt);
  classes_.set_entry_rules({{"", std::make_shared<const EntryRules>(closed)}});
  EXPECT_EQ(classes_.entry_rules("counter")->auth.type, ProofKind::kJwt) << "as all others";
}

TEST_F(AliasTest, EgressIsOfATableAndNotOfTheVersionThatIsServed) {
  using Hosts = std::vector<std::string>;
  ClassSettings wide;
  wide.egress.allow = {"*"};
  EXPECT_TRUE(add("counter", wide));
  EXPECT_EQ(classes_.egress("counter")->allow, Hosts{"*"}) << "nothing else is known of it";
  extensions::EgressSettings tight;
  tight.allow = {"a.example"};
  const auto shared = std::make_shared<const extensions::EgressSettings>(tight);
  classes_.set_egress({{"counter", shared}, {"room", shared}});
  EXPECT_TRUE(add("room", wide));
  serve("counter", wide);
  for (const char* segment : {"counter", "room"})
    EXPECT_EQ(classes_.egress(segment), shared) << segment;
  classes_.set_egress({});
  EXPECT_EQ(classes_.egress("counter")->allow, Hosts{});
}

TEST_F(ClassRegistryTest, KnowsWhetherALibraryHasHadAClass) {
  classes_.expect("chat-room");
  classes_.set_aliases({{"chat", "chat-room"}});
  for (const char* name : {"chat-room", "ChatRoom", "chat"})
    EXPECT_FALSE(classes_.had_library(name)) << name;
  classes_.expect_again("chat-room");
  classes_.expect("chat-room");
  for (const char* name : {"chat-room", "ChatRoom", "chat"})
    EXPECT_TRUE(classes_.had_library(name)) << name;
  EXPECT_FALSE(classes_.had_library("counter"));
}

TEST_F(ClassRegistryTest, RemembersWhatHadALibraryAndNotesEachNewClassOnce) {
  std::vector<std::string> noted;
  classes_.remember({"chat-room"},
                    [&noted](const std::string& segment) { noted.push_back(segment); });
  EXPECT_TRUE(classes_.had_library("ChatRoom"));
  EXPECT_FALSE(classes_.is_expected("chat-room")) << "it may be gone for good";
  add("counter");
  for (const char* segment : {"counter", "chat-room", "tally"}) serve(segment);
  EXPECT_EQ(noted, (std::vector<std::string>{"counter", "tally"}));
}

}  // namespace
}  // namespace hearth::runtime
