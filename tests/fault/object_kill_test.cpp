// Objects whose server is killed where it hurts: between what is committed and what is told.

#include "fault/fault_fixture.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <string>

namespace hearth::testing {
namespace {

class ObjectKillTest : public FaultTest {
 protected:
  ObjectKillTest() {
    install(bundled("counter"), "counter.so");
    put("classes/counter.yaml", "class: counter\nobjects: true\n");
  }

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
