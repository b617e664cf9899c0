// Another thread moves an agent's WAL into its file, on a shard that is driven by hand.
#include "runtime/fakes.hpp"
#include "storage/connection.hpp"
#include "support/watched_syncs.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstring>
#include <filesystem>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

namespace hearth::runtime::testing {
namespace {

using std::chrono::milliseconds;

constexpr int kCheckpointPages = 20;
constexpr int kDeviceFails = 10;  // SQLITE_IOERR

// A device that stands still, or fails, when a test says so.
class TestDevice {
 public:
  TestDevice() {
    storage::initialize_sqlite();
    syncs_ = std::make_unique<hearth::testing::WatchedSyncs>([this](bool) { return sync(); });
  }

  void hold() {
    const std::scoped_lock lock(mutex_);
    held_ = true;
  }
  void let_go() {
    {
      const std::scoped_lock lock(mutex_);
      held_ = false;
    }
    changed_.notify_all();
  }
  void wait_until_it_holds() {
    std::unique_lock lock(mutex_);
    ASSERT_TRUE(changed_.wait_for(lock, std::chrono::seconds(10), [this] { return waiting_ > 0; }));
  }
  std::atomic<bool> fails = false;
  std::atomic<int> on_shard = 0;
  std::atomic<int> elsewhere = 0;

 private:
  int sync() {
    ++(std::this_thread::get_id() == shard_ ? on_shard : elsewhere);
    std::unique_lock lock(mutex_);
    ++waiting_;
    changed_.notify_all();
    changed_.wait_for(lock, std::chrono::seconds(10), [this] { return !held_; });
    --waiting_;
    return fails ? kDeviceFails : 0;
  }

  const std::thread::id shard_ = std::this_thread::get_id();
  std::mutex mutex_;
  std::condition_variable changed_;
  bool held_ = false;
  int waiting_ = 0;
  std::unique_ptr<hearth::testing::WatchedSyncs> syncs_;
};

ClassSettings on_test_device() {
  ClassSettings settings;
  settings.database.checkpoint_pages = kCheckpointPages;
  settings.database.vfs = hearth::testing::WatchedSyncs::kName;
  return settings;
}

class LiveAgentCheckpointTest : public ::testing::Test {
 protected:
  LiveAgentCheckpointTest() {
    fixture_.script.on_event =
        do_on(EventKind::kMessage,
              [this](HostCalls& host, const AgentEvent& event) { on_message(host, event); });
    fixture_.script.on_result = [this](HostCalls& host, const OperationResult& result) {
      ++results_;
      (void)host.set_state(0, "\"result " + std::to_string(result.token) + "\"");
    };
    client_ = fixture_.join();
    client_.sight->clear();
  }
  ~LiveAgentCheckpointTest() override { device_.let_go(); }

  void on_message(HostCalls& host, const AgentEvent& event) {
    const std::string text(event.body);
    if (text == "sleep") {
      const std::uint64_t ms = 50;
      std::string request(sizeof ms, '\0');
      std::memcpy(request.data(), &ms, sizeof ms);
      EXPECT_TRUE(host.submit(1, request, 7));
    }
    if (text == "evict") (void)host.evict();
    if (text == "write") (void)host.set_state(0, std::to_string(++written_));
    (void)host.send(event.connection, FrameKind::kText, "did " + text);
  }
  void say(const std::string& text) { fixture_.say(client_, text); }
  [[nodiscard]] std::ptrdiff_t seen(const std::string& what) const {
    return std::ranges::count(*client_.sight, "text did " + what);
  }
  // Writes until another thread has the database and stands still.
  void lend() {
    device_.hold();
    for (int i = 0; i < kCheckpointPages; ++i) say("write");
    device_.wait_until_it_holds();
    client_.sight->clear();
  }
  bool until(const std::function<bool()>& over) { return fixture_.loop.settle_until(over); }

  TestDevice device_;
  ShardFixture fixture_{{}, on_test_device(), nullptr, 1};
  ShardFixture::Client client_;
  int written_ = 0;
  int results_ = 0;
};

TEST_F(LiveAgentCheckpointTest, OnlyTheAgentItselfWaitsForTheDevice) {
  lend();
  say("a");
  say("b");
  EXPECT_TRUE(client_.sight->empty());
  const auto other = fixture_.join("other");
  fixture_.say(other, "write");
  EXPECT_EQ(std::ranges::count(*other.sight, "text did write"), 1);
  device_.let_go();
  EXPECT_TRUE(until([&] { return seen("b") == 1; }));
  EXPECT_LT(std::ranges::find(*client_.sight, "text did a"),
            std::ranges::find(*client_.sight, "text did b"));
}

TEST_F(LiveAgentCheckpointTest, NoSyncIsMadeOnTheShard) {
  for (int i = 0; i < 10 * kCheckpointPages; ++i) say("write");
  EXPECT_TRUE(until([&] { return seen("write") == 10 * kCheckpointPages; }));
  for (int i = 0; i < 5; ++i) {
    const auto other = fixture_.connect("other-" + std::to_string(i));
    fixture_.shard().message(other.id, "write", FrameKind::kText);
    fixture_.shard().message(other.id, "evict", FrameKind::kText);
  }
  EXPECT_TRUE(until([&] { return fixture_.logger.count("agent.evicted") >= 5; }));
  EXPECT_EQ(device_.on_shard, 0);
  EXPECT_GE(device_.elsewhere, 3 + 2 * 5) << "there were checkpoints, and ends";
}

TEST_F(LiveAgentCheckpointTest, TheWalOfAnAgentThatIsNeverIdleIsBounded) {
  const std::filesystem::path wal = fixture_.data().agent_path(kUsualAgent).native() + "-wal";
  constexpr int kWrites = 500;
  std::uintmax_t longest = 0;
  for (int i = 0; i < kWrites; ++i) {
    fixture_.shard().message(client_.id, "write", FrameKind::kText);
    if (i % 5 == 0) fixture_.settle();
    longest = std::max(longest, std::filesystem::file_size(wal));
  }
  EXPECT_TRUE(until([&] { return seen("write") == kWrites; }));
  constexpr std::uintmax_t kFrame = 4096 + 24;
  EXPECT_LE(longest, 32 + (kCheckpointPages + 3) * kFrame) << "and what one commit writes";
  EXPECT_GT(longest, kCheckpointPages * kFrame / 2);
}

// The move is done before the agent is busy again, and no request waits for it.
TEST_F(LiveAgentCheckpointTest, AnAgentThatHasFallenIdleHasItsWalMovedEarly) {
  const std::filesystem::path wal = fixture_.data().agent_path(kUsualAgent).native() + "-wal";
  for (int i = 0; i < kCheckpointPages / 4; ++i) say("write");
  ASSERT_EQ(device_.elsewhere, 0) << "it is not due while the agent is busy";
  fixture_.loop.advance(milliseconds(1100));
  EXPECT_TRUE(until([&] { return std::filesystem::file_size(wal) == 0; }));
  EXPECT_EQ(device_.on_shard, 0);
  say("a");
  EXPECT_TRUE(until([&] { return seen("a") == 1; }));
}

// Events that reach an agent while another thread has its database: all wait, and none is lost.
TEST_F(LiveAgentCheckpointTest, WhatComesMeanwhileWaits) {
  say("sleep");
  lend();
  fixture_.loop.advance(milliseconds(200));
  fixture_.runtime().post(fixture_.script.host->handle(), 8);
  fixture_.settle();
  EXPECT_EQ(results_, 0);
  EXPECT_EQ(fixture_.evict(), AgentState::kLive);
  EXPECT_EQ(fixture_.logger.count("agent.evicted"), 0U);
  device_.let_go();
  EXPECT_TRUE(until([&] { return fixture_.logger.count("agent.evicted") == 1; }));
  EXPECT_EQ(results_, 2);
  EXPECT_EQ(std::ranges::count(fixture_.script.history, "destroyed"), 1);
}

TEST_F(LiveAgentCheckpointTest, DestroyedMeanwhile) {
  lend();
  EXPECT_TRUE(fixture_.shard().admin().destroy(kUsualAgent));
  fixture_.settle();
  EXPECT_TRUE(std::filesystem::exists(fixture_.data().agent_path(kUsualAgent)));
  device_.let_go();
  EXPECT_TRUE(until([&] { return fixture_.logger.count("agent.destroyed") == 1; }));
  EXPECT_FALSE(std::filesystem::exists(fixture_.data().agent_path(kUsualAgent)));
}

TEST_F(LiveAgentCheckpointTest, TheServerStopsMeanwhile) {
  lend();
  bool stopped = false;
  fixture_.runtime().stop(milliseconds(0), [&] { stopped = true; });
  fixture_.loop.advance(milliseconds(1));
  EXPECT_FALSE(stopped);
  device_.let_go();
  EXPECT_TRUE(until([&] { return stopped; }));
}

TEST_F(LiveAgentCheckpointTest, ACheckpointThatFailsIsLoggedAndTheAgentGoesOn) {
  device_.fails = true;
  for (int i = 0; i < 3 * kCheckpointPages; ++i) say("write");
  EXPECT_TRUE(until([&] { return seen("write") == 3 * kCheckpointPages; }));
  EXPECT_TRUE(until([&] { return fixture_.logger.contains("warn agent.checkpoint_failed"); }));
  EXPECT_FALSE(fixture_.logger.contains("agent.storage_failed"));
  device_.fails = false;
  for (int i = 0; i < 3 * kCheckpointPages; ++i) say("write");
  EXPECT_TRUE(until([&] { return seen("write") == 6 * kCheckpointPages; }));
}

}  // namespace
}  // namespace hearth::runtime::testing
