// Classes whose code throws where it must not: only agents of that class are affected.
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
      EXPECT_EQ(reply.status, 503);
      EXPECT_NE(reply.body.find("failed to start"), std::string::npos) << reply.body;
      EXPECT_EQ(reply.body.find(reason), std::string::npos) << "a reason is for the log";
      EXPECT_EQ(increment(*server, "a"), R"({"count":)" + std::to_string(attempt + 1) + "}");
    }
    EXPECT_EQ(server->stop(), kClean);
    const std::string& log = server->log();
    EXPECT_NE(log.find(reason), std::string::npos) << log;
    EXPECT_EQ(log.find("http.agent_failed"), std::string::npos) << "said twice: " << log;
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
  RawClient client(server->port());
  client.upgrade("/agents/probe-agent/a");
  for (int attempt = 0; attempt < 3; ++attempt) {
    client.send(
        RawClient::text_frame(R"({"type":"rpc","id":"1","method":"fail","args":["went wrong"]})"));
    std::string text;
    while (text.find("\"rpc\"") == std::string::npos) text = client.read_text();
    EXPECT_NE(text.find(R"("error":"the method failed (trace )"), std::string::npos) << text;
  }
  EXPECT_EQ(increment(*server, "a"), R"({"count":1})");
  client.close();
  EXPECT_EQ(server->stop(), kClean);
  EXPECT_NE(server->log().find("agent.call_failed class=ProbeAgent agent=a event_kind=call "
                               "error=\"went wrong\" call="),
            std::string::npos)
      << server->log();
  EXPECT_NE(server->log().find(" method=fail trace=00-"), std::string::npos) << server->log();
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
