#include "net/http_text.hpp"

#include <gtest/gtest.h>

#include <string>

namespace hearth::net {
namespace {

HttpRequest handshake() {
  HttpRequest request;
  request.method = "GET";
  request.headers = {{"Connection", "keep-alive, Upgrade"},
                     {"Upgrade", "websocket"},
                     {"Sec-WebSocket-Version", "13"},
                     {"Sec-WebSocket-Key", "dGhlIHNhbXBsZSBub25jZQ=="}};
  return request;
}

TEST(HttpTextTest, FindsHeadersWithoutRegardToCase) {
  const HttpHeaders headers = {{"X-One", "1"}, {"x-one", "2"}};
  EXPECT_EQ(find_header(headers, "x-ONE"), "1");
  EXPECT_EQ(find_header(headers, "x-on"), std::nullopt);
}

TEST(HttpTextTest, FindsTokensInListsAndInRepeatedHeaders) {
  const HttpHeaders headers = {{"Connection", "keep-alive , UPGRADE"}, {"connection", "x"}};
  EXPECT_TRUE(header_has_token(headers, "Connection", "upgrade"));
  EXPECT_TRUE(header_has_token(headers, "Connection", "keep-alive"));
  EXPECT_TRUE(header_has_token(headers, "Connection", "x"));
  EXPECT_FALSE(header_has_token(headers, "Connection", "up"));
  EXPECT_FALSE(header_has_token(headers, "Connection", ""));
}

TEST(HttpTextTest, WritesAHeadForEachFraming) {
  HttpResponse response;
  response.status = 404;
  response.headers = {{"X-A", "1"},       {"connection", "close"}, {"Transfer-Encoding", "gzip"},
                      {"Upgrade", "h2c"}, {"server", "another"},   {"TE", "trailers"}};
  std::string out;
  ASSERT_TRUE(append_head(out, response, {BodyFraming::kLength, 12, true}));
  EXPECT_EQ(out,
            "HTTP/1.1 404 Not Found\r\nX-A: 1\r\nServer: hearth\r\nContent-Length: 12\r\n"
            "Connection: keep-alive\r\n\r\n");
  response.headers.clear();
  out.clear();
  ASSERT_TRUE(append_head(out, response, {BodyFraming::kChunked, 0, false}));
  EXPECT_EQ(out,
            "HTTP/1.1 404 Not Found\r\nServer: hearth\r\nTransfer-Encoding: chunked\r\n"
            "Connection: close\r\n\r\n");
  out.clear();
  ASSERT_TRUE(append_head(out, response, {BodyFraming::kNone, 0, true, "now"}));
  EXPECT_EQ(out,
            "HTTP/1.1 404 Not Found\r\nServer: hearth\r\nDate: now\r\n"
            "Connection: keep-alive\r\n\r\n");
}

TEST(HttpTextTest, AnUnknownStatusHasNoPhraseButItsSpace) {
  HttpResponse response;
  response.status = 299;
  std::string out;
  ASSERT_TRUE(append_head(out, response, {BodyFraming::kNone, 0, true}));
  EXPECT_TRUE(out.starts_with("HTTP/1.1 299 \r\n"));
}

TEST(HttpTextTest, RefusesWhatWouldBreakTheProtocolAndWritesNothing) {
  const auto refused = [](int status, HttpHeaders headers) {
    HttpResponse response;
    response.status = status;
    response.headers = std::move(headers);
    std::string out = "before";
    return !append_head(out, response, {}) && out == "before";
  };
  EXPECT_TRUE(refused(199, {}));
  EXPECT_TRUE(refused(101, {}));
  EXPECT_TRUE(refused(600, {}));
  EXPECT_TRUE(refused(-1, {}));
  EXPECT_TRUE(refused(200, {{"", "x"}}));
  EXPECT_TRUE(refused(200, {{"a b", "x"}}));
  EXPECT_TRUE(refused(200, {{"a:", "x"}}));
  EXPECT_TRUE(refused(200, {{"a", "x\ny"}}));
  EXPECT_TRUE(refused(200, {{"a", std::string("x\0y", 3)}}));
  EXPECT_FALSE(refused(200, {{"a", "\xC3\xA9\t ok"}}));
}

TEST(HttpTextTest, AReplacementKeepsWhatLetsAPageReadIt) {
  HttpResponse invalid;
  invalid.headers = {{"Access-Control-Allow-Origin", "https://app.example"},
                     {"access-control-expose-headers", "X-A"},
                     {"Access-Control-Allow-Methods", "a\r\nb"},
                     {"Vary", "Origin"},
                     {"Content-Type", "text/plain"},
                     {"X-A", "\n"}};
  const HttpResponse response = replacement_for(invalid);
  EXPECT_EQ(response.status, 500);
  std::string out;
  ASSERT_TRUE(append_head(out, response, {}));
  EXPECT_TRUE(
      out.starts_with("HTTP/1.1 500 Internal Server Error\r\n"
                      "Content-Type: application/json\r\n"
                      "Access-Control-Allow-Origin: https://app.example\r\n"
                      "access-control-expose-headers: X-A\r\n"
                      "Vary: Origin\r\n"
                      "Server: "))
      << out;
}

TEST(HttpTextTest, WritesChunksInHexadecimalAndNoEmptyOne) {
  std::string out;
  append_chunk(out, "");
  append_chunk(out, std::string(26, 'x'));
  EXPECT_EQ(out, "1a\r\n" + std::string(26, 'x') + "\r\n");
}

TEST(HttpTextTest, AcceptsARightHandshake) {
  EXPECT_FALSE(upgrade_fault(handshake()));
}

TEST(HttpTextTest, NamesTheFaultOfAWrongHandshake) {
  HttpRequest request = handshake();
  request.method = "POST";
  EXPECT_EQ(upgrade_fault(request)->status, 400);
  request = handshake();
  request.headers[0].value = "keep-alive";
  EXPECT_EQ(upgrade_fault(request)->status, 400);
  request = handshake();
  request.headers.push_back({"Content-Length", "1"});
  EXPECT_EQ(upgrade_fault(request)->status, 400);
  request.headers.back().value = "0";
  EXPECT_FALSE(upgrade_fault(request));
  request.headers.back() = {"Transfer-Encoding", "chunked"};
  EXPECT_EQ(upgrade_fault(request)->status, 400);
  request = handshake();
  request.headers.push_back(request.headers[3]);
  EXPECT_EQ(upgrade_fault(request)->status, 400) << "two keys";
  request = handshake();
  request.headers[2].value = "8";
  EXPECT_EQ(upgrade_fault(request)->status, 426);
  for (const char* key :
       {"", "dGhlIHNhbXBsZSBub25jZQ=", "dGhlIHNhbXBsZSBub25jZ!==", "dGhlIHNhbXBsZSBub25jZQQQ"}) {
    request = handshake();
    request.headers[3].value = key;
    EXPECT_EQ(upgrade_fault(request)->status, 400) << key;
  }
}

}  // namespace
}  // namespace hearth::net
