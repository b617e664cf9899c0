// The proved identity of a client, as an agent's code sees it.

#include "one_agent.hpp"

#include <gtest/gtest.h>

namespace {

using hearth::Json;

class Reads : public hearth::Agent {
 public:
  static void methods(hearth::Methods<Reads>& m) {
    m.add("who", &Reads::who);
    m.add("who_later", &Reads::who_later);
  }
  Json who() { return caller_claims(); }
  hearth::Task<Json> who_later() {
    co_await sleep(std::chrono::seconds(1));
    seen = caller_claims();
    co_return seen;
  }
  Json seen;
  void on_connecting(hearth::Connecting& client) override {
    if (client.claims().is_object() && client.claims().contains("banned")) client.refuse();
  }
  hearth::Task<void> on_message(hearth::Connection client, hearth::Message message) override {
    if (message.text() == "later") {
      co_await sleep(std::chrono::seconds(1));
      seen = caller_claims();
      co_return;
    }
    client.send(client.claims());
  }
  hearth::Task<hearth::Response> on_request(const hearth::Request& request) override {
    co_return hearth::Response::json(request.claims());
  }
};

class ClaimsTest : public OneAgent<Reads> {};

TEST_F(ClaimsTest, AreThoseThatTheServerHasVerifiedAndOutliveTheInstance) {
  auto known = agent_.connect({}, {}, {}, {{"sub", "u1"}});
  auto unknown = agent_.connect();
  agent_.evict();
  known.send("who am I?");
  unknown.send("who am I?");
  EXPECT_EQ(hearth::parse_json(known.received().back().payload), (Json{{"sub", "u1"}}));
  EXPECT_EQ(hearth::parse_json(unknown.received().back().payload), Json());
  EXPECT_TRUE(agent_.connect({}, {}, {}, {{"banned", true}}).closed());
}

TEST_F(ClaimsTest, ComeWithARequestToo) {
  EXPECT_EQ(agent_.request("GET", "/", "", {}, {{"sub", "u1"}}).body, R"({"sub":"u1"})");
  EXPECT_EQ(agent_.request("GET", "/").body, "null");
}

TEST_F(ClaimsTest, ComeWithACallThroughAConnectionAndWithout) {
  EXPECT_EQ(agent_.start_as({{"sub", "u1"}}, "who").value(), (Json{{"sub", "u1"}}));
  EXPECT_EQ(agent_.call("who"), Json());
  EXPECT_EQ(agent_.connect({}, {}, {}, {{"sub", "u2"}}).call("who"), (Json{{"sub", "u2"}}));
  EXPECT_EQ(agent_.connect().call("who"), Json());
}

TEST_F(ClaimsTest, StayWithACallOrAMessageWhoseClientHasGone) {
  for (const bool is_call : {true, false}) {
    agent_.as<Reads>().seen = nullptr;
    auto client = agent_.connect({}, {}, {}, {{"sub", "u1"}});
    if (is_call)
      static_cast<void>(client.start("who_later"));
    else
      client.send("later");
    client.close();
    host_.advance(std::chrono::seconds(1));
    EXPECT_EQ(agent_.as<Reads>().seen, (Json{{"sub", "u1"}})) << (is_call ? "a call" : "a message");
  }
}

}  // namespace
