// Bodies that the handler reads as they arrive.
#include "net/http_session.hpp"
#include "net/http_session_fixture.hpp"
#include "net/raw_client.hpp"

#include <chrono>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>

namespace hearth::net {
namespace {

using hearth::testing::RawClient;
using hearth::testing::Reply;
using namespace std::chrono_literals;

// What a listener was told.
class Told {
 public:
  [[nodiscard]] BodyListener listener() {
    return [this](BodyPart part) {
      {
        const std::lock_guard lock(mutex_);
        text_ += part.bytes;
      }
      if (part.is_end) ends_.add(std::move(part));
    };
  }
  BodyPart end() { return ends_.wait(); }
  std::size_t ends() { return ends_.count(); }
  std::string text() {
    const std::lock_guard lock(mutex_);
    return text_;
  }

 private:
  std::mutex mutex_;
  std::string text_;
  Events<BodyPart> ends_;
};

class HttpSessionBodyTest : public HttpSessionFixture {
 protected:
  HttpSessionBodyTest() { hold_requests(); }
  [[nodiscard]] bool reads_body(const HttpRequest& head) const override {
    return head.target.starts_with("/read");
  }
  // All that was posted to the loop before has happened.
  void let_the_loop_turn() {
    for (int turns = 0; turns < 3; ++turns) loops_->run_on(0, [] {});
  }
};

std::string post(std::string_view target, std::string_view headers) {
  return "POST " + std::string(target) + " HTTP/1.1\r\nHost: test\r\n" + std::string(headers) +
         "\r\n";
}

std::string post_of_length(std::string_view target, std::size_t length) {
  return post(target, "Content-Length: " + std::to_string(length) + "\r\n");
}

constexpr std::string_view kChunked = "Transfer-Encoding: chunked\r\n";

TEST_F(HttpSessionBodyTest, GivesTheBodyAndThenServesTheNextRequest) {
  struct Row {
    std::string request;
    std::string body;
    bool is_unread = true;
  };
  const Row rows[] = {
      {post_of_length("/read", 11) + "hello world", "hello world"},
      {post("/read", kChunked) + "5\r\nhello\r\n1;x=1\r\n \r\n5\r\nworld\r\n0\r\n\r\n",
       "hello world"},
      {post("/read", kChunked) + "0\r\n\r\n", ""},
      {post_of_length("/read", 100'000) + std::string(100'000, 'x'), std::string(100'000, 'x')},
      {post("/read", kChunked) + "186a0\r\n" + std::string(100'000, 'y') + "\r\n0\r\nT: 1\r\n\r\n",
       std::string(100'000, 'y')},
      {get("/read"), "", false},
      {post_of_length("/read", 0), "", false},
      {post_of_length("/whole", 5) + "hello", "hello", false},
  };
  for (const Row& row : rows) {
    RawClient client(port());
    const auto exchange = ask(client, row.request + get("/next"));
    EXPECT_EQ(exchange->request().has_unread_body, row.is_unread);
    Told told;
    if (row.is_unread) {
      EXPECT_EQ(exchange->request().body, "");
      exchange->read_body(3, told.listener());
      exchange->read_body(200'000, nullptr);
      EXPECT_FALSE(told.end().failure);
    }
    EXPECT_EQ(row.is_unread ? told.text() : exchange->request().body, row.body);
    exchange->respond(with_body("first"));
    EXPECT_EQ(client.read_reply().body, "first");
    exchanges_.wait()->respond(with_body("second"));
    EXPECT_EQ(client.read_reply().body, "second");
  }
}

TEST_F(HttpSessionBodyTest, APieceIsReadBeforeTheNextHasBeenSent) {
  RawClient client(port());
  const auto exchange = ask(client, post("/read", kChunked));
  Events<std::string> pieces;
  exchange->read_body(1000, [&pieces](BodyPart part) { pieces.add(std::move(part.bytes)); });
  for (const std::string piece : {"one", "two", "six"}) {
    client.send("3\r\n" + piece + "\r\n");
    EXPECT_EQ(pieces.wait(), piece);
  }
  client.send("0\r\n\r\n");
  EXPECT_EQ(pieces.wait(), "");
  exchange->respond({});
  EXPECT_NE(client.read_reply().head.find("keep-alive"), std::string::npos);
}

TEST_F(HttpSessionBodyTest, TheFirstCreditSends100Continue) {
  RawClient client(port());
  const auto exchange = ask(client, post("/read", "Content-Length: 2\r\nExpect: 100-continue\r\n"));
  let_the_loop_turn();
  EXPECT_FALSE(client.has_unread());
  Told told;
  exchange->read_body(1, told.listener());
  EXPECT_EQ(client.read_until("\r\n\r\n"), "HTTP/1.1 100 Continue\r\n\r\n");
  client.send("ab");
  EXPECT_FALSE(told.end().failure);
  exchange->respond(with_body(told.text()));
  EXPECT_EQ(client.read_reply().body, "ab");
}

TEST_F(HttpSessionBodyTest, AnAnswerBeforeTheEndOfTheBodyClosesTheConnection) {
  for (const bool is_stream : {false, true}) {
    RawClient client(port());
    const auto exchange =
        ask(client, post("/read", "Content-Length: 100\r\nExpect: 100-continue\r\n"));
    Told told;
    exchange->read_body(0, told.listener());
    if (is_stream) {
      exchange->start(with_body("no"));
      exchange->read_body(1, nullptr);  // sends no 100 behind the answer
      exchange->finish();
    } else {
      exchange->respond(with_body("no"));
    }
    const Reply reply = client.read_reply();
    EXPECT_EQ(reply.status, 200);
    EXPECT_EQ(reply.body, "no");
    EXPECT_NE(reply.head.find("Connection: close"), std::string::npos);
    client.end_sending();
    EXPECT_TRUE(client.at_end());
    EXPECT_EQ(told.end().failure.value().code, Errc::kNotFound);
  }
}

TEST_F(HttpSessionBodyTest, TheAnswerMayStreamWhileTheBodyComes) {
  RawClient client(port());
  const auto exchange = ask(client, post("/read", kChunked) + "3\r\none\r\n");
  exchange->start({});
  Told told;
  exchange->read_body(1000, [&](const BodyPart& part) {
    if (part.is_end) return exchange->finish();
    exchange->write(part.bytes);
  });
  EXPECT_NE(client.read_until("3\r\none\r\n").find("Connection: close"), std::string::npos);
  client.send("3\r\ntwo\r\n0\r\n\r\n");
  EXPECT_EQ(client.read_until("0\r\n\r\n"), "3\r\ntwo\r\n0\r\n\r\n");
  EXPECT_TRUE(client.at_end());
}

TEST_F(HttpSessionBodyTest, ABodyThatDoesNotEndIsAFailure) {
  options_.max_body = 1000;
  struct Row {
    std::string_view what;
    std::string_view headers;
    std::string sent;
    Errc code;
    int status = 200;     // with which the session refuses it itself; 200: the handler answers
    bool closes = false;  // the client: both sides
    bool ends = false;    // its own side
  };
  const std::string chunk = "200\r\n" + std::string(0x200, 'x') + "\r\n";
  const Row rows[] = {
      {"left", "Content-Length: 100\r\n", "half", Errc::kNotFound, 200, true},
      {"ended", "Content-Length: 100\r\n", "half", Errc::kNotFound, 200, false, true},
      {"too long", kChunked, chunk + chunk, Errc::kTooLarge, 413},
      {"not HTTP", kChunked, "zz\r\n", Errc::kInvalidArgument, 400},
  };
  for (const Row& row : rows) {
    SCOPED_TRACE(row.what);
    RawClient client(port());
    const auto exchange = ask(client, post("/read", row.headers) + row.sent);
    Told told;
    exchange->read_body(10'000, told.listener());
    if (row.closes) client.reset_on_close();
    if (row.closes) client.close();
    if (row.ends) client.end_sending();
    EXPECT_EQ(told.end().failure.value().code, row.code);
    exchange->respond(with_body("no"));
    if (row.closes) continue;
    const Reply reply = client.read_reply();
    EXPECT_EQ(reply.status, row.status);
    if (row.status == 200) EXPECT_EQ(reply.body, "no");
    EXPECT_NE(reply.head.find("Connection: close"), std::string::npos);
  }
  // A length that is known from the beginning is refused as for every other request.
  RawClient client(port());
  EXPECT_EQ(client.request(post_of_length("/read", 1001)).status, 413);
  EXPECT_EQ(exchanges_.count(), std::size(rows));
}

TEST_F(HttpSessionBodyTest, WhoeverReadsTooLateLearnsThatTheClientHasLeft) {
  auto client = std::make_unique<RawClient>(port());
  client->send(post_of_length("/read", 100));
  const auto exchange = exchanges_.wait();
  Events<bool> left;
  exchange->on_abort([&left] { left.add(true); });
  client->reset_on_close();
  client->close();
  EXPECT_TRUE(left.wait());
  Told told;
  exchange->read_body(10, told.listener());
  EXPECT_EQ(told.end().failure.value().code, Errc::kNotFound);
}

TEST_F(HttpSessionBodyTest, NoMoreIsReadThanThereIsCreditFor) {
  constexpr std::size_t kLength = std::size_t{48} << 20;
  constexpr std::size_t kCredit = 100'000;
  constexpr std::size_t kOneRead = 8192;
  options_.max_body = kLength;
  RawClient client(port());
  const auto exchange = ask(client, post_of_length("/read", kLength));
  Told told;
  exchange->read_body(kCredit, told.listener());
  const std::string block(std::size_t{1} << 20, 'x');
  std::size_t sent = 0;
  while (client.takes_more_within(200ms)) sent += static_cast<std::size_t>(client.send_some(block));
  ASSERT_LT(sent, kLength) << "the system's buffers take the whole body";
  EXPECT_GE(told.text().size(), kCredit);
  EXPECT_LE(told.text().size(), kCredit + kOneRead);
  EXPECT_LE(memory_->used(), 4 * kOneRead);
  exchange->read_body(kLength, nullptr);
  while (sent < kLength) {
    const std::string_view rest = std::string_view(block).substr(0, kLength - sent);
    ASSERT_TRUE(client.send(rest));
    sent += rest.size();
  }
  EXPECT_FALSE(told.end().failure);
  EXPECT_EQ(told.text().size(), kLength);
  exchange->respond(with_body("all"));
  EXPECT_EQ(client.read_reply().body, "all");
}

TEST_F(HttpSessionBodyTest, OnlyABodyThatIsWantedCanBeTooSlow) {
  options_.rate_window = 100ms;
  RawClient unread(port());
  const auto waiting = ask(unread, post_of_length("/read", 100));
  Told nothing;
  waiting->read_body(0, nothing.listener());
  RawClient slow(port());
  const auto exchange = ask(slow, post_of_length("/read", 100) + "slow");
  Told told;
  exchange->read_body(1000, told.listener());
  EXPECT_EQ(told.end().failure.value().code, Errc::kTimeout);
  let_the_loop_turn();
  EXPECT_EQ(dropped("sends_slowly"), 1);
  EXPECT_EQ(nothing.ends(), 0U);
  exchange->respond({});
  const Reply refused = slow.read_reply();
  EXPECT_EQ(refused.status, 408);
  EXPECT_NE(refused.head.find("Connection: close"), std::string::npos);
  unread.send(std::string(100, 'x'));
  waiting->read_body(1000, nullptr);
  EXPECT_FALSE(nothing.end().failure);
  waiting->respond({});
  EXPECT_EQ(unread.read_reply().status, 200);
}

}  // namespace
}  // namespace hearth::net
