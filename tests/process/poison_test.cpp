// Durable work whose code crashes the server, of every kind but fibers (named_fiber_test.cpp): it
// is set aside before its class is in quarantine.
#include "process/agent_client.hpp"
#include "process/process_fixture.hpp"
#include "support/built.hpp"

#include <string>

namespace hearth::testing {
namespace {

struct PoisonedWork {
  const char* kind;
  const char* callback;
  const char* line;  // of the log, once it is set aside
  const char* wait;  // of `hearth why` then, also of the agent at rest; empty: none
};

class PoisonedWorkTest : public ProcessTest, public ::testing::WithParamInterface<PoisonedWork> {
 protected:
  PoisonedWorkTest() {
    put("hearth.yaml", "log:\n  level: debug\n");
    install(built::agent("poison"), "poison.so");
  }
  // What `hearth why` says of the agent "bad", once the server has it in this state.
  [[nodiscard]] std::string soon(const std::string& state) const {
    for (;;) {
      std::string told = ask({"why", "poison/bad", "--json"});
      if (contains(told, "\"state\":\"" + state)) return told;
    }
  }
};

TEST_P(PoisonedWorkTest, IsSetAsideBeforeItsClassIsInQuarantine) {
  {
    auto server = serve_ready({"--config", "hearth.yaml"});
    AgentClient(*server, "/agents/poison/bad")
        .begin("give",
               std::string("[\"") + GetParam().kind + "\",\"" + GetParam().callback + "\"]");
    EXPECT_EQ(server->wait(), kCrashed) << "its first run";
  }
  // It may end before it is ready.
  EXPECT_EQ(serve({"--config", "hearth.yaml"})->wait(), kCrashed)
      << "its second run, though nobody asks";
  auto server = serve_ready({"--config", "hearth.yaml"});
  server->wait_for_log(GetParam().line);
  EXPECT_TRUE(contains(server->log(), "fibers.max_crashes"));
  EXPECT_EQ(AgentClient(*server, "/agents/poison/good").call("hello"), 1);
  for (const char* const state : {"live", "cold"}) {
    if (std::string(GetParam().wait).empty()) break;
    if (std::string(state) == "cold") EXPECT_EQ(run({"evict", "poison", "bad"})->wait(), kClean);
    const std::string told = soon(state);
    EXPECT_TRUE(contains(told, std::string("\"kind\":\"") + GetParam().wait));
  }
  EXPECT_TRUE(lacks(server->log(), "class.quarantined"));
  EXPECT_EQ(server->stop(), kClean);
}

INSTANTIATE_TEST_SUITE_P(
    Kinds, PoisonedWorkTest,
    ::testing::Values(PoisonedWork{"item", "now", "queue:dead", "dead_letter"},
                      PoisonedWork{"item", "later", "queue:dead", "dead_letter"},
                      PoisonedWork{"schedule", "now", "schedule:dead", "dead_schedule"},
                      PoisonedWork{"notification", "now", "notify:dead", "dead_notice"},
                      PoisonedWork{"notification", "later", "notify:dead", "dead_notice"},
                      PoisonedWork{"alarm", "now", "alarm:dead", "dead_notice"},
                      PoisonedWork{"report", "", "fiber:never_told", ""}),
    [](const auto& row) { return std::string(row.param.kind) + "_" + row.param.callback; });

}  // namespace
}  // namespace hearth::testing
