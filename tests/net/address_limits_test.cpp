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
  while (use_->may_send(0, kStart)) ++messages;
  EXPECT_EQ(messages, 20);
  const SocketTime later = kStart + seconds(100);
  EXPECT_TRUE(use_->may_send(999, later));
  EXPECT_TRUE(use_->may_send(1, later));
  EXPECT_FALSE(use_->may_send(1, later));
  int agents = 0;
  while (use_->may_make_agent(kStart)) ++agents;
  EXPECT_EQ(agents, 3);
  EXPECT_FALSE(use_->may_make_agent(kStart + seconds(19)));
  EXPECT_TRUE(use_->may_make_agent(kStart + seconds(21)));
  for (const char* limit : {"new_connections", "messages", "bytes"})
    EXPECT_TRUE(has_counted(limit, 1)) << limit;
  EXPECT_TRUE(has_counted("new_agents", 2));
}

}  // namespace
}  // namespace hearth::net
