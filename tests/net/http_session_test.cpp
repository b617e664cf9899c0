// Requests and their answers on a connection. What is refused: http_session_refusals_test.cpp.
#include "net/http_session.hpp"

#include "net/http_session_fixture.hpp"
#include "net/raw_client.hpp"

#include <chrono>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>

namespace hearth::net {
namespace {

using hearth::testing::RawClient;
using hearth::testing::Reply;
using namespace std::chrono_literals;

class HttpSessionTest : public HttpSessionFixture {};

TEST_F(HttpSessionTest, AnswersPipelinedRequestsInOrder) {
  RawClient client(port());
  std::string requests;
  for (int i = 0; i < 200; ++i) requests += get("/" + std::to_string(i));
  client.send(requests);
  for (int i = 0; i < 200; ++i) {
    EXPECT_EQ(client.read_reply().body, "GET /" + std::to_string(i) + " ");
  }
}

TEST_F(HttpSessionTest, AnEmptyLineBetweenRequestsMayComeInTwoPieces) {
  RawClient client(port());
  EXPECT_EQ(client.request(get("/one")).body, "GET /one ");
  client.send("\r");
  loops_->run_on(0, [] {});
  EXPECT_EQ(client.request("\n" + get("/two")).body, "GET /two ");
}

TEST_F(HttpSessionTest, APipelinedRequestWaitsForTheAnswerBeforeIt) {
  hold_requests();
  RawClient client(port());
  const auto first = ask(client, get("/a") + get("/b"));
  EXPECT_EQ(exchanges_.count(), 1U);
  first->respond(with_body("a"));
  auto second = exchanges_.wait();
  second->respond(with_body("b"));
  EXPECT_EQ(client.read_reply().body, "a");
  EXPECT_EQ(client.read_reply().body, "b");
}

TEST_F(HttpSessionTest, PassesTheRequestOnAsItWasSent) {
  hold_requests();
  RawClient client(port());
  const auto exchange =
      ask(client,
          "POST /a%20b?x=1&y=%2F HTTP/1.1\r\nHost: test\r\nX-One: 1\r\nx-two:  2 \r\n"
          "Content-Length: 5\r\n\r\nhello");
  const HttpRequest& request = exchange->request();
  EXPECT_EQ(request.method, "POST");
  EXPECT_EQ(request.target, "/a%20b?x=1&y=%2F");
  EXPECT_EQ(find_header(request.headers, "x-one"), "1");
  EXPECT_EQ(find_header(request.headers, "X-Two"), "2");
  EXPECT_EQ(request.body, "hello");
  EXPECT_TRUE(request.peer.starts_with("127.0.0.1:")) << request.peer;
  exchange->respond({});
}

TEST_F(HttpSessionTest, HeadersThatOnlyAHostMaySendAreRemoved) {
  hold_requests();
  RawClient client(port());
  const auto exchange =
      ask(client, get("/",
                      "X-Agents-Lifecycle-Props: forged\r\nx-cf-agents-subagent-url: forged\r\n"
                      "X-Agents-Lifecycle: kept\r\n"));
  EXPECT_FALSE(find_header(exchange->request().headers, "x-agents-lifecycle-props"));
  EXPECT_FALSE(find_header(exchange->request().headers, "x-cf-agents-subagent-url"));
  EXPECT_TRUE(find_header(exchange->request().headers, "x-agents-lifecycle"));
  exchange->respond({});
}

TEST_F(HttpSessionTest, HeadGetsTheLengthAndNoBody) {
  RawClient client(port());
  const Reply reply = client.request("HEAD /x HTTP/1.1\r\nHost: test\r\n\r\n", false);
  EXPECT_NE(reply.head.find("Content-Length: 8\r\n"), std::string::npos) << reply.head;
  EXPECT_EQ(client.request(get("/y")).body, "GET /y ");  // the connection is still in step
}

TEST_F(HttpSessionTest, ConnectionCloseClosesAfterTheAnswer) {
  RawClient client(port());
  const Reply reply = client.request(get("/", "Connection: close\r\n"));
  EXPECT_EQ(reply.status, 200);
  EXPECT_NE(reply.head.find("Connection: close\r\n"), std::string::npos);
  EXPECT_TRUE(client.at_end());
}

TEST_F(HttpSessionTest, AHandlerCanCloseTheConnectionToo) {
  on_request_ = [](const std::shared_ptr<HttpExchange>& exchange) {
    exchange->respond({.status = 200, .headers = {{"Connection", "close"}}, .body = {}});
  };
  RawClient client(port());
  EXPECT_EQ(client.request(get("/")).status, 200);
  EXPECT_TRUE(client.at_end());
}

TEST_F(HttpSessionTest, ExpectContinueIsAnsweredBeforeTheBody) {
  RawClient client(port());
  client.send("POST / HTTP/1.1\r\nHost: test\r\nContent-Length: 4\r\nExpect: 100-continue\r\n\r\n");
  EXPECT_EQ(client.read_reply(false).status, 100);
  client.send("body");
  EXPECT_EQ(client.read_reply().body, "POST / body");
}

TEST_F(HttpSessionTest, ExpectContinueForATooLongBodyIsRefusedBeforeTheBody) {
  options_.max_body = 10;
  RawClient client(port());
  EXPECT_EQ(client
                .request("POST / HTTP/1.1\r\nHost: test\r\nContent-Length: 11\r\n"
                         "Expect: 100-continue\r\n\r\n")
                .status,
            413);
}

TEST_F(HttpSessionTest, AHalfClosedClientStillGetsItsAnswer) {
  hold_requests();
  RawClient client(port());
  client.send(get("/"));
  client.end_sending();
  auto exchange = exchanges_.wait();
  for (int i = 0; i < 5; ++i) loops_->run_on(0, [] {});
  exchange->respond(with_body("here"));
  EXPECT_EQ(client.read_reply().body, "here");
  EXPECT_TRUE(client.at_end());
}

// ---- answers ------------------------------------------------------------------------------------

TEST_F(HttpSessionTest, AnswersFromAnyThread) {
  hold_requests();
  RawClient client(port());
  const auto exchange = ask(client);
  HttpResponse response = with_body("from the test's thread");
  response.status = 418;
  response.headers.push_back({"X-Kind", "teapot"});
  response.headers.push_back({"Content-Length", "9999"});  // this layer's business, not ours
  exchange->respond(response);
  exchange->respond(with_body("a second answer"));
  exchange->finish();
  const Reply reply = client.read_reply();
  EXPECT_EQ(reply.status, 418);
  EXPECT_EQ(reply.body, "from the test's thread");
  EXPECT_NE(reply.head.find("X-Kind: teapot\r\n"), std::string::npos);
  EXPECT_EQ(reply.head.find("9999"), std::string::npos);
  client.send(get("/next"));
  exchanges_.wait()->respond(with_body("next"));
  EXPECT_EQ(client.read_reply().body, "next");
}

TEST_F(HttpSessionTest, ADroppedExchangeAnswers500) {
  on_request_ = [](const std::shared_ptr<HttpExchange>&) {};
  RawClient client(port());
  const Reply reply = client.request(get("/"));
  EXPECT_EQ(reply.status, 500);
  EXPECT_NE(reply.body.find(R"("code":"internal")"), std::string::npos);
  EXPECT_EQ(client.request(get("/")).status, 500);  // and the connection lives on
}

TEST_F(HttpSessionTest, AHandlerThatThrowsAnswers500WithoutTellingWhy) {
  on_request_ = [](const std::shared_ptr<HttpExchange>&) {
    throw std::runtime_error("the secret path /etc/hearth");
  };
  const Reply reply = RawClient(port()).request(get("/"));
  EXPECT_EQ(reply.status, 500);
  EXPECT_EQ(reply.body.find("secret"), std::string::npos);
}

TEST_F(HttpSessionTest, AResponseThatWouldBreakTheProtocolIsReplacedByA500) {
  HttpResponse bad;
  on_request_ = [&](const std::shared_ptr<HttpExchange>& exchange) { exchange->respond(bad); };
  bad.headers = {{"X-Split", "a\r\nSet-Cookie: b"}};
  EXPECT_EQ(RawClient(port()).request(get("/")).status, 500);
  bad.headers = {{"Bad Name", "x"}};
  EXPECT_EQ(RawClient(port()).request(get("/")).status, 500);
  bad.headers = {};
  bad.status = 101;
  EXPECT_EQ(RawClient(port()).request(get("/")).status, 500);
}

TEST_F(HttpSessionTest, NoContentHasNeitherBodyNorLength) {
  on_request_ = [](const std::shared_ptr<HttpExchange>& exchange) {
    exchange->respond({.status = 204, .headers = {}, .body = {}});
  };
  RawClient client(port());
  EXPECT_EQ(client.request(get("/"), false).head.find("Content-Length"), std::string::npos);
  EXPECT_EQ(client.request(get("/"), false).status, 204);
}

TEST_F(HttpSessionTest, StreamsAnAnswerInChunks) {
  hold_requests();
  RawClient client(port());
  const auto exchange = ask(client);
  exchange->start(with_body("one "));
  EXPECT_NE(client.read_until("\r\n\r\n").find("Transfer-Encoding: chunked"), std::string::npos);
  EXPECT_EQ(client.read_exactly(9), "4\r\none \r\n");
  exchange->write("");  // nothing, and in particular not the end
  exchange->write("two");
  EXPECT_EQ(client.read_exactly(8), "3\r\ntwo\r\n");
  exchange->finish();
  EXPECT_EQ(client.read_exactly(5), "0\r\n\r\n");
  client.send(get("/"));
  exchanges_.wait()->respond(with_body("still in step"));
  EXPECT_EQ(client.read_reply().body, "still in step");
}

TEST_F(HttpSessionTest, StreamsToTheEndForHttp10AndOnlyTheHeadForHead) {
  on_request_ = [](const std::shared_ptr<HttpExchange>& exchange) {
    exchange->start(with_body("one "));
    exchange->write("two");
    exchange->finish();
  };
  RawClient old(port());
  old.send("GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n");
  const std::string all = old.read_to_end();
  EXPECT_TRUE(all.ends_with("\r\n\r\none two")) << all;
  RawClient head(port());
  EXPECT_EQ(head.request("HEAD / HTTP/1.1\r\nHost: t\r\n\r\n", false).status, 200);
  EXPECT_EQ(head.request("HEAD / HTTP/1.1\r\nHost: t\r\n\r\n", false).status, 200);
}

TEST_F(HttpSessionTest, AStreamDroppedInTheMiddleIsCutNotEnded) {
  on_request_ = [](const std::shared_ptr<HttpExchange>& exchange) {
    exchange->start(with_body("half"));
  };
  RawClient client(port());
  client.send(get("/"));
  EXPECT_EQ(client.read_to_end().find("0\r\n\r\n"), std::string::npos);
}

TEST_F(HttpSessionTest, TellsWhenTheClientOfAStreamLeaves) {
  hold_requests();
  for (const char* behind : {"", "\r\n"}) {  // bytes behind the request
    Events<std::string> notices;
    RawClient client(port());
    const auto exchange = ask(client, get("/") + behind);
    exchange->on_abort([&notices] { notices.add("gone"); });
    exchange->start(with_body("x"));
    client.read_until("\r\n\r\n");
    client.close();
    EXPECT_EQ(notices.wait(), "gone");
    exchange->write("to nobody");
    exchange->finish();
    exchange->on_abort([&notices] { notices.add("gone already"); });
    EXPECT_EQ(notices.wait(), "gone already");
  }
}

TEST_F(HttpSessionTest, TellsWhenTheConnectionOfAWaitingRequestIsReset) {
  Events<std::string> notices;
  hold_requests();
  RawClient client(port());
  const auto exchange = ask(client);
  exchange->on_abort([&notices] { notices.add("gone"); });
  client.reset_on_close();
  client.close();
  EXPECT_EQ(notices.wait(), "gone");
}

TEST_F(HttpSessionTest, AStreamThatNobodyReadsIsBounded) {
  options_.send_queue = 100'000;
  Events<std::string> notices;
  hold_requests();
  RawClient client(port(), 4096);
  const auto exchange = ask(client);
  exchange->on_abort([&notices] { notices.add("cut"); });
  exchange->start({});
  for (int i = 0; i < 1000 && notices.count() == 0; ++i) {
    exchange->write(std::string(64 * 1024, 'x'));
    loops_->run_on(0, [] {});
  }
  EXPECT_EQ(notices.wait(), "cut");
}

TEST_F(HttpSessionTest, AStreamThatWaitsForItsReaderIsNotCut) {
  const std::string small(20'000, 'x');
  const std::string larger_than_the_queue(2'000'000, 'x');
  constexpr std::size_t kPieces = 200;
  options_.send_queue = 100'000;
  Events<std::string> notices;
  hold_requests();
  RawClient client(port(), 32 * 1024);
  const auto exchange = ask(client);
  exchange->on_abort([&notices] { notices.add("cut"); });
  exchange->when_drained([&notices] { notices.add("drained"); });
  EXPECT_EQ(notices.wait(), "drained") << "nothing is streamed yet";
  exchange->start({});
  std::thread writer([&] {
    for (std::size_t i = 0; i < kPieces; ++i) {
      exchange->write(i % 20 == 1 ? larger_than_the_queue : small);
      exchange->when_drained([&notices] { notices.add("drained"); });
      if (notices.wait() != "drained") return;
    }
    exchange->finish();
  });
  const Reply answer = client.read_reply();
  writer.join();
  EXPECT_EQ(answer.body.size(), 190 * small.size() + 10 * larger_than_the_queue.size());
  EXPECT_EQ(notices.count(), kPieces + 1);
  exchange->when_drained([&notices] { notices.add("over"); });
  EXPECT_EQ(notices.wait(), "over");
}

TEST_F(HttpSessionTest, AClientThatTakesNothingOfAnAnswerIsCut) {
  options_.rate_window = 100ms;
  answer_with(std::string(32'000'000, 'x'));
  RawClient client(port(), 4096);
  client.send(get("/"));
  client.read_until("\r\n\r\n");
  while (server_->connections() != 0) std::this_thread::yield();
  EXPECT_LT(client.read_to_end().size(), 32'000'000U);
  EXPECT_EQ(dropped("reads_slowly"), 1);
}

struct TargetCase {
  std::string_view target;
  std::string_view seen;  // by the handler, with the host
};

TEST_F(HttpSessionTest, ATargetIsInOriginFormAndAsciiForWhoAnswers) {
  on_request_ = [](const std::shared_ptr<HttpExchange>& exchange) {
    const HttpRequest& request = exchange->request();
    exchange->respond(
        with_body(request.target + " at " + std::string(*find_header(request.headers, "Host"))));
  };
  RawClient client(port());
  for (const auto& [target, seen] : {
           TargetCase{"/a?b", "/a?b at test"},
           TargetCase{"http://other:1/a?b", "/a?b at other:1"},
           TargetCase{"HTTPS://Other", "/ at Other"},
           TargetCase{"http://[::1]:1?q", "/?q at [::1]:1"},
           TargetCase{"*", "* at test"},
           TargetCase{"/caf\xc3\xa9/%C3%A9?\xe2\x82\xac", "/caf%C3%A9/%C3%A9?%E2%82%AC at test"},
       }) {
    EXPECT_EQ(client.request(get(target)).body, seen) << target;
  }
}

TEST_F(HttpSessionTest, ATargetThatIsNoneIsRefused) {
  for (const std::string_view target : {"foo", "?q", "http://", "http:///x", "https://?q", "a:1"}) {
    RawClient client(port());
    EXPECT_EQ(client.request(get(target)).status, 400) << target;
  }
}

TEST_F(HttpSessionTest, EveryAnswerSaysWhenAndByWhom) {
  const auto says = [](const Reply& reply, std::string_view what) {
    EXPECT_NE(reply.head.find(what), std::string::npos) << reply.head;
  };
  for (const std::string& request :
       {get("/"), RawClient::upgrade_text("/"), std::string("nonsense\r\n\r\n")}) {
    RawClient each(port());
    const Reply reply = each.request(request, false);
    says(reply, "\r\nServer: hearth\r\n");
    says(reply, "\r\nDate: ");
    says(reply, " GMT\r\n");
  }
}

// The answers are many times larger than what may wait and the buffers of the system.
TEST_F(HttpSessionTest, RequestsThatAreSentAheadWaitUntilTheAnswersAreTaken) {
  constexpr int kRequests = 400;
  options_.send_queue = 512 * 1024;
  Events<int> asked;
  on_request_ = [&](const std::shared_ptr<HttpExchange>& exchange) {
    asked.add(1);
    exchange->respond(with_body(std::string(128 * 1024, 'x')));
  };
  RawClient client(port(), 4096);
  std::string all;
  for (int i = 0; i < kRequests; ++i) all += get("/");
  client.send(all);
  asked.wait();
  std::size_t most = 0;
  const auto look = [&] { most = std::max(most, memory_->used()); };
  // Until nothing more is asked: the loop comes round, and finds nothing to do.
  for (std::size_t before = 0; before != asked.count();) {
    before = asked.count();
    for (int i = 0; i < 50; ++i) loops_->run_on(0, look);
  }
  EXPECT_LT(asked.count(), 200U);
  for (int i = 0; i < kRequests; ++i) {
    ASSERT_EQ(client.read_reply().body.size(), 128U * 1024) << i;
    loops_->run_on(0, look);
  }
  EXPECT_GT(most, 128U * 1024);
  EXPECT_LT(most, options_.send_queue);
  EXPECT_EQ(client.request(get("/")).status, 200);
}

TEST_F(HttpSessionTest, ABodyThatTricklesIsRefusedHoweverManyBytesCome) {
  options_.rate_window = 100ms;
  options_.min_rate = std::size_t{100} << 20;  // more than single bytes can be
  for (const std::string_view framing :
       {"Content-Length: 4000000\r\n", "Transfer-Encoding: chunked\r\n"}) {
    RawClient client(port());
    client.send("POST / HTTP/1.1\r\nHost: test\r\n" + std::string(framing) + "\r\n");
    while (!client.has_unread() && client.send("1\r\nx\r\n")) {
    }
    EXPECT_EQ(client.read_reply().status, 408) << framing;
  }
  EXPECT_EQ(dropped("sends_slowly"), 2);
}

// Each body has its own windows: bytes of the earlier body do not count.
TEST_F(HttpSessionTest, ManyBodiesOneAfterTheOtherAreNoSlowOne) {
  options_.rate_window = 80ms;
  options_.min_rate = 100;
  using Clock = std::chrono::steady_clock;
  auto client = std::make_unique<RawClient>(port());
  int slow = 0;  // bodies that the machine has held up for a whole window
  for (const auto end = Clock::now() + 400ms; Clock::now() < end;) {
    const auto began = Clock::now();
    client->send("POST / HTTP/1.1\r\nHost: test\r\nContent-Length: 2\r\n\r\nx");
    loops_->run_on(0, [] {});
    if (client->request("y").status == 200) continue;
    ASSERT_GE(Clock::now() - began, options_.rate_window);
    ++slow;
    client = std::make_unique<RawClient>(port());
  }
  EXPECT_EQ(dropped("sends_slowly"), slow);
}

TEST_F(HttpSessionTest, ALongAnswerIsNotCutByTheTimeBetweenRequests) {
  options_.http_idle_timeout = 40ms;
  on_request_ = [](const std::shared_ptr<HttpExchange>& exchange) {
    const bool is_long = exchange->request().target == "/long";
    exchange->respond(with_body(std::string(is_long ? 32'000'000 : 1, 'x')));
  };
  RawClient client(port(), 4096);
  client.send(get("/long"));
  client.read_until("\r\n\r\n");
  for (int i = 0; i < 3; ++i) {  // others that are idle for so long are closed
    RawClient idle(port());
    idle.request(get("/short"));
    EXPECT_TRUE(idle.at_end());
  }
  EXPECT_EQ(client.read_exactly(32'000'000).size(), 32'000'000U);
}

TEST_F(HttpSessionTest, WhileMemoryIsOverdrawnAnAnswerThatIsNotTakenIsCut) {
  memory_limit_ = 1'000'000;
  answer_with(std::string(32'000'000, 'x'));
  int times = 0;
  for (const char* header : {"", "Connection: close\r\n"}) {
    RawClient client(port(), 4096);
    client.send(get("/", header));
    EXPECT_LT(client.read_to_end().size(), 32'000'000U) << header;
    EXPECT_EQ(dropped("memory"), ++times) << header;
  }
}

TEST_F(HttpSessionTest, WhileMemoryIsOverdrawnLargeRequestsGet503AndSmallOnesAreServed) {
  memory_limit_ = 100'000;
  hold_requests();
  const auto post = [](std::size_t length) {
    return "POST / HTTP/1.1\r\nHost: test\r\nContent-Length: " + std::to_string(length) +
           "\r\n\r\n" + std::string(length, 'x');
  };
  const auto with_header = [](std::size_t length) {
    return get("/", "X-Large: " + std::string(length, 'x') + "\r\n");
  };
  struct Row {
    const char* name;
    std::string begun;  // of a request that is too large
    std::string small;
  };
  const Row rows[] = {{"bodies", post(50'000).substr(0, 40'000), post(5'000)},
                      {"heads", with_header(50'000).substr(0, 30'000), with_header(5'000)}};
  RawClient first(port());
  for (const Row& row : rows) {
    SCOPED_TRACE(row.name);
    const int before = dropped("memory");
    const auto held = ask(first, post(90'000));  // counts until it is answered
    RawClient large(port());
    const Reply refused = large.request(row.begun);
    EXPECT_EQ(refused.status, 503);
    EXPECT_NE(refused.head.find("Retry-After: 1\r\n"), std::string::npos) << refused.head;
    EXPECT_EQ(dropped("memory") - before, 1);
    RawClient small(port());
    ask(small, row.small)->respond({});
    EXPECT_EQ(small.read_reply().status, 200);
    held->respond({});
    EXPECT_EQ(first.read_reply().status, 200);
    large.close();
  }
  // What was held is free again.
  ask(first, post(90'000))->respond({});
  EXPECT_EQ(first.read_reply().status, 200);
  loops_->run_on(0, [&] { EXPECT_EQ(memory_->used(), 0U); });
}

// What has come while the loop stood still is read before the client is found too slow.
TEST_F(HttpSessionTest, ARequestThatCameWhileItsLoopStoodStillIsAnswered) {
  options_.handshake_timeout = 50ms;
  RawClient other(port());  // its session is looked at in time, and the new one with it
  EXPECT_EQ(other.request(get("/a")).status, 200);
  std::vector<std::unique_ptr<RawClient>> clients;
  loops_->run_on(0, [&] {
    for (int i = 0; i < 20; ++i) {
      clients.push_back(std::make_unique<RawClient>(port()));
      clients.back()->send(get("/b"));
    }
    std::this_thread::sleep_for(200ms);
  });
  for (const auto& client : clients) EXPECT_EQ(client->read_reply().status, 200);
}

}  // namespace
}  // namespace hearth::net
