// How agents come from one version of their library to the next: one that drains, one that is taken back, one that is overtaken.
#include "json/json.hpp"
#include "process/agent_client.hpp"
#include "process/process_fixture.hpp"

#include <chrono>
#include <filesystem>
#include <future>
#include <memory>
#include <set>
#include <string>
#include <vector>

namespace hearth::testing {
namespace {

// One agent of the class Versioned, over a WebSocket.
class Client : public AgentClient {
 public:
  Client(const ServerProcess& server, const std::string& name)
      : AgentClient(server, "/agents/versioned/" + name) {}

  void send(const std::string& text) { client_.send(RawClient::text_frame(text)); }
  // The next frame that is no frame of the protocol. Throws if the server closes the connection.
  std::string read() {
    for (;;) {
      std::string text = client_.read_text();
      if (!text.starts_with('{')) return text;
    }
  }
};

class RolloutTest : public ProcessTest {
 protected:
  ~RolloutTest() override {
    if (server_) server_->stop();
  }
  void start(const std::string& configuration) {
    put("hearth.yaml", configuration);
    std::filesystem::create_directories(root_ / "classes");
    install(version_file("1"), "versioned.so");
    server_ = serve_ready({"--config", "hearth.yaml", "--log-level", "debug"});
  }
  static std::filesystem::path version_file(const std::string& version) {
    return std::filesystem::path(HEARTH_AGENT_PLUGINS) / ("versioned-" + version + ".so");
  }
  // As `install` and `mv` do: a new file under the old name.
  void replace(const std::string& version) const {
    const std::filesystem::path temporary = root_ / "plugins" / ".versioned.new";
    std::filesystem::copy_file(version_file(version), temporary,
                               std::filesystem::copy_options::overwrite_existing);
    std::filesystem::rename(temporary, root_ / "plugins" / "versioned.so");
  }
  // The versions that have agents in memory.
  [[nodiscard]] std::set<std::string> versions_in_memory() const {
    const auto command = run({"agents", "versioned", "--json", "--config", "hearth.yaml"});
    EXPECT_EQ(command->wait(), kClean) << command->log();
    const Json page = parse_json(command->out()).value();
    std::set<std::string> versions;
    for (const Json& agent : page.at("agents")) {
      const std::string version = agent.value("version", "");
      if (!version.empty()) versions.insert(version);
    }
    return versions;
  }

  std::unique_ptr<ServerProcess> server_;
};

TEST_F(RolloutTest, ACallThatIsInProgressEndsBeforeItsAgentIsDrained) {
  start("reload: {quiet_time: 50ms, policy: drain}\n");  // and a trial, as by default
  Client client(*server_, "a");
  client.begin("slow", "[3000]");
  EXPECT_EQ(client.call("version"), "1.0.0") << "it came after the other, and is answered first";
  replace("2");
  server_->wait_for_log("reload.begun class=Versioned version=2.0.0");
  EXPECT_EQ(server_->log().find("agent=a reason=code_update"), std::string::npos);
  const Json answer = client.answer();
  EXPECT_EQ(answer.value("result", Json()), "1.0.0") << dump_json(answer);
  server_->wait_for_log("reload.done class=Versioned version=2.0.0");
  EXPECT_EQ(client.call("version"), "2.0.0");
}

TEST_F(RolloutTest, ClientsThatSendAllTheTimeMeetTheVersionBeforeOneThatFails) {
  start("reload: {quiet_time: 50ms}\n");
  std::vector<std::unique_ptr<Client>> clients;
  for (int i = 0; i < 8; ++i)
    clients.push_back(std::make_unique<Client>(*server_, "a" + std::to_string(i)));
  int next = 0;
  const auto talk = [&] {
    for (const auto& client : clients) {
      for (int i = 0; i < 4; ++i) client->send(std::to_string(next + i));
    }
    for (const auto& client : clients) {
      for (int i = 0; i < 4; ++i) ASSERT_EQ(client->read(), "1.0.0 " + std::to_string(next + i));
    }
    next += 4;
  };
  ASSERT_NO_FATAL_FAILURE(talk());
  replace("bad");
  const auto taken_back =
      std::async(std::launch::async, [this] { server_->wait_for_log("reload.taken_back"); });
  while (taken_back.wait_for(std::chrono::seconds(0)) != std::future_status::ready)
    ASSERT_NO_FATAL_FAILURE(talk());
  ASSERT_NO_FATAL_FAILURE(talk());
}

TEST_F(RolloutTest, WhatAFailingVersionHasInterruptedGoesOnOnTheVersionBefore) {
  start("reload: {quiet_time: 50ms}\n");
  Client other(*server_, "a");
  Client connecting(*server_, "a?wait=60000");
  connecting.send("hello");
  Client calling(*server_, "a");
  calling.begin("slow_get", "[60000]");
  const auto deadline = std::chrono::steady_clock::now() + ServerProcess::kPatience;
  for (const char* what : {R"(["slow_get"])", R"(["connect"])"}) {
    while (other.call("attempts", what) == 0) {
      ASSERT_LT(std::chrono::steady_clock::now(), deadline);
    }
  }
  replace("bad");
  server_->wait_for_log("reload.taken_back");
  const Json answer = calling.answer();
  EXPECT_EQ(answer.value("result", Json()), "1.0.0") << dump_json(answer);
  EXPECT_EQ(connecting.read(), "connected 1.0.0");
  EXPECT_EQ(connecting.read(), "1.0.0 hello");
  EXPECT_EQ(other.call("version"), "1.0.0");
}

TEST_F(RolloutTest, AThirdVersionFindsAgentsOfOneOtherOnly) {
  put("classes/versioned.yaml", "class: Versioned\nevict_grace: 60s\noptions: {evict_ms: 60000}\n");
  start("reload: {quiet_time: 50ms}\nlimits: {shutdown_grace: 100ms}\n");
  Client first(*server_, "first");
  EXPECT_EQ(first.call("version"), "1.0.0");
  replace("2");
  server_->wait_for_log("reload.begun class=Versioned version=2.0.0");
  Client second(*server_, "second");
  EXPECT_EQ(second.call("version"), "2.0.0");
  EXPECT_EQ(versions_in_memory(), (std::set<std::string>{"1.0.0", "2.0.0"}));
  replace("3");
  server_->wait_for_log("reload.begun class=Versioned version=3.0.0");
  Client third(*server_, "third");
  EXPECT_EQ(third.call("version"), "3.0.0");
  EXPECT_EQ(versions_in_memory(), (std::set<std::string>{"2.0.0", "3.0.0"}));
  replace("1");
  server_->wait_for_log("reload.begun class=Versioned version=1.0.0");
  EXPECT_EQ(versions_in_memory().count("2.0.0"), 0U);
}

}  // namespace
}  // namespace hearth::testing
