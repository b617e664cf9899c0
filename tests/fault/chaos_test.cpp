// Many agents work, and the server is killed again and again. At the end every walk is finished,
// and every step is written exactly once. Effects outside happened twice only for steps that were
// in progress at a kill.
//
//     HEARTH_CHAOS_AGENTS=200 HEARTH_CHAOS_KILLS=100 build/dev/tests/fault_tests
//     --gtest_filter='ChaosTest.*'

#include "fault/fault_fixture.hpp"
#include "support/environment.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <iostream>
#include <map>
#include <random>
#include <string>
#include <thread>
#include <vector>

namespace hearth::testing {
namespace {

using std::chrono::milliseconds;
using SteadyClock = std::chrono::steady_clock;

class ChaosTest : public FaultTest {
 protected:
  static std::string agent(int number) { return "agent-" + std::to_string(number); }

  // The walks of an agent; some agents have several at once.
  static int walks_of(int number) { return 1 + number % 3; }
  static std::string run(int number) { return "run-" + std::to_string(number); }

  void begin(const ServerProcess& server, int agents, int steps) const {
    for (int each = 0; each < agents; ++each) {
      for (int walk = 0; walk < walks_of(each); ++walk)
        ask(server, agent(each),
            "?walk=" + run(walk) + "&steps=" + std::to_string(steps) + "&ms=100");
    }
  }

  // No client asks for an agent: only the directory tells how many still have work.
  void wait_until_all_rest(milliseconds patience) const {
    const auto deadline = SteadyClock::now() + patience;
    while (pending_wakes() != 0) {
      ASSERT_LT(SteadyClock::now(), deadline) << pending_wakes() << " agents are still at work";
      std::this_thread::sleep_for(milliseconds(50));
    }
  }

  struct Found {
    std::size_t steps = 0;
    std::size_t repeated_effects = 0;
    std::size_t hooks = 0;
  };
  // Checks one agent's books and adds them to `found`.
  void check(int number, int steps, int kills, Found& found) const {
    const std::string name = agent(number);
    EXPECT_EQ(rows(name, "SELECT name, dead, last_error FROM cf_agents_runs"),
              std::vector<std::string>{})
        << name;
    std::map<std::string, int> effects_of_step;
    for (const std::string& effect : effects(name)) ++effects_of_step[effect];
    for (int walk = 0; walk < walks_of(number); ++walk) {
      const std::string only_this = " WHERE run = '" + run(walk) + "'";
      std::vector<std::string> expected;
      int repeated = 0;
      for (int step = 1; step <= steps; ++step) {
        expected.push_back(std::to_string(step));
        const int times = effects_of_step[run(walk) + " " + expected.back()];
        EXPECT_GE(times, 1) << name << " " << run(walk) << " step " << step;
        repeated += times - 1;
      }
      EXPECT_EQ(rows(name, "SELECT step FROM ledger" + only_this + " ORDER BY rowid"), expected)
          << name << " " << run(walk);
      EXPECT_EQ(rows(name, "SELECT count(*) FROM finished" + only_this),
                std::vector<std::string>{"1"})
          << name << " " << run(walk);
      EXPECT_LE(repeated, kills) << name << " " << run(walk);
      found.steps += expected.size();
      found.repeated_effects += static_cast<std::size_t>(repeated);
    }
    found.hooks +=
        static_cast<std::size_t>(std::stoi(rows(name, "SELECT count(*) FROM hooks").at(0)));
  }
};

TEST_F(ChaosTest, EveryWalkIsFinishedAndNoStepIsMissingOrThereTwice) {
  const std::uint64_t seed = from_environment("HEARTH_KILL_SEED", std::random_device{}());
  const int agents = static_cast<int>(from_environment("HEARTH_CHAOS_AGENTS", 45));
  const int kills = static_cast<int>(from_environment("HEARTH_CHAOS_KILLS", 20));
  const int steps = 5 + 2 * kills;  // of 100 ms: more than the kills leave them time for
  std::cout << "HEARTH_KILL_SEED=" << seed << " HEARTH_CHAOS_AGENTS=" << agents
            << " HEARTH_CHAOS_KILLS=" << kills << std::endl;
  std::mt19937_64 random(seed);
  // Any moment: this waits for nothing.
  const auto pause = [&random](int at_most_ms) {
    std::this_thread::sleep_for(
        std::chrono::microseconds(std::uniform_int_distribution(0, at_most_ms * 1000)(random)));
  };

  // Kills in quick succession count as recoveries without progress. Here the agents do not cause
  // them.
  configure("  max_attempts: 1000\n");
  // A short log: while this test waits for the directory, it does not read the log.
  put("hearth.yaml", "log:\n  level: warn\n");
  const auto began = SteadyClock::now();
  auto server = serve_ready({"--config", "hearth.yaml"});
  begin(*server, agents, steps);
  int done = 0;
  while (done < kills) {
    pause(600);
    EXPECT_EQ(server->kill(), kKilled);
    ++done;
    if (done < kills && random() % 3 == 0) {  // once more, while it starts or recovers
      server = serve({"--config", "hearth.yaml"});
      pause(200);
      EXPECT_EQ(server->kill(), kKilled);
      ++done;
    }
    server = serve_ready({"--config", "hearth.yaml"});
  }
  wait_until_all_rest(milliseconds(60'000 + 200 * steps));
  EXPECT_EQ(server->stop(), kClean);
  const auto took = std::chrono::duration_cast<milliseconds>(SteadyClock::now() - began);

  Found found;
  for (int each = 0; each < agents; ++each) check(each, steps, kills, found);
  EXPECT_GT(found.hooks, 0U);
  std::cout << took.count() << " ms, " << done << " kills, " << agents << " agents, " << found.steps
            << " steps, none twice; " << found.repeated_effects << " of their effects twice, "
            << found.hooks << " recoveries" << std::endl;
}

}  // namespace
}  // namespace hearth::testing
