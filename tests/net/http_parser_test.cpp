#include "net/http_parser.hpp"

#include <gtest/gtest.h>

#include <string>

namespace hearth::net {
namespace {

using Step = HttpParser::Step;

class HttpParserTest : public ::testing::Test {
 protected:
  // Feeds everything at once, over the head's report if there is one.
  Step feed(std::string_view bytes) {
    std::size_t used = 0;
    Step step = parser_.feed(bytes, used);
    rest_ = bytes.substr(used);
    if (step != Step::kHeadDone) return step;
    step = parser_.feed(rest_, used);
    rest_.erase(0, used);
    return step;
  }

  NetOptions options_;
  HttpParser parser_{options_};
  std::string rest_;
};

TEST_F(HttpParserTest, ReportsTheHeadOnceAndThenTheRequest) {
  const std::string text = "POST /a HTTP/1.1\r\nHost: t\r\nContent-Length: 2\r\n\r\nhi";
  std::size_t used = 0;
  EXPECT_EQ(parser_.feed(text, used), Step::kHeadDone);
  EXPECT_EQ(text.substr(used), "hi");
  EXPECT_TRUE(parser_.keep_alive());
  EXPECT_FALSE(parser_.expects_continue());
  EXPECT_FALSE(parser_.is_http_1_0());
  EXPECT_EQ(parser_.feed(text.substr(used), used), Step::kDone);
  EXPECT_EQ(used, 2U);
  const HttpRequest request = parser_.take();
  EXPECT_EQ(request.method, "POST");
  EXPECT_EQ(request.target, "/a");
  EXPECT_EQ(request.body, "hi");
}

TEST_F(HttpParserTest, ABodyWithLinesIsNoHeadWhereverTheBytesAreCut) {
  const std::string text = "PUT / HTTP/1.1\r\nHost: t\r\nContent-Length: 4\r\n\r\n{\n}\n";
  for (std::size_t cut = 0; cut <= text.size(); ++cut) {
    HttpParser parser(options_);
    std::size_t used = 0;
    Step step = Step::kMore;
    std::string left;
    for (const std::string& piece : {text.substr(0, cut), text.substr(cut)}) {
      left += piece;
      do {
        step = parser.feed(left, used);
        left.erase(0, used);
      } while (step == Step::kHeadDone);
      if (step != Step::kMore) break;
    }
    ASSERT_EQ(step, Step::kDone) << "cut at " << cut;
    EXPECT_EQ(parser.take().body, "{\n}\n");
  }
}

TEST_F(HttpParserTest, ExpectationsAreOnlyUnderstoodFrom11On) {
  feed("POST / HTTP/1.1\r\nHost: t\r\nContent-Length: 1\r\nExpect: 100-Continue\r\n\r\n");
  EXPECT_TRUE(parser_.expects_continue());
  HttpParser old(options_);
  std::size_t used = 0;
  old.feed("POST / HTTP/1.0\r\nContent-Length: 1\r\nExpect: 100-continue\r\n\r\n", used);
  EXPECT_FALSE(old.expects_continue());
}

TEST_F(HttpParserTest, RefusesAnEndlessHead) {
  std::string text = "GET / HTTP/1.1\r\nHost: t\r\nX: ";
  text += std::string(options_.max_header, 'x');
  EXPECT_EQ(feed(text), Step::kRefused);
  EXPECT_EQ(parser_.refusal().status, 431);
}

TEST_F(HttpParserTest, RefusesTooManyFieldsHoweverShort) {
  std::string fields;
  for (std::size_t i = 1; i < options_.max_fields; ++i) fields += "a:\r\n";
  EXPECT_EQ(feed("GET / HTTP/1.1\r\nHost: t\r\n" + fields + "\r\n"), Step::kDone);
  HttpParser another(options_);
  std::size_t used = 0;
  EXPECT_EQ(another.feed("GET / HTTP/1.1\r\nHost: t\r\n" + fields + "a:\r\n\r\n", used),
            Step::kRefused);
  EXPECT_EQ(another.refusal().status, 431);
}

TEST_F(HttpParserTest, TrailerFieldsAreNoHeaders) {
  EXPECT_EQ(feed("POST / HTTP/1.1\r\nHost: t\r\nTransfer-Encoding: chunked\r\nX-A: head\r\n\r\n"
                 "0\r\nX-A: trailer\r\nX-B: trailer\r\nUpgrade: websocket\r\n"
                 "Connection: close\r\nExpect: 100-continue\r\n\r\n"),
            Step::kDone);
  EXPECT_TRUE(parser_.keep_alive());
  EXPECT_FALSE(parser_.expects_continue());
  const HttpRequest request = parser_.take();
  EXPECT_EQ(find_header(request.headers, "X-A"), "head");
  EXPECT_FALSE(find_header(request.headers, "X-B"));
  EXPECT_FALSE(find_header(request.headers, "Upgrade"));
  EXPECT_EQ(request.headers.size(), 3U);
}

TEST_F(HttpParserTest, RefusesAnEndlessChunkLineAndAnEndlessTrailer) {
  const std::string head = "POST / HTTP/1.1\r\nHost: t\r\nTransfer-Encoding: chunked\r\n\r\n";
  for (const char* endless : {"5;x=", "0\r\nX: "}) {
    HttpParser parser(options_);
    std::size_t used = 0;
    ASSERT_EQ(parser.feed(head, used), Step::kHeadDone);
    std::string waiting = endless;
    Step step = Step::kMore;
    while (step == Step::kMore && waiting.size() < 10 * options_.max_header) {
      waiting.append(1000, 'x');
      step = parser.feed(waiting, used);
      waiting.erase(0, used);
    }
    EXPECT_EQ(step, Step::kRefused) << endless;
    EXPECT_EQ(parser.refusal().status, 400);
    EXPECT_LE(waiting.size(), options_.max_header + 2000);
  }
}

TEST_F(HttpParserTest, SaysWhatWasWrongWithoutRepeatingIt) {
  EXPECT_EQ(feed("<script>\r\n\r\n"), Step::kRefused);
  EXPECT_EQ(parser_.refusal().status, 400);
  EXPECT_EQ(parser_.refusal().body.find("script"), std::string::npos);
}

}  // namespace
}  // namespace hearth::net
