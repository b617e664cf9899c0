// Class files that give classes of their own the code of a library's class (`code`).

#include "json/json.hpp"
#include "process/versioned_fixture.hpp"

#include <filesystem>
#include <string>

namespace hearth::testing {
namespace {

namespace fs = std::filesystem;

class ClassCodeTest : public VersionedTest {
 protected:
  ClassCodeTest() {
    put("classes/first.yaml", "class: FirstBot\ncode: versioned\noptions: {label: one}\n");
    put("classes/second.yaml", "class: second-bot\ncode: Versioned\noptions: {label: two}\n");
  }
  void begin() { start("reload: {quiet_time: 50ms, trial_time: 5s}\n"); }

  // An agent `a` of a class, by its segment.
  [[nodiscard]] AgentClient agent(const std::string& segment) const {
    return AgentClient(*server_, "/agents/" + segment + "/a");
  }
  [[nodiscard]] bool logged(const std::string& text) const {
    return server_->log().find(text) != std::string::npos;
  }
  [[nodiscard]] int status(const std::string& segment) const {
    return request(*server_, "GET", "/agents/" + segment + "/a").status;
  }
};

TEST_F(ClassCodeTest, ClassesOfOneCodeHaveNamesOptionsAndStorageOfTheirOwn) {
  begin();
  struct Row {
    std::string segment;
    std::string identity;
    int adds;
  };
  for (const auto& [segment, identity, adds] :
       {Row{"versioned", "Versioned ", 1}, Row{"first-bot", "FirstBot one", 2},
        Row{"second-bot", "second-bot two", 3}}) {
    AgentClient client = agent(segment);
    EXPECT_EQ(client.call("identity"), identity);
    for (int i = 1; i <= adds; ++i) EXPECT_EQ(client.call("add"), i) << segment;
  }
  for (const char* name : {"Versioned", "FirstBot", "second-bot"})
    EXPECT_TRUE(fs::exists(root_ / "data" / "agents" / name)) << name;
  server_->wait_for_log("class.served class=FirstBot code=Versioned version=1.0.0");
  server_->wait_for_log("class.served class=Versioned version=1.0.0");
}

TEST_F(ClassCodeTest, AllClassesMoveWithTheirLibraryAndGoBackTogether) {
  begin();
  AgentClient first = agent("first-bot");
  AgentClient second = agent("second-bot");
  EXPECT_EQ(first.call("add"), 1);
  EXPECT_EQ(second.call("add"), 1);
  replace("2");
  server_->wait_for_log("reload.done class=FirstBot version=2.0.0");
  server_->wait_for_log("reload.done class=second-bot version=2.0.0");
  for (AgentClient* client : {&first, &second}) {
    EXPECT_EQ(client->call("version"), "2.0.0");
    EXPECT_EQ(client->call("add"), 2) << "what was stored is there";
  }
  EXPECT_EQ(second.call("identity"), "second-bot two");
  replace("bad");
  server_->wait_for_log("reload.taken_back");
  for (AgentClient* client : {&first, &second}) EXPECT_EQ(client->call("version"), "2.0.0");
}

TEST_F(ClassCodeTest, AFileMayComeChangeItsCodeGoAndComeBack) {
  install(bundled("counter"), "counter.so");
  begin();
  AgentClient first = agent("first-bot");
  EXPECT_EQ(first.call("add"), 1);
  EXPECT_EQ(status("third"), 400) << "no such class";
  put("classes/third.yaml", "class: third\ncode: versioned\n");
  server_->wait_for_log("class.served class=third code=Versioned");
  EXPECT_EQ(agent("third").call("add"), 1);

  put("classes/first.yaml", "class: FirstBot\ncode: counter\noptions: {start: 5}\n");
  server_->wait_for_log("class.served class=FirstBot code=Counter");
  EXPECT_EQ(first.call("get"), 5) << "on the same socket, with the code of another library";
  EXPECT_EQ(agent("second-bot").call("identity"), "second-bot two");

  fs::remove(root_ / "classes" / "first.yaml");
  server_->wait_for_log("reload.removed class=FirstBot");
  EXPECT_EQ(status("first-bot"), 503);
  put("classes/first.yaml", "class: FirstBot\ncode: versioned\n");
  server_->wait_for_log("class.served class=FirstBot code=Versioned version=1.0.0", 2);
  EXPECT_EQ(first.call("add"), 2) << "the agents have their data, and the client has stayed";
}

TEST_F(ClassCodeTest, AClassWhoseCodeIsMissingWaitsForItsLibrary) {
  put("classes/third.yaml", "class: third\ncode: counter\n");
  begin();
  server_->wait_for_log("class.not_found class=third code=counter file=");
  EXPECT_EQ(status("third"), 503);
  EXPECT_TRUE(contains(refused({"reload", "third", "--config", "hearth.yaml"}),
                       R"(no library that is served has "counter", the class of its code)"));
  install(bundled("counter"), "counter.so");
  server_->wait_for_log("reload.done class=third version=1.0.0");
  EXPECT_EQ(status("third"), 200);
  put("classes/third.yaml", "class: third\ncode: nothing\n");
  server_->wait_for_log("reload.removed class=third");
  EXPECT_EQ(status("third"), 503);
  EXPECT_EQ(status("counter"), 200);
}

TEST_F(ClassCodeTest, AFileThatComesWhileItsLibraryIsTriedWaitsForTheResult) {
  begin();
  AgentClient first = agent("first-bot");
  EXPECT_EQ(first.call("add"), 1);
  put("classes/first.yaml",
      "class: FirstBot\ncode: versioned\noptions: {gate: \"" + gate("gate") + "\"}\n");
  server_->wait_for_log("config.changed class=FirstBot");
  replace("2");
  server_->wait_for_log("reload.begun class=FirstBot version=2.0.0");
  put("classes/third.yaml", "class: third\ncode: versioned\n");
  (void)ask({"reload", "--config", "hearth.yaml"});
  EXPECT_FALSE(logged("class.served class=third"));
  open("gate");
  server_->wait_for_log("agent.start_failed class=FirstBot agent=a");  // with what was put off
  (void)request(*server_, "GET", "/agents/first-bot/other");
  server_->wait_for_log("reload.taken_back");
  server_->wait_for_log("class.served class=third code=Versioned version=1.0.0");
  EXPECT_EQ(agent("third").call("add"), 1);
}

TEST_F(ClassCodeTest, AFileThatComesWithABadVersionGetsTheCodeOfTheVersionBefore) {
  start("reload: {watch: false, trial_time: 5s}\n");
  AgentClient first = agent("first-bot");
  EXPECT_EQ(first.call("add"), 1);
  put("classes/third.yaml", "class: third\ncode: versioned\n");
  replace("bad");
  (void)hearth({"reload", "--config", "hearth.yaml"});
  server_->wait_for_log("reload.begun class=third");
  server_->wait_for_log("reload.taken_back");
  server_->wait_for_log("class.served class=third code=Versioned version=1.0.0");
  EXPECT_EQ(agent("third").call("add"), 1);
}

TEST_F(ClassCodeTest, TheListOfClassesHasTheirCode) {
  begin();
  const Json list = parse_json(request(*server_, "GET", "/admin/classes", bearer()).body).value();
  std::string codes;
  for (const Json& each : list.at("classes"))
    codes += each.at("class").get<std::string>() + " " + each.at("code").get<std::string>() + ", ";
  EXPECT_EQ(codes, "FirstBot Versioned, second-bot Versioned, Versioned Versioned, ");
}

TEST_F(ClassCodeTest, TheCheckOfTheConfigurationRefusesACodeThatLeadsOn) {
  put("hearth.yaml", "shards: 1\n");
  EXPECT_EQ(ask({"serve", "--config", "hearth.yaml", "--check-config"}), "configuration ok\n");
  EXPECT_TRUE(contains(ask({"config", "--config", "hearth.yaml", "--class", "second-bot"}),
                       "classes/second.yaml:2"));
  put("classes/third.yaml", "class: third\ncode: first-bot\n");
  EXPECT_TRUE(contains(refused({"serve", "--config", "hearth.yaml", "--check-config"}, kBadUsage),
                       R"(third.yaml:2:7: code: the class "third" names "first-bot", which )"
                       R"(runs the code of "versioned" itself: name that)"));
}

}  // namespace
}  // namespace hearth::testing
