// Limits, offloaded jobs, handles and the end of a shard.
#include "runtime/shard.hpp"

#include "fakes.hpp"
#include "runtime/asio_loop.hpp"
#include "storage/directory.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <thread>

namespace hearth::runtime {
namespace {

using std::chrono::milliseconds;
using testing::ShardFixture;

TEST(ShardTest, PastTheLimitTheLeastRecentlyUsedIdleAgentIsEvicted) {
  ShardFixture shard({.max_live_agents = 2});
  shard.request("GET", "", "a");
  shard.loop.advance(milliseconds(10));
  shard.request("GET", "", "b");
  shard.loop.advance(milliseconds(10));
  shard.ask("GET", "", "a");  // now b is the older one
  ASSERT_EQ(shard.script.alive, 2);
  shard.script.history.clear();
  EXPECT_EQ(shard.ask("GET", "", "c")->end, "ok ");
  EXPECT_EQ(shard.script.alive, 2);
  shard.script.history.clear();
  shard.ask("GET", "", "a");
  EXPECT_EQ(shard.script.history, std::vector<std::string>{"request GET|"}) << "a was not evicted";
}

TEST(ShardTest, EventsPastMaxEventsWaitForTheirTurn) {
  ShardFixture shard({}, settings_with(&ClassSettings::max_events, 2));
  shard.script.on_event = on(EventKind::kRequest, testing::keep_open(shard.script));
  for (int i = 0; i < 3; ++i) shard.request("GET");
  shard.settle();
  EXPECT_EQ(shard.script.open_calls.size(), 2U);
  shard.act([&](HostCalls& host) {
    (void)host.complete(shard.script.open_calls[0], std::string_view());
  });
  EXPECT_EQ(shard.script.open_calls.size(), 3U);
}

TEST(ShardTest, AnAgentIsInTheDirectoryFromItsFirstWriteOn) {
  ShardFixture shard;
  shard.script.on_event = do_on(EventKind::kRequest, [](HostCalls& host, const AgentEvent& event) {
    if (event.name == "POST") EXPECT_TRUE(host.set_state(0, "1"));
  });
  shard.request("GET", "", "reader");
  shard.request("POST", "", "writer");
  shard.settle();
  storage::Directory directory(shard.data().directory_path());
  EXPECT_TRUE(directory.contains({"Counter", "writer"}));
  EXPECT_FALSE(directory.contains({"Counter", "reader"}));
}

TEST(ShardTest, AnUnknownClassIsRefused) {
  ShardFixture shard;
  auto answer = std::make_shared<testing::Answer>();
  shard.shard().request({"Nobody", "a"}, "nobody", "GET", "", std::make_unique<RequestHead>(),
                        std::make_unique<testing::FakeSink>(answer));
  shard.settle();
  EXPECT_EQ(answer->end, "error unavailable: the class is not loaded");
  EXPECT_EQ(shard.shard().counts().slots, 0U);
}

TEST(ShardTest, AHandleFindsItsAgentOnlyWhileItLivesAndOnlyOnItsThread) {
  using enum extensions::AgentDirectory::Lookup;
  ShardFixture shard;
  shard.ask("GET");
  const AgentHandle handle = shard.script.host->handle();
  EXPECT_EQ(shard.runtime().find(handle).lookup, kWrongThread)
      << "not from outside a call into it: another agent of this thread is no caller";
  extensions::AgentDirectory::Found inside;
  shard.act([&](HostCalls&) { inside = shard.runtime().find(handle); });
  EXPECT_NE(inside.agent, nullptr);
  shard.loop.pretend_other_thread(true);
  EXPECT_EQ(shard.runtime().find(handle).lookup, kWrongThread);
  shard.loop.pretend_other_thread(false);
  EXPECT_EQ(shard.runtime().find(0).lookup, kGone);
  EXPECT_EQ(shard.runtime().find(handle | std::uint64_t{200} << 56).lookup, kGone);
  shard.loop.advance(milliseconds(70'000));
  EXPECT_EQ(shard.runtime().find(handle).lookup, kGone);
  EXPECT_TRUE(shard.runtime().post(handle, 1)) << "harmless";
  shard.settle();
}

TEST(ShardTest, AnOffloadedJobReportsItsOutcomeOnTheLoop) {
  ShardFixture shard;
  std::vector<std::string> outcomes;
  shard.script.on_result = [&](HostCalls&, const OperationResult& result) {
    outcomes.push_back(result.outcome.has_error() ? result.outcome.error().message : "done");
  };
  shard.script.on_event = do_on(EventKind::kRequest, [](HostCalls& host, const AgentEvent&) {
    for (const std::uint64_t job : {std::uint64_t{1}, std::uint64_t{13}}) {
      EXPECT_TRUE(host.submit(2, {reinterpret_cast<const char*>(&job), sizeof(job)}, job));
    }
  });
  // A real thread runs the jobs; a real loop takes their results.
  testing::Script& script = shard.script;
  const SystemClock clock;
  AsioLoop loop(clock);
  ShardLoop* loops[] = {&loop};
  const auto logger = make_null_logger();
  Runtime runtime(loops, shard.data(), *logger, shard.metrics, {});
  runtime.classes().add({"counter", std::make_shared<testing::ScriptedClass>(script), {}});
  loop.start();
  std::atomic<bool> both = false;
  loop.post([&] {
    runtime.shard(0).request(
        {"Counter", "other"}, "counter", "GET", "", std::make_unique<RequestHead>(),
        std::make_unique<testing::FakeSink>(std::make_shared<testing::Answer>()));
  });
  const std::function<void()> poll = [&] {
    both = outcomes.size() == 2;
    if (!both) loop.post(poll);
  };
  loop.post(poll);
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(10);
  while (!both && std::chrono::steady_clock::now() < deadline) std::this_thread::yield();
  std::atomic<bool> stopped = false;
  runtime.stop(milliseconds(1000), [&] { stopped = true; });
  while (!stopped && std::chrono::steady_clock::now() < deadline) std::this_thread::yield();
  loop.stop();
  ASSERT_TRUE(both && stopped);
  std::ranges::sort(outcomes);  // two threads: either job may end first
  EXPECT_EQ(outcomes, (std::vector<std::string>{"done", "unlucky"}));
}

TEST(ShardTest, StopLetsRunningEventsFinishAndRefusesNewOnes) {
  ShardFixture shard;
  shard.script.on_event = on(EventKind::kRequest, testing::keep_open(shard.script));
  const auto running = shard.ask("GET");
  bool stopped = false;
  shard.shard().stop(shard.loop.clock().steady_now() + milliseconds(5000), [&] { stopped = true; });
  shard.settle();
  EXPECT_FALSE(stopped);
  EXPECT_EQ(shard.ask("GET", "", "other")->end, "error closing: the server is shutting down");
  shard.act([&](HostCalls& host) {
    (void)host.complete(shard.script.open_calls[0], std::string_view("finished"));
  });
  EXPECT_EQ(running->end, "ok finished");
  EXPECT_TRUE(stopped);
  EXPECT_EQ(shard.script.alive, 0);
}

TEST(ShardTest, StopEndsWhatDoesNotFinishInTime) {
  ShardFixture shard;
  shard.script.on_event = on(EventKind::kRequest, hang);
  const auto running = shard.ask("GET");
  bool stopped = false;
  shard.shard().stop(shard.loop.clock().steady_now() + milliseconds(5000), [&] { stopped = true; });
  shard.loop.advance(milliseconds(4999));
  EXPECT_FALSE(stopped);
  shard.loop.advance(milliseconds(2));
  EXPECT_TRUE(stopped);
  EXPECT_EQ(running->end, "error closing: the agent was evicted (shutdown); try again");
}

TEST(ShardTest, TheHeadOfARequestIsOnTheAccountOfClientMemoryUntilItIsAnswered) {
  ShardFixture shard;
  shard.script.on_event = on(EventKind::kRequest, testing::keep_open(shard.script));
  const std::size_t head =
      std::string("/agents/counter/aAcceptx").size() + sizeof(Headers::value_type);
  const auto answer = shard.ask("GET");
  EXPECT_EQ(shard.runtime().client_memory().used(), head) << "it is in progress";
  EXPECT_TRUE(shard.script.host->complete(shard.script.open_calls[0], std::string_view()));
  shard.settle();
  EXPECT_EQ(shard.runtime().client_memory().used(), 0U);
}

}  // namespace
}  // namespace hearth::runtime
