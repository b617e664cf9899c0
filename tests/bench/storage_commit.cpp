// Commits a second: a one-row update with bare sqlite3 calls, and the same through AgentDatabase.
//
//   storage_commit [commits] [rounds]
//
// Both in WAL mode with synchronous=NORMAL and one connection. The rounds alternate. The best round
// of each side counts: other load on the machine only makes a round slower.

#include "storage/agent_database.hpp"

#include <sqlite3.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <string>

namespace {

void check(bool ok, const char* what) {
  if (ok) return;
  std::fprintf(stderr, "storage_commit: %s failed\n", what);
  std::exit(1);
}

// The same tables, the same statements, nothing around them.
class BareDatabase {
 public:
  explicit BareDatabase(const std::filesystem::path& path) {
    check(sqlite3_open_v2(path.c_str(), &db_,
                          SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX,
                          nullptr) == SQLITE_OK,
          "open");
    execute("PRAGMA locking_mode=EXCLUSIVE");
    execute("PRAGMA journal_mode=WAL");
    execute("PRAGMA synchronous=NORMAL");
    execute("CREATE TABLE state(id TEXT PRIMARY KEY NOT NULL, state TEXT) WITHOUT ROWID");
    prepare("BEGIN IMMEDIATE", &begin_);
    prepare("COMMIT", &commit_);
    prepare(
        "INSERT INTO state VALUES('state', ?1) ON CONFLICT(id) DO UPDATE SET state = "
        "excluded.state",
        &store_);
  }
  ~BareDatabase() {
    for (sqlite3_stmt* stmt : {begin_, commit_, store_}) sqlite3_finalize(stmt);
    sqlite3_close(db_);
  }
  BareDatabase(const BareDatabase&) = delete;
  BareDatabase& operator=(const BareDatabase&) = delete;

  void commit(const std::string& state) {
    step(begin_);
    sqlite3_bind_text(store_, 1, state.data(), static_cast<int>(state.size()), SQLITE_STATIC);
    step(store_);
    step(commit_);
  }

 private:
  void execute(const char* sql) {
    check(sqlite3_exec(db_, sql, nullptr, nullptr, nullptr) == SQLITE_OK, sql);
  }
  void prepare(const char* sql, sqlite3_stmt** stmt) {
    check(sqlite3_prepare_v3(db_, sql, -1, SQLITE_PREPARE_PERSISTENT, stmt, nullptr) == SQLITE_OK,
          sql);
  }
  static void step(sqlite3_stmt* stmt) {
    check(sqlite3_step(stmt) == SQLITE_DONE, sqlite3_sql(stmt));
    sqlite3_reset(stmt);
  }

  sqlite3* db_ = nullptr;
  sqlite3_stmt* begin_ = nullptr;
  sqlite3_stmt* commit_ = nullptr;
  sqlite3_stmt* store_ = nullptr;
};

double commits_per_second(int commits, const std::function<void(const std::string&)>& commit) {
  const auto start = std::chrono::steady_clock::now();
  for (int n = 0; n < commits; ++n) commit("{\"count\":" + std::to_string(n) + "}");
  const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - start;
  return commits / taken.count();
}

}  // namespace

int main(int argc, char** argv) {
  const int commits = argc > 1 ? std::atoi(argv[1]) : 100'000;
  const int rounds = argc > 2 ? std::atoi(argv[2]) : 5;
  std::string pattern = (std::filesystem::temp_directory_path() / "storage-commit-XXXXXX").string();
  check(::mkdtemp(pattern.data()) != nullptr, "mkdtemp");
  const std::filesystem::path directory = pattern;

  double bare_best = 0;
  double agent_best = 0;
  {
    hearth::storage::AgentDatabase agent(directory / "agent.db", {"Counter", "bench"});
    BareDatabase bare(directory / "bare.db");
    for (int round = 0; round < rounds; ++round) {
      bare_best = std::max(bare_best, commits_per_second(commits, [&](const std::string& state) {
                             bare.commit(state);
                           }));
      agent_best = std::max(agent_best, commits_per_second(commits, [&](const std::string& state) {
                              agent.store_state(state);
                              agent.commit();
                            }));
    }
    agent.close();
  }
  std::filesystem::remove_all(directory);
  std::printf("bare sqlite3    %9.0f commits/s\n", bare_best);
  std::printf("AgentDatabase   %9.0f commits/s\n", agent_best);
  std::printf("bare / agent    %9.2f (goal: at most 1.30)\n", bare_best / agent_best);
  return 0;
}
