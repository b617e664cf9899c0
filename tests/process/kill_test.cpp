// Acknowledged work survives kill -9, at any moment.

#include "process/process_fixture.hpp"
#include "support/environment.hpp"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <iostream>
#include <mutex>
#include <random>
#include <string>
#include <thread>
#include <vector>

namespace hearth::testing {
namespace {

constexpr std::size_t kClients = 4;
constexpr std::size_t kAgents =
    2;  // clients share them, so that commits of one agent answer several clients
constexpr std::size_t kDepth = 8;                 // increments in flight of one client
constexpr std::uint64_t kMostAcknowledged = 600;  // of one round, before the kill

// What the clients of one agent know of it. An acknowledged count must never become smaller.
struct Ledger {
  std::uint64_t sent = 0;
  std::uint64_t acknowledged = 0;
  std::uint64_t highest = 0;  // count in an answer
};

class KillTest : public ProcessTest {
 protected:
  KillTest() { install(bundled("counter"), "counter.so"); }

  static std::string agent_name(std::size_t agent) { return "agent-" + std::to_string(agent); }

  // The number in {"count":N}, or in "result":N.
  static std::uint64_t number_after(const std::string& text, std::string_view key) {
    const std::size_t at = text.find(key);
    if (at == std::string::npos) throw std::runtime_error("no " + std::string(key) + " in " + text);
    return std::stoull(text.substr(at + key.size()));
  }

  // One client: keeps kDepth increments in flight until the server is gone.
  void increment_until_killed(std::uint16_t port, std::size_t agent) {
    try {
      RawClient client(port);
      client.upgrade("/agents/counter/" + agent_name(agent));
      for (std::size_t i = 0; i < kDepth; ++i) send_increment(client, agent);
      for (;;) {
        const std::string text = client.read_text();
        if (text.find(R"("type":"rpc")") == std::string::npos) continue;
        acknowledge(agent, number_after(text, R"("result":)"));
        send_increment(client, agent);
      }
    } catch (const std::exception&) {  // NOLINT(bugprone-empty-catch): the kill, at any point
    }
  }

  void send_increment(RawClient& client, std::size_t agent) {
    {
      const std::scoped_lock lock(mutex_);
      ++ledgers_[agent].sent;  // before it leaves: it may arrive even if the send fails
    }
    client.send(RawClient::text_frame(R"({"type":"rpc","id":"1","method":"increment","args":[]})"));
  }

  void acknowledge(std::size_t agent, std::uint64_t count) {
    const std::scoped_lock lock(mutex_);
    ++ledgers_[agent].acknowledged;
    ledgers_[agent].highest = std::max(ledgers_[agent].highest, count);
    ++acknowledged_;
    changed_.notify_one();
  }

  // False if they did not come.
  bool wait_for_acknowledgements(std::uint64_t wanted) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, ServerProcess::kPatience,
                             [&] { return acknowledged_ >= wanted; });
  }

  // A killed server is started again, and its counts are compared.
  void expect_nothing_lost(const ServerProcess& server) {
    const std::scoped_lock lock(mutex_);
    for (std::size_t agent = 0; agent < kAgents; ++agent) {
      const Ledger& ledger = ledgers_[agent];
      const std::uint64_t stored = number_after(count(server, agent_name(agent)), R"("count":)");
      EXPECT_GE(stored, ledger.highest) << "an answer was lost";
      EXPECT_GE(stored, ledger.acknowledged) << "an increment was lost";
      EXPECT_LE(stored, ledger.sent) << "an increment was counted twice";
    }
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<Ledger> ledgers_ = std::vector<Ledger>(kAgents);  // guarded by mutex_
  std::uint64_t acknowledged_ = 0;                              // of this round; guarded by mutex_
};

TEST_F(KillTest, NothingAcknowledgedIsMissingAfterFiftyKills) {
  const std::uint64_t seed = from_environment("HEARTH_KILL_SEED", std::random_device{}());
  const std::uint64_t rounds = from_environment("HEARTH_KILL_ROUNDS", 50);
  std::cout << "HEARTH_KILL_SEED=" << seed << " HEARTH_KILL_ROUNDS=" << rounds << std::endl;
  std::mt19937_64 random(seed);

  for (std::uint64_t round = 1; round <= rounds; ++round) {
    SCOPED_TRACE("round " + std::to_string(round) + " of seed " + std::to_string(seed));
    const auto server = serve_ready();
    expect_nothing_lost(*server);
    acknowledged_ = 0;
    std::vector<std::jthread> clients;
    for (std::size_t i = 0; i < kClients; ++i) {
      clients.emplace_back([this, port = server->port(), agent = i % kAgents] {
        increment_until_killed(port, agent);
      });
    }
    const std::uint64_t wanted =
        std::uniform_int_distribution<std::uint64_t>(0, kMostAcknowledged)(random);
    EXPECT_TRUE(wait_for_acknowledgements(wanted)) << server->log();
    // An acknowledgement is a moment of its own; this makes it any moment.
    std::this_thread::sleep_for(
        std::chrono::microseconds(std::uniform_int_distribution(0, 2000)(random)));
    EXPECT_EQ(server->kill(), kKilled);
    clients.clear();
    if (HasFailure()) return;
  }
  const auto server = serve_ready();
  expect_nothing_lost(*server);
  EXPECT_EQ(server->stop(), kClean);
  std::uint64_t total = 0;
  for (const Ledger& ledger : ledgers_) total += ledger.acknowledged;
  std::cout << total << " increments acknowledged, none lost" << std::endl;
  EXPECT_GT(total, rounds);  // the kills did not all come before the first answer
}

}  // namespace
}  // namespace hearth::testing
