#include "plugins/versions/quarantine.hpp"

#include "base/files.hpp"
#include "support/temp_directory.hpp"

#include <gtest/gtest.h>

#include <string>

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

class QuarantineListTest : public ::testing::Test {
 protected:
  // True if the last one led to quarantine.
  bool crash(int times, std::int64_t first_ms = kFirstCrashMs, std::int64_t step_ms = 1000) {
    bool quarantined = false;
    for (int i = 0; i < times; ++i)
      quarantined = quarantine_.count(crash_of("Room", "01", first_ms + i * step_ms));
    return quarantined;
  }

  hearth::testing::TempDirectory directory_;
  Quarantine quarantine_ = Quarantine::none(directory_.path());
};

TEST_F(QuarantineListTest, P1_MoreThanThreeCrashesInFiveMinutes) {
  EXPECT_FALSE(crash(3));
  EXPECT_FALSE(quarantine_.holds("Room", "01"));
  EXPECT_TRUE(crash(1, kFirstCrashMs + 4000));
  EXPECT_TRUE(quarantine_.holds("Room", "01"));
  ASSERT_EQ(quarantine_.all().size(), 1U);
  EXPECT_EQ(quarantine_.all().front().reason, "SIGSEGV");
}

TEST_F(QuarantineListTest, P1_CrashesThatLieFurtherApartAreForgotten) {
  EXPECT_FALSE(crash(20, kFirstCrashMs, Quarantine::kWindowMs / 3 + 1));
  EXPECT_TRUE(crash(4, kFirstCrashMs + 100 * Quarantine::kWindowMs, Quarantine::kWindowMs / 3));
}

TEST_F(QuarantineListTest, P1_CrashesOfAClockThatWasAheadDoNotCountForEver) {
  EXPECT_FALSE(crash(3, kFirstCrashMs + 1000 * Quarantine::kWindowMs));
  EXPECT_FALSE(crash(1));
  EXPECT_FALSE(crash(1, kFirstCrashMs + Quarantine::kWindowMs * 2));
}

TEST_F(QuarantineListTest, P1_CrashesOfOthersDoNotCount) {
  for (int i = 0; i < 3; ++i) {
    EXPECT_FALSE(quarantine_.count(crash_of("Room", "01", kFirstCrashMs)));
    EXPECT_FALSE(quarantine_.count(crash_of("Room", "02", kFirstCrashMs)));
    EXPECT_FALSE(quarantine_.count(crash_of("Lobby", "01", kFirstCrashMs)));
    EXPECT_FALSE(quarantine_.count(crash_of("", "", kFirstCrashMs)));
  }
  EXPECT_TRUE(quarantine_.all().empty());
  EXPECT_FALSE(quarantine_.count(crash_of("", "", kFirstCrashMs)));
}

TEST_F(QuarantineListTest, P1_ACrashOfAWholeLibraryIsEachOfItsClasses) {
  for (int i = 0; i < 3; ++i)
    EXPECT_FALSE(quarantine_.count(crash_of("Room,Lobby", "01", kFirstCrashMs)));
  EXPECT_TRUE(quarantine_.count(crash_of("Lobby", "01", kFirstCrashMs)));
  EXPECT_FALSE(quarantine_.holds("Room", "01"));
  EXPECT_TRUE(quarantine_.count(crash_of("Room,Lobby", "01", kFirstCrashMs)));
  EXPECT_TRUE(quarantine_.holds("Room", "01"));
  EXPECT_TRUE(quarantine_.release("Room"));
  EXPECT_TRUE(quarantine_.holds("Lobby", "01"));
}

TEST_F(QuarantineListTest, P1_OneCallThatDoesNotReturnIsEnough) {
  diagnosis::CrashRecord crash = crash_of("Room", "01", kFirstCrashMs);
  crash.reason = diagnosis::kHung;
  EXPECT_TRUE(quarantine_.count(crash));
  EXPECT_TRUE(quarantine_.holds("Room", "01"));
  EXPECT_EQ(quarantine_.find_barred("01"), nullptr) << "its library can be loaded";
  EXPECT_FALSE(quarantine_.count(crash)) << "it is told once";
  EXPECT_EQ(quarantine_.all().size(), 1U);
}

TEST_F(QuarantineListTest, P2_ALibraryThatCrashesWhileItIsLoadedIsNotLoadedAnyMore) {
  for (const std::string call : {"load", "init", "get_class", "deinit", "unload"}) {
    Quarantine quarantine = Quarantine::none(directory_.path());
    diagnosis::CrashRecord crash = crash_of("Room,Lobby", "01", kFirstCrashMs);
    crash.call = call;
    for (int i = 0; i < 3; ++i) EXPECT_FALSE(quarantine.count(crash));
    EXPECT_EQ(quarantine.find_barred("01"), nullptr);
    EXPECT_TRUE(quarantine.count(crash));
    EXPECT_NE(quarantine.find_barred("01"), nullptr) << call;
    EXPECT_EQ(quarantine.find_barred("02"), nullptr);
    EXPECT_TRUE(quarantine.holds("Room", "01"));
    EXPECT_TRUE(quarantine.holds("Lobby", "01"));
    ASSERT_TRUE(quarantine.save());
    Quarantine loaded = Quarantine::load(directory_.path()).value();
    EXPECT_NE(loaded.find_barred("01"), nullptr);
    // With one class left in quarantine it could not be loaded.
    EXPECT_TRUE(loaded.release("Lobby"));
    EXPECT_TRUE(loaded.all().empty());
    for (int i = 0; i < 3; ++i) EXPECT_FALSE(loaded.count(crash)) << "a new chance";
  }
}

TEST_F(QuarantineListTest, P2_ALibraryThatHangsWhileItIsLoadedIsNotLoadedAnyMore) {
  diagnosis::CrashRecord crash = crash_of("Room", "01", kFirstCrashMs);
  crash.reason = diagnosis::kHung;
  crash.call = "init";
  EXPECT_TRUE(quarantine_.count(crash));
  EXPECT_NE(quarantine_.find_barred("01"), nullptr);
}

TEST_F(QuarantineListTest, P2_AClassInQuarantineWhoseLibraryCrashesAsItIsLoadedIsNotLoadedAnyMore) {
  crash(4);
  EXPECT_EQ(quarantine_.find_barred("01"), nullptr);
  diagnosis::CrashRecord crash = crash_of("Room,Lobby", "01", kFirstCrashMs + 5000);
  crash.call = "init";
  for (int i = 0; i < 3; ++i) EXPECT_FALSE(quarantine_.count(crash));
  EXPECT_TRUE(quarantine_.count(crash));
  EXPECT_NE(quarantine_.find_barred("01"), nullptr);
  EXPECT_EQ(quarantine_.all().size(), 2U);
}

TEST_F(QuarantineListTest, P2_AThreadThatCrashesAlthoughNoClassIsServedIsNotStartedAgain) {
  diagnosis::CrashRecord crash = crash_of("Room,Lobby", "01", kFirstCrashMs);
  crash.call = diagnosis::kOwnThread;
  for (int i = 0; i < 4; ++i) quarantine_.count(crash);
  EXPECT_TRUE(quarantine_.holds("Room", "01"));
  EXPECT_EQ(quarantine_.find_barred("01"), nullptr) << "an agent may have started it";
  EXPECT_TRUE(quarantine_.count(crash));
  EXPECT_NE(quarantine_.find_barred("01"), nullptr);
  EXPECT_EQ(quarantine_.all().size(), 2U);
}

TEST_F(QuarantineListTest, P3_AnotherHashIsServed) {
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

TEST_F(QuarantineListTest, P4_WhatIsSavedIsLoaded) {
  crash(4);
  for (int i = 0; i < 3; ++i) quarantine_.count(crash_of("Lobby", "03", kFirstCrashMs));
  ASSERT_TRUE(quarantine_.save());
  Quarantine loaded = Quarantine::load(directory_.path()).value();
  EXPECT_TRUE(loaded.holds("Room", "01"));
  EXPECT_EQ(loaded.all().front().since_ms, kFirstCrashMs + 3000);
  EXPECT_EQ(loaded.all().front().library, "/plugins/a.so");
  EXPECT_TRUE(loaded.count(crash_of("Lobby", "03", kFirstCrashMs))) << "the crashes before count";
}

TEST_F(QuarantineListTest, P5_TheListIsBounded) {
  for (int i = 0; i < 110; ++i) {
    for (int times = 0; times < 4; ++times)
      quarantine_.count(crash_of("Room", std::to_string(i), kFirstCrashMs));
  }
  EXPECT_EQ(quarantine_.all().size(), Quarantine::kMaxEntries);
  EXPECT_TRUE(quarantine_.holds("Room", "109"));
}

TEST_F(QuarantineListTest, WithoutAFileNobodyIsInQuarantine) {
  EXPECT_TRUE(Quarantine::load(directory_.path()).value().all().empty());
}

TEST_F(QuarantineListTest, AFileThatIsNotOursIsAnErrorThatNamesIt) {
  for (const std::string text : {"", "[]", "{", "nonsense"}) {
    ASSERT_TRUE(write_file_atomically(directory_.path() / "quarantine.json", text));
    const auto loaded = Quarantine::load(directory_.path());
    ASSERT_FALSE(loaded) << text;
    EXPECT_NE(loaded.error().message.find("quarantine.json"), std::string::npos);
  }
}

TEST_F(QuarantineListTest, PartsOfAFileThatAreNotOursAreLeftOut) {
  ASSERT_TRUE(write_file_atomically(
      directory_.path() / "quarantine.json",
      R"({"crashes":7,"quarantined":[1,{"class":"Room","sha256":"01","since_ms":"x"}]})"));
  const Quarantine loaded = Quarantine::load(directory_.path()).value();
  EXPECT_TRUE(loaded.holds("Room", "01"));
  EXPECT_EQ(loaded.all().size(), 1U);
}

}  // namespace
}  // namespace hearth::plugins
