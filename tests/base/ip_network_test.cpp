#include "base/ip_network.hpp"

#include <gtest/gtest.h>

namespace hearth {
namespace {

TEST(IpNetworkTest, HasWhatItsBitsSay) {
  struct Case {
    const char* network;
    const char* address;
    bool has;
  };
  for (const Case& each : {
           Case{"127.0.0.0/8", "127.255.0.1", true},
           Case{"127.0.0.0/8", "128.0.0.1", false},
           Case{"10.1.2.3", "10.1.2.3", true},
           Case{"10.1.2.3", "10.1.2.4", false},
           Case{"0.0.0.0/0", "9.9.9.9", true},
           Case{"0.0.0.0/0", "::1", false},
           Case{"2001:db8::/32", "2001:db8:1::5", true},
           Case{"2001:db8::/33", "2001:db8:8000::", false},
           Case{"::1", "::1", true},
       }) {
    const auto network = parse_ip_network(each.network);
    ASSERT_TRUE(network) << each.network;
    EXPECT_EQ(network->has(parse_ip_address(each.address).value()), each.has)
        << each.network << " " << each.address;
  }
}

TEST(IpNetworkTest, WhatIsNoNetworkIsRefused) {
  for (const char* text : {"", "x", "10.0.0.1/8", "10.0.0.0/33", "10.0.0.0/", "10.0.0.0/-1",
                           "10.0.0.0/8x", "::1/129", "2001:db8::1/32", "localhost", "[::1]"}) {
    EXPECT_FALSE(parse_ip_network(text)) << text;
  }
}

TEST(IpNetworkTest, AnAddressIsCutToItsNetwork) {
  const auto cut = [](const char* address, int prefix) {
    return to_text(network_of(parse_ip_address(address).value(), prefix));
  };
  EXPECT_EQ(cut("2001:db8:1:2:3:4:5:6", 64), "2001:db8:1:2::");
  EXPECT_EQ(cut("10.1.255.3", 20), "10.1.240.0");
  EXPECT_EQ(cut("10.1.2.3", 32), "10.1.2.3");
}

}  // namespace
}  // namespace hearth
