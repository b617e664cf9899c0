#include "storage/sync_service.hpp"

#include "support/fake_sync_calls.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <future>
#include <string>
#include <vector>

namespace hearth::storage {
namespace {

using Calls = std::vector<std::string>;

class SyncServiceTest : public ::testing::Test {
 protected:
  std::function<void(bool)> note(const std::string& who) {
    return [this, who](bool durable) { answers_.push_back(who + (durable ? " yes" : " no")); };
  }
  static std::string wal(int number) { return "/d/agents/C/0a/" + std::to_string(number) + "-wal"; }

  hearth::testing::FakeSyncCalls calls_;
  SyncService service_{calls_, "/d", SyncService::Thread::kCallers};
  Calls answers_;
};

TEST_F(SyncServiceTest, P1_YesComesAfterTheBytesAndTheNames) {
  const auto target = service_.open("/d/agents/C/0a/x-wal");
  service_.submit({target}, note("a"));
  EXPECT_TRUE(calls_.take_calls().empty());
  EXPECT_FALSE(target->listed());
  EXPECT_EQ(service_.run_pending(), 1U);
  EXPECT_EQ(calls_.take_calls(), (Calls{"data /d/agents/C/0a/x-wal", "names /d/agents/C/0a",
                                        "names /d/agents/C", "names /d/agents", "names /d"}));
  EXPECT_EQ(answers_, Calls{"a yes"});
  EXPECT_TRUE(target->listed());
}

TEST_F(SyncServiceTest, NamesAreSyncedOnceALife) {
  const auto target = service_.open("/d/agents/C/0a/x-wal");
  EXPECT_TRUE(service_.wait({target}));
  (void)calls_.take_calls();
  EXPECT_TRUE(service_.wait({target}));
  EXPECT_EQ(calls_.take_calls(), Calls{"data /d/agents/C/0a/x-wal"});
  // The next life made a new WAL there; the directories above are where they were.
  EXPECT_TRUE(service_.wait({service_.open("/d/agents/C/0a/x-wal")}));
  EXPECT_EQ(calls_.take_calls(), (Calls{"data /d/agents/C/0a/x-wal", "names /d/agents/C/0a"}));
  EXPECT_TRUE(service_.wait({service_.open("/d/agents/C/ff/y-wal")}));
  EXPECT_EQ(calls_.take_calls(),
            (Calls{"data /d/agents/C/ff/y-wal", "names /d/agents/C/ff", "names /d/agents/C"}));
}

TEST_F(SyncServiceTest, WhatLiesInTheRootOrElsewhereHasNoDirectoriesAboveIt) {
  EXPECT_TRUE(service_.wait({service_.open("/d/host.db-wal")}));
  EXPECT_EQ(calls_.take_calls(), (Calls{"data /d/host.db-wal", "names /d"}));
  EXPECT_TRUE(service_.wait({service_.open("/elsewhere/x-wal")}));
  EXPECT_EQ(calls_.take_calls(), (Calls{"data /elsewhere/x-wal", "names /elsewhere"}));
  EXPECT_TRUE(service_.wait({service_.open("x-wal")}));
  EXPECT_EQ(calls_.take_calls(), (Calls{"data x-wal", "names "}));
}

TEST_F(SyncServiceTest, P2_ABatchSyncsEachFileOnceAndAnswersInOrder) {
  const auto first = service_.open("/d/1-wal");
  const auto second = service_.open("/d/2-wal");
  service_.submit({first}, note("a"));
  service_.submit({second}, note("b"));
  service_.submit({first, second}, note("c"));
  service_.submit({}, note("d"));
  EXPECT_EQ(service_.run_pending(), 4U);
  EXPECT_EQ(calls_.take_calls().size(), 3U) << "two files, one directory";
  EXPECT_EQ(answers_, (Calls{"a yes", "b yes", "c yes", "d yes"}));
  const SyncService::Counts counts = service_.counts();
  EXPECT_EQ(counts.requests, 4U);
  EXPECT_EQ(counts.batches, 1U);
  EXPECT_EQ(counts.calls, 3U);
  EXPECT_EQ(counts.failures, 0U);
}

TEST_F(SyncServiceTest, P2_ManyFilesAreSyncedByOneCall) {
  calls_.cover(true);
  SyncTargets targets;
  for (std::size_t i = 0; i < SyncService::kEverythingFrom; ++i) {
    targets.push_back(service_.open(wal(static_cast<int>(i))));
  }
  EXPECT_TRUE(service_.wait({targets.begin(), targets.end() - 1}));
  EXPECT_EQ(calls_.take_calls().size(), SyncService::kEverythingFrom - 1 + 4) << "one too few";
  EXPECT_TRUE(service_.wait(targets));
  EXPECT_EQ(calls_.take_calls(), Calls{"everything"});
  EXPECT_TRUE(targets.back()->listed());
}

TEST_F(SyncServiceTest, P2_AFileOnAnotherFileSystemIsSyncedByItself) {
  calls_.cover(true);
  SyncTargets targets;
  for (int i = 0; i < 20; ++i) {
    calls_.cover(i != 7);
    targets.push_back(service_.open(wal(i)));
  }
  EXPECT_TRUE(service_.wait(targets));
  EXPECT_EQ(calls_.take_calls().size(), 24U);
}

TEST_F(SyncServiceTest, P3_AFailedFileFailsItsOwnRequestsForEver) {
  const auto bad = service_.open("/d/bad-wal");
  const auto good = service_.open("/d/good-wal");
  calls_.answer_with([](const std::string& call) { return call == "data /d/bad-wal" ? EIO : 0; });
  service_.submit({bad}, note("a"));
  service_.submit({good}, note("b"));
  service_.submit({good, bad}, note("c"));
  service_.run_pending();
  EXPECT_EQ(answers_, (Calls{"a no", "b yes", "c no"}));
  EXPECT_TRUE(bad->failed());
  EXPECT_FALSE(bad->listed());
  // The system tells an error once; a later success would be a lie.
  calls_.answer_with(nullptr);
  (void)calls_.take_calls();
  EXPECT_FALSE(service_.wait({bad}));
  EXPECT_TRUE(calls_.take_calls().empty());
  EXPECT_EQ(service_.counts().failures, 3U);
  EXPECT_TRUE(service_.wait({service_.open("/d/bad-wal")})) << "a new life";
}

TEST_F(SyncServiceTest, P3_AFailedDirectoryFailsWhatIsBelow) {
  calls_.answer_with([](const std::string& call) { return call == "names /d/agents" ? EIO : 0; });
  EXPECT_FALSE(service_.wait({service_.open("/d/agents/C/0a/x-wal")}));
  calls_.answer_with(nullptr);
  (void)calls_.take_calls();
  EXPECT_TRUE(service_.wait({service_.open("/d/agents/C/0a/x-wal")}));
  EXPECT_EQ(calls_.take_calls().size(), 5U) << "no name counts as synced";
}

TEST_F(SyncServiceTest, P3_AFailureOfTheWholeFileSystemIsLookedIntoFileByFile) {
  calls_.cover(true);
  SyncTargets targets;
  for (int i = 0; i < 10; ++i) targets.push_back(service_.open(wal(i)));
  const auto absent = service_.open(wal(11));
  calls_.answer_with([](const std::string& call) {
    return call == "everything" || call == "data /d/agents/C/0a/3-wal" ? EIO : 0;
  });
  for (std::size_t i = 0; i < targets.size(); ++i) {
    service_.submit({targets[i]}, note(std::to_string(i)));
  }
  service_.run_pending();
  EXPECT_EQ(answers_, (Calls{"0 yes", "1 yes", "2 yes", "3 no", "4 yes", "5 yes", "6 yes", "7 yes",
                             "8 yes", "9 yes"}));
  // The error may be about a file outside of that batch, so this file is synced alone first.
  calls_.answer_with(
      [](const std::string& call) { return call == "data /d/agents/C/0a/11-wal" ? EIO : 0; });
  targets.erase(targets.begin() + 3);
  targets.push_back(absent);
  EXPECT_FALSE(service_.wait(targets));
  EXPECT_TRUE(absent->failed());
  targets.pop_back();
  (void)calls_.take_calls();
  EXPECT_TRUE(service_.wait(targets));
  EXPECT_EQ(calls_.take_calls(), Calls{"everything"}) << "trust is back";
}

TEST_F(SyncServiceTest, P2_WhatComesWhileABatchIsSyncedIsTheNextOne) {
  SyncService service(calls_, "/d");
  const auto target = service.open("/d/x-wal");
  calls_.hold();
  std::promise<bool> first;
  service.submit({target}, [&first](bool durable) { first.set_value(durable); });
  calls_.wait_until_somebody_waits();
  std::vector<std::promise<bool>> rest(100);
  for (auto& each : rest) {
    service.submit({target}, [&each](bool durable) { each.set_value(durable); });
  }
  std::future<bool> answered = first.get_future();
  EXPECT_EQ(answered.wait_for(std::chrono::seconds(0)), std::future_status::timeout);
  calls_.let_go();
  EXPECT_TRUE(answered.get());
  for (auto& each : rest) EXPECT_TRUE(each.get_future().get());
  EXPECT_EQ(service.counts().requests, 101U);
  EXPECT_EQ(service.counts().batches, 2U);
  EXPECT_EQ(calls_.take_calls().size(), 3U) << "two syncs of the file, one of its directory";
}

TEST_F(SyncServiceTest, WhoeverWaitsTooLongHearsNoAndSoDoTheNextAtOnce) {
  SyncService service(calls_, "/d");
  const auto target = service.open("/d/x-wal");
  calls_.hold();
  EXPECT_FALSE(service.wait({target}, std::chrono::milliseconds(1)));
  EXPECT_FALSE(service.wait({target}));
  EXPECT_EQ(service.counts().requests, 1U);
  std::promise<bool> later;
  service.submit({target}, [&later](bool durable) { later.set_value(durable); });
  calls_.let_go();
  EXPECT_TRUE(later.get_future().get());
  EXPECT_TRUE(service.wait({target}));
}

TEST_F(SyncServiceTest, P4_TheDestructorAnswersEverybody) {
  for (const auto thread : {SyncService::Thread::kOwn, SyncService::Thread::kCallers}) {
    answers_.clear();
    {
      SyncService service(calls_, "/d", thread);
      const auto target = service.open("/d/x-wal");
      for (int i = 0; i < 3; ++i) service.submit({target}, note(std::to_string(i)));
    }
    EXPECT_EQ(answers_, (Calls{"0 yes", "1 yes", "2 yes"}));
  }
}

}  // namespace
}  // namespace hearth::storage
