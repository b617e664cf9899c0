#include "base/authority.hpp"

#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace hearth {
namespace {

TEST(AuthorityTest, IsAHostAndPerhapsAPort) {
  const std::vector<std::pair<std::string_view, Authority>> cases = {
      {"example.com", {"example.com", ""}},
      {"Example.COM:8787", {"example.com", "8787"}},
      {"example.com:", {"example.com", ""}},
      {"127.0.0.1:1", {"127.0.0.1", "1"}},
      {"[::1]:8787", {"::1", "8787"}},
      {"[2001:DB8::1]", {"2001:db8::1", ""}},
      {"a_b-c.d~e", {"a_b-c.d~e", ""}},
      {"xn--bcher-kva.example:65535", {"xn--bcher-kva.example", "65535"}},
  };
  for (const auto& [text, expected] : cases) EXPECT_EQ(parse_authority(text), expected) << text;
}

TEST(AuthorityTest, AnythingElseIsNone) {
  for (const std::string_view text :
       {"",           ":80",      "a b",         "a/b", "user@host", "host:port", "host:-1",
        "host:65536", "host:1:2", "[::1",        "[]",  "[host]",    "[::1]x",    "::1",
        "a\tb",       "a,b c",    "h\xc3\xb6st", "a?b", "a#b",       "host:80 "}) {
    EXPECT_EQ(parse_authority(text), std::nullopt) << text;
  }
}

TEST(AuthorityTest, AnOriginHasASchemeAndNothingBehindItsAuthority) {
  EXPECT_EQ(parse_origin("HTTPS://App.example:8443"),
            (WebOrigin{"https", {"app.example", "8443"}}));
  EXPECT_EQ(parse_origin("http://[::1]:5173"), (WebOrigin{"http", {"::1", "5173"}}));
  for (const std::string_view text :
       {"", "null", "example.com", "://example.com", "http://", "http://a/", "http://a/b",
        "http:/a", "ht tp://a", "http://a, http://b"}) {
    EXPECT_EQ(parse_origin(text), std::nullopt) << text;
  }
}

TEST(AuthorityTest, APortThatTheSchemeHasAnyhowSaysNothing) {
  const auto port = [](std::string_view given, std::string_view scheme) {
    return without_default_port({"a", std::string(given)}, scheme).port;
  };
  EXPECT_EQ(port("80", "http"), "");
  EXPECT_EQ(port("443", "https"), "");
  EXPECT_EQ(port("443", "http"), "443");
  EXPECT_EQ(port("80", "https"), "80");
  EXPECT_EQ(port("8787", "http"), "8787");
}

TEST(AuthorityTest, LoopbackIsThisMachineAndNothingThatLooksLikeIt) {
  for (const std::string_view host : {"localhost", "LOCALHOST", "localhost.", "app.localhost",
                                      "127.0.0.1", "127.255.0.9", "::1", "0:0:0:0:0:0:0:1"}) {
    EXPECT_TRUE(is_loopback_host(host)) << host;
  }
  for (const std::string_view host :
       {"", "example.com", "localhost.example.com", "mylocalhost", "127.0.0.1.example.com",
        "128.0.0.1", "0.0.0.0", "::2", "::", "127.1", "10.0.0.1"}) {
    EXPECT_FALSE(is_loopback_host(host)) << host;
  }
}

}  // namespace
}  // namespace hearth
