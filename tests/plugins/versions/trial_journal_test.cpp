#include "plugins/versions/trial_journal.hpp"

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
using Standing = TrialJournal::Standing;

class TrialJournalTest : public ::testing::Test {
 protected:
  TrialJournalTest() { write(file_, "what the file holds is not looked at"); }

  static void write(const fs::path& path, const std::string& text) {
    const auto written = write_file_atomically(path, text, fs::perms{0500});
    EXPECT_TRUE(written) << written.error().message;
  }
  // Content as a server would have loaded it.
  TrialJournal::Version version(const std::string& content) {
    const fs::path copy = root_.path() / ("copy of " + content);
    write(copy, content);
    return {.sha256 = hash(content), .copy = copy};
  }
  static std::string hash(const std::string& content) { return sha256_hex(content); }

  TrialJournal open() const {
    auto journal = TrialJournal::open(directory_);
    EXPECT_TRUE(journal) << journal.error().message;
    return *std::move(journal);
  }
  // What a process would find that starts now.
  [[nodiscard]] std::optional<Trial> found() const {
    const TrialJournal journal = open();
    const Trial* const trial = journal.find(file_);
    return trial == nullptr ? std::nullopt : std::optional(*trial);
  }
  [[nodiscard]] std::string bytes_before() const {
    const auto candidate = open().proven(file_, clock_, ::geteuid());
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
    return {.sha256 = hash(content), .reason = "it is bad", .may_retry = may_retry};
  }

  SystemClock clock_;
  hearth::testing::TempDirectory root_;
  const fs::path directory_ = root_.path() / "trials";
  const fs::path file_ = root_.path() / "a.so";
};

TEST_F(TrialJournalTest, P1_ATrialIsOnDiskBeforeAnythingRuns) {
  TrialJournal journal = open();
  ASSERT_TRUE(journal.begin(file_, hash("two"), version("one")));
  const auto trial = found();
  ASSERT_TRUE(trial);
  EXPECT_EQ(trial->proven, hash("one"));
  EXPECT_EQ(trial->on_trial, hash("two"));
  EXPECT_FALSE(trial->not_served);
  EXPECT_EQ(bytes_before(), "one");
}

TEST_F(TrialJournalTest, TheBytesOutliveTheCopyThatWasLoaded) {
  TrialJournal journal = open();
  const auto one = version("one");
  ASSERT_TRUE(journal.begin(file_, hash("two"), one));
  fs::remove(one.copy);
  EXPECT_EQ(bytes_before(), "one");
}

TEST_F(TrialJournalTest, WhatIsProvenNeedsNoWayBack) {
  TrialJournal journal = open();
  const auto two = version("two");
  ASSERT_TRUE(journal.begin(file_, two.sha256, version("one")));
  ASSERT_TRUE(journal.prove(file_, version("one"))) << "not the one on trial";
  EXPECT_TRUE(found());
  ASSERT_TRUE(journal.prove(file_, two));
  EXPECT_FALSE(found());
  EXPECT_EQ(kept(), std::set<std::string>{"trials.json"}) << "P4: the bytes go";
}

TEST_F(TrialJournalTest, WhoEndsTheProcessOnTrialIsCondemned) {
  {
    TrialJournal journal = open();
    ASSERT_TRUE(journal.begin(file_, hash("two"), version("one")));
  }
  TrialJournal journal = open();
  EXPECT_EQ(journal.blame(hash("one"), "it crashed").value(), false) << "it is proven";
  EXPECT_EQ(journal.blame(hash("two"), "it crashed").value(), true);
  EXPECT_EQ(journal.meet(file_, hash("two")).value(), Standing::kCondemned);
  // However often it starts.
  const auto trial = found();
  ASSERT_TRUE(trial && trial->not_served);
  EXPECT_EQ(trial->not_served->reason, "it crashed");
  EXPECT_EQ(open().meet(file_, hash("two")).value(), Standing::kCondemned);
  EXPECT_EQ(bytes_before(), "one");
}

TEST_F(TrialJournalTest, WithoutACrashItIsStillOnTrialAfterARestart) {
  TrialJournal journal = open();
  ASSERT_TRUE(journal.begin(file_, hash("two"), version("one")));
  EXPECT_EQ(open().meet(file_, hash("two")).value(), Standing::kOnTrial);
  EXPECT_TRUE(found());
}

TEST_F(TrialJournalTest, WhatSomebodyPutThereMeanwhileIsOnTrialToo) {
  TrialJournal journal = open();
  ASSERT_TRUE(journal.begin(file_, hash("two"), version("one")));
  ASSERT_TRUE(journal.blame(hash("two"), "it crashed"));
  EXPECT_EQ(journal.meet(file_, hash("three")).value(), Standing::kOnTrial);
  EXPECT_EQ(found()->on_trial, hash("three"));
  EXPECT_EQ(bytes_before(), "one");
  EXPECT_EQ(journal.meet(file_, hash("one")).value(), Standing::kUnknown) << "the proven one";
  EXPECT_FALSE(found());
  EXPECT_EQ(kept(), std::set<std::string>{"trials.json"});
}

TEST_F(TrialJournalTest, TheWayBackLeadsBehindAVersionThatWasNotProven) {
  TrialJournal journal = open();
  const auto two = version("two");
  ASSERT_TRUE(journal.begin(file_, two.sha256, version("one")));
  ASSERT_TRUE(journal.begin(file_, hash("three"), two));
  EXPECT_EQ(bytes_before(), "one");
  // The third is taken back to the second, which is as new as it was.
  ASSERT_TRUE(journal.condemn(file_, two.sha256, refused("three", false)));
  EXPECT_EQ(found()->on_trial, two.sha256);
  EXPECT_EQ(journal.blame(two.sha256, "it crashed").value(), true);
  EXPECT_EQ(journal.meet(file_, hash("three")).value(), Standing::kCondemned);
  EXPECT_EQ(bytes_before(), "one");
  EXPECT_EQ(found()->not_served->reason, "it is bad") << "what the file holds is something else";
}

TEST_F(TrialJournalTest, WhatIsTakenBackIsNotServedAfterARestart) {
  TrialJournal journal = open();
  ASSERT_TRUE(journal.begin(file_, hash("two"), version("one")));
  ASSERT_TRUE(journal.condemn(file_, hash("one"), refused("two", false)));
  EXPECT_EQ(found()->on_trial, "");
  EXPECT_EQ(open().meet(file_, hash("two")).value(), Standing::kCondemned);
  EXPECT_EQ(bytes_before(), "one");
}

TEST_F(TrialJournalTest, WhatWasRefusedIsTriedAgainWithAWayBack) {
  TrialJournal journal = open();
  ASSERT_TRUE(journal.begin(file_, hash("two"), version("one")));
  ASSERT_TRUE(journal.condemn(file_, hash("one"), refused("two", true)));
  EXPECT_EQ(journal.meet(file_, hash("two")).value(), Standing::kOnTrial);
  EXPECT_EQ(found()->on_trial, hash("two")) << "it may end this process";
  EXPECT_EQ(bytes_before(), "one");
}

TEST_F(TrialJournalTest, APersonMayAllowWhatIsCondemned) {
  TrialJournal journal = open();
  ASSERT_TRUE(journal.begin(file_, hash("two"), version("one")));
  ASSERT_TRUE(journal.blame(hash("two"), "it crashed"));
  ASSERT_TRUE(journal.allow(hash("one")));
  EXPECT_EQ(open().meet(file_, hash("two")).value(), Standing::kCondemned);
  ASSERT_TRUE(journal.allow(hash("two")));
  EXPECT_EQ(open().meet(file_, hash("two")).value(), Standing::kOnTrial);
}

TEST_F(TrialJournalTest, WhatWasCondemnedStaysSoWhateverComesAfterIt) {
  TrialJournal journal = open();
  ASSERT_TRUE(journal.begin(file_, hash("two"), version("one")));
  ASSERT_TRUE(journal.blame(hash("two"), "it crashed").value());
  ASSERT_TRUE(journal.begin(file_, hash("three"), version("one")));
  ASSERT_TRUE(journal.blame(hash("three"), "so did this").value());
  const TrialJournal later = open();
  for (const std::string content : {"two", "three"})
    EXPECT_NE(later.find_condemned(file_, hash(content)), nullptr) << content;
  EXPECT_EQ(later.find_condemned(file_, hash("two"))->reason, "it crashed");
  EXPECT_EQ(open().meet(file_, hash("two")).value(), Standing::kCondemned);
  ASSERT_TRUE(journal.allow(hash("two")));
  EXPECT_EQ(open().find_condemned(file_, hash("two")), nullptr);
  EXPECT_NE(open().find_condemned(file_, hash("three")), nullptr);
}

TEST_F(TrialJournalTest, TheLastThatWereCondemnedAreRemembered) {
  TrialJournal journal = open();
  for (std::size_t i = 0; i <= TrialJournal::kMaxCondemned; ++i) {
    ASSERT_TRUE(journal.begin(file_, hash(std::to_string(i)), version("one")));
    ASSERT_TRUE(journal.condemn(file_, hash("one"), refused(std::to_string(i), false)));
  }
  EXPECT_EQ(found()->condemned.size(), TrialJournal::kMaxCondemned);
  EXPECT_EQ(journal.find_condemned(file_, hash("0")), nullptr);
}

TEST_F(TrialJournalTest, AVersionThatGoesOnBesideARefusedFileIsKeptOnceItIsProven) {
  TrialJournal journal = open();
  const auto two = version("two");
  ASSERT_TRUE(journal.begin(file_, two.sha256, version("one")));
  ASSERT_TRUE(journal.begin(file_, hash("three"), two));
  ASSERT_TRUE(journal.condemn(file_, two.sha256, refused("three", true)));
  ASSERT_TRUE(journal.prove(file_, two));
  EXPECT_EQ(bytes_before(), "two");
  EXPECT_EQ(found()->on_trial, "");
  EXPECT_EQ(kept(), (std::set<std::string>{"trials.json", two.sha256 + ".so"}));
}

TEST_F(TrialJournalTest, AFileThatHoldsWhatRunsIsSettled) {
  TrialJournal journal = open();
  const auto two = version("two");
  ASSERT_TRUE(journal.begin(file_, two.sha256, version("one")));
  ASSERT_TRUE(journal.settle(file_));
  EXPECT_EQ(found()->on_trial, two.sha256) << "that is no proof";
  ASSERT_TRUE(journal.condemn(file_, hash("one"), refused("two", true)));
  ASSERT_TRUE(journal.settle(file_));
  EXPECT_FALSE(found());
}

TEST_F(TrialJournalTest, TheProvenContentIsNeverOnTrial) {
  TrialJournal journal = open();
  const auto two = version("two");
  ASSERT_TRUE(journal.begin(file_, two.sha256, version("one")));
  ASSERT_TRUE(journal.begin(file_, hash("one"), two));
  EXPECT_FALSE(found());
}

TEST_F(TrialJournalTest, AFileThatIsGoneFindsWhatItWasWhenItIsBack) {
  TrialJournal journal = open();
  ASSERT_TRUE(journal.begin(file_, hash("two"), version("one")));
  ASSERT_TRUE(journal.condemn(file_, hash("one"), refused("two", false)));
  fs::remove(file_);
  ASSERT_TRUE(journal.keep(file_, version("one"), "it is gone"));
  EXPECT_EQ(open().meet(file_, hash("two")).value(), Standing::kCondemned);
  EXPECT_EQ(bytes_before(), "one");
}

TEST_F(TrialJournalTest, WhatComesInThePlaceOfAFileThatWasGoneIsOnTrial) {
  TrialJournal journal = open();
  ASSERT_TRUE(journal.keep(file_, version("one"), "it is gone"));
  EXPECT_EQ(bytes_before(), "one");
  EXPECT_EQ(open().meet(file_, hash("two")).value(), Standing::kOnTrial);
  EXPECT_EQ(open().meet(file_, hash("one")).value(), Standing::kUnknown) << "it is back";
  EXPECT_FALSE(found());
}

TEST_F(TrialJournalTest, AVersionOnTrialWhoseFileIsGoneIsBlamedAllTheSame) {
  TrialJournal journal = open();
  ASSERT_TRUE(journal.begin(file_, hash("two"), version("one")));
  fs::remove(file_);
  EXPECT_TRUE(open().blame(hash("two"), "it crashed").value());
  EXPECT_EQ(open().meet(file_, hash("two")).value(), Standing::kCondemned);
}

TEST_F(TrialJournalTest, OfFilesThatAreGoneTheLastAreKept) {
  TrialJournal journal = open();
  const auto one = version("one");
  for (std::size_t i = 0; i <= TrialJournal::kMaxGone; ++i) {
    const fs::path gone = root_.path() / (std::to_string(i) + ".so");
    ASSERT_TRUE(journal.keep(gone, one, "it is gone"));
  }
  EXPECT_EQ(journal.all().size(), TrialJournal::kMaxGone);
  EXPECT_EQ(journal.find(root_.path() / "0.so"), nullptr) << "the first";
}

TEST_F(TrialJournalTest, HoweverTheDirectoryIsSpelled) {
  TrialJournal journal = open();
  ASSERT_TRUE(journal.begin(file_, hash("two"), version("one")));
  fs::create_directory(root_.path() / "b");
  fs::create_directory_symlink(root_.path(), root_.path() / "c");
  for (const fs::path& other : {root_.path() / "." / "a.so", root_.path() / "b" / ".." / "a.so",
                                root_.path() / "c" / "a.so"}) {
    ASSERT_NE(journal.find(other), nullptr) << other;
    EXPECT_EQ(journal.proven(other, clock_, ::geteuid()).value().file, other);
  }
}

TEST_F(TrialJournalTest, P3_DamagedBytesAreNotGiven) {
  TrialJournal journal = open();
  ASSERT_TRUE(journal.begin(file_, hash("two"), version("one")));
  write(directory_ / (hash("one") + ".so"), "one!");
  EXPECT_NE(bytes_before().find("is damaged"), std::string::npos);
  fs::remove(directory_ / (hash("one") + ".so"));
  EXPECT_FALSE(found()) << "there is nothing to go back to";
}

TEST_F(TrialJournalTest, LibrariesDoNotDisturbEachOther) {
  TrialJournal journal = open();
  const fs::path other = root_.path() / "b.so";
  write(other, "another");
  ASSERT_TRUE(journal.begin(file_, hash("two"), version("one")));
  ASSERT_TRUE(journal.begin(other, hash("two"), version("one"))) << "the same content";
  ASSERT_TRUE(journal.condemn(file_, hash("one"), refused("two", true)));
  ASSERT_TRUE(journal.settle(file_));
  EXPECT_EQ(open().all().size(), 1U);
  EXPECT_TRUE(open().proven(other, clock_, ::geteuid())) << "its bytes are the other's as well";
  EXPECT_EQ(journal.blame(hash("two"), "it crashed").value(), true);
}

TEST_F(TrialJournalTest, P2_WhatCannotBeWrittenHasNotHappened) {
  TrialJournal journal = open();
  ASSERT_TRUE(journal.begin(file_, hash("two"), version("one")));
  fs::remove_all(directory_);
  EXPECT_FALSE(journal.begin(file_, hash("three"), version("one")));
  ASSERT_NE(journal.find(file_), nullptr);
  EXPECT_EQ(journal.find(file_)->on_trial, hash("two"));
}

TEST_F(TrialJournalTest, P2_ABlameThatCannotBeWrittenHoldsForThisProcess) {
  TrialJournal journal = open();
  ASSERT_TRUE(journal.begin(file_, hash("two"), version("one")));
  fs::rename(directory_, directory_.native() + ".away");
  EXPECT_FALSE(journal.blame(hash("two"), "it ended the server"));
  fs::rename(directory_.native() + ".away", directory_);
  EXPECT_NE(journal.find_condemned(file_, hash("two")), nullptr);
  const auto standing = journal.meet(file_, hash("two"));
  ASSERT_TRUE(standing);
  EXPECT_EQ(*standing, TrialJournal::Standing::kCondemned);
  ASSERT_TRUE(journal.begin(file_, hash("three"), version("one")));
  EXPECT_NE(open().find_condemned(file_, hash("two")), nullptr) << "written with what comes next";
}

TEST_F(TrialJournalTest, NamesThatCannotBeNotedAreRefused) {
  TrialJournal journal = open();
  const auto begun = journal.begin(root_.path() / "\xff.so", hash("two"), version("one"));
  ASSERT_FALSE(begun);
  EXPECT_EQ(begun.error().code, Errc::kInvalidArgument);
}

TEST_F(TrialJournalTest, AListThatIsNotOursIsAnErrorAndOneThatLeadsAwayIsLeftOut) {
  fs::create_directory(directory_);
  for (const std::string text : {"", "[]", "{}", R"({"trials":3})", "{\"trials\":"}) {
    write(directory_ / "trials.json", text);
    const auto journal = TrialJournal::open(directory_);
    ASSERT_FALSE(journal) << text;
    EXPECT_EQ(journal.error().code, Errc::kInvalidArgument) << text;
  }
  write(root_.path() / "elsewhere.so", "elsewhere");
  write(directory_ / "trials.json", R"({"trials":[3,{"file":")" + file_.native() +
                                        R"(","proven":"../elsewhere","on_trial":"x"}]})");
  EXPECT_TRUE(open().all().empty());
}

TEST_F(TrialJournalTest, ADirectoryOfOthersIsNotUsed) {
  fs::create_directory(root_.path() / "real");
  fs::create_directory_symlink(root_.path() / "real", directory_);
  const auto journal = TrialJournal::open(directory_);
  ASSERT_FALSE(journal);
  EXPECT_EQ(journal.error().code, Errc::kForbidden);
}

TEST_F(TrialJournalTest, TheDirectoryIsPrivate) {
  fs::create_directory(directory_);
  fs::permissions(directory_, fs::perms{0777});
  (void)open();
  EXPECT_EQ(fs::status(directory_).permissions(), fs::perms{0700});
}

}  // namespace
}  // namespace hearth::plugins
