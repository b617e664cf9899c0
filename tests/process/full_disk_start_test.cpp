// A server that starts on a full disk serves what can be read, and writes once there is room. The
// disk is full for the server only, by a library that is loaded into it (full_disk.c).
#include "process/agent_client.hpp"
#include "process/process_fixture.hpp"
#include "support/exposition.hpp"

#include <csignal>
#include <filesystem>
#include <fstream>
#include <memory>
#include <ostream>
#include <stdexcept>
#include <string>
#include <vector>

namespace hearth::testing {
namespace {

namespace fs = std::filesystem;

class FullDiskStartTest : public ProcessTest {
 protected:
  FullDiskStartTest() { install(bundled("counter"), "counter.so"); }

  void fill() const { put("full", ""); }
  void make_room() const { fs::remove(root_ / "full"); }

  // `variables`: further ones of its environment.
  [[nodiscard]] std::unique_ptr<ServerProcess> start(
      const std::vector<std::string>& variables = {}) const {
    std::vector<std::string> command{"env", "LD_PRELOAD=" + built::full_disk().string(),
                                     "FULL_DISK=" + fs::canonical(root_).string() + "/data",
                                     "FULL_DISK_WHILE=" + (root_ / "full").string()};
    command.insert(command.end(), variables.begin(), variables.end());
    if (!fs::exists(root_ / "hearth.yaml")) return serve_under(command);
    return serve_under(command, {"--config", "hearth.yaml"});
  }
  [[nodiscard]] std::unique_ptr<ServerProcess> start_ready(
      const std::vector<std::string>& variables = {}) const {
    auto server = start(variables);
    server->wait_until_ready();
    return server;
  }

  static void expect_refused(const ServerProcess& server, const std::string& path) {
    const Reply refused = request(server, "POST", path);
    EXPECT_EQ(refused.status, 500) << refused.body;
    EXPECT_TRUE(refused.body.starts_with(R"({"error":{"code":)")) << refused.body;
  }
};

// What the disk lacks, and how the server before has ended.
struct FullDiskCase {
  std::string name;
  std::vector<std::string> variables;
  bool killed = false;
  std::string durability;
};

void PrintTo(const FullDiskCase& each, std::ostream* out) {
  *out << each.name;
}

class FullDiskStartCasesTest : public FullDiskStartTest,
                               public ::testing::WithParamInterface<FullDiskCase> {};

TEST_P(FullDiskStartCasesTest, WhatIsStoredIsServedAndWrittenAgainOnceThereIsRoom) {
  put("classes/counter.yaml", "class: counter\ndurability: " + GetParam().durability + "\n");
  auto server = start_ready();
  ASSERT_EQ(increment(*server, "a"), R"({"count":1})");
  ASSERT_EQ(increment(*server, "b"), R"({"count":1})");
  if (GetParam().killed) {
    server->kill();
  } else {
    ASSERT_EQ(server->stop(), kClean);
  }

  fill();
  server = start_ready(GetParam().variables);
  const auto expect_storage = [&server](std::string_view state, double full) {
    const Reply ready = request(*server, "GET", "/readyz");
    EXPECT_EQ(ready.status, 200);
    EXPECT_TRUE(ready.body.ends_with("\"storage\":\"" + std::string(state) + "\"}")) << ready.body;
    const Exposition seen(request(*server, "GET", "/metrics").body);
    EXPECT_EQ(seen.value("hearth_storage_full"), full);
    EXPECT_GT(seen.value("hearth_storage_free_bytes"), 0);
    EXPECT_GT(seen.value("hearth_storage_size_bytes"), 0);
  };
  expect_storage("full", 1);
  EXPECT_EQ(count(*server, "a"), R"({"count":1})");
  EXPECT_EQ(AgentClient(*server, "/agents/counter/b").call("get"), 1);
  EXPECT_EQ(count(*server, "nobody"), R"({"count":0})") << "leaves no trace";
  expect_refused(*server, "/agents/counter/a");
  expect_refused(*server, "/agents/counter/new");
  EXPECT_EQ(count(*server, "a"), R"({"count":1})");
  EXPECT_TRUE(
      contains(server->log(), "what=\"the private copy of a library\"", "what=server.json"));
  EXPECT_TRUE(contains(hearth({"agents", "counter", "--data", "data"}), "no server runs"));

  make_room();
  server->wait_for_log("server.disk_has_room");
  expect_storage("ok", 0);
  EXPECT_EQ(increment(*server, "a"), R"({"count":2})");
  EXPECT_EQ(increment(*server, "new"), R"({"count":1})");
  EXPECT_EQ(AgentClient(*server, "/agents/counter/b").call("increment"), 2);
  EXPECT_TRUE(contains(hearth({"agents", "counter", "--data", "data"}), "new"));
  EXPECT_EQ(server->stop(), kClean);

  server = start_ready();
  EXPECT_EQ(count(*server, "a"), R"({"count":2})");
  EXPECT_EQ(server->stop(), kClean);
}

const std::vector<std::string> kNoFiles{"FULL_DISK_INODES=1"};

INSTANTIATE_TEST_SUITE_P(
    Disk, FullDiskStartCasesTest,
    ::testing::Values(FullDiskCase{"NoBlocksAfterAStop", {}, false, "process"},
                      FullDiskCase{"NoBlocksAfterAKill", {}, true, "process"},
                      FullDiskCase{"NoFilesAfterAStop", kNoFiles, false, "process"},
                      FullDiskCase{"NoFilesAfterAKill", kNoFiles, true, "process"},
                      FullDiskCase{"PowerNoBlocksAfterAStop", {}, false, "power"},
                      FullDiskCase{"PowerNoBlocksAfterAKill", {}, true, "power"},
                      FullDiskCase{"PowerNoFilesAfterAStop", kNoFiles, false, "power"},
                      FullDiskCase{"PowerNoFilesAfterAKill", kNoFiles, true, "power"}),
    [](const auto& each) { return each.param.name; });

TEST_F(FullDiskStartTest, WorkThatIsDueWaitsForRoomAndIsDoneOnce) {
  install(bundled("worker-c"), "worker-c.so");
  auto server = start_ready();
  {
    AgentClient worker(*server, "/agents/worker-c/w");
    worker.call("run", "[3,50]");
    worker.call("tick_in", "[10000]");
    worker.call("tick_next");
  }
  server->kill();

  fill();
  server = start_ready();
  EXPECT_EQ(count(*server, "other"), R"({"count":0})");
  for (int i = 0; i < 3; ++i) {
    const Json status = AgentClient(*server, "/agents/worker-c/w").call("status");
    EXPECT_LT(status.at("runs").at(0).at("steps").size(), 3U) << "a step needs room";
  }
  make_room();
  server->wait_for_log("run-1 is finished");
  const Json status = AgentClient(*server, "/agents/worker-c/w").call("status");
  EXPECT_EQ(dump_json(status.at("runs").at(0).at("steps")), "[1,2,3]");
  EXPECT_EQ(server->stop(), kClean);
}

TEST_F(FullDiskStartTest, ANewDataDirectoryNeedsRoom) {
  for (const auto& variables : {std::vector<std::string>{}, kNoFiles}) {
    fs::create_directory(root_ / "data");
    fill();
    auto server = start(variables);
    EXPECT_EQ(server->wait(), kFailed);
    EXPECT_TRUE(contains(server->log(), "server.start_failed", "Make room on the disk"));
    EXPECT_TRUE(lacks(server->log(), "backup"));
    make_room();
    server = start_ready(variables);
    EXPECT_EQ(increment(*server, "a"), R"({"count":1})");
    EXPECT_EQ(server->stop(), kClean);
    fs::remove_all(root_ / "data");
  }
}

// A disk that was cleared too eagerly: the files that a start makes are gone, the data of agents is
// there.
TEST_F(FullDiskStartTest, WhatAStartMakesIsMadeLater) {
  auto server = start_ready();
  ASSERT_EQ(increment(*server, "a"), R"({"count":1})");
  ASSERT_EQ(server->stop(), kClean);
  for (const char* made : {"admin.token", "staged", "trials", "crashes"})
    fs::remove_all(root_ / "data" / made);
  std::ofstream(root_ / "data/lock", std::ios::trunc).close();

  fill();
  server = start_ready(kNoFiles);
  EXPECT_EQ(count(*server, "a"), R"({"count":1})");
  EXPECT_TRUE(contains(server->log(), "what=\"the process id in the file `lock`\"",
                       "what=\"the administrators' token\"", "server.crashes_unknown"));
  make_room();
  server->wait_for_log("server.disk_has_room");
  EXPECT_TRUE(contains(hearth({"agents", "counter", "--data", "data"}), "CLIENTS"));
  EXPECT_TRUE(contains(hearth({"serve", "--data", "data", "--listen", "127.0.0.1:0"}),
                       "(process " + std::to_string(server->pid()) + ")"));
  EXPECT_TRUE(fs::exists(root_ / "data/crashes/pending"));
  EXPECT_EQ(server->stop(), kClean);
}

// ---- libraries ----------------------------------------------------------------------------------

class FullDiskLibrariesTest : public FullDiskStartTest {
 protected:
  FullDiskLibrariesTest() {
    install(built::agent("crashes-mended"), "crashes.so");
    put("hearth.yaml", "reload: {quiet_time: 20ms}\n");
  }

  void replace_by_the_one_that_crashes() const { replace(built::agent("crashes"), "crashes.so"); }
  static std::string crash(const ServerProcess& server) {
    try {
      return request(server, "GET", "/agents/crashes/a?how=segv").body;
    } catch (const std::runtime_error&) {
      return "crashed";
    }
  }
};

TEST_F(FullDiskLibrariesTest, AVersionThatEndedTheServerIsNotServedThoughThatCannotBeWritten) {
  auto server = start_ready();
  replace_by_the_one_that_crashes();
  server->wait_for_log("reload.done class=Crashes");
  EXPECT_EQ(crash(*server), "crashed");
  EXPECT_EQ(server->wait().signal, SIGSEGV);
  fill();
  server = start_ready();
  EXPECT_EQ(crash(*server), "ok") << "the one before";
  EXPECT_EQ(server->stop(), kClean);
}

TEST_F(FullDiskLibrariesTest, AVersionWithoutAWayBackIsNotTried) {
  auto server = start_ready();
  ASSERT_EQ(crash(*server), "ok");
  ASSERT_EQ(server->stop(), kClean);
  fill();
  server = start_ready();
  replace_by_the_one_that_crashes();
  server->wait_for_log("rule=S2");
  EXPECT_EQ(crash(*server), "ok");
  make_room();
  server->signal(SIGHUP);
  server->wait_for_log("reload.done class=Crashes");
  EXPECT_EQ(crash(*server), "crashed");
  EXPECT_EQ(server->wait().signal, SIGSEGV);
  server = start_ready();
  EXPECT_EQ(crash(*server), "ok") << "the way back was written down";
  EXPECT_EQ(server->stop(), kClean);
}

TEST_F(FullDiskLibrariesTest, ACrashOfALibraryInMemoryIsToldWithItsName) {
  replace(built::agent("crashes"), "crashes.so");
  auto server = start_ready();
  ASSERT_EQ(server->stop(), kClean);
  fill();
  server = start_ready();
  make_room();
  EXPECT_EQ(crash(*server), "crashed");
  EXPECT_EQ(server->wait().signal, SIGSEGV);
  server = start_ready();
  const std::string told = line_of(server->log(), "server.crashed_before");
  EXPECT_TRUE(contains(told, "stack=\"crashes.so+0x"));
  EXPECT_EQ(server->stop(), kClean);
}

TEST_F(FullDiskStartTest, AnAgentThatCannotBeDestroyedIsSaidToNeedRoom) {
  const auto server = start_ready();
  for (const char* const name : {"a", "b"}) EXPECT_EQ(increment(*server, name), R"({"count":1})");
  EXPECT_TRUE(says({"evict", "Counter", "b"}, kClean));
  fill();
  for (const char* const name : {"a", "b"})  // live and cold
    EXPECT_TRUE(says({"destroy", "Counter", name, "--yes"}, kFailed, "the disk is full"));
  make_room();
  for (const char* const name : {"a", "b"})
    EXPECT_TRUE(says({"destroy", "Counter", name, "--yes"}, kClean));
}

}  // namespace
}  // namespace hearth::testing
