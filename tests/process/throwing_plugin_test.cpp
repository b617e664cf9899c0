// Classes whose code throws where it must not: only agents of that class are affected.
#include "process/agent_client.hpp"
#include "process/process_fixture.hpp"
#include "support/built.hpp"

#include <string>

namespace hearth::testing {
namespace {

class ThrowingPluginTest : public ProcessTest {
 protected:
  // Serves the library beside the counter, asks an agent of its class twice, and checks what
  // clients of both classes see.
  void expect_failed_start(const std::string& library, const std::string& reason) {
    install(bundled("counter"), "counter.so");
    install(built::agent(library), library + ".so");
    const auto server = serve_ready();
    for (int attempt = 0; attempt < 2; ++attempt) {
      const Reply reply = request(*server, "GET", "/agents/" + library + "/a");
      EXPECT_TRUE(answers(reply, 503, "failed to start"));
      EXPECT_TRUE(lacks(reply.body, reason)) << "a reason is for the log";
      EXPECT_EQ(increment(*server, "a"), R"({"count":)" + std::to_string(attempt + 1) + "}");
    }
    EXPECT_EQ(server->stop(), kClean);
    const std::string& log = server->log();
    EXPECT_TRUE(contains(log, reason));
    EXPECT_TRUE(lacks(log, "http.agent_failed")) << "said twice: " << log;
  }
};

TEST_F(ThrowingPluginTest, OneThatThrowsWhenItIsMade) {
  expect_failed_start("throws-in-create", "no instance today");
}

TEST_F(ThrowingPluginTest, OneThatThrowsWhenItStarts) {
  expect_failed_start("throws-in-start", "no start today");
}

TEST_F(ThrowingPluginTest, OneThatThrowsInItsHandlers) {
  install(bundled("counter"), "counter.so");
  install(built::agent("probe-agent"), "probe-agent.so");
  const auto server = serve_ready();
  {
    AgentClient client(*server, "/agents/probe-agent/a");
    for (int attempt = 0; attempt < 3; ++attempt) {
      client.begin("fail", R"(["went wrong"])");
      const auto error = client.answer().at("error").get<std::string>();
      EXPECT_TRUE(error.starts_with("the method failed (trace ")) << error;
    }
  }
  EXPECT_EQ(increment(*server, "a"), R"({"count":1})");
  EXPECT_EQ(server->stop(), kClean);
  EXPECT_TRUE(contains(server->log(),
                       "agent.call_failed class=ProbeAgent agent=a event_kind=call "
                       "error=\"went wrong\" call=",
                       " method=fail trace=00-"));
}

TEST_F(ThrowingPluginTest, OneThatDropsItsTasksIsNamedInTheLog) {
  install(built::agent("drops-a-task"), "drops-a-task.so");
  const auto server = serve_ready();
  EXPECT_EQ(request(*server, "GET", "/agents/drops-a-task/a").body, "done");
  server->wait_for_log("misuse: a Task was made and never awaited",
                       2);  // when it is made, and then
  EXPECT_EQ(server->stop(), kClean);
}

}  // namespace
}  // namespace hearth::testing
