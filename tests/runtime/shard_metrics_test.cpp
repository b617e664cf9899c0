#include "runtime/shard_metrics.hpp"

#include "fakes.hpp"
#include "support/exposition.hpp"

#include <gtest/gtest.h>

#include <map>
#include <optional>
#include <string>

namespace hearth::runtime {
namespace {

using hearth::testing::Exposition;
using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::kUsualAgent;
using testing::ShardFixture;

using Labels = std::map<std::string, std::string>;

// ---- the cells alone ----

TEST(ShardMetricsTest, TheShardsOfOneServerAddUp) {
  Metrics metrics;
  ShardMetrics first(metrics);
  ShardMetrics second(metrics);
  first.connections.set(2);
  second.connections.set(3);
  first.of_class("Counter").live_agents.add(1);
  second.of_class("Counter").live_agents.add(1);
  const Exposition seen(metrics.text());
  ASSERT_EQ(seen.mistake(), "");
  EXPECT_EQ(seen.value("hearth_connections"), 5);
  EXPECT_EQ(seen.value("hearth_live_agents", {{"class", "Counter"}}), 2);
}

TEST(ShardMetricsTest, WhenAShardGoesItsGaugesSayZeroAndItsCountersStay) {
  Metrics metrics;
  {
    ShardMetrics shard(metrics);
    shard.slots.set(4);
    shard.of_class("Counter").live_agents.add(2);
    shard.of_class("Counter").starts.add(2);
  }
  const Exposition seen(metrics.text());
  EXPECT_EQ(seen.value("hearth_agent_slots"), 0);
  EXPECT_EQ(seen.value("hearth_live_agents", {{"class", "Counter"}}), 0);
  EXPECT_EQ(seen.value("hearth_agent_starts_total", {{"class", "Counter"}}), 2);
}

TEST(ShardMetricsTest, AClassIsMadeOnce) {
  Metrics metrics;
  ShardMetrics shard(metrics);
  EXPECT_EQ(&shard.of_class("Counter"), &shard.of_class("Counter"));
  EXPECT_NE(&shard.of_class("Counter"), &shard.of_class("Room"));
}

TEST(ShardMetricsTest, KindsAndReasonsThatItDoesNotKnowAreCountedAsUnknown) {
  Metrics metrics;
  ShardMetrics shard(metrics);
  ClassMetrics& figures = shard.of_class("Counter");
  figures.event_ended(static_cast<EventKind>(4000), EventOutcome::kOk);
  figures.evicted(static_cast<EvictReason>(4000));
  const Exposition seen(metrics.text());
  EXPECT_EQ(seen.value("hearth_events_total",
                       {{"class", "Counter"}, {"kind", "unknown"}, {"outcome", "ok"}}),
            1);
  EXPECT_EQ(
      seen.value("hearth_agent_evictions_total", {{"class", "Counter"}, {"reason", "unknown"}}), 1);
}

TEST(ShardMetricsTest, NamesOfEventsAreCountedAndBounded) {
  Metrics metrics;
  ShardMetrics shard(metrics);
  ClassMetrics& figures = shard.of_class("Chat");
  const auto count = [&](const std::string& event) {
    const Exposition seen(metrics.text());
    EXPECT_EQ(seen.mistake(), "");
    return seen.value("hearth_agent_events_total", {{"class", "Chat"}, {"event", event}});
  };
  for (int i = 0; i < 2; ++i) figures.named_event("chat:recovery:detected");
  EXPECT_EQ(count("chat:recovery:detected"), 2);
  for (const std::string& bad : {std::string(), std::string("Mixed"), std::string("a\nb"),
                                 std::string("\xff"), std::string(65, 'a')})
    figures.named_event(bad);
  EXPECT_EQ(count("other"), 5);
  for (int i = 0; i < 100; ++i) figures.named_event("n" + std::to_string(i));
  EXPECT_EQ(count("n61"), 1);
  EXPECT_EQ(count("n62"), std::nullopt);
  EXPECT_EQ(count("other"), 5 + 38);
  figures.named_event("chat:recovery:detected");
  EXPECT_EQ(count("chat:recovery:detected"), 3);
}

// ---- counts of the runtime ----

class RuntimeMetricsTest : public ::testing::Test {
 protected:
  std::optional<double> figure(const std::string& name, const Labels& labels = {}) {
    const Exposition seen(shard_.metrics.text());
    EXPECT_EQ(seen.mistake(), "");
    return seen.value(name, labels);
  }
  std::optional<double> of_counter(const std::string& name) {
    return figure(name, {{"class", "Counter"}});
  }
  std::optional<double> events(const std::string& kind, const std::string& outcome) {
    return figure("hearth_events_total",
                  {{"class", "Counter"}, {"kind", kind}, {"outcome", outcome}});
  }
  std::optional<double> evictions(const std::string& reason) {
    return figure("hearth_agent_evictions_total", {{"class", "Counter"}, {"reason", reason}});
  }

  void ask_three(const std::string& method) {
    for (const char* name : {"a", "b", "c"}) shard_.request(method, "", name);
    shard_.settle();
  }

  ShardFixture shard_;
};

TEST_F(RuntimeMetricsTest, FollowsAgentsAndTheirClientsInAndOut) {
  const auto client = shard_.connect("a");
  shard_.ask("GET", "", "b");
  EXPECT_EQ(of_counter("hearth_live_agents"), 2);
  EXPECT_EQ(of_counter("hearth_agent_starts_total"), 2);
  EXPECT_EQ(figure("hearth_connections"), 1);
  EXPECT_EQ(figure("hearth_agent_slots"), 2);
  shard_.loop.advance(seconds(62));
  EXPECT_EQ(of_counter("hearth_live_agents"), 0);
  EXPECT_EQ(evictions("idle"), 2);
  EXPECT_EQ(figure("hearth_agent_slots"), 1) << "the one whose client is connected";
  shard_.shard().disconnected(client.id, 1000, "", true);
  shard_.loop.advance(seconds(62));
  EXPECT_EQ(figure("hearth_connections"), 0);
  EXPECT_EQ(figure("hearth_agent_slots"), 0);
}

TEST_F(RuntimeMetricsTest, CountsEventsByKindAndByHowTheyEnd) {
  shard_.script.on_event = [](HostCalls& host, const AgentEvent& event) -> Result<void> {
    if (event.name == "fail") return Error{Errc::kPlugin, "no"};
    if (event.name == "late") return {};
    return complete(host, event);
  };
  const auto client = shard_.connect();
  shard_.call(client, "good");
  shard_.call(client, "good");
  shard_.call(client, "fail");
  shard_.call(client, "late");
  shard_.settle();
  EXPECT_EQ(events("start", "ok"), 1);
  EXPECT_EQ(events("connecting", "ok"), 1);
  EXPECT_EQ(events("connect", "ok"), 1);
  EXPECT_EQ(events("call", "ok"), 2);
  EXPECT_EQ(events("call", "error"), 1);
  EXPECT_EQ(events("call", "timeout"), std::nullopt);
  shard_.loop.advance(seconds(301));
  EXPECT_EQ(events("call", "timeout"), 1);
}

TEST_F(RuntimeMetricsTest, CountsWhatAnEvictionCutsOff) {
  shard_.script.on_event = [](HostCalls& host, const AgentEvent& event) -> Result<void> {
    if (event.name == "late") return {};
    if (event.name == "leave") EXPECT_TRUE(host.evict());
    return complete(host, event);
  };
  const auto client = shard_.connect();
  shard_.ask(client, "late");
  shard_.ask(client, "leave");
  EXPECT_EQ(events("call", "evicted"), 1);
  EXPECT_EQ(evictions("admin"), 1);
}

TEST_F(RuntimeMetricsTest, CountsStateThatClientsWrite) {
  shard_.store(shard_.connect(), "{}");
  EXPECT_EQ(events("state_check", "ok"), 1);
}

TEST_F(RuntimeMetricsTest, TimesEventsFromTheirDeliveryToTheirAnswerWaitsIncluded) {
  testing::Script& script = shard_.script;
  script.on_event = [&](HostCalls& host, const AgentEvent& event) -> Result<void> {
    if (event.name == "late") return testing::keep_open(script)(host, event);
    if (event.name == "end") EXPECT_TRUE(host.complete(script.open_calls[0], std::string_view()));
    return complete(host, event);
  };
  const auto client = shard_.connect();
  shard_.call(client, "late");
  shard_.loop.advance(milliseconds(2500));
  shard_.ask(client, "end");
  const Exposition seen(shard_.metrics.text());
  EXPECT_EQ(seen.value("hearth_event_duration_seconds_count", {{"class", "Counter"}}), 3);
  EXPECT_EQ(seen.value("hearth_event_duration_seconds_sum", {{"class", "Counter"}}), 2.5);
  EXPECT_EQ(seen.value("hearth_event_duration_seconds_bucket", {{"class", "Counter"}, {"le", "1"}}),
            2);
}

TEST_F(RuntimeMetricsTest, CountsStartsThatFail) {
  shard_.script.on_create = [](HostCalls&) -> Result<void> { return Error{Errc::kPlugin, "no"}; };
  shard_.ask("GET");
  EXPECT_EQ(of_counter("hearth_agent_failed_starts_total"), 1);
  EXPECT_EQ(of_counter("hearth_agent_starts_total"), 0);
  EXPECT_EQ(of_counter("hearth_live_agents"), 0);
  EXPECT_EQ(evictions("admin"), std::nullopt) << "it was never up";
}

TEST_F(RuntimeMetricsTest, CountsCommits) {
  shard_.script.on_event = [](HostCalls& host, const AgentEvent& event) -> Result<void> {
    if (event.name == "PUT") EXPECT_TRUE(host.set_state(0, "1"));
    return complete(host, event);
  };
  shard_.ask("GET");
  EXPECT_EQ(of_counter("hearth_commits_total"), 0);
  shard_.ask("PUT");
  EXPECT_EQ(of_counter("hearth_commits_total"), 1);
}

TEST_F(RuntimeMetricsTest, ShowsWhoRecoversAndWhoWaitsForIt) {
  std::vector<std::pair<HostCalls*, CallId>> hooks;
  shard_.script.on_event = [&](HostCalls& host, const AgentEvent& event) -> Result<void> {
    if (event.kind == EventKind::kRequest && event.name == "POST")
      EXPECT_TRUE(host.start_fiber("work"));
    if (event.kind == EventKind::kFiberRecovered) {
      hooks.emplace_back(&host, event.call);
      return {};
    }
    return complete(host, event);
  };
  ask_three("POST");
  EXPECT_EQ(figure("hearth_pending_wakes"), 3);
  shard_.restart({.max_recovering = 1});
  ask_three("GET");
  ASSERT_EQ(hooks.size(), 1U);
  EXPECT_EQ(figure("hearth_recoveries_in_progress"), 1);
  EXPECT_EQ(figure("hearth_recoveries_waiting"), 2);
  shard_.script.on_event = nullptr;
  EXPECT_TRUE(hooks[0].first->complete(hooks[0].second, std::string_view()));
  // That came from outside any turn; the next event makes the agent look at it.
  ask_three("GET");
  EXPECT_EQ(figure("hearth_recoveries_in_progress"), 0);
  EXPECT_EQ(figure("hearth_recoveries_waiting"), 0);
}

TEST_F(RuntimeMetricsTest, TellsWhatTheSyncServiceDoesWhileTheRuntimeLives) {
  EXPECT_GE(figure("hearth_sync_requests_total"), 1) << "the directory's, at the start";
  EXPECT_GE(figure("hearth_sync_calls_total"), 1);
  EXPECT_EQ(figure("hearth_sync_failures_total"), 0);
}

TEST_F(RuntimeMetricsTest, NamesOfAgentsReachNoLabel) {
  shard_.ask("GET", "", "secret-name");
  EXPECT_EQ(shard_.metrics.text().find("secret"), std::string::npos);
}

// ---- objects ------------------------------------------------------------------------------------

TEST(ShardMetricsTest, O20_UnlistedMethodsAreOneSeries) {
  Metrics metrics;
  int asked = 0;
  {
    ShardMetrics shard(metrics);
    ClassMetrics& objects = shard.of_class("C");
    const auto methods = [&asked] {
      ++asked;
      return std::string(R"([{"name":"get"}])");
    };
    for (int i = 0; i < 3; ++i) objects.object_called("get", methods);
    EXPECT_EQ(asked, 1) << "a known method costs one look";
    for (int i = 0; i < 100; ++i) objects.object_called("m" + std::to_string(i), methods);
    objects.object_came();
  }
  const Exposition seen(metrics.text());
  ASSERT_EQ(seen.mistake(), "");
  EXPECT_EQ(seen.value("agentkernel_object_calls_total", {{"class", "C"}, {"method", "get"}}), 3);
  EXPECT_EQ(seen.value("agentkernel_object_calls_total", {{"class", "C"}, {"method", "other"}}),
            100);
  EXPECT_EQ(seen.value("agentkernel_objects_active", {{"class", "C"}}), 0);
}

TEST(ShardMetricsTest, O4_O5_ALifeIsCounted) {
  ClassSettings settings;
  settings.is_object = true;
  settings.idle_timeout = milliseconds(100);
  ShardFixture shard({}, settings);
  const auto value = [&shard](const char* name) {
    return Exposition(shard.metrics.text()).value(name, {{"class", "Counter"}});
  };
  EXPECT_EQ(shard.call_agent("get")->end, "ok ");
  EXPECT_EQ(value("agentkernel_objects_active"), 1);
  shard.loop.advance(milliseconds(300));
  EXPECT_EQ(value("agentkernel_objects_active"), 0);
  EXPECT_EQ(value("agentkernel_object_hibernations_total"), 1);
  EXPECT_EQ(shard.call_agent("get")->end, "ok ");
  EXPECT_EQ(value("agentkernel_object_wake_duration_seconds_count"), 2);
  EXPECT_EQ(
      Exposition(shard.metrics.text())
          .value("agentkernel_object_calls_total", {{"class", "Counter"}, {"method", "other"}}),
      2);
  ASSERT_TRUE(shard.admin().destroy(kUsualAgent));
  shard.settle();
  EXPECT_EQ(value("agentkernel_objects_active"), 0);
  EXPECT_EQ(value("agentkernel_object_hibernations_total"), 1) << "that was no hibernation";
}

}  // namespace
}  // namespace hearth::runtime
