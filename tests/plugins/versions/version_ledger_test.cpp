#include "plugins/versions/version_ledger.hpp"

#include "base/files.hpp"
#include "base/sha256.hpp"
#include "support/temp_directory.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <gtest/gtest.h>

#include <filesystem>
#include <optional>
#include <set>
#include <string>

namespace hearth::plugins {
namespace {

namespace fs = std::filesystem;
// What becomes of the content of a file that serves nothing yet.
enum class Standing { kUnknown, kOnTrial, kCondemned };

class VersionLedgerTest : public ::testing::Test {
 protected:
  VersionLedgerTest() { write(file_, "what the file holds is not looked at"); }

  static void write(const fs::path& path, const std::string& text) {
    const auto written = write_file_atomically(path, text, fs::perms{0500});
    EXPECT_TRUE(written) << written.error().message;
  }
  // Content as a server would have loaded it.
  VersionLedger::Version version(const std::string& content) {
    const fs::path copy = root_.path() / ("copy of " + content);
    write(copy, content);
    return {.sha256 = hash(content), .copy = copy};
  }
  static std::string hash(const std::string& content) { return sha256_hex(content); }

  // Of this process, from its first use on.
  VersionLedger& ledger() {
    if (!ledger_) ledger_.emplace(root_.path(), "1.0.0");
    return *ledger_;
  }
  // As a server that starts.
  [[nodiscard]] VersionLedger open() const { return VersionLedger(root_.path(), "1.0.0"); }
  static Standing meet(VersionLedger& ledger, const fs::path& file, const std::string& sha256) {
    EXPECT_TRUE(ledger.meet(file, sha256));
    if (ledger.refusal(file, sha256)) return Standing::kCondemned;
    const auto place = ledger.find(file);
    return place && place->on_trial == sha256 ? Standing::kOnTrial : Standing::kUnknown;
  }
  [[nodiscard]] Standing meet_at_start(const std::string& sha256) const {
    VersionLedger ledger = open();
    return meet(ledger, file_, sha256);
  }
  // The process before crashed in this content.
  static void blame(VersionLedger& ledger, const std::string& sha256) {
    diagnosis::CrashRecord crash;
    crash.reason = "SIGSEGV";
    crash.call = "message";
    crash.sha256 = sha256;
    EXPECT_TRUE(ledger.crashed(crash).written);
  }
  // What a process would find that starts now.
  [[nodiscard]] std::optional<Trial> found() const { return open().find(file_); }
  [[nodiscard]] std::string bytes_before() const {
    const auto candidate = open().go_back(file_, clock_, ::geteuid());
    if (!candidate) return "none: " + candidate.error().message;
    EXPECT_EQ(candidate->file, file_);
    const auto* const text = reinterpret_cast<const char*>(candidate->bytes.data());
    return {text, candidate->bytes.size()};
  }
  [[nodiscard]] std::set<std::string> kept() const {
    std::set<std::string> names;
    for (const auto& entry : fs::directory_iterator(directory_))
      names.insert(entry.path().filename());
    return names;
  }
  static Trial::NotServed refused(const std::string& content, bool may_retry) {
    return {.hash = hash(content), .reason = "it is bad", .may_retry = may_retry};
  }

  SystemClock clock_;
  hearth::testing::TempDirectory root_;
  const fs::path directory_ = root_.path() / "trials";
  const fs::path file_ = root_.path() / "a.so";

 private:
  std::optional<VersionLedger> ledger_;
};

TEST_F(VersionLedgerTest, WhatIsKnownAboutSettingsIsOnTheDisk) {
  const Subject room{.kind = Subject::Kind::kSettings, .name = "chat-room"};
  const Kept before{.hash = "a", .file = "c.yaml", .text = R"({"kv":"1"})"};
  {
    VersionLedger ledger = open();
    EXPECT_TRUE(ledger.note(TrialBegun{.of = room, .next = "b", .served = before}));
    EXPECT_EQ(open().find(room)->on_trial, "b");
    EXPECT_TRUE(ledger.note(
        TrialLost{.of = room, .goes_on = before, .what = {.hash = "b", .reason = "they are bad"}}));
  }
  const auto known = open().find(room);
  ASSERT_TRUE(known && known->taken_back());
  EXPECT_EQ(known->proven, before);
  EXPECT_EQ(known->on_trial, "");
  EXPECT_EQ(known->taken_back()->reason, "they are bad");
  EXPECT_EQ(open().settings().size(), 1U);
}

TEST_F(VersionLedgerTest, AFileWithoutSettingsOrWithMembersOfANewerServerIsRead) {
  write(root_.path() / "versions.json", R"({"trials": [], "contents": [], "classes": []})");
  EXPECT_TRUE(open().problems().empty());
  EXPECT_TRUE(open().settings().empty());
  write(root_.path() / "versions.json",
        R"({"future": 1, "trials": [3, {"class": ""}, {"class": "lobby"},
            {"class": "chat-room", "future": [], "proven": {"hash": "a", "future": 1},
             "on_trial": "b", "not_served": 7}]})");
  EXPECT_TRUE(open().problems().empty());
  ASSERT_EQ(open().settings().size(), 1U);
  EXPECT_EQ(open().settings().front().on_trial, "b");
}

TEST_F(VersionLedgerTest, P1_ATrialIsOnDiskBeforeAnythingRuns) {
  ASSERT_TRUE(ledger().begin(file_, hash("two"), version("one")));
  const auto trial = found().value();
  EXPECT_EQ(trial.proven.hash, hash("one"));
  EXPECT_EQ(trial.on_trial, hash("two"));
  EXPECT_FALSE(trial.not_served);
  EXPECT_EQ(bytes_before(), "one");
}

TEST_F(VersionLedgerTest, TheBytesOutliveTheCopyThatWasLoaded) {
  const auto one = version("one");
  ASSERT_TRUE(ledger().begin(file_, hash("two"), one));
  fs::remove(one.copy);
  EXPECT_EQ(bytes_before(), "one");
}

TEST_F(VersionLedgerTest, WhatIsProvenNeedsNoWayBack) {
  const auto two = version("two");
  ASSERT_TRUE(ledger().begin(file_, two.sha256, version("one")));
  ASSERT_TRUE(ledger().prove(file_, version("one"))) << "not the one on trial";
  EXPECT_TRUE(found());
  ASSERT_TRUE(ledger().prove(file_, two));
  EXPECT_FALSE(found());
  EXPECT_TRUE(kept().empty()) << "P4: the bytes go";
}

TEST_F(VersionLedgerTest, WhoEndsTheProcessOnTrialIsCondemned) {
  {
    VersionLedger ledger = open();
    ASSERT_TRUE(ledger.begin(file_, hash("two"), version("one")));
  }
  VersionLedger ledger = open();
  blame(ledger, hash("one"));
  EXPECT_EQ(found()->on_trial, hash("two")) << "the first is proven";
  blame(ledger, hash("two"));
  EXPECT_EQ(meet(ledger, file_, hash("two")), Standing::kCondemned);
  // However often it starts.
  const auto trial = found();
  ASSERT_TRUE(trial && trial->not_served);
  EXPECT_EQ(trial->not_served->reason,
            "it ended the server (SIGSEGV in message) when it was tried");
  EXPECT_EQ(meet_at_start(hash("two")), Standing::kCondemned);
  EXPECT_EQ(bytes_before(), "one");
}

TEST_F(VersionLedgerTest, TheWayBackLeadsToTheLastGoodVersionAndThenToTheProvenOne) {
  const auto two = version("two");
  ASSERT_TRUE(ledger().begin(file_, two.sha256, version("one")));
  ASSERT_TRUE(ledger().begin(file_, hash("three"), two));
  fs::remove(two.copy);
  EXPECT_EQ(bytes_before(), "two");
  EXPECT_EQ(kept(), (std::set<std::string>{hash("one") + ".so", two.sha256 + ".so"}));
  // The third is taken back to the second, which is as new as it was.
  ASSERT_TRUE(ledger().lose(file_, two.sha256, refused("three", false)));
  EXPECT_EQ(found()->on_trial, two.sha256);
  blame(ledger(), two.sha256);
  EXPECT_EQ(meet(ledger(), file_, hash("three")), Standing::kCondemned);
  EXPECT_EQ(bytes_before(), "one");
  EXPECT_EQ(found()->not_served->reason, "it is bad") << "what the file holds is something else";
}

TEST_F(VersionLedgerTest, WhatWasCondemnedStaysSoWhateverComesAfterIt) {
  ASSERT_TRUE(ledger().begin(file_, hash("two"), version("one")));
  blame(ledger(), hash("two"));
  ASSERT_TRUE(ledger().begin(file_, hash("three"), version("one")));
  blame(ledger(), hash("three"));
  const VersionLedger later = open();
  for (const std::string content : {"two", "three"})
    EXPECT_EQ(later.refusal(file_, hash(content))->rule, "R1") << content;
  EXPECT_TRUE(later.refusal(file_, hash("two"))->reason.starts_with("it ended the server"));
  EXPECT_EQ(meet_at_start(hash("two")), Standing::kCondemned);
  ASSERT_TRUE(ledger().allow(hash("two")));
  EXPECT_FALSE(open().refusal(file_, hash("two")));
  EXPECT_TRUE(open().refusal(file_, hash("three")));
}

TEST_F(VersionLedgerTest, TheLastThatWereCondemnedAreRemembered) {
  VersionLedger ledger = open();
  for (std::size_t i = 0; i <= kMaxCondemned; ++i) {
    ASSERT_TRUE(ledger.begin(file_, hash(std::to_string(i)), version("one")));
    ASSERT_TRUE(ledger.lose(file_, hash("one"), refused(std::to_string(i), false)));
  }
  EXPECT_EQ(found()->condemned.size(), kMaxCondemned);
  EXPECT_FALSE(ledger.refusal(file_, hash("0")));
}

TEST_F(VersionLedgerTest, AVersionThatGoesOnBesideARefusedFileIsKeptOnceItIsProven) {
  const auto two = version("two");
  ASSERT_TRUE(ledger().begin(file_, two.sha256, version("one")));
  ASSERT_TRUE(ledger().begin(file_, hash("three"), two));
  ASSERT_TRUE(ledger().lose(file_, two.sha256, refused("three", true)));
  ASSERT_TRUE(ledger().prove(file_, two));
  EXPECT_EQ(bytes_before(), "two");
  EXPECT_EQ(found()->on_trial, "");
  EXPECT_EQ(kept(), std::set<std::string>{two.sha256 + ".so"});
}

TEST_F(VersionLedgerTest, WhatComesInThePlaceOfAFileThatWasGoneIsOnTrial) {
  ASSERT_TRUE(ledger().keep(file_, version("one"), "it is gone"));
  EXPECT_EQ(bytes_before(), "one");
  EXPECT_EQ(meet_at_start(hash("two")), Standing::kOnTrial);
  EXPECT_EQ(meet_at_start(hash("one")), Standing::kUnknown) << "it is back";
  EXPECT_FALSE(found());
}

TEST_F(VersionLedgerTest, OfFilesThatAreGoneTheLastAreKept) {
  VersionLedger ledger = open();
  const auto one = version("one");
  for (std::size_t i = 0; i <= VersionLedger::kMaxGone; ++i) {
    const fs::path gone = root_.path() / (std::to_string(i) + ".so");
    ASSERT_TRUE(ledger.keep(gone, one, "it is gone"));
  }
  EXPECT_EQ(ledger.facts().trials.size(), VersionLedger::kMaxGone);
  EXPECT_FALSE(ledger.find(root_.path() / "0.so")) << "the first";
}

TEST_F(VersionLedgerTest, HoweverTheDirectoryIsSpelled) {
  ASSERT_TRUE(ledger().begin(file_, hash("two"), version("one")));
  fs::create_directory(root_.path() / "b");
  fs::create_directory_symlink(root_.path(), root_.path() / "c");
  for (const fs::path& other : {root_.path() / "." / "a.so", root_.path() / "b" / ".." / "a.so",
                                root_.path() / "c" / "a.so"}) {
    ASSERT_TRUE(ledger().find(other)) << other;
    EXPECT_EQ(ledger().go_back(other, clock_, ::geteuid()).value().file, other);
  }
}

TEST_F(VersionLedgerTest, P3_DamagedBytesAreNotGiven) {
  ASSERT_TRUE(ledger().begin(file_, hash("two"), version("one")));
  write(directory_ / (hash("one") + ".so"), "one!");
  EXPECT_NE(bytes_before().find("is damaged"), std::string::npos);
  fs::remove(directory_ / (hash("one") + ".so"));
  EXPECT_FALSE(found()) << "there is nothing to go back to";
}

TEST_F(VersionLedgerTest, LibrariesDoNotDisturbEachOther) {
  VersionLedger ledger = open();
  const fs::path other = root_.path() / "b.so";
  write(other, "another");
  ASSERT_TRUE(ledger.begin(file_, hash("two"), version("one")));
  ASSERT_TRUE(ledger.begin(other, hash("two"), version("one"))) << "the same content";
  ASSERT_TRUE(ledger.lose(file_, hash("one"), refused("two", true)));
  ASSERT_TRUE(ledger.settle(file_));
  EXPECT_EQ(open().facts().trials.size(), 1U);
  EXPECT_TRUE(open().go_back(other, clock_, ::geteuid())) << "its bytes are the other's as well";
  blame(ledger, hash("two"));
  EXPECT_TRUE(ledger.refusal(other, hash("two")));
}

TEST_F(VersionLedgerTest, P2_WhatCannotBeWrittenHasNotHappened) {
  ASSERT_TRUE(ledger().begin(file_, hash("two"), version("one")));
  fs::remove_all(root_.path() / "versions.json");
  fs::create_directory(root_.path() / "versions.json");  // cannot be replaced by a file
  EXPECT_FALSE(ledger().begin(file_, hash("three"), version("one")));
  ASSERT_TRUE(ledger().find(file_));
  EXPECT_EQ(ledger().find(file_)->on_trial, hash("two"));
}

TEST_F(VersionLedgerTest, NamesThatCannotBeNotedAreRefused) {
  EXPECT_EQ(ledger().begin(root_.path() / "\xff.so", hash("two"), version("one")).error().code,
            Errc::kInvalidArgument);
}

TEST_F(VersionLedgerTest, P5_WhatSpeaksAgainstAVersionHoldsUnwritten) {
  VersionLedger ledger = open();
  fs::create_directory(root_.path() / "versions.json");
  EXPECT_FALSE(ledger.refuse(hash("two"), "L4", "its init() failed"));
  EXPECT_EQ(ledger.refusal(file_, hash("two"))->rule, "L4");
  fs::remove(root_.path() / "versions.json");
  EXPECT_TRUE(ledger.refuse(hash("three"), "L4", "its init() failed"));
  EXPECT_TRUE(open().refusal(file_, hash("two"))) << "it is written with the next change";
}

TEST_F(VersionLedgerTest, P5_ABlameThatCannotBeWrittenHoldsForThisProcess) {
  ASSERT_TRUE(ledger().begin(file_, hash("two"), version("one")));
  const fs::path list = root_.path() / "versions.json";
  fs::rename(list, list.native() + ".away");
  fs::create_directory(list);
  diagnosis::CrashRecord crash;
  crash.sha256 = hash("two");
  EXPECT_FALSE(ledger().crashed(crash).written);
  EXPECT_FALSE(ledger().catch_up());
  fs::remove(list);
  EXPECT_EQ(meet(ledger(), file_, hash("two")), Standing::kCondemned);
  EXPECT_TRUE(ledger().catch_up());
  EXPECT_EQ(meet_at_start(hash("two")), Standing::kCondemned);
}

TEST_F(VersionLedgerTest, AnotherHostTriesAgainWhatWasRefused) {
  ASSERT_TRUE(ledger().refuse(hash("two"), "L4", "its init() failed"));
  EXPECT_EQ(open().refusal(file_, hash("two"))->reason, "its init() failed");
  EXPECT_FALSE(VersionLedger(root_.path(), "1.0.1").refusal(file_, hash("two")));
}

TEST_F(VersionLedgerTest, P6_AFileThatIsNotOursIsPutAside) {
  for (const std::string text : {"", "[]", "{}", R"({"trials":3})", "{\"trials\":"}) {
    write(root_.path() / "versions.json", text);
    VersionLedger ledger = open();
    ASSERT_EQ(ledger.problems().size(), 1U) << text;
    EXPECT_NE(ledger.problems()[0].message.find("versions.json.damaged"), std::string::npos)
        << ledger.problems()[0].message;
    EXPECT_TRUE(fs::exists(root_.path() / "versions.json.damaged"));
    ASSERT_TRUE(ledger.begin(file_, hash("two"), version("one"))) << "it works all the same";
    EXPECT_TRUE(found());
  }
}

TEST_F(VersionLedgerTest, TrialsThatLeadElsewhereAreLeftOut) {
  write(root_.path() / "elsewhere.so", "elsewhere");
  write(root_.path() / "versions.json",
        R"({"trials":[3,{"library":")" + file_.native() +
            R"(","proven":{"hash":"../elsewhere"},"on_trial":"x"}]})");
  EXPECT_TRUE(ledger().problems().empty());
  EXPECT_TRUE(ledger().facts().trials.empty());
}

TEST_F(VersionLedgerTest, PartsOfAFileThatAreNotOursAreLeftOut) {
  write(root_.path() / "versions.json",
        R"({"contents":[1,{"sha256":"02","rule":"L4","host":"1.0.0","crashes":"x"}],"classes":[2,)"
        R"({"class":"Room","sha256":"01","quarantined":true,"since_ms":"x","crashes_ms":[7,"x"]}],)"
        R"("trials":[]})");
  EXPECT_TRUE(ledger().problems().empty());
  ASSERT_EQ(ledger().facts().contents.size(), 1U);
  EXPECT_EQ(ledger().facts().contents[0].rule, "L4");
  EXPECT_EQ(ledger().facts().contents[0].crashes, 0U);
  ASSERT_EQ(ledger().facts().classes.size(), 1U);
  EXPECT_TRUE(ledger().is_quarantined("Room", "01"));
  EXPECT_EQ(ledger().facts().classes[0].since_ms, 0);
  EXPECT_EQ(ledger().facts().classes[0].crashes_ms, std::vector<std::int64_t>{7});
}

TEST_F(VersionLedgerTest, ADirectoryOfOthersIsNotUsed) {
  fs::create_directory(root_.path() / "real");
  fs::create_directory_symlink(root_.path() / "real", directory_);
  ASSERT_EQ(ledger().problems().size(), 1U);
  EXPECT_EQ(ledger().problems()[0].code, Errc::kForbidden);
  EXPECT_FALSE(ledger().begin(file_, hash("two"), version("one")));
  EXPECT_TRUE(fs::is_empty(root_.path() / "real"));
}

TEST_F(VersionLedgerTest, TheDirectoryIsPrivate) {
  fs::create_directory(directory_);
  fs::permissions(directory_, fs::perms{0777});
  (void)open();
  EXPECT_EQ(fs::status(directory_).permissions(), fs::perms{0700});
}

// ---- the quarantine -----------------------------------------------------------------------------

TEST_F(VersionLedgerTest, AClassInQuarantineIsKeptAndReleasedUnderEitherName) {
  diagnosis::CrashRecord crash;
  crash.reason = diagnosis::kHung;
  crash.call = "init";
  crash.library = "/plugins/a.so";
  crash.agent_class = "ChatRoom";
  crash.sha256 = hash("two");
  {
    VersionLedger ledger = open();
    ASSERT_TRUE(ledger.begin(file_, hash("two"), version("one")));
    EXPECT_TRUE(ledger.crashed(crash).is_quarantined);
    EXPECT_FALSE(ledger.crashed(crash).is_quarantined) << "it is told once";
  }
  VersionLedger ledger = open();
  EXPECT_TRUE(ledger.is_quarantined("ChatRoom", hash("two")));
  EXPECT_EQ(ledger.quarantined().at(0).library, "/plugins/a.so");
  EXPECT_EQ(ledger.refusal(root_.path() / "b.so", hash("two"))->rule, "R1");
  EXPECT_EQ(ledger.release("lobby", "a test").error().code, Errc::kNotFound);
  EXPECT_EQ(ledger.release("chat-room", "a test").value().size(), 1U);
  EXPECT_FALSE(ledger.is_quarantined("ChatRoom", hash("two")));
  EXPECT_FALSE(ledger.refusal(file_, hash("two"))) << "it may be tried again, on trial";
  EXPECT_TRUE(open().quarantined().empty());
  EXPECT_EQ(open().facts().classes.at(0).released_by, "a test");
}

TEST_F(VersionLedgerTest, TheCrashesOfEarlierProcessesCount) {
  diagnosis::CrashRecord crash;
  crash.reason = "SIGSEGV";
  crash.call = "message";
  crash.agent_class = "Lobby";
  crash.sha256 = "03";
  for (crash.time_ms = 1000; crash.time_ms < 1003; ++crash.time_ms) {
    VersionLedger ledger = open();
    EXPECT_FALSE(ledger.crashed(crash).is_quarantined);
  }
  VersionLedger ledger = open();
  EXPECT_TRUE(ledger.crashed(crash).is_quarantined);
  EXPECT_EQ(open().quarantined().at(0).since_ms, 1003);
}

}  // namespace
}  // namespace hearth::plugins
