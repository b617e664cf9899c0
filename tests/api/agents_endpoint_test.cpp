#include "api/agents_endpoint.hpp"

#include "api/api_fixture.hpp"

#include <atomic>
#include <set>

namespace hearth::api::testing {
namespace {

class AgentsEndpointTest : public ApiFixture {};

// ---- classes that are not loaded now ------------------------------------------------------------

class AbsentClassTest : public AgentsEndpointTest {
 protected:
  void expect_clients_are_to_come_back(const std::string& segment) {
    const std::string target = "/agents/" + segment + "/a";
    const Reply reply = get(target);
    EXPECT_EQ(answer_of(reply), R"(503 {"error":{"code":"unavailable","message":"agent class \")" +
                                    segment + R"(\" is not loaded now: try again"}})");
    EXPECT_TRUE(contains(reply.head, "Retry-After: 1\r\n"));
    EXPECT_EQ(ask(RawClient::upgrade_text(target)).status, 503);
  }
};

TEST_F(AbsentClassTest, ClientsOfARemovedClassComeBackAlsoWhenNobodyAwaitsItAnyMore) {
  start();
  const auto served = runtime_->classes().remove("sampler");
  expect_clients_are_to_come_back("sampler");
  runtime_->classes().give_up("sampler");
  expect_clients_are_to_come_back("sampler");
  runtime_->classes().put(served);
  EXPECT_EQ(get("/agents/sampler/a/teapot").status, 418);
  EXPECT_TRUE(contains(connect("/agents/sampler/a").read_text(), "cf_agent_identity"));
}

TEST_F(AbsentClassTest, ClientsOfAnExpectedClassThatWasNeverLoadedComeBack) {
  start();
  runtime_->classes().expect("hoped-for");
  expect_clients_are_to_come_back("hoped-for");
  EXPECT_EQ(close_code("/agents/hoped/a"), 4404) << "others are told to stop";
}

// ---- sockets ------------------------------------------------------------------------------------

TEST_F(AgentsEndpointTest, StopsClientsOfAClassThatIsNotThere) {
  const Frame frame = first_frame("/agents/nobody/a");
  EXPECT_EQ(frame.close_code(), 4404);
  EXPECT_EQ(frame.close_reason(), R"(no agent class "nobody" is loaded)");
}

TEST_F(AgentsEndpointTest, CutsALongClassInTheReason) {
  const Frame frame = first_frame("/agents/" + std::string(128, 'c') + "/a");
  EXPECT_EQ(frame.close_code(), 4404);
  EXPECT_TRUE(contains(frame.close_reason(), "is loaded"));
}

TEST_F(AgentsEndpointTest, StopsClientsOfNamesThatCannotBe) {
  for (const std::string& name :
       {std::string("a%00b"), std::string("%FF%FE"), std::string(".."), std::string("%2e%2E"),
        std::string("%0a"), std::string(257, 'n'), std::string(10'240, 'n')}) {
    EXPECT_EQ(close_code("/agents/sampler/" + name), 4400) << name;
  }
  EXPECT_EQ(close_code("/agents/sampler"), 4400);
  EXPECT_EQ(close_code("/agents/%00/a"), 4400);
}

TEST_F(AgentsEndpointTest, TakesTheLongestName) {
  const std::string name(256, 'n');
  Client client = connect("/agents/sampler/" + name);
  EXPECT_TRUE(contains(client.read_text(), name));
}

TEST_F(AgentsEndpointTest, StopsClientsOfAnotherTransport) {
  EXPECT_EQ(close_code("/agents/sampler/a?_pk=1&__agents_transport=capnweb"), 1008);
}

TEST_F(AgentsEndpointTest, AnswersUpgradesElsewhereWith404) {
  for (const std::string_view target : {"/", "/healthz", "/Agents/sampler/a", "/elsewhere"}) {
    const Reply reply = ask(RawClient::upgrade_text(target));
    EXPECT_EQ(reply.status, 404) << target;
    EXPECT_EQ(error_code(reply), "not_found");
  }
}

TEST_F(AgentsEndpointTest, SendsClientsAwayForAMomentWhileItStartsAndStops) {
  start();
  for (const auto phase : {Readiness::Phase::kStarting, Readiness::Phase::kStopping}) {
    readiness_.set(phase);
    for (const std::string& request :
         {RawClient::upgrade_text("/agents/sampler/a"), RawClient::upgrade_text("/agents/nobody/a"),
          http("GET", "/agents/sampler/a"), http("GET", "/agents/nobody/a")}) {
      const Reply reply = ask(request);
      EXPECT_EQ(reply.status, 503);
      EXPECT_EQ(error_code(reply), "unavailable");
      EXPECT_TRUE(contains(reply.head, "Retry-After: 1\r\n"));
    }
  }
}

TEST_F(AgentsEndpointTest, TakesTheClientsIdAndMakesOneForThoseWithout) {
  const auto id_of = [this](const std::string& target) {
    auto client = greet(target);
    const std::string answer = client.call("id");
    const std::size_t at = answer.find(R"("result":")") + 10;
    return answer.substr(at, answer.find('"', at) - at);
  };
  EXPECT_EQ(id_of("/agents/sampler/a?_pk=my%20id&x=1"), "my id");
  const std::string made = id_of("/agents/sampler/a");
  EXPECT_EQ(made.size(), 36U);
  EXPECT_NE(made, id_of("/agents/sampler/a"));
  EXPECT_EQ(id_of("/agents/sampler/a?_pk=").size(), 36U);
  EXPECT_EQ(id_of("/agents/sampler/a?_pk=%00").size(), 36U);
  EXPECT_EQ(id_of("/agents/sampler/a?_pk=" + std::string(129, 'i')).size(), 36U);
}

TEST_F(AgentsEndpointTest, ShowsTheAgentTheUpgradeAsItWasSent) {
  serve("Looker", [](HostCalls& host, const AgentEvent& event) -> Result<void> {
    if (event.kind == EventKind::kConnect) {
      const extensions::Client* client = host.find_connection(event.connection);
      const std::string* cookie = runtime::find_header(client->headers, "cookie");
      const std::string* spoofed =
          runtime::find_header(client->headers, "x-agents-lifecycle-props");
      (void)host.send(event.connection, FrameKind::kText,
                      std::string(event.name) + " " + (cookie == nullptr ? "-" : *cookie) + " " +
                          (spoofed == nullptr ? "-" : *spoofed));
    }
    return nothing(host, event);
  });
  RawClient client(port());
  client.upgrade("/agents/looker/a/b%20c?x=%31",
                 "Cookie: k=v\r\nX-Agents-Lifecycle-Props: e30=\r\n");
  client.read_text();  // identity
  client.read_text();  // MCP servers
  EXPECT_EQ(client.read_text(), "/agents/looker/a/b%20c?x=%31 k=v -");
}

// ---- agents below agents ------------------------------------------------------------------------

TEST_F(AgentsEndpointTest, LeavesAllOtherPathsBelowAnAgentToIt) {
  for (const std::string path : {"/sub/counter", "/sub/counter/", "/sub/nobody/a", "/sub",
                                 "/counter/sub/a", "/subs/counter/a", "/SUB/counter/a",
                                 "/%73ub/counter/a", "/sub/Counter/a", "/leaf?/sub/counter/a"}) {
    const std::string target = "/agents/sampler/a" + path;
    EXPECT_TRUE(contains(connect(target).read_text(), R"("agent":"sampler")")) << target;
  }
  EXPECT_EQ(get("/agents/sampler/sub/counter/teapot").status, 418) << "sub is a name like another";
}

// ---- requests -----------------------------------------------------------------------------------

TEST_F(AgentsEndpointTest, HandsEveryMethodToTheAgent) {
  for (const std::string_view method :
       {"GET", "POST", "PUT", "DELETE", "PATCH", "OPTIONS", "PURGE"}) {
    const Reply reply = ask(http(method, "/agents/sampler/a/echo", "", "body"));
    EXPECT_EQ(answer_of(reply), "200 body") << method;
    EXPECT_TRUE(contains(reply.head, "X-Method: " + std::string(method) + "\r\n"));
  }
  const Reply head = ask(http("HEAD", "/agents/sampler/a/teapot"), false);
  EXPECT_EQ(head.status, 418);
  EXPECT_TRUE(contains(head.head, "Content-Length: 15\r\n"));
}

TEST_F(AgentsEndpointTest, HandsBodiesAndHeadersToTheAgentWhole) {
  const std::string body(200'000, 'b');
  EXPECT_EQ(ask(http("POST", "/agents/sampler/a/echo", "", body)).body, body);
  EXPECT_EQ(ask(http("GET", "/agents/sampler/a/header", "X-Ask: 7\r\n")).body, "7");
}

TEST_F(AgentsEndpointTest, LendsTheBodyUntilTheEventIsOverEvenIfTheAnswerLeftBefore) {
  start(2);
  for (const std::string_view name : {"a", "b", "c", "d"}) {
    const std::string target = "/agents/sampler/" + std::string(name) + "/early";
    EXPECT_EQ(ask(http("POST", target, "", std::string(100'000, 'b'))).body, "early");
  }
}

TEST_F(AgentsEndpointTest, RefusesAddressesThatNameNoAgent) {
  const auto refused = [this](const std::string& target, int status, std::string_view code) {
    const Reply reply = get(target);
    EXPECT_EQ(reply.status, status) << target;
    EXPECT_EQ(error_code(reply), code) << target;
    EXPECT_TRUE(contains(reply.head, "Content-Type: application/json\r\n"));
  };
  refused("/agents", 404, "not_found");
  refused("/agents/", 404, "not_found");
  refused("/agents/sampler", 404, "not_found");
  refused("/agents/sampler/", 404, "not_found");
  refused("/agents/nobody/a", 400, "unknown_class");
  refused("/agents/sampler/..", 400, "invalid_argument");
  refused("/agents/sampler/a%00b", 400, "invalid_argument");
  refused("/agents/sampler/%FF", 400, "invalid_argument");
  refused("/agents/sampler/" + std::string(10'240, 'n'), 400, "invalid_argument");
  refused("/agents/%01/a", 400, "invalid_argument");
}

TEST_F(AgentsEndpointTest, TellsWhyAClassMayNotRunAndNamesItNotAsReady) {
  start();
  auto refused = std::make_shared<runtime::ServedClass>(*runtime_->classes().find("sampler"));
  refused->refusal = "it rests";
  runtime_->classes().put(std::move(refused));
  const std::string text = R"({"error":{"code":"unavailable","message":"it rests"}})";
  const Reply reply = get("/agents/sampler/a");
  EXPECT_EQ(reply.status, 503);
  EXPECT_EQ(reply.body, text);
  EXPECT_EQ(ask(RawClient::upgrade_text("/agents/sampler/a")).status, 503);
  EXPECT_TRUE(lacks(get("/readyz").body, "sampler"));
}

TEST_F(AgentsEndpointTest, NamesNoClassesToThoseWhoAskForAnotherOne) {
  const Reply reply = get("/agents/no%22body/a");
  EXPECT_EQ(
      reply.body,
      R"({"error":{"code":"unknown_class","message":"no agent class \"no%22body\" is loaded"}})");
}

TEST_F(AgentsEndpointTest, AnswersForAnAgentThatCannotStart) {
  const Reply reply = get("/agents/broken/a");
  EXPECT_EQ(reply.status, 503);
  EXPECT_EQ(error_code(reply), "unavailable");
}

TEST_F(AgentsEndpointTest, AnswersWhenTheRuntimeHasStopped) {
  start();
  stop_runtime();
  const Reply reply = get("/agents/sampler/a");
  EXPECT_EQ(reply.status, 503);
  EXPECT_EQ(error_code(reply), "closing");
}

TEST_F(AgentsEndpointTest, DeliversRequestsOnTheLoopOfTheAgent) {
  start(2);
  serve("Where", [this](HostCalls& host, const AgentEvent& event) -> Result<void> {
    if (event.kind != EventKind::kRequest) return nothing(host, event);
    const std::string loop = std::to_string(current_loop().value_or(9));
    return host.complete(event.call, std::string_view(loop));
  });
  std::set<std::string> seen;
  for (const char name : {'a', 'b', 'c', 'd', 'e', 'f', 'g', 'h'}) {
    const storage::AgentKey key{"Where", std::string(1, name)};
    for (int i = 0; i < 3; ++i) {
      const Reply reply = get("/agents/where/" + key.name);
      EXPECT_EQ(reply.body, std::to_string(runtime_->shard_index(key)));
      seen.insert(reply.body);
    }
  }
  EXPECT_EQ(seen.size(), 2U) << "the names do not cover both loops";
}

TEST_F(AgentsEndpointTest, SharesOneAgentBetweenRequestsAndSockets) {
  start(2);
  serve("Tally", [](HostCalls& host, const AgentEvent& event) -> Result<void> {
    if (event.kind == EventKind::kRequest) (void)host.set_state(0, event.body);
    return nothing(host, event);
  });
  auto client = greet("/agents/tally/a");
  EXPECT_EQ(ask(http("POST", "/agents/tally/a", "", "[1]")).status, 200);
  EXPECT_EQ(client.read_text(), R"({"type":"cf_agent_state","state":[1]})");
}

TEST_F(AgentsEndpointTest, GoesOnWhenAClientHasLeft) {
  std::atomic<runtime::CallId> held = 0;
  start(2);
  std::promise<void> arrived;
  serve("Holder", [&](HostCalls& host, const AgentEvent& event) -> Result<void> {
    if (event.kind != EventKind::kRequest) return nothing(host, event);
    if (event.body == "hold") {
      held = event.call;
      arrived.set_value();
      return {};
    }
    for (int i = 0; i < 3; ++i) (void)host.emit(held, "part");
    (void)host.complete(held, std::string_view("end"));
    return nothing(host, event);
  });
  {
    RawClient leaver(port());
    leaver.send(http("POST", "/agents/holder/a", "", "hold"));
    arrived.get_future().get();
    leaver.reset_on_close();
  }
  EXPECT_EQ(get("/agents/holder/a").status, 200);
  EXPECT_EQ(get("/healthz").status, 200);
}

// ---- aliases ------------------------------------------------------------------------------------

TEST_F(AgentsEndpointTest, AnAliasLeadsToTheSameAgentAndTheClientIsToldItsClass) {
  start(2);
  runtime_->classes().set_aliases({{"tally", "counter"}});
  auto own = greet("/agents/counter/a");
  Client alias = connect("/agents/tally/a");
  EXPECT_TRUE(contains(alias.read_text(), R"("name":"a","agent":"counter")"));
  alias.read_greeting();
  alias.say(R"({"type":"cf_agent_state","state":{"count":5}})");
  EXPECT_EQ(own.read_text(), R"({"type":"cf_agent_state","state":{"count":5}})");
}

TEST_F(AgentsEndpointTest, ARequestUnderAnAliasShowsTheTargetAsItWasSent) {
  serve("Looker", [](HostCalls& host, const AgentEvent& event) -> Result<void> {
    if (event.kind != EventKind::kRequest) return nothing(host, event);
    const std::string target(host.request(event.call)->target);
    return host.complete(event.call, std::string_view(target));
  });
  runtime_->classes().set_aliases({{"watcher", "looker"}});
  EXPECT_EQ(get("/agents/watcher/a?x=1").body, "/agents/watcher/a?x=1");
}

TEST_F(AbsentClassTest, ClientsOfAnAliasComeBackAsTheClassDoesAndStopWhenItIsNoAliasAnyMore) {
  start();
  runtime_->classes().set_aliases({{"taster", "sampler"}});
  EXPECT_EQ(get("/agents/taster/a/teapot").status, 418);
  const auto served = runtime_->classes().remove("sampler");
  expect_clients_are_to_come_back("taster");
  runtime_->classes().put(served);
  EXPECT_EQ(get("/agents/taster/a/teapot").status, 418);
  runtime_->classes().set_aliases({});
  EXPECT_EQ(get("/agents/taster/a").status, 400);
  EXPECT_EQ(close_code("/agents/taster/a"), 4404);
}

TEST_F(AgentsEndpointTest, AnAliasBelowAnAgentMeansASubAgentToo) {
  start();
  runtime_->classes().set_aliases({{"tally", "counter"}});
  const std::string identity = connect("/agents/sampler/a/sub/tally/b").read_text();
  EXPECT_TRUE(contains(identity, R"("agent":"counter")"));
}

}  // namespace
}  // namespace hearth::api::testing
