#include "storage/directory.hpp"

#include "base/error.hpp"
#include "support/storage_error_of.hpp"
#include "support/temp_directory.hpp"
#include "support/unprivileged.hpp"

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <string>
#include <thread>
#include <vector>

namespace hearth::storage {
namespace {

class DirectoryTest : public ::testing::Test {
 protected:
  const testing::TempDirectory temp_;
  const std::filesystem::path path_ = temp_.path() / "host.db";
};

class OpenDirectoryTest : public DirectoryTest {
 protected:
  Directory directory_{path_};
};

std::vector<std::string> names(const std::vector<DirectoryEntry>& entries) {
  std::vector<std::string> names;
  for (const DirectoryEntry& entry : entries) names.push_back(entry.key.name);
  return names;
}

TEST_F(DirectoryTest, LeavesAnEmptyWalForTheNextStart) {
  {
    Directory directory(path_, "unix-excl");
    directory.record({"A", "x"}, 100);
    EXPECT_FALSE(std::filesystem::exists(path_.native() + "-shm"));
    directory.leave_wal();
  }
  EXPECT_EQ(std::filesystem::file_size(path_.native() + "-wal"), 0U);
  EXPECT_TRUE(Directory(path_).contains({"A", "x"}));
}

TEST_F(OpenDirectoryTest, ListsWhatIsBelowAnAgentDirectlyOrAtWhateverDepth) {
  const AgentKey inbox{"Inbox", "u"};
  const AgentKey chat = inbox.child("Chat", "a");
  for (const AgentKey& key :
       {inbox, AgentKey{"Inbox", "u2"}, chat, inbox.child("Chat", "b"), inbox.child("Bot", "a"),
        chat.child("Draft", "x"), AgentKey{"Inbox", "u2"}.child("Chat", "c")})
    directory_.record(key, 7);
  const auto all = [&](const AgentKey& above, bool direct, const AgentKey& after = {}) {
    std::string found;
    for (const DirectoryEntry& each : directory_.list_below(above, direct, after, 10))
      found += each.key.agent_class + " " + each.key.name + ", ";
    return found;
  };
  EXPECT_EQ(all(inbox, true), "Bot Inbox/u/a, Chat Inbox/u/a, Chat Inbox/u/b, ");
  EXPECT_EQ(all(inbox, true, inbox.child("Bot", "a")), "Chat Inbox/u/a, Chat Inbox/u/b, ");
  EXPECT_EQ(all(inbox, false),
            "Draft Inbox/u/Chat/a/x, Bot Inbox/u/a, Chat Inbox/u/a, Chat Inbox/u/b, ");
  EXPECT_EQ(all(chat, true), "Draft Inbox/u/Chat/a/x, ");
  EXPECT_EQ(all({"Inbox", "u3"}, false), "");
  EXPECT_EQ(directory_.list_below(inbox, false, {}, 2).size(), 2U);
}

TEST_F(OpenDirectoryTest, RecordsAnAgentOnceAndKeepsItsFirstTime) {
  EXPECT_FALSE(directory_.contains({"A", "x"}));
  EXPECT_TRUE(directory_.record({"A", "x"}, 100));
  EXPECT_FALSE(directory_.record({"A", "x"}, 200));
  EXPECT_TRUE(directory_.contains({"A", "x"}));
  const auto entries = directory_.list("A", "", 10);
  ASSERT_EQ(entries.size(), 1U);
  EXPECT_EQ(entries[0].key, (AgentKey{"A", "x"}));
  EXPECT_EQ(entries[0].created_at_ms, 100);
}

TEST_F(OpenDirectoryTest, SaysWhenAnAgentWasFirstRecorded) {
  EXPECT_FALSE(directory_.created_at_ms({"A", "x"}));
  directory_.record({"A", "x"}, 100);
  EXPECT_EQ(directory_.created_at_ms({"A", "x"}), 100);
  EXPECT_FALSE(directory_.created_at_ms({"A", "y"}));
  EXPECT_FALSE(directory_.created_at_ms({"B", "x"}));
}

TEST_F(OpenDirectoryTest, ForgetsWhatItKnows) {
  directory_.record({"A", "x"}, 1);
  EXPECT_TRUE(directory_.forget({"A", "x"}));
  EXPECT_FALSE(directory_.forget({"A", "x"}));
  EXPECT_FALSE(directory_.contains({"A", "x"}));
}

TEST_F(DirectoryTest, P2_SurvivesReopening) {
  Directory(path_).record({"A", "x"}, 1);
  EXPECT_TRUE(Directory(path_).contains({"A", "x"}));
}

TEST_F(DirectoryTest, AFileThatCannotBeWrittenIsRefusedAtOnce) {
  Directory(path_).record({"A", "x"}, 1);
  std::filesystem::permissions(temp_.path(), std::filesystem::perms{0777});
  std::filesystem::permissions(path_, std::filesystem::perms{0444});
  const testing::Unprivileged nobody;
  const std::string why = testing::storage_error_of([&] { Directory{path_}; });
  EXPECT_NE(why.find("host.db: it cannot be written"), std::string::npos) << why;
}

TEST_F(OpenDirectoryTest, P3_PagesInByteOrderWithoutGaps) {
  using std::string_literals::operator""s;
  for (const std::string& name : {"b"s, "a"s, "B"s, "a\0b"s, "\xC3\xA4"s, "aa"s})
    directory_.record({"A", name}, 1);
  directory_.record({"Other", "a"}, 1);
  std::vector<std::string> paged;
  for (std::string after;;) {
    const auto page = names(directory_.list("A", after, 2));
    if (page.empty()) break;
    EXPECT_LE(page.size(), 2U);
    paged.insert(paged.end(), page.begin(), page.end());
    after = page.back();
  }
  EXPECT_EQ(paged, (std::vector{"B"s, "a"s, "a\0b"s, "aa"s, "b"s, "\xC3\xA4"s}));
}

TEST_F(OpenDirectoryTest, CountsAndNamesClasses) {
  EXPECT_EQ(directory_.count(), 0);
  EXPECT_TRUE(directory_.classes().empty());
  for (const char* name : {"x", "y"}) directory_.record({"B", name}, 1);
  directory_.record({"A", "x"}, 1);
  EXPECT_EQ(directory_.count(), 3);
  EXPECT_EQ(directory_.count("B"), 2);
  EXPECT_EQ(directory_.count("C"), 0);
  EXPECT_EQ(directory_.classes(), (std::vector<std::string>{"A", "B"}));
}

TEST_F(DirectoryTest, ClassesThatWereServedAreKnownWithoutAnyAgent) {
  for (const char* segment : {"b", "a", "b"}) Directory(path_).record_served(segment);
  Directory directory(path_);
  EXPECT_EQ(directory.served_classes(), (std::vector<std::string>{"a", "b"}));
  EXPECT_TRUE(directory.classes().empty());
}

TEST_F(DirectoryTest, P1_ThreadsOpenAndWriteAtOnce) {
  constexpr int kThreads = 4;
  constexpr int kAgents = 50;
  std::atomic<int> failures = 0;
  {
    std::vector<std::jthread> threads;
    for (int thread = 0; thread < kThreads; ++thread) {
      threads.emplace_back([&, thread] {
        try {
          Directory directory(path_);  // all of them try to make the file and its tables
          for (int agent = 0; agent < kAgents; ++agent)
            directory.record({"A", std::to_string(thread) + "-" + std::to_string(agent)}, 1);
        } catch (const StorageError& error) {
          ADD_FAILURE() << error.what();
          ++failures;
        }
      });
    }
  }
  EXPECT_EQ(failures, 0);
  EXPECT_EQ(Directory(path_).count(), kThreads * kAgents);
}

TEST_F(DirectoryTest, ACondemnedAgentIsKnownAsSuchAfterReopeningUntilItIsForgotten) {
  {
    Directory directory(path_);
    EXPECT_TRUE(directory.condemned().empty());
    directory.condemn(std::array{AgentKey{"B", "x"}});
    directory.condemn(std::array{AgentKey{"A", "y"}});
    directory.condemn(std::array{AgentKey{"A", "y"}});  // once more changes nothing
  }
  Directory directory(path_);
  EXPECT_EQ(directory.condemned(), (std::vector<AgentKey>{{"A", "y"}, {"B", "x"}}));
  directory.forget_condemned({"A", "y"});
  EXPECT_EQ(directory.condemned(), (std::vector<AgentKey>{{"B", "x"}}));
}

TEST_F(OpenDirectoryTest, ForgettingACondemnedAgentTakesItsEntryAndItsWakeAndNobodyElses) {
  for (const char* name : {"x", "y"}) {
    directory_.record({"A", name}, 1);
    directory_.set_wake({.key = {"A", name}, .at_ms = 5, .working = true});
    directory_.condemn(std::array{AgentKey{"A", name}});
  }
  directory_.forget_condemned({"A", "x"});
  directory_.forget_condemned({"A", "x"});  // one that was forgotten is no error
  EXPECT_FALSE(directory_.contains({"A", "x"}));
  EXPECT_TRUE(directory_.contains({"A", "y"}));
  ASSERT_EQ(directory_.wakes().size(), 1U);
  EXPECT_EQ(directory_.wakes()[0].key, (AgentKey{"A", "y"}));
  EXPECT_EQ(directory_.condemned(), (std::vector<AgentKey>{{"A", "y"}}));
}

TEST_F(OpenDirectoryTest, WhatACondemnedAgentLeavesIsForgottenTogetherOrNotAtAll) {
  directory_.record({"A", "x"}, 1);
  directory_.set_wake({.key = {"A", "x"}, .at_ms = 5, .working = true});
  directory_.condemn(std::array{AgentKey{"A", "x"}});
  Connection(path_, {}).execute(
      "CREATE TRIGGER no BEFORE DELETE ON condemned BEGIN SELECT raise(ABORT, 'no'); END");
  EXPECT_THROW(directory_.forget_condemned({"A", "x"}), StorageError);
  EXPECT_TRUE(directory_.contains({"A", "x"}));
  EXPECT_EQ(directory_.wakes().size(), 1U);
  Connection(path_, {}).execute("DROP TRIGGER no");
  directory_.forget_condemned({"A", "x"});  // the failure left no transaction open
  EXPECT_FALSE(directory_.contains({"A", "x"}));
}

TEST_F(OpenDirectoryTest, SaysWhoseFilesMustBeThere) {
  const AgentKey key{"A", "x"};
  directory_.note_kept(key, Kept::kOnDevice);
  EXPECT_FALSE(directory_.contains(key)) << "it makes no entry";
  directory_.record(key, 1);
  EXPECT_EQ(directory_.kept(key), Kept::kUnknown) << "nothing was committed yet";
  directory_.note_kept(key, Kept::kInThisBoot);
  EXPECT_EQ(directory_.kept(key), Kept::kInThisBoot);
  // As another boot, since when the power may have been lost, would find it.
  Connection(path_, {}).execute("UPDATE agents SET kept = kept + 4");
  EXPECT_EQ(directory_.kept(key), Kept::kUnknown);
  directory_.note_kept(key, Kept::kInThisBoot);
  directory_.note_kept(key, Kept::kOnDevice);
  directory_.note_kept(key, Kept::kInThisBoot);
  EXPECT_EQ(Directory(path_).kept(key), Kept::kOnDevice) << "it stays";
  directory_.forget_condemned(key);
  directory_.record(key, 1);
  EXPECT_EQ(directory_.kept(key), Kept::kUnknown) << "another agent of the name";
}

TEST_F(DirectoryTest, RefusesAFileOfAnotherFormat) {
  {
    Directory directory(path_);
  }
  Connection(path_, {}).execute("PRAGMA user_version=9");
  EXPECT_THROW(Directory{path_}, StorageError);
}

TEST_F(DirectoryTest, RefusesAFileThatIsNoDatabase) {
  std::filesystem::create_directory(path_);
  EXPECT_THROW(Directory{path_}, StorageError);
}

TEST_F(OpenDirectoryTest, AgentsWithOperationsAreListedInOrder) {
  directory_.set_wake({.key = {"A", "2"}, .at_ms = {}, .unknown_operations = 0});
  directory_.set_wake({.key = {"A", "1"}, .at_ms = 5, .unknown_operations = 3});
  directory_.set_wake({.key = {"A", "3"}, .at_ms = 5});
  directory_.set_wake({.key = {"B", "1"}, .at_ms = {}, .unknown_operations = 1});
  using Keys = std::vector<AgentKey>;
  EXPECT_EQ(directory_.with_operations("", {}, 10), (Keys{{"A", "1"}, {"A", "2"}, {"B", "1"}}));
  EXPECT_EQ(directory_.with_operations("A", {}, 1), (Keys{{"A", "1"}}));
  EXPECT_EQ(directory_.with_operations("", {"A", "1"}, 10), (Keys{{"A", "2"}, {"B", "1"}}));
  EXPECT_EQ(directory_.with_operations("A", {"A", "2"}, 10), Keys{});
  directory_.set_wake({.key = {"A", "1"}, .at_ms = 5});
  EXPECT_EQ(directory_.with_operations("", {}, 10), (Keys{{"A", "2"}, {"B", "1"}}));
  for (const WakeEntry& each : directory_.wakes()) {
    if (each.key.agent_class == "B") EXPECT_EQ(each.unknown_operations, 1);
  }
}

TEST_F(OpenDirectoryTest, WhenTheClockWasSetBackLaterWakesAreDueWithTheNewTime) {
  EXPECT_EQ(directory_.seen_ms(), std::nullopt);
  directory_.set_wake({.key = {"A", "1"}, .at_ms = 5});
  directory_.set_wake({.key = {"A", "2"}, .at_ms = 50});
  directory_.set_wake({.key = {"A", "3"}, .at_ms = {}, .working = true});
  directory_.note_time(60);
  EXPECT_EQ(directory_.seen_ms(), 60);
  directory_.hurry_wakes(10);
  EXPECT_EQ(Directory(path_).seen_ms(), 10);
  std::vector<std::optional<std::int64_t>> moments;
  for (const WakeEntry& each : directory_.wakes()) moments.push_back(each.at_ms);
  EXPECT_EQ(moments, (std::vector<std::optional<std::int64_t>>{std::nullopt, 5, 10}));
}

}  // namespace
}  // namespace hearth::storage
