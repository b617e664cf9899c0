// Plugins that were compiled against headers as they were released are served today.

#include "json/json.hpp"
#include "process/process_fixture.hpp"

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <memory>
#include <string>
#include <thread>
#include <vector>

namespace hearth::testing {
namespace {

class FrozenPluginsTest : public ProcessTest, public ::testing::WithParamInterface<const char*> {
 protected:
  [[nodiscard]] static std::filesystem::path frozen(const std::string& plugin) {
    return std::filesystem::path(HEARTH_FROZEN_PLUGINS) / GetParam() / (plugin + ".so");
  }

  // The result of a call; null if it has none.
  static Json call(RawClient& client, const std::string& method, const std::string& arguments) {
    client.send(RawClient::text_frame(R"({"type":"rpc","id":"1","method":")" + method +
                                      R"(","args":)" + arguments + "}"));
    for (;;) {
      const Json frame = parse_json(client.read_text()).value();
      if (frame.at("type") == "rpc") {
        if (frame.at("success") != true) throw std::runtime_error(dump_json(frame));
        return frame.value("result", Json());
      }
    }
  }
};

TEST_P(FrozenPluginsTest, AnEchoAnswers) {
  install(frozen("echo"), "echo.so");
  const auto server = serve_ready();
  {
    RawClient client(server->port());
    ASSERT_EQ(client.upgrade("/agents/echo-c/a").status, 101);
    EXPECT_EQ(call(client, "reverse", R"(["abc"])"), "cba");
  }
  EXPECT_EQ(server->stop(), kClean);
}

TEST_P(FrozenPluginsTest, WorkGoesOnAfterAKill) {
  install(frozen("worker"), "worker.so");
  {
    const auto server = serve_ready();
    RawClient client(server->port());
    ASSERT_EQ(client.upgrade("/agents/worker-c/a").status, 101);
    EXPECT_EQ(call(client, "run", "[10,50]"), "run-1");
    server->kill();
  }
  const auto server = serve_ready();
  Json run;
  {
    RawClient client(server->port());
    ASSERT_EQ(client.upgrade("/agents/worker-c/a").status, 101);
    const auto deadline = std::chrono::steady_clock::now() + ServerProcess::kPatience;
    do {
      run = call(client, "status", "[]").at("runs").at(0);
      // So that the server has the processor.
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    } while (run.at("finished") != true && std::chrono::steady_clock::now() < deadline);
  }
  EXPECT_EQ(run.at("finished"), true);
  EXPECT_EQ(run.at("steps").size(), 10U);
  EXPECT_EQ(server->stop(), kClean);
}

TEST_P(FrozenPluginsTest, TheExtensionsThatJoinedDeliver) {
  install(frozen("planner"), "planner.so");
  const auto server = serve_ready();
  Json seen;
  {
    RawClient client(server->port());
    ASSERT_EQ(client.upgrade("/agents/planner-c/a").status, 101);
    EXPECT_EQ(call(client, "begin", "[]"), true);
    const auto deadline = std::chrono::steady_clock::now() + ServerProcess::kPatience;
    do {
      seen = call(client, "seen", "[]");
      // So that the server has the processor.
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    } while (seen.size() < 3 && std::chrono::steady_clock::now() < deadline);
  }
  auto kinds = seen.get<std::vector<std::string>>();
  std::ranges::sort(kinds);  // each is on its own way
  EXPECT_EQ(kinds, (std::vector<std::string>{"queue:item", "schedule:tick", "settled:work"}));
  EXPECT_EQ(server->stop(), kClean);
}

INSTANTIATE_TEST_SUITE_P(Compilers, FrozenPluginsTest, ::testing::Values("clang", "gcc_12"));

}  // namespace
}  // namespace hearth::testing
