#include "net/address_limits.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <optional>
#include <string>

namespace hearth::net {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

const SocketTime kStart = SocketTime(seconds(1000));

TEST(RateTest, LetsThroughSoMuchASecondAndASpanOfItAtOnce) {
  Rate rate;
  int at_once = 0;
  while (rate.take(1, 5, seconds(10), kStart)) ++at_once;
  EXPECT_EQ(at_once, 50);
  EXPECT_FALSE(rate.is_unused(kStart));
  int later = 0;
  for (int i = 1; i <= 100; ++i) {
    while (rate.take(1, 5, seconds(10), kStart + milliseconds(100 * i))) ++later;
  }
  EXPECT_EQ(later, 50);  // of the ten seconds
  EXPECT_FALSE(rate.is_unused(kStart + seconds(19)));
  EXPECT_TRUE(rate.is_unused(kStart + seconds(20)));
}

TEST(RateTest, WhatIsLargerThanASpanGoesThroughAloneAndIsPaidOff) {
  Rate rate;
  EXPECT_TRUE(rate.take(1000, 10, seconds(10), kStart));
  EXPECT_FALSE(rate.take(1, 10, seconds(10), kStart + seconds(80)));
  EXPECT_TRUE(rate.take(1, 10, seconds(10), kStart + seconds(91)));
}

TEST(RateTest, ZeroIsNoLimit) {
  Rate rate;
  for (int i = 0; i < 1000; ++i) ASSERT_TRUE(rate.take(1e9, 0, seconds(10), kStart));
  EXPECT_TRUE(rate.is_unused(kStart));
}

class AddressUseTest : public ::testing::Test {
 protected:
  void make(const AddressLimits& limits) {
    use_.emplace(std::make_shared<const AddressPolicy>(limits, metrics_, *logger_));
  }
  [[nodiscard]] bool has_counted(const std::string& limit, int times) const {
    return metrics_.text().find("hearth_addresses_limited_total{limit=\"" + limit + "\"} " +
                                std::to_string(times) + "\n") != std::string::npos;
  }

  Metrics metrics_;
  std::unique_ptr<Logger> logger_ = make_null_logger();
  std::optional<AddressUse> use_;
};

TEST_F(AddressUseTest, HasSoManyConnectionsAtOnce) {
  AddressLimits limits;
  limits.connections = 2;
  make(limits);
  EXPECT_TRUE(use_->may_connect(kStart));
  EXPECT_TRUE(use_->may_connect(kStart));
  EXPECT_FALSE(use_->may_connect(kStart));
  EXPECT_TRUE(has_counted("connections", 1));
  use_->leave();
  EXPECT_TRUE(use_->may_connect(kStart));
  EXPECT_FALSE(use_->is_unused(kStart + seconds(100)));
  use_->leave();
  use_->leave();
  EXPECT_TRUE(use_->is_unused(kStart + seconds(100)));
}

TEST_F(AddressUseTest, EachLimitIsCountedUnderItsName) {
  AddressLimits limits;
  limits.new_connections = 1;
  limits.messages = 2;
  limits.bytes = 100;
  limits.new_agents = 3;
  make(limits);
  int connections = 0;
  while (use_->may_connect(kStart)) ++connections;
  EXPECT_EQ(connections, 10);
  int messages = 0;
  while (use_->may_send(1, 0, kStart)) ++messages;
  EXPECT_EQ(messages, 20);
  const SocketTime later = kStart + seconds(100);
  EXPECT_TRUE(use_->may_send(1, 999, later));
  EXPECT_TRUE(use_->may_send(1, 1, later));
  EXPECT_FALSE(use_->may_send(1, 1, later));
  int agents = 0;
  while (use_->may_make_agent(kStart)) ++agents;
  EXPECT_EQ(agents, 3);
  EXPECT_FALSE(use_->may_make_agent(kStart + seconds(19)));
  EXPECT_TRUE(use_->may_make_agent(kStart + seconds(21)));
  for (const char* limit : {"new_connections", "messages", "bytes"})
    EXPECT_TRUE(has_counted(limit, 1)) << limit;
  EXPECT_TRUE(has_counted("new_agents", 2));
}

TEST_F(AddressUseTest, ManyMessagesAtOnceAreManyAndNoneAreNone) {
  AddressLimits limits;
  limits.messages = 10;
  limits.bytes = 10;
  make(limits);
  EXPECT_TRUE(use_->may_send(100, 0, kStart));
  EXPECT_FALSE(use_->may_send(1, 0, kStart));
  EXPECT_TRUE(use_->may_send(0, 100, kStart)) << "the rest of a message that was counted";
  EXPECT_FALSE(use_->may_send(0, 1, kStart));
  EXPECT_TRUE(use_->may_send(0, 0, kStart));
  EXPECT_TRUE(has_counted("messages", 1));
  EXPECT_TRUE(has_counted("bytes", 1));
}

// Two addresses that may do as they like, and together may do little.
class TotalUseTest : public ::testing::Test {
 protected:
  TotalUseTest() {
    const TotalLimits limits{.new_connections = 1, .messages = 2, .bytes = 100, .new_agents = 3};
    total_ = std::make_shared<AddressUse>(
        std::make_shared<const AddressPolicy>(limits, metrics_, *logger_));
    AddressLimits own;
    own.new_connections = own.messages = own.new_agents = 0;
    own.bytes = 60;
    const auto policy = std::make_shared<const AddressPolicy>(own, metrics_, *logger_);
    one_.emplace(policy, total_);
    other_.emplace(policy, total_);
  }
  // How often the two may, in turn.
  template <class May>
  int times(May may) {
    int count = 0;
    while (may(count % 2 == 0 ? *one_ : *other_)) ++count;
    return count;
  }

  Metrics metrics_;
  std::unique_ptr<Logger> logger_ = make_null_logger();
  std::shared_ptr<AddressUse> total_;
  std::optional<AddressUse> one_;
  std::optional<AddressUse> other_;
};

TEST_F(TotalUseTest, BoundsAllAddressesTogetherAndIsCountedUnderItsName) {
  const SocketTime later = kStart + seconds(100);
  EXPECT_EQ(times([](AddressUse& use) { return use.may_connect(kStart); }), 10);
  EXPECT_EQ(times([](AddressUse& use) { return use.may_send(1, 0, kStart); }), 20);
  EXPECT_EQ(times([&](AddressUse& use) { return use.may_send(1, 100, later); }), 10);
  EXPECT_EQ(times([](AddressUse& use) { return use.may_make_agent(kStart); }), 3);
  for (const char* limit : {"new_connections", "messages", "bytes", "new_agents"}) {
    const std::string counted = std::string("_limited_total{limit=\"") + limit + "\"} ";
    EXPECT_NE(metrics_.text().find("hearth_total" + counted + "1\n"), std::string::npos) << limit;
    EXPECT_NE(metrics_.text().find("hearth_addresses" + counted + "0\n"), std::string::npos);
  }
}

TEST_F(TotalUseTest, WhatAnAddressMayNotIsNotTakenFromTheOthers) {
  int sent = 0;
  for (int i = 0; i < 1000; ++i) sent += one_->may_send(1, 100, kStart) ? 1 : 0;
  EXPECT_EQ(sent, 6) << "60 bytes for ten seconds";
  EXPECT_EQ(times([&](AddressUse&) { return other_->may_send(1, 100, kStart); }), 4);
}

}  // namespace
}  // namespace hearth::net
