#include "base/http_token.hpp"

#include <gtest/gtest.h>

#include <string>

namespace hearth {
namespace {

TEST(HttpTokenTest, ATokenIsWhatTheRfcSays) {
  for (const char* token : {"a", "Z", "0", "X-One", "!#$%&'*+-.^_`|~"}) {
    EXPECT_TRUE(is_http_token(token)) << token;
  }
  // Every single byte: all but letters, digits and marks separate.
  const std::string allowed =
      "!#$%&'*+-.^_`|~0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
  for (int byte = 0; byte < 256; ++byte) {
    const std::string text(1, static_cast<char>(byte));
    EXPECT_EQ(is_http_token(text), allowed.find(text) != std::string::npos) << byte;
  }
  EXPECT_FALSE(is_http_token(""));
  EXPECT_FALSE(is_http_token("a b"));
  EXPECT_FALSE(is_http_token("a:"));
}

TEST(HttpTokenTest, AValueHasNoControlCharacterButTheTab) {
  for (int byte = 0; byte < 256; ++byte) {
    const std::string text{'a', static_cast<char>(byte), 'b'};
    EXPECT_EQ(is_http_field_value(text), byte == '\t' || (byte >= 0x20 && byte != 0x7F)) << byte;
  }
  EXPECT_TRUE(is_http_field_value(""));
}

TEST(HttpTokenTest, CaseIsIgnoredInAsciiOnly) {
  EXPECT_TRUE(equal_ignoring_case("Content-LENGTH", "content-length"));
  EXPECT_FALSE(equal_ignoring_case("a", "ab"));
  EXPECT_FALSE(equal_ignoring_case("[", "{"));  // 0x20 apart, as letters are
  EXPECT_FALSE(equal_ignoring_case("\xC4", "\xE4"));
}

TEST(HttpTokenTest, SomeMethodsAreNotForAgents) {
  for (const char* method : {"CONNECT", "TRACE", "TRACK", "trace"})
    EXPECT_TRUE(is_forbidden_http_method(method)) << method;
  for (const char* method : {"GET", "TRACES", "TRAC", ""})
    EXPECT_FALSE(is_forbidden_http_method(method)) << method;
}

TEST(HttpTokenTest, TheHeadersOfTheHostInRequestsOfAgentsAreNamedOnce) {
  for (const char* name : {"Host", "HOST", "Content-Length", "Expect", "Accept-Encoding",
                           "Proxy-Authorization", "proxy-x"})
    EXPECT_TRUE(is_host_owned_request_header(name)) << name;
  for (const char* name : {"Hosts", "Accept", "Authorization", "Proxy", ""})
    EXPECT_FALSE(is_host_owned_request_header(name)) << name;
}

TEST(HttpTokenTest, TheHeadersOfTheServerAloneAreNamedOnce) {
  for (const char* name : {"Connection", "Keep-Alive", "Transfer-Encoding", "CONTENT-LENGTH",
                           "upgrade", "Date", "Trailer", "TE", "Proxy-Connection"}) {
    EXPECT_TRUE(is_host_owned_header(name)) << name;
  }
  for (const char* name : {"Content-Type", "Dates", "T", "", "Connection "}) {
    EXPECT_FALSE(is_host_owned_header(name)) << name;
  }
}

}  // namespace
}  // namespace hearth
