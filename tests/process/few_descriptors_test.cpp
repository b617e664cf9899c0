#include "process/process_fixture.hpp"
#include "support/built.hpp"

#include <gtest/gtest.h>

#include <deque>
#include <string>

namespace hearth::testing {
namespace {

// A server that may not open 200 files: that is the hard limit. The soft limit is lower still.
class FewDescriptorsTest : public ProcessTest {
 protected:
  FewDescriptorsTest() {
    install(bundled("counter"), "counter.so");
    put("hearth.yaml", "shards: 2\n");
  }

  [[nodiscard]] std::unique_ptr<ServerProcess> run_with(unsigned descriptors,
                                                        const std::string& more) const {
    const std::string script = "ulimit -Sn 64; ulimit -Hn " + std::to_string(descriptors) +
                               "; exec \"$0\" serve --config hearth.yaml " + more;
    return std::make_unique<ServerProcess>(
        std::vector<std::string>{"/bin/sh", "-c", script, built::server().string()}, root_);
  }
  [[nodiscard]] std::unique_ptr<ServerProcess> serve_with(unsigned descriptors) const {
    auto server = run_with(descriptors, "--listen 127.0.0.1:0 --log-format human");
    server->wait_until_ready();
    return server;
  }
};

TEST_F(FewDescriptorsTest, MoreAgentsThanThereAreDescriptorsForAreAllServed) {
  const auto server = serve_with(200);
  server->wait_for_log("server.few_descriptors");
  EXPECT_TRUE(contains(server->log(), "LimitNOFILE"));
  for (const char* wanted : {R"({"count":1})", R"({"count":2})"}) {
    for (int i = 0; i < 300; ++i)
      ASSERT_EQ(increment(*server, "agent-" + std::to_string(i)), wanted) << i;
  }
  EXPECT_EQ(server->stop(), kClean);
  EXPECT_TRUE(lacks(server->log(), "storage_failed"));
}

TEST_F(FewDescriptorsTest, TheCheckOfTheConfigurationWarnsToo) {
  put("hearth.yaml", "shards: 1\nlimits: {max_connections: 50, max_live_agents: 50}\n");
  constexpr unsigned kWanted = 32 + 8 + 50 + 2 * 50 + 2000;
  for (const unsigned descriptors : {kWanted - 1, kWanted}) {
    const auto check = run_with(descriptors, "--check-config");
    EXPECT_EQ(check->wait(), kClean);
    EXPECT_EQ(check->out(), "configuration ok\n");
    EXPECT_EQ(check->log().find("hearth: warning: at most ") != std::string::npos,
              descriptors < kWanted)
        << check->log();
    EXPECT_EQ(check->log().find("allow 2190 open files") != std::string::npos,
              descriptors < kWanted)
        << check->log();
  }
}

TEST_F(FewDescriptorsTest, SocketsTakeNoMoreThanTheirHalfAndAgentsLeaveForOthersMeanwhile) {
  const auto server = serve_with(200);
  // Some have agents that are idle between the frames.
  std::deque<RawClient> clients;
  const auto come = [&] {
    const std::string name = "/agents/counter/held-" + std::to_string(clients.size() % 10);
    clients.emplace_back(server->port());
    return clients.back().upgrade(name).status;
  };
  for (int i = 0; i < 70; ++i) ASSERT_EQ(come(), 101) << i;
  for (int i = 0; i < 100; ++i)
    ASSERT_EQ(increment(*server, "agent-" + std::to_string(i)), R"({"count":1})") << i;
  int refusal = 101;
  while (refusal == 101 && clients.size() < 100) refusal = come();
  EXPECT_EQ(refusal, 503);
  EXPECT_LE(clients.size(), 77U) << "the last one was refused";
  clients.clear();
  EXPECT_EQ(server->stop(), kClean);
  EXPECT_TRUE(lacks(server->log(), "storage_failed"));
}

}  // namespace
}  // namespace hearth::testing
