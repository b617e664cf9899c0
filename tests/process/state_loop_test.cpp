// An agent that answers each change of its state with another change. Other agents are served, and
// its writes are stored.
#include "process/agent_client.hpp"
#include "process/process_fixture.hpp"

#include <string>

namespace hearth::testing {
namespace {

class StateLoopTest : public ProcessTest {
 protected:
  StateLoopTest() {
    install(bundled("counter"), "counter.so");
    install(built::agent("state-loop"), "state-loop.so");
  }
};

TEST_F(StateLoopTest, AHandlerThatNeverEndsIsRefusedItsNextChange) {
  const auto server = serve_ready();
  AgentClient client(*server, "/agents/state-loop/a");
  (void)client.call("begin", "[false]");
  EXPECT_EQ(request(*server, "GET", "/healthz").status, 200);
  EXPECT_EQ(increment(*server, "a"), R"({"count":1})");
  int tries = 0;
  while (client.call("n") != 100 && ++tries < 10'000) {
  }
  EXPECT_EQ(server->stop(), kClean);
  EXPECT_TRUE(contains(server->log(), "agent.state_loop class=StateLoop agent=a"));
  const auto again = serve_ready();
  EXPECT_EQ(AgentClient(*again, "/agents/state-loop/a").call("n"), 100) << "it was committed";
  EXPECT_EQ(again->stop(), kClean);
}

TEST_F(StateLoopTest, OneThatWaitsInBetweenLeavesTheLoopToOthersAndEndsAsWell) {
  const auto server = serve_ready({"--shards", "1"});
  int n = 0;
  {
    AgentClient client(*server, "/agents/state-loop/a");
    (void)client.call("begin", "[true]");
    for (int count = 1; count <= 20; ++count) {
      EXPECT_EQ(request(*server, "GET", "/healthz").status, 200);
      EXPECT_EQ(increment(*server, "a"), R"({"count":)" + std::to_string(count) + "}");
    }
    while (n < 100) n = client.call("n").get<int>();
    server->wait_for_log("agent.state_loop class=StateLoop agent=a");
  }
  server->kill();
  const auto again = serve_ready();
  EXPECT_GE(AgentClient(*again, "/agents/state-loop/a").call("n").get<int>(), n)
      << "what a client has seen was committed";
  again->kill();
}

}  // namespace
}  // namespace hearth::testing
