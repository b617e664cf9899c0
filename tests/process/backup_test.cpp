// `hearth backup` of a server that works, `hearth verify`, and `hearth restore` elsewhere.

#include "base/sha256.hpp"
#include "json/json.hpp"
#include "process/agent_client.hpp"
#include "process/process_fixture.hpp"

#include <sys/resource.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <deque>
#include <fstream>
#include <functional>
#include <map>
#include <numeric>
#include <set>
#include <sstream>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace hearth::testing {
namespace {

namespace fs = std::filesystem;

std::string text_of(const fs::path& file) {
  return read_file(file, 1U << 20U).value();
}

class BackupTest : public ProcessTest {
 protected:
  BackupTest() {
    install(bundled("counter"), "counter.so");
    install(bundled("worker-c"), "worker-c.so");
    put("hearth.yaml", "log:\n  level: debug\n");
    put("classes/worker-c.yaml", "class: worker-c\nfibers:\n  retry_base: 10ms\n");
    // A WAL of a busy agent is moved into the file while the backup runs.
    put("classes/counter.yaml", "class: counter\nidle_timeout: 200ms\n");
  }

  [[nodiscard]] std::unique_ptr<ServerProcess> serve_on(const std::string& data) const {
    return serve_ready({"--config", "hearth.yaml", "--data", data});
  }

  // The directory of the new backup.
  [[nodiscard]] fs::path back_up(const std::vector<std::string>& more = {}) const {
    std::vector<std::string> arguments{"backup", "backups", "--data", "data"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    const std::string printed = ask(arguments);
    return printed.substr(0, printed.find('\n'));
  }
  void expect_restored(const std::string& to) const {
    EXPECT_TRUE(says({"restore", "backups", "--data", to}, kClean));
  }
  [[nodiscard]] Reply ask_admin(const ServerProcess& server, const std::string& method,
                                const std::string& path, const std::string& body = {}) const {
    return request(server, method, path, bearer(), body);
  }
  [[nodiscard]] Json progress(const ServerProcess& server) const {
    return parse_json(ask_admin(server, "GET", "/admin/backup").body).value();
  }
  static int number(const std::string& body) {
    return parse_json(body).value().at("count").get<int>();
  }
  // host.db and the agents' files, with their content.
  static std::map<fs::path, std::string> agents_below(const fs::path& directory) {
    std::map<fs::path, std::string> found;
    for (const fs::path& each : files_below(directory)) {
      if (each == "host.db" || each.native().starts_with("agents/"))
        found[each] = text_of(directory / each);
    }
    return found;
  }
  [[nodiscard]] fs::path file_of(const std::string& counter) const {
    const std::string hash = sha256_hex(counter).substr(0, 32);  // storage/data_directory.hpp
    return root_ / "data/agents/Counter" / hash.substr(0, 2) / (hash + ".db");
  }
  static std::set<fs::path> files_below(const fs::path& directory) {
    std::set<fs::path> found;
    for (const auto& each : fs::recursive_directory_iterator(directory)) {
      if (each.is_regular_file()) found.insert(each.path().lexically_relative(directory));
    }
    return found;
  }
};

// Each client increments one agent, and the next one once that is acknowledged: at any moment, the
// counts of its agents differ by one at most, and none is higher than that of the agent before. The
// second client is so slow that its agents leave memory in between.
TEST_F(BackupTest, EachAcknowledgedWriteIsThereAndAllCopiesAreOfOneMoment) {
  constexpr std::size_t kClients = 3;
  constexpr std::size_t kAgents = 4;
  constexpr int kDestroyed = 5;
  constexpr int kSoFar = 5;
  auto server = serve_on("data");
  for (int i = 0; i < kDestroyed; ++i)
    EXPECT_EQ(number(increment(*server, "gone" + std::to_string(i))), 1);
  server->wait_for_log("agent.evicted class=Counter agent=gone", kDestroyed);
  EXPECT_EQ(ask_admin(*server, "POST", "/objects/definitions", R"({"class":"before"})").status,
            201);
  std::vector<std::vector<std::atomic<int>>> acknowledged(kClients);
  std::atomic<bool> is_over = false;
  std::vector<std::thread> clients;
  const auto name = [](std::size_t client, std::size_t agent) {
    return "c" + std::to_string(client) + "-" + std::to_string(agent);
  };
  for (std::size_t client = 0; client < kClients; ++client) {
    acknowledged.at(client) = std::vector<std::atomic<int>>(kAgents);
    clients.emplace_back([&, client] {
      for (std::size_t i = 0; !is_over; i = (i + 1) % kAgents) {
        acknowledged[client][i] = number(increment(*server, name(client, i)));
        if (client == 1) std::this_thread::sleep_for(std::chrono::milliseconds(150));
      }
    });
  }
  while (acknowledged.back().back() < kSoFar)
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  std::vector<int> before;
  for (const auto& of_client : acknowledged)
    before.insert(before.end(), of_client.begin(), of_client.end());
  // Some seconds, so that agents write, leave memory and come back before they are copied.
  const auto backup = run({"backup", "backups", "--data", "data", "--rate", "512KiB"});
  backup->wait_for_log("agents");  // the mark is set
  (void)increment(*server, "new");
  for (int i = 0; i < kDestroyed; ++i) {
    const std::string path = "/admin/agents/Counter/gone" + std::to_string(i);
    EXPECT_EQ(ask_admin(*server, "DELETE", path).status, 200);
  }
  const Json told = progress(*server);
  EXPECT_EQ(told.at("state"), "running");
  EXPECT_LT(told.at("done"), kDestroyed) << "at least one was destroyed before its copy";
  server->wait_for_log("agent.evicted class=Counter agent=c1-");
  const std::size_t left = times_in(server->log(), "agent.evicted class=Counter agent=c1-");
  server->wait_for_log("agent.evicted class=Counter agent=c1-", left + kAgents);
  EXPECT_EQ(progress(*server).at("state"), "running") << "when agents had left and come back";
  EXPECT_EQ(backup->wait(), kClean) << backup->log();
  is_over = true;
  for (std::thread& each : clients) each.join();
  server->wait_for_log("agent.destroyed class=Counter agent=gone", kDestroyed);
  EXPECT_TRUE(says({"verify", "backups"}, kClean));
  EXPECT_EQ(server->stop(), kClean);
  expect_restored("elsewhere");
  server = serve_on("elsewhere");
  int later = 0;
  for (std::size_t client = 0; client < kClients; ++client) {
    std::vector<int> counts;
    for (std::size_t i = 0; i < kAgents; ++i) {
      counts.push_back(number(count(*server, name(client, i))));
      EXPECT_GE(counts.back(), before[client * kAgents + i]) << name(client, i);
      later += acknowledged[client][i] - counts.back();
    }
    EXPECT_TRUE(std::ranges::is_sorted(counts, std::greater<>())) << dump_json(counts);
    EXPECT_LE(counts.front() - counts.back(), 1) << dump_json(counts);
  }
  for (int i = 0; i < kDestroyed; ++i)
    EXPECT_EQ(number(count(*server, "gone" + std::to_string(i))), 1) << "destroyed after the mark";
  EXPECT_EQ(number(count(*server, "new")), 0);
  EXPECT_EQ(ask_admin(*server, "GET", "/objects/definitions/before").status, 200);
  EXPECT_GT(later, 12) << "the clients have not written after the mark";
}

TEST_F(BackupTest, InterruptedWorkGoesOnOnceAfterTheRestore) {
  auto server = serve_on("data");
  {
    AgentClient worker(*server, "/agents/worker-c/a");
    EXPECT_EQ(worker.call("run", "[20,150]"), "run-1");
    while (worker.call("status").at("runs").at(0).at("steps").size() < 2) {
    }
    (void)back_up();
    EXPECT_LT(worker.call("status").at("runs").at(0).at("steps").size(), 20U);
  }
  EXPECT_TRUE(says({"verify", "backups"}, kClean, "Would resume: 1 fibers"));
  expect_restored("elsewhere");
  EXPECT_EQ(server->kill(), kKilled);
  server = serve_on("elsewhere");
  server->wait_for_log("run-1 is finished");
  AgentClient worker(*server, "/agents/worker-c/a");
  const Json status = worker.call("status");
  EXPECT_EQ(status.at("recoveries"), 1) << dump_json(status);
  std::vector<int> all(20);
  std::iota(all.begin(), all.end(), 1);
  EXPECT_EQ(status.at("runs").at(0).at("steps").get<std::vector<int>>(), all);
}

TEST_F(BackupTest, UnchangedFilesAreHardLinksAndAllIsPrivate) {
  {
    const auto server = serve_on("data");
    for (const char* const each : {"a", "b"}) EXPECT_EQ(number(increment(*server, each)), 1);
    EXPECT_EQ(server->stop(), kClean);
    std::this_thread::sleep_for(std::chrono::seconds(3));  // then times tell whether files change
  }
  const auto server = serve_on("data");
  const fs::path first = back_up();
  EXPECT_EQ(number(increment(*server, "a")), 2);
  server->wait_for_log("agent.evicted class=Counter agent=a");
  const fs::path second = back_up();
  EXPECT_NE(first, second);
  EXPECT_EQ(files_below(first), files_below(second));
  EXPECT_TRUE(files_below(second).contains("audit.db"));
  int agents = 0;
  for (const fs::path& each : files_below(second)) {
    EXPECT_EQ(fs::status(second / each).permissions(), fs::perms{0600}) << each;
    if (each.extension() == ".db" && each.native().starts_with("agents/"))
      agents += fs::equivalent(first / each, second / each) ? 1 : 0;
  }
  EXPECT_EQ(agents, 1) << "that of b";
  for (const fs::path& each : {first, second, root_ / "backups"})
    EXPECT_EQ(fs::status(each).permissions(), fs::perms{0700}) << each;
  const auto other = run({"verify", "backups"});
  EXPECT_TRUE(says({"verify", "backups"}, kClean));
  EXPECT_EQ(other->wait(), kClean) << other->log() << other->out();
  EXPECT_TRUE(says({"verify", first}, kClean));
  // A copy is damaged, and its file changes, though only its times: it is copied anew.
  const fs::path copy = second / file_of("b").lexically_relative(root_ / "data");
  std::fstream(copy).seekp(5000) << "damaged";
  EXPECT_TRUE(says({"verify", "backups"}, kFailed));
  fs::last_write_time(file_of("b"), fs::file_time_type::clock::now());
  (void)back_up();
  EXPECT_TRUE(says({"verify", "backups"}, kClean));
}

TEST_F(BackupTest, ACopyThatHasLostItsAgentIsNamed) {
  {
    const auto server = serve_on("data");
    (void)increment(*server, "a");
    server->wait_for_log("agent.evicted class=Counter agent=a");
    (void)back_up();
  }
  const fs::path backup = *fs::directory_iterator(root_ / "backups");
  const std::string path = file_of("a").lexically_relative(root_ / "data");
  std::ofstream{backup / path} << "";
  std::string manifest;
  std::istringstream lines(text_of(backup / "manifest"));
  for (std::string line; std::getline(lines, line);)
    manifest += (line.ends_with(path) ? sha256_hex("") + " 0 - " + path : line) + '\n';
  std::ofstream{backup / "manifest"} << manifest;
  fs::create_directories(root_ / "backups/.verifying-killed/copy");
  EXPECT_TRUE(says({"verify", "backups"}, kFailed, path + ": it is missing: Counter a"));
  EXPECT_FALSE(fs::exists(root_ / "backups/.verifying-killed"));
}

TEST_F(BackupTest, OneAgentIsRestoredAndOthersStay) {
  put("hearth.yaml", "audit:\n  max_entries: 0\n");  // then there is no audit.db
  const auto put_files = [this](const std::string& names, const std::string& text) {
    const fs::path directory = fs::path(file_of("a")).replace_extension(".files");
    fs::create_directories(directory);
    for (const char each : names) std::ofstream{directory / std::string(64, each)} << text;
  };
  const auto files_are = [this](const std::string& texts) {
    std::string found;
    for (const char each : std::string("abc")) {
      const fs::path directory = fs::path(file_of("a")).replace_extension(".files");
      if (const auto text = read_file(directory / std::string(64, each), 100)) found += *text;
    }
    return found == texts;
  };
  auto server = serve_on("data");
  for (const char* const each : {"a", "b"}) (void)increment(*server, each);
  put_files("ab", "1");
  (void)back_up();
  for (const char* const each : {"a", "b"}) (void)increment(*server, each);
  put_files("bc", "2");  // that of the first operation is gone, and another one has begun
  fs::remove(fs::path(file_of("a")).replace_extension(".files") / std::string(64, 'a'));
  const std::vector<std::string> one{"restore", "backups", "--data",
                                     "data",    "--agent", "counter/a"};  // as in URLs
  EXPECT_TRUE(says(one, kFailed, "is in use by another server"));
  EXPECT_EQ(server->kill(), kKilled);  // the WAL of the old file must not be read with the new one
  EXPECT_TRUE(says(one, kFailed, "--replace"));
  auto replaced = one;
  replaced.emplace_back("--replace");
  // Another kill each time, until one comes too late.
  bool is_over = false;
  for (int delay_ms = 4; !is_over; delay_ms += 2 + delay_ms / 2) {
    {
      const auto restore = run(replaced);
      std::this_thread::sleep_for(std::chrono::milliseconds(delay_ms));
      is_over = restore->kill() == kClean;
    }
    ASSERT_LT(delay_ms, 20'000);
    ASSERT_GT(fs::file_size(file_of("a")), 0U);
    ASSERT_TRUE(files_are("22") || files_are("122"));
  }
  EXPECT_TRUE(files_are("122"));
  server = serve_on("data");
  EXPECT_EQ(number(count(*server, "a")), 1);
  EXPECT_EQ(number(count(*server, "b")), 2);
  // A file that cannot be opened is kept with its WAL.
  (void)increment(*server, "a");
  EXPECT_EQ(server->kill(), kKilled);
  const std::string wal = text_of(file_of("a").native() + "-wal");
  EXPECT_FALSE(wal.empty());
  std::fstream(file_of("a")) << "This is no database.";
  EXPECT_TRUE(says(replaced, kClean));
  bool wal_is_kept = false;
  for (const auto& each : fs::directory_iterator(file_of("a").parent_path())) {
    const std::string& name = each.path().native();
    wal_is_kept = wal_is_kept || (name.find(".before-") != std::string::npos &&
                                  name.ends_with("-wal") && text_of(each) == wal);
  }
  EXPECT_TRUE(wal_is_kept);
  server = serve_on("data");
  EXPECT_EQ(number(count(*server, "a")), 1);
  EXPECT_TRUE(says({"destroy", "Counter", "a", "--yes", "--data", "data"}, kClean));
  EXPECT_EQ(server->stop(), kClean);
  EXPECT_TRUE(says(one, kClean));
  server = serve_on("data");
  EXPECT_EQ(number(count(*server, "a")), 1);
}

// The marker of the destruction would remove it at the next start.
TEST_F(BackupTest, AnAgentWhoseRemovalHasNotFinishedIsRestored) {
  {
    const auto server = serve_under({"env", "HEARTH_STOP_AT=destroy.condemned"});
    server->wait_until_ready();
    (void)increment(*server, "a");
    (void)back_up();
    const auto destroy = run({"destroy", "Counter", "a", "--yes", "--data", "data"});
    server->wait_for_log("stopped at destroy.condemned");
    EXPECT_EQ(server->kill(), kKilled);
    EXPECT_EQ(destroy->wait(), kFailed);
  }
  EXPECT_TRUE(
      says({"restore", "backups", "--data", "data", "--agent", "Counter/a", "--replace"}, kClean));
  const auto server = serve_on("data");
  EXPECT_EQ(number(count(*server, "a")), 1);
}

// What root restores there, the server of that user could not read.
TEST_F(BackupTest, RootRestoresNothingIntoADirectoryOfAnotherUser) {
  if (::geteuid() != 0) GTEST_SKIP() << "is not root";
  constexpr uid_t kNobody = 65534;
  const auto server = serve_on("data");
  (void)increment(*server, "a");
  (void)back_up();
  fs::create_directory(root_ / "theirs");
  ASSERT_EQ(::chown((root_ / "theirs").c_str(), kNobody, kNobody), 0);
  EXPECT_TRUE(
      says({"restore", "backups", "--data", "theirs/data"}, kFailed, "theirs belongs to: sudo -u"));
  EXPECT_TRUE(fs::is_empty(root_ / "theirs"));
}

TEST_F(BackupTest, ADirectoryWithDataIsLeftAloneOrKept) {
  auto server = serve_on("data");
  (void)increment(*server, "a");
  (void)back_up();
  (void)increment(*server, "a");
  EXPECT_TRUE(says({"restore", "backups", "--data", "data"}, kFailed, "is not empty"));
  EXPECT_TRUE(says({"restore", "backups", "--data", "data", "--replace"}, kFailed,
                   "is in use by another server"));
  EXPECT_EQ(server->stop(), kClean);
  // A link stays where it is, and leads to what is restored.
  fs::rename(root_ / "data", root_ / "real");
  fs::create_directory_symlink(root_ / "real", root_ / "data");
  EXPECT_TRUE(says({"restore", "backups", "--data", "data", "--replace"}, kClean));
  EXPECT_TRUE(fs::is_symlink(root_ / "data"));
  server = serve_on("data");
  EXPECT_EQ(number(count(*server, "a")), 1);
  EXPECT_EQ(server->stop(), kClean);
  for (const auto& each : fs::directory_iterator(root_)) {
    if (!each.path().filename().native().starts_with("real.before-")) continue;
    server = serve_on(each.path());
    EXPECT_EQ(number(count(*server, "a")), 2);
    return;
  }
  FAIL() << "the old directory is gone";
}

struct Damage {
  const char* name;
  void (*harm)(const fs::path& backup, const fs::path& database);
  const char* told;
};
void PrintTo(const Damage& damage, std::ostream* out) {
  *out << damage.name;
}

void replace_in(const fs::path& file, const std::string& from, const std::string& to) {
  std::string text = text_of(file);
  text.replace(text.find(from), from.size(), to);
  std::ofstream{file} << text;
}

class DamagedBackupTest : public BackupTest, public ::testing::WithParamInterface<Damage> {};

TEST_P(DamagedBackupTest, IsNamedAndNotRestored) {
  {
    const auto server = serve_on("data");
    (void)increment(*server, "a");
    server->wait_for_log("agent.evicted class=Counter agent=a");
    (void)back_up();
  }
  const fs::path backup = *fs::directory_iterator(root_ / "backups");
  for (const fs::path& each : files_below(backup / "agents"))
    GetParam().harm(backup, backup / "agents" / each);
  for (const auto& command : std::vector<std::vector<std::string>>{
           {"verify", "backups"}, {"restore", "backups", "--data", "elsewhere"}}) {
    EXPECT_TRUE(says(command, kFailed, GetParam().told)) << command.front();
  }
  for (const char* const each : {"elsewhere", "elsewhere.restoring", "outside.db"})
    EXPECT_FALSE(fs::exists(root_ / each)) << each;
}

INSTANTIATE_TEST_SUITE_P(
    Kinds, DamagedBackupTest,
    ::testing::Values(
        Damage{"bytes",
               [](const fs::path&, const fs::path& file) {
                 std::fstream(file).seekp(5000) << "damaged";
               },
               ".db is damaged"},
        Damage{"missing", [](const fs::path&, const fs::path& file) { fs::remove(file); },
               ".db: No such file"},
        Damage{"link",
               [](const fs::path& backup, const fs::path& file) {
                 fs::rename(file, backup / "moved");
                 fs::create_symlink(backup / "moved", file);
               },
               ".db: Too many levels of symbolic links"},
        Damage{"path_outside",
               [](const fs::path& backup, const fs::path&) {
                 fs::copy_file(backup / "host.db", backup / "../outside.db");
                 replace_in(backup / "manifest", " host.db", " ../outside.db");
               },
               "names a file that is not in the backup"},
        Damage{"absolute_path",
               [](const fs::path& backup, const fs::path&) {
                 replace_in(backup / "manifest", " host.db", " /tmp/outside.db");
               },
               "names a file that is not in the backup"},
        Damage{"no_manifest",
               [](const fs::path& backup, const fs::path&) { fs::remove(backup / "manifest"); },
               "there is no whole backup"},
        Damage{"half_a_manifest",
               [](const fs::path& backup, const fs::path&) {
                 fs::resize_file(backup / "manifest", 100);
               },
               "manifest is damaged"}),
    [](const auto& each) { return std::string(each.param.name); });

TEST_F(BackupTest, AKillLeavesNothingThatLooksWhole) {
  constexpr int kAgents = 40;
  auto server = serve_on("data");
  for (int i = 0; i < kAgents; ++i) (void)increment(*server, "a" + std::to_string(i));
  {
    const auto slow = run({"backup", "backups", "--data", "data", "--rate", "16KiB"});
    const auto until = std::chrono::steady_clock::now() + ServerProcess::kPatience;
    while (!fs::exists(root_ / "backups/.unfinished/agents")) {
      ASSERT_LT(std::chrono::steady_clock::now(), until);
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    EXPECT_EQ(server->kill(), kKilled);
    EXPECT_EQ(slow->wait(), kFailed);
  }
  EXPECT_TRUE(fs::exists(root_ / "backups/.unfinished"));
  EXPECT_TRUE(says({"verify", "backups"}, kFailed, "there is no whole backup"));
  server = serve_on("data");
  (void)back_up();
  EXPECT_FALSE(fs::exists(root_ / "backups/.unfinished"));
  for (int i = 0; i < kAgents; ++i) (void)increment(*server, "a" + std::to_string(i));
  EXPECT_EQ(server->stop(), kClean);
  const auto old = agents_below(root_ / "data");
  const auto restored = agents_below(*fs::directory_iterator(root_ / "backups"));
  EXPECT_NE(old, restored);
  // Another kill each time, until one comes too late: the directory is the old or the new one.
  bool is_over = false;
  for (int delay_ms = 0; !is_over; delay_ms += 2 + delay_ms / 2) {
    {
      const auto restore = run({"restore", "backups", "--data", "data", "--replace"});
      std::this_thread::sleep_for(std::chrono::milliseconds(delay_ms));
      is_over = restore->kill() == kClean;
    }
    ASSERT_LT(delay_ms, 20'000);
    const auto found = agents_below(root_ / "data");
    ASSERT_TRUE(found == old || found == restored);
  }
  EXPECT_EQ(agents_below(root_ / "data"), restored);
  server = serve_on("data");
  for (int i = 0; i < kAgents; ++i)
    EXPECT_EQ(number(count(*server, "a" + std::to_string(i))), 1) << i;
  bool old_is_kept = false;
  for (const auto& each : fs::directory_iterator(root_)) {
    if (!each.path().filename().native().starts_with("data.before-")) continue;
    server = serve_on(each.path());
    old_is_kept = old_is_kept || number(count(*server, "a0")) == 2;
  }
  EXPECT_TRUE(old_is_kept);
}

TEST_F(BackupTest, OneBackupAtATimeAndOnlyOutsideTheDataDirectory) {
  const auto server = serve_on("data");
  for (int i = 0; i < 10; ++i) (void)increment(*server, "a" + std::to_string(i));
  EXPECT_TRUE(
      says({"backup", "data/backups", "--data", "data"}, kFailed, "is in the data directory"));
  fs::create_directory(root_ / "open");
  fs::permissions(root_ / "open", fs::perms{0777});
  EXPECT_TRUE(says({"backup", "open", "--data", "data"}, kFailed, "no other user may write"));
  // A link is not followed.
  fs::create_directory(root_ / "backups");
  fs::permissions(root_ / "backups", fs::perms{0700});
  fs::create_directory(root_ / "elsewhere");
  fs::create_directory_symlink(root_ / "elsewhere", root_ / "backups/.unfinished");
  const auto slow = run({"backup", "backups", "--data", "data", "--rate", "16KiB"});
  slow->wait_for_log("agents");
  EXPECT_TRUE(says({"backup", "others", "--data", "data"}, kFailed, "a backup is in progress"));
  EXPECT_EQ(server->stop(), kClean) << "the backup holds up the end";
  EXPECT_EQ(slow->wait(), kFailed);
  EXPECT_FALSE(fs::exists(root_ / "backups/.unfinished"));
  EXPECT_TRUE(fs::is_empty(root_ / "elsewhere"));
}

TEST_F(BackupTest, ABackupIsStoppedOnRequestAndTheAuditLogSaysWhoDidWhat) {
  const auto server = serve_on("data");
  for (int i = 0; i < 40; ++i) (void)increment(*server, "a" + std::to_string(i));
  const auto slow = run({"backup", "backups", "--data", "data", "--rate", "16KiB"});
  slow->wait_for_log("agents");
  EXPECT_EQ(slow->kill(), kKilled) << "the server goes on";
  EXPECT_TRUE(says({"backup", "--cancel", "--data", "data"}, kClean));
  for (Json now = progress(*server); now.at("state") != "failed"; now = progress(*server))
    ASSERT_EQ(now.at("state"), "running");
  EXPECT_EQ(progress(*server).at("reason"), "it was stopped");
  EXPECT_FALSE(fs::exists(root_ / "backups/.unfinished"));
  EXPECT_TRUE(says({"backup", "--cancel", "--data", "data"}, kFailed, "no backup is in progress"));
  for (const std::vector<std::string>& wrong : {std::vector<std::string>{"backup"},
                                                {"backup", "d", "--cancel"},
                                                {"backup", "d", "--rate", "1"}})
    EXPECT_TRUE(says(wrong, kBadUsage));
  for (const char* const event : {"AdminBackup", "BackupFailed", "AdminBackupCancel"}) {
    const std::string actor = event == std::string("BackupFailed") ? "" : "  administrator";
    EXPECT_TRUE(says({"audit", "--data", "data", "--event", event}, kClean, event, actor));
  }
}

TEST_F(BackupTest, AFullDiskEndsTheBackupAndNothingElse) {
  const auto server = serve_on("data");
  (void)increment(*server, "a");
  (void)back_up();
  rlimit limit{};
  ASSERT_EQ(::prlimit(server->pid(), RLIMIT_FSIZE, nullptr, &limit), 0);
  const rlim_t unlimited = std::exchange(limit.rlim_cur, 10'000);  // no database fits
  ASSERT_EQ(::prlimit(server->pid(), RLIMIT_FSIZE, &limit, nullptr), 0);
  EXPECT_TRUE(says({"backup", "backups", "--data", "data"}, kFailed, "copy a database"));
  EXPECT_FALSE(fs::exists(root_ / "backups/.unfinished"));
  limit.rlim_cur = unlimited;
  ASSERT_EQ(::prlimit(server->pid(), RLIMIT_FSIZE, &limit, nullptr), 0);
  EXPECT_EQ(number(increment(*server, "a")), 2);
  EXPECT_TRUE(says({"verify", "backups"}, kClean));
  (void)back_up();
}

TEST_F(BackupTest, AnAgentThatAnOlderDirectoryDoesNotListIsInTheNextBackupOnceItWasOpened) {
  auto server = serve_on("data");
  EXPECT_EQ(server->stop(), kClean);
  fs::copy_file(root_ / "data/host.db", root_ / "older.db");
  server = serve_on("data");
  EXPECT_EQ(number(increment(*server, "a")), 1);
  EXPECT_EQ(server->stop(), kClean);
  for (const char* const part : {"", "-wal", "-shm"})
    fs::remove((root_ / "data/host.db").native() + part);
  fs::rename(root_ / "older.db", root_ / "data/host.db");
  server = serve_on("data");
  EXPECT_EQ(number(count(*server, "a")), 1) << "it writes nothing";
  EXPECT_TRUE(says({"agents", "Counter", "--json", "--data", "data"}, kClean, R"("name":"a")"));
  (void)back_up();
  EXPECT_EQ(server->stop(), kClean);
  expect_restored("elsewhere");
  server = serve_on("elsewhere");
  EXPECT_EQ(number(count(*server, "a")), 1);
}

TEST_F(BackupTest, AServerThatTakesNoConnectionForAMomentDoesNotEndTheCommand) {
  put("hearth.yaml", "limits:\n  max_connections: 8\n");
  const auto server = serve_on("data");
  for (int i = 0; i < 5; ++i) (void)increment(*server, "a" + std::to_string(i));
  const auto backup = run({"backup", "backups", "--data", "data", "--rate", "32KiB"});
  backup->wait_for_log("agents");
  {
    std::deque<RawClient> others;
    constexpr int kMany = 30;  // more than fit: a place that the command leaves is taken
    for (int i = 0; i < kMany; ++i) {
      others.emplace_back(server->port());
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
    EXPECT_EQ(request(*server, "GET", "/healthz").status, 503);
  }
  EXPECT_EQ(backup->wait(), kClean) << backup->log();
  EXPECT_TRUE(says({"verify", "backups"}, kClean));
}

TEST_F(BackupTest, ABackupOfAClockThatWasAheadDoesNotStayTheNewest) {
  auto server = serve_on("data");
  (void)increment(*server, "a");
  const fs::path ahead = root_ / "backups/20990101T000000Z";
  fs::rename(back_up(), ahead);
  (void)increment(*server, "a");
  for (const char* const later : {"-2", "-3"}) {
    EXPECT_EQ(back_up().filename(), ahead.filename().native() + later);
    EXPECT_TRUE(says({"verify", "backups"}, kClean, ahead.filename().native() + later + ": "));
  }
  EXPECT_EQ(server->stop(), kClean);
  expect_restored("elsewhere");
  server = serve_on("elsewhere");
  EXPECT_EQ(number(count(*server, "a")), 2);
}

TEST_F(BackupTest, WhatCannotBeReadIsNamedAndLeftOutAndAllElseIsThere) {
  auto server = serve_on("data");
  for (const char* const each : {"a", "b"}) (void)increment(*server, each);
  EXPECT_EQ(server->stop(), kClean);
  fs::rename(root_ / "data/admin.token", root_ / "token");
  fs::create_symlink(root_ / "token", root_ / "data/admin.token");
  for (const char* const part : {"-wal", "-shm"})
    fs::remove((root_ / "data/audit.db").native() + part);
  std::ofstream{root_ / "data/audit.db"} << std::string(4096, 'x');
  fs::rename(file_of("b"), root_ / "b.db");
  fs::create_directory(file_of("b"));
  std::ofstream{fs::path(file_of("a")).replace_extension(".files")} << "no directory";
  server = serve_on("data");
  const Said said = say({"backup", "backups", "--data", "data"});
  EXPECT_EQ(said.ending, kFailed);
  EXPECT_TRUE(contains(said.err, "lacks what could not be read: 3 agents or files", "audit.db"));
  const fs::path backup = said.out.substr(0, said.out.find('\n'));
  ASSERT_TRUE(fs::exists(backup / "manifest")) << said.all();
  EXPECT_EQ(text_of(backup / "admin.token"), text_of(root_ / "token"));
  EXPECT_FALSE(fs::exists(backup / "audit.db"));
  EXPECT_TRUE(says({"verify", "backups"}, kFailed, "it is missing: Counter b"));
  EXPECT_EQ(server->stop(), kClean);
  expect_restored("elsewhere");
  server = serve_on("elsewhere");
  EXPECT_EQ(number(count(*server, "a")), 1);
}

TEST_F(BackupTest, AFileSystemThatExchangesNoNamesIsNamedAndNothingIsLeftBehind) {
  auto server = serve_on("data");
  (void)increment(*server, "a");
  (void)back_up();
  (void)increment(*server, "a");
  EXPECT_EQ(server->stop(), kClean);
  for (const auto& more : std::vector<std::vector<std::string>>{{}, {"--agent", "Counter/a"}}) {
    std::vector<std::string> command{"env",           "LD_PRELOAD=" + built::no_exchange().native(),
                                     built::server(), "restore",
                                     "backups",       "--data",
                                     "data",          "--replace"};
    command.insert(command.end(), more.begin(), more.end());
    ServerProcess restore(command, root_);
    EXPECT_EQ(restore.wait(), kFailed);
    EXPECT_TRUE(contains(restore.log(), "cannot exchange two names", "without --replace"));
    for (const char* const left : {"data.restoring", "data/.restoring"})
      EXPECT_FALSE(fs::exists(root_ / left)) << left;
  }
  server = serve_on("data");
  EXPECT_EQ(number(count(*server, "a")), 2);
}

}  // namespace
}  // namespace hearth::testing
