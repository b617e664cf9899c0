// Bodies that an agent reads as they arrive.
#include "process/agent_client.hpp"
#include "process/process_fixture.hpp"
#include "support/environment.hpp"

#include <cstddef>
#include <fstream>
#include <memory>
#include <string>
#include <string_view>

namespace hearth::testing {
namespace {

constexpr std::size_t kPiece = std::size_t{1} << 20;
constexpr std::size_t kLength = 64 * kPiece;

class RequestBodyTest : public ProcessTest {
 protected:
  RequestBodyTest() {
    install(built::agent("streams"), "streams.so");
    put("hearth.yaml", "limits:\n  max_body: 64MiB\n");
    server_ = serve_ready({"--config", "hearth.yaml"});
  }
  ~RequestBodyTest() override {
    if (server_) server_->stop();
  }

  static std::string head(const std::string& name, std::size_t length) {
    return "POST /agents/reader/" + name +
           " HTTP/1.1\r\nHost: localhost\r\nContent-Length: " + std::to_string(length) + "\r\n\r\n";
  }
  // Bytes of the status file of the server's process.
  [[nodiscard]] std::size_t memory(std::string_view field) const {
    std::ifstream file("/proc/" + std::to_string(server_->pid()) + "/status");
    for (std::string line; std::getline(file, line);) {
      if (line.starts_with(field)) return std::stoul(line.substr(field.size())) * 1024;
    }
    return 0;
  }
  void wait_until_read(AgentClient& agent, std::size_t bytes) {
    while (agent.call("seen").get<std::size_t>() < bytes) {
    }
  }

  std::unique_ptr<ServerProcess> server_;
};

TEST_F(RequestBodyTest, ALargeBodyTakesNoMemory) {
  RawClient client(server_->port());
  EXPECT_EQ(client.request(head("a", 4) + "warm").body, "4");
  const std::size_t before = memory("VmRSS:");
  const std::string piece(kPiece, 'x');
  client.send(head("a", kLength));
  for (std::size_t sent = 0; sent < kLength; sent += piece.size()) ASSERT_TRUE(client.send(piece));
  EXPECT_EQ(client.read_reply().body, std::to_string(kLength));
  EXPECT_GT(before, 0U);
  // A sanitizer keeps what was freed.
  if (!kSanitized) EXPECT_LT(memory("VmHWM:"), before + 16 * kPiece);
  EXPECT_EQ(client.request(head("a", 4) + "next").body, "4");
  EXPECT_EQ(client.request(head("a", kLength + 1)).status, 413);
  RawClient chunked(server_->port());
  EXPECT_EQ(chunked
                .request("POST /agents/reader/a HTTP/1.1\r\nHost: localhost\r\n"
                         "Transfer-Encoding: chunked\r\n\r\n4\r\npart\r\n4000001\r\n")
                .status,
            413);
}

TEST_F(RequestBodyTest, AnAgentThatIsEvictedWhileItReadsAnswersAndTheNextReads) {
  AgentClient agent(*server_, "/agents/reader/a");
  RawClient client(server_->port());
  client.send(head("a", 100) + std::string(50, 'x'));
  wait_until_read(agent, 50);
  agent.call("leave");
  const Reply reply = client.read_reply();
  EXPECT_EQ(reply.status, 503);
  EXPECT_TRUE(contains(reply.head, "Connection: close"));
  RawClient next(server_->port());
  EXPECT_EQ(next.request(head("a", 4) + "next").body, "4");
}

TEST_F(RequestBodyTest, AnAgentWhoseClientLeavesLearnsOfIt) {
  AgentClient agent(*server_, "/agents/reader/a");
  {
    RawClient client(server_->port());
    client.send(head("a", 100) + std::string(50, 'x'));
    wait_until_read(agent, 50);
    client.reset_on_close();
  }
  while (agent.call("failure").get<std::string>().empty()) {
  }
  EXPECT_EQ(agent.call("failure"), "GONE");
}

TEST_F(RequestBodyTest, AServerThatIsKilledMeanwhileComesBack) {
  {
    AgentClient agent(*server_, "/agents/reader/a");
    RawClient client(server_->port());
    client.send(head("a", 100) + std::string(50, 'x'));
    wait_until_read(agent, 50);
    server_->kill();
    EXPECT_TRUE(client.at_end());
  }
  server_ = serve_ready({"--config", "hearth.yaml"});
  RawClient next(server_->port());
  EXPECT_EQ(next.request(head("a", 4) + "next").body, "4");
}

}  // namespace
}  // namespace hearth::testing
