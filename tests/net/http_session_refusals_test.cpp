// Requests that are malformed, doubtful, too large or too slow.
#include "net/http_session.hpp"
#include "net/http_session_fixture.hpp"
#include "net/raw_client.hpp"

#include <chrono>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>

namespace hearth::net {
namespace {

using hearth::testing::RawClient;
using hearth::testing::Reply;
using namespace std::chrono_literals;

class HttpSessionRefusalsTest : public HttpSessionFixture {};

TEST_F(HttpSessionRefusalsTest, MalformedRequestsGetA400AndTheConnectionCloses) {
  const std::string malformed[] = {
      "nonsense\r\n\r\n",
      "GET  / HTTP/1.1\r\nHost: t\r\n\r\n",
      "GET / HTTP/1.1\r\nBad Header: x\r\n\r\n",
      "GET / HTTP/1.1\r\nHost: t\r\nX: \x01\r\n\r\n",
      "GET / HTTP/1.1\r\n\r\n",
      "GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n",
      "GET / HTTP/1.1\r\nHost: a b\r\n\r\n",
      "GET / HTTP/1.1\r\nHost: a/b\r\n\r\n",
      "GET / HTTP/1.1\r\nHost: a:port\r\n\r\n",
      "GET / HTTP/1.1\r\nHost:\r\n\r\n",
      "GET http://a@b/ HTTP/1.1\r\nHost: b\r\n\r\n",
      "GET / HTTP/1.1\nHost: t\n\n",
      "GET / HTTP/1.1\r\nHost: t\nX: 1\r\n\r\n",
      "\nGET / HTTP/1.1\r\nHost: t\r\n\r\n",
      "POST / HTTP/1.1\r\nHost: t\r\nContent-Length: x\r\n\r\n",
      "POST / HTTP/1.1\r\nHost: t\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
  };
  for (const std::string& text : malformed) {
    RawClient client(port());
    const Reply reply = client.request(text);
    EXPECT_EQ(reply.status, 400) << text;
    EXPECT_TRUE(reply.body.starts_with(R"({"error":{"code":"bad_request","message":")")) << text;
    EXPECT_TRUE(client.at_end()) << text;
  }
  EXPECT_EQ(RawClient(port()).request(get("/")).status, 200);
}

TEST_F(HttpSessionRefusalsTest, MethodsThatAreForProxiesGet405) {
  for (const std::string_view text : {"CONNECT other.example:443 HTTP/1.1\r\nHost: t\r\n\r\n",
                                      "TRACE / HTTP/1.1\r\nHost: t\r\n\r\n"}) {
    RawClient client(port());
    const Reply reply = client.request(text);
    EXPECT_EQ(reply.status, 405) << text;
    EXPECT_NE(reply.head.find("Allow: GET, "), std::string::npos) << reply.head;
  }
}

TEST_F(HttpSessionRefusalsTest, AnUpgradeInATrailerIsNone) {
  RawClient client(port());
  const Reply reply = client.request(
      "GET /t HTTP/1.1\r\nHost: t\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n"
      "Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
      "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n");
  EXPECT_EQ(reply.status, 200);
  EXPECT_EQ(reply.body, "GET /t ");
}

TEST_F(HttpSessionRefusalsTest, AnUpgradeWithABodyIsRefused) {
  for (const char* body :
       {"Content-Length: 2\r\n\r\nhi", "Transfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n0\r\n\r\n",
        "Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n"}) {
    RawClient client(port());
    std::string text = RawClient::upgrade_text("/");
    text.resize(text.size() - 2);
    EXPECT_EQ(client.request(text + body).status, 400) << body;
    EXPECT_TRUE(client.at_end()) << body;
  }
}

TEST_F(HttpSessionRefusalsTest, ConnectionHeadersOfEveryFormAreAnsweredAndTheServerLives) {
  const std::string head =
      "GET / HTTP/1.1\r\nHost: t\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"
      "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n";
  const std::pair<const char*, int> forms[] = {
      {"Connection: Upgrade\r\n", 101},
      {"Connection: keep-alive, UPGRADE\r\n", 101},
      // RFC 9110 5.3: several headers of a name are one list.
      {"Connection: keep-alive\r\nConnection: Upgrade\r\n", 101},
      {"Connection: Upgrade\r\nConnection: close\r\n", 101},
      {"Connection: x\r\nConnection: y\r\nConnection: , ,upgrade,\r\n", 101},
      {"Connection: ;;;, upgrade\r\n", 400},
      {"Connection: a b c, upgrade\r\n", 400},
      {"Connection: \"x, upgrade\r\n", 400},
      {"Connection: @, upgrade\r\n", 400},
      {"Connection: upgrade;q=1\r\n", 400},
      {"Connection: \"upgrade\"\r\n", 400},
      {"Connection: upgrade upgrade\r\n", 400},
      {"Connection: upgrades\r\nConnection: keep-alive\r\n", 400},
      {"Connection:\r\n", 400},
      {"", 400},
      {"Connection: Upgrade\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n", 400},
      {"Connection: Upgrade\r\nSec-WebSocket-Version: 8\r\n", 101},
      {"Connection: Upgrade\r\nUpgrade: h2c\r\n", 101},
  };
  for (const auto& [form, status] : forms) {
    RawClient client(port());
    client.send(head + form + "\r\n");
    EXPECT_EQ(client.read_reply(status != 101).status, status) << form;
    if (status != 101) {
      EXPECT_TRUE(client.at_end()) << form;
      continue;
    }
    client.send(RawClient::text_frame("hello"));
    EXPECT_EQ(client.read_text(), "hello") << form;
  }
  EXPECT_EQ(RawClient(port()).request(get("/")).status, 200);
}

TEST_F(HttpSessionRefusalsTest, AnotherVersionIsA505) {
  EXPECT_EQ(RawClient(port()).request("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n").status, 505);
}

TEST_F(HttpSessionRefusalsTest, ATooLargeHeadIsA431) {
  options_.max_header = 2000;
  RawClient client(port());
  EXPECT_EQ(client.request(get("/", "X: " + std::string(3000, 'x') + "\r\n")).status, 431);
  EXPECT_TRUE(client.at_end());
  EXPECT_EQ(RawClient(port()).request(get("/", "X: " + std::string(1500, 'x') + "\r\n")).status,
            200);
}

TEST_F(HttpSessionRefusalsTest, ATooLongTargetIsA414) {
  options_.max_target = 100;
  EXPECT_EQ(RawClient(port()).request(get("/" + std::string(99, 'x'))).status, 200);
  EXPECT_EQ(RawClient(port()).request(get("/" + std::string(100, 'x'))).status, 414);
}

TEST_F(HttpSessionRefusalsTest, ATooLongBodyIsA413HoweverItIsSent) {
  options_.max_body = 100;
  const std::string head = "POST / HTTP/1.1\r\nHost: test\r\n";
  EXPECT_EQ(RawClient(port())
                .request(head + "Content-Length: 100\r\n\r\n" + std::string(100, 'x'))
                .status,
            200);
  EXPECT_EQ(RawClient(port()).request(head + "Content-Length: 101\r\n\r\n").status, 413);
  EXPECT_EQ(RawClient(port())
                .request(head + "Transfer-Encoding: chunked\r\n\r\n65\r\n" + std::string(101, 'x'))
                .status,
            413);
  // A sender that looks for the answer when its body is sent.
  RawClient large(port());
  large.send(head + "Content-Length: 4000000\r\n\r\n" + std::string(4'000'000, 'x'));
  EXPECT_EQ(large.read_reply().status, 413);
}

TEST_F(HttpSessionRefusalsTest, ABadHandshakeIsRefused) {
  const std::string head = "GET / HTTP/1.1\r\nHost: t\r\nUpgrade: websocket\r\n";
  const std::string key = "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n";
  const std::string version = "Sec-WebSocket-Version: 13\r\n";
  const std::string connection = "Connection: Upgrade\r\n";
  EXPECT_EQ(RawClient(port()).request(head + key + version + "\r\n").status, 400);
  EXPECT_EQ(RawClient(port()).request(head + connection + version + "\r\n").status, 400);
  EXPECT_EQ(RawClient(port())
                .request(head + connection + version + "Sec-WebSocket-Key: short\r\n\r\n")
                .status,
            400);
  const Reply old = RawClient(port()).request(head + connection + key + "\r\n");
  EXPECT_EQ(old.status, 426);
  EXPECT_NE(old.head.find("Sec-WebSocket-Version: 13"), std::string::npos);
  EXPECT_EQ(
      RawClient(port())
          .request("POST / HTTP/1.1\r\nHost: t\r\nUpgrade: websocket\r\nContent-Length: 0\r\n" +
                   connection + key + version + "\r\n")
          .status,
      400);
}

TEST_F(HttpSessionRefusalsTest, ASlowHeadIsCut) {
  options_.handshake_timeout = 40ms;
  RawClient silent(port());
  EXPECT_TRUE(silent.at_end());
  RawClient slow(port());
  slow.send("GET / HTTP/1.1\r\nHost:");
  EXPECT_TRUE(slow.at_end());
}

TEST_F(HttpSessionRefusalsTest, ABodyThatStopsGets408) {
  options_.rate_window = 40ms;
  RawClient client(port());
  client.send("POST / HTTP/1.1\r\nHost: t\r\nContent-Length: 3\r\n\r\na");
  EXPECT_EQ(client.read_reply().status, 408);
  EXPECT_TRUE(client.at_end());
}

TEST_F(HttpSessionRefusalsTest, AnIdleConnectionIsClosedAfterTheKeepAliveTimeout) {
  options_.http_idle_timeout = 40ms;
  RawClient client(port());
  EXPECT_EQ(client.request(get("/")).status, 200);
  EXPECT_TRUE(client.at_end());
}

// A handler that adds a header to all its answers.
class HandlersHeaderTest : public HttpSessionFixture {
 protected:
  void on_refusal(const HttpRequest& head, HttpResponse& answer) const override {
    answer.headers.push_back({"X-Added", head.target});
  }
};

TEST_F(HandlersHeaderTest, IsOnWhatTheNetworkAnswersByItself) {
  options_.max_body = 10;
  on_request_ = [](std::shared_ptr<HttpExchange> exchange) {
    if (exchange->request().target == "/throws") throw std::runtime_error("broken");
  };
  on_upgrade_ = [](const HttpRequest&) -> UpgradePlan { throw std::runtime_error("broken"); };
  struct Case {
    std::string request;
    int status;
  };
  const Case cases[] = {
      {get("/dropped"), 500},
      {get("/throws"), 500},
      {RawClient::upgrade_text("/upgrade"), 500},
      {get("/no-handshake", "Upgrade: websocket\r\n"), 400},
      {"POST /long HTTP/1.1\r\nHost: t\r\nContent-Length: 11\r\n\r\n", 413},
  };
  for (const Case& each : cases) {
    const Reply reply = RawClient(port()).request(each.request);
    EXPECT_EQ(reply.status, each.status) << each.request;
    const std::string target = each.request.substr(each.request.find('/'));
    EXPECT_NE(reply.head.find("\r\nX-Added: " + target.substr(0, target.find(' ')) + "\r\n"),
              std::string::npos)
        << reply.head;
  }
}

}  // namespace
}  // namespace hearth::net
