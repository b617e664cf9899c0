// Objects whose server is killed between a commit and its answer.

#include "fault/fault_fixture.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <string_view>

namespace hearth::testing {
namespace {

class ObjectKillTest : public FaultTest {
 protected:
  ObjectKillTest() {
    install(bundled("counter"), "counter.so");
    put("classes/counter.yaml", "class: counter\nobjects: true\n");
  }

  static constexpr std::string_view kKey = "0123456789abcdef-of-objects";

  static std::string increment_once(const std::string& key) {
    return "POST /objects/counter/a/call/increment HTTP/1.1\r\nHost: localhost\r\n"
           "Idempotency-Key: " +
           key + "\r\nContent-Length: 2\r\n\r\n[]";
  }
};

TEST_F(ObjectKillTest, ACallThatWasCommittedAndNotAnsweredIsAnsweredByItsSecondTry) {
  auto server = serve_until("call.answer.committed");
  server->wait_until_ready();
  RawClient lost(server->port());
  lost.send(increment_once("k"));
  kill_where_it_stops(*server, "call.answer.committed");

  server = serve_ledgers();
  const Reply again = RawClient(server->port()).request(increment_once("k"));
  EXPECT_EQ(again.status, 200);
  EXPECT_EQ(again.body, R"({"success":true,"data":1,"result":1})");
  EXPECT_NE(again.head.find("Idempotency-Replayed: true"), std::string::npos) << again.head;
  EXPECT_EQ(RawClient(server->port()).request(increment_once("l")).body,
            R"({"success":true,"data":2,"result":2})")
      << "the call had run once";
  EXPECT_EQ(server->kill(), kKilled);
}

TEST_F(ObjectKillTest, O8_AHibernationThatIsKilledInItsMiddleLosesNothing) {
  for (const std::string point : {"object.hibernate.shut", "object.hibernate.closed"}) {
    SCOPED_TRACE(point);
    const std::string object = "/objects/counter/" + point;
    const auto ask = [](const ServerProcess& server, const std::string& method,
                        const std::string& path, const std::string& body) {
      return RawClient(server.port())
          .request(method + " " + path +
                   " HTTP/1.1\r\nHost: localhost\r\nX-Api-Key: " + std::string(kKey) +
                   "\r\nContent-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body);
    };
    put("key", std::string(kKey) + "\n");
    put("hearth.yaml", "log: {level: debug}\nobjects: {token_file: key}\n");
    auto server = serve_until(point);
    server->wait_until_ready();
    EXPECT_EQ(ask(*server, "POST", object + "/call/increment", "[7]").status, 200);
    std::string patch = "{";
    for (int i = 0; i < 100; ++i) patch += "\"k" + std::to_string(i) + "\":1,";
    patch.back() = '}';
    EXPECT_EQ(ask(*server, "PATCH", object + "/storage", patch).status, 200);
    RawClient lost(server->port());
    lost.send("POST " + object + "/hibernate HTTP/1.1\r\nHost: localhost\r\nX-Api-Key: " +
              std::string(kKey) + "\r\nContent-Length: 0\r\n\r\n");
    kill_where_it_stops(*server, point);

    server = serve_ledgers();
    const std::string shown = ask(*server, "GET", object + "?limit=1000", "").body;
    EXPECT_NE(shown.find(R"("status":"Hibernating")"), std::string::npos) << shown;
    for (const char* key : {R"("k0":1)", R"("k57":1)", R"("k99":1)"})
      EXPECT_NE(shown.find(key), std::string::npos) << key;
    EXPECT_EQ(ask(*server, "POST", object + "/call/get", "").body,
              R"({"success":true,"data":7,"result":7})");
    EXPECT_EQ(server->kill(), kKilled);
  }
}

TEST_F(ObjectKillTest, A5_AnAlarmThatHasRunAndIsNotMarkedRunsAgain) {
  auto server = serve_until("alarm.end.written");
  server->wait_until_ready();
  const std::string body = R"({"method":"increment","delay_seconds":0})";
  const std::string alarm =
      "POST /objects/counter/a/alarms HTTP/1.1\r\nHost: localhost\r\nContent-Length: " +
      std::to_string(body.size()) + "\r\n\r\n" + body;
  EXPECT_EQ(RawClient(server->port()).request(alarm).status, 201);
  kill_where_it_stops(*server, "alarm.end.written");

  server = serve_ledgers();
  server->wait_for_log("alarm:done class=Counter agent=a");
  EXPECT_EQ(RawClient(server->port()).request(increment_once("k")).body,
            R"({"success":true,"data":3,"result":3})")
      << "it ran twice";
  EXPECT_EQ(server->kill(), kKilled);

  // Marked is marked: a further start runs nothing.
  server = serve_until("alarm.end.committed");
  server->wait_until_ready();
  EXPECT_EQ(RawClient(server->port()).request(alarm).status, 201);
  kill_where_it_stops(*server, "alarm.end.committed");
  server = serve_ledgers();
  EXPECT_EQ(RawClient(server->port()).request(increment_once("l")).body,
            R"({"success":true,"data":5,"result":5})");
  EXPECT_EQ(server->kill(), kKilled);
}

}  // namespace
}  // namespace hearth::testing
