#include "api/http_api.hpp"

#include "api/api_fixture.hpp"
#include "support/exposition.hpp"

#include <atomic>

namespace hearth::api::testing {
namespace {

class HttpApiTest : public ApiFixture {};

TEST_F(HttpApiTest, IsHealthyInEveryPhase) {
  start();
  for (const auto phase :
       {Readiness::Phase::kStarting, Readiness::Phase::kReady, Readiness::Phase::kStopping}) {
    readiness_.set(phase);
    EXPECT_EQ(answer_of(get("/healthz")), R"(200 {"status":"ok"})");
  }
}

TEST_F(HttpApiTest, IsReadyWhenItIs) {
  std::atomic<bool> is_lost = false;
  std::atomic<bool> is_full = false;
  readiness_.watch([&is_lost] { return is_lost.load(); }, [&is_full] { return is_full.load(); });
  const Reply ready = get("/readyz?verbose");
  EXPECT_EQ(
      answer_of(ready),
      R"(200 {"classes":["broken","counter","room","sampler"],"status":"ready","storage":"ok"})");
  is_full = true;
  EXPECT_EQ(get("/readyz").status, 200) << "what is stored is served";
  EXPECT_TRUE(get("/readyz").body.ends_with(R"("storage":"full"})"));
  EXPECT_TRUE(contains(ready.head, "Cache-Control: no-store\r\n"));

  readiness_.set(Readiness::Phase::kStarting);
  EXPECT_EQ(answer_of(get("/readyz")), R"(503 {"status":"starting"})");
  is_lost = true;
  EXPECT_EQ(get("/readyz").body, R"({"status":"starting"})");
  readiness_.set(Readiness::Phase::kReady);
  EXPECT_EQ(answer_of(get("/readyz")), R"(503 {"status":"data_lost"})");
  readiness_.set(Readiness::Phase::kStopping);
  EXPECT_EQ(answer_of(get("/readyz")), R"(503 {"status":"stopping"})");
}

TEST_F(HttpApiTest, SaysAtItsRootWhatItIs) {
  const Reply reply = get("/");
  EXPECT_EQ(reply.status, 200);
  EXPECT_TRUE(contains(reply.head, "Content-Type: text/plain"));
  EXPECT_TRUE(contains(reply.body, "/agents/{class}/{name}"));
}

TEST_F(HttpApiTest, ShowsTheMetricsInTheirTextFormat) {
  start(2);
  auto client = greet("/agents/counter/secret-name");
  client.call("id");
  const Reply reply = get("/metrics");
  EXPECT_EQ(reply.status, 200);
  EXPECT_TRUE(contains(reply.head, "Content-Type: text/plain; version=0.0.4",
                       "Cache-Control: no-store\r\n"));
  const hearth::testing::Exposition seen(reply.body);
  ASSERT_EQ(seen.mistake(), "") << reply.body;
  EXPECT_EQ(seen.value("hearth_live_agents", {{"class", "Counter"}}), 1);
  EXPECT_EQ(seen.value("hearth_connections"), 1);
  EXPECT_EQ(seen.sum("hearth_events_total", {{"kind", "call"}}), 1);
  EXPECT_EQ(seen.sum("hearth_event_duration_seconds_count"), 2) << "the connect and the call";
  EXPECT_TRUE(lacks(reply.body, "secret-name"));
}

TEST_F(HttpApiTest, AnswersHeadLikeGetAndOtherMethodsWith405) {
  for (const std::string_view path : {"/", "/healthz", "/readyz", "/metrics"}) {
    EXPECT_EQ(ask(http("HEAD", path), false).status, 200) << path;
    for (const std::string_view method : {"POST", "DELETE", "OPTIONS"}) {
      const Reply reply = ask(http(method, path));
      EXPECT_EQ(reply.status, 405) << method << path;
      EXPECT_TRUE(contains(reply.head, "Allow: GET, HEAD\r\n"));
    }
  }
}

TEST_F(HttpApiTest, AnswersEverythingElseWith404) {
  for (const std::string_view path :
       {"/nothing", "/healthz/x", "//healthz", "/AGENTS/sampler/a", "*"}) {
    EXPECT_EQ(answer_of(get(path)),
              R"(404 {"error":{"code":"not_found","message":"there is nothing at this path"}})")
        << path;
  }
}

TEST_F(HttpApiTest, WhatTheNetworkRefusesBelowObjectsHasTheShapeOfErrorsThere) {
  net_options_.max_body = 1000;
  start();
  struct Case {
    std::string path, header, body;
    int status;
    std::string expected;  // of the body, its beginning
  };
  const std::string flat = R"({"success":false,"error":")";
  const std::string nested = R"({"error":{"code":")";
  const Case cases[] = {
      {"/objects/counter/a/call", "Content-Length: 1001\r\n", "", 413, flat},
      {"/objects?limit=1", "Content-Length: 1001\r\n", "", 413, flat},
      {"/objects/counter/a/call", "Transfer-Encoding: chunked\r\n", "no chunk\r\n", 400, flat},
      {"/agents/counter/a", "Content-Length: 1001\r\n", "", 413, nested},
      {"/objectsx", "Content-Length: 1001\r\n", "", 413, nested},
  };
  for (const Case& each : cases) {
    SCOPED_TRACE(each.path);
    RawClient client(port());
    client.send("POST " + each.path + " HTTP/1.1\r\nHost: test\r\n" + each.header + "\r\n" +
                each.body);
    const Reply reply = client.read_reply();
    EXPECT_EQ(reply.status, each.status);
    EXPECT_TRUE(reply.body.starts_with(each.expected)) << reply.body;
    const bool is_flat = each.expected == flat;
    EXPECT_EQ(reply.body.find(R"(","code":")") != std::string::npos, is_flat) << reply.body;
  }
}

TEST_F(HttpApiTest, AForeignPageIsRefusedBelowObjectsInTheShapeOfErrorsThere) {
  start();
  api().serve_only(OriginRules(false, {}, {}));
  const Reply reply =
      ask(http("POST", "/objects/counter/a/call", "Origin: https://evil.example\r\n"));
  EXPECT_EQ(reply.status, 403);
  EXPECT_TRUE(reply.body.starts_with(R"({"success":false,"error":")")) << reply.body;
}

}  // namespace
}  // namespace hearth::api::testing
