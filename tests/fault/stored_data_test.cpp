// A data directory as a server of commit 164d3ff left it when it was killed, host.db included, with
// work in every state: its agents' files have schema version 1 (tests/support/stored_work.sql). All
// of the work goes on, also if the server is killed while it takes the files over.
#include "base/clock.hpp"
#include "fault/fault_fixture.hpp"
#include "process/agent_client.hpp"
#include "support/stored_work.hpp"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <ostream>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace hearth::testing {
namespace {

using Lines = std::vector<std::string>;

// After that, all retries are due, or nearly due.
constexpr std::int64_t kDownForMs = 117'000;

// The tables of host.db as of then.
constexpr const char* kDirectoryOfThen =
    "PRAGMA journal_mode=WAL;"
    "CREATE TABLE agents("
    "  class TEXT NOT NULL, name TEXT NOT NULL, created_at INTEGER NOT NULL,"
    "  PRIMARY KEY(class, name)) WITHOUT ROWID;"
    "CREATE TABLE wakes("
    "  class TEXT NOT NULL, name TEXT NOT NULL, at INTEGER, working INTEGER NOT NULL,"
    "  PRIMARY KEY(class, name)) WITHOUT ROWID;"
    "CREATE TABLE condemned("
    "  class TEXT NOT NULL, name TEXT NOT NULL,"
    "  PRIMARY KEY(class, name)) WITHOUT ROWID;"
    "PRAGMA user_version=3;";

std::string moved(const char* table, const Lines& columns, std::int64_t by_ms) {
  std::string sql = "UPDATE " + std::string(table) + " SET ";
  for (const std::string& column : columns) {
    if (column != columns.front()) sql += ", ";
    sql += column + " = iif(" + column + " > 0, " + column + " + " + std::to_string(by_ms) + ", " +
           column + ")";
  }
  return sql + ";";
}

void run_sql(const std::filesystem::path& file, const std::string& sql) {
  sqlite3* database = nullptr;
  sqlite3_open(file.c_str(), &database);
  const int outcome = sqlite3_exec(database, sql.c_str(), nullptr, nullptr, nullptr);
  const std::string why = sqlite3_errmsg(database);
  sqlite3_close(database);
  if (outcome != SQLITE_OK) throw std::runtime_error(sql + ": " + why);
}

class StoredDataTest : public FaultTest {
 protected:
  StoredDataTest() {
    install(built::agent("stored-work"), "stored-work.so");
    std::string host = kDirectoryOfThen;
    for (const std::string& name : agents_) {
      store(name);
      // One that worked when it was killed, and others that a time wakes.
      host += "INSERT INTO agents VALUES('Worker', '" + name + "', 1);";
      host += "INSERT INTO wakes VALUES('Worker', '" + name + "', 1, " +
              (name == agents_.front() ? "1" : "0") + ");";
    }
    store("gone");  // its removal had begun
    host += "INSERT INTO agents VALUES('Worker', 'gone', 1);";
    host += "INSERT INTO condemned VALUES('Worker', 'gone');";
    run_sql(root_ / "data/host.db", host);
  }

  [[nodiscard]] std::filesystem::path file_of(const std::string& name) const {
    return database_of(name, "Worker");
  }
  // The file as the server left it kDownForMs ago.
  void store(const std::string& name) const {
    std::filesystem::create_directories(file_of(name).parent_path());
    const std::int64_t by_ms =
        unix_millis(std::chrono::system_clock::now()) - kStoredWorkAtMs - kDownForMs;
    make_stored_work(
        file_of(name),
        "UPDATE cf_agents_meta SET value = '" + name + "' WHERE key = 'name';" +
            moved("cf_agents_runs", {"created_at", "next_at"}, by_ms) +
            moved("cf_agents_fibers",
                  {"created_at", "started_at", "completed_at", "next_at", "tell_at"}, by_ms) +
            moved("cf_agents_schedules",
                  {"time", "scheduled_for", "begun_at", "catch_up_until", "set_at", "created_at",
                   "last_run"},
                  by_ms) +
            moved("cf_agents_queues", {"created_at", "next_at"}, by_ms));
  }

  [[nodiscard]] Lines look(const std::string& name, const std::string& query) const {
    return rows_of(file_of(name), query);
  }
  // Of each file, in the order of their names.
  [[nodiscard]] std::string versions() const {
    std::string all;
    for (const std::string& name : agents_) {
      all += look(name, "SELECT value FROM cf_agents_meta WHERE key = 'schema'").at(0);
    }
    return all;
  }

  // How often each line is in the journal, once all work that is due has been done.
  static std::map<std::string, int> journal_of(const ServerProcess& server, const std::string& name,
                                               std::size_t lines) {
    const auto deadline = std::chrono::steady_clock::now() + ServerProcess::kPatience;
    AgentClient agent(server, "/agents/worker/" + name);
    for (;;) {
      std::map<std::string, int> counts;
      for (const Json& line : agent.call("journal")) ++counts[line.get<std::string>()];
      if (counts.size() >= lines || std::chrono::steady_clock::now() > deadline) return counts;
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
  }

  // The wake index wakes the agents: no client asks for one before it has started.
  void expect_that_all_goes_on(ServerProcess& server) const {
    const std::map<std::string, int> expected = {{"done failed null", 1},
                                                 {"done m-plain null", 1},
                                                 {"done m-retry 7", 1},
                                                 {R"(done m-running "half")", 1},
                                                 {"done running [1,2]", 1},
                                                 {"done unstashed null", 1},
                                                 {"ran claimed", 1},
                                                 {"ran later", 1},
                                                 {"ran missing", 1},
                                                 {"ran retrying", 1},
                                                 {"told m-not-heard aborted", 1},
                                                 {"told m-plain completed", 1},
                                                 {"told m-retry completed", 1},
                                                 {"told m-running completed", 1},
                                                 {"told m-telling error", 1},
                                                 {"told m-untold completed", 1},
                                                 {"took behind", 1},
                                                 {"took head", 1},
                                                 {"took last", 1}};
    for (const std::string& name : agents_) {
      server.wait_for_log("agent.started class=Worker agent=" + name);
      std::map<std::string, int> found = journal_of(server, name, expected.size() + 2);
      EXPECT_GT(found["ran beside"], 0) << name;
      EXPECT_GT(found["ran every"], 0) << name;
      found.erase("ran beside");
      found.erase("ran every");
      EXPECT_EQ(found, expected) << name;
    }
    const auto deadline = std::chrono::steady_clock::now() + ServerProcess::kPatience;
    while (std::filesystem::exists(file_of("gone")) && std::chrono::steady_clock::now() < deadline)
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  // What is left when the server has closed the files.
  void expect_that_the_rest_is_kept() const {
    for (const std::string& name : agents_) {
      EXPECT_EQ(look(name, "SELECT name, snapshot FROM cf_agents_runs"), Lines{R"(dead|{"a":1})"});
      EXPECT_EQ(look(name, "SELECT fiber_id, status, dead FROM cf_agents_fibers ORDER BY 1"),
                (Lines{"m-dead|error|1", "m-interrupted|interrupted|0", "m-not-heard|aborted|0",
                       "m-plain|completed|0", "m-retry|completed|0", "m-running|completed|0",
                       "m-telling|error|0", "m-told|completed|0", "m-untold|completed|0"}));
      EXPECT_EQ(look(name,
                     "SELECT callback, dead, paused FROM cf_agents_schedules "
                     "WHERE parent IS NULL ORDER BY 1"),
                (Lines{"at|0|0", "beside|0|0", "every|0|0", "nightly|0|0", "paused|0|1"}));
      EXPECT_EQ(look(name, "SELECT callback, dead, last_error FROM cf_agents_queues"),
                Lines{"buried|1|it broke"});
      EXPECT_EQ(look(name, "SELECT state FROM cf_agents_state"), Lines{R"({"kept":true})"});
    }
    EXPECT_FALSE(std::filesystem::exists(file_of("gone")));
  }

  const Lines agents_{"a", "b", "c"};
};

TEST_F(StoredDataTest, AllOfItsWorkGoesOnAndServersOfThatVersionRefuseIt) {
  const auto server = serve_ledgers();
  expect_that_all_goes_on(*server);
  EXPECT_EQ(server->stop(), kClean);
  expect_that_the_rest_is_kept();
  // Those know versions up to 1 of an agent's file, and up to 3 of host.db.
  EXPECT_EQ(versions(), "222");
  EXPECT_GT(std::stoi(rows_of(root_ / "data/host.db", "PRAGMA user_version").at(0)), 3);
}

TEST_F(StoredDataTest, AFileOfANewerServerIsRefusedAndLeftAsItIs) {
  store("newer");
  run_sql(file_of("newer"), "UPDATE cf_agents_meta SET value = 1000 WHERE key = 'schema'");
  const auto server = serve_ledgers();
  EXPECT_GE(request(*server, "GET", "/agents/worker/newer").status, 500);
  server->wait_for_log("written by a newer server");
  EXPECT_EQ(server->stop(), kClean);
  EXPECT_EQ(look("newer", "SELECT count(*) FROM cf_agents_runs"), Lines{"7"});
  EXPECT_EQ(look("newer", "SELECT type FROM sqlite_schema WHERE name = 'cf_agents_runs'"),
            Lines{"table"});
}

struct KillCase {
  std::string name;
  std::string stop_at;
  std::size_t taken_over;  // files that are of this version when it is killed

  friend std::ostream& operator<<(std::ostream& out, const KillCase& each) {
    return out << each.stop_at;
  }
};

class StoredDataKillTest : public StoredDataTest, public ::testing::WithParamInterface<KillCase> {};

TEST_P(StoredDataKillTest, NothingIsLost) {
  const std::string& stop_at = GetParam().stop_at;
  kill_where_it_stops(*serve_until(stop_at), stop_at.substr(0, stop_at.find(':')));
  std::string found = versions();
  std::ranges::sort(found, std::greater());
  std::string expected(GetParam().taken_over, '2');
  expected.resize(agents_.size(), '1');
  EXPECT_EQ(found, expected);

  const auto server = serve_ledgers();
  expect_that_all_goes_on(*server);
  EXPECT_EQ(server->stop(), kClean);
  expect_that_the_rest_is_kept();
  EXPECT_EQ(versions(), "222");
}

INSTANTIATE_TEST_SUITE_P(
    Migration, StoredDataKillTest,
    ::testing::Values(KillCase{"OfTheFirstFileWritten", "migrate.written", 0},
                      KillCase{"OfTheFirstFileCommitted", "migrate.committed", 1},
                      KillCase{"OfTheSecondFileWritten", "migrate.written:2", 1},
                      KillCase{"OfTheLastFileCommitted", "migrate.committed:3", 3}),
    [](const auto& each) { return each.param.name; });

}  // namespace
}  // namespace hearth::testing
