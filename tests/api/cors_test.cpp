// Pages of other origins.
#include "api/cors.hpp"

#include "api/edge_fixture.hpp"

#include <chrono>

namespace hearth::api::testing {
namespace {

const std::string kApp = "Origin: https://app.example\r\n";
const std::string kPreflight = kApp +
                               "Access-Control-Request-Method: POST\r\n"
                               "Access-Control-Request-Headers: authorization, x-a\r\n";

bool has(const Reply& reply, const std::string& header) {
  return reply.head.find("\r\n" + header + "\r\n") != std::string::npos;
}

class CorsTest : public EdgeFixture {
 protected:
  void open_to_app() {
    has_desks_ = true;
    edge_.cors.origins = {"https://app.example:443"};
    open();
    api().serve_only(OriginRules(false, {}, {}));
  }
};

TEST_F(CorsTest, EachAnswerOfThePageMayBeRead) {
  open_to_app();
  struct Case {
    std::string method, path, header;
    int status;
  };
  const Case cases[] = {
      {"GET", "/", "", 200},
      {"GET", "/readyz", "", 200},
      {"PUT", "/readyz", "", 405},
      {"GET", "/nothing", "", 404},
      {"GET", "/agents/open/a/teapot", "", 418},
      {"GET", "/agents/open/a/stream", "", 201},
      {"GET", "/agents/open/a/plugin", "", 500},
      {"GET", "/agents/guarded/a/echo", "", 401},
      {"GET", "/agents/guarded/a/echo", bearer(kClientToken), 200},
      {"GET", "/agents/nobody/a", "", 400},
      {"OPTIONS", "/agents/open/a/echo", "", 200},
  };
  for (const Case& each : cases) {
    const Reply reply = ask(http(each.method, each.path, kApp + each.header));
    EXPECT_EQ(reply.status, each.status) << each.path;
    EXPECT_TRUE(has(reply, "Access-Control-Allow-Origin: https://app.example")) << each.path;
    EXPECT_TRUE(has(reply, "Vary: Origin")) << each.path;
    const Reply without = ask(http(each.method, each.path, each.header));
    EXPECT_FALSE(without.head.find("Access-Control") != std::string::npos) << each.path;
    EXPECT_TRUE(has(without, "Vary: Origin")) << each.path << ": a cache must not mix them up";
    const Reply foreign =
        ask(http(each.method, each.path, "Origin: https://evil.example\r\n" + each.header));
    EXPECT_EQ(foreign.status, 403) << each.path;
    EXPECT_FALSE(foreign.head.find("Access-Control") != std::string::npos) << each.path;
  }
  RawClient socket(port());
  EXPECT_EQ(socket.upgrade("/agents/open/a", kApp).status, 101);
}

TEST_F(CorsTest, SoMayWhatTheNetworkAnswersByItself) {
  net_options_.max_body = 1000;
  net_options_.min_rate = 1000;
  net_options_.rate_window = std::chrono::milliseconds(20);
  open_to_app();
  const auto post = [](const std::string& header) {
    return "POST /agents/open/a/echo HTTP/1.1\r\nHost: localhost\r\n" + header + "\r\n";
  };
  const auto refusal = [&](const std::string& header, const std::string& body, bool ends) {
    RawClient client(port());
    client.send(post(header) + body);
    if (ends) client.end_sending();
    return client.read_reply();
  };
  struct Case {
    std::string header, body;
    bool ends;
    int status;
  };
  const Case cases[] = {
      {"Content-Length: 10\r\n", "abc", true, 400},
      {"Content-Length: 10\r\n", "abc", false, 408},
      {"Content-Length: 1001\r\n", "", false, 413},
      {"Transfer-Encoding: chunked\r\n", "what is no chunk\r\n", false, 400},
  };
  for (const Case& each : cases) {
    SCOPED_TRACE(each.header + each.body);
    const Reply reply = refusal(kApp + each.header, each.body, each.ends);
    EXPECT_EQ(reply.status, each.status);
    EXPECT_TRUE(has(reply, "Access-Control-Allow-Origin: https://app.example"));
    const Reply foreign =
        refusal("Origin: https://evil.example\r\n" + each.header, each.body, each.ends);
    EXPECT_EQ(foreign.status, each.status);
    EXPECT_TRUE(lacks(foreign.head, "Access-Control"));
  }
}

TEST_F(CorsTest, SoMayTheAnswerInPlaceOfAnInvalidOne) {
  open_to_app();
  serve("Careless", [](HostCalls& host, const AgentEvent& event) -> Result<void> {
    if (event.kind != EventKind::kRequest) return nothing(host, event);
    host.request(event.call)->response->headers.emplace_back("X-A", "two\r\nlines");
    return host.complete(event.call, std::string_view("lost"));
  });
  const Reply reply = ask(http("GET", "/agents/careless/a", kApp));
  EXPECT_EQ(reply.status, 500);
  EXPECT_TRUE(has(reply, "Access-Control-Allow-Origin: https://app.example")) << reply.head;
  EXPECT_TRUE(has(reply, "Vary: Origin")) << reply.head;
}

TEST_F(CorsTest, SoMayARefusalForTooManyRequests) {
  net_options_.per_address.messages = 1;
  net_options_.per_address.exempt = {};
  open_to_app();
  RawClient client(port());
  Reply reply;
  do {
    reply = client.request(http("GET", "/readyz", kApp));
  } while (reply.status == 200);
  EXPECT_EQ(reply.status, 429);
  EXPECT_TRUE(has(reply, "Access-Control-Allow-Origin: https://app.example"));
  EXPECT_TRUE(contains(reply.head, "Retry-After: "));
}

TEST_F(CorsTest, APreflightIsAnsweredBeforeAnybodyIsAskedForAToken) {
  open_to_app();
  for (const char* path : {"/agents/guarded/a/echo", "/readyz", "/agents/open/a"}) {
    const Reply reply = ask(http("OPTIONS", path, kPreflight), false);
    EXPECT_EQ(reply.status, 204) << path;
    EXPECT_TRUE(has(reply, "Access-Control-Allow-Origin: https://app.example"));
    EXPECT_TRUE(has(reply, "Access-Control-Allow-Methods: GET, HEAD, POST, OPTIONS"));
    EXPECT_TRUE(has(reply, "Access-Control-Allow-Headers: authorization, x-a"));
    EXPECT_TRUE(has(reply, "Access-Control-Max-Age: 86400"));
    EXPECT_FALSE(has(reply, "Access-Control-Allow-Credentials: true"));
  }
  EXPECT_EQ(ask(http("OPTIONS", "/readyz",
                     "Origin: https://evil.example\r\n"
                     "Access-Control-Request-Method: POST\r\n"))
                .status,
            403);
}

TEST_F(CorsTest, AdministratorsPagesAreReadByNoOtherOrigin) {
  open_to_app();
  for (const std::string& header : {kPreflight, kApp + bearer(kAdminToken)}) {
    const Reply reply = ask(http("OPTIONS", "/admin/plugins", header));
    EXPECT_EQ(reply.status, 403);
    EXPECT_TRUE(lacks(reply.head, "Access-Control"));
  }
  EXPECT_TRUE(desks_.take_asked().empty());
}

TEST_F(CorsTest, AClassHasRulesOfItsOwn) {
  open_to_app();
  serve_with("Widget", {.type = ProofKind::kNone, .name = {}},
             {.origins = {"https://shop.example"},
              .methods = {"GET"},
              .headers = {"X-A"},
              .credentials = true,
              .max_age = std::chrono::seconds(5)});
  runtime_->classes().set_aliases({{"gadget", "widget"}});
  for (const char* path : {"/agents/widget/a/echo", "/agents/gadget/a/echo", "//agents/widget/a"}) {
    const Reply reply = ask(http("OPTIONS", path,
                                 "Origin: https://shop.example\r\n"
                                 "Access-Control-Request-Method: GET\r\n"),
                            false);
    EXPECT_EQ(reply.status, 204) << path;
    EXPECT_TRUE(has(reply, "Access-Control-Allow-Credentials: true"));
    EXPECT_TRUE(has(reply, "Access-Control-Allow-Methods: GET"));
    EXPECT_TRUE(has(reply, "Access-Control-Allow-Headers: X-A"));
    EXPECT_TRUE(has(reply, "Access-Control-Max-Age: 5"));
    EXPECT_EQ(ask(http("GET", path, kApp)).status, 403) << path;
  }
  EXPECT_EQ(ask(http("GET", "/readyz", "Origin: https://shop.example\r\n")).status, 403);
  for (const char* path : {"/objects/widget/a/call/echo", "/objects/Widget/a/call/echo",
                           "/objects/gadget/a/call/echo", "//objects//widget/a/call/echo"}) {
    EXPECT_EQ(ask(http("POST", path, kApp)).status, 403) << path;
    const Reply reply = ask(http("POST", path, "Origin: https://shop.example\r\n"));
    EXPECT_NE(reply.status, 403) << path;
    EXPECT_TRUE(has(reply, "Access-Control-Allow-Origin: https://shop.example")) << path;
  }
}

TEST_F(CorsTest, AnyOriginNeedsNoVary) {
  edge_.cors.origins = {"*"};
  open();
  const Reply reply = ask(http("GET", "/readyz", "Origin: https://any.example\r\n"));
  EXPECT_EQ(reply.status, 200);
  EXPECT_TRUE(has(reply, "Access-Control-Allow-Origin: *"));
  EXPECT_TRUE(lacks(reply.head, "Vary"));
}

// Clients wait as long as Retry-After says; a page reads no header that is not exposed.
TEST_F(CorsTest, APageReadsTheHeadersThatHearthAddsToAnswers) {
  open_to_app();
  const std::string exposed =
      "Access-Control-Expose-Headers: Retry-After, Idempotency-Replayed, traceresponse";
  EXPECT_TRUE(has(ask(http("GET", "/readyz", kApp)), exposed));
  EXPECT_TRUE(has(ask(http("GET", "/agents/open/a/teapot", kApp)), exposed));
  EXPECT_FALSE(has(ask(http("GET", "/readyz")), exposed));
  EXPECT_FALSE(has(ask(http("OPTIONS", "/readyz", kPreflight), false), exposed));
}

}  // namespace
}  // namespace hearth::api::testing
