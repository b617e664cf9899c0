// Commands of administrators to a running server, with the real binary on both ends.

#include "json/json.hpp"
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
  // As `install` and `mv` do: a new file under the old name.
  void replace(const fs::path& with) const {
    const fs::path temporary = root_ / "plugins" / ".versioned.new";
    fs::copy_file(with, temporary, fs::copy_options::overwrite_existing);
    fs::rename(temporary, root_ / "plugins" / "versioned.so");
  }

  // A command's status, its output, and its stderr.
  struct Said {
    Ending ending;
    std::string out;
    std::string err;
  };
  [[nodiscard]] Said say(const std::vector<std::string>& arguments) const {
    const auto command = run(arguments);
    Said said;
    said.ending = command->wait();
    said.out = command->out();
    said.err = command->log();
    return said;
  }
  [[nodiscard]] std::string ask(const std::vector<std::string>& arguments) const {
    const Said said = say(arguments);
    EXPECT_EQ(said.ending, kClean) << said.err;
    return said.out;
  }
  [[nodiscard]] std::string token() const {
    std::string text = read_file(root_ / "data" / "admin.token", 4096).value();
    text.pop_back();
    return text;
  }
  [[nodiscard]] Reply get(const std::string& path, const std::string& extra = "") const {
    RawClient client(server_->port());
    return client.request("GET " + path + " HTTP/1.1\r\nHost: localhost\r\n" + extra + "\r\n");
  }
  void wake(const std::string& name) const {
    RawClient client(server_->port());
    ASSERT_EQ(client.upgrade("/agents/versioned/" + name).status, 101);
    client.send(RawClient::text_frame(R"({"type":"rpc","id":"1","method":"version","args":[]})"));
    while (client.read_text().find(R"("rpc")") == std::string::npos) {
    }
  }

  std::unique_ptr<ServerProcess> server_;
};

TEST_F(AdminTest, MethodsAreListedWithTheTypesOfTheirArguments) {
  start();
  const std::string text = ask({"methods", "Versioned"});
  EXPECT_NE(text.find("METHOD"), std::string::npos) << text;
  EXPECT_NE(text.find("slow_get"), std::string::npos) << text;
  EXPECT_NE(text.find("integer"), std::string::npos) << text;
  EXPECT_NE(text.find("idempotent"), std::string::npos) << text;
  const Json json = parse_json(ask({"methods", "versioned", "--json"})).value();
  EXPECT_EQ(json.at("class"), "versioned");
  EXPECT_EQ(say({"methods", "nobody"}).ending, kFailed);
}

TEST_F(AdminTest, TheTokenIsMadeForTheServersUserAloneAndKept) {
  start();
  const fs::path file = root_ / "data" / "admin.token";
  EXPECT_EQ(fs::status(file).permissions(), fs::perms{0600});
  EXPECT_EQ(fs::status(root_ / "data" / "server.json").permissions(), fs::perms{0600});
  const std::string first = token();
  EXPECT_EQ(first.size(), 64U);
  EXPECT_EQ(get("/admin/plugins").status, 401);
  EXPECT_EQ(get("/admin/plugins", "Authorization: Bearer " + first + "\r\n").status, 200);
  server_->stop();
  EXPECT_EQ(server_->log().find(first), std::string::npos) << "a token is never logged";
  EXPECT_FALSE(fs::exists(root_ / "data" / "server.json"));
  start();
  EXPECT_EQ(token(), first);
}

TEST_F(AdminTest, AReloadReplacesALibrary) {
  start();
  EXPECT_NE(ask({"plugins"}).find("1.0.0"), std::string::npos);
  EXPECT_NE(ask({"reload"}).find("versioned.so: unchanged"), std::string::npos);
  replace(version_file("2"));
  EXPECT_NE(ask({"reload", "Versioned", "--config", "hearth.yaml"})
                .find("version 2.0.0 (generation 2) is coming in"),
            std::string::npos);
  server_->wait_for_log("reload.done");
  EXPECT_NE(ask({"plugins"}).find("2.0.0"), std::string::npos);
  const Json answer = parse_json(ask({"plugins", "--json"})).value();
  EXPECT_EQ(answer.at("plugins")[0].at("version"), "2.0.0");
}

TEST_F(AdminTest, AReloadThatWaitsKnowsWhatBecameOfIt) {
  put("hearth.yaml", "reload: {watch: false, trial_time: 5s}\n");
  start();
  RawClient client(server_->port());  // whose agent moves
  ASSERT_EQ(client.upgrade("/agents/versioned/a").status, 101);
  client.send(RawClient::text_frame(R"({"type":"rpc","id":"1","method":"version","args":[]})"));
  while (client.read_text().find(R"("rpc")") == std::string::npos) {
  }
  replace(version_file("2"));
  EXPECT_NE(ask({"reload", "--wait"}).find("versioned.so: all agents have it\n"),
            std::string::npos);
  EXPECT_NE(ask({"agents", "versioned"}).find("2.0.0"), std::string::npos);
  replace(version_file("bad"));
  const Said said = say({"reload", "--wait"});
  EXPECT_EQ(said.ending, kFailed);
  EXPECT_NE(said.out.find("versioned.so: FAILED: it was taken back"), std::string::npos)
      << said.out;
  EXPECT_NE(ask({"plugins"}).find("2.0.0"), std::string::npos);
}

TEST_F(AdminTest, AReloadThatRefusesAFileFailsAndSaysWhy) {
  start();
  put("plugins/versioned.so", "no library");
  const Said said = say({"reload"});
  EXPECT_EQ(said.ending, kFailed);
  EXPECT_NE(said.out.find("versioned.so: REFUSED: "), std::string::npos) << said.out;
  EXPECT_NE(ask({"plugins"}).find("is refused by rule "), std::string::npos);
  EXPECT_EQ(say({"reload", "nope"}).ending, kFailed);
}

TEST_F(AdminTest, AgentsAreListedAndEvicted) {
  start();
  for (const char* name : {"a", "b", "c"}) wake(name);
  const std::string page = ask({"agents", "versioned", "--limit", "2"});
  EXPECT_NE(page.find("a     live"), std::string::npos) << page;
  EXPECT_NE(page.find("--after b\n"), std::string::npos) << page;
  const Json rest = parse_json(ask({"agents", "versioned", "--after", "b", "--json"})).value();
  ASSERT_EQ(rest.at("agents").size(), 1U);
  EXPECT_EQ(rest.at("agents")[0].at("name"), "c");
  EXPECT_EQ(ask({"evict", "versioned", "a"}), "versioned/a is evicted\n");
  server_->wait_for_log("agent.evicted class=Versioned agent=a reason=admin");
  EXPECT_EQ(ask({"evict", "versioned", "a"}), "versioned/a is cold: nothing was done\n");
  const Said unknown = say({"evict", "versioned", "nobody"});
  EXPECT_EQ(unknown.ending, kFailed);
  EXPECT_NE(unknown.err.find("there is no agent \"nobody\""), std::string::npos) << unknown.err;
}

TEST_F(AdminTest, WhatWasDoneIsPrintedAndFollowed) {
  put("hearth.yaml", "reload: {watch: false}\naudit: {file: audit.jsonl}\n");
  start();
  wake("a");
  (void)ask({"reload"});
  (void)ask({"evict", "versioned", "a"});
  server_->wait_for_log("agent.evicted class=Versioned agent=a reason=admin");
  const std::string last = ask({"audit", "-n", "1"});
  EXPECT_NE(last.find("  AdminEvicted  administrator  Versioned/a\n"), std::string::npos) << last;
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
  EXPECT_EQ(nobody_asked.ending, (Ending{.status = 2, .signal = 0}));
  EXPECT_NE(nobody_asked.err.find("use --yes"), std::string::npos) << nobody_asked.err;
  EXPECT_NE(ask({"agents", "versioned"}).find("live"), std::string::npos);
  EXPECT_EQ(ask({"destroy", "versioned", "a", "--yes"}), "versioned/a is destroyed\n");
  server_->wait_for_log("agent=a reason=destroyed");  // it leaves after the answer
  EXPECT_EQ(ask({"agents", "versioned"}), "no agents\n");
  const Said unknown = say({"destroy", "versioned", "a", "--yes"});
  EXPECT_EQ(unknown.ending, kFailed);
  EXPECT_NE(unknown.err.find("there is no agent \"a\""), std::string::npos) << unknown.err;
}

// Each command and route that names an agent, with the name that lists print.
TEST_F(AdminTest, SubAgentsAreNamedAsListsPrintThem) {
  install(bundled("counter"), "counter.so");
  install(built::agent("probe-agent"), "probe-agent.so");
  start();
  const std::string name = "ProbeAgent/p/c%2Fd ü";
  const std::string in_url = "ProbeAgent/p/c%2Fd%20%C3%BC";
  RawClient client(server_->port());
  EXPECT_EQ(client
                .request("POST /agents/probe-agent/p/sub/counter/c%2Fd%20%C3%BC HTTP/1.1\r\n"
                         "Host: localhost\r\nContent-Length: 0\r\n\r\n")
                .body,
            R"({"count":1})");
  // The agent above it has stored nothing.
  EXPECT_NE(ask({"agents", "probe-agent"}).find("p "), std::string::npos);
  EXPECT_NE(ask({"agents", "counter"}).find(name), std::string::npos);
  EXPECT_EQ(ask({"agents", "counter", "--after", name}), "no agents\n");
  EXPECT_NE(ask({"agents", "counter", "--after", "ProbeAgent/p/a"}).find(name), std::string::npos);
  const std::string key = "X-Api-Key: " + token() + "\r\n";
  EXPECT_EQ(parse_json(get("/admin/agents/counter/" + in_url, key).body).value().at("state"),
            "live");
  EXPECT_EQ(ask({"evict", "counter", name}), "counter/" + in_url + " is evicted\n");
  server_->wait_for_log("agent.evicted class=Counter agent=\"" + name + "\" reason=admin");
  EXPECT_EQ(get("/admin/operations?class=counter&agent=ProbeAgent/p/c%252Fd%20%C3%BC", key).status,
            200);
  EXPECT_EQ(ask({"operations", "counter", name}), "no operations\n");
  const Reply operation = get("/admin/operations/counter/" + in_url + "/0123", key);
  EXPECT_EQ(operation.status, 404);
  EXPECT_NE(operation.body.find("no operation has this id"), std::string::npos) << operation.body;
  EXPECT_NE(say({"resolve", "counter", name, "0123", "not_executed"}).err.find("no operation"),
            std::string::npos);
  const Json audit =
      parse_json(get("/admin/audit?class=counter&agent=ProbeAgent/p/c%252Fd%20%C3%BC", key).body)
          .value();
  EXPECT_EQ(audit.at("entries").at(0).at("agent"), name) << dump_json(audit);
  EXPECT_EQ(ask({"destroy", "counter", name, "--yes"}), "counter/" + in_url + " is destroyed\n");
}

TEST_F(AdminTest, WithoutAServerCommandsSaySo) {
  const Said never = say({"plugins"});
  EXPECT_EQ(never.ending, kFailed);
  EXPECT_NE(never.err.find("hearth: no server runs on the data directory"), std::string::npos);
  start();
  server_->kill();  // its server.json stays
  ASSERT_TRUE(fs::exists(root_ / "data" / "server.json"));
  EXPECT_NE(say({"plugins"}).err.find("no server runs on the data directory"), std::string::npos);
  const Said missing = say({"plugins", "--config", "none.yaml"});
  EXPECT_EQ(missing.ending, kBadUsage);
  start();
  EXPECT_NE(ask({"plugins"}).find("versioned"), std::string::npos);
}

TEST_F(AdminTest, ATokenOfOnesOwnIsUsed) {
  put("hearth.yaml", "admin: {token_file: secret}\n");
  const auto refused = serve({"--config", "hearth.yaml"});
  EXPECT_EQ(refused->wait(), kFailed);
  EXPECT_NE(refused->log().find("the administrators' token cannot be used"), std::string::npos);
  put("secret", "a-token-of-my-own\n");
  start();
  EXPECT_FALSE(fs::exists(root_ / "data" / "admin.token"));
  EXPECT_EQ(get("/admin/plugins", "Authorization: Bearer a-token-of-my-own\r\n").status, 200);
  EXPECT_NE(ask({"plugins", "--data", "data"}).find("versioned"), std::string::npos);
}

}  // namespace
}  // namespace hearth::testing
