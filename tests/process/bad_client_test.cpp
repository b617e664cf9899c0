#include "process/agent_client.hpp"
#include "process/process_fixture.hpp"

#include <string>
#include <utility>
#include <vector>

namespace hearth::testing {
namespace {

// Faulty or hostile input of a client. It harms only that client: the next client is served.
class BadClientTest : public ProcessTest {
 protected:
  BadClientTest() {
    install(bundled("counter"), "counter.so");
    server_ = serve_ready();
  }

  void TearDown() override {
    EXPECT_EQ(increment(*server_, "good"), R"({"count":1})");
    EXPECT_EQ(server_->stop(), kClean);
  }

  [[nodiscard]] std::uint16_t port() const { return server_->port(); }

  // The close code for a client that asks for an agent at `target`.
  int close_code_for(const std::string& target) {
    RawClient client(port());
    const Reply reply = client.upgrade(target);
    if (reply.status != 101) return reply.status;
    Frame frame = client.read_frame();
    while (frame.opcode == 1) frame = client.read_frame();
    return frame.close_code();
  }

  std::unique_ptr<ServerProcess> server_;
};

TEST_F(BadClientTest, AddressesThatCannotBeEndAClientForGood) {
  for (const std::string& target : {
           std::string("/agents/counter/.."),
           std::string("/agents/../counter"),
           std::string("/agents/counter/%2e%2e"),
           std::string("/agents/counter/a%00b"),
           "/agents/counter/" + std::string(10'240, 'a'),
           "/agents/" + std::string(10'240, 'a') + "/a",
           std::string("/agents/counter/%ff%fe"),
           std::string("/agents/nobody/a"),
       }) {
    const int code = close_code_for(target);
    EXPECT_TRUE(code >= 4000 && code <= 4999) << code << " for " << target.substr(0, 60);
  }
}

// A web page that is open in a browser on this machine must not reach the server, not under the
// page's own host name either.
TEST_F(BadClientTest, PagesOfOtherSitesAreRefused) {
  for (const std::string headers : {"Host: localhost\r\nOrigin: https://evil.example\r\n",
                                    "Host: localhost\r\nOrigin: null\r\n", "Host: evil.example\r\n",
                                    "Host: evil.example\r\nOrigin: http://evil.example\r\n"}) {
    RawClient post(port());
    EXPECT_EQ(post.request("POST /agents/counter/good HTTP/1.1\r\nContent-Length: 0\r\n" + headers +
                           "\r\n")
                  .status,
              403)
        << headers;
    RawClient socket(port());
    EXPECT_EQ(socket
                  .request("GET /agents/counter/good HTTP/1.1\r\nUpgrade: websocket\r\n"
                           "Connection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
                           "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n" +
                           headers + "\r\n")
                  .status,
              403)
        << headers;
  }
  RawClient local(port());
  EXPECT_EQ(local.upgrade("/agents/counter/b", "Origin: http://127.0.0.1:5173\r\n").status, 101);
}

TEST_F(BadClientTest, ARawPathIsTheSameAgentAsItsEncodedForm) {
  EXPECT_EQ(increment(*server_, "caf\xc3\xa9"), R"({"count":1})");
  EXPECT_EQ(increment(*server_, "caf%C3%A9"), R"({"count":2})");
}

TEST_F(BadClientTest, TheSameAddressesOverHttpAreClearErrors) {
  for (const std::string& target :
       {std::string("/agents/counter/%2e%2e"), std::string("/agents/counter/a%00b"),
        "/agents/counter/" + std::string(10'240, 'a'), std::string("/agents/counter/%ff%fe"),
        std::string("/agents/nobody/a")}) {
    const Reply reply = request(*server_, "GET", target);
    EXPECT_TRUE(reply.status >= 400 && reply.status < 500)
        << reply.status << " for " << target.substr(0, 60);
    EXPECT_TRUE(reply.body.starts_with(R"({"error":{"code":)")) << reply.body;
  }
}

TEST_F(BadClientTest, MalformedHttp) {
  for (const std::string& text :
       {std::string("\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03", 10),  // TLS
        std::string("GET\r\n\r\n"), std::string("GET / HTTP/9.9\r\n\r\n"),
        std::string("POST / HTTP/1.1\r\nContent-Length: -1\r\n\r\n"),
        "GET / HTTP/1.1\r\nX: " + std::string(100'000, 'x') + "\r\n\r\n"}) {
    RawClient client(port());
    client.send(text);
    client.end_sending();
    const std::string answer = client.read_to_end();
    EXPECT_TRUE(answer.empty() || answer.starts_with("HTTP/1.1 4") ||
                answer.starts_with("HTTP/1.1 5"))
        << answer;
  }
}

TEST_F(BadClientTest, MalformedFramesEndTheirConnection) {
  for (const auto& [bytes, code] : std::vector<std::pair<std::string, int>>{
           {RawClient::frame(1, "x", true, false), 1002},  // not masked
           {RawClient::frame(3, "x"), 1002},               // no such opcode
           {RawClient::frame(1, "\xff"), 1007},            // not UTF-8
           {RawClient::frame(0, "x"), 1002},               // the middle of nothing
       }) {
    AgentClient client(port(), "/agents/counter/a");
    client.send(bytes);
    EXPECT_EQ(client.close_frame().close_code(), code);
  }
}

TEST_F(BadClientTest, AMessageOfAHundredMegabytesIsRefusedByItsHead) {
  AgentClient client(port(), "/agents/counter/a");
  // The header alone: masked text of 100 MB. The server does not wait for the rest.
  const std::string header("\x81\xff\x00\x00\x00\x00\x06\x40\x00\x00\x01\x02\x03\x04", 14);
  client.send(header);
  EXPECT_EQ(client.close_frame().close_code(), 1009);
}

TEST_F(BadClientTest, ABodyOfAHundredMegabytesIsRefusedByItsHead) {
  RawClient client(port());
  EXPECT_EQ(client
                .request("POST /agents/counter/a HTTP/1.1\r\nHost: localhost\r\nContent-Length: "
                         "100000000\r\n\r\n")
                .status,
            413);
}

TEST_F(BadClientTest, FramesOfTheProtocolThatMakeNoSenseAreAnsweredOrEchoed) {
  AgentClient client(port(), "/agents/counter/a");
  for (const char* text :
       {"{", R"({"type":"rpc"})", R"({"type":"rpc","id":"1","method":"increment","args":{}})",
        R"({"type":"rpc","id":1,"method":7})", R"([[[[[[)"}) {
    client.send(RawClient::text_frame(text));
  }
  client.send(
      RawClient::text_frame(R"({"type":"rpc","id":"last","method":"no_such_method","args":[]})"));
  std::string text = client.read_text();
  while (text.find(R"("id":"last")") == std::string::npos) text = client.read_text();
  EXPECT_TRUE(contains(text, R"("success":false)", "no_such_method"));
}

TEST_F(BadClientTest, AClientThatNeverReadsIsDroppedAndHoldsNobodyUp) {
  AgentClient reader(port(), "/agents/counter/shared");
  AgentClient deaf(port(), "/agents/counter/shared", 4096);
  // Echoes to the client that never reads, until the server closes its socket.
  const std::string megabyte = RawClient::text_frame(std::string(1 << 20, 'x'));
  while (deaf.send(megabyte)) {
  }
  reader.send(RawClient::text_frame("still there"));
  std::string text = reader.read_text();
  while (text != "still there") text = reader.read_text();
}

}  // namespace
}  // namespace hearth::testing
