#include "storage/plugin_sql.hpp"

#include "base/assert.hpp"
#include "storage/agent_schema.hpp"
#include "storage/single_owner_vfs.hpp"
#include "storage/sql_guards.hpp"

#include <sqlite3.h>

#include <algorithm>
#include <array>
#include <string>
#include <utility>

namespace hearth::storage {
namespace {

// The least number of SQLite's instructions between two looks at the clock: half a microsecond of
// simple ones. The looks take a twentieth of the time of a long scan. SQLite looks at the next
// jump, which may be the end of a row with any number of columns.
constexpr int kInstructionsPerCheck = 50;

// LIKE and GLOB do not look at the clock. One of them takes a second for a value of 2 MB and a
// pattern of this length.
constexpr int kMostPatternBytes = 200;

// An agent without durable work has no tables for it; its SQL reads them as empty.
bool is_about_absent_work_view(const Error& error) {
  constexpr std::string_view kAbsent = "no such table: ";
  std::string_view text = error.message;
  if (!text.starts_with(kAbsent)) return false;
  text.remove_prefix(kAbsent.size());
  if (text.starts_with("main.")) text.remove_prefix(std::string_view("main.").size());
  return std::ranges::find(kWorkViews, text) != std::end(kWorkViews);
}

// SQLite's own limit.
constexpr std::size_t kLargestValue = 1'000'000'000;

// A longer text is built by a program, and is not expected again.
constexpr std::size_t kMaxCachedSqlBytes = 4'096;

// Limits far above normal use. Each bounds stack, or time within one instruction, in which SQLite
// does not look at the clock.
constexpr std::array<std::pair<int, int>, 7> kFixedLimits = {{
    {SQLITE_LIMIT_ATTACHED, 0},
    {SQLITE_LIMIT_COMPOUND_SELECT, 50},
    {SQLITE_LIMIT_COLUMN, 500},
    {SQLITE_LIMIT_LIKE_PATTERN_LENGTH, kMostPatternBytes},
    {SQLITE_LIMIT_TRIGGER_DEPTH, 20},
    {SQLITE_LIMIT_VDBE_OP, 50'000},
    {SQLITE_LIMIT_WORKER_THREADS, 0},
}};

Error no_rowids_left() {
  return Error{Errc::kLimitExceeded,
               "a table with AUTOINCREMENT has given its largest rowid and takes no more rows"};
}

Error invalid(std::string message) {
  return Error{Errc::kInvalidArgument, std::move(message)};
}

// The text without the blanks, semicolons and comments at its start.
std::string_view skip_blanks(std::string_view text) {
  while (!text.empty()) {
    std::size_t skipped = 1;
    if (text.starts_with("--")) {
      skipped = std::min(text.find('\n'), text.size());
    } else if (text.starts_with("/*")) {
      const std::size_t end = text.find("*/", 2);
      skipped = end == std::string_view::npos ? text.size() : end + 2;
    } else if (std::string_view(" \t\r\n\f;").find(text.front()) == std::string_view::npos) {
      break;
    }
    text.remove_prefix(skipped);
  }
  return text;
}

// Whether the text after a statement has no other statement.
bool is_blank(std::string_view text) {
  return skip_blanks(text).empty();
}

std::string_view first_word(std::string_view sql) {
  sql = skip_blanks(sql);
  const auto is_letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); };
  return sql.substr(0, static_cast<std::size_t>(
                           std::find_if_not(sql.begin(), sql.end(), is_letter) - sql.begin()));
}

// Whether the disk, the file or the machine failed, not the plugin.
bool is_environment_failure(int code) {
  if (code == SQLITE_CORRUPT_VTAB) return false;  // an fts5 table whose content table has changed
  switch (code & 0xff) {
    case SQLITE_ERROR:
    case SQLITE_ABORT:
    case SQLITE_LOCKED:
    case SQLITE_INTERRUPT:
    case SQLITE_SCHEMA:
    case SQLITE_TOOBIG:
    case SQLITE_CONSTRAINT:
    case SQLITE_MISMATCH:
    case SQLITE_AUTH:
    case SQLITE_RANGE: return false;
    default: return true;
  }
}

Errc errc_of(int code) {
  switch (code & 0xff) {
    case SQLITE_CONSTRAINT:
    case SQLITE_LOCKED: return Errc::kConflict;
    case SQLITE_TOOBIG: return Errc::kLimitExceeded;
    case SQLITE_INTERRUPT: return Errc::kTimeout;
    case SQLITE_AUTH: return Errc::kForbidden;
    case SQLITE_ABORT: return Errc::kCancelled;
    default: return Errc::kInvalidArgument;
  }
}

}  // namespace

class PluginSql::PluginScope {
 public:
  explicit PluginScope(PluginSql& sql)
      : sql_(sql),
        host_variables_limit_(sqlite3_limit(sql.connection_, SQLITE_LIMIT_VARIABLE_NUMBER,
                                            sql.limits_.max_variables)) {
    sql.deadline_ = sql.clock_.steady_now() + sql.time_of_call();
    const auto max_value = static_cast<int>(std::min(sql.limits_.max_value_bytes, kLargestValue));
    host_length_limit_ = sqlite3_limit(sql.connection_, SQLITE_LIMIT_LENGTH, max_value);
    forget_full_disk();
    sql.authorizer_->enter();
  }
  ~PluginScope() {
    sql_.authorizer_->leave();
    sql_.deadline_.reset();
    sqlite3_limit(sql_.connection_, SQLITE_LIMIT_LENGTH, host_length_limit_);
    sqlite3_limit(sql_.connection_, SQLITE_LIMIT_VARIABLE_NUMBER, host_variables_limit_);
  }
  PluginScope(const PluginScope&) = delete;
  PluginScope& operator=(const PluginScope&) = delete;

 private:
  PluginSql& sql_;
  int host_variables_limit_;
  int host_length_limit_;
};

void PluginSql::Finalize::operator()(sqlite3_stmt* stmt) const noexcept {
  sqlite3_finalize(stmt);
}

PluginSql::PluginSql(AgentDatabase& database, const Clock& clock, PluginSqlLimits limits,
                     StateUndone state_undone)
    : database_(database), clock_(clock), limits_(limits), state_undone_(std::move(state_undone)) {}

PluginSql::~PluginSql() {
  if (connection_ != nullptr) sqlite3_progress_handler(connection_, 0, nullptr, nullptr);
}

// Not in the constructor: an agent whose plugin uses no SQL needs no file.
void PluginSql::attach() {
  sqlite3& connection = database_.connection();
  if (connection_ != nullptr) return;
  connection_ = &connection;
  authorizer_ = std::make_unique<Authorizer>(connection);
  guard_slow_functions(connection);
  for (const auto& [limit, value] : kFixedLimits) sqlite3_limit(connection_, limit, value);

  sqlite3_limit(connection_, SQLITE_LIMIT_EXPR_DEPTH, limits_.max_expression_depth);
  const auto past_deadline = [](void* self) {
    const auto& sql = *static_cast<const PluginSql*>(self);
    // (The host's own statements have none.)
    return int{sql.deadline_ && sql.clock_.steady_now() >= *sql.deadline_};
  };
  sqlite3_progress_handler(connection_, kInstructionsPerCheck, past_deadline, this);
}

// The error of the call that has just failed. Throws StorageError if the environment failed.
Error PluginSql::to_error(int code) {
  database_.transaction_was_lost();
  if (!authorizer_->refusal().empty()) return Error{Errc::kForbidden, authorizer_->refusal()};
  // SQLITE_FULL means a full disk, or a table with AUTOINCREMENT whose largest rowid is used.
  // SQLite has already undone the statement's rows.
  if ((code & 0xff) == SQLITE_FULL && !full_disk_was_met() && !database_.is_bounded())
    return no_rowids_left();
  if (is_environment_failure(code)) throw_storage_error(*connection_, "the plugin's SQL");
  if ((code & 0xff) == SQLITE_INTERRUPT) {
    return Error{Errc::kTimeout, "the statement ran for more than " +
                                     std::to_string(time_of_call().count()) + " ms"};
  }
  return Error{errc_of(code), sqlite3_errmsg(connection_)};
}

// ---- statements --------------------------------------------------------------------------------

Result<StatementHandle> PluginSql::prepare(std::string_view sql, bool may_create) {
  if (sql.size() > limits_.max_sql_bytes)
    return Error{Errc::kLimitExceeded,
                 "the SQL text is longer than " + std::to_string(limits_.max_sql_bytes) + " bytes"};
  if (sql.find('\0') != std::string_view::npos) return invalid("the SQL text contains a NUL");
  if (open_.size() >= limits_.max_open_handles)
    return Error{Errc::kLimitExceeded, "more than " + std::to_string(limits_.max_open_handles) +
                                           " statements are open: finalize those not in use"};
  attach();
  if (std::optional<Compiled> cached = take_cached(sql))
    return StatementHandle{open_.emplace(std::move(*cached)).first};
  Result<Compiled> compiled = compile(sql);
  if (!compiled && is_about_absent_work_view(compiled.error())) {
    if (!may_create) return prepare_with_views(sql, compiled.error());
    database_.begin_write();
    create_job_tables(*connection_);
    create_job_views(*connection_, ViewsIn::kFile);
    compiled = compile(sql);
  }
  if (!compiled) return compiled.error();
  return StatementHandle{open_.emplace(std::move(*compiled)).first};
}

// The views are this connection's until the statement is finalized: the agent's own code would meet
// them, in ALTER TABLE for example.
Result<StatementHandle> PluginSql::prepare_with_views(std::string_view sql, const Error& why) {
  if (views_of_ || !has_table(*connection_, "cf_agents_jobs")) return why;
  create_job_views(*connection_, ViewsIn::kConnection);
  Result<Compiled> compiled = compile(sql);
  if (!compiled) {
    drop_connection_views(*connection_);
    return compiled.error();
  }
  views_of_ = StatementHandle{open_.emplace(std::move(*compiled)).first};
  return *views_of_;
}

Result<bool> PluginSql::writes(StatementHandle handle) {
  const auto compiled = find(handle);
  if (!compiled) return compiled.error();
  return (*compiled)->writes;
}

Result<PluginSql::Compiled> PluginSql::compile(std::string_view sql) {
  const PluginScope scope(*this);
  sqlite3_stmt* raw = nullptr;
  const char* tail = nullptr;
  const int code = sqlite3_prepare_v3(connection_, sql.data(), static_cast<int>(sql.size()),
                                      SQLITE_PREPARE_PERSISTENT, &raw, &tail);
  Compiled compiled{.stmt = OwnedStatement(raw)};
  if (code != SQLITE_OK) return to_error(code);
  if (raw == nullptr) return invalid("the SQL text holds no statement");
  if (!is_blank(sql.substr(static_cast<std::size_t>(tail - sql.data()))))
    return invalid("the SQL text holds more than one statement: prepare them one by one");
  if (std::optional<Error> refused = refuse_unreported(*raw, sql)) return *std::move(refused);

  const Authorizer::Seen& seen = authorizer_->seen();
  if (sqlite3_stmt_isexplain(raw) == 0) {
    // A statement without columns counts as a write, even if it has nothing to do now. For example,
    // DROP TRIGGER IF EXISTS of an absent trigger writes if SQLite compiles it again after the
    // trigger was made.
    compiled.writes = sqlite3_stmt_readonly(raw) == 0 || sqlite3_column_count(raw) == 0;
    compiled.grows = seen.growth;
    compiled.searches = seen.match;
  }
  // A rollback, or the end of another statement, may undo views of the host.
  compiled.worth_keeping =
      !seen.schema_change && sql.size() <= kMaxCachedSqlBytes && !mentions_host_tables(sql);
  return compiled;
}

// Refuses what SQLite does not report to the authorizer.
std::optional<Error> PluginSql::refuse_unreported(sqlite3_stmt& stmt, std::string_view sql) const {
  const Authorizer::Seen& seen = authorizer_->seen();
  // SQLite also does not report CREATE ... IF NOT EXISTS and DROP ... IF EXISTS with nothing to do.
  const std::string_view verb = first_word(sql);
  const bool may_be_idle = equal_ignoring_case(verb, "create") || equal_ignoring_case(verb, "drop");
  if (sqlite3_stmt_readonly(&stmt) == 0 && !seen.write && !may_be_idle)
    return Error{Errc::kForbidden, "VACUUM and similar statements are not available"};
  if (!mentions_host_tables(sql)) return std::nullopt;
  if (seen.alter)
    return Error{Errc::kForbidden, "ALTER TABLE with a name that starts with cf_agent"};
  // Rows of the plugin would prevent the host's deletes.
  if (seen.schema_change && contains_ignoring_case(sql, "references"))
    return Error{Errc::kForbidden, "a foreign key cannot refer to a table of the host"};
  return std::nullopt;
}

std::optional<PluginSql::Compiled> PluginSql::take_cached(std::string_view sql) {
  const auto same_text = [sql](const Compiled& compiled) {
    const std::string_view text = sqlite3_sql(compiled.stmt.get());  // without the text after it
    return sql.starts_with(text) && is_blank(sql.substr(text.size()));
  };
  const auto found = std::find_if(cache_.begin(), cache_.end(), same_text);
  if (found == cache_.end()) return std::nullopt;
  Compiled compiled = std::move(*found);
  cache_.erase(found);
  return compiled;
}

void PluginSql::keep_for_later(Compiled compiled) {
  if (!compiled.worth_keeping || limits_.cached_statements == 0) return;
  sqlite3_clear_bindings(compiled.stmt.get());
  compiled.used = true;
  if (cache_.size() >= limits_.cached_statements) cache_.erase(cache_.begin());
  cache_.push_back(std::move(compiled));
}

Result<PluginSql::Compiled*> PluginSql::find(StatementHandle handle) {
  Compiled* const compiled = open_.find(static_cast<std::uint64_t>(handle));
  if (compiled == nullptr) return invalid("no such statement: it was finalized, or never prepared");
  // The host resets statements that prevent a commit.
  if (compiled->cursor == Cursor::kOnRow && sqlite3_stmt_busy(compiled->stmt.get()) == 0)
    compiled->cursor = Cursor::kExpired;
  return compiled;
}

Result<StepOutcome> PluginSql::step(StatementHandle handle) {
  const Result<Compiled*> found = find(handle);
  if (!found) return found.error();
  Compiled& compiled = **found;
  if (compiled.cursor == Cursor::kExpired)
    return Error{
        Errc::kCancelled,
        "the transaction in which this result was being read has ended: read all rows before "
        "waiting, or reset the statement to start again"};
  if (compiled.writes) {
    if (const Result<void> room = check_growth(compiled); !room) return room.error();
    database_.begin_write();
  } else {
    static_cast<void>(database_.connection());  // throws when the database is broken
  }
  const PluginScope scope(*this);
  const bool starts = compiled.cursor == Cursor::kIdle;
  // The host inserts rows on the same connection too.
  if (starts) sqlite3_set_last_insert_rowid(connection_, last_insert_rowid_);
  const int outcome = sqlite3_step(compiled.stmt.get());
  // The first step does all the writing; further steps return rows.
  if (starts && compiled.writes) last_insert_rowid_ = sqlite3_last_insert_rowid(connection_);
  return finish_step(compiled, outcome);
}

Result<StepOutcome> PluginSql::finish_step(Compiled& compiled, int outcome) {
  if (outcome == SQLITE_ROW) {
    compiled.cursor = Cursor::kOnRow;
    return StepOutcome::kRow;
  }
  compiled.cursor = Cursor::kIdle;
  if (outcome == SQLITE_DONE) {
    rewind(compiled);
    return StepOutcome::kDone;
  }
  Error error = to_error(outcome);  // first: reset forgets the message
  sqlite3_reset(compiled.stmt.get());
  return error;
}

// Ends a run of the statement and notes the changed rows.
void PluginSql::rewind(Compiled& compiled) noexcept {
  sqlite3_reset(compiled.stmt.get());
  compiled.cursor = Cursor::kIdle;
  if (compiled.writes) changes_ = sqlite3_changes64(connection_);
}

Result<void> PluginSql::check_growth(const Compiled& compiled) {
  if (limits_.max_database_bytes == 0 || !compiled.grows) return {};
  if (database_.used_bytes() < limits_.max_database_bytes) return {};
  return Error{Errc::kLimitExceeded, "the agent's database has reached its limit of " +
                                         std::to_string(limits_.max_database_bytes) + " bytes"};
}

Result<void> PluginSql::reset(StatementHandle handle) {
  const Result<Compiled*> found = find(handle);
  if (!found) return found.error();
  if ((*found)->cursor == Cursor::kOnRow) rewind(**found);
  (*found)->cursor = Cursor::kIdle;
  return {};
}

Result<void> PluginSql::finalize(StatementHandle handle) {
  const Result<Compiled*> found = find(handle);
  if (!found) return found.error();
  if ((*found)->cursor == Cursor::kOnRow) rewind(**found);
  (*found)->cursor = Cursor::kIdle;
  keep_for_later(std::move(**found));
  open_.erase(static_cast<std::uint64_t>(handle));
  if (views_of_ == handle) {
    views_of_.reset();
    drop_connection_views(*connection_);
  }
  return {};
}

void PluginSql::end_turn() noexcept {
  open_.for_each([this](std::uint64_t, Compiled& compiled) {
    if (compiled.cursor != Cursor::kOnRow) return;
    rewind(compiled);
    compiled.cursor = Cursor::kExpired;
  });
}

void PluginSql::release_memory() noexcept {
  cache_.clear();
  cache_.shrink_to_fit();
}

void PluginSql::release_unused() noexcept {
  std::erase_if(cache_, [](Compiled& compiled) { return !std::exchange(compiled.used, false); });
}

// ---- savepoints --------------------------------------------------------------------------------

Result<SavepointHandle> PluginSql::begin_savepoint() {
  attach();
  database_.begin_write();
  drop_ended_savepoints();
  if (savepoints_.size() >= kMaxSavepoints)
    return Error{Errc::kLimitExceeded,
                 "more than " + std::to_string(kMaxSavepoints) + " savepoints are open"};
  run_savepoint("SAVEPOINT", savepoints_.size());
  savepoints_.push_back({.handle = SavepointHandle{++last_savepoint_},
                         .transaction = database_.transactions(),
                         .state_writes = database_.state_writes()});
  return savepoints_.back().handle;
}

Result<void> PluginSql::release(SavepointHandle savepoint) {
  const Result<std::size_t> depth = find_savepoint(savepoint);
  if (!depth) return depth.error();
  run_savepoint("RELEASE", *depth);
  savepoints_.resize(*depth);
  return {};
}

Result<void> PluginSql::rollback_to(SavepointHandle savepoint) {
  const Result<std::size_t> depth = find_savepoint(savepoint);
  if (!depth) return depth.error();
  run_savepoint("ROLLBACK TO", *depth);
  run_savepoint("RELEASE", *depth);
  const std::uint64_t last_write = savepoints_[*depth].state_writes;
  savepoints_.resize(*depth);
  database_.forget_schema();
  if (state_undone_ && last_write != database_.state_writes()) state_undone_(last_write);
  return {};
}

// A commit or rollback of the host ends savepoints without a call here.
void PluginSql::drop_ended_savepoints() {
  std::erase_if(savepoints_, [this](const Savepoint& savepoint) {
    return !database_.dirty() || savepoint.transaction != database_.transactions();
  });
}

Result<std::size_t> PluginSql::find_savepoint(SavepointHandle savepoint) {
  drop_ended_savepoints();
  for (std::size_t depth = 0; depth < savepoints_.size(); ++depth) {
    if (savepoints_[depth].handle == savepoint) return depth;
  }
  return invalid("no such savepoint: it was ended, or the turn that began it has ended");
}

void PluginSql::run_savepoint(const char* verb, std::size_t depth) {
  static_cast<void>(database_.connection());  // throws when the database is broken
  // SQLite refuses this while a statement is in the middle of writing. A reset loses its rows, not
  // its writes.
  open_.for_each([this](std::uint64_t, Compiled& compiled) {
    if (!compiled.writes || compiled.cursor != Cursor::kOnRow) return;
    rewind(compiled);
    compiled.cursor = Cursor::kExpired;
  });
  const std::string sql = std::string(verb) + " plugin_" + std::to_string(depth);
  if (sqlite3_exec(connection_, sql.c_str(), nullptr, nullptr, nullptr) == SQLITE_OK) return;
  database_.transaction_was_lost();
  throw_storage_error(*connection_, sql);
}

}  // namespace hearth::storage
