#include "plugins/versions/version_facts.hpp"

#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace hearth::plugins {
namespace {

constexpr std::int64_t kFirstCrashMs = 1'700'000'000'000;

diagnosis::CrashRecord crash_of(const std::string& agent_class, const std::string& sha256,
                                std::int64_t time_ms) {
  diagnosis::CrashRecord crash;
  crash.reason = "SIGSEGV";
  crash.call = "message";
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
    diagnosis::CrashRecord crash = crash_of("Room,Lobby", "01", kFirstCrashMs);
    crash.call = call;
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
  diagnosis::CrashRecord crash = crash_of("Room,Lobby", "01", kFirstCrashMs + 5000);
  crash.call = "init";
  for (int i = 0; i < 3; ++i) EXPECT_FALSE(quarantine_.count(crash));
  EXPECT_TRUE(quarantine_.count(crash));
  EXPECT_NE(quarantine_.facts.find_barred("01"), nullptr);
  EXPECT_EQ(quarantine_.all().size(), 2U);
}

TEST_F(QuarantineListTest, AThreadThatCrashesAlthoughNoClassIsServedIsNotStartedAgain) {
  diagnosis::CrashRecord crash = crash_of("Room,Lobby", "01", kFirstCrashMs);
  crash.call = diagnosis::kOwnThread;
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

// ---- places -------------------------------------------------------------------------------------

// One place in a few letters: the proven content, the content on trial, the file's content if it is
// not served (`!`: condemned, `?`: may be retried), and the condemned content. "" is no place.
//   "a b - -"   b is on trial, the server can go back to a
//   "ab c - -"  c is on trial, the server can go back to b, which was replaced during its own trial
//   "a - b! b"  a is served again, the file holds b, which is condemned
std::string shown(const VersionFacts& facts) {
  const Place* const place = facts.find_place("f");
  if (place == nullptr) return "";
  std::string text = place->proven + place->superseded + " " +
                     (place->on_trial.empty() ? "-" : place->on_trial) + " ";
  if (place->not_served)
    text += (place->not_served->sha256.empty() ? "gone" : place->not_served->sha256) +
            (place->not_served->may_retry ? "?" : "!");
  else
    text += "-";
  text += " ";
  for (const auto& each : place->condemned) text += each.sha256;
  return place->condemned.empty() ? text + "-" : text;
}

struct PlaceRow {
  const char* name;
  std::string before;
  VersionEvent event;
  std::string after;
};

VersionFacts parsed(const std::string& text) {
  VersionFacts facts;
  if (text.empty()) return facts;
  Place place;
  place.file = "f";
  place.proven = text.substr(0, 1);
  std::size_t at = text.find(' ') + 1;
  place.superseded = text.substr(1, at - 2);
  if (text[at] != '-') place.on_trial = text.substr(at, 1);
  at += 2;
  if (text[at] != '-') {
    const std::size_t end = text.find_first_of("?!", at);
    const std::string sha256 = text.substr(at, end - at);
    place.not_served = Place::NotServed{.sha256 = sha256 == "gone" ? "" : sha256,
                                        .reason = "of before",
                                        .may_retry = text[end] == '?'};
    at = end;
  }
  for (const char each : text.substr(at + 2)) {
    if (each != '-')
      place.condemned.push_back({.sha256 = std::string(1, each), .reason = "of before"});
  }
  facts.places.push_back(std::move(place));
  return facts;
}

VersionEvent begin(const std::string& next, const std::string& served) {
  return TrialBegun{.file = "f", .next = next, .served = served};
}
VersionEvent lose(const std::string& goes_on, const std::string& what, bool may_retry) {
  return TrialLost{.file = "f",
                   .goes_on = goes_on,
                   .what = {.sha256 = what, .reason = "it is bad", .may_retry = may_retry}};
}
VersionEvent pass(const std::string& sha256) {
  return TrialPassed{.file = "f", .sha256 = sha256};
}
VersionEvent keep(const std::string& served) {
  return FileLost{.file = "f", .served = served, .reason = "it is gone"};
}
VersionEvent settle() {
  return FileSettled{"f"};
}
VersionEvent meet(const std::string& sha256) {
  return FileMet{.file = "f", .sha256 = sha256};
}
VersionEvent crash_in(const std::string& sha256) {
  return ProcessCrashed{crash_of("Room", sha256, kFirstCrashMs)};
}
VersionEvent allow(const std::string& sha256) {
  return ContentAllowed{sha256};
}

class PlaceTest : public ::testing::TestWithParam<PlaceRow> {};

TEST_P(PlaceTest, FollowsTheTable) {
  const VersionFacts before = parsed(GetParam().before);
  ASSERT_EQ(shown(before), GetParam().before) << "the test's own reading";
  EXPECT_EQ(shown(after(before, GetParam().event)), GetParam().after);
}

INSTANTIATE_TEST_SUITE_P(
    Edges, PlaceTest,
    ::testing::Values(
        // no place
        PlaceRow{"NoneBegin", "", begin("b", "a"), "a b - -"},
        PlaceRow{"NoneBeginSame", "", begin("a", "a"), ""},
        PlaceRow{"NoneLose", "", lose("a", "b", false), ""},
        PlaceRow{"NonePass", "", pass("a"), ""}, PlaceRow{"NoneKeep", "", keep("a"), "a - gone? -"},
        PlaceRow{"NoneSettle", "", settle(), ""}, PlaceRow{"NoneMeet", "", meet("a"), ""},
        PlaceRow{"NoneCrash", "", crash_in("a"), ""}, PlaceRow{"NoneAllow", "", allow("a"), ""},
        // on trial
        PlaceRow{"TrialBegin", "a b - -", begin("c", "b"), "ab c - -"},
        PlaceRow{"TrialBeginBack", "a b - -", begin("a", "b"), ""},
        PlaceRow{"TrialBeginFromAnother", "a b - -", begin("d", "c"), "c d - -"},
        PlaceRow{"TrialLose", "a b - -", lose("a", "b", false), "a - b! b"},
        PlaceRow{"TrialLoseRetry", "a b - -", lose("a", "b", true), "a - b? -"},
        PlaceRow{"TrialLoseToTrial", "a c - -", lose("b", "c", false), "a b c! c"},
        PlaceRow{"TrialPass", "a b - -", pass("b"), ""},
        PlaceRow{"TrialPassOther", "a b - -", pass("a"), "a b - -"},
        PlaceRow{"TrialKeep", "a b - -", keep("b"), "ab b gone? -"},
        PlaceRow{"TrialSettle", "a b - -", settle(), "a b - -"},
        PlaceRow{"TrialMeetSame", "a b - -", meet("b"), "a b - -"},
        PlaceRow{"TrialMeetOther", "a b - -", meet("c"), "a c - -"},
        PlaceRow{"TrialMeetProven", "a b - -", meet("a"), ""},
        PlaceRow{"TrialCrash", "a b - -", crash_in("b"), "a - b! b"},
        PlaceRow{"TrialCrashOfProven", "a b - -", crash_in("a"), "a b - -"},
        PlaceRow{"TrialAllow", "a b - -", allow("b"), "a b - -"},
        // condemned: the proven one serves
        PlaceRow{"CondemnedBegin", "a - b! b", begin("c", "a"), "a c - b"},
        PlaceRow{"CondemnedLose", "a - b! b", lose("a", "c", false), "a - c! bc"},
        PlaceRow{"CondemnedPass", "a - b! b", pass("a"), "a - b! b"},
        PlaceRow{"CondemnedKeep", "a - b! b", keep("a"), "a - b! b"},
        PlaceRow{"CondemnedSettle", "a - b! b", settle(), ""},
        PlaceRow{"CondemnedMeetSame", "a - b! b", meet("b"), "a - b! b"},
        PlaceRow{"CondemnedMeetOther", "a - b! b", meet("c"), "a c - b"},
        PlaceRow{"CondemnedMeetProven", "a - b! b", meet("a"), ""},
        PlaceRow{"CondemnedCrash", "a - b! b", crash_in("a"), "a - b! b"},
        PlaceRow{"CondemnedAllow", "a - b! b", allow("b"), "a - b? -"},
        PlaceRow{"CondemnedAllowOther", "a - b! b", allow("c"), "a - b! b"},
        // refused, and may be retried; or gone
        PlaceRow{"RefusedBegin", "a - b? -", begin("b", "a"), "a b - -"},
        PlaceRow{"RefusedLose", "a - b? -", lose("a", "b", false), "a - b! b"},
        PlaceRow{"RefusedKeep", "a - b? -", keep("a"), "a - b? -"},
        PlaceRow{"RefusedSettle", "a - b? -", settle(), ""},
        PlaceRow{"RefusedMeet", "a - b? -", meet("b"), "a b - -"},
        PlaceRow{"RefusedCrash", "a - b? -", crash_in("b"), "a - b? -"},
        PlaceRow{"GoneMeet", "a - gone? -", meet("b"), "a b - -"},
        PlaceRow{"GoneMeetProven", "a - gone? -", meet("a"), ""},
        PlaceRow{"GoneKeep", "a - gone? -", keep("a"), "a - gone? -"},
        // a version on trial runs while the file holds something else
        PlaceRow{"BesideBegin", "a b c! c", begin("d", "b"), "ab d - c"},
        PlaceRow{"BesideLose", "a b c! c", lose("a", "b", false), "a - b! cb"},
        PlaceRow{"BesidePass", "a b c! c", pass("b"), "b - c! c"},
        PlaceRow{"BesideKeep", "a b c! c", keep("b"), "ab b c! c"},
        PlaceRow{"BesideSettle", "a b c! c", settle(), "a b - c"},
        PlaceRow{"BesideMeet", "a b c? -", meet("b"), "a b - -"},
        PlaceRow{"BesideMeetCondemned", "a b c! c", meet("c"), "a b c! c"},
        PlaceRow{"BesideCrash", "a b c! c", crash_in("b"), "a - c! cb"},
        PlaceRow{"BesideAllow", "a b c! c", allow("c"), "a b c? -"},
        // several versions while none is proven: back to the last good one, then to the proven one
        PlaceRow{"QuickBegin", "ab c - -", begin("d", "c"), "ac d - -"},
        PlaceRow{"QuickBeginBack", "ab c - -", begin("b", "c"), "ac b - -"},
        PlaceRow{"QuickBeginProven", "ab c - -", begin("a", "c"), ""},
        PlaceRow{"QuickLose", "ab c - -", lose("b", "c", false), "ab b c! c"},
        PlaceRow{"QuickLoseAgain", "ab b c! c", lose("a", "b", false), "a - b! cb"},
        PlaceRow{"QuickPass", "ab c - -", pass("c"), ""},
        PlaceRow{"QuickPassOfTheOneBefore", "ab b c! c", pass("b"), "b - c! c"},
        PlaceRow{"QuickKeep", "ab c - -", keep("c"), "ac c gone? -"},
        PlaceRow{"QuickSettle", "ab b c? -", settle(), "ab b - -"},
        PlaceRow{"QuickMeetOther", "ab c - -", meet("d"), "ab d - -"},
        PlaceRow{"QuickMeetProven", "ab c - -", meet("a"), ""},
        PlaceRow{"QuickCrash", "ab c - -", crash_in("c"), "ab b c! c"},
        PlaceRow{"QuickCrashOfTheOneBefore", "ab c - -", crash_in("b"), "ab c - -"},
        PlaceRow{"QuickCrashAgain", "ab b c! c", crash_in("b"), "a - c! cb"},
        PlaceRow{"QuickNextAfterACrash", "ab b c! c", begin("d", "b"), "ab d - c"}),
    [](const ::testing::TestParamInfo<PlaceRow>& each) { return each.param.name; });

TEST(PlaceRulesTest, WhatIsCondemnedInOnePlaceIsSoInAllButWhereItIsProven) {
  VersionFacts facts = parsed("a - b! b");
  EXPECT_NE(facts.find_condemned("g", "b"), nullptr);
  facts = after(facts, TrialBegun{.file = "g", .next = "c", .served = "b"});
  EXPECT_EQ(facts.find_condemned("g", "b"), nullptr);
  EXPECT_NE(facts.find_condemned("f", "b"), nullptr);
}

// ---- settings -----------------------------------------------------------------------------------

// The settings of one class in a few letters: the proven ones, those on trial, those taken back. ""
// is no entry.
std::string shown_settings(const VersionFacts& facts) {
  const SettingsFacts* const known = facts.find_settings("chat-room");
  if (known == nullptr) return "";
  return known->proven.hash + (known->superseded ? known->superseded->hash : "") + " " +
         (known->on_trial.empty() ? "-" : known->on_trial) + " " +
         (known->taken_back ? known->taken_back->hash : "-");
}

SettingsFacts::Proven settings(const std::string& hash) {
  return {.hash = hash, .file = "c.yaml", .text = "the text of " + hash};
}

VersionFacts parsed_settings(const std::string& text) {
  VersionFacts facts;
  if (text.empty()) return facts;
  SettingsFacts known;
  known.agent_class = "chat-room";
  known.proven.hash = text.substr(0, 1);
  const std::size_t at = text.find(' ') + 1;
  if (at > 2) known.superseded = settings(text.substr(1, 1));
  if (text[at] != '-') known.on_trial = text.substr(at, 1);
  if (text[at + 2] != '-') {
    known.taken_back =
        SettingsFacts::TakenBack{.hash = text.substr(at + 2, 1), .reason = "of before"};
  }
  facts.settings.push_back(std::move(known));
  return facts;
}
VersionEvent begin_settings(const std::string& next, const std::string& served) {
  return SettingsBegun{.agent_class = "chat-room", .next = next, .served = settings(served)};
}
VersionEvent lose_settings(const std::string& goes_on, const std::string& what) {
  return SettingsLost{.agent_class = "chat-room",
                      .goes_on = settings(goes_on),
                      .what = {.hash = what, .reason = "they are bad"}};
}
VersionEvent pass_settings(const std::string& hash) {
  return SettingsPassed{.agent_class = "chat-room", .settings = settings(hash)};
}
VersionEvent settle_settings() {
  return SettingsSettled{"chat-room"};
}
VersionEvent allow_settings() {
  return SettingsAllowed{"chat-room"};
}
VersionEvent meet_settings(const std::string& hash) {
  return SettingsMet{.agent_class = "chat-room", .hash = hash};
}
VersionEvent crash_of_class(const std::string& classes, const std::string& call = "message") {
  diagnosis::CrashRecord crash = crash_of(classes, "01", kFirstCrashMs);
  crash.call = call;
  return ProcessCrashed{crash};
}

class SettingsFactsTest : public ::testing::TestWithParam<PlaceRow> {};

TEST_P(SettingsFactsTest, FollowsTheTable) {
  const VersionFacts before = parsed_settings(GetParam().before);
  ASSERT_EQ(shown_settings(before), GetParam().before) << "the test's own reading";
  EXPECT_EQ(shown_settings(after(before, GetParam().event)), GetParam().after);
}

INSTANTIATE_TEST_SUITE_P(
    Edges, SettingsFactsTest,
    ::testing::Values(
        // no entry
        PlaceRow{"NoneBegin", "", begin_settings("b", "a"), "a b -"},
        PlaceRow{"NoneBeginSame", "", begin_settings("a", "a"), ""},
        PlaceRow{"NoneLose", "", lose_settings("a", "b"), "a - b"},
        PlaceRow{"NonePass", "", pass_settings("a"), ""},
        PlaceRow{"NoneSettle", "", settle_settings(), ""},
        PlaceRow{"NoneAllow", "", allow_settings(), ""},
        PlaceRow{"NoneMeet", "", meet_settings("a"), ""},
        PlaceRow{"NoneCrash", "", crash_of_class("ChatRoom"), ""},
        // on trial
        PlaceRow{"TrialBegin", "a b -", begin_settings("c", "b"), "ab c -"},
        PlaceRow{"TrialBeginSame", "a b -", begin_settings("b", "a"), "a b -"},
        PlaceRow{"TrialBeginBack", "a b -", begin_settings("a", "b"), ""},
        PlaceRow{"TrialBeginFromAnother", "a b -", begin_settings("d", "c"), "c d -"},
        PlaceRow{"TrialLose", "a b -", lose_settings("a", "b"), "a - b"},
        PlaceRow{"TrialLoseToTrial", "ab c -", lose_settings("b", "c"), "ab b c"},
        PlaceRow{"TrialPass", "a b -", pass_settings("b"), ""},
        PlaceRow{"TrialPassOther", "a b -", pass_settings("a"), "a b -"},
        PlaceRow{"TrialSettle", "a b -", settle_settings(), "a b -"},
        PlaceRow{"TrialAllow", "a b -", allow_settings(), "a b -"},
        PlaceRow{"TrialMeetSame", "a b -", meet_settings("b"), "a b -"},
        PlaceRow{"TrialMeetOther", "a b -", meet_settings("c"), "a c -"},
        PlaceRow{"TrialMeetProven", "a b -", meet_settings("a"), ""},
        PlaceRow{"TrialCrash", "a b -", crash_of_class("ChatRoom"), "a - b"},
        PlaceRow{"TrialCrashOfSeveral", "a b -", crash_of_class("Lobby,ChatRoom"), "a - b"},
        PlaceRow{"TrialCrashOfAnother", "a b -", crash_of_class("Lobby"), "a b -"},
        PlaceRow{"TrialCrashInLoad", "a b -", crash_of_class("ChatRoom", "init"), "a b -"},
        // taken back: the proven ones hold
        PlaceRow{"BackBegin", "a - b", begin_settings("c", "a"), "a c -"},
        PlaceRow{"BackLose", "a - b", lose_settings("a", "c"), "a - c"},
        PlaceRow{"BackPass", "a - b", pass_settings("a"), "a - b"},
        PlaceRow{"BackSettle", "a - b", settle_settings(), ""},
        PlaceRow{"BackAllow", "a - b", allow_settings(), "a - -"},
        PlaceRow{"BackMeetSame", "a - b", meet_settings("b"), "a - b"},
        PlaceRow{"BackMeetOther", "a - b", meet_settings("c"), "a c -"},
        PlaceRow{"BackMeetProven", "a - b", meet_settings("a"), ""},
        PlaceRow{"BackCrash", "a - b", crash_of_class("ChatRoom"), "a - b"},
        // allowed, and not begun yet
        PlaceRow{"AllowedBegin", "a - -", begin_settings("b", "a"), "a b -"},
        PlaceRow{"AllowedLose", "a - -", lose_settings("a", "b"), "a - b"},
        PlaceRow{"AllowedSettle", "a - -", settle_settings(), ""},
        PlaceRow{"AllowedMeet", "a - -", meet_settings("b"), "a b -"},
        PlaceRow{"AllowedMeetProven", "a - -", meet_settings("a"), ""},
        PlaceRow{"AllowedCrash", "a - -", crash_of_class("ChatRoom"), "a - -"},
        // settings on trial hold while the file says others
        PlaceRow{"BesideBegin", "a b c", begin_settings("d", "b"), "ab d -"},
        PlaceRow{"BesideLose", "a b c", lose_settings("a", "b"), "a - b"},
        PlaceRow{"BesidePass", "a b c", pass_settings("b"), "b - c"},
        PlaceRow{"BesideSettle", "a b c", settle_settings(), "a b -"},
        PlaceRow{"BesideAllow", "a b c", allow_settings(), "a b -"},
        PlaceRow{"BesideMeetTrial", "a b c", meet_settings("b"), "a b -"},
        PlaceRow{"BesideMeetBack", "a b c", meet_settings("c"), "a b c"},
        PlaceRow{"BesideCrash", "a b c", crash_of_class("ChatRoom"), "a - b"},
        // several changes while none is proven
        PlaceRow{"QuickBegin", "ab c -", begin_settings("d", "c"), "ac d -"},
        PlaceRow{"QuickBeginProven", "ab c -", begin_settings("a", "c"), ""},
        PlaceRow{"QuickLoseAgain", "ab b c", lose_settings("a", "b"), "a - b"},
        PlaceRow{"QuickPass", "ab c -", pass_settings("c"), ""},
        PlaceRow{"QuickPassOfTheOnesBefore", "ab b c", pass_settings("b"), "b - c"},
        PlaceRow{"QuickMeetOther", "ab c -", meet_settings("d"), "ab d -"},
        PlaceRow{"QuickCrash", "ab c -", crash_of_class("ChatRoom"), "ab b c"},
        PlaceRow{"QuickCrashAgain", "ab b c", crash_of_class("ChatRoom"), "a - b"}),
    [](const ::testing::TestParamInfo<PlaceRow>& each) { return each.param.name; });

TEST(SettingsRulesTest, ACrashThatTakesSettingsBackDoesNotCountForTheClass) {
  VersionFacts facts = parsed_settings("a b -");
  facts = after(std::move(facts), crash_of_class("ChatRoom"));
  EXPECT_EQ(facts.find_class("ChatRoom", "01"), nullptr);
  facts = after(std::move(facts), crash_of_class("ChatRoom"));
  EXPECT_NE(facts.find_class("ChatRoom", "01"), nullptr) << "they did not hold any more";
}

TEST(SettingsRulesTest, NewCodeIsAtFaultBeforeNewSettingsAre) {
  VersionFacts facts = parsed_settings("a b -");
  facts = after(std::move(facts), TrialBegun{.file = "f", .next = "01", .served = "00"});
  facts = after(std::move(facts), crash_of_class("ChatRoom"));
  EXPECT_EQ(shown_settings(facts), "a b -");
  EXPECT_EQ(shown(facts), "00 - 01! 01");
  facts = after(std::move(facts), ProcessCrashed{crash_of("ChatRoom", "00", kFirstCrashMs)});
  EXPECT_EQ(shown_settings(facts), "a - b") << "alone";
}

TEST(SettingsRulesTest, TheWayBackKeepsItsText) {
  VersionFacts facts = after({}, begin_settings("b", "a"));
  EXPECT_EQ(facts.find_settings("chat-room")->proven, settings("a"));
  facts = after(std::move(facts), lose_settings("b", "c"));
  facts = after(std::move(facts), pass_settings("b"));
  EXPECT_EQ(facts.find_settings("chat-room")->proven, settings("b"));
}

TEST(SettingsRulesTest, TheListIsBounded) {
  VersionFacts facts;
  for (std::size_t i = 0; i <= kMaxSettings; ++i) {
    facts = after(
        std::move(facts),
        SettingsBegun{.agent_class = std::to_string(i), .next = "b", .served = settings("a")});
  }
  EXPECT_EQ(facts.settings.size(), kMaxSettings);
  EXPECT_EQ(facts.find_settings("0"), nullptr);
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
  EXPECT_EQ(after(refused("L4"), allow("b")).find_content("b"), nullptr);
  EXPECT_EQ(after(refused("L4"), allow("a")).find_content("b")->rule, "L4");
}

TEST(ContentRulesTest, WhatIsLostWithoutAPlaceIsRefused) {
  EXPECT_EQ(after({}, lose("", "b", false)).find_content("b")->rule, "R1");
  EXPECT_EQ(after({}, lose("", "b", true)).find_content("b"), nullptr);
}

TEST(ContentRulesTest, ItsCrashesAreCounted) {
  VersionFacts facts = after({}, crash_in("b"));
  facts = after(facts, crash_in("b"));
  facts = after(facts, allow("b"));
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
