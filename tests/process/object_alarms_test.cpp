// /objects/{class}/{id}/alarms of a real server.

#include "process/objects_fixture.hpp"

#include <string>
#include <vector>

namespace hearth::testing {
namespace {

class ObjectAlarmsTest : public ObjectsTest {
 protected:
  static std::string alarm(const std::string& method, const std::string& args = "[]") {
    return R"({"method":")" + method + R"(","args":)" + args +
           R"(,"fire_at":"2999-02-16T00:00:00Z"})";
  }
  static std::string nested(std::size_t levels) {
    return std::string(levels, '[') + std::string(levels, ']');
  }
};

// An object that needs no waking has an alarm due a second later. A busy machine delays both.
TEST_F(ObjectAlarmsTest, A1_A2_AnAlarmWakesItsObjectWithinASecond) {
  start();
  EXPECT_EQ(increment("b"), 1);
  EXPECT_EQ(increment("a"), 1);
  data(200, "POST", "/objects/counter/a/hibernate");
  const Json set = data(201, "POST", "/objects/counter/a/alarms",
                        R"({"method":"increment","args":5,"delay_seconds":0.3})");
  EXPECT_EQ(set["method"], "increment");
  EXPECT_EQ(set["args"], Json::parse("[5]"));
  EXPECT_EQ(set["replaced"], false);
  EXPECT_EQ(data(200, "GET", "/objects/counter/a")["status"], "Hibernating");
  data(201, "POST", "/objects/counter/b/alarms", R"({"method":"increment","delay_seconds":1.3})");
  server_->wait_for_log("alarm:woken class=Counter agent=a");
  server_->wait_for_log("alarm:done class=Counter agent=a");
  EXPECT_TRUE(lacks(server_->log(), "alarm:done class=Counter agent=b"));
  EXPECT_EQ(data(200, "POST", "/objects/counter/a/call/get", "[]"), 6);
  EXPECT_EQ(data(200, "GET", "/objects/counter/a/alarms")["alarms"], Json::array());
}

TEST_F(ObjectAlarmsTest, A3_A8_A10_AlarmsAreReplacedBoundedAndCancelled) {
  start();
  const std::string path = "/objects/counter/a/alarms";
  for (int i = 0; i < 100; ++i) data(201, "POST", path, alarm("m" + std::to_string(i)));
  EXPECT_EQ(data(429, "POST", path, alarm("one-more")), "limit_exceeded");
  const Json replaced = data(201, "POST", path, alarm("m7"));
  EXPECT_EQ(replaced["replaced"], true);
  EXPECT_EQ(replaced["fire_at"], "2999-02-16T00:00:00.000Z");
  EXPECT_EQ(data(200, "GET", path)["alarms"].size(), 100U);
  EXPECT_EQ(data(200, "DELETE", path + "/" + replaced["id"].get<std::string>()), nullptr);
  EXPECT_EQ(data(200, "GET", path)["alarms"].size(), 99U);
  EXPECT_EQ(ask("DELETE", path + "/nothing").status, 404);
  for (const char* wrong :
       {"", "[]", R"({"fire_at":"2999-02-16T00:00:00Z"})", R"({"method":"get"})",
        R"({"method":"get","fire_at":"tomorrow"})", R"({"method":"__x","delay_seconds":1})",
        R"({"method":"get","delay_seconds":-1})", R"({"method":"get","delay_seconds":"1"})",
        R"({"method":"get","delay_seconds":1,"fire_at":"2999-02-16T00:00:00Z"})"})
    EXPECT_EQ(data(400, "POST", path, wrong), "invalid_argument") << wrong;
}

TEST_F(ObjectAlarmsTest, TheAuditLogSaysWhoHasSetAndRemovedAnAlarm) {
  start();
  const std::string path = "/objects/counter/a/alarms";
  const Json set = data(201, "POST", path, alarm("increment"));
  const std::string id = set["id"].get<std::string>();
  EXPECT_EQ(data(200, "DELETE", path + "/" + id), nullptr);
  EXPECT_EQ(ask("DELETE", path + "/" + id).status, 404) << "what fails has no entry";
  EXPECT_EQ(data(400, "POST", path, alarm("__x")), "invalid_argument");
  std::vector<std::string> entries;
  for (const char* event : {"AlarmSet", "AlarmRemoved"}) {
    const Json page =
        parse_json(
            ask("GET", "/admin/audit?class=Counter&agent=a&event=" + std::string(event)).body)
            .value();
    for (const Json& each : page.at("entries")) {
      EXPECT_TRUE(each["actor"].get<std::string>().starts_with("client 127.0.0.1:")) << each;
      entries.push_back(event + (' ' + dump_json(each["detail"])));
    }
  }
  EXPECT_EQ(entries, (std::vector<std::string>{R"(AlarmSet {"method":"increment"})",
                                               R"(AlarmRemoved {"alarm":")" + id + "\"}"}));
}

TEST_F(ObjectAlarmsTest, A1_A3_AnAlarmThatTheAgentSetsIsOneOfTheObjects) {
  install_durable_agent();
  start();
  const std::string path = "/objects/durable-agent/a";
  const Json far = data(200, "POST", path + "/call/alarm_in", R"([3600000, "late"])");
  const Json listed = data(200, "GET", path + "/alarms")["alarms"];
  ASSERT_EQ(listed.size(), 1U);
  EXPECT_EQ(listed[0]["id"], far["id"]);
  EXPECT_EQ(listed[0]["method"], "write");
  const Json near = data(200, "POST", path + "/call/alarm_in", R"([200, "soon"])");
  EXPECT_EQ(near["replaced"], true);
  data(200, "POST", path + "/hibernate");
  server_->wait_for_log("alarm:done class=DurableAgent agent=a");
  EXPECT_EQ(data(200, "POST", path + "/call/journal").back(), "soon");
  EXPECT_EQ(data(200, "GET", path + "/alarms")["alarms"], Json::array());
}

TEST_F(ObjectAlarmsTest, ArgumentsHaveALimitAndPagesHaveOne) {
  start();
  const std::string path = "/objects/counter/a/alarms";
  const auto text = [](std::size_t bytes) { return "[\"" + std::string(bytes - 4, 'x') + "\"]"; };
  constexpr std::size_t kMaxValue = std::size_t{2} << 20;
  EXPECT_EQ(data(413, "POST", path, alarm("m", text(kMaxValue + 1))), "limit_exceeded");
  EXPECT_EQ(data(404, "GET", path), "object_not_found") << "what is refused makes no object";
  data(201, "POST", path, alarm("m", text(kMaxValue)));
  for (int i = 0; i < 5; ++i)
    data(201, "POST", path, alarm("n" + std::to_string(i), text(600'000)));

  std::size_t found = 0;
  int pages = 0;
  std::string query;
  for (bool goes_on = true; goes_on; ++pages) {
    const Reply reply = ask("GET", path + query);
    ASSERT_EQ(reply.status, 200);
    EXPECT_LT(reply.body.size(), (std::size_t{1} << 20) + kMaxValue + 1000);
    const Json page = parse_json(reply.body).value()["data"];
    found += page["alarms"].size();
    goes_on = !page["next"].is_null();
    if (goes_on) query = "?cursor=" + page["next"].get<std::string>();
  }
  EXPECT_EQ(found, 6U);
  EXPECT_EQ(pages, 4);
  EXPECT_EQ(data(200, "GET", path + "?limit=1")["alarms"].size(), 1U);
  for (const char* wrong : {"?limit=0", "?limit=1001", "?cursor=x"})
    EXPECT_EQ(data(400, "GET", path + wrong), "invalid_argument") << wrong;
}

// A document around the arguments is deeper than they are.
TEST_F(ObjectAlarmsTest, ArgumentsAsDeepAsABodyCanHaveThemAreSetAndShown) {
  start();
  const std::string path = "/objects/counter/a/alarms";
  constexpr std::size_t kDeepest = kMaxJsonDepth - 1;  // the body is one level
  EXPECT_EQ(data(400, "POST", path, alarm("m", nested(kDeepest + 1))), "invalid_argument");
  EXPECT_EQ(data(404, "GET", path), "object_not_found") << "what is refused is not done";
  for (const std::size_t levels : {kDeepest, kDeepest - 1}) {
    EXPECT_EQ(ask("POST", path, alarm("m", nested(levels))).status, 201) << levels;
    EXPECT_TRUE(answers(ask("GET", path), 200, "\"args\":" + nested(levels))) << levels;
  }
  // A value that is no array is put into an array, as the only argument.
  const std::string object = R"({"k":)" + nested(kDeepest - 1) + "}";
  EXPECT_EQ(ask("POST", path, alarm("m", object)).status, 201);
  EXPECT_EQ(ask("GET", path).status, 200);
}

}  // namespace
}  // namespace hearth::testing
