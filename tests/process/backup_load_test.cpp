// What clients notice of a backup: the same load without one, and then with one. And whether the
// backup of a server under load has what it must have.
#include "json/json.hpp"
#include "process/agent_client.hpp"
#include "process/process_fixture.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdlib>
#include <iostream>
#include <numeric>
#include <string>
#include <thread>
#include <vector>

namespace hearth::testing {
namespace {

using Steady = std::chrono::steady_clock;
using Micros = std::vector<std::int64_t>;

std::size_t from_environment(const char* name, std::size_t otherwise) {
  const char* const text = std::getenv(name);
  return text == nullptr ? otherwise : std::strtoul(text, nullptr, 10);
}

class BackupLoadTest : public ProcessTest {
 protected:
  static constexpr std::size_t kClients = 8;
  static constexpr std::size_t kFibers = 10;
  static constexpr int kSteps = 10;
  static constexpr std::chrono::minutes kLong{10};  // of the long form

  BackupLoadTest() {
    install(bundled("counter"), "counter.so");
    install(bundled("worker-c"), "worker-c.so");
    put("hearth.yaml", "limits:\n  max_live_agents: 20000\n");
    put("classes/worker-c.yaml", "class: worker-c\nfibers:\n  retry_base: 10ms\n");
  }

  static std::string fiber(std::size_t i) { return "/agents/worker-c/f" + std::to_string(i); }

  static std::string write_to(std::size_t agent) {
    return "POST /agents/counter/a" + std::to_string(agent) +
           " HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n\r\n";
  }

  static double seconds_since(Steady::time_point began) {
    return std::chrono::duration<double>(Steady::now() - began).count();
  }
  // Writes at `rate` a second to agents one after another, until `is_over`. How long each answer
  // took, from the moment at which its request was due. `written`: of each agent.
  static Micros load(const ServerProcess& server, std::vector<std::atomic<int>>& written,
                     std::size_t rate, const std::atomic<bool>& is_over) {
    std::vector<Micros> times(kClients);
    std::vector<std::thread> clients;
    for (std::size_t client = 0; client < kClients; ++client) {
      clients.emplace_back([&, client] {
        RawClient connection(server.port());
        const auto between = std::chrono::nanoseconds(std::chrono::seconds(1)) * kClients / rate;
        auto due = Steady::now() + between * client / kClients;
        for (std::size_t i = client; !is_over; i += kClients, due += between) {
          std::this_thread::sleep_until(due);
          connection.send(write_to(i % written.size()));
          EXPECT_EQ(connection.read_reply().status, 200);
          ++written[i % written.size()];
          times[client].push_back(
              std::chrono::duration_cast<std::chrono::microseconds>(Steady::now() - due).count());
        }
      });
    }
    for (std::thread& each : clients) each.join();
    Micros all;
    for (const Micros& each : times) all.insert(all.end(), each.begin(), each.end());
    std::ranges::sort(all);
    return all;
  }

  static std::int64_t median(const Micros& sorted) { return sorted.at(sorted.size() / 2); }
  static std::int64_t p99(const Micros& sorted) { return sorted.at(sorted.size() * 99 / 100); }

  void expect_restored(const std::vector<int>& acknowledged) const {
    const auto restore = run({"restore", "backups", "--data", "elsewhere"});
    EXPECT_EQ(restore->wait(kLong), kClean) << restore->log();
    const auto server = serve_ready({"--config", "hearth.yaml", "--data", "elsewhere"});
    RawClient connection(server->port());
    std::size_t later = 0;
    for (std::size_t i = 0; i < acknowledged.size(); ++i) {
      const Reply reply = connection.request("GET /agents/counter/a" + std::to_string(i) +
                                             " HTTP/1.1\r\nHost: localhost\r\n\r\n");
      const int count = parse_json(reply.body).value().at("count").get<int>();
      EXPECT_GE(count, acknowledged[i]) << "a" << i;
      later += static_cast<std::size_t>(count - acknowledged[i]);
    }
    std::cout << later << " writes between the last look and the mark\n";
    server->wait_for_log("run-1 is finished", kFibers);
    for (std::size_t i = 0; i < kFibers; ++i) {
      const Json status = AgentClient(*server, fiber(i)).call("status");
      EXPECT_EQ(status.at("recoveries"), 1) << dump_json(status);
      std::vector<int> all(kSteps);
      std::iota(all.begin(), all.end(), 1);
      EXPECT_EQ(status.at("runs").at(0).at("steps").get<std::vector<int>>(), all);
    }
  }
};

// The long form, on a machine of its own: HEARTH_BACKUP_AGENTS=10000, with HEARTH_BACKUP_WRITES=200
// on two cores and 2000 on more.
TEST_F(BackupLoadTest, ClientsHardlyNoticeABackupAndItIsWhole) {
  const std::size_t agents = from_environment("HEARTH_BACKUP_AGENTS", 100);
  const std::size_t rate = from_environment("HEARTH_BACKUP_WRITES", 100);
  const bool is_long = agents > 1000;
  auto server = serve_ready({"--config", "hearth.yaml"});
  std::atomic<bool> is_over = false;
  std::vector<std::atomic<int>> written(agents);
  {
    RawClient connection(server->port());
    for (std::size_t i = 0; i < agents; ++i) {
      connection.send(write_to(i));
      ASSERT_EQ(connection.read_reply().status, 200);
      written[i] = 1;
    }
  }
  std::thread control([&] {
    std::this_thread::sleep_for(std::chrono::seconds(is_long ? 10 : 1));
    is_over = true;
  });
  const auto began_control = Steady::now();
  const Micros without = load(*server, written, rate, is_over);
  const double control_seconds = seconds_since(began_control);
  control.join();
  is_over = false;
  for (std::size_t i = 0; i < kFibers; ++i)
    (void)AgentClient(*server, fiber(i)).call("run", "[" + std::to_string(kSteps) + ",200]");
  std::chrono::milliseconds took{};
  std::vector<int> acknowledged;
  std::string told;
  std::thread backup([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(300));
    acknowledged.assign(written.begin(), written.end());
    const auto began = Steady::now();
    const auto process = run({"backup", "backups", "--data", "data"});
    EXPECT_EQ(process->wait(kLong), kClean) << process->log();
    took = std::chrono::duration_cast<std::chrono::milliseconds>(Steady::now() - began);
    told = process->log();
    is_over = true;
  });
  const auto began_load = Steady::now();
  const Micros with = load(*server, written, rate, is_over);
  const double load_seconds = seconds_since(began_load);
  backup.join();
  std::cout << agents << " agents, " << rate << " writes a second asked for. Without a backup "
            << static_cast<double>(without.size()) / control_seconds << " a second, median "
            << median(without) << " us, p99 " << p99(without) << " us; with one "
            << static_cast<double>(with.size()) / load_seconds << " a second, median "
            << median(with) << " us, p99 " << p99(with) << " us, longest " << with.back()
            << " us; it took " << took.count() << " ms\n"
            << told;
  // The short form shares its machine with other tests, and has too few writes for its p99.
  if (is_long) EXPECT_LE(p99(with), 2 * p99(without));
  EXPECT_LE(median(with), 2 * median(without) + 10'000);
  EXPECT_EQ(server->kill(), kKilled);
  const auto verified = run({"verify", "backups"});
  EXPECT_EQ(verified->wait(kLong), kClean) << verified->log();
  EXPECT_TRUE(contains(verified->out(), std::to_string(agents + kFibers) +
                                            " agents. Would resume: " + std::to_string(kFibers) +
                                            " fibers"));
  expect_restored(acknowledged);
}

}  // namespace
}  // namespace hearth::testing
