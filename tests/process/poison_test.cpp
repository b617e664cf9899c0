// Durable work whose code crashes the server, of every kind but fibers (named_fiber_test.cpp): it
// is set aside before its class is in quarantine.
#include "process/agent_client.hpp"
#include "process/process_fixture.hpp"
#include "support/built.hpp"

#include <filesystem>
#include <memory>
#include <string>

namespace hearth::testing {
namespace {

struct PoisonedWork {
  const char* kind;
  const char* callback;
  const char* line;  // of the log, once it is set aside
};

class PoisonedWorkTest : public ProcessTest, public ::testing::WithParamInterface<PoisonedWork> {
 protected:
  PoisonedWorkTest() {
    put("hearth.yaml", "log:\n  level: debug\n");
    std::filesystem::create_directories(root_ / "plugins");
    std::filesystem::copy_file(built::agent("poison"), root_ / "plugins/poison.so");
  }
};

TEST_P(PoisonedWorkTest, IsSetAsideBeforeItsClassIsInQuarantine) {
  constexpr Ending kBySegfault{.status = -1, .signal = SIGSEGV};
  {
    auto server = serve_ready({"--config", "hearth.yaml"});
    AgentClient(*server, "/agents/poison/bad")
        .begin("give",
               std::string("[\"") + GetParam().kind + "\",\"" + GetParam().callback + "\"]");
    EXPECT_EQ(server->wait(), kBySegfault) << "its first run";
  }
  {
    auto server = serve({"--config", "hearth.yaml"});  // it may end before it is ready
    EXPECT_EQ(server->wait(), kBySegfault) << "its second run, though nobody asks";
  }
  auto server = serve_ready({"--config", "hearth.yaml"});
  server->wait_for_log(GetParam().line);
  EXPECT_NE(server->log().find("fibers.max_crashes"), std::string::npos) << server->log();
  EXPECT_EQ(AgentClient(*server, "/agents/poison/good").call("hello"), 1);
  EXPECT_EQ(server->log().find("class.quarantined"), std::string::npos) << server->log();
  EXPECT_EQ(server->stop(), kClean);
}

INSTANTIATE_TEST_SUITE_P(Kinds, PoisonedWorkTest,
                         ::testing::Values(PoisonedWork{"item", "now", "queue:dead"},
                                           PoisonedWork{"item", "later", "queue:dead"},
                                           PoisonedWork{"schedule", "now", "schedule:error"},
                                           PoisonedWork{"notification", "now", "notify:dead"},
                                           PoisonedWork{"notification", "later", "notify:dead"},
                                           PoisonedWork{"alarm", "now", "alarm:dead"},
                                           PoisonedWork{"report", "", "fiber:never_told"}),
                         [](const auto& row) {
                           return std::string(row.param.kind) + "_" + row.param.callback;
                         });

}  // namespace
}  // namespace hearth::testing
