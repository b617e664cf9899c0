// Operations and kills at random. Each agent of a server has one order. The server is killed again
// and again: at a random moment, or when a random agent is at a random place. Each server recovers
// the work of the last one, and gets new orders meanwhile. The provider
// (tests/support/provider.mjs) counts its effects.
//
//     HEARTH_OPERATION_KILLS=10000 build/release/tests/fault_tests --gtest_filter='RandomKills*'
//
// What counts is a SIGKILL of a server. HEARTH_OPERATION_SEED=17 begins with that seed; a random
// moment can be repeated as far as the machine does the same again.

#include "fault/buyer_fixture.hpp"
#include "json/json.hpp"
#include "support/environment.hpp"

#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <cstdint>
#include <iostream>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <thread>
#include <vector>

namespace hearth::testing {
namespace {

// In the recovery of an order.
constexpr std::array kRecoveryPlaces = {"fiber.attempt.written", "fiber.attempt.committed",
                                        "managed.settle.written", "managed.settle.committed"};

class RandomKillsTest : public BuyerTest {
 protected:
  RandomKillsTest() {  // one library less to load
    std::filesystem::remove(root_ / "plugins/ledger-agent.so");
    std::filesystem::remove(root_ / "classes/ledger-agent.yaml");
  }
  void TearDown() override {
    if (HasFailure()) std::cout << places_ << '\n';
  }

  // Kills in a round, which begins without data. Fewer than fibers.max_attempts, so that a fiber
  // that every kill interrupts does not become dead.
  static constexpr int kKillsOfARound = 6;
  static constexpr std::size_t kNewBuyersOfAKill = 4;

  struct Buyer {
    std::string name;
    std::string kind;
    bool is_over = false;  // once it is, it is not looked at before the end
  };
  struct Counts {
    std::uint64_t at_moments = 0;
    std::uint64_t at_places = 0;
    std::uint64_t interrupted = 0;  // orders, once for each kill
    [[nodiscard]] std::uint64_t kills() const { return at_moments + at_places; }
  };
  using Clients = std::vector<std::unique_ptr<RawClient>>;

  std::uint64_t draw(std::uint64_t most) { return 1 + random_() % most; }

  void begin_round(std::uint64_t seed) {
    random_.seed(seed);
    std::filesystem::remove_all(root_ / "data");
    ask_provider("/charged?reset");
    buyers_.clear();
    places_ = "seed " + std::to_string(seed);
    look();
  }

  // What the last server has left. An order is accepted with its fiber, and over with its row.
  void look() {
    open_ = 0;
    waiting_.clear();
    for (Buyer& each : buyers_) {
      if (each.is_over) continue;
      const auto found =
          buyer_rows(each.name,
                     "SELECT CASE WHEN EXISTS(SELECT 1 FROM cf_agents_jobs WHERE kind = 2 AND "
                     "ended_at IS NULL) THEN 'open' WHEN EXISTS(SELECT 1 FROM orders) THEN 'over' "
                     "ELSE 'none' END");
      const std::string state = found.empty() ? "none" : found[0];
      each.is_over = state == "over";
      if (state == "none") waiting_.push_back(each);
      if (state == "open") ++open_;
    }
  }
  // Orders of new buyers, and orders that no server has accepted: clients ask again.
  void add_buyers() {
    for (std::size_t each = 0; each < kNewBuyersOfAKill; ++each) {
      buyers_.push_back(
          {"buyer-" + std::to_string(buyers_.size()), kBuyerKinds[random_() % kBuyerKinds.size()]});
      waiting_.push_back(buyers_.back());
    }
  }
  [[nodiscard]] Clients order_all(const ServerProcess& server) const {
    Clients clients;
    for (const Buyer& each : waiting_) clients.push_back(order(server, each.name, each.kind));
    return clients;
  }
  // Any moment: this waits for nothing.
  void pause(std::uint64_t at_most_ms) {
    std::this_thread::sleep_for(std::chrono::microseconds(draw(at_most_ms * 1000)));
  }

  // One in four while the server starts; the others while it works, for which it takes some 50 ms.
  void kill_at_a_moment() {
    places_ += ", a moment";
    if (random_() % 4 == 0) {
      const auto server = serve({"--config", "hearth.yaml", "--shards", "1"});
      pause(200);
      EXPECT_EQ(server->kill(), kKilled);
    } else {
      const auto server = serve_ledgers();
      const Clients clients = order_all(*server);
      pause(50);
      EXPECT_EQ(server->kill(), kKilled);
    }
    ++counts_.at_moments;
  }
  // Each new order passes each of kKillPlaces at least once, and each interrupted order each of
  // kRecoveryPlaces. With both kinds a server may stop before it is ready for new orders.
  void kill_at_a_place() {
    const KillPlace& place = kKillPlaces[random_() % kKillPlaces.size()];
    if (*place.stop_at == '\0') {
      kill_by_the_provider(place.provider_at);
    } else if (open_ == 0) {
      kill_at_a_stop(place.stop_at, draw(waiting_.size()));
    } else {
      kill_at_a_stop(kRecoveryPlaces[random_() % kRecoveryPlaces.size()], draw(open_));
    }
    ++counts_.at_places;
  }
  void kill_by_the_provider(const std::string& place) {
    const std::string visit = std::to_string(draw(waiting_.size()));
    places_ += ", " + place + ":" + visit;
    const auto server = serve_ledgers();
    ask_provider("/kill?at=" + place + "&visit=" + visit + "&pid=" + std::to_string(server->pid()));
    const Clients clients = order_all(*server);
    EXPECT_EQ(server->wait(), kKilled) << "the provider kills it";
  }
  void kill_at_a_stop(const std::string& place, std::uint64_t visit) {
    const std::string stop_at = place + ":" + std::to_string(visit);
    places_ += ", " + stop_at;
    const auto server = serve_until(stop_at);
    Clients clients;
    if (open_ == 0) {
      server->wait_until_ready();
      clients = order_all(*server);
    }
    kill_where_it_stops(*server, place);
  }
  void kill_once() {
    add_buyers();
    // Where nothing is interrupted yet, the places around an operation come first.
    if (open_ > 0 && random_() % 5 < 3) {
      kill_at_a_moment();
    } else {
      kill_at_a_place();
    }
    look();
    counts_.interrupted += open_;
  }
  void serve_to_the_end() {
    const auto server = serve_ledgers();
    for (const auto& client : order_all(*server)) EXPECT_EQ(client->read_reply().status, 202);
    server->wait_for_log("the order is over", open_ + waiting_.size());
    EXPECT_EQ(server->stop(), kClean);
  }

  // Never more than one effect of a keyed, probed or unsafe operation; never none without a word.
  void expect_nothing_twice_in_silence() {
    const Json charged = ask_provider("/charged");
    std::set<std::string> ids;
    for (const Buyer& each : buyers_) {
      SCOPED_TRACE(each.name + ", " + each.kind);
      const auto rows = buyer_rows(
          each.name, "SELECT id, state, (SELECT end FROM orders) FROM cf_agents_operations");
      ASSERT_EQ(rows.size(), 1U);
      const std::string id = rows[0].substr(0, rows[0].find('|'));
      ids.insert(id);
      const int effects = charged.value(id, 0);
      const bool is_unknown = rows[0] == id + "|unknown|unknown";
      if (is_unknown) {
        EXPECT_TRUE(each.kind == "unsafe" || each.kind == "request");
      } else {
        EXPECT_EQ(rows[0], id + "|completed|paid");
        EXPECT_GE(effects, 1);
      }
      if (each.kind != "read" && each.kind != "idempotent") EXPECT_LE(effects, 1);
    }
    for (const auto& [key, effects] : charged.items())
      EXPECT_TRUE(ids.contains(key)) << "an effect that is in no ledger: " << key;
  }

  std::mt19937_64 random_;
  std::vector<Buyer> buyers_;
  std::vector<Buyer> waiting_;  // no server has accepted their order
  std::size_t open_ = 0;        // orders that are accepted, and not over
  std::string places_;
  Counts counts_;
};

TEST_F(RandomKillsTest, NoEffectTakesPlaceTwiceInSilence) {
  // A sanitizer makes each start of a server several times as long.
  const std::uint64_t wanted = from_environment("HEARTH_OPERATION_KILLS", kSanitized ? 40 : 200);
  std::uint64_t seed = from_environment("HEARTH_OPERATION_SEED", 1);
  for (; counts_.kills() < wanted && !HasFailure(); ++seed) {
    begin_round(seed);
    for (int kill = 0; kill < kKillsOfARound && !HasFailure(); ++kill) kill_once();
    serve_to_the_end();
    expect_nothing_twice_in_silence();
  }
  EXPECT_GT(counts_.at_moments, 0U);
  EXPECT_GT(counts_.at_places, 0U);
  std::cout << counts_.kills() << " kills of servers: " << counts_.at_moments
            << " at random moments, " << counts_.at_places << " at named places; "
            << counts_.interrupted << " orders interrupted; the next seed is " << seed << '\n';
}

}  // namespace
}  // namespace hearth::testing
