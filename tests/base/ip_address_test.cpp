#include "base/ip_address.hpp"

#include <gtest/gtest.h>

namespace hearth {
namespace {

TEST(IpAddressTest, TheUsualFormIsReadAndWritten) {
  for (const char* text : {"127.0.0.1", "255.255.255.255", "::1", "fd00::1", "2606:4700::1111"}) {
    const auto address = parse_ip_address(text);
    ASSERT_TRUE(address) << text;
    EXPECT_EQ(to_text(*address), text);
  }
  for (const char* text :
       {"", "127.1", "0177.0.0.1", "[::1]", "fe80::1%eth0", "example.com", "1.2.3.4."})
    EXPECT_FALSE(parse_ip_address(text)) << text;
  EXPECT_FALSE(parse_ip_address(std::string_view("127.0.0.1\0.example.com", 22)));
}

TEST(IpAddressTest, AHostMayBeAnAddressInOddForms) {
  for (const char* text : {"127.0.0.1", "127.1", "0177.1", "0x7f000001", "0x7F.1", "2130706433",
                           "017700000001", "127.0.1", "0x7f.0x0.0x0.0x1"}) {
    const auto address = parse_ip_host(text);
    ASSERT_TRUE(address) << text;
    EXPECT_EQ(to_text(*address), "127.0.0.1") << text;
  }
  EXPECT_EQ(to_text(parse_ip_host("[::ffff:127.0.0.1]").value()), "::ffff:127.0.0.1");
  for (const char* text : {"", "1.2.3.4.5", "256.1.1.1", "1.2.3.256", "4294967296", "08.1.1.1",
                           "1..1", "a.b", "[127.0.0.1]", "[::1", "[fe80::1%25eth0]"})
    EXPECT_FALSE(parse_ip_host(text)) << text;
}

TEST(IpAddressTest, AHostThatEndsInANumberIsSeen) {
  for (const char* text : {"1", "a.1", "127.0.0.1", "a.0x7f", "1.2.3.4.5", "a.099"})
    EXPECT_TRUE(ends_in_number(text)) << text;
  for (const char* text : {"", "a", "1.a", "1a", "a.0xg"})
    EXPECT_FALSE(ends_in_number(text)) << text;
}

TEST(IpAddressTest, PublicIsWhatTheInternetRoutes) {
  for (const char* text : {"8.8.8.8", "1.1.1.1", "100.63.255.255", "100.128.0.0", "172.15.255.255",
                           "172.32.0.0", "223.255.255.255", "2606:4700::1111", "2a00::1",
                           "::ffff:8.8.8.8", "64:ff9b::808:808", "2002:808:808::1"})
    EXPECT_TRUE(is_public(parse_ip_address(text).value())) << text;
  for (const char* text :
       {"0.0.0.0",        "0.1.2.3",        "10.0.0.1",        "100.64.0.1",  "100.127.255.255",
        "127.0.0.1",      "127.255.0.1",    "169.254.169.254", "172.16.0.1",  "172.31.255.255",
        "192.0.0.1",      "192.0.2.1",      "192.88.99.1",     "192.168.1.1", "198.18.0.1",
        "198.19.255.255", "198.51.100.1",   "203.0.113.1",     "224.0.0.1",   "239.1.1.1",
        "240.0.0.1",      "255.255.255.255"})
    EXPECT_FALSE(is_public(parse_ip_address(text).value())) << text;
  for (const char* text : {"::",
                           "::1",
                           "fe80::1",
                           "fc00::1",
                           "fd00::1",
                           "fec0::1",
                           "ff02::1",
                           "2001::1",
                           "2001:db8::1",
                           "3fff::1",
                           "100::1",
                           "4000::1",
                           "64:ff9b:1::1",
                           "::ffff:127.0.0.1",
                           "::ffff:10.0.0.1",
                           "::10.0.0.1",
                           "64:ff9b::a00:1",
                           "64:ff9b::a9fe:a9fe",
                           "2002:a00:1::1",
                           "2002:7f00:1::"})
    EXPECT_FALSE(is_public(parse_ip_address(text).value())) << text;
}

TEST(IpAddressTest, ANetworkIsItsFirstBits) {
  const auto in = [](const char* address, const char* network, int prefix) {
    return is_in_network(parse_ip_address(address).value(), parse_ip_address(network).value(),
                         prefix);
  };
  EXPECT_TRUE(in("10.255.1.2", "10.0.0.0", 8));
  EXPECT_FALSE(in("11.0.0.0", "10.0.0.0", 8));
  EXPECT_TRUE(in("172.31.0.0", "172.16.0.0", 12));
  EXPECT_FALSE(in("172.32.0.0", "172.16.0.0", 12));
  EXPECT_TRUE(in("1.2.3.4", "1.2.3.4", 32));
  EXPECT_FALSE(in("1.2.3.5", "1.2.3.4", 32));
  EXPECT_TRUE(in("9.9.9.9", "0.0.0.0", 0));
  EXPECT_TRUE(in("fd12::1", "fd00::", 8));
  EXPECT_TRUE(in("::1", "::1", 128));
  EXPECT_FALSE(in("::2", "::1", 128));
  EXPECT_FALSE(in("10.0.0.0", "::", 0)) << "another version";
}

}  // namespace
}  // namespace hearth
