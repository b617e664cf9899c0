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

RuntimeLimits at_most_live(std::size_t count) {
  RuntimeLimits limits;
  limits.max_live_agents = count;
  return limits;
}

TEST(ShardTest, PastTheLimitTheLeastRecentlyUsedIdleAgentIsEvicted) {
  ShardFixture shard(at_most_live(2));
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

TEST(ShardTest, WhenAllAgentsAreBusyAWakeFailsWithAClearError) {
  ShardFixture shard(at_most_live(1));
  shard.script.on_event = [&](HostCalls& host, const AgentEvent& event) -> Result<void> {
    if (event.kind == EventKind::kRequest) return {};  // stays in progress
    return complete(host, event);
  };
  const auto busy = shard.request("GET", "", "a");
  const auto refused = shard.request("GET", "", "b");
  shard.settle();
  EXPECT_FALSE(busy->end);
  EXPECT_EQ(refused->end, "error unavailable: too many agents are busy; try again later");
}

TEST(ShardTest, EventsPastMaxEventsWaitForTheirTurn) {
  ShardFixture shard({}, settings_with(&ClassSettings::max_events, 2));
  shard.script.on_event = [&](HostCalls& host, const AgentEvent& event) -> Result<void> {
    if (event.kind != EventKind::kRequest) return complete(host, event);
    shard.script.open_calls.push_back(event.call);
    return {};
  };
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
  shard.script.on_event = [](HostCalls& host, const AgentEvent& event) -> Result<void> {
    if (event.kind == EventKind::kRequest && event.name == "POST")
      EXPECT_TRUE(host.set_state(0, "1"));
    return complete(host, event);
  };
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
  ShardFixture shard;
  shard.ask("GET");
  const AgentHandle handle = shard.script.host->handle();
  EXPECT_EQ(shard.runtime().find(handle).lookup, extensions::AgentDirectory::Lookup::kWrongThread)
      << "not from outside a call into it: another agent of this thread is no caller";
  extensions::AgentDirectory::Found inside;
  shard.script.on_result = [&](HostCalls&, const OperationResult&) {
    inside = shard.runtime().find(handle);
  };
  shard.runtime().post(handle, 1);
  shard.settle();
  EXPECT_NE(inside.agent, nullptr);
  shard.loop.pretend_other_thread(true);
  EXPECT_EQ(shard.runtime().find(handle).lookup, extensions::AgentDirectory::Lookup::kWrongThread);
  shard.loop.pretend_other_thread(false);
  EXPECT_EQ(shard.runtime().find(0).lookup, extensions::AgentDirectory::Lookup::kGone);
  EXPECT_EQ(shard.runtime().find(handle | std::uint64_t{200} << 56).lookup,
            extensions::AgentDirectory::Lookup::kGone);
  shard.loop.advance(milliseconds(70'000));
  EXPECT_EQ(shard.runtime().find(handle).lookup, extensions::AgentDirectory::Lookup::kGone);
  EXPECT_TRUE(shard.runtime().post(handle, 1)) << "harmless";
  shard.settle();
}

TEST(ShardTest, AnOffloadedJobReportsItsOutcomeOnTheLoop) {
  ShardFixture shard;
  std::vector<std::string> outcomes;
  shard.script.on_result = [&](HostCalls&, const OperationResult& result) {
    outcomes.push_back(result.outcome.has_error() ? result.outcome.error().message : "done");
  };
  shard.script.on_event = [](HostCalls& host, const AgentEvent& event) -> Result<void> {
    if (event.kind == EventKind::kRequest) {
      for (const std::uint64_t job : {std::uint64_t{1}, std::uint64_t{13}}) {
        EXPECT_TRUE(host.submit(2, {reinterpret_cast<const char*>(&job), sizeof(job)}, job));
      }
    }
    return complete(host, event);
  };
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
    if (outcomes.size() == 2) {
      both = true;
    } else {
      loop.post(poll);
    }
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
  CallId kept = 0;
  shard.script.on_event = [&](HostCalls& host, const AgentEvent& event) -> Result<void> {
    if (event.kind == EventKind::kRequest) {
      kept = event.call;
      return {};
    }
    return complete(host, event);
  };
  const auto running = shard.ask("GET");
  bool stopped = false;
  shard.shard().stop(shard.loop.clock().steady_now() + milliseconds(5000), [&] { stopped = true; });
  shard.settle();
  EXPECT_FALSE(stopped);
  EXPECT_EQ(shard.ask("GET", "", "other")->end, "error closing: the server is shutting down");
  shard.act([&](HostCalls& host) { (void)host.complete(kept, std::string_view("finished")); });
  EXPECT_EQ(running->end, "ok finished");
  EXPECT_TRUE(stopped);
  EXPECT_EQ(shard.script.alive, 0);
}

TEST(ShardTest, StopEndsWhatDoesNotFinishInTime) {
  ShardFixture shard;
  shard.script.on_event = [&](HostCalls& host, const AgentEvent& event) -> Result<void> {
    if (event.kind == EventKind::kRequest) return {};
    return complete(host, event);
  };
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
  CallId open = 0;
  shard.script.on_event = [&](HostCalls& host, const AgentEvent& event) -> Result<void> {
    if (event.kind != EventKind::kRequest) return complete(host, event);
    open = event.call;
    return {};
  };
  const std::size_t head = std::string("/agents/counter/aAcceptx").size();
  const auto answer = shard.ask("GET");
  EXPECT_EQ(shard.runtime().client_memory().used(), head) << "it is in progress";
  EXPECT_FALSE(shard.script.host->complete(open, std::string_view()).has_error());
  shard.settle();
  EXPECT_EQ(shard.runtime().client_memory().used(), 0U);
}

}  // namespace
}  // namespace hearth::runtime
