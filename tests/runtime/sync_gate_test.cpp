#include "runtime/sync_gate.hpp"

#include "runtime/fakes.hpp"
#include "support/fake_sync_calls.hpp"
#include "support/temp_directory.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace hearth::runtime {
namespace {

using Calls = std::vector<std::string>;
using storage::AgentDatabase;
using storage::SyncService;

class SyncGateTest : public ::testing::Test {
 protected:
  void commit() {
    database_.store_state("1");
    database_.commit();
  }
  std::function<void(bool)> note(const std::string& who) {
    return [this, who](bool durable) { answers_.push_back(who + (durable ? " yes" : " no")); };
  }
  // The files that were synced, without their directories.
  Calls synced() {
    Calls files;
    for (const std::string& call : calls_.take_calls()) {
      if (call.starts_with("data "))
        files.push_back(std::filesystem::path(call).filename().string());
    }
    std::ranges::sort(files);
    return files;
  }

  const hearth::testing::TempDirectory temp_;
  hearth::testing::FakeSyncCalls calls_;
  SyncService service_{calls_, temp_.path(), SyncService::Thread::kCallers};
  std::shared_ptr<storage::SyncTarget> directory_ = service_.open("/index-wal");
  testing::ManualLoop loop_;
  AgentDatabase database_{temp_.path() / "a.db", {"C", "a"}, {.sync = &service_}};
  SyncGate gate_{service_, loop_, database_, directory_};
  Calls answers_;
};

TEST_F(SyncGateTest, AnswersComeOnTheLoopInOrder) {
  commit();
  gate_.request(note("a"));
  gate_.request(note("b"));
  service_.run_pending();
  EXPECT_TRUE(answers_.empty());
  loop_.settle();
  EXPECT_EQ(answers_, (Calls{"a yes", "b yes"}));
  EXPECT_EQ(synced(), (Calls{"a.db", "a.db-wal"}));
}

TEST_F(SyncGateTest, TheDirectoryIsPartOfOneRequestAfterItWasWritten) {
  commit();
  gate_.directory_written();
  gate_.request(note("a"));
  service_.run_pending();
  EXPECT_EQ(synced(), (Calls{"a.db", "a.db-wal", "index-wal"}));
  gate_.request(note("b"));
  service_.run_pending();
  EXPECT_EQ(synced(), Calls{"a.db-wal"});
}

TEST_F(SyncGateTest, AnAgentThatHasWrittenNothingHasNothingToSync) {
  gate_.request(note("a"));
  service_.run_pending();
  loop_.settle();
  EXPECT_EQ(answers_, Calls{"a yes"});
  EXPECT_TRUE(synced().empty());
}

TEST_F(SyncGateTest, ItsAnswersOutliveIt) {
  commit();
  {
    SyncGate gate(service_, loop_, database_, directory_);
    gate.request(note("a"));
  }
  service_.run_pending();
  loop_.settle();
  EXPECT_EQ(answers_, Calls{"a yes"});
}

}  // namespace
}  // namespace hearth::runtime
