// What a live agent stores, and its end when its storage fails.
#include "storage/connection.hpp"
#include "storage/plugin_sql.hpp"
#include "support/exposition.hpp"
#include "work_fixture.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <future>
#include <string>
#include <string_view>

namespace hearth::runtime {
namespace {

using testing::LiveAgentTest;
using testing::ShardFixture;
using testing::Sight;

TEST_F(LiveAgentTest, StateAndTablesSurviveARestart) {
  on_call([](HostCalls& host, const AgentEvent& event) -> Result<void> {
    if (event.name == "write") {
      for (const char* text : {"CREATE TABLE t(x)", "INSERT INTO t VALUES(41)"})
        run_sql(host, text);
      EXPECT_TRUE(host.set_state(0, "42"));
      return host.complete(event.call, std::string_view("true"));
    }
    const auto statement = host.sql().prepare("SELECT x + 1 FROM t");
    EXPECT_TRUE(host.sql().step(statement.value()));
    const std::string sum = std::to_string(host.sql().column_int64(statement.value(), 0).value());
    EXPECT_TRUE(host.sql().finalize(statement.value()));
    EXPECT_EQ(host.state(), sum);
    return host.complete(event.call, std::string_view(sum));
  });
  const auto client = shard_.connect();
  EXPECT_EQ(*client.sight, Sight{"handshake counter/a -"});
  shard_.ask(client, "write");
  shard_.restart();
  EXPECT_EQ(shard_.ask(shard_.connect(), "read")->end, "ok 42");
}

TEST_F(LiveAgentTest, AnAgentThatIsOnlyLookedAtLeavesNoFile) {
  const auto client = shard_.join();
  EXPECT_FALSE(std::filesystem::exists(shard_.data().agent_path({"Counter", "a"})));
}

TEST(LiveAgentStorageTest, P4_AFullDiskFailsTheCallBreaksTheAgentAndItComesBackFromDisk) {
  ClassSettings settings;
  settings.database.max_pages = 16;
  ShardFixture shard({}, settings);
  shard.script.on_event = [](HostCalls& host, const AgentEvent& event) -> Result<void> {
    if (event.kind != EventKind::kCall) {
      return complete(host, event);
    }
    try {
      EXPECT_TRUE(
          host.set_state(0, event.name == "small" ? "1" : "\"" + std::string(200'000, 'x') + "\""));
    } catch (const StorageError& failure) {  // what the ABI's boundary does
      host.storage_failed(failure.what());
    }
    return host.complete(event.call, std::string_view("true"));
  };
  const auto client = shard.connect();
  const auto small = shard.ask(client, "small");
  EXPECT_EQ(small->end, "ok true");
  EXPECT_EQ(shard.ask(client, "big")->end, kStorageFailed);
  EXPECT_EQ(shard.script.alive, 0) << "a broken agent is evicted";
  const auto again = shard.call(client, "small");
  const auto late = shard.join("a", "late");
  EXPECT_EQ(again->end, "ok true");
  EXPECT_EQ(late.sight->front(), "handshake counter/a 1") << "what was not durable was never shown";
}

TEST(LiveAgentStorageTest, ATurnThatItsOwnSqlHasUndoneIsNoFailureOfTheStorage) {
  ShardFixture shard;
  shard.script.on_event = [](HostCalls& host, const AgentEvent& event) -> Result<void> {
    if (event.kind != EventKind::kCall) return complete(host, event);
    EXPECT_EQ(lose_the_turn(host).error().code, Errc::kLimitExceeded);
    return host.complete(event.call, std::string_view("true"));
  };
  const auto call = shard.ask(shard.connect(), "insert");
  EXPECT_NE(call->end, "ok true") << "nothing of it is stored";
  EXPECT_EQ(shard.logger.count("warn agent.turn_lost"), 1U);
  EXPECT_EQ(shard.logger.count("agent.storage_failed"), 0U);
  EXPECT_EQ(shard.script.alive, 0) << "it comes back from what is stored";
}

TEST_F(LiveAgentTest, AJobWhoseTurnIsLostIsCalledSoThatItCleansUp) {
  std::promise<bool> called;
  shard_.script.on_job = [&called](const OffloadOrigin&, bool cancelled) {
    called.set_value(cancelled);
  };
  std::future<bool> call = called.get_future();
  const auto is_called = [&](std::chrono::seconds within) {
    return call.wait_for(within) == std::future_status::ready;
  };
  on_call([&](HostCalls& host, const AgentEvent& event) -> Result<void> {
    EXPECT_TRUE(host.set_state(0, "1"));
    EXPECT_TRUE(host.submit(HEARTH_OP_OFFLOAD, bytes_of(1), 1));
    EXPECT_FALSE(is_called(std::chrono::seconds(0))) << "its turn is not committed";
    host.storage_failed("for the test");
    // Waits here, because the end of the agent abandons the job once more.
    EXPECT_TRUE(is_called(std::chrono::seconds(10)) && call.get()) << "called as cancelled";
    return host.complete(event.call, std::string_view("true"));
  });
  shard_.script.on_result = [](HostCalls&, const OperationResult&) { ADD_FAILURE(); };
  (void)shard_.ask(shard_.connect(), "begin");
  shard_.settle();  // the thread of the job may have posted its end late
}

TEST_F(LiveAgentTest, ABrokenAgentDoesNotHearOfASleepThatEndsBeforeItsEviction) {
  int alive = 0;
  int heard = 0;
  on_call([&](HostCalls& host, const AgentEvent& event) -> Result<void> {
    EXPECT_TRUE(host.submit(HEARTH_OP_SLEEP, bytes_of(0), 1));  // ends in the loop's next task
    shard_.loop.post([&] { alive = shard_.script.alive; });
    host.storage_failed("for the test");
    return host.complete(event.call, std::string_view("true"));
  });
  shard_.script.on_result = [&heard](HostCalls&, const OperationResult&) { ++heard; };
  (void)shard_.ask(shard_.connect(), "begin");
  EXPECT_EQ(alive, 1) << "it was not evicted when the sleep ended";
  EXPECT_EQ(heard, 0);
  EXPECT_EQ(shard_.script.alive, 0);
}

class LiveAgentCommitTest : public testing::WorkTest {};

TEST_F(LiveAgentCommitTest, P5_OfATurnWhoseCommitFailsNothingLeaves) {
  const auto client = shard_.join();
  client.sight->clear();
  storage::Connection(shard_.data().directory_path(), {})
      .execute("CREATE TRIGGER no BEFORE INSERT ON wakes BEGIN SELECT RAISE(ABORT, 'no'); END");
  const auto answer = visit([](HostCalls& host) {
    EXPECT_TRUE(host.create_schedule(after(1'000, "tick")));  // its wake comes before the commit
    EXPECT_TRUE(host.broadcast(FrameKind::kText, "unsaved", "", {}));
  });
  EXPECT_EQ(shard_.logger.count("error agent.storage_failed"), 1U);
  EXPECT_EQ(hearth::testing::Exposition(shard_.metrics.text()).sum("hearth_storage_failures_total"),
            1);
  EXPECT_EQ(answer->end, kStorageFailed);
  EXPECT_EQ(*client.sight, Sight());
}

TEST(LiveAgentStorageTest, ADamagedStatePageCostsItsAgentAndNotTheServer) {
  ShardFixture shard;
  shard.script.on_event = do_on(EventKind::kRequest, [](HostCalls& host, const AgentEvent&) {
    EXPECT_TRUE(host.set_state(0, "\"" + std::string(3000, 'x') + "\""));
  });
  shard.ask("POST");
  const auto path = shard.data().agent_path({"Counter", "a"});
  shard.restart();
  {
    std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
    const auto size = std::filesystem::file_size(path);
    for (std::uintmax_t page = 4096; page < size; page += 4096) {
      file.seekp(static_cast<std::streamoff>(page));
      file << std::string(64, '\xff');
    }
  }
  const auto client = shard.connect();
  const auto healthy = shard.join("b");
  ASSERT_FALSE(client.sight->empty());
  EXPECT_EQ(client.sight->back().substr(0, 10), "close 1011");
  EXPECT_EQ(*healthy.sight, Sight{"handshake counter/b -"});
}

TEST(LiveAgentStorageTest, ADamagedFileIsAFailedStartAndOnlyOfItsAgent) {
  ShardFixture shard;
  const auto path = shard.data().agent_path({"Counter", "a"});
  std::filesystem::create_directories(path.parent_path());
  std::ofstream(path) << std::string(8192, '?');
  shard.script.on_create = [](HostCalls& host) -> Result<void> {
    try {
      (void)host.state();
    } catch (const StorageError& failure) {
      host.storage_failed(failure.what());
    }
    return {};
  };
  const auto broken = shard.request("GET");
  const auto healthy = shard.request("GET", "", "b");
  shard.settle();
  ASSERT_TRUE(broken->end);
  EXPECT_EQ(broken->end->substr(0, 18), "error unavailable:");
  EXPECT_EQ(broken->end->find("data/agents"), std::string::npos) << "no paths for clients";
  EXPECT_EQ(healthy->end, "ok ");
}

}  // namespace
}  // namespace hearth::runtime
