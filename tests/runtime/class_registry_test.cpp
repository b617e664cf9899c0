#include "runtime/class_registry.hpp"

#include "fakes.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <string>
#include <vector>

namespace hearth::runtime {
namespace {

TEST(ClassRegistryTest, ASegmentBelongsToTheFirstWhoAddsIt) {
  testing::Script script;
  ClassRegistry classes;
  const auto counter = std::make_shared<testing::ScriptedClass>(script);
  EXPECT_TRUE(classes.add({"counter", counter, {}}));
  EXPECT_FALSE(classes.add({"counter", std::make_shared<testing::ScriptedClass>(script), {}}));
  EXPECT_EQ(classes.find("counter")->agent_class, counter);
  EXPECT_EQ(classes.find("other"), nullptr);
}

TEST(ClassRegistryTest, AClassHasASegmentItsAliasesAndItsOwnName) {
  testing::Script script;
  ClassRegistry classes;
  classes.add({"counter", std::make_shared<testing::ScriptedClass>(script), {}});
  classes.set_aliases({{"tally", "counter"}});
  for (const char* name : {"counter", "tally", "Counter"})
    EXPECT_NE(find_by_any_name(classes, name), nullptr) << name;
  for (const char* name : {"COUNTER", "counter_", "Tally", ""})
    EXPECT_EQ(find_by_any_name(classes, name), nullptr) << name;
}

TEST(ClassRegistryTest, WhoeverUsesAClassKeepsItAfterItWasCleared) {
  testing::Script script;
  ClassRegistry classes;
  classes.add({"counter", std::make_shared<testing::ScriptedClass>(script), {}});
  const auto held = classes.find("counter");
  classes.clear();
  EXPECT_EQ(classes.find("counter"), nullptr);
  EXPECT_EQ(held->agent_class->name(), "Counter");
  EXPECT_TRUE(classes.all().empty());
}

TEST(ClassRegistryTest, AClassThatWasServedIsExpectedForEver) {
  testing::Script script;
  ClassRegistry classes;
  EXPECT_FALSE(classes.is_expected("counter"));
  classes.add({"counter", std::make_shared<testing::ScriptedClass>(script), {}});
  EXPECT_TRUE(classes.is_expected("counter"));
  classes.remove("counter");
  EXPECT_TRUE(classes.is_expected("counter")) << "while it is awaited";
  classes.give_up("counter");
  EXPECT_EQ(classes.find("counter"), nullptr);
  EXPECT_TRUE(classes.is_expected("counter")) << "when nobody waits any more";
  EXPECT_FALSE(classes.is_expected("other"));
}

TEST(ClassRegistryTest, TheSettingsOfAClassOutliveIt) {
  testing::Script script;
  ClassRegistry classes;
  const auto keys = [&classes] { return classes.last_settings("counter").kv.max_keys; };
  const auto with_keys = [](std::size_t count) {
    ClassSettings settings;
    settings.kv.max_keys = count;
    return settings;
  };
  EXPECT_EQ(keys(), ClassSettings{}.kv.max_keys) << "nothing is known";
  classes.expect("counter", with_keys(1));
  EXPECT_EQ(keys(), 1U);
  const auto counter = std::make_shared<testing::ScriptedClass>(script);
  classes.add({"counter", counter, with_keys(2)});
  EXPECT_EQ(keys(), 2U);
  classes.put(std::make_shared<const ServedClass>(ServedClass{"counter", counter, with_keys(3)}));
  classes.remove("counter");
  EXPECT_EQ(keys(), 3U);
  classes.give_up("counter");
  EXPECT_EQ(keys(), 3U);
  classes.expect_no_more("counter");
  EXPECT_EQ(keys(), ClassSettings{}.kv.max_keys);
}

TEST(ClassRegistryTest, AClassThatWasPutIsExpectedAsOneThatWasAdded) {
  testing::Script script;
  ClassRegistry classes;
  classes.put(std::make_shared<const ServedClass>(
      ServedClass{"counter", std::make_shared<testing::ScriptedClass>(script), {}}));
  classes.remove("counter");
  EXPECT_TRUE(classes.is_expected("counter"));
}

TEST(ClassRegistryTest, ExpectingAClassServesNothingAndAwaitsNothing) {
  testing::Script script;
  ClassRegistry classes;
  classes.expect("counter");
  EXPECT_TRUE(classes.is_expected("counter"));
  EXPECT_EQ(classes.find("counter"), nullptr);
  EXPECT_FALSE(classes.is_awaited("counter"));
  EXPECT_TRUE(classes.all().empty());
  EXPECT_TRUE(classes.add({"counter", std::make_shared<testing::ScriptedClass>(script), {}}))
      << "its segment is free";
}

TEST(ClassRegistryTest, AClassIsMissingSinceItWentUntilOneThatIsServedComes) {
  testing::Script script;
  ClassRegistry classes;
  const auto serve = [&](const char* refusal) {
    classes.put(std::make_shared<const ServedClass>(
        ServedClass{.segment = "counter",
                    .agent_class = std::make_shared<testing::ScriptedClass>(script),
                    .settings = {},
                    .refusal = refusal}));
  };
  EXPECT_EQ(classes.missing_since("counter"), std::nullopt);
  serve("");
  EXPECT_EQ(classes.missing_since("counter"), std::nullopt);
  const WallTime before = std::chrono::system_clock::now();
  classes.remove("counter");
  const auto since = classes.missing_since("counter");
  ASSERT_TRUE(since);
  EXPECT_GE(*since, before);
  serve("its settings are wrong");
  EXPECT_EQ(classes.missing_since("counter"), since) << "it is still missing";
  serve("");
  EXPECT_EQ(classes.missing_since("counter"), std::nullopt);
}

class AliasTest : public ::testing::Test {
 protected:
  void serve(const std::string& segment) {
    classes_.put(std::make_shared<const ServedClass>(
        ServedClass{segment, std::make_shared<testing::ScriptedClass>(script_), {}}));
  }
  testing::Script script_;
  ClassRegistry classes_;
};

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
  ClassSettings open;
  open.list_methods = true;
  const auto add = [&](const std::string& segment) {
    EXPECT_TRUE(classes_.add({segment, std::make_shared<testing::ScriptedClass>(script_), open}));
  };
  add("counter");
  EXPECT_TRUE(classes_.entry_rules("counter")->list_methods) << "nothing else is known of it";
  EntryRules closed;
  closed.auth.type = ProofKind::kJwt;
  const auto before =
      classes_.set_entry_rules({{"counter", std::make_shared<const EntryRules>(closed)},
                                {"room", std::make_shared<const EntryRules>(closed)}});
  EXPECT_EQ(before.size(), 1U);
  add("room");
  classes_.put(std::make_shared<const ServedClass>(
      ServedClass{"counter", std::make_shared<testing::ScriptedClass>(script_), open}));
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
  const auto served = [&](const std::string& segment) {
    return ServedClass{segment, std::make_shared<testing::ScriptedClass>(script_), wide};
  };
  EXPECT_TRUE(classes_.add(served("counter")));
  EXPECT_EQ(classes_.egress("counter")->allow, Hosts{"*"}) << "nothing else is known of it";
  extensions::EgressSettings tight;
  tight.allow = {"a.example"};
  const auto shared = std::make_shared<const extensions::EgressSettings>(tight);
  classes_.set_egress({{"counter", shared}, {"room", shared}});
  EXPECT_TRUE(classes_.add(served("room")));
  classes_.put(std::make_shared<const ServedClass>(served("counter")));
  for (const char* segment : {"counter", "room"})
    EXPECT_EQ(classes_.egress(segment), shared) << segment;
  classes_.set_egress({});
  EXPECT_EQ(classes_.egress("counter")->allow, Hosts{});
}

TEST(ClassRegistryTest, KnowsWhetherALibraryHasHadAClass) {
  ClassRegistry classes;
  classes.expect("chat-room");
  classes.set_aliases({{"chat", "chat-room"}});
  for (const char* name : {"chat-room", "ChatRoom", "chat"})
    EXPECT_FALSE(classes.had_library(name)) << name;
  classes.expect_again("chat-room");
  classes.expect("chat-room");
  for (const char* name : {"chat-room", "ChatRoom", "chat"})
    EXPECT_TRUE(classes.had_library(name)) << name;
  EXPECT_FALSE(classes.had_library("counter"));
}

TEST(ClassRegistryTest, RemembersWhatHadALibraryAndNotesEachNewClassOnce) {
  testing::Script script;
  const auto code = std::make_shared<testing::ScriptedClass>(script);
  std::vector<std::string> noted;
  ClassRegistry classes;
  classes.remember({"chat-room"},
                   [&noted](const std::string& segment) { noted.push_back(segment); });
  EXPECT_TRUE(classes.had_library("ChatRoom"));
  EXPECT_FALSE(classes.is_expected("chat-room")) << "it may be gone for good";
  classes.add({"counter", code, {}});
  classes.put(std::make_shared<const ServedClass>(ServedClass{"counter", code, {}}));
  classes.put(std::make_shared<const ServedClass>(ServedClass{"chat-room", code, {}}));
  classes.put(std::make_shared<const ServedClass>(ServedClass{"tally", code, {}}));
  EXPECT_EQ(noted, (std::vector<std::string>{"counter", "tally"}));
}

}  // namespace
}  // namespace hearth::runtime
