#include "plugins/versions/version_facts.hpp"

#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace hearth::plugins {
namespace {

constexpr std::int64_t kFirstCrashMs = 1'700'000'000'000;

diagnosis::CrashRecord crash_of(const std::string& agent_class, const std::string& sha256,
                                std::int64_t time_ms, std::string_view call = "message") {
  diagnosis::CrashRecord crash;
  crash.reason = "SIGSEGV";
  crash.call = call;
  crash.library = "/plugins/a.so";
  crash.agent_class = agent_class;
  crash.sha256 = sha256;
  crash.time_ms = time_ms;
  return crash;
}

// The quarantine of a process, and what it was told.
struct Quarantine {
  VersionFacts facts;

  // True if a class is in quarantine that was not, or is barred now.
  bool count(const diagnosis::CrashRecord& crash) {
    const auto held = [this] {
      std::vector<std::pair<std::string, bool>> list;
      for (const ClassFacts& each : facts.classes) {
        if (each.is_quarantined) list.emplace_back(each.agent_class + each.sha256, each.is_barred);
      }
      return list;
    };
    const auto before = held();
    facts = after(std::move(facts), ProcessCrashed{crash});
    return held() != before;
  }
  [[nodiscard]] bool holds(std::string_view agent_class, std::string_view sha256) const {
    const ClassFacts* const known = facts.find_class(agent_class, sha256);
    return known != nullptr && known->is_quarantined;
  }
  bool release(const std::string& agent_class) {
    const std::size_t before = all().size();
    facts = after(std::move(facts), ClassReleased{.agent_class = agent_class, .by = "a test"});
    return all().size() < before;
  }
  [[nodiscard]] std::vector<ClassFacts> all() const {
    std::vector<ClassFacts> held = facts.classes;
    std::erase_if(held, [](const ClassFacts& each) { return !each.is_quarantined; });
    return held;
  }
};

class QuarantineListTest : public ::testing::Test {
 protected:
  // True if the last one led to quarantine.
  bool crash(int times, std::int64_t first_ms = kFirstCrashMs, std::int64_t step_ms = 1000) {
    bool quarantined = false;
    for (int i = 0; i < times; ++i)
      quarantined = quarantine_.count(crash_of("Room", "01", first_ms + i * step_ms));
    return quarantined;
  }

  Quarantine quarantine_;
};

TEST_F(QuarantineListTest, MoreThanThreeCrashesInFiveMinutes) {
  EXPECT_FALSE(crash(3));
  EXPECT_FALSE(quarantine_.holds("Room", "01"));
  EXPECT_TRUE(crash(1, kFirstCrashMs + 4000));
  EXPECT_TRUE(quarantine_.holds("Room", "01"));
  ASSERT_EQ(quarantine_.all().size(), 1U);
  EXPECT_EQ(quarantine_.all().front().reason, "SIGSEGV");
}

TEST_F(QuarantineListTest, CrashesThatLieFurtherApartAreForgotten) {
  EXPECT_FALSE(crash(20, kFirstCrashMs, kCrashWindowMs / 3 + 1));
  EXPECT_TRUE(crash(4, kFirstCrashMs + 100 * kCrashWindowMs, kCrashWindowMs / 3));
}

TEST_F(QuarantineListTest, CrashesOfAClockThatWasAheadDoNotCountForEver) {
  EXPECT_FALSE(crash(3, kFirstCrashMs + 1000 * kCrashWindowMs));
  EXPECT_FALSE(crash(1));
  EXPECT_FALSE(crash(1, kFirstCrashMs + kCrashWindowMs * 2));
}

TEST_F(QuarantineListTest, CrashesOfOthersDoNotCount) {
  for (int i = 0; i < 3; ++i) {
    EXPECT_FALSE(quarantine_.count(crash_of("Room", "01", kFirstCrashMs)));
    EXPECT_FALSE(quarantine_.count(crash_of("Room", "02", kFirstCrashMs)));
    EXPECT_FALSE(quarantine_.count(crash_of("Lobby", "01", kFirstCrashMs)));
    EXPECT_FALSE(quarantine_.count(crash_of("", "", kFirstCrashMs)));
  }
  EXPECT_TRUE(quarantine_.all().empty());
  EXPECT_FALSE(quarantine_.count(crash_of("", "", kFirstCrashMs)));
}

TEST_F(QuarantineListTest, ACrashOfAWholeLibraryIsEachOfItsClasses) {
  for (int i = 0; i < 3; ++i)
    EXPECT_FALSE(quarantine_.count(crash_of("Room,Lobby", "01", kFirstCrashMs)));
  EXPECT_TRUE(quarantine_.count(crash_of("Lobby", "01", kFirstCrashMs)));
  EXPECT_FALSE(quarantine_.holds("Room", "01"));
  EXPECT_TRUE(quarantine_.count(crash_of("Room,Lobby", "01", kFirstCrashMs)));
  EXPECT_TRUE(quarantine_.holds("Room", "01"));
  EXPECT_TRUE(quarantine_.release("Room"));
  EXPECT_TRUE(quarantine_.holds("Lobby", "01"));
}

TEST_F(QuarantineListTest, OneCallThatDoesNotReturnIsEnough) {
  diagnosis::CrashRecord crash = crash_of("Room", "01", kFirstCrashMs);
  crash.reason = diagnosis::kHung;
  EXPECT_TRUE(quarantine_.count(crash));
  EXPECT_TRUE(quarantine_.holds("Room", "01"));
  EXPECT_EQ(quarantine_.facts.find_barred("01"), nullptr) << "its library can be loaded";
  EXPECT_FALSE(quarantine_.count(crash)) << "it is told once";
  EXPECT_EQ(quarantine_.all().size(), 1U);
}

TEST_F(QuarantineListTest, ALibraryThatCrashesWhileItIsLoadedIsNotLoadedAnyMore) {
  for (const std::string call : {"load", "init", "get_class", "deinit", "unload"}) {
    Quarantine quarantine;
    const diagnosis::CrashRecord crash = crash_of("Room,Lobby", "01", kFirstCrashMs, call);
    for (int i = 0; i < 3; ++i) EXPECT_FALSE(quarantine.count(crash));
    EXPECT_EQ(quarantine.facts.find_barred("01"), nullptr);
    EXPECT_TRUE(quarantine.count(crash));
    EXPECT_NE(quarantine.facts.find_barred("01"), nullptr) << call;
    EXPECT_EQ(quarantine.facts.find_barred("02"), nullptr);
    EXPECT_TRUE(quarantine.holds("Room", "01"));
    EXPECT_TRUE(quarantine.holds("Lobby", "01"));
    // With one class left in quarantine it could not be loaded.
    EXPECT_TRUE(quarantine.release("Lobby"));
    EXPECT_TRUE(quarantine.all().empty());
    for (int i = 0; i < 3; ++i) EXPECT_FALSE(quarantine.count(crash)) << "a new chance";
  }
}

TEST_F(QuarantineListTest, ALibraryThatHangsWhileItIsLoadedIsNotLoadedAnyMore) {
  diagnosis::CrashRecord crash = crash_of("Room", "01", kFirstCrashMs);
  crash.reason = diagnosis::kHung;
  crash.call = "init";
  EXPECT_TRUE(quarantine_.count(crash));
  EXPECT_NE(quarantine_.facts.find_barred("01"), nullptr);
}

TEST_F(QuarantineListTest, AClassInQuarantineWhoseLibraryCrashesAsItIsLoadedIsNotLoadedAnyMore) {
  crash(4);
  EXPECT_EQ(quarantine_.facts.find_barred("01"), nullptr);
  const diagnosis::CrashRecord crash = crash_of("Room,Lobby", "01", kFirstCrashMs + 5000, "init");
  for (int i = 0; i < 3; ++i) EXPECT_FALSE(quarantine_.count(crash));
  EXPECT_TRUE(quarantine_.count(crash));
  EXPECT_NE(quarantine_.facts.find_barred("01"), nullptr);
  EXPECT_EQ(quarantine_.all().size(), 2U);
}

TEST_F(QuarantineListTest, AThreadThatCrashesAlthoughNoClassIsServedIsNotStartedAgain) {
  const diagnosis::CrashRecord crash =
      crash_of("Room,Lobby", "01", kFirstCrashMs, diagnosis::kOwnThread);
  for (int i = 0; i < 4; ++i) quarantine_.count(crash);
  EXPECT_TRUE(quarantine_.holds("Room", "01"));
  EXPECT_EQ(quarantine_.facts.find_barred("01"), nullptr) << "an agent may have started it";
  EXPECT_TRUE(quarantine_.count(crash));
  EXPECT_NE(quarantine_.facts.find_barred("01"), nullptr);
  EXPECT_EQ(quarantine_.all().size(), 2U);
}

TEST_F(QuarantineListTest, AnotherHashIsServed) {
  crash(4);
  EXPECT_FALSE(quarantine_.holds("Room", "02"));
  EXPECT_FALSE(quarantine_.holds("Lobby", "01"));
}

TEST_F(QuarantineListTest, WhoeverIsReleasedHasANewChance) {
  crash(4);
  EXPECT_FALSE(quarantine_.release("Lobby"));
  EXPECT_TRUE(quarantine_.release("Room"));
  EXPECT_FALSE(quarantine_.holds("Room", "01"));
  EXPECT_FALSE(crash(3, kFirstCrashMs + 5000));
}

TEST_F(QuarantineListTest, TheListIsBounded) {
  for (int i = 0; i < 110; ++i) {
    for (int times = 0; times < 4; ++times)
      quarantine_.count(crash_of("Room", std::to_string(i), kFirstCrashMs));
  }
  EXPECT_EQ(quarantine_.all().size(), kMaxQuarantined);
  EXPECT_TRUE(quarantine_.holds("Room", "109"));
}

// ---- trials -------------------------------------------------------------------------------------

using Kind = Subject::Kind;

const Subject kFile = {.kind = Kind::kCode, .name = "f"};
const Subject kClass = {.kind = Kind::kSettings, .name = "chat-room"};

Kept kept(const std::string& hash) {
  return {.hash = hash, .file = "c.yaml", .text = "the text of " + hash};
}

// One trial in a few letters: what is proven, what is on trial, what the file holds if that is not
// served (`!`: it failed, `?`: it may be retried), and the condemned content. "" is no trial.
//   "a b - -"   b is on trial, the server can go back to a
//   "ab c - -"  c is on trial, the server can go back to b, which was replaced during its own trial
//   "a - b! b"  a is served again, the file holds b, which is condemned
std::string shown(const VersionFacts& facts, const Subject& of) {
  const Trial* const trial = facts.find_trial(of);
  if (trial == nullptr) return "";
  std::string text = trial->proven.hash + trial->superseded.hash + " " +
                     (trial->on_trial.empty() ? "-" : trial->on_trial) + " ";
  if (trial->not_served)
    text += (trial->not_served->hash.empty() ? "gone" : trial->not_served->hash) +
            (trial->not_served->may_retry ? "?" : "!");
  else
    text += "-";
  text += " ";
  for (const auto& each : trial->condemned) text += each.hash;
  return trial->condemned.empty() ? text + "-" : text;
}

VersionFacts parsed(const std::string& text, const Subject& of) {
  VersionFacts facts;
  if (text.empty()) return facts;
  Trial trial{.of = of, .proven = kept(text.substr(0, 1))};
  std::size_t at = text.find(' ') + 1;
  if (at > 2) trial.superseded = kept(text.substr(1, 1));
  if (text[at] != '-') trial.on_trial = text.substr(at, 1);
  at += 2;
  if (text[at] != '-') {
    const std::size_t end = text.find_first_of("?!", at);
    const std::string hash = text.substr(at, end - at);
    trial.not_served = Trial::NotServed{
        .hash = hash == "gone" ? "" : hash, .reason = "of before", .may_retry = text[end] == '?'};
    at = end;
  }
  for (const char each : text.substr(at + 2)) {
    if (each != '-')
      trial.condemned.push_back({.hash = std::string(1, each), .reason = "of before"});
  }
  facts.trials.push_back(std::move(trial));
  return facts;
}

VersionEvent crash_of_class(const std::string& classes, const std::string& call = "message") {
  return ProcessCrashed{crash_of(classes, "01", kFirstCrashMs, call)};
}
VersionEvent lost(const Subject& of, const std::string& goes_on, const std::string& what,
                  bool may_retry) {
  return TrialLost{.of = of,
                   .goes_on = kept(goes_on),
                   .what = {.hash = what, .reason = "it is bad", .may_retry = may_retry}};
}
VersionEvent allowed(const std::string& sha256) {
  return ContentAllowed{sha256};
}

// An event of a file's content, or of a class's settings.
using Event = std::function<VersionEvent(const Subject&)>;

Event begin(const std::string& next, const std::string& served) {
  return [=](const Subject& of) -> VersionEvent {
    return TrialBegun{.of = of, .next = next, .served = kept(served)};
  };
}
Event lose(const std::string& goes_on, const std::string& what, bool may_retry = false) {
  return [=](const Subject& of) { return lost(of, goes_on, what, may_retry); };
}
Event pass(const std::string& hash) {
  return [=](const Subject& of) -> VersionEvent {
    return TrialPassed{.of = of, .version = kept(hash)};
  };
}
Event keep(const std::string& served) {
  return [=](const Subject& of) -> VersionEvent {
    return FileLost{.of = of, .served = kept(served), .reason = "it is gone"};
  };
}
Event settle() {
  return [](const Subject& of) -> VersionEvent { return TrialSettled{of}; };
}
Event meet(const std::string& hash) {
  return [=](const Subject& of) -> VersionEvent { return TrialMet{.of = of, .hash = hash}; };
}
// Of content by its hash; of settings in a call of their class.
Event crash(const std::string& sha256) {
  return [=](const Subject& of) -> VersionEvent {
    if (of.kind == Kind::kSettings) return crash_of_class("ChatRoom");
    return ProcessCrashed{crash_of("Room", sha256, kFirstCrashMs)};
  };
}
Event crash_in(const std::string& classes, const std::string& call = "message") {
  return [=](const Subject&) { return crash_of_class(classes, call); };
}
Event allow(const std::string& hash) {
  return [=](const Subject& of) -> VersionEvent {
    if (of.kind == Kind::kSettings) return TrialAllowed{of};
    return allowed(hash);
  };
}

enum Of { kBoth, kOnlyCode, kOnlySettings };
struct TrialRow {
  const char* name;
  std::string before;
  Event event;
  std::string after;
  Of of = kBoth;
};

class TrialTest : public ::testing::TestWithParam<TrialRow> {
 protected:
  static void check(const Subject& of, std::string before, std::string after) {
    if (of.kind == Kind::kSettings) {  // never condemned
      for (std::string* const each : {&before, &after}) {
        if (!each->empty()) each->replace(each->rfind(' ') + 1, std::string::npos, "-");
      }
    }
    const VersionFacts facts = parsed(before, of);
    ASSERT_EQ(shown(facts, of), before) << "the test's own reading";
    EXPECT_EQ(shown(plugins::after(facts, GetParam().event(of)), of), after) << of.name;
  }
};

TEST_P(TrialTest, FollowsTheTable) {
  const TrialRow& row = GetParam();
  if (row.of != kOnlySettings) check(kFile, row.before, row.after);
  if (row.of != kOnlyCode) check(kClass, row.before, row.after);
}

INSTANTIATE_TEST_SUITE_P(
    Edges, TrialTest,
    ::testing::Values(
        // no trial
        TrialRow{"NoneBegin", "", begin("b", "a"), "a b - -"},
        TrialRow{"NoneBeginSame", "", begin("a", "a"), ""},
        TrialRow{"NoneLose", "", lose("a", "b"), "", kOnlyCode},
        TrialRow{"NoneLoseSettings", "", lose("a", "b"), "a - b! -", kOnlySettings},
        TrialRow{"NonePass", "", pass("a"), ""}, TrialRow{"NoneKeep", "", keep("a"), "a - gone? -"},
        TrialRow{"NoneSettle", "", settle(), ""}, TrialRow{"NoneMeet", "", meet("a"), ""},
        TrialRow{"NoneCrash", "", crash("a"), ""}, TrialRow{"NoneAllow", "", allow("a"), ""},
        // on trial
        TrialRow{"TrialBegin", "a b - -", begin("c", "b"), "ab c - -"},
        TrialRow{"TrialBeginSame", "a b - -", begin("b", "a"), "a b - -"},
        TrialRow{"TrialBeginBack", "a b - -", begin("a", "b"), ""},
        TrialRow{"TrialBeginFromAnother", "a b - -", begin("d", "c"), "c d - -"},
        TrialRow{"TrialLose", "a b - -", lose("a", "b"), "a - b! b"},
        TrialRow{"TrialLoseRetry", "a b - -", lose("a", "b", true), "a - b? -"},
        TrialRow{"TrialLoseToTrial", "a c - -", lose("b", "c"), "a b c! c", kOnlyCode},
        TrialRow{"TrialLoseToOtherSettings", "a c - -", lose("b", "c"), "b - c! -", kOnlySettings},
        TrialRow{"TrialPass", "a b - -", pass("b"), ""},
        TrialRow{"TrialPassOther", "a b - -", pass("a"), "a b - -"},
        TrialRow{"TrialKeep", "a b - -", keep("b"), "ab b gone? -"},
        TrialRow{"TrialSettle", "a b - -", settle(), "a b - -"},
        TrialRow{"TrialMeetSame", "a b - -", meet("b"), "a b - -"},
        TrialRow{"TrialMeetOther", "a b - -", meet("c"), "a c - -"},
        TrialRow{"TrialMeetProven", "a b - -", meet("a"), ""},
        TrialRow{"TrialCrash", "a b - -", crash("b"), "a - b! b"},
        TrialRow{"TrialCrashOfProven", "a b - -", crash("a"), "a b - -", kOnlyCode},
        TrialRow{"TrialCrashOfSeveral", "a b - -", crash_in("Lobby,ChatRoom"), "a - b! -",
                 kOnlySettings},
        TrialRow{"TrialCrashOfAnother", "a b - -", crash_in("Lobby"), "a b - -"},
        TrialRow{"TrialCrashInLoad", "a b - -", crash_in("ChatRoom", "init"), "a b - -"},
        TrialRow{"TrialAllow", "a b - -", allow("b"), "a b - -"},
        // taken back: the proven one serves
        TrialRow{"CondemnedBegin", "a - b! b", begin("c", "a"), "a c - b"},
        TrialRow{"CondemnedLose", "a - b! b", lose("a", "c"), "a - c! bc"},
        TrialRow{"CondemnedLoseWayBack", "a - b! b", lose("b", "a"), "a b - a", kOnlyCode},
        TrialRow{"CondemnedPass", "a - b! b", pass("a"), "a - b! b"},
        TrialRow{"CondemnedKeep", "a - b! b", keep("a"), "a - b! b"},
        TrialRow{"CondemnedSettle", "a - b! b", settle(), ""},
        TrialRow{"CondemnedMeetSame", "a - b! b", meet("b"), "a - b! b"},
        TrialRow{"CondemnedMeetOther", "a - b! b", meet("c"), "a c - b"},
        TrialRow{"CondemnedMeetProven", "a - b! b", meet("a"), ""},
        TrialRow{"CondemnedCrash", "a - b! b", crash("a"), "a - b! b"},
        TrialRow{"CondemnedAllow", "a - b! b", allow("b"), "a - b? -"},
        TrialRow{"CondemnedAllowOther", "a - b! b", allow("c"), "a - b! b", kOnlyCode},
        // refused or allowed, and may be retried; or gone
        TrialRow{"RefusedBegin", "a - b? -", begin("b", "a"), "a b - -"},
        TrialRow{"RefusedLose", "a - b? -", lose("a", "b"), "a - b! b"},
        TrialRow{"RefusedKeep", "a - b? -", keep("a"), "a - b? -"},
        TrialRow{"RefusedSettle", "a - b? -", settle(), ""},
        TrialRow{"RefusedMeet", "a - b? -", meet("b"), "a b - -"},
        TrialRow{"RefusedMeetProven", "a - b? -", meet("a"), ""},
        TrialRow{"RefusedCrash", "a - b? -", crash("b"), "a - b? -"},
        TrialRow{"GoneMeet", "a - gone? -", meet("b"), "a b - -"},
        TrialRow{"GoneMeetProven", "a - gone? -", meet("a"), ""},
        TrialRow{"GoneKeep", "a - gone? -", keep("a"), "a - gone? -"},
        // a version on trial runs while the file holds something else
        TrialRow{"BesideBegin", "a b c! c", begin("d", "b"), "ab d - c"},
        TrialRow{"BesideLose", "a b c! c", lose("a", "b"), "a - b! cb"},
        TrialRow{"BesidePass", "a b c! c", pass("b"), "b - c! c"},
        TrialRow{"BesideKeep", "a b c! c", keep("b"), "ab b c! c"},
        TrialRow{"BesideSettle", "a b c! c", settle(), "a b - c"},
        TrialRow{"BesideMeet", "a b c? -", meet("b"), "a b - -"},
        TrialRow{"BesideMeetCondemned", "a b c! c", meet("c"), "a b c! c"},
        TrialRow{"BesideCrash", "a b c! c", crash("b"), "a - c! cb"},
        TrialRow{"BesideAllow", "a b c! c", allow("c"), "a b c? -"},
        // several versions while none is proven: back to the last good one, then to the proven one
        TrialRow{"QuickBegin", "ab c - -", begin("d", "c"), "ac d - -"},
        TrialRow{"QuickBeginBack", "ab c - -", begin("b", "c"), "ac b - -"},
        TrialRow{"QuickBeginFromTheOneBefore", "ab c - -", begin("d", "b"), "ab d - -"},
        TrialRow{"QuickBeginProven", "ab c - -", begin("a", "c"), ""},
        TrialRow{"QuickLose", "ab c - -", lose("b", "c"), "ab b c! c"},
        TrialRow{"QuickLoseAgain", "ab b c! c", lose("a", "b"), "a - b! cb"},
        TrialRow{"QuickPass", "ab c - -", pass("c"), ""},
        TrialRow{"QuickPassOfTheOneBefore", "ab b c! c", pass("b"), "b - c! c"},
        TrialRow{"QuickKeep", "ab c - -", keep("c"), "ac c gone? -"},
        TrialRow{"QuickSettle", "ab b c? -", settle(), "ab b - -"},
        TrialRow{"QuickMeetOther", "ab c - -", meet("d"), "ab d - -"},
        TrialRow{"QuickMeetProven", "ab c - -", meet("a"), ""},
        TrialRow{"QuickCrash", "ab c - -", crash("c"), "ab b c! c"},
        TrialRow{"QuickCrashOfTheOneBefore", "ab c - -", crash("b"), "ab c - -", kOnlyCode},
        TrialRow{"QuickCrashAgain", "ab b c! c", crash("b"), "a - c! cb"},
        TrialRow{"QuickNextAfterACrash", "ab b c! c", begin("d", "b"), "ab d - c"}),
    [](const ::testing::TestParamInfo<TrialRow>& each) { return each.param.name; });

TEST(TrialRulesTest, WhatIsCondemnedInOneFileIsSoInAllButWhereItIsProven) {
  const Subject other{.name = "g"};
  VersionFacts facts = parsed("a - b! b", kFile);
  EXPECT_NE(facts.find_condemned(other, "b"), nullptr);
  facts = after(facts, begin("c", "b")(other));
  EXPECT_EQ(facts.find_condemned(other, "b"), nullptr);
  EXPECT_NE(facts.find_condemned(kFile, "b"), nullptr);
}

TEST(TrialRulesTest, ACrashThatTakesSettingsBackDoesNotCountForTheClass) {
  VersionFacts facts = parsed("a b - -", kClass);
  facts = after(std::move(facts), crash_of_class("ChatRoom"));
  EXPECT_EQ(facts.find_class("ChatRoom", "01"), nullptr);
  facts = after(std::move(facts), crash_of_class("ChatRoom"));
  EXPECT_NE(facts.find_class("ChatRoom", "01"), nullptr) << "they did not hold any more";
}

TEST(TrialRulesTest, NewCodeIsAtFaultBeforeNewSettingsAre) {
  VersionFacts facts = parsed("a b - -", kClass);
  facts = after(std::move(facts), begin("01", "00")(kFile));
  facts = after(std::move(facts), crash_of_class("ChatRoom"));
  EXPECT_EQ(shown(facts, kClass), "a b - -");
  EXPECT_EQ(shown(facts, kFile), "00 - 01! 01");
  facts = after(std::move(facts), ProcessCrashed{crash_of("ChatRoom", "00", kFirstCrashMs)});
  EXPECT_EQ(shown(facts, kClass), "a - b! -") << "alone";
}

TEST(TrialRulesTest, TheWayBackKeepsItsText) {
  VersionFacts facts = after({}, begin("b", "a")(kClass));
  EXPECT_EQ(facts.find_trial(kClass)->way_back(), kept("a"));
  facts = after(std::move(facts), begin("c", "b")(kClass));
  EXPECT_EQ(facts.find_trial(kClass)->way_back(), kept("b"));
  facts = after(std::move(facts), lose("b", "c")(kClass));
  facts = after(std::move(facts), pass("b")(kClass));
  EXPECT_EQ(facts.find_trial(kClass)->way_back(), kept("b"));
}

TEST(TrialRulesTest, TheListOfSettingsIsBounded) {
  VersionFacts facts = parsed("a b - -", kFile);
  const auto settings = [](std::size_t i) {
    return Subject{.kind = Kind::kSettings, .name = std::to_string(i)};
  };
  for (std::size_t i = 0; i <= kMaxSettings; ++i)
    facts = after(std::move(facts), begin("b", "a")(settings(i)));
  EXPECT_EQ(facts.trials.size(), kMaxSettings + 1);
  EXPECT_NE(facts.find_trial(kFile), nullptr);
  EXPECT_EQ(facts.find_trial(settings(0)), nullptr);
}

// ---- content ------------------------------------------------------------------------------------

TEST(ContentRulesTest, WhatIsRefusedIsRefusedUntilAnotherHostOrAPersonComes) {
  const auto refused = [](const std::string& rule) {
    return after({}, ContentRefused{.sha256 = "b", .rule = rule, .reason = "x", .host = "1"});
  };
  EXPECT_EQ(refused("L4").find_content("b")->rule, "L4");
  EXPECT_EQ(after(refused("L4"), HostStarted{"1"}).find_content("b")->rule, "L4");
  EXPECT_EQ(after(refused("L4"), HostStarted{"2"}).find_content("b"), nullptr);
  EXPECT_EQ(after(refused("P2"), HostStarted{"1"}).find_content("b"), nullptr)
      << "the machine may be faster today";
  EXPECT_EQ(after(refused("L4"), allowed("b")).find_content("b"), nullptr);
  EXPECT_EQ(after(refused("L4"), allowed("a")).find_content("b")->rule, "L4");
}

TEST(ContentRulesTest, WhatIsLostWithoutAPlaceIsRefused) {
  EXPECT_EQ(after({}, lost(kFile, "", "b", false)).find_content("b")->rule, "R1");
  EXPECT_EQ(after({}, lost(kFile, "", "b", true)).find_content("b"), nullptr);
}

TEST(ContentRulesTest, ItsCrashesAreCounted) {
  VersionFacts facts = after({}, crash("b")(kFile));
  facts = after(facts, crash("b")(kFile));
  facts = after(facts, allowed("b"));
  EXPECT_EQ(facts.find_content("b")->crashes, 2U);
}

TEST(ContentRulesTest, TheListIsBounded) {
  VersionFacts facts;
  for (std::size_t i = 0; i <= kMaxContents; ++i)
    facts = after(
        std::move(facts),
        ContentRefused{.sha256 = std::to_string(i), .rule = "L4", .reason = "x", .host = "1"});
  EXPECT_EQ(facts.contents.size(), kMaxContents);
  EXPECT_EQ(facts.find_content("0"), nullptr);
}

}  // namespace
}  // namespace hearth::plugins
