#include "net/address_table.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace hearth::net {
namespace {

using std::chrono::seconds;

class AddressTableTest : public ::testing::Test {
 protected:
  AddressTableTest() { limits_.connections = 1; }

  AddressTable::Admission admit(const std::string& address, seconds later = seconds(0)) {
    if (!table_) {
      table_ = std::make_unique<AddressTable>(
          std::make_shared<const AddressPolicy>(limits_, metrics_, *logger_), nullptr);
    }
    return table_->admit(parse_ip_address(address), start_ + later);
  }
  // A first connection stays open, and one from the other address comes.
  bool are_one(const std::string& first, const std::string& second) {
    const auto open = admit(first);
    EXPECT_TRUE(open.is_admitted) << first;
    return !admit(second).is_admitted;
  }

  AddressLimits limits_;
  Metrics metrics_;
  std::unique_ptr<Logger> logger_ = make_null_logger();
  std::unique_ptr<AddressTable> table_;
  const SocketTime start_ = SocketTime(seconds(1000));
};

TEST_F(AddressTableTest, AddressesOfOneClientAreOne) {
  EXPECT_TRUE(are_one("10.0.0.1", "10.0.0.1"));
  EXPECT_FALSE(are_one("10.0.0.2", "10.0.0.3"));
  EXPECT_TRUE(are_one("2001:db8::1", "2001:db8::ffff:1")) << "of one /64";
  EXPECT_FALSE(are_one("2001:db8:0:1::1", "2001:db8:0:2::1"));
  EXPECT_TRUE(are_one("10.0.0.4", "::ffff:10.0.0.4")) << "of a socket for both families";
}

TEST_F(AddressTableTest, AConnectionCountsUntilItsLastHolderLetsGo) {
  auto open = admit("10.0.0.1");
  ASSERT_NE(open.address, nullptr);
  EXPECT_FALSE(admit("10.0.0.1").is_admitted);
  open.address.reset();
  EXPECT_TRUE(admit("10.0.0.1").is_admitted);
}

TEST_F(AddressTableTest, ThisMachineAndWhoIsExemptHaveNoLimits) {
  for (const char* address : {"127.0.0.1", "127.1.2.3", "::1", "::ffff:127.0.0.1"}) {
    EXPECT_FALSE(are_one(address, address)) << address;
    EXPECT_EQ(admit(address).address, nullptr) << address;
  }
  table_.reset();
  limits_.exempt = {"10.1.0.0/16"};
  EXPECT_TRUE(are_one("127.0.0.1", "127.0.0.1"));
  EXPECT_FALSE(are_one("10.1.2.3", "10.1.2.3"));
  EXPECT_EQ(table_->size(), 1U);
}

TEST_F(AddressTableTest, APeerThatIsGoneIsNobody) {
  (void)admit("10.0.0.1");
  EXPECT_TRUE(table_->admit(std::nullopt, start_).is_admitted);
  EXPECT_EQ(table_->size(), 1U);
}

TEST_F(AddressTableTest, TheTableIsBoundedAndRemembersWhoIsConnected) {
  const auto address = [](std::size_t i) {
    return "10." + std::to_string(i >> 16U) + "." + std::to_string(i >> 8U & 255U) + "." +
           std::to_string(i & 255U);
  };
  const auto open = admit("192.0.2.1");
  std::size_t largest = 0;
  for (std::size_t i = 0; i < 100'000; ++i) {
    (void)admit(address(i));
    largest = std::max(largest, table_->size());
  }
  EXPECT_LE(largest, 2 * AddressTable::kMostUnconnected + 2);
  EXPECT_FALSE(admit("192.0.2.1").is_admitted) << "it is connected";
}

}  // namespace
}  // namespace hearth::net
