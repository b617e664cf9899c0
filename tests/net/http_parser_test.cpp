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

TEST_F(HttpParserTest, LeavesTheNextRequestsBytesAlone) {
  EXPECT_EQ(feed("GET / HTTP/1.1\r\nHost: t\r\n\r\nGET /next"), Step::kDone);
  EXPECT_EQ(rest_, "GET /next");
}

TEST_F(HttpParserTest, AsksForMoreUntilTheBodyIsThere) {
  EXPECT_EQ(feed("PUT / HTTP/1.1\r\nHost: t\r\nContent-Length: 3\r\n\r\na"), Step::kMore);
  EXPECT_EQ(rest_, "");
  EXPECT_EQ(feed("bcX"), Step::kDone);
  EXPECT_EQ(rest_, "X");
  EXPECT_EQ(parser_.take().body, "abc");
}

TEST_F(HttpParserTest, KnowsWhoWantsTheConnectionToStay) {
  feed("GET / HTTP/1.1\r\nHost: t\r\nConnection: close\r\n\r\n");
  EXPECT_FALSE(parser_.keep_alive());
  HttpParser old(options_);
  std::size_t used = 0;
  old.feed("GET / HTTP/1.0\r\n\r\n", used);
  EXPECT_FALSE(old.keep_alive());
  EXPECT_TRUE(old.is_http_1_0());
}

TEST_F(HttpParserTest, ExpectationsAreOnlyUnderstoodFrom11On) {
  feed("POST / HTTP/1.1\r\nHost: t\r\nContent-Length: 1\r\nExpect: 100-Continue\r\n\r\n");
  EXPECT_TRUE(parser_.expects_continue());
  HttpParser old(options_);
  std::size_t used = 0;
  old.feed("POST / HTTP/1.0\r\nContent-Length: 1\r\nExpect: 100-continue\r\n\r\n", used);
  EXPECT_FALSE(old.expects_continue());
}

TEST_F(HttpParserTest, RefusesADeclaredLengthOverTheLimitAtTheHead) {
  EXPECT_EQ(feed("POST / HTTP/1.1\r\nHost: t\r\nContent-Length: 99999999999\r\n\r\n"),
            Step::kRefused);
  EXPECT_EQ(parser_.refusal().status, 413);
}

TEST_F(HttpParserTest, RefusesAnEndlessHead) {
  std::string text = "GET / HTTP/1.1\r\nHost: t\r\nX: ";
  text += std::string(options_.max_header, 'x');
  EXPECT_EQ(feed(text), Step::kRefused);
  EXPECT_EQ(parser_.refusal().status, 431);
}

TEST_F(HttpParserTest, SaysWhatWasWrongWithoutRepeatingIt) {
  EXPECT_EQ(feed("<script>\r\n\r\n"), Step::kRefused);
  EXPECT_EQ(parser_.refusal().status, 400);
  EXPECT_EQ(parser_.refusal().body.find("script"), std::string::npos);
}

}  // namespace
}  // namespace hearth::net
