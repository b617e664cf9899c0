// Durable work survives the process: it goes on once, from its last checkpoint, without a client.
// The worker is plain C.

#include "base/sha256.hpp"
#include "json/json.hpp"
#include "process/agent_client.hpp"
#include "process/process_fixture.hpp"
#include "storage/agent_schema.hpp"
#include "support/built.hpp"
#include "support/environment.hpp"

#include <sqlite3.h>
#include <unistd.h>

#include <chrono>
#include <functional>
#include <iostream>
#include <map>
#include <numeric>
#include <random>
#include <string>
#include <thread>
#include <vector>

namespace hearth::testing {
namespace {

using std::chrono::milliseconds;

struct Run {
  std::vector<int> steps;  // in the order in which they were done
  bool finished = false;
};
struct Status {
  std::map<std::string, Run> runs;
  int recoveries = 0;
};

std::vector<int> up_to(int last) {
  std::vector<int> steps(static_cast<std::size_t>(last));
  std::iota(steps.begin(), steps.end(), 1);
  return steps;
}

// One agent of the class WorkerC, over a WebSocket.
class Worker : public AgentClient {
 public:
  Worker(const ServerProcess& server, const std::string& name)
      : AgentClient(server, "/agents/worker-c/" + name) {}

  Status status() {
    const Json answer = call("status");
    Status status;
    status.recoveries = answer.at("recoveries").get<int>();
    for (const Json& run : answer.at("runs")) {
      status.runs[run.at("run").get<std::string>()] = {
          .steps = run.at("steps").get<std::vector<int>>(),
          .finished = run.at("finished").get<bool>()};
    }
    return status;
  }

  // Asks for the status again and again until it is as wanted.
  Status wait_until(const std::function<bool(const Status&)>& wanted,
                    milliseconds patience = ServerProcess::kPatience) {
    const auto deadline = std::chrono::steady_clock::now() + patience;
    for (;;) {
      Status now = status();
      if (wanted(now)) return now;
      if (std::chrono::steady_clock::now() > deadline) {
        throw std::runtime_error("waited in vain; the status is " + dump_json(call("status")));
      }
      std::this_thread::sleep_for(milliseconds(2));  // so that the server has the processor
    }
  }
  Status wait_for_steps(std::size_t steps) {
    return wait_until(
        [steps](const Status& now) { return now.runs.at("run-1").steps.size() >= steps; });
  }
};

class FiberKillTest : public ProcessTest {
 protected:
  FiberKillTest() {
    install(bundled("worker-c"), "worker-c.so");
    put("hearth.yaml", "log:\n  level: debug\n");
    put("classes/worker-c.yaml",
        "class: worker-c\nidle_timeout: 100ms\nfibers:\n  retry_base: 10ms\n");
  }

  [[nodiscard]] std::unique_ptr<ServerProcess> serve_workers() const {
    return serve_ready({"--config", "hearth.yaml"});
  }

  static std::string finished(const std::string& agent, const std::string& run) {
    return "agent=" + agent + " text=\"" + run + " is finished\"";
  }

  [[nodiscard]] std::filesystem::path file_of(const std::string& agent) const {
    const std::string hash = sha256_hex(agent).substr(0, 32);
    return root_ / "data/agents/WorkerC" / hash.substr(0, 2) / (hash + ".db");
  }
  // While no server runs.
  void change(const std::string& agent, const std::string& statement) const {
    sqlite3* database = nullptr;
    sqlite3_open_v2(file_of(agent).c_str(), &database, SQLITE_OPEN_READWRITE, nullptr);
    const int outcome = sqlite3_exec(database, statement.c_str(), nullptr, nullptr, nullptr);
    const int changes = sqlite3_changes(database);
    sqlite3_close(database);
    if (outcome != SQLITE_OK || changes != 1) throw std::runtime_error(statement);
  }

  // The first column of a query on the file of an agent, after the server has closed it.
  [[nodiscard]] std::vector<std::string> rows(const std::string& agent,
                                              const std::string& query) const {
    const std::filesystem::path file = file_of(agent);
    sqlite3* database = nullptr;
    // Immutable: this look leaves no trace beside the file.
    sqlite3_open_v2(("file:" + file.string() + "?immutable=1").c_str(), &database,
                    SQLITE_OPEN_READONLY | SQLITE_OPEN_URI, nullptr);
    storage::create_job_views(*database, storage::ViewsIn::kConnection);
    std::vector<std::string> found;
    const auto keep = [](void* into, int, char** columns, char**) {
      static_cast<std::vector<std::string>*>(into)->emplace_back(columns[0] ? columns[0] : "NULL");
      return 0;
    };
    const int outcome = sqlite3_exec(database, query.c_str(), keep, &found, nullptr);
    const std::string why = sqlite3_errmsg(database);
    sqlite3_close(database);
    if (outcome != SQLITE_OK) throw std::runtime_error(query + ": " + why);
    return found;
  }

  // A step's row and its checkpoint are one commit: nothing is missing, and nothing is there twice.
  void expect_done_once(const std::string& agent, const std::string& run, int steps) const {
    std::vector<int> done;
    for (const std::string& step :
         rows(agent, "SELECT step FROM steps WHERE run = '" + run + "' ORDER BY rowid"))
      done.push_back(std::stoi(step));
    EXPECT_EQ(done, up_to(steps)) << agent << " " << run;
  }
  void expect_no_fibers(const std::string& agent) const {
    EXPECT_EQ(rows(agent, "SELECT name FROM cf_agents_runs"), std::vector<std::string>{}) << agent;
  }
  [[nodiscard]] int recoveries(const std::string& agent) const {
    return std::stoi(rows(agent, "SELECT sum(recoveries) FROM runs").at(0));
  }
};

TEST_F(FiberKillTest, ARunGoesOnFromItsCheckpointThoughNobodyAsks) {
  auto server = serve_workers();
  {
    Worker worker(*server, "a");
    EXPECT_EQ(worker.call("run", "[8,100]"), "run-1");
    EXPECT_LT(worker.wait_for_steps(2).runs.at("run-1").steps.size(), 8U);
    EXPECT_EQ(server->kill(), kKilled);
  }
  server = serve_workers();
  server->wait_for_log(finished("a", "run-1"));
  EXPECT_EQ(server->stop(), kClean);
  EXPECT_EQ(times_in(server->log(), "fiber:recovery:handled class=WorkerC agent=a "), 1U);
  EXPECT_EQ(recoveries("a"), 1);
  expect_done_once("a", "run-1", 8);
  expect_no_fibers("a");
}

TEST_F(FiberKillTest, KillsAtRandomMomentsLoseNoStepAndRepeatNone) {
  const std::uint64_t seed = from_environment("HEARTH_KILL_SEED", std::random_device{}());
  const int kills = static_cast<int>(from_environment("HEARTH_FIBER_KILLS", 5));
  std::cout << "HEARTH_KILL_SEED=" << seed << " HEARTH_FIBER_KILLS=" << kills << std::endl;
  std::mt19937_64 random(seed);
  // Any moment: these wait for nothing.
  const auto pause = [&random](int at_most_ms) {
    std::this_thread::sleep_for(
        std::chrono::microseconds(std::uniform_int_distribution(0, at_most_ms * 1000)(random)));
  };

  constexpr milliseconds kStep{25};
  const int steps = kills * 6;  // longer than all that the loop leaves them
  auto server = serve_workers();
  Worker(*server, "a")
      .call("run", "[" + std::to_string(steps) + "," + std::to_string(kStep.count()) + "]");
  for (int kill = 1; kill <= kills; ++kill) {
    pause(120);
    EXPECT_EQ(server->kill(), kKilled);
    if (random() % 2 == 0) {  // once more, while it starts or recovers
      server = serve({"--config", "hearth.yaml"});
      pause(100);
      EXPECT_EQ(server->kill(), kKilled);
    }
    server = serve_workers();
  }
  {
    Worker worker(*server, "a");
    worker.wait_until([](const Status& now) { return now.runs.at("run-1").finished; },
                      ServerProcess::kPatience + steps * 2 * kStep);
  }
  EXPECT_EQ(server->stop(), kClean);
  EXPECT_GE(recoveries("a"), 1);
  EXPECT_LE(recoveries("a"), 2 * kills);
  expect_done_once("a", "run-1", steps);
  expect_no_fibers("a");
}

TEST_F(FiberKillTest, FiveFibersOfOneAgentAreEachRecoveredOnce) {
  auto server = serve_workers();
  {
    Worker worker(*server, "a");
    for (int run = 1; run <= 5; ++run) worker.call("run", "[8,50]");
    worker.wait_for_steps(1);
    EXPECT_EQ(server->kill(), kKilled);
  }
  server = serve_workers();
  for (int run = 1; run <= 5; ++run)
    server->wait_for_log(finished("a", "run-" + std::to_string(run)));
  EXPECT_EQ(server->stop(), kClean);
  EXPECT_EQ(times_in(server->log(), "fiber:recovery:handled class=WorkerC agent=a "), 5U);
  EXPECT_EQ(rows("a", "SELECT DISTINCT recoveries FROM runs"), std::vector<std::string>{"1"});
  for (int run = 1; run <= 5; ++run) expect_done_once("a", "run-" + std::to_string(run), 8);
  expect_no_fibers("a");
}

TEST_F(FiberKillTest, TwentyAgentsAllFinishWhatTheyBegan) {
  constexpr int kAgents = 20;
  auto server = serve_workers();
  for (int agent = 0; agent < kAgents; ++agent)
    Worker(*server, "w" + std::to_string(agent)).call("run", "[10,100]");
  Worker(*server, "w" + std::to_string(kAgents - 1)).wait_for_steps(2);  // the last of them
  EXPECT_EQ(server->kill(), kKilled);
  server = serve_workers();
  for (int agent = 0; agent < kAgents; ++agent)
    server->wait_for_log(finished("w" + std::to_string(agent), "run-1"));
  EXPECT_EQ(server->stop(), kClean);
  EXPECT_EQ(times_in(server->log(), "fiber:recovery:handled"), std::size_t{kAgents});
  for (int agent = 0; agent < kAgents; ++agent) {
    expect_done_once("w" + std::to_string(agent), "run-1", 10);
    expect_no_fibers("w" + std::to_string(agent));
  }
}

TEST_F(FiberKillTest, AnAgentThatHeldAReferenceIsWokenAndTheReferenceIsGone) {
  auto server = serve_workers();
  Worker(*server, "held").call("hold");
  EXPECT_EQ(server->kill(), kKilled);
  server = serve_workers();
  server->wait_for_log("agent.started class=WorkerC agent=held");
  server->wait_for_log("agent.evicted class=WorkerC agent=held reason=idle");
  EXPECT_EQ(server->kill(), kKilled);
  // Not once more: a client of another agent comes and goes, and that one only was started.
  server = serve_workers();
  Worker(*server, "other").call("status");
  server->wait_for_log("agent.evicted class=WorkerC agent=other");
  EXPECT_EQ(server->stop(), kClean);
  EXPECT_TRUE(lacks(server->log(), "agent=held"));
}

TEST_F(FiberKillTest, FinishedWorkIsNeverOfferedAgain) {
  auto server = serve_workers();
  {
    Worker worker(*server, "a");
    worker.call("run", "[3,20]");
    worker.wait_until([](const Status& now) { return now.runs.at("run-1").finished; });
    EXPECT_EQ(server->kill(), kKilled);
  }
  server = serve_workers();
  {
    // Whatever was to be recovered would be so by the end of another run.
    Worker worker(*server, "a");
    EXPECT_EQ(worker.call("run", "[3,20]"), "run-2");
    worker.wait_until([](const Status& now) { return now.runs.at("run-2").finished; });
  }
  EXPECT_EQ(server->stop(), kClean);
  EXPECT_TRUE(lacks(server->log(), "fiber:recovery"));
  EXPECT_EQ(recoveries("a"), 0);
  expect_done_once("a", "run-1", 3);
  expect_no_fibers("a");
}

TEST_F(FiberKillTest, WorkThatNeverGetsAnywhereIsGivenUpAndKeptAndTheLogSaysSo) {
  auto server = serve_workers();
  Worker(*server, "a").call("run", "[2,600000]");
  EXPECT_EQ(server->kill(), kKilled);
  change("a", "UPDATE cf_agents_jobs SET interruptions = 100 WHERE name = 'run'");  // many kills
  server = serve_workers();
  server->wait_for_log("fiber:recovery:dead class=WorkerC agent=a ");
  server->wait_for_log("agent.evicted class=WorkerC agent=a reason=idle");
  EXPECT_EQ(server->stop(), kClean);
  EXPECT_EQ(times_in(server->log(), "fiber:recovery:attempt"), 0U) << server->log();
  EXPECT_EQ(rows("a", "SELECT dead FROM cf_agents_fibers"), std::vector<std::string>{"1"});
}

TEST_F(FiberKillTest, AFiberWhoseNameIsUnknownWaitsAndGoesOnUnderANameThatIsKnown) {
  auto server = serve_workers();
  {
    Worker worker(*server, "a");
    worker.call("run", "[8,100]");
    worker.wait_for_steps(2);
  }
  EXPECT_EQ(server->stop(), kClean);
  change("a", "UPDATE cf_agents_jobs SET name = 'walk' WHERE name = 'run'");
  server = serve_workers();
  server->wait_for_log("fiber:unknown");
  server->wait_for_log("agent.evicted class=WorkerC agent=a reason=idle");
  EXPECT_EQ(server->stop(), kClean);
  EXPECT_EQ(recoveries("a"), 0);
  change("a", "UPDATE cf_agents_jobs SET name = 'run' WHERE name = 'walk'");
  server = serve_workers();
  Worker(*server, "a").status();  // nothing else wakes it
  server->wait_for_log(finished("a", "run-1"));
  EXPECT_EQ(server->stop(), kClean);
  expect_done_once("a", "run-1", 8);
  expect_no_fibers("a");
}

TEST_F(FiberKillTest, AStopInTheMiddleIsNoEndEither) {
  auto server = serve_workers();
  {
    Worker worker(*server, "a");
    worker.call("run", "[8,100]");
    worker.wait_for_steps(2);
    server->signal(SIGTERM);
  }
  EXPECT_EQ(server->wait(), kClean);
  const auto checkpoint =
      parse_json(rows("a", "SELECT snapshot FROM cf_agents_runs").at(0)).value();
  EXPECT_EQ(checkpoint.at("run"), "run-1");
  EXPECT_EQ(checkpoint.at("total"), 8);
  expect_done_once("a", "run-1", checkpoint.at("done").get<int>());
  EXPECT_LT(checkpoint.at("done").get<int>(), 8);

  server = serve_workers();
  server->wait_for_log(finished("a", "run-1"));
  EXPECT_EQ(server->stop(), kClean);
  EXPECT_EQ(recoveries("a"), 1);
  expect_done_once("a", "run-1", 8);
  expect_no_fibers("a");
}

TEST_F(FiberKillTest, AFiberKeepsItsAgentInMemoryAndTheIdleOneLeaves) {
  const auto server = serve_workers();
  Worker(*server, "a").call("run", "[10,50]");  // five times the idle timeout
  server->wait_for_log("agent.evicted class=WorkerC agent=a reason=idle");
  EXPECT_EQ(server->stop(), kClean);
  const std::string& log = server->log();
  EXPECT_LT(log.find(finished("a", "run-1")), log.find("agent.evicted")) << log;
  EXPECT_EQ(times_in(log, "agent.evicted"), 1U) << log;
  EXPECT_EQ(recoveries("a"), 0);
  expect_done_once("a", "run-1", 10);
}

// ---- the directory of agents, without which no agent would be woken ----

class BadDirectoryTest : public FiberKillTest {
 protected:
  // A directory that has served.
  BadDirectoryTest() {
    const auto server = serve_workers();
    Worker(*server, "a").call("hold");
    EXPECT_EQ(server->stop(), kClean);
  }

  static void expect_refusal(ServerProcess& server, const std::string& why) {
    EXPECT_EQ(server.wait(), kFailed) << server.log();
    EXPECT_EQ(server.out(), "");
    EXPECT_TRUE(contains(server.log(), "server.start_failed", "data/host.db", why));
  }

  const std::filesystem::path file_ = root_ / "data/host.db";
};

TEST_F(BadDirectoryTest, AFileThatIsNoDatabaseIsRefused) {
  put("data/host.db", std::string(8192, 'x'));
  const auto server = serve({"--config", "hearth.yaml"});
  expect_refusal(*server, "file is not a database");
}

TEST_F(BadDirectoryTest, AFileThatWasCutIsRefused) {
  std::filesystem::resize_file(file_, std::filesystem::file_size(file_) / 2);
  const auto server = serve({"--config", "hearth.yaml"});
  expect_refusal(*server, "database disk image is malformed");
}

TEST_F(BadDirectoryTest, ADirectoryOfAnotherFormatIsRefusedAndNotHarmed) {
  constexpr std::size_t kWhole = 10U << 20U;
  for (const int format : {2, 1000}) {
    sqlite3* database = nullptr;
    ASSERT_EQ(sqlite3_open(file_.c_str(), &database), SQLITE_OK);
    const std::string set = "PRAGMA user_version = " + std::to_string(format);
    ASSERT_EQ(sqlite3_exec(database, set.c_str(), nullptr, nullptr, nullptr), SQLITE_OK);
    sqlite3_close(database);
    const std::string before = read_file(file_, kWhole).value();
    const std::string agent_before = read_file(file_of("a"), kWhole).value();
    const auto server = serve({"--config", "hearth.yaml"});
    expect_refusal(*server, "has data format " + std::to_string(format));
    EXPECT_TRUE(
        contains(server->log(), "Serve this data directory with the version that wrote it"));
    EXPECT_EQ(read_file(file_, kWhole).value(), before);
    EXPECT_EQ(read_file(file_of("a"), kWhole).value(), agent_before);
  }
}

TEST_F(BadDirectoryTest, AFileThatCannotBeWrittenIsRefused) {
  std::vector<std::string> command{root_ / "hearth-under-test", "serve", "--listen", "127.0.0.1:0"};
  std::filesystem::copy_file(built::server(), command[0]);
  std::filesystem::permissions(root_, std::filesystem::perms{0755});
  // Permissions do not bind root, so the server runs as another user then.
  if (::geteuid() == 0) {
    constexpr uid_t kNobody = 65534;
    for (const auto& each : std::filesystem::recursive_directory_iterator(root_))
      ASSERT_EQ(::lchown(each.path().c_str(), kNobody, kNobody), 0) << each.path();
    const std::vector<std::string> as_nobody{"setpriv", "--reuid=65534", "--regid=65534",
                                             "--clear-groups"};
    command.insert(command.begin(), as_nobody.begin(), as_nobody.end());
  }
  std::filesystem::permissions(file_, std::filesystem::perms{0444});
  ServerProcess server(command, root_);
  expect_refusal(server, "Give it to the user that the server runs as");
}

}  // namespace
}  // namespace hearth::testing
