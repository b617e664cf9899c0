// What a scraper sees of durable work: its beginning, a kill, its end.

#include "process/agent_client.hpp"
#include "process/process_fixture.hpp"
#include "support/exposition.hpp"

#include <chrono>
#include <functional>
#include <string>
#include <thread>

namespace hearth::testing {
namespace {

class MetricsProcessTest : public ProcessTest {
 protected:
  static Exposition scrape(const ServerProcess& server) {
    const Reply reply = request(server, "GET", "/metrics");
    EXPECT_EQ(reply.status, 200);
    Exposition seen(reply.body);
    EXPECT_EQ(seen.mistake(), "") << reply.body;
    return seen;
  }
  static double steps(const Exposition& seen, const std::string& event) {
    return seen.value("hearth_durable_events_total", {{"class", "Research"}, {"event", event}})
        .value_or(0);
  }
  // Scrapes until it is as wanted, as a monitoring system would; throws if that does not come.
  static Exposition wait_until(const ServerProcess& server,
                               const std::function<bool(const Exposition&)>& wanted) {
    const auto deadline = std::chrono::steady_clock::now() + ServerProcess::kPatience;
    for (;;) {
      Exposition seen = scrape(server);
      if (wanted(seen)) return seen;
      if (std::chrono::steady_clock::now() > deadline)
        throw std::runtime_error("the metrics do not become as wanted:\n" +
                                 request(server, "GET", "/metrics").body);
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
  }
  static void start_run(const ServerProcess& server, int steps, int step_ms) {
    (void)AgentClient(server, "/agents/research/secret-name")
        .call("start", "[\"bees\"," + std::to_string(steps) + "," + std::to_string(step_ms) + "]");
  }
};

TEST_F(MetricsProcessTest, ARunOfResearchCanBeFollowedThroughAKillToItsEnd) {
  install(bundled("research"), "research.so");
  auto server = serve_ready();
  start_run(*server, 1'000, 60'000);
  Exposition seen = scrape(*server);
  EXPECT_EQ(steps(seen, "fiber:run:started"), 1);
  EXPECT_EQ(steps(seen, "fiber:run:completed"), 0);
  EXPECT_EQ(seen.value("hearth_live_agents", {{"class", "Research"}}), 1);
  EXPECT_EQ(seen.value("hearth_pending_wakes"), 1);
  EXPECT_GE(seen.sum("hearth_commits_total", {{"class", "Research"}}), 1);
  EXPECT_GT(*seen.value("hearth_process_resident_memory_bytes"), 1e6);
  server->kill();

  server = serve_ready();
  seen = wait_until(
      *server, [](const Exposition& now) { return steps(now, "fiber:recovery:handled") == 1; });
  EXPECT_EQ(steps(seen, "fiber:run:interrupted"), 1);
  EXPECT_EQ(steps(seen, "fiber:recovery:detected"), 1);
  EXPECT_EQ(steps(seen, "fiber:recovery:attempt"), 1);
  EXPECT_EQ(seen.value("hearth_alarm_wakes_total"), 1);
  EXPECT_TRUE(lacks(request(*server, "GET", "/metrics").body, "secret-name"));

  start_run(*server, 2, 1);
  wait_until(*server, [](const Exposition& now) { return steps(now, "fiber:run:completed") == 1; });
  EXPECT_EQ(server->stop(), kClean);
  // The log tells the same story under the same names.
  for (const char* event :
       {"fiber:run:started", "fiber:run:interrupted", "fiber:recovery:detected",
        "fiber:recovery:attempt", "fiber:recovery:handled", "fiber:run:completed"}) {
    EXPECT_TRUE(
        contains(server->log(), std::string(event) + " class=Research agent=secret-name fiber="))
        << event;
  }
}

}  // namespace
}  // namespace hearth::testing
