// Durability `power` as clients see it: over real sockets, with syncs that the test holds back or
// lets fail.
#include "api/api_fixture.hpp"
#include "support/exposition.hpp"
#include "support/fake_sync_calls.hpp"

#include <cerrno>
#include <memory>
#include <string>
#include <thread>
#include <vector>

namespace hearth::api::testing {
namespace {

// Stores the text of a message and answers it. `read` answers the stored text.
Result<void> keeper(HostCalls& host, const AgentEvent& event) {
  if (event.kind == EventKind::kConnecting) {
    return host.set_flags(event.connection, runtime::Connection::kNoProtocol);
  }
  if (event.kind == EventKind::kMessage) {
    (void)host.set_state(0, event.body);
    (void)host.send(event.connection, FrameKind::kText, "kept " + std::string(event.body));
  }
  if (event.kind == EventKind::kCall && event.name == "keep") {
    (void)host.set_state(0, event.body);
    return host.complete(event.call, std::string_view("true"));
  }
  if (event.kind == EventKind::kCall && event.name == "read") {
    const std::string state(host.state().value_or("null"));
    return host.complete(event.call, std::string_view(state));
  }
  return nothing(host, event);
}

// A base of its own: the server syncs until its fixture is gone.
struct HeldSyncs {
  hearth::testing::FakeSyncCalls calls_;
};

class PowerTest : protected HeldSyncs, public ApiFixture {
 protected:
  void start_keepers() {
    sync_calls_ = &calls_;
    start();
    runtime::ClassSettings power;
    power.durability = runtime::Durability::kPower;
    serve("Careful", keeper, power);
    serve("Quick", keeper);
    (void)calls_.take_calls();
  }
  ~PowerTest() override { calls_.let_go(); }

  // What the sync service has counted.
  double syncs(const std::string& of_what) {
    return hearth::testing::Exposition(metrics_.text())
        .value("hearth_sync_" + of_what + "_total")
        .value_or(-1);
  }
  // There is only one loop, so its earlier work is done.
  void let_the_loop_pass() { EXPECT_EQ(get("/healthz").status, 200); }
};

TEST_F(PowerTest, AFrameDoesNotArriveBeforeTheSyncAndDoesRightAfter) {
  start_keepers();
  Client client = connect("/agents/careful/a");
  calls_.hold();
  client.say("1");
  calls_.wait_until_somebody_waits();
  let_the_loop_pass();
  EXPECT_FALSE(client.has_unread());
  calls_.let_go();
  EXPECT_EQ(client.read_text(), "kept 1");
}

TEST_F(PowerTest, UnderProcessItArrivesThoughNoSyncEverReturns) {
  start_keepers();
  calls_.hold();
  Client client = connect("/agents/quick/a");
  client.say("1");
  EXPECT_EQ(client.read_text(), "kept 1");
  EXPECT_TRUE(calls_.take_calls().empty());
}

TEST_F(PowerTest, ReadingWaitsForNothing) {
  start_keepers();
  Client client = connect("/agents/careful/a");
  client.say("1");
  EXPECT_EQ(client.read_text(), "kept 1");
  calls_.hold();
  EXPECT_TRUE(contains(client.call("read"), R"("result":1)"));
}

TEST_F(PowerTest, WhatFollowsAWriteWaitsWithItAlsoForOtherClients) {
  start_keepers();
  Client writer = connect("/agents/careful/a");
  Client reader = connect("/agents/careful/a");
  calls_.hold();
  writer.say("1");
  calls_.wait_until_somebody_waits();
  reader.say(Client::call_text("c", "read"));
  let_the_loop_pass();
  EXPECT_FALSE(reader.has_unread()) << "it would learn of what may be lost";
  calls_.let_go();
  EXPECT_EQ(writer.read_text(), "kept 1");
  EXPECT_TRUE(contains(reader.read_text(), R"("result":1)"));
}

TEST_F(PowerTest, AFailedSyncIsAnErrorAndTheAgentComesBackFromTheDisk) {
  start_keepers();
  Client client = connect("/agents/careful/a");
  EXPECT_TRUE(contains(client.call("keep", "[1]"), R"("success":true)"));
  calls_.answer_with([](const std::string& call) { return call.starts_with("data") ? EIO : 0; });
  const std::string answer = client.call("keep", "[2]");
  EXPECT_TRUE(contains(answer, R"("success":false)", "storage failed"));
  calls_.answer_with(nullptr);
  const std::string kept = client.call("read");
  EXPECT_TRUE(kept.find(R"("result":[1])") != std::string::npos ||
              kept.find(R"("result":[2])") != std::string::npos)
      << kept;
  EXPECT_TRUE(contains(client.call("keep", "[3]"), R"("success":true)"));
  EXPECT_TRUE(contains(client.call("read"), R"("result":[3])"));
}

TEST_F(PowerTest, ManyAgentsShareTheWait) {
  constexpr std::size_t kAgents = 20;
  calls_.cover(true);
  start_keepers();
  std::vector<std::unique_ptr<Client>> clients;
  for (std::size_t i = 0; i < kAgents; ++i) {
    clients.push_back(std::make_unique<Client>(port(), "/agents/careful/" + std::to_string(i)));
    clients.back()->say("0");
    EXPECT_EQ(clients.back()->read_text(), "kept 0");
  }
  const double requests = syncs("requests");
  const double batches = syncs("batches");
  calls_.hold();
  (void)calls_.take_calls();
  clients[0]->say("1");
  calls_.wait_until_somebody_waits();
  for (auto& client : clients) client->say("2");
  while (syncs("requests") < requests + 1 + kAgents) let_the_loop_pass();
  calls_.let_go();
  EXPECT_EQ(clients[0]->read_text(), "kept 1");
  for (auto& client : clients) EXPECT_EQ(client->read_text(), "kept 2");
  EXPECT_EQ(syncs("batches"), batches + 2);
  const auto calls = calls_.take_calls();
  ASSERT_EQ(calls.size(), 2U);
  EXPECT_EQ(calls.back(), "everything");
}

TEST_F(PowerTest, StoppingLetsHeldAnswersOutFirst) {
  start_keepers();
  Client client = connect("/agents/careful/a");
  calls_.hold();
  client.say("1");
  calls_.wait_until_somebody_waits();
  std::thread stopping([this] { stop_runtime(); });
  calls_.let_go();
  stopping.join();
  EXPECT_EQ(client.read_text(), "kept 1");
}

}  // namespace
}  // namespace hearth::api::testing
