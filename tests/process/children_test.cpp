// Processes that libraries start: what they inherit from the server, and what becomes of them.
#include "net/test_certificate.hpp"
#include "net/tls_client.hpp"
#include "process/agent_client.hpp"
#include "process/process_fixture.hpp"
#include "support/provider.hpp"

#include <chrono>
#include <fstream>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <signal.h>

namespace hearth::testing {
namespace {

class ChildrenTest : public ProcessTest {
 protected:
  ChildrenTest() { install(built::agent("children-1"), "children.so"); }

  static Json call(const ServerProcess& server, const std::string& method,
                   const std::string& arguments = "[]") {
    return AgentClient(server, "/agents/children/a").call(method, arguments);
  }
  // Whether a process that is not this one's child is gone, and reaped, within kPatience.
  static bool goes(pid_t process) {
    const auto deadline = std::chrono::steady_clock::now() + ServerProcess::kPatience;
    while (::kill(process, 0) == 0) {
      if (std::chrono::steady_clock::now() > deadline) return false;
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
    }
    return true;
  }
};

// ---- what they inherit --------------------------------------------------------------------------

TEST_F(ChildrenTest, InheritNoDescriptorInAnyPhase) {
  const Provider provider;
  put("hearth.yaml",
      "egress: {ca_file: " + provider.certificate().string() + "}\nreload: {quiet_time: 20ms}\n");
  put("classes/children.yaml",
      "class: Children\nidle_timeout: 1h\negress: {allow: [localhost, 127.0.0.1]}\n");
  auto server = serve_ready({"--config", "hearth.yaml"});
  RawClient idle(server->port());  // a connection of HTTP/1.1 that stays open
  EXPECT_EQ(idle.request("GET /readyz HTTP/1.1\r\nHost: localhost\r\n\r\n").status, 200);
  AgentClient client(*server, "/agents/children/b");
  for (const auto& [scheme, port] :
       {std::pair("http", provider.http()), std::pair("https", provider.https())}) {
    const std::string url =
        std::string(scheme) + "://localhost:" + std::to_string(port) + "/v1/models";
    (void)client.call("get", "[\"" + url + "\"]");
  }
  EXPECT_EQ(client.call("inherited"), "");

  replace(built::agent("children-2"), "children.so");
  server->wait_for_log("reload.done class=Children version=2.0.0");
  EXPECT_EQ(call(*server, "inherited"), "");
  EXPECT_EQ(server->stop(), kClean);

  std::ifstream file(root_ / "inherited");
  std::size_t loads = 0;
  std::size_t unloads = 0;
  for (std::string line; std::getline(file, line);) {
    EXPECT_TRUE(line == "load: " || line == "unload: ") << line;
    ++(line.starts_with("load") ? loads : unloads);
  }
  EXPECT_EQ(loads, 4U) << "each version in its trial, and in the server";
  EXPECT_EQ(unloads, 4U);
}

TEST_F(ChildrenTest, InheritNoDescriptorOfAServerWithTls) {
  const CertificateFiles made = make_certificate(root_, "first.test");
  put("hearth.yaml",
      "tls: {certificate: " + made.certificate.string() + ", key: " + made.key.string() + "}\n");
  const auto server = serve_ready({"--config", "hearth.yaml"});
  const RawClient silent(server->port());  // its handshake never begins
  TlsClient client(server->port(), {.protocol = "http/1.1"});
  ASSERT_EQ(client.handshake(), "");
  ASSERT_EQ(client.upgrade("/agents/children/a").status, 101);
  client.send(RawClient::text_frame(R"({"type":"rpc","id":"1","method":"inherited","args":[]})"));
  std::string answer;
  while (answer.find("\"rpc\"") == std::string::npos) answer = client.read_text();
  EXPECT_TRUE(contains(answer, R"("result":"")"));
  EXPECT_EQ(server->stop(), kClean);
}

TEST_F(ChildrenTest, InheritNoDescriptorOfASupervisedServer) {
  const auto server = serve_ready({"--supervised"});
  EXPECT_EQ(call(*server, "inherited"), "");
  EXPECT_EQ(server->stop(), kClean);
}

TEST_F(ChildrenTest, DoNotKeepThePortOfAServerThatWasKilled) {
  auto server = serve_ready();
  const auto child = call(*server, "sleeper").get<pid_t>();
  const std::string address = "127.0.0.1:" + std::to_string(server->port());
  server->kill();
  EXPECT_EQ(::kill(child, 0), 0) << "it lives";
  server = run({"serve", "--listen", address, "--log-format", "human"});
  server->wait_until_ready();
  EXPECT_EQ(server->stop(), kClean);
  ::kill(child, SIGKILL);
}

// ---- orphans ------------------------------------------------------------------------------------

// As the first process of a container, a subreaper gets the children of others that have ended.
class ChildrenOfOthersTest : public ChildrenTest {
 protected:
  [[nodiscard]] std::unique_ptr<ServerProcess> serve_as_subreaper(bool is_supervised) const {
    const std::string as_subreaper =
        "import ctypes, os, sys\n"
        "PR_SET_CHILD_SUBREAPER = 36\n"
        "ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)\n"
        "os.execv(sys.argv[1], sys.argv[1:])";
    std::vector<std::string> more;
    if (is_supervised) more.emplace_back("--supervised");
    auto server = serve_under({"python3", "-c", as_subreaper}, more);
    server->wait_until_ready();
    return server;
  }
};

TEST_F(ChildrenOfOthersTest, AreReapedByTheServerAndByItsSupervisor) {
  for (const bool is_supervised : {false, true}) {
    const auto server = serve_as_subreaper(is_supervised);
    EXPECT_TRUE(goes(call(*server, "orphan").get<pid_t>())) << is_supervised;
    EXPECT_EQ(server->stop(), kClean);
    EXPECT_TRUE(contains(server->log(), "server.stopped"));
  }
}

TEST_F(ChildrenOfOthersTest, AServerWithoutASupervisorEndsAsItsChildDoes) {
  const auto server = serve_as_subreaper(false);
  server->wait_for_log("supervisor.started pid=");
  const std::string key = "supervisor.started pid=";
  const std::string started = line_of(server->log(), key);
  ASSERT_EQ(::kill(std::stoi(started.substr(key.size())), SIGKILL), 0);
  EXPECT_EQ(server->wait(), (Ending{.status = 128 + SIGKILL, .signal = 0}));
}

}  // namespace
}  // namespace hearth::testing
