// Operations and kills at random. In one server many agents have an order each, and all of them are
// killed together, wherever each of them is. The provider (tests/support/provider.mjs) counts.
//
//     HEARTH_OPERATION_KILLS=10000 build/release/tests/fault_tests --gtest_filter='RandomKills*'
//
// A kill counts once for each agent whose order it has interrupted. HEARTH_OPERATION_SEED=17 begins
// with that seed.

#include "fault/buyer_fixture.hpp"
#include "json/json.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <iostream>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <vector>

namespace hearth::testing {
namespace {

std::uint64_t number_from_environment(const char* name, std::uint64_t otherwise) {
  const char* const text = std::getenv(name);
  return text == nullptr ? otherwise : std::stoull(text);
}

class RandomKillsTest : public BuyerTest {
 protected:
  static constexpr std::size_t kBuyers = 20;

  struct Buyer {
    std::string name;
    std::string kind;
  };

  std::uint64_t draw(std::uint64_t most) { return 1 + random_() % most; }

  void begin_round(std::uint64_t seed) {
    random_.seed(seed);
    std::filesystem::remove_all(root_ / "data");
    ask_provider("/charged?reset");
    buyers_.clear();
    for (std::size_t i = 0; i < kBuyers; ++i)
      buyers_.push_back(
          {"buyer-" + std::to_string(i), kBuyerKinds[random_() % kBuyerKinds.size()]});
  }
  // Of a server that is gone: the order was accepted, and is not over.
  [[nodiscard]] bool is_interrupted(const Buyer& buyer) const {
    return !buyer_rows(buyer.name,
                       "SELECT 1 FROM cf_agents_jobs WHERE kind = 2 AND ended_at IS NULL")
                .empty();
  }
  [[nodiscard]] std::size_t interrupted() const {
    return static_cast<std::size_t>(
        std::ranges::count_if(buyers_, [this](const Buyer& each) { return is_interrupted(each); }));
  }

  // All of them order, and the server is killed when the drawn one of them is at the drawn place.
  void order_and_kill() {
    const KillPlace& place = kKillPlaces[random_() % kKillPlaces.size()];
    const std::string visit = std::to_string(draw(kBuyers));
    const std::string stop_at = place.stop_at;
    place_ = std::string(place.name) + ":" + visit;
    if (stop_at.empty())
      ask_provider(std::string("/kill?at=") + place.provider_at + "&visit=" + visit);
    const auto server = stop_at.empty() ? serve_ledgers() : serve_until(stop_at + ":" + visit);
    server->wait_until_ready();
    std::vector<std::unique_ptr<RawClient>> clients;
    for (const Buyer& each : buyers_) clients.push_back(order(*server, each.name, each.kind));
    if (!stop_at.empty()) {
      kill_where_it_stops(*server, stop_at);
    } else {
      EXPECT_EQ(server->wait(), kKilled) << "the provider kills it";
    }
  }
  // Each of those that are interrupted comes to these places once in its recovery.
  void recover_and_kill(std::size_t interrupted) {
    const std::vector<std::string> places = {"fiber.attempt.written", "fiber.attempt.committed",
                                             "managed.settle.written", "managed.settle.committed"};
    const std::string& place = places[random_() % places.size()];
    const std::string stop_at = place + ":" + std::to_string(draw(interrupted));
    place_ += ", " + stop_at;
    const auto server = serve_until(stop_at);
    kill_where_it_stops(*server, place);
  }
  // Who has no answer and no fiber orders again, as clients do.
  void serve_to_the_end() {
    std::vector<Buyer> again;
    for (const Buyer& each : buyers_) {
      if (!is_interrupted(each) && buyer_rows(each.name, "SELECT 1 FROM orders").empty())
        again.push_back(each);
    }
    const std::size_t open = interrupted() + again.size();
    const auto server = serve_ledgers();
    for (const Buyer& each : again)
      EXPECT_EQ(order(*server, each.name, each.kind)->read_reply().status, 202);
    server->wait_for_log("the order is over", open);
    EXPECT_EQ(server->stop(), kClean);
  }

  // Never more than one effect of a keyed, probed or unsafe operation; never none without a word.
  void expect_nothing_twice_in_silence() {
    const Json charged = ask_provider("/charged");
    std::set<std::string> ids;
    for (const Buyer& each : buyers_) {
      SCOPED_TRACE(each.name + ", " + each.kind);
      const auto rows = buyer_rows(each.name, "SELECT id FROM cf_agents_operations");
      ASSERT_EQ(rows.size(), 1U);
      const std::string& id = rows[0];
      ids.insert(id);
      const int effects = charged.value(id, 0);
      const bool is_unknown =
          buyer_rows(each.name, "SELECT state FROM cf_agents_operations")[0] == "unknown";
      EXPECT_EQ(buyer_rows(each.name, "SELECT end FROM orders"),
                std::vector<std::string>{is_unknown ? "unknown" : "paid"});
      if (is_unknown) {
        EXPECT_EQ(each.kind, "unsafe");
      } else {
        EXPECT_GE(effects, 1);
      }
      if (each.kind != "read" && each.kind != "idempotent") EXPECT_LE(effects, 1);
    }
    for (const auto& [key, effects] : charged.items())
      EXPECT_TRUE(ids.contains(key)) << "an effect that is in no ledger: " << key;
  }

  std::mt19937_64 random_;
  std::vector<Buyer> buyers_;
  std::string place_;
};

TEST_F(RandomKillsTest, NoEffectTakesPlaceTwiceInSilence) {
  const std::uint64_t wanted = number_from_environment("HEARTH_OPERATION_KILLS", 200);
  std::uint64_t seed = number_from_environment("HEARTH_OPERATION_SEED", 1);
  std::uint64_t kills = 0;
  for (; kills < wanted && !HasFailure(); ++seed) {
    begin_round(seed);
    order_and_kill();
    std::size_t open = interrupted();
    kills += open;
    for (auto further = random_() % 3; further > 0 && open > 0; --further) {
      recover_and_kill(open);
      kills += open;
      open = interrupted();
    }
    SCOPED_TRACE("seed " + std::to_string(seed) + ", " + place_);
    serve_to_the_end();
    expect_nothing_twice_in_silence();
  }
  std::cout << kills << " interrupted orders; the next seed is " << seed << '\n';
}

}  // namespace
}  // namespace hearth::testing
