#include "net/outbound_http.hpp"

#include "net/outbound_fixture.hpp"

#include <algorithm>

namespace hearth::net {
namespace {

class OutboundHttpTest : public OutboundFixture {};

bool has_text(const std::string& text, std::string_view part) {
  return text.find(part) != std::string::npos;
}

TEST_F(OutboundHttpTest, ARequestIsAnswered) {
  OutboundRequest request = to("/echo?a=b#fragment");
  request.headers = {{"X-Agent", "one"}, {"x-empty", ""}};
  request.secret_headers = {{"authorization", "Bearer key"}};
  const auto heard = finish(std::move(request));
  EXPECT_FALSE(heard->failure);
  ASSERT_TRUE(heard->head);
  EXPECT_EQ(heard->head->status, 200);
  EXPECT_EQ(heard->head->http_version, "1.1");
  EXPECT_EQ(heard->head->url, provider_.http_url("/echo?a=b"));
  EXPECT_EQ(find_header(heard->head->headers, "content-type"), "application/json");
  for (const char* part :
       {R"("method":"GET")", R"("url":"/echo?a=b")", R"("x-agent":"one")", R"("x-empty":"")",
        R"("authorization":"Bearer key")", R"("body":"")", R"("accept-encoding":"gzip, deflate")"})
    EXPECT_TRUE(has_text(heard->body, part)) << part << " in " << heard->body;
  for (const char* part : {"expect", "content-length", "content-type", "user-agent", "cookie"})
    EXPECT_FALSE(has_text(heard->body, part)) << part << " in " << heard->body;
}

TEST_F(OutboundHttpTest, APartIsAskedForAsItIs) {
  OutboundRequest request = to("/echo");
  request.headers = {{"range", "bytes=5-"}};
  const auto heard = finish(std::move(request));
  EXPECT_FALSE(heard->failure);
  EXPECT_TRUE(has_text(heard->body, R"("accept-encoding":"identity")")) << heard->body;
}

TEST_F(OutboundHttpTest, ABodyIsSentWithItsLength) {
  for (const std::size_t size : {0UL, 5UL, 70'000UL, 3'000'000UL}) {
    for (const char* method : {"POST", "PUT", "PATCH", "DELETE"}) {
      OutboundRequest request = to("/echo");
      request.method = method;
      request.body = std::string(size, 'q');
      request.credit = 4'000'000;
      const auto heard = finish(std::move(request));
      ASSERT_FALSE(heard->failure) << heard->failure->message;
      EXPECT_TRUE(has_text(heard->body, "\"method\":\"" + std::string(method) + "\""));
      EXPECT_TRUE(has_text(heard->body, "\"body\":\"" + std::string(size, 'q') + "\"")) << size;
      const bool says_length = size > 0 || std::string_view(method) != "DELETE";
      EXPECT_EQ(has_text(heard->body, "\"content-length\":\"" + std::to_string(size) + "\""),
                says_length)
          << method << size;
      EXPECT_FALSE(has_text(heard->body, "content-type")) << "none was given";
    }
  }
}

TEST_F(OutboundHttpTest, HeadHasNoBody) {
  OutboundRequest request = to("/bytes?n=10");
  request.method = "HEAD";
  const auto heard = finish(std::move(request));
  EXPECT_FALSE(heard->failure);
  EXPECT_EQ(find_header(heard->head->headers, "content-length"), "10");
  EXPECT_EQ(heard->body, "");
}

TEST_F(OutboundHttpTest, EveryStatusIsAnAnswer) {
  for (const int status : {201, 204, 302, 404, 429, 500, 503}) {
    const auto heard = finish(to("/status?code=" + std::to_string(status) + "&retry_after=7"));
    EXPECT_FALSE(heard->failure);
    EXPECT_EQ(heard->head->status, status);
    EXPECT_EQ(find_header(heard->head->headers, "Retry-After"), "7");
  }
}

TEST_F(OutboundHttpTest, InterimHeadsAreSkipped) {
  const auto heard = finish(to("/early-hints"));
  EXPECT_FALSE(heard->failure);
  EXPECT_EQ(heard->head->status, 200);
  EXPECT_EQ(find_header(heard->head->headers, "link"), std::nullopt);
  EXPECT_EQ(heard->body, "after the hints");
}

TEST_F(OutboundHttpTest, EventsComeAsTheyAreSent) {
  const auto heard = start(to("/sse?events=3&every_ms=20"));
  run_until([&] { return has_text(heard->body, "event 0"); });
  EXPECT_FALSE(heard->ended);
  EXPECT_FALSE(has_text(heard->body, "event 2"));
  run_until([&] { return heard->ended; });
  EXPECT_TRUE(has_text(heard->body, "event 2"));
  EXPECT_GE(heard->pieces, 2);
}

TEST_F(OutboundHttpTest, AModelsAnswerIsStreamed) {
  OutboundRequest request = get(provider_.https_url("/v1/chat/completions"));
  request.method = "POST";
  request.headers = {{"content-type", "application/json"}, {"idempotency-key", "k1"}};
  request.body = R"({"stream":true,"messages":[{"role":"user","content":"good day"}]})";
  const auto heard = finish(std::move(request));
  ASSERT_FALSE(heard->failure) << heard->failure->message;
  EXPECT_TRUE(has_text(heard->body, R"("content":"good ")")) << heard->body;
  EXPECT_TRUE(heard->body.ends_with("data: [DONE]\n\n"));
  EXPECT_EQ(ask("/counts"), R"({"k1":1})");
}

TEST_F(OutboundHttpTest, P6_CompressedBodiesAreDecoded) {
  struct Case {
    const char* query;
    const char* body;
  };
  for (const auto& [query, body] : std::vector<Case>{
           {"", "hello"},
           {"as=X-GZip", "hello"},
           {"text=twice&members=2", "twicetwice"},
           {"text=", ""},
           {"as=deflate&made=deflate", "hello"},
           {"as=deflate&made=raw", "hello"},
           {"as=deflate&made=raw&tail=1234", "hello"},  // where a checksum would be
           {"as=identity,%20gzip", "hello"},
           {"as=identity&keep=0", ""},
           {"keep=0", ""},
           {"as=br&made=br&keep=0", ""},
       }) {
    const auto heard = finish(to("/packed?" + std::string(query)));
    EXPECT_FALSE(heard->failure) << query << heard->failure->message;
    EXPECT_EQ(heard->body, body) << query;
  }
  OutboundRequest head = to("/packed?as=br&made=br");
  head.method = "HEAD";
  EXPECT_FALSE(finish(head)->failure) << "it has no body to decode";
}

TEST_F(OutboundHttpTest, WhatIsWrongIsSaidAtOnce) {
  struct Case {
    const char* what;
    std::function<void(OutboundRequest&)> make;
    const char* message;
  };
  const auto header = [](std::string name, std::string value) {
    return [=](OutboundRequest& request) { request.headers = {{name, value}}; };
  };
  const auto url = [](std::string text) {
    return [=](OutboundRequest& request) { request.url = text; };
  };
  const std::vector<Case> cases = {
      {"no method", [](OutboundRequest& r) { r.method = ""; }, "the method is not valid"},
      {"spaces", [](OutboundRequest& r) { r.method = "GET /"; }, "the method is not valid"},
      {"CONNECT", [](OutboundRequest& r) { r.method = "CONNECT"; }, "the method is not valid"},
      {"TRACE", [](OutboundRequest& r) { r.method = "Trace"; }, "the method is not valid"},
      {"TRACK", [](OutboundRequest& r) { r.method = "TRACK"; }, "the method is not valid"},
      {"HEAD", [](OutboundRequest& r) { r.method = "HEAD", r.body = "x"; }, "HEAD has no body"},
      {"scheme", url("ftp://a.example/"), "the URL is not http or https"},
      {"file", url("file:///etc/passwd"), "the URL is not http or https"},
      {"no scheme", url("a.example/"), "the URL is not valid"},
      {"user", url("http://user:key@a.example/"), "the URL has a user or a password"},
      {"header name", header("a b", "c"), "a header's name is not valid"},
      {"line feed", header("a", "b\r\nc: d"), "the value of the header a is not valid"},
      {"zero", header("a", std::string("b\0c", 3)), "the value of the header a is not valid"},
      {"own", header("Content-Length", "3"), "the header Content-Length is set by the host"},
      {"own", header("Host", "b.example"), "the header Host is set by the host"},
      {"own", header("transfer-encoding", "x"), "the header transfer-encoding is set by the host"},
      {"own", header("Proxy-Authorization", "x"),
       "the header Proxy-Authorization is set by the host"},
      {"secret", [](OutboundRequest& r) { r.secret_headers = {{"k", "hush\n"}}; },
       "the value of the header k is not valid"},
      {"proxy", [](OutboundRequest& r) { r.proxy = "socks5://a:1"; },
       "the proxy is not \"http://[user:password@]host:port\""},
  };
  for (const Case& one : cases) {
    OutboundRequest request = to("/echo");
    one.make(request);
    Heard heard;
    const auto started = http_->start(std::move(request), heard);
    EXPECT_EQ(started.error().code, Errc::kInvalidArgument) << one.what;
    EXPECT_EQ(started.error().message, one.message) << one.what;
  }
  EXPECT_EQ(http_->running(), 0U);
}

TEST_F(OutboundHttpTest, SoManyRunAndNoMore) {
  options_.max_exchanges = 2;
  make_client();
  auto first = start(to("/never"));
  const auto second = start(to("/echo"));
  EXPECT_EQ(http_->running(), 2U);
  Heard third;
  EXPECT_EQ(http_->start(to("/echo"), third).error().code, Errc::kLimitExceeded);
  run_until([&] { return second->ended; });
  EXPECT_EQ(http_->running(), 1U) << "one that has ended does not count";
  first->cancel();
  EXPECT_EQ(http_->running(), 0U);
}

TEST_F(OutboundHttpTest, ConnectionsAreUsedAgain) {
  for (int i = 0; i < 5; ++i) EXPECT_FALSE(finish(to("/echo"))->failure);
  for (int i = 0; i < 5; ++i) EXPECT_FALSE(finish(get(provider_.https_url("/echo")))->failure);
  EXPECT_EQ(stat("http"), 1);
  EXPECT_EQ(stat("https"), 1);
}

TEST_F(OutboundHttpTest, AConnectionThatClosedMeanwhileIsNotMissed) {
  for (int i = 0; i < 3; ++i) {
    const auto heard = finish(to("/close-idle"));
    EXPECT_FALSE(heard->failure);
    EXPECT_EQ(heard->body, "closed");
  }
}

TEST_F(OutboundHttpTest, FewIdleConnectionsAreKept) {
  std::vector<std::unique_ptr<Heard>> all;
  for (int i = 0; i < 60; ++i) all.push_back(start(to("/slow-head?ms=200")));
  run_until([&] { return std::ranges::all_of(all, [](const auto& one) { return one->ended; }); });
  run_until([&] { return stat("open") <= 33; });
}

TEST_F(OutboundHttpTest, Http2IsSpokenWhenItIsAskedFor) {
  OutboundRequest request = get(provider_.https_url("/echo"));
  request.http2 = true;
  request.method = "POST";
  request.body = "two";
  const auto heard = finish(request);
  ASSERT_FALSE(heard->failure) << heard->failure->message;
  EXPECT_EQ(heard->head->http_version, "2");
  EXPECT_TRUE(has_text(heard->body, R"("body":"two")")) << heard->body;
  request.http2 = false;
  EXPECT_EQ(finish(request)->head->http_version, "1.1") << "not on the kept connection";
  request.http2 = true;
  request.url = provider_.http_url("/echo");
  EXPECT_EQ(finish(request)->head->http_version, "1.1") << "not in the clear";
}

TEST_F(OutboundHttpTest, EachHttp2StreamHasAConnection) {
  OutboundRequest request = get(provider_.https_url("/endless"));
  request.http2 = true;
  request.credit = 0;
  auto held = start(request);
  run_until([&] { return held->head.has_value(); });
  request.url = provider_.https_url("/bytes?n=60000000");
  request.credit = 100'000'000;
  const auto heard = finish(request);
  EXPECT_FALSE(heard->failure);
  EXPECT_EQ(heard->body.size(), 60'000'000U);
  EXPECT_EQ(stat("https"), 2) << "a connection each";
  held->cancel();
}

TEST_F(OutboundHttpTest, ManyStreamsRunOnOneLoop) {
  std::vector<std::unique_ptr<Heard>> all;
  for (int i = 0; i < 1000; ++i) all.push_back(start(to("/sse?events=3&every_ms=500")));
  EXPECT_EQ(http_->running(), 1000U);
  run_until([&] { return std::ranges::all_of(all, [](const auto& one) { return one->ended; }); });
  for (const auto& one : all) {
    EXPECT_FALSE(one->failure) << one->failure->message;
    EXPECT_TRUE(has_text(one->body, "event 2"));
  }
}

TEST_F(OutboundHttpTest, AFileOfAuthoritiesMustBeThere) {
  EXPECT_EQ(OutboundHttp::make(loop_, {.extra_ca_file = "/nonexistent.pem"}).error().message,
            "no certificates can be read from /nonexistent.pem");
}

TEST_F(OutboundHttpTest, TheEnvironmentsProxyIsNotUsed) {
  for (const char* name : {"http_proxy", "https_proxy", "ALL_PROXY"})
    ::setenv(name, "http://127.0.0.1:1", 1);
  const auto heard = finish(to("/echo"));
  for (const char* name : {"http_proxy", "https_proxy", "ALL_PROXY"}) ::unsetenv(name);
  EXPECT_FALSE(heard->failure);
}

TEST_F(OutboundHttpTest, CookiesAreNotKept) {
  OutboundRequest request = to("/echo");
  request.headers = {{"cookie", "own=1"}};
  EXPECT_TRUE(has_text(finish(request)->body, R"("cookie":"own=1")"));
  EXPECT_FALSE(has_text(finish(to("/echo"))->body, "cookie"));
}

}  // namespace
}  // namespace hearth::net
