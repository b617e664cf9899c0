#pragma once
// An agent's database for tests: SQLite in memory, with the rules of hearth.sql/1.

#include <hearth/abi.h>
#include <hearth/ext/sql.h>

#include <sqlite3.h>

#include <cstdint>
#include <map>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace hearth::testing {

// Lives as long as the agent's storage: evictions do not touch it, but end its statements.
class Database {
 public:
  Database() { open(); }
  ~Database() {
    finalize_all();
    sqlite3_close(db_);
  }
  Database(const Database&) = delete;
  Database& operator=(const Database&) = delete;

  // As on the first day.
  void clear() {
    finalize_all();
    sqlite3_close(db_);
    open();
  }

  hearth_status prepare(std::string_view sql, hearth_statement& statement) {
    sqlite3_stmt* compiled = nullptr;
    const char* tail = nullptr;
    const int code =
        sqlite3_prepare_v2(db_, sql.data(), static_cast<int>(sql.size()), &compiled, &tail);
    if (code != SQLITE_OK) return failed(code);
    const std::string_view rest(tail, static_cast<std::size_t>(sql.data() + sql.size() - tail));
    if (!compiled || rest.find_first_not_of(" \t\r\n;") != std::string_view::npos) {
      sqlite3_finalize(compiled);
      error_ = compiled ? "more than one statement" : "no statement";
      return HEARTH_E_INVALID;
    }
    statement = ++last_statement_;
    statements_[statement] = compiled;
    return HEARTH_OK;
  }

  [[nodiscard]] sqlite3_stmt* find(hearth_statement statement) const {
    const auto found = statements_.find(statement);
    return found == statements_.end() ? nullptr : found->second;
  }

  hearth_status finalize(hearth_statement statement) {
    const auto found = statements_.find(statement);
    if (found == statements_.end()) return HEARTH_E_GONE;
    sqlite3_finalize(found->second);
    statements_.erase(found);
    return HEARTH_OK;
  }
  void finalize_all() {
    for (const auto& [number, statement] : statements_) sqlite3_finalize(statement);
    statements_.clear();
  }

  // Turns a result of SQLite into one of the interface, and keeps its words.
  hearth_status failed(int code) {
    if (code == SQLITE_OK) return HEARTH_OK;
    error_ = sqlite3_errmsg(db_);
    switch (code & 0xff) {
      case SQLITE_AUTH: return HEARTH_E_FORBIDDEN;
      case SQLITE_CONSTRAINT: return HEARTH_E_CONFLICT;
      case SQLITE_FULL:  // no disk is: AUTOINCREMENT has given the largest rowid
      case SQLITE_TOOBIG: return HEARTH_E_LIMIT;
      case SQLITE_NOMEM: return HEARTH_E_NOMEM;
      case SQLITE_IOERR:
      case SQLITE_CORRUPT: return HEARTH_E_IO;
      default: return HEARTH_E_INVALID;
    }
  }

  // ---- savepoints: those still open when the turn ends are kept
  std::uint32_t begin() {
    execute("SAVEPOINT s" + std::to_string(++depth_), true);
    return depth_;
  }
  hearth_status release(std::uint32_t depth) {
    if (depth == 0 || depth > depth_) return HEARTH_E_GONE;
    execute("RELEASE s" + std::to_string(depth), true);
    depth_ = depth - 1;
    return HEARTH_OK;
  }
  hearth_status rollback(std::uint32_t depth) {
    if (depth == 0 || depth > depth_) return HEARTH_E_GONE;
    execute("ROLLBACK TO s" + std::to_string(depth), true);
    return release(depth);
  }
  void end_turn() {
    if (depth_ > 0) release(1);
  }

  [[nodiscard]] std::uint32_t depth() const { return depth_; }

  // ---- what a migration writes, over several turns: not while the plugin's savepoints are open
  void begin_migration() { execute("SAVEPOINT migration", true); }
  void end_migration(bool keep) {
    if (!keep) execute("ROLLBACK TO migration", true);
    execute("RELEASE migration", true);
  }

  // ---- the host's own rows: NULL for an empty optional
  void write_own(const std::string& sql, const std::vector<std::optional<std::string>>& values) {
    own_ = true;
    sqlite3_stmt* statement = nullptr;
    if (sqlite3_prepare_v2(db_, sql.c_str(), -1, &statement, nullptr) != SQLITE_OK)
      throw std::logic_error(sqlite3_errmsg(db_));
    for (std::size_t i = 0; i < values.size(); ++i) {
      if (const auto& value = values[i])
        sqlite3_bind_text(statement, static_cast<int>(i + 1), value->data(),
                          static_cast<int>(value->size()), SQLITE_TRANSIENT);  // NOLINT
    }
    sqlite3_step(statement);
    sqlite3_finalize(statement);
    own_ = false;
  }

  [[nodiscard]] sqlite3* handle() const { return db_; }
  [[nodiscard]] const std::string& error() const { return error_; }

 private:
  void open() {
    if (sqlite3_open(":memory:", &db_) != SQLITE_OK)
      throw std::runtime_error("cannot open SQLite in memory");
    sqlite3_set_authorizer(db_, &Database::authorize, this);
    execute("CREATE TABLE cf_agents_state (id TEXT PRIMARY KEY, state TEXT)",
            true);  // tables of the host's
    execute(
        "CREATE TABLE cf_agents_runs (id TEXT PRIMARY KEY NOT NULL, name TEXT NOT NULL, snapshot "
        "TEXT, "
        "created_at INTEGER NOT NULL, attempts INTEGER NOT NULL DEFAULT 0, "
        "next_at INTEGER NOT NULL DEFAULT 0, dead INTEGER NOT NULL DEFAULT 0, last_error TEXT, "
        "recoveries INTEGER NOT NULL DEFAULT 0)",
        true);
  }

  void execute(const std::string& sql, bool own) {
    own_ = own;
    sqlite3_exec(db_, sql.c_str(), nullptr, nullptr, nullptr);
    own_ = false;
  }

  static int authorize(void* self, int action, const char* first, const char* second, const char*,
                       const char*) {
    if (static_cast<Database*>(self)->own_) return SQLITE_OK;
    switch (action) {
      case SQLITE_TRANSACTION:
      case SQLITE_SAVEPOINT:
      case SQLITE_ATTACH:
      case SQLITE_DETACH:
      case SQLITE_PRAGMA: return SQLITE_DENY;
      case SQLITE_FUNCTION:
        return second && std::string_view(second) == "load_extension" ? SQLITE_DENY : SQLITE_OK;
      case SQLITE_READ:
      case SQLITE_SELECT: return SQLITE_OK;
      default:
        return first && std::string_view(first).starts_with("cf_agents_") ? SQLITE_DENY : SQLITE_OK;
    }
  }

  sqlite3* db_ = nullptr;
  std::map<hearth_statement, sqlite3_stmt*> statements_;
  hearth_statement last_statement_ = 0;
  std::uint32_t depth_ = 0;
  std::string error_;
  bool own_ = false;
};

}  // namespace hearth::testing
