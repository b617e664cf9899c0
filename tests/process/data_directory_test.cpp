// The directory of agents' data: its owner and permissions, and what happens if it cannot be used.

#include "process/agent_client.hpp"
#include "process/process_fixture.hpp"
#include "support/built.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <fstream>
#include <ios>
#include <string>
#include <system_error>

namespace hearth::testing {
namespace {

namespace fs = std::filesystem;

class DataDirectoryProcessTest : public ProcessTest {
 protected:
  DataDirectoryProcessTest() { install(bundled("counter"), "counter.so"); }

  // The error for an agent whose data cannot be reached: clear, and without internals.
  void expect_refused(const ServerProcess& server, const std::string& name) const {
    const Reply refused = request(server, "POST", "/agents/counter/" + name);
    EXPECT_GE(refused.status, 500) << refused.body;
    EXPECT_TRUE(refused.body.starts_with(R"({"error":{"code":)")) << refused.body;
    EXPECT_TRUE(lacks(refused.body, root_.string(), "agents/"));
  }

  // As a failing disk does.
  void damage(const fs::path& file, std::streamoff at) const {
    std::fstream(root_ / file, std::ios::binary | std::ios::in | std::ios::out).seekp(at).put('!');
  }

  // Soon: whether a file is in its place is looked at every 10 ms at most.
  void expect_soon_refused(const ServerProcess& server, const std::string& name) const {
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(10);
    while (request(server, "POST", "/agents/counter/" + name).status == 200)
      ASSERT_LT(std::chrono::steady_clock::now(), deadline) << "it goes on";
    expect_refused(server, name);
  }

  // A server that is not root's, since permissions mean nothing to root.
  [[nodiscard]] std::unique_ptr<ServerProcess> serve_unprivileged() const {
    fs::permissions(root_, fs::perms{0755});
    const fs::path binary = root_ / "hearth-under-test";
    fs::copy_file(built::server(), binary, fs::copy_options::overwrite_existing);
    std::vector<std::string> command{binary,        "serve",        "--listen",
                                     "127.0.0.1:0", "--log-format", "human"};
    if (::geteuid() == 0) {
      fs::create_directory(root_ / "data");
      if (::chown((root_ / "data").c_str(), kNobody, kNobody) != 0) {
        throw std::system_error(errno, std::generic_category(), "chown");
      }
      const std::vector<std::string> as_nobody{"setpriv", "--reuid=65534", "--regid=65534",
                                               "--clear-groups"};
      command.insert(command.begin(), as_nobody.begin(), as_nobody.end());
    }
    return std::make_unique<ServerProcess>(command, root_);
  }

  // As if the file system were mounted read-only from now on, for files that are opened, made or
  // removed.
  void set_read_only(bool read_only) const {
    const fs::perms directory = read_only ? fs::perms{0500} : fs::perms{0700};
    const fs::perms file = read_only ? fs::perms{0400} : fs::perms{0600};
    fs::permissions(root_ / "data", directory);
    for (const auto& entry : fs::recursive_directory_iterator(root_ / "data")) {
      fs::permissions(entry.path(), entry.is_directory() ? directory : file);
    }
  }

  static constexpr uid_t kNobody = 65534;
};

TEST_F(DataDirectoryProcessTest, EverythingInItIsTheServersUsersAlone) {
  const mode_t before = ::umask(0);  // the most permissive umask of a user who starts it
  fs::create_directory(root_ / "data");
  fs::permissions(root_ / "data", fs::perms{0755});
  const auto server = serve_ready();
  ::umask(before);
  EXPECT_EQ(increment(*server, "a"), R"({"count":1})");
  int files = 0;
  for (const auto& entry : fs::recursive_directory_iterator(root_ / "data")) {
    struct stat status{};
    ASSERT_EQ(::lstat(entry.path().c_str(), &status), 0);
    EXPECT_EQ(status.st_mode & 077, 0U) << entry.path() << " " << std::oct << status.st_mode;
    if (entry.is_regular_file()) ++files;
  }
  EXPECT_GE(files, 4) << "the lock, host.db, the agent's and its log, the staged library";
  server->wait_for_log("server.data_readable");
  server->wait_for_log("chmod 700");
  EXPECT_EQ(server->stop(), kClean);
}

TEST_F(DataDirectoryProcessTest, OneThatCannotBeUsedStopsTheStartWithAMessage) {
  const Said server = say({"serve", "--listen", "127.0.0.1:0", "--data", "/proc/self"});
  EXPECT_EQ(server.ending, kFailed);
  EXPECT_EQ(server.out, "");
  EXPECT_TRUE(contains(server.err, "/proc/self", "choose another"));
}

TEST_F(DataDirectoryProcessTest, WhenItTurnsUnusableNewAgentsAreRefusedAndTheOthersServed) {
  const auto server = serve_ready();
  EXPECT_EQ(increment(*server, "old"), R"({"count":1})");
  fs::rename(root_ / "data/agents", root_ / "agents-aside");
  put("data/agents", "in the way");
  expect_refused(*server, "new");
  EXPECT_EQ(request(*server, "GET", "/healthz").status, 200);
  EXPECT_EQ(increment(*server, "old"), R"({"count":2})") << "it has its file open";
  expect_refused(*server, "new");

  fs::remove(root_ / "data/agents");
  fs::rename(root_ / "agents-aside", root_ / "data/agents");
  EXPECT_EQ(increment(*server, "new"), R"({"count":1})");
  EXPECT_EQ(increment(*server, "old"), R"({"count":3})");
  EXPECT_EQ(server->stop(), kClean);
}

// Both durabilities: what is synced has no name either.
TEST_F(DataDirectoryProcessTest, WhenItIsRemovedNothingIsAcknowledgedAnyMore) {
  for (const char* const durability : {"process", "power"}) {
    put("classes/counter.yaml", "class: counter\ndurability: " + std::string(durability) + "\n");
    const auto server = serve_ready();
    EXPECT_EQ(increment(*server, "a"), R"({"count":1})");
    AgentClient client(server->port(), "/agents/counter/b");
    EXPECT_EQ(request(*server, "GET", "/readyz").status, 200);
    fs::remove_all(root_ / "data");
    client.begin("increment");
    for (Frame frame = client.read_frame(); frame.opcode != 8; frame = client.read_frame()) {
      if (frame.payload.find(R"("type":"rpc")") == std::string::npos) continue;
      EXPECT_TRUE(contains(frame.payload, R"("success":false)"));
      break;
    }
    expect_soon_refused(*server, "a");
    expect_refused(*server, "new");
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(10);
    Reply ready = request(*server, "GET", "/readyz");
    while (ready.status == 200 && std::chrono::steady_clock::now() < deadline)
      ready = request(*server, "GET", "/readyz");
    EXPECT_EQ(answer_of(ready), R"(503 {"status":"data_lost"})");
    EXPECT_EQ(request(*server, "POST", "/agents/counter/a").status, 503);
    EXPECT_EQ(request(*server, "GET", "/healthz").status, 200);
    server->wait_for_log("server.data_lost");
    server->wait_for_log("put the directory back");
    server->kill();
    fs::remove_all(root_ / "data");
  }
}

TEST_F(DataDirectoryProcessTest, AnAgentWhoseFileIsRemovedWhileItIsOpenIsRefused) {
  const auto server = serve_ready();
  EXPECT_EQ(increment(*server, "a"), R"({"count":1})");
  for (const auto& entry : fs::recursive_directory_iterator(root_ / "data/agents")) {
    if (entry.path().extension() == ".db") fs::remove(entry.path());
  }
  expect_soon_refused(*server, "a");
  server->wait_for_log("was removed or replaced");
  expect_refused(*server, "a");
  EXPECT_EQ(increment(*server, "b"), R"({"count":1})");
  EXPECT_EQ(server->stop(), kClean);
}

TEST_F(DataDirectoryProcessTest, WhenItTurnsReadOnlyNewAgentsAreRefusedAndNoServerStartsOnIt) {
  const auto server = serve_unprivileged();
  server->wait_until_ready();
  EXPECT_EQ(increment(*server, "old"), R"({"count":1})");
  set_read_only(true);
  expect_refused(*server, "new");
  EXPECT_EQ(increment(*server, "old"), R"({"count":2})");
  EXPECT_EQ(request(*server, "GET", "/healthz").status, 200);
  server->kill();

  const auto second = serve_unprivileged();
  EXPECT_EQ(second->wait(), kFailed);
  EXPECT_EQ(second->out(), "");
  EXPECT_TRUE(contains(second->log(), (root_ / "data").string(), "Permission denied"));

  set_read_only(false);
  const auto third = serve_unprivileged();
  third->wait_until_ready();
  EXPECT_EQ(count(*third, "old"), R"({"count":2})");
  EXPECT_EQ(increment(*third, "new"), R"({"count":1})");
}

TEST_F(DataDirectoryProcessTest, ADamagedLogOfTheDirectoryIsNamedWithWhatToDo) {
  auto server = serve_ready();
  for (const char* name : {"a", "b", "c"}) EXPECT_EQ(increment(*server, name), R"({"count":1})");
  server->kill();
  damage("data/host.db-wal", 100);
  server = serve_ready();
  EXPECT_EQ(count(*server, "a"), R"({"count":1})") << "agents' own data is whole";
  EXPECT_EQ(server->stop(), kClean);
  EXPECT_TRUE(contains(line_of(server->log(), "server.directory_damaged"), "host.db-wal",
                       "it is damaged at byte 32", "hearth repair"));
}

}  // namespace
}  // namespace hearth::testing
