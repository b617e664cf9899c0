#pragma once
// Servers with agents that record their work, killed where or when a test wants, and what such a
// server leaves on the disk.

#include "base/sha256.hpp"
#include "json/json.hpp"
#include "process/process_fixture.hpp"
#include "storage/agent_schema.hpp"
#include "support/built.hpp"

#include <sqlite3.h>
#include <sys/wait.h>

#include <cstdint>
#include <filesystem>
#include <memory>
#include <random>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace hearth::testing {

// The rows of a query on a database file, their columns joined by '|'. The query runs on a copy of
// the file and its log: it changes nothing, and may run after a kill. No file: no rows.
inline std::vector<std::string> rows_of(const std::filesystem::path& file,
                                        const std::string& query) {
  if (!std::filesystem::exists(file)) return {};
  const TempDirectory copies;
  const std::filesystem::path copy = copies.path() / "copy.db";
  std::filesystem::copy_file(file, copy);
  if (const std::string log = file.string() + "-wal"; std::filesystem::exists(log))
    std::filesystem::copy_file(log, copy.string() + "-wal");
  sqlite3* database = nullptr;
  sqlite3_open(copy.c_str(), &database);
  storage::create_job_views(*database, storage::ViewsIn::kConnection);
  std::vector<std::string> found;
  const auto keep = [](void* into, int count, char** columns, char**) {
    std::string row;
    for (int i = 0; i < count; ++i)
      row.append(i == 0 ? "" : "|").append(columns[i] ? columns[i] : "NULL");
    static_cast<std::vector<std::string>*>(into)->push_back(std::move(row));
    return 0;
  };
  const int outcome = sqlite3_exec(database, query.c_str(), keep, &found, nullptr);
  const std::string why = sqlite3_errmsg(database);
  sqlite3_close(database);
  if (outcome != SQLITE_OK && why.starts_with("no such table")) return {};
  if (outcome != SQLITE_OK) throw std::runtime_error(query + ": " + why);
  return found;
}

// tests/agents/ledger_agent.cpp says what a LedgerAgent does. One shard, so that requests run in
// order.
class FaultTest : public ProcessTest {
 protected:
  FaultTest() {
    std::filesystem::copy_file(built::agent("ledger-agent"), root_ / "plugins/ledger-agent.so");
    std::filesystem::create_directory(root_ / "effects");
    put("hearth.yaml", "log:\n  level: debug\n");
    configure("");
  }

  // The class file: settings for all tests, and more lines of the section `fibers`.
  void configure(const std::string& fibers) const {
    put("classes/ledger-agent.yaml",
        "class: ledger-agent\nidle_timeout: 100ms\noptions:\n  effects: " +
            (root_ / "effects").string() + "\nfibers:\n  retry_base: 10ms\n" + fibers);
  }

  [[nodiscard]] std::unique_ptr<ServerProcess> serve_ledgers() const {
    return serve_ready({"--config", "hearth.yaml", "--shards", "1"});
  }
  // A server that stops itself at the place that HEARTH_STOP_AT names.
  [[nodiscard]] std::unique_ptr<ServerProcess> serve_until(const std::string& stop_at) const {
    auto server = std::make_unique<ServerProcess>(
        std::vector<std::string>{"env", "HEARTH_STOP_AT=" + stop_at, built::server().string(),
                                 "serve", "--listen", "127.0.0.1:0", "--log-format", "human",
                                 "--config", "hearth.yaml", "--shards", "1"},
        root_);
    return server;
  }
  // Waits until all of its threads stand still.
  static void wait_until_stopped(ServerProcess& server, const std::string& point) {
    server.wait_for_log("stopped at " + point + "\n");
    siginfo_t what{};  // the line comes first, so this wait is short
    ASSERT_EQ(::waitid(P_PID, static_cast<id_t>(server.pid()), &what, WSTOPPED | WEXITED | WNOWAIT),
              0);
    EXPECT_EQ(what.si_code, CLD_STOPPED);
  }
  static void kill_where_it_stops(ServerProcess& server, const std::string& point) {
    wait_until_stopped(server, point);
    EXPECT_EQ(server.kill(), kKilled);
  }

  // The answer of a provider at this port to a GET.
  static Json get_json(std::uint16_t port, const std::string& path) {
    RawClient client(port);
    const Reply reply =
        client.request("GET " + path + " HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
    return parse_json(reply.body).value();
  }
  // A request without a wait for its answer: the server may stop in the middle of it.
  static std::unique_ptr<RawClient> send(const ServerProcess& server, const std::string& agent,
                                         const std::string& query) {
    auto client = std::make_unique<RawClient>(server.port());
    client->send("POST /agents/ledger-agent/" + agent + query +
                 " HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n\r\n");
    return client;
  }
  static std::string ask(const ServerProcess& server, const std::string& agent,
                         const std::string& query = "") {
    const Reply reply = send(server, agent, query)->read_reply();
    if (reply.status != 200) throw std::runtime_error(reply.head + reply.body);
    return reply.body;
  }

  // Another agent comes and goes. The server has begun all work of its start before that.
  static void let_one_come_and_go(ServerProcess& server) {
    ask(server, "passer-by");
    server.wait_for_log("agent.evicted class=LedgerAgent agent=passer-by");
  }

  [[nodiscard]] std::filesystem::path database_of(
      const std::string& agent, const std::string& agent_class = "LedgerAgent") const {
    const std::string hash = sha256_hex(agent).substr(0, 32);
    return root_ / "data/agents" / agent_class / hash.substr(0, 2) / (hash + ".db");
  }
  [[nodiscard]] std::vector<std::string> rows(const std::string& agent,
                                              const std::string& query) const {
    return rows_of(database_of(agent), query);
  }
  // How many agents have a wake time in the directory. Does not disturb a running server.
  [[nodiscard]] int pending_wakes() const {
    sqlite3* database = nullptr;
    sqlite3_open_v2((root_ / "data/host.db").c_str(), &database, SQLITE_OPEN_READONLY, nullptr);
    sqlite3_busy_timeout(database, 1000);
    int count = -1;
    const auto keep = [](void* into, int, char** columns, char**) {
      *static_cast<int*>(into) = std::stoi(columns[0]);
      return 0;
    };
    sqlite3_exec(database, "SELECT count(*) FROM wakes WHERE NOT dead OR working OR at IS NOT NULL",
                 keep, &count, nullptr);
    sqlite3_close(database);
    return count;
  }
  // Names of agents, after the server has ended.
  [[nodiscard]] std::vector<std::string> wakes() const {
    return rows_of(root_ / "data/host.db",
                   "SELECT name FROM wakes WHERE NOT dead OR working OR at IS NOT NULL "
                   "ORDER BY name");
  }
  [[nodiscard]] std::vector<std::string> effects(const std::string& agent) const {
    std::vector<std::string> lines;
    const auto text = read_file(root_ / "effects" / agent, std::size_t{1} << 30);
    if (!text) return lines;
    for (std::size_t at = 0; at < text->size();) {
      const std::size_t end = text->find('\n', at);
      lines.push_back(text->substr(at, end - at));
      at = end + 1;
    }
    return lines;
  }

  static std::size_t count(const std::string& log, const std::string& text) {
    std::size_t times = 0;
    for (std::size_t at = log.find(text); at != std::string::npos; at = log.find(text, at + 1))
      ++times;
    return times;
  }
};

}  // namespace hearth::testing
