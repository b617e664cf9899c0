#include "api/origin_rules.hpp"

#include <gtest/gtest.h>

#include <ostream>
#include <string>
#include <vector>

namespace hearth::api {
namespace {

using Names = std::vector<std::string>;

struct OriginCase {
  std::string listen;
  Names origins;
  Names hosts;
  std::string host;    // of the request; empty: none
  std::string origin;  // the same
  bool served = false;
};

void PrintTo(const OriginCase& each, std::ostream* out) {
  *out << "listen " << each.listen << ", Host '" << each.host << "', Origin '" << each.origin
       << "'";
}

class OriginRulesTest : public ::testing::TestWithParam<OriginCase> {};

TEST_P(OriginRulesTest, DecideWhoIsServed) {
  const OriginCase& each = GetParam();
  const OriginRules rules(is_loopback_host(each.listen), each.origins, each.hosts);
  net::HttpHeaders headers;
  if (!each.host.empty()) headers.push_back({"Host", each.host});
  if (!each.origin.empty()) headers.push_back({"origin", each.origin});
  const auto refusal = rules.refusal(headers);
  EXPECT_EQ(!refusal.has_value(), each.served);
  if (refusal) {
    EXPECT_EQ(refusal->status, 403);
    EXPECT_NE(refusal->body.find("can allow it"), std::string::npos) << refusal->body;
  }
}

INSTANTIATE_TEST_SUITE_P(
    OnLoopback, OriginRulesTest,
    ::testing::Values(
        OriginCase{"127.0.0.1", {}, {}, "127.0.0.1:8787", "", true},
        OriginCase{"127.0.0.1", {}, {}, "localhost:8787", "", true},
        OriginCase{"localhost", {}, {}, "[::1]:8787", "", true},
        OriginCase{"::1", {}, {}, "app.localhost", "", true},
        OriginCase{"127.0.0.1", {}, {}, "", "", true},
        OriginCase{"127.0.0.1", {}, {}, "evil.example:8787", "", false},
        OriginCase{"127.0.0.1", {}, {}, "evil.example:8787", "http://evil.example:8787", false},
        OriginCase{"127.0.0.1", {}, {"*"}, "evil.example", "", true},
        OriginCase{"127.0.0.1", {}, {"app.example"}, "App.example:443", "", true},
        OriginCase{"127.0.0.1", {}, {"app.example"}, "localhost", "", true},
        OriginCase{"127.0.0.1", {}, {"app.example:443"}, "app.example", "", false},
        OriginCase{"127.0.0.1", {}, {"app.example"}, "app.example", "https://app.example", true},
        OriginCase{"127.0.0.1", {}, {}, "localhost:8787", "http://localhost:8787", true},
        OriginCase{"127.0.0.1", {}, {}, "localhost:8787", "http://localhost:5173", true},
        OriginCase{"127.0.0.1", {}, {}, "127.0.0.1:8787", "http://[::1]:5173", true},
        OriginCase{"127.0.0.1", {}, {}, "localhost:8787", "https://evil.example", false},
        OriginCase{"127.0.0.1", {}, {}, "localhost:8787", "http://localhost.evil.example", false},
        OriginCase{"127.0.0.1", {}, {}, "localhost:8787", "null", false},
        OriginCase{"127.0.0.1", {"null"}, {}, "localhost:8787", "null", true},
        OriginCase{"127.0.0.1", {}, {}, "localhost:8787", "nonsense", false},
        OriginCase{
            "127.0.0.1", {"https://app.example"}, {}, "localhost", "https://app.example", true},
        OriginCase{
            "127.0.0.1", {"https://app.example"}, {}, "localhost", "https://app.example:443", true},
        OriginCase{
            "127.0.0.1", {"https://app.example"}, {}, "localhost", "http://app.example", false},
        OriginCase{"127.0.0.1", {"*"}, {}, "localhost", "https://evil.example", true},
        OriginCase{"127.0.0.1", {"*"}, {}, "localhost", "null", true}));

INSTANTIATE_TEST_SUITE_P(
    OnTheNetwork, OriginRulesTest,
    ::testing::Values(
        OriginCase{"0.0.0.0", {}, {}, "app.example", "", true},
        OriginCase{"0.0.0.0", {}, {}, "app.example", "https://app.example", true},
        OriginCase{"0.0.0.0", {}, {}, "app.example:443", "https://app.example", true},
        OriginCase{"0.0.0.0", {}, {}, "app.example:8787", "http://app.example:8787", true},
        OriginCase{"0.0.0.0", {}, {}, "app.example:8787", "http://app.example", false},
        OriginCase{"0.0.0.0", {}, {}, "app.example", "https://other.example", false},
        OriginCase{"0.0.0.0", {}, {}, "app.example", "http://localhost:5173", false},
        OriginCase{"0.0.0.0", {}, {}, "app.example", "null", false},
        OriginCase{"0.0.0.0", {}, {"app.example"}, "app.example", "", true},
        OriginCase{"0.0.0.0", {}, {"app.example"}, "10.0.0.1:8787", "", false},
        OriginCase{"0.0.0.0", {}, {"app.example"}, "localhost", "", true}));

TEST(OriginRulesByDefaultTest, ServeEverybody) {
  EXPECT_FALSE(OriginRules().refusal({{"Host", "a"}, {"Origin", "https://b"}}));
}

TEST(OriginRulesByDefaultTest, AnImageOfAnotherSitesPageIsRefused) {
  const net::HttpHeaders image = {{"Host", "localhost"}, {"Sec-Fetch-Site", "cross-site"}};
  EXPECT_TRUE(OriginRules(true, {}, {}).refusal(image));
  EXPECT_TRUE(OriginRules(false, {"https://app.example"}, {}).refusal(image));
  EXPECT_FALSE(OriginRules(true, {"*"}, {}).refusal(image));
  for (const std::string site : {"none", "same-origin", "same-site"}) {
    EXPECT_FALSE(
        OriginRules(true, {}, {}).refusal({{"Host", "localhost"}, {"Sec-Fetch-Site", site}}));
  }
  EXPECT_FALSE(OriginRules(true, {"https://app.example"}, {})
                   .refusal({{"Host", "localhost"},
                             {"Origin", "https://app.example"},
                             {"Sec-Fetch-Site", "cross-site"}}));
}

TEST(OriginRulesByDefaultTest, EachOfSeveralOriginsMustBeServed) {
  const OriginRules rules(true, {}, {});
  EXPECT_TRUE(rules.refusal(
      {{"Host", "localhost"}, {"Origin", "http://localhost"}, {"Origin", "https://evil.example"}}));
}

// The commands of this machine, and its health check. No page of another site has such a Host.
INSTANTIATE_TEST_SUITE_P(
    FromThisMachine, OriginRulesTest,
    ::testing::Values(
        OriginCase{"0.0.0.0", {}, {"app.example"}, "127.0.0.1:8787", "", true},
        OriginCase{"0.0.0.0", {}, {"app.example"}, "[::1]:8787", "", true},
        OriginCase{"0.0.0.0", {}, {"app.example"}, "127.0.0.1.evil.example", "", false},
        OriginCase{"0.0.0.0", {}, {"app.example"}, "localhost.evil.example", "", false},
        OriginCase{"0.0.0.0", {}, {"app.example"}, "localhost:1", "http://localhost:1", true},
        OriginCase{"0.0.0.0", {}, {"app.example"}, "localhost:1", "http://localhost:2", false},
        OriginCase{"0.0.0.0", {}, {"app.example"}, "localhost:1", "http://app.example", false},
        OriginCase{"0.0.0.0", {}, {"app.example"}, "localhost:1", "http://evil.example", false},
        OriginCase{"0.0.0.0", {}, {"app.example"}, "localhost:1", "null", false},
        OriginCase{"0.0.0.0", {}, {"app.example"}, "evil.test:1", "http://evil.test:1", false}));

}  // namespace
}  // namespace hearth::api
