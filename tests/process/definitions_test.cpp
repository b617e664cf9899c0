// Settings of classes that a real server gets over HTTP.

#include "json/json.hpp"
#include "process/process_fixture.hpp"

#include <string>
#include <vector>

namespace hearth::testing {
namespace {

class DefinitionsTest : public ProcessTest {
 protected:
  void start() { server_ = serve_ready({"--config", "hearth.yaml", "--shards", "1"}); }
  void SetUp() override {
    install(bundled("counter"), "counter.so");
    put("hearth.yaml", "log:\n  level: debug\n");
    put("classes/chat-room.yaml", "class: ChatRoom\n");
    start();
  }

  // The data of an answer with this status, or its code.
  Json data(int status, const std::string& method, const std::string& path,
            const std::string& body = "") const {
    const Reply reply = request(*server_, method, path, bearer(), body);
    EXPECT_EQ(reply.status, status) << method << ' ' << path << ' ' << reply.body;
    const auto parsed = parse_json(reply.body);
    if (!parsed) return {};
    return parsed->value(status < 400 ? "data" : "code", Json());
  }
  std::string config_of(const std::string& agent_class) {
    return ask({"config", "--config", "hearth.yaml", "--class", agent_class});
  }

  std::unique_ptr<ServerProcess> server_;
};

TEST_F(DefinitionsTest, O19_ADefinitionIsAsGoodAsAClassFileAndChangesWithoutARestart) {
  EXPECT_EQ(data(404, "POST", "/objects/counter/a/call/get"), "class_not_found");
  const Json made = data(201, "POST", "/objects/definitions",
                         R"({"class":"counter","idle_timeout_seconds":300})");
  EXPECT_EQ(made, Json::parse(R"({"class":"counter","idle_timeout":"300000ms","objects":true})"));
  EXPECT_EQ(data(200, "POST", "/objects/counter/a/call/increment", "[]"), 1);
  EXPECT_EQ(data(200, "GET", "/objects/definitions"), Json::array({made}));
  EXPECT_EQ(data(200, "GET", "/objects/definitions/Counter"), made);
  data(200, "PUT", "/objects/definitions/counter",
       R"({"class":"counter","idle_timeout_seconds":0.05})");
  EXPECT_EQ(data(200, "POST", "/objects/counter/b/call/increment", "[]"), 1);
  server_->wait_for_log("agent.evicted class=Counter agent=b reason=idle");

  const std::string shown = config_of("counter");
  EXPECT_TRUE(contains(shown, "(defined over HTTP)", "definition"));
  EXPECT_TRUE(lacks(config_of("chat-room"), "defin"));

  EXPECT_EQ(server_->kill(), kKilled);
  start();
  EXPECT_EQ(data(200, "POST", "/objects/counter/a/call/increment", "[]"), 2) << "it is kept";
  EXPECT_EQ(data(200, "DELETE", "/objects/definitions/counter")["class"], "counter");
  EXPECT_EQ(data(404, "POST", "/objects/counter/a/call/get"), "class_not_found");
  EXPECT_EQ(
      data(404, "POST", "/objects/counter/a/alarms", R"({"method":"reset","delay_seconds":3600})"),
      "class_not_found");
  EXPECT_EQ(data(404, "GET", "/objects/counter/a/alarms"), "class_not_found");
  EXPECT_EQ(data(200, "GET", "/objects/definitions"), Json::array());
  const std::string key = "X-Api-Key: " + read_token() + "\r\n";
  const Json entries = parse_json(request(*server_, "GET", "/admin/audit?class=counter", key).body)
                           .value()["entries"];
  std::vector<std::string> events;
  for (const Json& each : entries) {
    const auto event = each["event"].get<std::string>();
    if (event.starts_with("AdminDefinition"))
      events.push_back(event + " " + each["actor"].get<std::string>());
  }
  const std::vector<std::string> expected{"AdminDefinitionSet administrator",
                                          "AdminDefinitionSet administrator",
                                          "AdminDefinitionRemoved administrator"};
  EXPECT_EQ(events, expected);
}

TEST_F(DefinitionsTest, ADefinitionIsRefusedBesideAClassFileAndWithoutSense) {
  const std::string path = "/objects/definitions";
  EXPECT_EQ(data(409, "POST", path, R"({"class":"chat-room"})"), "definition_exists")
      << "the operator's file has it, in another spelling";
  data(201, "POST", path, R"({"class":"counter"})");
  EXPECT_EQ(data(409, "POST", path, R"({"class":"Counter"})"), "definition_exists");
  EXPECT_EQ(data(422, "POST", path, R"({"class":"b","image":"node:22-alpine"})"), "unsupported");
  EXPECT_EQ(data(422, "POST", path, R"({"class":"b","init_command":["node"]})"), "unsupported");
  EXPECT_EQ(data(400, "POST", path, R"({"class":"b","idle":1})"), "invalid_argument");
  EXPECT_EQ(data(400, "POST", path, R"({"class":"b","aliases":["counter"]})"), "invalid_argument")
      << "a mistake that only all class files together have";
  EXPECT_EQ(data(404, "PUT", path + "/b", R"({"class":"b"})"), "definition_not_found");
  EXPECT_EQ(data(400, "PUT", path + "/counter", R"({"class":"b"})"), "invalid_argument");
  EXPECT_EQ(data(404, "GET", path + "/b"), "definition_not_found");
  EXPECT_EQ(data(404, "DELETE", path + "/..%2F..%2Fadmin.token"), "definition_not_found");
  EXPECT_EQ(data(200, "GET", path).size(), 1U);
  EXPECT_EQ(data(200, "POST", "/objects/counter/a/call/increment", "[]"), 1);
}

}  // namespace
}  // namespace hearth::testing
