#include "api/agent_response.hpp"

#include "api/api_fixture.hpp"

#include <atomic>

namespace hearth::api::testing {
namespace {

class AgentResponseTest : public ApiFixture {};

TEST_F(AgentResponseTest, CarriesTheAgentsStatusAndHeaders) {
  const Reply reply = get("/agents/sampler/a/teapot");
  EXPECT_EQ(reply.status, 418);
  EXPECT_TRUE(contains(reply.head, "X-Kind: pot\r\n"));
  EXPECT_TRUE(lacks(reply.head, "service-worker-allowed"));
  EXPECT_EQ(reply.body, "short and stout");
}

TEST_F(AgentResponseTest, StreamsWhatComesInParts) {
  start(2);
  for (const std::string_view name : {"a", "b", "c", "d"}) {
    const Reply reply = get("/agents/sampler/" + std::string(name) + "/stream");
    EXPECT_EQ(reply.status, 201);
    EXPECT_TRUE(contains(reply.head, "chunked"));
    EXPECT_EQ(reply.body, "one two three four");
  }
}

TEST_F(AgentResponseTest, CutsTheConnectionWhenAStreamFails) {
  start();
  RawClient client(port());
  client.send(http("GET", "/agents/sampler/a/stream-fail"));
  const std::string all = client.read_to_end();
  EXPECT_TRUE(contains(all, "one "));
  EXPECT_TRUE(lacks(all, "\r\n0\r\n")) << "it looks complete";
  EXPECT_TRUE(lacks(all, "secret"));
  EXPECT_EQ(logger_.count("secret of the author"), 1U);
}

// A stream without an end, such as one of server-sent events, ends with its reader.
TEST_F(AgentResponseTest, LetsTheAgentKnowThatNobodyReadsAnyMore) {
  start(2);
  std::atomic<runtime::CallId> endless = 0;
  serve("Ticker", [&endless](HostCalls& host, const AgentEvent& event) -> Result<void> {
    if (event.kind != EventKind::kRequest) return nothing(host, event);
    if (event.name == "GET") {
      endless = event.call;
      return host.emit(event.call, "tick ");
    }
    const auto sent = host.emit(endless, "tick ");
    if (!sent) (void)host.complete(endless, std::string_view());
    return host.complete(event.call, std::string_view(sent ? "sent" : "left"));
  });
  for (const std::string_view name :
       {"a", "b", "c", "d"}) {  // on the client's loop and on another one
    const std::string target = "/agents/ticker/" + std::string(name);
    RawClient reader(port());
    reader.send(http("GET", target));
    reader.read_until("tick ");
    EXPECT_EQ(ask(http("POST", target)).body, "sent");
    reader.close();
    // Each part is a chance to notice.
    Reply reply;
    do {
      reply = ask(http("POST", target));
    } while (reply.body == "sent");
    EXPECT_EQ(reply.body, "left");
  }
}

TEST_F(AgentResponseTest, KeepsWhatFailedInsideTheAgentForTheLog) {
  const Reply reply = get("/agents/sampler/a/plugin");
  EXPECT_EQ(reply.status, 500);
  EXPECT_TRUE(reply.body.starts_with(
      R"({"error":{"code":"plugin_error","message":"the method failed (trace )"))
      << reply.body;
  EXPECT_EQ(logger_.count("secret of the author"), 1U) << "one failure is one line";
  EXPECT_EQ(logger_.count("agent.call_failed class=Sampler agent=a event_kind=request error="), 1U);
}

TEST_F(AgentResponseTest, TheLineOfAStreamThatFailedNamesItsCallAndTrace) {
  serve("Ticker", [](HostCalls& host, const AgentEvent& event) -> Result<void> {
    if (event.kind != EventKind::kRequest) return nothing(host, event);
    EXPECT_TRUE(host.emit(event.call, "tick "));
    return host.complete(event.call, Error{Errc::kForbidden, "enough"});
  });
  RawClient client(port());
  client.send(
      "GET /agents/ticker/a HTTP/1.1\r\nHost: t\r\nConnection: close\r\n"
      "traceparent: 00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01\r\n\r\n");
  client.read_to_end();
  const std::string line =
      "http.agent_failed class=Ticker agent=a code=forbidden error=enough call=";
  EXPECT_EQ(logger_.count(line), 1U);
  EXPECT_EQ(logger_.count(" method=GET trace=00-0af7651916cd43dd8448eb211c80319c-"), 1U);
}

TEST_F(AgentResponseTest, TellsTheClientWhatIsMeantForIt) {
  EXPECT_EQ(answer_of(get("/agents/sampler/a/invalid")),
            R"(400 {"error":{"code":"invalid_argument","message":"say it otherwise"}})");
  EXPECT_EQ(get("/agents/sampler/a/forbidden").status, 403);
  EXPECT_EQ(get("/agents/sampler/a/no-such-page").status, 404);
  const Reply busy = get("/agents/sampler/a/busy");
  EXPECT_EQ(busy.status, 503);
  EXPECT_TRUE(contains(busy.head, "Retry-After: 1\r\n"));
}

}  // namespace
}  // namespace hearth::api::testing
