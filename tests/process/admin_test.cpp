// Commands of administrators to a running server, with the real binary on both ends.

#include "json/json.hpp"
#include "process/agent_client.hpp"
#include "process/process_fixture.hpp"
#include "support/built.hpp"

#include <csignal>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

namespace hearth::testing {
namespace {

namespace fs = std::filesystem;

class AdminTest : public ProcessTest {
 protected:
  AdminTest() {
    // The server looks at files only when an administrator asks.
    put("hearth.yaml", "reload: {watch: false}\n");
    install(version_file("1"), "versioned.so");
  }

  void start(std::vector<std::string> more = {}) {
    more.insert(more.begin(), {"--config", "hearth.yaml", "--log-level", "debug"});
    server_ = serve_ready(more);
  }
  ~AdminTest() override {
    if (server_) server_->stop();
  }

  static fs::path version_file(const std::string& version) {
    return built::agent("versioned-" + version);
  }
  void replace(const std::string& version) const {
    ProcessTest::replace(version_file(version), "versioned.so");
  }
  [[nodiscard]] Reply get(const std::string& path, const std::string& extra = "") const {
    return request(*server_, "GET", path, extra);
  }
  void wake(const std::string& name) const {
    (void)AgentClient(*server_, "/agents/versioned/" + name).call("version");
  }

  std::unique_ptr<ServerProcess> server_;
};

TEST_F(AdminTest, MethodsAreListedWithTheTypesOfTheirArguments) {
  start();
  const std::string text = ask({"methods", "Versioned"});
  EXPECT_TRUE(contains(text, "METHOD", "slow_get", "integer", "idempotent"));
  const Json json = parse_json(ask({"methods", "versioned", "--json"})).value();
  EXPECT_EQ(json.at("class"), "versioned");
  EXPECT_EQ(say({"methods", "nobody"}).ending, kFailed);
}

TEST_F(AdminTest, TheTokenIsMadeForTheServersUserAloneAndKept) {
  start();
  const fs::path file = root_ / "data" / "admin.token";
  EXPECT_EQ(fs::status(file).permissions(), fs::perms{0600});
  EXPECT_EQ(fs::status(root_ / "data" / "server.json").permissions(), fs::perms{0600});
  const std::string first = read_token();
  EXPECT_EQ(first.size(), 64U);
  EXPECT_EQ(get("/admin/plugins").status, 401);
  EXPECT_EQ(get("/admin/plugins", bearer()).status, 200);
  server_->stop();
  EXPECT_TRUE(lacks(server_->log(), first)) << "a token is never logged";
  EXPECT_FALSE(fs::exists(root_ / "data" / "server.json"));
  start();
  EXPECT_EQ(read_token(), first);
}

TEST_F(AdminTest, AReloadReplacesALibrary) {
  start();
  EXPECT_TRUE(contains(ask({"plugins"}), "1.0.0"));
  EXPECT_TRUE(contains(ask({"reload"}), "versioned.so: unchanged"));
  replace("2");
  EXPECT_TRUE(contains(ask({"reload", "Versioned", "--config", "hearth.yaml"}),
                       "version 2.0.0 (generation 2) is coming in"));
  server_->wait_for_log("reload.done");
  EXPECT_TRUE(contains(ask({"plugins"}), "2.0.0"));
  const Json answer = parse_json(ask({"plugins", "--json"})).value();
  EXPECT_EQ(answer.at("plugins")[0].at("version"), "2.0.0");
}

TEST_F(AdminTest, AReloadThatWaitsKnowsWhatBecameOfIt) {
  put("hearth.yaml", "reload: {watch: false, trial_time: 5s}\n");
  start();
  AgentClient client(*server_, "/agents/versioned/a");  // whose agent moves
  (void)client.call("version");
  replace("2");
  EXPECT_TRUE(contains(ask({"reload", "--wait"}), "versioned.so: all agents have it\n"));
  EXPECT_TRUE(contains(ask({"agents", "versioned"}), "2.0.0"));
  replace("bad");
  const Said said = say({"reload", "--wait"});
  EXPECT_EQ(said.ending, kFailed);
  EXPECT_TRUE(contains(said.out, "versioned.so: FAILED: it was taken back"));
  EXPECT_TRUE(contains(ask({"plugins"}), "2.0.0"));
}

TEST_F(AdminTest, AReloadThatRefusesAFileFailsAndSaysWhy) {
  start();
  put("plugins/versioned.so", "no library");
  const Said said = say({"reload"});
  EXPECT_EQ(said.ending, kFailed);
  EXPECT_TRUE(contains(said.out, "versioned.so: REFUSED: "));
  EXPECT_TRUE(contains(ask({"plugins"}), "is refused by rule "));
  EXPECT_EQ(say({"reload", "nope"}).ending, kFailed);
}

TEST_F(AdminTest, AgentsAreListedAndEvicted) {
  start();
  for (const char* name : {"a", "b", "c"}) wake(name);
  const std::string page = ask({"agents", "versioned", "--limit", "2"});
  EXPECT_TRUE(contains(page, "a     live", "--after b\n"));
  const Json rest = parse_json(ask({"agents", "versioned", "--after", "b", "--json"})).value();
  ASSERT_EQ(rest.at("agents").size(), 1U);
  EXPECT_EQ(rest.at("agents")[0].at("name"), "c");
  EXPECT_EQ(ask({"evict", "versioned", "a"}), "versioned/a is evicted\n");
  server_->wait_for_log("agent.evicted class=Versioned agent=a reason=admin");
  EXPECT_EQ(ask({"evict", "versioned", "a"}), "versioned/a is cold: nothing was done\n");
  EXPECT_TRUE(contains(refused({"evict", "versioned", "nobody"}), "there is no agent \"nobody\""));
}

TEST_F(AdminTest, WhatWasDoneIsPrintedAndFollowed) {
  put("hearth.yaml", "reload: {watch: false}\naudit: {file: audit.jsonl}\n");
  start();
  wake("a");
  (void)ask({"reload"});
  (void)ask({"evict", "versioned", "a"});
  server_->wait_for_log("agent.evicted class=Versioned agent=a reason=admin");
  const std::string last = ask({"audit", "-n", "1"});
  EXPECT_TRUE(contains(last, "  AdminEvicted  administrator  Versioned/a\n"));
  const auto follower = run({"audit", "-f", "--json", "--event", "AdminDestroyed"});
  (void)ask({"destroy", "versioned", "a", "--yes"});
  const std::string line = follower->wait_for_line();
  EXPECT_EQ(parse_json(line).value().at("agent"), "a") << line;
  server_->stop();
  EXPECT_EQ(follower->wait(), kFailed) << "the server is gone";
  std::ifstream file(root_ / "audit.jsonl");
  std::vector<std::string> events;
  for (std::string each; std::getline(file, each);)
    events.push_back(parse_json(each).value().at("event").get<std::string>());
  EXPECT_EQ(events, (std::vector<std::string>{"PluginLoaded", "ServerReady", "AdminReload",
                                              "AdminEvicted", "AdminDestroyed", "ServerStopping"}));
}

TEST_F(AdminTest, AnAgentIsDestroyedIfThatIsMeant) {
  start();
  wake("a");
  const Said nobody_asked = say({"destroy", "versioned", "a"});  // there is no terminal
  EXPECT_EQ(nobody_asked.ending, kBadUsage);
  EXPECT_TRUE(contains(nobody_asked.err, "use --yes"));
  EXPECT_TRUE(contains(ask({"agents", "versioned"}), "live"));
  EXPECT_EQ(ask({"destroy", "versioned", "a", "--yes"}), "versioned/a is destroyed\n");
  server_->wait_for_log("agent=a reason=destroyed");  // it leaves after the answer
  EXPECT_EQ(ask({"agents", "versioned"}), "no agents\n");
  EXPECT_TRUE(contains(refused({"destroy", "versioned", "a", "--yes"}), "there is no agent \"a\""));
}

// Each command and route that names an agent, with the name that lists print.
TEST_F(AdminTest, SubAgentsAreNamedAsListsPrintThem) {
  install(bundled("counter"), "counter.so");
  install(built::agent("probe-agent"), "probe-agent.so");
  start();
  const std::string name = "ProbeAgent/p/c%2Fd ü";
  const std::string in_url = "ProbeAgent/p/c%2Fd%20%C3%BC";
  EXPECT_EQ(request(*server_, "POST", "/agents/probe-agent/p/sub/counter/c%2Fd%20%C3%BC").body,
            R"({"count":1})");
  // The agent above it has stored nothing.
  EXPECT_TRUE(contains(ask({"agents", "probe-agent"}), "p "));
  EXPECT_TRUE(contains(ask({"agents", "counter"}), name));
  EXPECT_EQ(ask({"agents", "counter", "--after", name}), "no agents\n");
  EXPECT_TRUE(contains(ask({"agents", "counter", "--after", "ProbeAgent/p/a"}), name));
  const std::string key = "X-Api-Key: " + read_token() + "\r\n";
  EXPECT_EQ(parse_json(get("/admin/agents/counter/" + in_url, key).body).value().at("state"),
            "live");
  EXPECT_EQ(ask({"evict", "counter", name}), "counter/" + in_url + " is evicted\n");
  server_->wait_for_log("agent.evicted class=Counter agent=\"" + name + "\" reason=admin");
  EXPECT_EQ(get("/admin/operations?class=counter&agent=ProbeAgent/p/c%252Fd%20%C3%BC", key).status,
            200);
  EXPECT_EQ(ask({"operations", "counter", name}), "no operations\n");
  const Reply operation = get("/admin/operations/counter/" + in_url + "/0123", key);
  EXPECT_TRUE(answers(operation, 404, "no operation has this id"));
  EXPECT_TRUE(
      contains(say({"resolve", "counter", name, "0123", "not_executed"}).err, "no operation"));
  const Json audit =
      parse_json(get("/admin/audit?class=counter&agent=ProbeAgent/p/c%252Fd%20%C3%BC", key).body)
          .value();
  EXPECT_EQ(audit.at("entries").at(0).at("agent"), name) << dump_json(audit);
  EXPECT_EQ(ask({"destroy", "counter", name, "--yes"}), "counter/" + in_url + " is destroyed\n");
}

TEST_F(AdminTest, WithoutAServerCommandsSaySo) {
  EXPECT_TRUE(contains(refused({"plugins"}), "hearth: no server runs on the data directory"));
  start();
  server_->kill();  // its server.json stays
  ASSERT_TRUE(fs::exists(root_ / "data" / "server.json"));
  EXPECT_TRUE(contains(say({"plugins"}).err, "no server runs on the data directory"));
  EXPECT_EQ(say({"plugins", "--config", "none.yaml"}).ending, kBadUsage);
  start();
  EXPECT_TRUE(contains(ask({"plugins"}), "versioned"));
}

TEST_F(AdminTest, ATokenOfOnesOwnIsUsed) {
  put("hearth.yaml", "admin: {token_file: secret}\n");
  const auto refused = serve({"--config", "hearth.yaml"});
  EXPECT_EQ(refused->wait(), kBadUsage);
  EXPECT_TRUE(contains(refused->log(), "admin.token_file: cannot open"));
  put("secret", "a-token-of-my-own\n");
  start();
  EXPECT_FALSE(fs::exists(root_ / "data" / "admin.token"));
  EXPECT_EQ(get("/admin/plugins", "Authorization: Bearer a-token-of-my-own\r\n").status, 200);
  EXPECT_TRUE(contains(ask({"plugins", "--data", "data"}), "versioned"));
}

}  // namespace
}  // namespace hearth::testing
