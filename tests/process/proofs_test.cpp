// Sources of the tokens and keys that the real server checks: files that change, and a URL.
#include "auth/token_maker.hpp"
#include "json/json.hpp"
#include "process/process_fixture.hpp"

#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <future>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>

#include <arpa/inet.h>
#include <netinet/in.h>

namespace hearth::testing {
namespace {

// Answers one request with a document, once it is told to.
class KeyProvider {
 public:
  explicit KeyProvider(std::string document) : document_(std::move(document)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    const bool listens =
        ::bind(socket_, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0 &&
        ::listen(socket_, 4) == 0 &&
        ::getsockname(socket_, reinterpret_cast<sockaddr*>(&address), &size) == 0;
    if (!listens) throw std::runtime_error("cannot listen");
    port_ = ntohs(address.sin_port);
    thread_ = std::thread([this] { serve(); });
  }
  ~KeyProvider() {
    ::shutdown(socket_, SHUT_RDWR);  // wakes accept()
    thread_.join();
    ::close(socket_);
  }
  KeyProvider(const KeyProvider&) = delete;
  KeyProvider& operator=(const KeyProvider&) = delete;

  [[nodiscard]] std::string url() const {
    return "http://127.0.0.1:" + std::to_string(port_) + "/keys";
  }
  void answer() { may_answer_.set_value(); }

 private:
  void serve() {
    const int client = ::accept(socket_, nullptr, nullptr);
    if (client < 0) return;
    char request[4096];
    (void)::recv(client, request, sizeof request, 0);  // its head fits, and is all there is
    may_answer_.get_future().wait_for(std::chrono::seconds(10));
    const std::string text =
        "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nConnection: "
        "close\r\nContent-Length: " +
        std::to_string(document_.size()) + "\r\n\r\n" + document_;
    (void)::send(client, text.data(), text.size(), MSG_NOSIGNAL);
    ::close(client);
  }

  const std::string document_;
  const int socket_ = ::socket(AF_INET, SOCK_STREAM, 0);
  std::uint16_t port_ = 0;
  std::promise<void> may_answer_;
  std::thread thread_;
};

class ProofsTest : public ProcessTest {
 protected:
  ProofsTest() { install(bundled("counter"), "counter.so"); }

  static int status_with(const ServerProcess& server, const std::string& token) {
    return RawClient(server.port())
        .request(
            "POST /agents/counter/a HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n"
            "Authorization: Bearer " +
            token + "\r\n\r\n")
        .status;
  }
};

// A path with values for the variables of its template.
std::string filled_in(std::string path) {
  for (auto open = path.find('{'); open != std::string::npos; open = path.find('{')) {
    const auto end = path.find('}', open);
    const bool is_class = path.substr(open, end - open) == "{class";
    path.replace(open, end + 1 - open, is_class ? "counter" : "a");
  }
  return path;
}

TEST_F(ProofsTest, EachOperationAsksForAProofUnlessTheDocumentSaysThatItDoesNot) {
  put("tokens", "0123456789abcdef\n");
  put("hearth.yaml", "auth: {type: token, token_file: tokens}\n");
  put("classes/counter.yaml", "class: counter\nobjects: true\n");
  const auto server = serve_ready({"--config", "hearth.yaml"});
  const Json document = parse_json(request(*server, "GET", "/openapi.json").body).value();
  std::size_t operations = 0;
  for (const auto& [path, methods] : document.at("paths").items()) {
    for (const auto& [method, operation] : methods.items()) {
      std::string verb = method;
      std::ranges::transform(verb, verb.begin(), [](unsigned char c) { return std::toupper(c); });
      const int status = request(*server, verb, filled_in(path)).status;
      EXPECT_EQ(status == 401, !operation.at("security").empty()) << verb << ' ' << path << status;
      ++operations;
    }
  }
  EXPECT_GE(operations, 55U);
  EXPECT_EQ(server->stop(), kClean);
}

TEST_F(ProofsTest, FilesOfTokensAndKeysAreTakenWhenTheyChange) {
  const TokenMaker first("EdDSA");
  const TokenMaker second("ES256");
  const auto now = std::chrono::duration_cast<std::chrono::seconds>(
      std::chrono::system_clock::now().time_since_epoch());
  const Json claims = {{"iss", "me"}, {"aud", "hearth"}, {"exp", now.count() + 300}};
  const std::string old_token = "0123456789abcdef-old";
  const std::string new_token = "0123456789abcdef-new";
  put("tokens", old_token + "\n");
  put("keys.json", dump_json(first.jwk()));
  put("classes/counter.yaml", "class: Counter\nauth: {type: token}\n");
  put("hearth.yaml",
      "auth: {type: jwt, token_file: tokens, keys_file: keys.json, issuer: me, audience: "
      "[hearth]}\n"
      "reload: {quiet_time: 50ms}\n");
  const auto server = serve_ready({"--config", "hearth.yaml"});
  EXPECT_EQ(status_with(*server, old_token), 200);
  put("tokens", new_token + "\n");
  server->wait_for_log("auth.source_read", 4);  // both at the start, and both again
  EXPECT_EQ(status_with(*server, new_token), 200);
  EXPECT_EQ(status_with(*server, old_token), 401);
  put("tokens", "short\n");
  server->wait_for_log("auth.source_failed");
  EXPECT_EQ(status_with(*server, new_token), 200) << "what was read before goes on";

  put("classes/counter.yaml", "class: Counter\nauth: {type: jwt}\n");
  server->wait_for_log("config.done");
  EXPECT_EQ(status_with(*server, first.sign(claims)), 200);
  EXPECT_EQ(status_with(*server, second.sign(claims)), 401);
  put("keys.json", dump_json(second.jwk()));
  server->wait_for_log("auth.source_read", 6);
  EXPECT_EQ(status_with(*server, second.sign(claims)), 200);
  EXPECT_EQ(status_with(*server, first.sign(claims)), 401);
  EXPECT_EQ(server->stop(), kClean);
  for (const std::string& secret : {old_token, new_token, first.sign(claims)})
    EXPECT_TRUE(lacks(server->log(), secret));
}

TEST_F(ProofsTest, WhoIsConnectedIsAskedAnewWhenAccessIsWithdrawn) {
  const std::string kept = "?token=0123456789abcdef-kept";
  const std::string lost = "?token=0123456789abcdef-lost";
  const std::string both = "0123456789abcdef-kept\n0123456789abcdef-lost\n";
  put("tokens", both);
  put("hearth.yaml", "auth: {token_file: tokens}\nreload: {quiet_time: 50ms}\n");
  const auto server = serve_ready({"--config", "hearth.yaml"});
  const auto connect = [&server](const std::string& query) {
    auto client = std::make_unique<RawClient>(server->port());
    EXPECT_EQ(client->upgrade("/agents/counter/a" + query).status, 101);
    return client;
  };
  const auto close_code = [](RawClient& client) {
    for (;;) {
      const Frame frame = client.read_frame();
      if (frame.opcode == 8) return frame.close_code();
    }
  };
  const auto is_let_in = [&](const std::string& query) {
    return connect(query)->read_frame().opcode != 8;
  };
  auto stranger = connect("");
  put("classes/counter.yaml", "class: counter\nauth: {type: token}\n");
  EXPECT_EQ(close_code(*stranger), 1012) << "the class asks for a token now";
  EXPECT_EQ(close_code(*connect("")), 4401) << "which ends it";

  auto holder = connect(kept);
  auto other = connect(lost);
  put("tokens", both + "0123456789abcdef-more\n");
  server->wait_for_log("auth.source_read", 2);
  put("tokens", "0123456789abcdef-kept\n");
  EXPECT_EQ(close_code(*other), 1012);
  EXPECT_EQ(close_code(*holder), 1012);
  EXPECT_TRUE(is_let_in(kept));
  EXPECT_EQ(close_code(*connect(lost)), 4401);

  auto last = connect(kept);
  put("classes/counter.yaml", "class: counter\nauth: {type: none}\n");
  server->wait_for_log("config.done", 2);
  last->send(RawClient::frame(9, "ping"));
  Frame frame = last->read_frame();
  while (frame.opcode == 1) frame = last->read_frame();
  EXPECT_EQ(frame.opcode, 10) << "everybody may stay";
  EXPECT_EQ(server->stop(), kClean);
}

TEST_F(ProofsTest, KeysOfAUrlAreFetchedAndStayWhenItFails) {
  const TokenMaker maker("EdDSA", "one");
  const auto now = std::chrono::duration_cast<std::chrono::seconds>(
      std::chrono::system_clock::now().time_since_epoch());
  const Json claims = {{"iss", "me"}, {"aud", "hearth"}, {"exp", now.count() + 300}};
  std::optional<KeyProvider> provider;
  provider.emplace(dump_json({{"keys", Json::array({maker.jwk()})}}));
  put("hearth.yaml", "auth: {type: jwt, keys_url: \"" + provider->url() +
                         "\", issuer: me, audience: [hearth], clock_skew: 0s}\n");
  const auto server = serve_ready({"--config", "hearth.yaml", "--log-level", "debug"});
  EXPECT_EQ(status_with(*server, maker.sign(claims)), 503) << "the keys are on their way";
  provider->answer();
  server->wait_for_log("auth.source_read");
  EXPECT_EQ(status_with(*server, maker.sign(claims)), 200);
  EXPECT_EQ(status_with(*server, TokenMaker("EdDSA", "one").sign(claims)), 401);
  EXPECT_EQ(status_with(*server, TokenMaker("HS256", "one").sign(claims)), 401);
  provider.reset();
  server->signal(SIGHUP);
  server->wait_for_log("auth.source_failed");
  EXPECT_EQ(status_with(*server, maker.sign(claims)), 200) << "the last keys go on";
  EXPECT_EQ(server->stop(), kClean);
}

}  // namespace
}  // namespace hearth::testing
