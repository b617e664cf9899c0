#include "base/egress_rules.hpp"

#include <gtest/gtest.h>

namespace hearth {
namespace {

using Texts = std::vector<std::string>;

EgressRules rules_of(const Texts& allow, const Texts& deny = {}) {
  Result<EgressRules> rules = EgressRules::parse(allow, deny);
  EXPECT_TRUE(rules) << rules.error().message;
  return rules.value();
}

bool may_connect(const EgressRules& rules, std::string_view address, std::uint16_t port = 443) {
  return rules.may_connect(parse_ip_address(address).value(), port);
}

TEST(EgressRulesTest, P1_EveryNameAndPublicAddressWithoutRules) {
  const EgressRules rules;
  for (const char* host : {"example.com", "EXAMPLE.com.", "a_b.example", "localhost",
                           "xn--bcher-kva.example", "8.8.8.8", "[2606:4700::1111]"})
    EXPECT_TRUE(rules.may_ask(host, 443)) << host;
  EXPECT_TRUE(may_connect(rules, "8.8.8.8"));
  EXPECT_TRUE(may_connect(rules, "2606:4700::1111"));
}

TEST(EgressRulesTest, P1_NoAddressInsideInAnyForm) {
  const EgressRules rules;
  for (const char* host : {"127.0.0.1",
                           "127.1",
                           "0177.1",
                           "0x7f000001",
                           "2130706433",
                           "127.0.0.1.",
                           "0x7F.1",
                           "[::1]",
                           "[::ffff:127.0.0.1]",
                           "[::ffff:7f00:1]",
                           "[::127.0.0.1]",
                           "169.254.169.254",
                           "[64:ff9b::a9fe:a9fe]",
                           "10.0.0.1",
                           "[fd00::1]",
                           "[fe80::1]",
                           "0",
                           "0.0.0.0",
                           "[::]",
                           "192.168.0.1",
                           "100.64.0.1",
                           "224.0.0.1",
                           "255.255.255.255"})
    EXPECT_FALSE(rules.may_ask(host, 80)) << host;
  for (const char* address : {"127.0.0.1", "10.0.0.1", "169.254.169.254", "::1", "fd00::1",
                              "::ffff:10.0.0.1", "64:ff9b::a00:1"})
    EXPECT_FALSE(may_connect(rules, address)) << address;
}

TEST(EgressRulesTest, WhatIsNoHostIsRefused) {
  const EgressRules rules;
  for (const char* host : {"", ".", "..", "a..b", ".a", "a b", "a/b", "a%2eb", "bücher.example",
                           "1.2.3.4.5", "256.1.1.1", "a.1", "[::1", "fe80::1%eth0", "a.0x1"})
    EXPECT_FALSE(rules.may_ask(host, 80)) << host;
  EXPECT_FALSE(rules.may_ask(std::string(64, 'a'), 80));
  EXPECT_TRUE(rules.may_ask(std::string(63, 'a'), 80));
  std::string longest;
  for (int i = 0; i < 127; ++i) longest += "a.";
  EXPECT_TRUE(rules.may_ask(longest.substr(0, 253), 80));
  EXPECT_FALSE(rules.may_ask(longest + "aa", 80));
}

TEST(EgressRulesTest, P2_OnlyWhatIsAllowed) {
  struct Case {
    const char* pattern;
    const char* host;
    std::uint16_t port;
    bool allowed;
  };
  for (const Case& one : std::initializer_list<Case>{
           {"api.example.com", "api.example.com", 443, true},
           {"api.example.com", "API.Example.Com.", 80, true},
           {"API.example.com.", "api.example.com", 80, true},
           {"api.example.com", "x.api.example.com", 443, false},
           {"api.example.com", "api.example.com.evil.org", 443, false},
           {"api.example.com", "xapi.example.com", 443, false},
           {"api.example.com", "8.8.8.8", 443, false},
           {"*.example.com", "a.example.com", 443, true},
           {"*.example.com", "a.b.example.com", 443, true},
           {"*.example.com", "example.com", 443, false},
           {"*.example.com", ".example.com", 443, false},
           {"*.example.com", "aexample.com", 443, false},
           {"*", "anything.example", 1, true},
           {"*", "8.8.8.8", 1, true},
           {"*", "10.0.0.1", 1, false},
           {"*:443", "anything.example", 443, true},
           {"*:443", "anything.example", 80, false},
           {"*:443", "8.8.8.8", 80, false},
           {"localhost:8080", "localhost", 8080, true},
           {"localhost:8080", "localhost", 8081, false},
           {"10.0.0.0/8", "10.1.2.3", 80, true},
           {"10.0.0.0/8", "[::ffff:10.1.2.3]", 80, true},
           {"10.0.0.0/8", "0x0a010203", 80, true},
           {"10.0.0.0/8", "11.0.0.1", 80, false},
           {"10.0.0.0/8", "api.example.com", 80, false},
           {"10.0.0.0/8:443", "10.1.2.3", 443, true},
           {"10.0.0.0/8:443", "10.1.2.3", 80, false},
           {"127.0.0.1:8080", "127.1", 8080, true},
           {"127.0.0.1:8080", "127.0.0.2", 8080, false},
           {"::1", "[::1]", 80, true},
           {"[::1]:80", "[::1]", 80, true},
           {"[::1]:80", "[::1]", 81, false},
           {"fd00::/8", "[fd12::1]", 80, true},
           {"[fd00::/8]:443", "[fd12::1]", 80, false},
           {"xn--bcher-kva.example", "XN--BCHER-KVA.example", 80, true},
       })
    EXPECT_EQ(rules_of({one.pattern}).may_ask(one.host, one.port), one.allowed)
        << one.pattern << " asked for " << one.host << ":" << one.port;
}

TEST(EgressRulesTest, P3_ANameIsNoWayInside) {
  for (const char* pattern : {"*", "localhost", "*.example.com", "db.example.com:5432"}) {
    const EgressRules rules = rules_of({pattern});
    EXPECT_TRUE(may_connect(rules, "8.8.8.8")) << pattern;
    for (const char* address : {"127.0.0.1", "10.0.0.1", "::1", "169.254.169.254"})
      EXPECT_FALSE(may_connect(rules, address)) << pattern << " " << address;
  }
  const EgressRules rules = rules_of({"db.example.com", "10.0.0.0/8:5432"});
  EXPECT_TRUE(may_connect(rules, "10.1.1.1", 5432));
  EXPECT_TRUE(may_connect(rules, "::ffff:10.1.1.1", 5432));
  EXPECT_FALSE(may_connect(rules, "10.1.1.1", 80));
  EXPECT_FALSE(may_connect(rules, "192.168.0.1", 5432));
}

TEST(EgressRulesTest, P4_DenyWins) {
  const EgressRules rules = rules_of({"*", "10.0.0.0/8", "bad.example.com"},
                                     {"*.example.com", "10.1.0.0/16", "8.8.8.8", "a.org:80"});
  EXPECT_FALSE(rules.may_ask("bad.example.com", 443));
  EXPECT_TRUE(rules.may_ask("example.com", 443));
  EXPECT_FALSE(rules.may_ask("a.org.", 80));
  EXPECT_TRUE(rules.may_ask("a.org", 443));
  EXPECT_FALSE(rules.may_ask("10.1.2.3", 80));
  EXPECT_TRUE(rules.may_ask("10.2.2.3", 80));
  EXPECT_FALSE(rules.may_ask("8.8.8.8", 80));
  for (const char* address : {"8.8.8.8", "::ffff:8.8.8.8", "64:ff9b::808:808", "10.1.0.1"})
    EXPECT_FALSE(may_connect(rules, address)) << address;
  const EgressRules none = rules_of({}, {"*"});
  EXPECT_FALSE(none.may_ask("example.com", 443));
  EXPECT_FALSE(none.may_ask("8.8.8.8", 443));
  EXPECT_FALSE(may_connect(none, "8.8.8.8"));
}

TEST(EgressRulesTest, AMistakeIsNamed) {
  struct Case {
    const char* pattern;
    const char* message;
  };
  for (const Case& one : std::initializer_list<Case>{
           {"", "is neither a host's name in ASCII, nor an address or network"},
           {"a b", "is neither a host's name in ASCII, nor an address or network"},
           {"bücher.example", "is neither a host's name in ASCII, nor an address or network"},
           {"a.*.example", "is neither a host's name in ASCII, nor an address or network"},
           {"http://a.example", "has a port that is not a number from 1 to 65535"},
           {"0177.1", "is neither a host's name in ASCII, nor an address or network"},
           {"10.0.0.0/33", "has a prefix that is not a number from 0 to 32"},
           {"10.0.0.0/", "has a prefix that is not a number from 0 to 32"},
           {"fd00::/129", "has a prefix that is not a number from 0 to 128"},
           {"10.0.0.1/8", "has bits set after the first 8"},
           {"a.example:", "has a port that is not a number from 1 to 65535"},
           {"a.example:0", "has a port that is not a number from 1 to 65535"},
           {"a.example:65536", "has a port that is not a number from 1 to 65535"},
           {"127.0.0.1:*", "has a port that is not a number from 1 to 65535"},
           {"[::1", "has a [ without a ]"},
           {"[::1]x", "has something other than a port after ]"},
       }) {
    const Result<EgressRules> allow = EgressRules::parse(Texts{"a.org", one.pattern}, {});
    ASSERT_FALSE(allow) << one.pattern;
    EXPECT_EQ(allow.error().code, Errc::kInvalidArgument);
    EXPECT_EQ(allow.error().message, "allow: \"" + std::string(one.pattern) + "\" " + one.message);
    const Result<EgressRules> deny = EgressRules::parse({}, Texts{one.pattern});
    ASSERT_FALSE(deny) << one.pattern;
    EXPECT_TRUE(deny.error().message.starts_with("deny: \"")) << deny.error().message;
  }
}

}  // namespace
}  // namespace hearth
