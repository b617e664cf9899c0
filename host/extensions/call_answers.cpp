#include "extensions/call_answers.hpp"

#include "storage/agent_database.hpp"
#include "storage/statement.hpp"

#include <array>
#include <utility>

namespace hearth::extensions {
namespace {

using storage::Param;
using storage::Rows;
using storage::Statement;

// Each call that is noted removes at most so many that have expired: more than it adds.
constexpr std::int64_t kExpiredAtOnce = 8;

// In the place of a code: there is to be no row.
constexpr std::int64_t kForgotten = -1;

bool asks_for_another_try(Errc code) {
  return code == Errc::kUnavailable || code == Errc::kClosing || code == Errc::kCancelled;
}

Error too_large_to_keep() {
  return Error{Errc::kLimitExceeded,
               "the call has ended, and its answer was too large to be kept for a second try"};
}

}  // namespace

std::int64_t CallAnswers::now_ms() const {
  return unix_millis(agent_.clock().wall_now());
}

bool CallAnswers::exists() {
  storage::AgentDatabase& database = agent_.database();
  if (!database.exists()) return false;
  Statement find(database.connection(),
                 "SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = 'cf_agents_answers'");
  return find.query().next();
}

void CallAnswers::make_table() {
  sqlite3& connection = agent_.database().connection();
  Statement(connection,
            "CREATE TABLE cf_agents_answers(key TEXT PRIMARY KEY NOT NULL, "
            "fingerprint TEXT NOT NULL, code INTEGER, body TEXT NOT NULL, bytes INTEGER NOT NULL, "
            "expires_at INTEGER NOT NULL)")
      .execute();
  // With the bytes, so that what is kept is counted without a look at it.
  Statement(connection,
            "CREATE INDEX cf_agents_answers_expiry ON cf_agents_answers(expires_at, bytes)")
      .execute();
}

bool CallAnswers::is_full() {
  Statement count(agent_.database().connection(),
                  "SELECT count(*), coalesce(sum(bytes), 0) FROM cf_agents_answers "
                  "WHERE expires_at > ?");
  Rows rows = count.query(std::array{Param(now_ms())});
  const AnswerSettings& limits = agent_.settings().answers;
  return rows.next() && (std::cmp_greater_equal(rows.integer(0), limits.max_answers) ||
                         std::cmp_greater_equal(rows.integer(1), limits.max_total_bytes));
}

CallAnswers::Known CallAnswers::look(const CallKey& call) {
  if (has_unwritten()) write();  // of a call that has ended in the turns before
  if (!exists()) return {};
  {
    Statement find(agent_.database().connection(),
                   "SELECT fingerprint, code, body FROM cf_agents_answers "
                   "WHERE key = ? AND expires_at > ?");
    Rows rows = find.query(std::array{Param(std::string_view(call.key)), Param(now_ms())});
    if (rows.next()) {
      if (rows.text(0) != call.fingerprint) return {.verdict = Verdict::kAnother};
      if (rows.is_null(1)) return {.verdict = Verdict::kCutOff};
      std::string body(rows.text(2));
      if (rows.integer(1) == 0) return {.verdict = Verdict::kEnded, .outcome = std::move(body)};
      const auto code = static_cast<Errc>(rows.integer(1));
      return {.verdict = Verdict::kEnded, .outcome = Error{code, std::move(body)}};
    }
  }
  return {.verdict = is_full() ? Verdict::kFull : Verdict::kNew};
}

void CallAnswers::note_begun(const CallKey& call) {
  unwritten_.push_back({call, std::nullopt, {}});
}

void CallAnswers::note_ended(const CallKey& call, const Result<std::string_view>& outcome) {
  std::erase_if(unwritten_, [&](const Note& note) { return note.call.key == call.key; });
  if (outcome.has_error() && asks_for_another_try(outcome.error().code)) {
    unwritten_.push_back({call, kForgotten, {}});
  } else if (outcome.has_error()) {
    const Error& error = outcome.error();
    unwritten_.push_back({call, static_cast<std::int64_t>(error.code), error.message});
  } else if (outcome->size() > kMaxBodyBytes) {
    const Error error = too_large_to_keep();
    unwritten_.push_back({call, static_cast<std::int64_t>(error.code), error.message});
  } else {
    unwritten_.push_back({call, 0, std::string(*outcome)});
  }
}

bool CallAnswers::write() {
  agent_.database().begin_write();
  if (!exists()) make_table();
  sqlite3& connection = agent_.database().connection();
  const std::int64_t expires_at = now_ms() + agent_.settings().answers.keep.count();
  Statement put(connection,
                "INSERT OR REPLACE INTO cf_agents_answers"
                "(key, fingerprint, code, body, bytes, expires_at) VALUES(?, ?, ?, ?, ?, ?)");
  bool any_end = false;
  for (const Note& note : std::exchange(unwritten_, {})) {
    if (note.code == kForgotten) {
      Statement(connection, "DELETE FROM cf_agents_answers WHERE key = ?")
          .execute(std::array{Param(std::string_view(note.call.key))});
      continue;
    }
    any_end = any_end || note.code.has_value();
    const auto bytes = static_cast<std::int64_t>(note.call.key.size() + note.body.size());
    put.execute(std::array{Param(std::string_view(note.call.key)),
                           Param(std::string_view(note.call.fingerprint)),
                           note.code ? Param(*note.code) : Param(nullptr),
                           Param(std::string_view(note.body)), Param(bytes), Param(expires_at)});
  }
  Statement(connection,
            "DELETE FROM cf_agents_answers WHERE key IN (SELECT key FROM cf_agents_answers "
            "WHERE expires_at <= ? ORDER BY expires_at LIMIT ?)")
      .execute(std::array{Param(now_ms()), Param(kExpiredAtOnce)});
  return any_end;
}

}  // namespace hearth::extensions
