#include "runtime/connections.hpp"

#include "fakes.hpp"

#include <gtest/gtest.h>

namespace hearth::runtime {
namespace {

class ConnectionsTest : public ::testing::Test {
 protected:
  Connection& add(const std::string& client_id = "me", const std::string& claims = {}) {
    ConnectRequest request;
    request.claims = claims;
    request.id = client_id;
    request.target = "/agents/counter/a";
    request.headers = {{"X-Test", "1"}};
    return clients_.add(nullptr, std::move(request), std::make_unique<testing::FakePort>(sight_));
  }

  std::shared_ptr<testing::Sight> sight_ = std::make_shared<testing::Sight>();
  Metrics metrics_;
  Gauge& count_ = metrics_.gauge("connections", "Clients.", {});
  Counter& dropped_ = metrics_.counter("dropped_total", "Clients.", {});
  hearth::testing::RecordingLogger logger_;
  ClientMemory memory_{std::size_t{64} << 10};
  Connections clients_{{count_, dropped_, logger_, memory_}};
};

TEST_F(ConnectionsTest, ANewClientIsFoundByItsIdAndWaits) {
  const Connection& client = add("me");
  EXPECT_EQ(clients_.find(client.id), &client);
  EXPECT_EQ(client.state, ConnectionState::kWaiting);
  EXPECT_EQ(client.client_id, "me");
  EXPECT_EQ(client.target, "/agents/counter/a");
  EXPECT_EQ(client.headers.size(), 1U);
}

TEST_F(ConnectionsTest, AnIdIsNeverUsedAgain) {
  const ConnectionId first = add().id;
  clients_.remove(first);
  const ConnectionId second = add().id;
  EXPECT_NE(second, first);
  EXPECT_EQ(clients_.find(first), nullptr);
  EXPECT_NE(clients_.find(second), nullptr);
}

TEST_F(ConnectionsTest, TheGaugeSaysHowManyThereAre) {
  const ConnectionId first = add().id;
  (void)add();
  EXPECT_EQ(count_.value(), 2);
  clients_.remove(first);
  clients_.remove(first);  // is gone already
  EXPECT_EQ(count_.value(), 1);
  EXPECT_EQ(clients_.size(), 1U);
}

TEST_F(ConnectionsTest, AClientIsEndedOnce) {
  Connection& client = add();
  EXPECT_TRUE(client.end(1013, "later"));
  EXPECT_FALSE(client.end(1011, "again"));
  EXPECT_EQ(*sight_, testing::Sight{"close 1013 later"});
}

TEST_F(ConnectionsTest, WhatAClientSaysWhenItConnectsIsOnTheAccount) {
  Connection& client = add("me", R"({"sub":"a"})");
  EXPECT_EQ(memory_.used(), 37U + sizeof(Headers::value_type));
  client.forget_headers();
  EXPECT_TRUE(client.headers.empty());
  EXPECT_EQ(memory_.used(), 30U);
  clients_.remove(client.id);
  EXPECT_EQ(memory_.used(), 0U);
}

TEST_F(ConnectionsTest, AClientThatIsDroppedForMemoryIsCountedOnceAndTold) {
  Connection& client = add();
  clients_.drop_for_memory(client, "no memory");
  clients_.drop_for_memory(client, "no memory");
  EXPECT_EQ(*sight_, testing::Sight{"close 1013 no memory"});
  EXPECT_EQ(dropped_.value(), 1U);
  EXPECT_TRUE(logger_.contains("agent.client_dropped"));
}

TEST_F(ConnectionsTest, TheIdOfAClientIsItsFirstTag) {
  Connection& client = add("me");
  client.tags = {"red"};
  EXPECT_TRUE(client.has_tag("me"));
  EXPECT_TRUE(client.has_tag("red"));
  EXPECT_FALSE(client.has_tag("blue"));
}

}  // namespace
}  // namespace hearth::runtime
